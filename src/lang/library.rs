//! The part of the library that is written in the language, as text: which namespaces there are, and
//! where each definition stands. Compiling one is left to whoever first meets its name.

/// The source of one namespace.
#[derive(Debug)]
pub struct LibrarySource {
    pub namespace: &'static str,
    /// The path below `stdlib/`.
    pub file: &'static str,
    pub text: &'static str,
    /// Where the `ns` form stands.
    pub header: (u32, u32),
    /// In the order of the file. A name may have several: a `defmulti` and its `defmethod`s.
    pub definitions: &'static [Definition],
}

/// A top-level form and the name that needs it.
#[derive(Debug)]
pub struct Definition {
    pub name: &'static str,
    pub start: u32,
    pub end: u32,
}

/// All sources, by path.
pub const SOURCES: &[LibrarySource] = include!(concat!(env!("OUT_DIR"), "/library.rs"));

/// Returns the source of a namespace of the library.
pub fn source(namespace: &str) -> Option<&'static LibrarySource> {
    SOURCES.iter().find(|source| source.namespace == namespace)
}

/// Returns the first form of a definition. See [`LibrarySource::forms_of`] for all.
pub fn definition(namespace: &str, name: &str) -> Option<&'static str> {
    let source = source(namespace)?;
    source.forms_of(name).next().map(|form| form.1)
}

impl LibrarySource {
    /// Returns the text of the `ns` form.
    pub fn header_text(&self) -> &'static str {
        self.slice(self.header.0, self.header.1)
    }

    /// Returns offset and text of each form that a name needs, in the order of the file.
    pub fn forms_of(&'static self, name: &str) -> impl Iterator<Item = (u32, &'static str)> {
        self.definitions
            .iter()
            .filter(move |definition| definition.name == name)
            .map(|definition| {
                (
                    definition.start,
                    self.slice(definition.start, definition.end),
                )
            })
    }

    fn slice(&self, start: u32, end: u32) -> &'static str {
        self.text.get(start as usize..end as usize).unwrap_or("")
    }
}

#[cfg(test)]
mod tests {
    use super::{definition, source};

    #[test]
    fn a_definition_is_found_by_namespace_and_name() {
        let union = definition("clojure.set", "union").expect("clojure.set has union");
        assert!(union.starts_with("(defn union") && union.ends_with(')'));
        assert!(definition("clojure.set", "not-there").is_none());
        assert!(
            source("clojure.set")
                .expect("there")
                .header_text()
                .starts_with("(ns clojure.set")
        );
    }
}
