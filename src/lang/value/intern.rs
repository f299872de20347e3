//! Keywords and symbols: names interned as 32-bit ids for this thread.
//!
//! Ids never leave the thread (values hold `Rc`, so they cannot), do not determine any order, and are written out as
//! names. An entry lives as long as its thread.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use super::hash::{keyword_hash, symbol_hash};
use super::{Result, Stop, meter};

/// The two parts of the name of a keyword or symbol.
#[derive(Debug, PartialEq, Eq)]
pub struct Named {
    /// The part before the slash.
    pub namespace: Option<Rc<str>>,
    /// The part after the slash, or the whole name.
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

/// Number of names of a thread beyond which data may not add new ones: about half a gigabyte of names.
const MAX_NAMES: usize = 1 << 22;
/// Total length in bytes of a thread's names beyond which data may not add new ones, because names live as long as the
/// thread.
const MAX_NAME_BYTES: usize = 256_000_000;
/// Maximum length in bytes of a name from data: hashing and storing one of this length takes about a millisecond.
const MAX_NAME: usize = 1_000_000;

/// Returns the number of names interned in this thread.
pub(crate) fn name_count() -> usize {
    NAMES.with_borrow(|interner| interner.names.len())
}

/// Stops a program whose data adds too many names. `before` is the previous number of names.
///
/// # Errors
/// A stop if names were added and there are too many now.
pub(crate) fn check_names(before: usize) -> Result<()> {
    check_limit(before, MAX_NAMES)
}

fn check_limit(before: usize, limit: usize) -> Result<()> {
    let (count, bytes) = NAMES.with_borrow(|interner| (interner.names.len(), interner.bytes));
    if count <= before || (count <= limit && bytes <= MAX_NAME_BYTES) {
        return Ok(());
    }
    let what = match count <= limit {
        true => format!("the names in the program's data exceed {MAX_NAME_BYTES} bytes"),
        false => format!("the program's data has more than {limit} different names"),
    };
    Err(Stop::OutOfMemory(what).into())
}

/// Stops a program that makes a name of a very long text.
///
/// # Errors
/// A stop if the name would be longer than a million bytes, or a limit of the evaluation is reached.
pub(crate) fn check_name(len: usize) -> Result<()> {
    if len <= MAX_NAME {
        return meter::spend((len / 64) as u32);
    }
    let what = format!("a name has {len} bytes, and at most {MAX_NAME} are allowed");
    Err(Stop::OutOfMemory(what).into())
}

/// All names of a thread: handed over when another thread continues its work.
#[cfg(any(test, all(windows, target_arch = "aarch64")))]
#[derive(Default)]
pub(crate) struct Names(Interner);

#[cfg(any(test, all(windows, target_arch = "aarch64")))]
impl Names {
    /// Takes the names out of this thread.
    pub(crate) fn take() -> Names {
        Names(NAMES.take())
    }

    /// Makes these the names of this thread.
    pub(crate) fn install(self) {
        NAMES.set(self.0);
    }
}

/// The names by id, and a table of the ids by text: open addressing, at most half full.
#[derive(Default)]
struct Interner {
    names: Vec<Entry>,
    table: Vec<Slot>,
    /// Total length of all names in bytes.
    bytes: usize,
}

struct Entry {
    /// The whole name, as it is written.
    text: Rc<str>,
    /// The same hash as in `named`; stored here because it is needed most often.
    hash: u32,
    named: Rc<Named>,
}

#[derive(Clone, Copy)]
struct Slot {
    hash: u32,
    id: u32,
}

const EMPTY: Slot = Slot {
    hash: 0,
    id: u32::MAX,
};

thread_local! {
    static NAMES: RefCell<Interner> = const { RefCell::new(Interner::new()) };
}

fn intern(text: &str) -> u32 {
    NAMES.with_borrow_mut(|interner| interner.id(text))
}

impl Interner {
    const fn new() -> Interner {
        Interner {
            names: Vec::new(),
            table: Vec::new(),
            bytes: 0,
        }
    }

    #[inline]
    fn id(&mut self, text: &str) -> u32 {
        let hash = table_hash(text.as_bytes());
        if let Some(mask) = self.table.len().checked_sub(1) {
            let mut at = hash as usize & mask;
            loop {
                let slot = self.table[at];
                if slot.id == EMPTY.id {
                    break;
                }
                if slot.hash == hash && *self.names[slot.id as usize].text == *text {
                    return slot.id;
                }
                at = (at + 1) & mask;
            }
        }
        self.add(text, hash)
    }

    #[cold]
    fn add(&mut self, text: &str, hash: u32) -> u32 {
        let (namespace, name) = split(text);
        let whole: Rc<str> = Rc::from(text);
        self.bytes += text.len();
        let named = Named {
            namespace: namespace.map(Rc::from),
            name: namespace.map_or_else(|| whole.clone(), |_| Rc::from(name)),
            hash: symbol_hash(namespace, name),
        };
        let id = u32::try_from(self.names.len()).expect("fewer than 2^32 names");
        self.names.push(Entry {
            text: whole,
            hash: named.hash,
            named: Rc::new(named),
        });
        if self.names.len() * 2 > self.table.len() {
            self.grow();
        }
        self.place(Slot { hash, id });
        id
    }

    /// Doubles the table, before the new name is added.
    fn grow(&mut self) {
        let size = (self.table.len() * 2).max(1024);
        let old = std::mem::replace(&mut self.table, vec![EMPTY; size]);
        for slot in old {
            if slot.id != EMPTY.id {
                self.place(slot);
            }
        }
    }

    fn place(&mut self, slot: Slot) {
        let mask = self.table.len() - 1;
        let mut at = slot.hash as usize & mask;
        while self.table[at].id != EMPTY.id {
            at = (at + 1) & mask;
        }
        self.table[at] = slot;
    }
}

/// A fast hash for the table only: eight bytes at a time.
#[inline]
fn table_hash(bytes: &[u8]) -> u32 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = bytes.len() as u64;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
        hash ^= hash >> 29;
    }
    let mut last = 0;
    for byte in rest {
        last = last << 8 | u64::from(*byte);
    }
    hash = (hash ^ last).wrapping_mul(FACTOR);
    (hash >> 32) as u32
}

/// Splits `a/b` at its first slash, even if a part is then empty; `/` alone is not split.
fn split(text: &str) -> (Option<&str>, &str) {
    match text.split_once('/') {
        Some((namespace, name)) if text != "/" => (Some(namespace), name),
        _ => (None, text),
    }
}

fn named(id: u32) -> Rc<Named> {
    NAMES.with_borrow(|interner| interner.names[id as usize].named.clone())
}

macro_rules! interned {
    ($type:ident, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $type(u32);

        impl $type {
            /// Interns `text`, which may have one slash between namespace and name.
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

            /// Returns the part after the slash, or the whole name.
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

            /// Returns the id, which is meaningful in this thread only.
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

/// Appends the whole name without counting a reference to it.
fn write_name(id: u32, out: &mut String) {
    NAMES.with_borrow(|interner| {
        out.push_str(&interner.names[id as usize].text);
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

#[cfg(test)]
mod tests {
    use super::{Keyword, check_limit, name_count};

    #[test]
    fn new_names_are_refused_once_there_are_too_many() {
        let before = name_count();
        Keyword::new("intern-test/a-name");
        assert!(check_limit(before, before + 1).is_ok());
        assert!(check_limit(before, before).is_err());
        let before = name_count();
        Keyword::new("intern-test/a-name");
        assert!(check_limit(before, 0).is_ok());
    }
}
