//! A page for each name of the library, and an index: usage, what it does, examples with what they give, and how it differs
//! from Clojure. The examples are those beside the definitions and in `stdlib/examples.txt`; tests of the language run them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::rc::Rc;

use flowstone_lang::library;
use flowstone_lang::library::examples::Entry;
use flowstone_lang::session::Session;
use flowstone_lang::value::{Symbol, Value, Var};
use flowstone_lang::vm::NoHost;

use super::super::pretty::pretty;
use super::NOTE;

/// The page that people write; its rows are repeated on the pages of the names in them.
const DIFFERENCES: &str = include_str!("../../../../docs/reference/differences.md");

/// What a page says.
pub(super) struct Name {
    pub namespace: String,
    pub name: String,
    kind: &'static str,
    /// Each way to call it on a line.
    usage: String,
    doc: String,
    /// Expressions and what they give.
    examples: Vec<(String, String)>,
}

/// Returns the public names of the library, sorted, after defining all of it.
pub(super) fn all(session: &Session) -> Vec<Name> {
    let mut listed: BTreeMap<&str, Entry> = library::examples::entries()
        .map(|entry| (entry.name, entry))
        .collect();
    let mut names: Vec<Name> = vars(session)
        .iter()
        .map(|var| {
            let qualified = var.qualified().to_string();
            Name::of(var, listed.remove(&*qualified))
        })
        .collect();
    // What is left has no var: special forms.
    names.extend(listed.into_values().filter_map(Name::special));
    names.sort_by(|left, right| left.key().cmp(&right.key()));
    names
}

/// Returns the path of each page below the folder of the reference, and its text.
pub(super) fn pages(names: &[Name]) -> Vec<(String, String)> {
    let mut pages = vec![("names/README.md".to_owned(), index(names))];
    pages.extend(names.iter().map(|name| (name.path(), name.page())));
    pages
}

fn index(names: &[Name]) -> String {
    let mut out = format!("# Names\n\n{NOTE}\n\nA page for each public name of the library.\n");
    let namespaces: BTreeSet<&str> = names.iter().map(|name| &*name.namespace).collect();
    for namespace in namespaces {
        let _ = writeln!(out, "\n## {namespace}\n");
        for name in names.iter().filter(|name| name.namespace == namespace) {
            let first = name.doc.lines().next().unwrap_or("");
            let path = name.path();
            let path = path.trim_start_matches("names/");
            let _ = writeln!(out, "- [`{}`]({path}) {first}", name.name);
        }
    }
    out
}

impl Name {
    fn of(var: &Var, listed: Option<Entry>) -> Name {
        let name = var.name.to_string();
        let mut made = Name {
            namespace: var.namespace.to_string(),
            kind: "var",
            usage: String::new(),
            doc: String::new(),
            examples: Vec::new(),
            name,
        };
        match var.root() {
            Some(Value::Native(native)) => {
                made.kind = "function";
                native.usage.clone_into(&mut made.usage);
                native.doc.clone_into(&mut made.doc);
                let examples = native.examples.iter();
                made.examples.extend(
                    examples.map(|(left, right)| ((*left).to_owned(), (*right).to_owned())),
                );
            }
            root => {
                let is_function = matches!(root, Some(Value::Fn(_)));
                made.kind = if is_function { "function" } else { "var" };
                made.describe(var);
            }
        }
        if var.is_macro.get() {
            made.kind = "macro";
        }
        made.add(listed);
        made
    }

    fn special(entry: Entry) -> Option<Name> {
        let (namespace, name) = entry.name.split_once('/')?;
        let mut made = Name {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            kind: "special form",
            usage: entry.usage.clone(),
            doc: entry.doc.to_owned(),
            examples: Vec::new(),
        };
        made.add(Some(entry));
        Some(made)
    }

    fn add(&mut self, listed: Option<Entry>) {
        let examples = listed.map(|entry| entry.examples).unwrap_or_default();
        let owned = examples
            .into_iter()
            .map(|(left, right)| (left.to_owned(), right.to_owned()));
        self.examples.extend(owned);
    }

    /// Takes what metadata says.
    fn describe(&mut self, var: &Var) {
        let usage: Vec<String> = items(var.meta_entry("arglists"))
            .iter()
            .map(|arglist| without_brackets(&pretty(arglist)))
            .map(|arglist| format!("({} {arglist})", self.name).replace(" )", ")"))
            .collect();
        self.usage = usage.join("\n");
        if let Some(Value::Text(doc)) = var.meta_entry("doc") {
            let lines: Vec<&str> = doc.lines().map(str::trim).collect();
            self.doc = lines.join("\n");
        }
        let examples = items(var.meta_entry("examples"));
        self.examples = examples
            .iter()
            .filter_map(|example| {
                let example = example.as_vector()?;
                Some((pretty(example.get(0)?), pretty(example.get(1)?)))
            })
            .collect();
    }

    fn key(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }

    /// Returns where the page is, below the folder of the reference.
    fn path(&self) -> String {
        format!(
            "names/{}/{}.md",
            encode(&self.namespace),
            encode(&self.name)
        )
    }

    fn page(&self) -> String {
        let mut out = format!("# {}/{}\n\n{NOTE}\n\n", self.namespace, self.name);
        let _ = writeln!(out, "A {} of `{}`.", self.kind, self.namespace);
        self.write_to(&mut out);
        let differences: Vec<String> = differences(&self.namespace, &self.name).collect();
        if !differences.is_empty() {
            let _ = writeln!(
                out,
                "\n## Differs from Clojure\n\n{}",
                differences.join("\n")
            );
        }
        out
    }

    /// Writes usage, doc and examples.
    pub(super) fn write_to(&self, out: &mut String) {
        if !self.usage.is_empty() {
            let _ = writeln!(out, "\n```clojure\n{}\n```", self.usage);
        }
        if !self.doc.is_empty() {
            let _ = writeln!(out, "\n{}", self.doc);
        }
        let shown: String = self
            .examples
            .iter()
            .map(|(expression, value)| format!("{expression}\n;=> {value}\n"))
            .collect();
        if !shown.is_empty() {
            let _ = writeln!(out, "\n```clojure\n{shown}```");
        }
    }
}

/// Returns the items of a list or vector of metadata.
fn items(value: Option<Value>) -> Vec<Value> {
    match value {
        Some(Value::List(list)) => list.iter().cloned().collect(),
        Some(Value::Vector(vector)) => vector.iter().cloned().collect(),
        _ => Vec::new(),
    }
}

/// Takes the outer brackets of a vector away.
fn without_brackets(text: &str) -> String {
    let inside = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    inside.unwrap_or(text).to_owned()
}

/// Returns a name as a part of a path: letters, digits, `-` and inner dots stay, everything else is `_` and two hex digits
/// a byte.
fn encode(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_dotted = !name.starts_with('.') && !name.ends_with('.');
    name.bytes()
        .map(|byte| match byte {
            b'.' if is_dotted => ".".to_owned(),
            byte if is_plain(byte) => char::from(byte).to_string(),
            byte => format!("_{byte:02x}"),
        })
        .collect()
}

/// Returns what the page of differences says about a name, as points of a list.
fn differences(namespace: &str, name: &str) -> impl Iterator<Item = String> {
    let plain = format!("`{name}`");
    let qualified = format!("`{namespace}/{name}`");
    let may_be_plain = namespace == "clojure.core";
    DIFFERENCES
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| what"))
        .filter_map(move |line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let [what, there, here, why] = cells.as_slice() else {
                return None;
            };
            let is_meant = what.contains(&qualified) || may_be_plain && what.contains(&plain);
            is_meant.then(|| format!("- {what}: in Clojure {there}; here {here}, because {why}."))
        })
}

/// Returns the public vars of the library, after defining all of it.
fn vars(session: &Session) -> Vec<Rc<Var>> {
    let world = session.world();
    let mut vm = session.vm(Box::new(NoHost::default()));
    for source in library::SOURCES {
        for definition in source.definitions {
            let (namespace, name) = (Symbol::new(source.namespace), Symbol::new(definition.name));
            // What cannot be defined alone is found by the library's own tests.
            let _ = world.loader().load_definition(&mut vm, namespace, name);
        }
    }
    let mut all = Vec::new();
    for (name, namespace) in world.namespaces.borrow().iter() {
        // The same functions as those of `flow.util`, under an older name.
        if name.to_string() == "breyta.sandbox" {
            continue;
        }
        for (_, var) in namespace.mappings() {
            let is_documented =
                matches!(var.root(), Some(Value::Native(_))) || var.meta_entry("doc").is_some();
            if var.namespace == *name && !var.is_private.get() && is_documented {
                all.push(detached(&var));
            }
        }
    }
    all
}

/// Returns a var that keeps value and metadata when its session ends.
fn detached(var: &Var) -> Rc<Var> {
    let copy = Var::new(var.namespace, var.name);
    if let Some(root) = var.root() {
        copy.set_root(root);
    }
    copy.set_meta(var.meta());
    copy.is_macro.set(var.is_macro.get());
    Rc::new(copy)
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn names_become_paths_that_every_system_takes() {
        assert_eq!(encode("clojure.core"), "clojure.core");
        assert_eq!(encode("empty?"), "empty_3f");
        assert_eq!(encode(".."), "_2e_2e");
        assert_eq!(encode("*out*"), "_2aout_2a");
        assert_eq!(encode("->>"), "-_3e_3e");
        assert_eq!(encode("a_b"), "a_5fb");
    }
}
