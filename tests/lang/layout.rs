//! The formatter never changes what the reader reads, and what it wrote it leaves as it is: over all sources of the
//! repository, and over random texts.

#![expect(
    clippy::disallowed_methods,
    reason = "the sources of the repository are files"
)]

use std::path::{Path, PathBuf};

use flowstone_lang::reader::{ReadContext, ReadOptions, Reader};
use flowstone_lang::session::Session;
use flowstone_lang::syntax::layout::format;
use flowstone_lang::syntax::{NodeKind, Tree};
use flowstone_lang::value::{SourceId, Symbol, Value};
use proptest::prelude::*;

const FOLDERS: &[&str] = &["flows", "src", "stdlib", "tests"];

fn sources() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(|name| root.join(name)).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of the repository") {
            let path = entry.expect("it can be listed").path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            if path.is_dir() {
                folders.push(path);
            } else if matches!(ending, Some("clj" | "cljc" | "edn")) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Reads every tag as its form and every alias as a namespace, so that any source can be read alone.
#[derive(Default)]
struct Lenient {
    gensym: u32,
}

impl ReadContext for Lenient {
    fn resolve_alias(&self, alias: &str) -> Option<String> {
        Some(alias.to_owned())
    }

    fn current_namespace(&self) -> String {
        "user".to_owned()
    }

    fn resolve_symbol(&self, symbol: Symbol) -> Symbol {
        symbol
    }

    fn gensym(&mut self, prefix: &str) -> Symbol {
        self.gensym += 1;
        Symbol::new(&format!("{prefix}{}", self.gensym))
    }

    fn read_tag(&mut self, _tag: Symbol, form: Value) -> Option<Result<Value, String>> {
        Some(Ok(form))
    }
}

/// Returns the forms of a text as they are printed, or the code of the error.
fn forms(text: &str) -> Vec<String> {
    let session = Session::new();
    let mut reader = Reader::new(text, ReadOptions::code(SourceId(0)));
    let mut cx = Lenient::default();
    let mut found = Vec::new();
    loop {
        match reader.next(&mut cx) {
            Ok(Some(form)) => found.push(session.show(&form)),
            Ok(None) => return found,
            Err(error) => {
                found.push(error.code.to_owned());
                return found;
            }
        }
    }
}

/// Returns everything in a text but blanks.
fn tokens(text: &str) -> Vec<(NodeKind, String)> {
    let tree = Tree::parse(text);
    let mut found = Vec::new();
    for (id, node) in tree.all() {
        let whole = tree.text(text, id);
        if node.open > 0 {
            found.push((node.kind, whole[..node.open as usize].to_owned()));
        } else if node.kind != NodeKind::Blank {
            found.push((node.kind, whole.to_owned()));
        }
    }
    found
}

#[test]
fn formatted_sources_of_the_repository_read_as_before() {
    let sources = sources();
    assert!(sources.len() > 150, "{} sources", sources.len());
    for path in sources {
        let Ok(text) = std::fs::read_to_string(&path) else {
            continue;
        };
        let Ok(laid_out) = format(&text) else {
            continue;
        };
        let name = path.display();
        assert_eq!(tokens(&text), tokens(&laid_out), "tokens of {name}");
        assert!(forms(&text) == forms(&laid_out), "forms of {name}");
        assert!(
            format(&laid_out).is_ok_and(|again| again == laid_out),
            "{name} is not stable"
        );
    }
}

#[test]
fn every_flow_and_every_file_of_the_library_is_balanced() {
    let sources = sources();
    let own = |path: &&PathBuf| {
        let text = path.to_string_lossy();
        text.contains("/../../flows/") || text.contains("/stdlib/")
    };
    for path in sources.iter().filter(own) {
        let text = std::fs::read_to_string(path).expect("text");
        assert!(Tree::parse(&text).flaws().is_empty(), "{}", path.display());
    }
}

#[test]
fn example_flows_and_templates_are_formatted() {
    for path in sources() {
        let name = path.to_string_lossy();
        if name.contains("/../../flows/") || name.contains("/cli/new/") {
            let text = std::fs::read_to_string(&path).expect("text");
            let laid_out = format(&text).expect("it is balanced");
            assert!(laid_out == text, "{name}: `flowstone fmt` would change it");
        }
    }
}

const PIECES: &[&str] = &[
    "(", ")", "[", "]", "{", "}", "#{", "#(", "'", "`", "~", "~@", "@", "^", "#_", "#'", "#?(",
    "#:a{", "#tag ", "a", ":b", "12", "\"s t\"", "\"", "\\(", "#\"x\"", "defn ", "let ", "reify ",
    " ", "  ", "\n", "\n\n\n", "\r\n", ",", ";c \n", "é", "字", "\t", "#!x\n", "\u{a0}", "1#_x",
    "##Inf", "\\",
];

proptest! {
    #[test]
    fn formatted_random_texts_read_as_before(parts in prop::collection::vec(prop::sample::select(PIECES), 0..40)) {
        let text: String = parts.concat();
        let tree = Tree::parse(&text);
        // The tree has every byte of the text once.
        let leaves: usize = tree
            .all()
            .map(|(_, node)| match node.open {
                0 => (node.end - node.start) as usize,
                open => open as usize + usize::from(node.kind.is_collection() && node.is_closed),
            })
            .sum();
        prop_assert_eq!(leaves, text.len());
        for at in 0..=text.len() {
            let _ = (tree.at(at), tree.around(at));
        }
        if let Ok(laid_out) = format(&text) {
            prop_assert_eq!(tokens(&text), tokens(&laid_out), "{:?}", text);
            prop_assert_eq!(forms(&text), forms(&laid_out), "{:?}", text);
            let again = format(&laid_out).map(|again| again.to_string());
            prop_assert_eq!(again.as_deref(), Ok(&*laid_out), "{:?}", text);
        }
    }
}

#[test]
fn a_deeply_nested_text_needs_no_stack() {
    let text = format!("{}{}", "(a\n".repeat(3_000), ")".repeat(3_000));
    assert!(format(&text).is_ok());
    let text = "[".repeat(200_000);
    let tree = Tree::parse(&text);
    assert_eq!(tree.flaws().len(), 200_000);
    assert!(tree.around(text.len()).is_some());
}
