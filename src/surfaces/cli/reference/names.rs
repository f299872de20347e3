//! A page for each namespace of the library, and an index. An entry shows usage, doc, examples with their results, and how the
//! name differs from Clojure. The examples come from the definitions and from `stdlib/examples.txt`; the language's tests run them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::rc::Rc;

use flowstone_lang::library;
use flowstone_lang::library::examples::Entry;
use flowstone_lang::session::Session;
use flowstone_lang::value::{Symbol, Value, Var};
use flowstone_lang::vm::NoHost;

use super::super::pretty::pretty;
use super::NOTE;

/// The handwritten page of differences; its rows are repeated in the entries of the names in them.
const DIFFERENCES: &str = include_str!("../../../../docs/reference/differences.md");

/// The entry of a name.
pub(super) struct Name {
    namespace: String,
    name: String,
    kind: &'static str,
    /// The forms of a call, one per line.
    usage: String,
    doc: String,
    /// Expressions with their results.
    examples: Vec<(String, String)>,
}

/// Returns the public names of the library, sorted, after loading all of it.
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
    // The remaining names have no var: special forms.
    names.extend(listed.into_values().filter_map(Name::special));
    names.sort_by(|left, right| left.key().cmp(&right.key()));
    names
}

/// Returns the path of each page, relative to the reference folder, and its text.
pub(super) fn pages(names: &[Name]) -> Vec<(String, String)> {
    let namespaces: Vec<&[Name]> = names
        .chunk_by(|left, right| left.namespace == right.namespace)
        .collect();
    let mut pages = vec![("functions/README.md".to_owned(), index(&namespaces))];
    pages.extend(namespaces.into_iter().map(|names| {
        let path = format!("functions/{}", file_name(&names[0].namespace));
        (path, page(names))
    }));
    pages
}

/// Returns the page that lists the namespaces with their names.
fn index(namespaces: &[&[Name]]) -> String {
    let mut out = format!(
        "# Functions and macros\n\n{NOTE}\n\nOne page for each namespace, and one for each class whose members have names here.\n"
    );
    for names in namespaces {
        let namespace = &names[0].namespace;
        let listed: Vec<String> = names
            .iter()
            .map(|name| format!("`{}`", name.name))
            .collect();
        let _ = writeln!(
            out,
            "\n## [{namespace}]({})\n\n{}",
            file_name(namespace),
            listed.join(" ")
        );
    }
    out
}

/// Returns the page of a namespace.
fn page(names: &[Name]) -> String {
    let mut out = format!("# {}\n\n{NOTE}\n", names[0].namespace);
    for name in names {
        name.write_to(&mut out);
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

    /// Reads the metadata of a var.
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

    fn write_to(&self, out: &mut String) {
        let _ = writeln!(out, "\n## {}\n\n*{}*", self.name, self.kind);
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
        let differences: Vec<String> = differences(&self.namespace, &self.name).collect();
        if !differences.is_empty() {
            let _ = writeln!(out, "\nDiffers from Clojure:\n\n{}", differences.join("\n"));
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

/// Removes the outer brackets of a vector.
fn without_brackets(text: &str) -> String {
    let inside = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    inside.unwrap_or(text).to_owned()
}

/// Returns the file name of a namespace's page: letters, digits, `-` and `.` stay, each other byte becomes `_` and two
/// hex digits.
fn file_name(namespace: &str) -> String {
    let encoded: String = namespace
        .bytes()
        .map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() || b"-.".contains(&byte) => {
                char::from(byte).to_string()
            }
            byte => format!("_{byte:02x}"),
        })
        .collect();
    encoded + ".md"
}

/// Returns the differences of a name as items of a list.
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

/// Returns the public vars of the library, after loading all of it.
fn vars(session: &Session) -> Vec<Rc<Var>> {
    let world = session.world();
    let mut vm = session.vm(Box::new(NoHost::default()));
    for source in library::SOURCES {
        for definition in source.definitions {
            let (namespace, name) = (Symbol::new(source.namespace), Symbol::new(definition.name));
            // The library's own tests find namespaces that cannot be loaded alone.
            let _ = world.loader().load_definition(&mut vm, namespace, name);
        }
    }
    let mut all = Vec::new();
    for (name, namespace) in world.namespaces.borrow().iter() {
        // Older names of the functions of `flow.util`, and methods that the collections of the JVM share.
        if ["breyta.sandbox", "host.mutable"].contains(&name.to_string().as_str()) {
            continue;
        }
        for (_, var) in namespace.mappings() {
            let is_documented =
                matches!(var.root(), Some(Value::Native(_))) || var.meta_entry("doc").is_some();
            if var.namespace == *name
                && !var.is_private.get()
                && is_documented
                && !makes_a_type(&var)
            {
                all.push(detached(&var));
            }
        }
    }
    all
}

/// Tells whether a var is the constructor that `deftype` defines: the library's types are created with `new`.
fn makes_a_type(var: &Var) -> bool {
    let name = var.name.to_string();
    name.strip_prefix("->")
        .is_some_and(|rest| rest.starts_with(|first: char| first.is_uppercase()))
}

/// Returns a var whose value and metadata outlive its session.
fn detached(var: &Var) -> Rc<Var> {
    let copy = Var::new(var.namespace, var.name);
    if let Some(root) = var.root() {
        copy.set_root(root);
    }
    copy.set_meta(var.meta());
    copy.is_macro.set(var.is_macro.get());
    Rc::new(copy)
}
