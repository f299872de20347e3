//! The part of the library that is written in the language, as text: its namespaces, and the place of each definition.
//! A definition is compiled when its name is first used.

pub mod examples;

/// One file of the library. A namespace may have several.
#[derive(Debug)]
pub struct LibrarySource {
    /// The namespace that the file belongs to.
    pub namespace: &'static str,
    /// The path below `stdlib/`.
    pub file: &'static str,
    /// The text itself.
    pub text: &'static str,
    /// The range of the `ns` form; definitions are compiled after it.
    pub header: (u32, u32),
    /// The definitions in the order of the file. A name may have several: a `defmulti` and its `defmethod`s.
    pub definitions: &'static [Definition],
}

/// A top-level form and the name that requires it.
#[derive(Debug)]
pub struct Definition {
    /// The name that requires the form.
    pub name: &'static str,
    /// The byte offset of its start in the text.
    pub start: u32,
    /// The byte offset of its end.
    pub end: u32,
}

/// A form of a definition.
#[derive(Debug, Clone, Copy)]
pub struct LibraryForm {
    /// The file that contains the form.
    pub source: &'static LibrarySource,
    /// The byte offset of its start in the text of its source.
    pub start: u32,
    /// The text of the form.
    pub text: &'static str,
}

/// All files, by path.
pub const SOURCES: &[LibrarySource] = include!(concat!(env!("OUT_DIR"), "/library.rs"));

/// The names of the methods of the library's types.
pub const METHODS: &[&str] = include!(concat!(env!("OUT_DIR"), "/methods.rs"));

/// Descriptions of the namespaces that are written in Rust only. Sorted by name.
const NATIVE: &[(&str, &str)] = &[
    (
        "cheshire.core",
        "Reading and writing of JSON, by the names of Cheshire.",
    ),
    ("clojure.data.csv", "Reading and writing of CSV."),
    ("clojure.data.json", "Reading and writing of JSON."),
    ("clojure.edn", "Reading of EDN: data, never code."),
    (
        "clojure.math",
        "Mathematical functions and constants of floating-point numbers.",
    ),
    (
        "clojure.string",
        "Functions of strings. None of them changes its argument.",
    ),
    (
        "flow.util",
        "Functions for texts, JSON and encodings that flows need.",
    ),
    ("json", "Reading and writing of JSON."),
];

/// Returns the description of a namespace of the library; `None` for any other.
pub fn doc(namespace: &str) -> Option<&'static str> {
    let native = NATIVE.iter().find(|(name, _)| *name == namespace);
    native
        .map(|(_, doc)| *doc)
        .or_else(|| sources(namespace).find_map(|source| doc_of(source.header_text())))
}

/// Returns the text after the name in an `ns` form.
fn doc_of(header: &str) -> Option<&str> {
    let (head, rest) = header.split_once('"')?;
    (head.split_whitespace().count() == 2).then_some(rest.split('"').next()?)
}

/// Returns the library namespace that defines a host class; it has the class's name without its package.
pub fn class(name: &str) -> Option<&str> {
    let short = name.rsplit('.').next()?;
    (name != short && defines(short, short)).then_some(short)
}

/// Returns the files of a namespace; none if it is not in the library.
pub fn sources(namespace: &str) -> impl Iterator<Item = &'static LibrarySource> {
    SOURCES
        .iter()
        .filter(move |source| source.namespace == namespace)
}

/// Tells whether the library has a namespace.
pub fn has(namespace: &str) -> bool {
    sources(namespace).next().is_some()
}

/// Returns the names that a namespace defines, in the order of its files.
pub fn names(namespace: &str) -> impl Iterator<Item = &'static str> {
    sources(namespace)
        .flat_map(|source| source.definitions.iter().map(|definition| definition.name))
}

/// Returns the forms that a name requires, in the order in which they must run; none for an unknown name.
pub fn forms_of(namespace: &str, name: &str) -> impl Iterator<Item = LibraryForm> {
    sources(namespace).flat_map(move |source| {
        source
            .definitions
            .iter()
            .filter(move |definition| definition.name == name)
            .map(move |definition| LibraryForm {
                source,
                start: definition.start,
                text: source.slice(definition.start, definition.end),
            })
    })
}

/// Tells whether a namespace of the library defines a name.
pub fn defines(namespace: &str, name: &str) -> bool {
    forms_of(namespace, name).next().is_some()
}

impl LibraryForm {
    /// Tells whether the definition is private to its namespace.
    pub fn is_private(&self) -> bool {
        let head = self.text.split('"').next().unwrap_or("");
        head.starts_with("(defn- ") || head.contains("^:private ")
    }
}

impl LibrarySource {
    /// Returns the text of the `ns` form.
    pub fn header_text(&self) -> &'static str {
        self.slice(self.header.0, self.header.1)
    }

    fn slice(&self, start: u32, end: u32) -> &'static str {
        self.text.get(start as usize..end as usize).unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::{NATIVE, SOURCES, defines, doc, forms_of, names, sources};

    #[test]
    fn a_definition_is_found_by_namespace_and_name() {
        let union = forms_of("clojure.set", "union")
            .next()
            .expect("clojure.set has union");
        assert!(union.text.starts_with("(defn union") && union.text.ends_with(')'));
        assert!(!defines("clojure.set", "not-there"));
        assert!(names("clojure.set").any(|name| name == "join"));
        let header = sources("clojure.set").next().expect("there").header_text();
        assert!(header.starts_with("(ns clojure.set"));
    }

    #[test]
    fn every_namespace_of_the_library_has_a_description() {
        assert!(NATIVE.is_sorted());
        for source in SOURCES {
            let found = doc(source.namespace).unwrap_or_default();
            assert!(
                found.ends_with('.') && !found.contains('\\'),
                "{}: {found}",
                source.file
            );
        }
        assert_eq!(doc("not.there"), None);
    }

    #[test]
    fn a_private_definition_is_found_too() {
        assert!(defines("clojure.core", "global-hierarchy"));
    }
}
