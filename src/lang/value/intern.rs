//! Keywords and symbols: names interned to a 32-bit id, for this thread.
//!
//! Ids never leave the thread (values hold `Rc`, so they cannot), are never ordered by, and are written
//! out as names. An entry lives as long as its thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use super::hash::{FixedState, keyword_hash, symbol_hash};

/// A name in two parts, as keywords and symbols have it.
#[derive(Debug, PartialEq, Eq)]
pub struct Named {
    /// The part before the slash.
    pub namespace: Option<Rc<str>>,
    /// The part after the slash, or the whole.
    pub name: Rc<str>,
    /// Clojure's hash of the symbol of this name.
    pub hash: u32,
}

impl fmt::Display for Named {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(out, "{namespace}/")?;
        }
        out.write_str(&self.name)
    }
}

/// All names of a thread: handed over where the work of one thread goes on in another.
#[cfg(any(test, all(windows, target_arch = "aarch64")))]
#[derive(Default)]
pub(crate) struct Names(Interner);

#[cfg(any(test, all(windows, target_arch = "aarch64")))]
impl Names {
    /// Takes the names of this thread away.
    pub(crate) fn take() -> Names {
        Names(NAMES.take())
    }

    /// Makes these the names of this thread.
    pub(crate) fn install(self) {
        NAMES.set(self.0);
    }
}

#[derive(Default)]
struct Interner {
    ids: HashMap<Rc<str>, u32, FixedState>,
    names: Vec<Rc<Named>>,
}

thread_local! {
    static NAMES: RefCell<Interner> = RefCell::default();
}

fn intern(text: &str) -> u32 {
    NAMES.with_borrow_mut(|interner| {
        if let Some(id) = interner.ids.get(text) {
            return *id;
        }
        let (namespace, name) = split(text);
        let hash = symbol_hash(namespace, name);
        let id = u32::try_from(interner.names.len()).expect("fewer than 2^32 names");
        interner.names.push(Rc::new(Named {
            namespace: namespace.map(Rc::from),
            name: Rc::from(name),
            hash,
        }));
        interner.ids.insert(Rc::from(text), id);
        id
    })
}

/// Splits `a/b` at its first slash; `/` alone and a trailing slash stay whole.
fn split(text: &str) -> (Option<&str>, &str) {
    match text.find('/') {
        Some(at) if at > 0 && at + 1 < text.len() => (Some(&text[..at]), &text[at + 1..]),
        _ => (None, text),
    }
}

fn named(id: u32) -> Rc<Named> {
    NAMES.with_borrow(|interner| interner.names[id as usize].clone())
}

macro_rules! interned {
    ($type:ident, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $type(u32);

        impl $type {
            /// Interns `text`, which may hold one slash between namespace and name.
            pub fn new(text: &str) -> Self {
                Self(intern(text))
            }

            /// Interns a name given in two parts.
            pub fn with_namespace(namespace: Option<&str>, name: &str) -> Self {
                match namespace {
                    Some(namespace) => Self(intern(&format!("{namespace}/{name}"))),
                    None => Self(intern(name)),
                }
            }

            /// Returns both parts and the hash.
            pub fn parts(self) -> Rc<Named> {
                named(self.0)
            }

            /// Returns the part after the slash, or the whole.
            pub fn name(self) -> Rc<str> {
                named(self.0).name.clone()
            }

            /// Returns the part before the slash.
            pub fn namespace(self) -> Option<Rc<str>> {
                named(self.0).namespace.clone()
            }

            /// Tells whether the whole name, without a colon, is `text`.
            pub fn is(self, text: &str) -> bool {
                let named = named(self.0);
                match &named.namespace {
                    None => &*named.name == text,
                    Some(namespace) => {
                        text.strip_prefix(&**namespace)
                            .and_then(|rest| rest.strip_prefix('/'))
                            == Some(&*named.name)
                    }
                }
            }

            /// Returns the id: valid in this thread only, of no meaning elsewhere.
            pub fn id(self) -> u32 {
                self.0
            }
        }
    };
}

interned!(Keyword, "`:name` or `:namespace/name`; compared by id.");
interned!(
    Symbol,
    "`name` or `namespace/name`; compared by id. Metadata and places are on [`super::Name`]."
);

/// Appends the whole name without taking a count of it.
fn write_name(id: u32, out: &mut String) {
    NAMES.with_borrow(|interner| {
        let named = &interner.names[id as usize];
        if let Some(namespace) = &named.namespace {
            out.push_str(namespace);
            out.push('/');
        }
        out.push_str(&named.name);
    });
}

fn symbol_hash_of(id: u32) -> u32 {
    NAMES.with_borrow(|interner| interner.names[id as usize].hash)
}

impl Symbol {
    /// Returns Clojure's hash of this symbol.
    pub fn hash_code(self) -> u32 {
        symbol_hash_of(self.0)
    }

    /// Appends the name to a text.
    pub fn write_to(self, out: &mut String) {
        write_name(self.0, out);
    }
}

impl Keyword {
    /// Returns Clojure's hash of this keyword.
    pub fn hash_code(self) -> u32 {
        keyword_hash(symbol_hash_of(self.0))
    }

    /// Appends `:name` to a text.
    pub fn write_to(self, out: &mut String) {
        out.push(':');
        write_name(self.0, out);
    }
}

impl fmt::Display for Symbol {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        named(self.0).fmt(out)
    }
}

impl fmt::Debug for Symbol {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl fmt::Display for Keyword {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, ":{}", named(self.0))
    }
}

impl fmt::Debug for Keyword {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl From<Symbol> for Keyword {
    fn from(symbol: Symbol) -> Self {
        Self(symbol.0)
    }
}

impl From<Keyword> for Symbol {
    fn from(keyword: Keyword) -> Self {
        Self(keyword.0)
    }
}
