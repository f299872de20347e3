//! Descriptions of names as data: usage, documentation, examples and place. A prompt, an nREPL server and an editor
//! draw them. A description of a library name may compile its definition; nothing that the program defines is run.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::rc::Rc;

use crate::library::{self, examples};
use crate::sandbox::Sandbox;
use crate::value::{PrintOptions, Result, Symbol, Unforced, Value, Var, print_value};
use crate::vm::Vm;

use super::Session;

/// Instructions that compiling one definition of the library may take, for a description made without a machine.
const FUEL: u64 = 2_000_000;

/// The words that mean the same in every namespace and that a program may write.
pub const SPECIAL_FORMS: &[&str] = &[
    "case*", "catch", "def", "do", "finally", "fn*", "if", "let*", "letfn*", "loop*", "new",
    "quote", "recur", "set!", "throw", "try", "var",
];

/// What is known about a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// The name; with its namespace if it belongs to one.
    pub name: Symbol,
    /// The kind of the name.
    pub kind: DescribedKind,
    /// The forms in which it is called, such as `(map f coll)`.
    pub usages: Vec<String>,
    /// The argument lists as a program writes them, such as `[f coll]`, if they are known.
    pub arglists: Vec<String>,
    /// The documentation; empty if it has none.
    pub doc: String,
    /// Expressions and their results.
    pub examples: Vec<(String, String)>,
    /// Where it is defined; `None` for names that are written in Rust and for special forms.
    pub place: Option<DefinitionPlace>,
}

/// The kind of a described name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DescribedKind {
    /// A function.
    Function,
    /// A macro.
    Macro,
    /// A namespace.
    Namespace,
    /// A special form.
    SpecialForm,
    /// A var whose value is not a function.
    Value,
}

/// The place of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefinitionPlace {
    /// The file as its text was named when it was read. Library files are `<clojure/set.clj>`.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl DescribedKind {
    /// Returns the word for the kind.
    pub fn name(self) -> &'static str {
        match self {
            DescribedKind::Function => "function",
            DescribedKind::Macro => "macro",
            DescribedKind::Namespace => "namespace",
            DescribedKind::SpecialForm => "special form",
            DescribedKind::Value => "var",
        }
    }
}

impl Session {
    /// Describes a name as the current namespace sees it: a var, a special form or a namespace. `None` if it is not
    /// defined.
    ///
    /// # Errors
    /// Any exception thrown while a definition of the library is compiled, or the host's stop.
    pub fn describe(&self, vm: &mut Vm, name: Symbol) -> Result<Option<Description>> {
        Ok(match self.var_of(vm, name)? {
            Some(var) => Some(of_var(&var)),
            None => of_special(name).or_else(|| self.of_namespace(name)),
        })
    }

    /// As [`Session::describe`], with a machine that can only compute and for a bounded time. `None` also if the
    /// definition cannot be compiled.
    pub fn describe_alone(&self, name: Symbol) -> Option<Description> {
        let mut vm = self.vm(Box::new(Sandbox::new().fuel(FUEL)));
        self.describe(&mut vm, name).ok().flatten()
    }

    /// Returns the var of a name as the current namespace sees it; a library definition that was not used before is
    /// compiled.
    ///
    /// # Errors
    /// Any exception thrown while a definition of the library is compiled, or the host's stop.
    pub fn var_of(&self, vm: &mut Vm, name: Symbol) -> Result<Option<Rc<Var>>> {
        let world = self.world();
        if let Some(var) = world.resolve(name) {
            return Ok(Some(var));
        }
        let namespace = match name.namespace() {
            None => world.core.name,
            Some(prefix) => {
                let prefix = Symbol::new(&prefix);
                world.current.borrow().alias(prefix).unwrap_or(prefix)
            }
        };
        let plain = Symbol::new(&name.name());
        if !world.loader().load_definition(vm, namespace, plain)? {
            return Ok(None);
        }
        let found = world.find_namespace(namespace);
        Ok(found.and_then(|namespace| namespace.lookup(plain)))
    }

    /// Returns all namespaces by name, including library namespaces that were not used yet.
    pub fn namespace_names(&self) -> Vec<Symbol> {
        let world = self.world();
        let mut all: Vec<Symbol> = world.namespaces.borrow().keys().copied().collect();
        let sources = library::SOURCES.iter();
        all.extend(sources.map(|source| Symbol::new(source.namespace)));
        all.sort_by_key(|name| name.to_string());
        all.dedup();
        all
    }

    /// Returns the public names that a namespace defines itself, sorted. Library definitions that were not used yet
    /// are included.
    pub fn public_names(&self, namespace: Symbol) -> BTreeSet<String> {
        let of_library = namespace.to_string();
        let mut names: BTreeSet<String> = library::names(&of_library)
            .filter(|name| library::forms_of(&of_library, name).all(|form| !form.is_private()))
            .map(str::to_owned)
            .collect();
        let Some(namespace) = self.world().find_namespace(namespace) else {
            return names;
        };
        for (name, var) in namespace.mappings() {
            if var.namespace != namespace.name {
                continue;
            }
            if var.is_private.get() {
                names.remove(&*name.name());
            } else {
                names.insert(name.name().to_string());
            }
        }
        names
    }

    /// Describes a namespace, of the library or of the program; `None` for any other name.
    fn of_namespace(&self, name: Symbol) -> Option<Description> {
        let own = self.world().find_namespace(name);
        let doc = own.as_ref().map(|namespace| namespace.meta());
        let doc = doc.as_ref().and_then(|meta| meta.get("doc")?.as_str());
        let text = name.to_string();
        let doc = doc.or_else(|| library::doc(&text));
        if own.is_none() && doc.is_none() && !library::has(&text) {
            return None;
        }
        Some(Description {
            doc: doc.unwrap_or_default().to_owned(),
            ..Description::new(name, DescribedKind::Namespace)
        })
    }
}

impl Description {
    fn new(name: Symbol, kind: DescribedKind) -> Description {
        Description {
            name,
            kind,
            usages: Vec::new(),
            arglists: Vec::new(),
            doc: String::new(),
            examples: Vec::new(),
            place: None,
        }
    }
}

fn of_var(var: &Var) -> Description {
    let name = var.qualified();
    let root = var.root();
    let mut found = Description::new(name, kind_of(var, root.as_ref()));
    if let Some(Value::Native(native)) = root {
        found.usages = native.usage.lines().map(str::to_owned).collect();
        found.arglists = found
            .usages
            .iter()
            .filter_map(|usage| arguments(usage))
            .collect();
        native.doc.clone_into(&mut found.doc);
        let examples = native.examples.iter();
        found.examples = examples
            .map(|(left, right)| ((*left).to_owned(), (*right).to_owned()))
            .collect();
    } else {
        for arglist in items(var.meta_entry("arglists")) {
            found.usages.push(usage(&name.name(), &arglist));
            found.arglists.push(print(&arglist));
        }
        if let Some(Value::Text(text)) = var.meta_entry("doc") {
            found.doc = text.to_string();
        }
        for example in items(var.meta_entry("examples")) {
            if let [expression, value] = items(Some(example)).as_slice() {
                found.examples.push((print(expression), print(value)));
            }
        }
        found.place = place_of(var);
    }
    found.examples.extend(listed(&name.to_string()));
    found
}

fn kind_of(var: &Var, root: Option<&Value>) -> DescribedKind {
    match root {
        _ if var.is_macro.get() => DescribedKind::Macro,
        Some(Value::Fn(_) | Value::Native(_)) => DescribedKind::Function,
        // Multimethods and functions of protocols are values with argument lists.
        _ if var.meta_entry("arglists").is_some() => DescribedKind::Function,
        _ => DescribedKind::Value,
    }
}

fn place_of(var: &Var) -> Option<DefinitionPlace> {
    let number = |key: &str| u32::try_from(var.meta_entry(key)?.as_int()?).ok();
    Some(DefinitionPlace {
        file: var.meta_entry("file")?.as_str()?.to_owned(),
        line: number("line")?,
        column: number("column")?,
    })
}

/// Describes a special form, which has no var; `None` for any other name.
fn of_special(name: Symbol) -> Option<Description> {
    let entry = examples::find(&format!("clojure.core/{name}"))?;
    if entry.doc.is_empty() {
        return None;
    }
    let usages: Vec<String> = entry.usage.lines().map(str::to_owned).collect();
    Some(Description {
        arglists: usages.iter().filter_map(|usage| arguments(usage)).collect(),
        usages,
        doc: entry.doc.to_owned(),
        examples: listed(entry.name).collect(),
        ..Description::new(name, DescribedKind::SpecialForm)
    })
}

/// Returns the examples of a name that are stored apart from its definition.
fn listed(name: &str) -> impl Iterator<Item = (String, String)> {
    let entry = examples::find(name).unwrap_or_default();
    let examples = entry.examples.into_iter();
    examples.map(|(expression, value)| (expression.to_owned(), value.to_owned()))
}

/// Returns the argument list in a usage: `(get m k)` has `[m k]`.
fn arguments(usage: &str) -> Option<String> {
    let inside = usage.strip_prefix('(')?.strip_suffix(')')?;
    let args = inside
        .split_once(char::is_whitespace)
        .map_or("", |(_, args)| args);
    Some(format!("[{args}]"))
}

/// Returns the usage of a name with an argument list.
fn usage(name: &str, arglist: &Value) -> String {
    let mut out = format!("({name}");
    for arg in items(Some(arglist.clone())) {
        let _ = write!(out, " {}", print(&arg));
    }
    out.push(')');
    out
}

/// Returns the items of a vector or list, quoted or not.
fn items(value: Option<Value>) -> Vec<Value> {
    let items: Vec<Value> = match value {
        Some(Value::Vector(vector)) => vector.iter().cloned().collect(),
        Some(Value::List(list)) => list.iter().cloned().collect(),
        _ => Vec::new(),
    };
    match items.as_slice() {
        [quote, quoted] if quote.as_symbol().is_some_and(|name| name.is("quote")) => {
            self::items(Some(quoted.clone()))
        }
        _ => items,
    }
}

fn print(value: &Value) -> String {
    let mut out = String::new();
    match print_value(&mut out, &mut Unforced, value, PrintOptions::READABLE) {
        Ok(()) => out,
        Err(_) => value.kind().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(text: &str, name: &str) -> Option<Description> {
        let session = Session::new();
        session.evaluate(text).expect("the text runs");
        session.describe_alone(Symbol::new(name))
    }

    #[test]
    fn natives_and_library_functions_have_usage_doc_and_examples() {
        let native = described("", "subs").expect("defined");
        assert_eq!(native.name.to_string(), "clojure.core/subs");
        assert_eq!(native.usages, ["(subs s start)", "(subs s start end)"]);
        assert_eq!(native.arglists, ["[s start]", "[s start end]"]);
        assert_eq!(native.kind, DescribedKind::Function);
        assert!(!native.doc.is_empty() && native.place.is_none());

        let union = described("", "clojure.set/union").expect("defined");
        assert!(union.arglists.contains(&"[s1 s2]".to_owned()), "{union:?}");
        assert!(!union.examples.is_empty() && !union.doc.is_empty());
        let place = union.place.expect("it has a place");
        assert!(place.file.starts_with("<clojure/set"), "{place:?}");
    }

    #[test]
    fn macros_special_forms_values_and_namespaces_have_their_kind() {
        let kind = |text: &str, name: &str| described(text, name).map(|found| found.kind);
        assert_eq!(kind("", "when-let"), Some(DescribedKind::Macro));
        assert_eq!(kind("", "if"), Some(DescribedKind::SpecialForm));
        assert_eq!(kind("", "clojure.set"), Some(DescribedKind::Namespace));
        assert_eq!(kind("(def x 1)", "x"), Some(DescribedKind::Value));
        assert_eq!(kind("", "not-there"), None);
        assert_eq!(kind("", "not.there/x"), None);
    }

    #[test]
    fn a_definition_of_the_program_has_its_place_and_usages() {
        let found = described(
            "(def a 1)\n  (defn area \"Returns it.\" ([w] w) ([w {:keys [h]}] h))",
            "area",
        );
        let found = found.expect("defined");
        assert_eq!(found.usages, ["(area w)", "(area w {:keys [h]})"]);
        assert_eq!(found.doc, "Returns it.");
        let place = found.place.expect("it has a place");
        assert_eq!((place.line, place.column), (2, 3));
    }

    #[test]
    fn public_names_include_unused_library_definitions_but_no_private_ones() {
        let session = Session::new();
        session
            .evaluate("(ns mine) (defn shown []) (defn- hidden [])")
            .expect("runs");
        let mine = session.public_names(Symbol::new("mine"));
        assert_eq!(mine.iter().collect::<Vec<_>>(), ["shown"]);
        let core = session.public_names(Symbol::new("clojure.core"));
        assert!(core.contains("map") && core.contains("when-let") && core.len() > 500);
        let all = session.namespace_names();
        assert!(all.contains(&Symbol::new("clojure.set")) && all.contains(&Symbol::new("mine")));
    }
}
