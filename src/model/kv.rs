//! Operations on the key-value store, as data.

/// Maximum length of a key.
pub const MAX_KEY: usize = 256;
/// Default maximum size of a value's text in bytes.
pub const MAX_VALUE: usize = 1_000_000;
/// Maximum time to live of a key in seconds, for keys that expire.
pub const MAX_TTL: i64 = 31_536_000;

/// A change of the key-value store. The store executes it in the transaction of the step's journal row; its result, as
/// EDN text by [`crate::codec`], becomes the value of the step. Values are EDN text too.
#[derive(Debug, Clone, PartialEq)]
pub enum KvOp {
    Set(KvSet),
    Delete {
        key: String,
    },
    /// Adds to a number; a missing key counts as 0.
    Increment {
        key: String,
        by: KvNumber,
    },
    /// Adds items at the end of a vector; a missing key counts as empty.
    Append {
        key: String,
        items: Vec<String>,
        /// Maximum number of items; the oldest ones beyond it are dropped.
        max_length: usize,
        /// Maximum size of the whole value's text in bytes.
        max_value: usize,
    },
}

/// See [`KvOp::Set`].
#[derive(Debug, Clone, PartialEq)]
pub struct KvSet {
    pub key: String,
    pub value: String,
    pub ttl_seconds: Option<i64>,
    /// The metadata beside the value, a map as EDN text.
    pub metadata: Option<String>,
    /// Leaves an existing value that has not expired unchanged.
    pub if_not_exists: bool,
    /// The answer of the operation in place of its own envelope: for `:persist`.
    pub answer: Option<String>,
    /// Maximum size of the value, and of the metadata, in bytes.
    pub max_value: usize,
}

/// The value under a key, and its metadata.
#[derive(Debug, Clone, PartialEq)]
pub struct KvEntry {
    /// The value, as EDN text.
    pub value: String,
    /// The metadata, a map as EDN text.
    pub metadata: Option<String>,
    pub expires_ms: Option<i64>,
}

/// The number that [`KvOp::Increment`] adds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KvNumber {
    Int(i64),
    Float(f64),
}

/// Describes the problem with a key; `None` for a valid one.
pub fn key_problem(key: &str) -> Option<String> {
    if key.is_empty() {
        return Some("a key must have at least one character".to_owned());
    }
    let count = key.chars().count();
    if count > MAX_KEY {
        return Some(format!(
            "a key can have at most {MAX_KEY} characters, and this one has {count}"
        ));
    }
    let allowed = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | ':');
    let wrong = key.chars().find(|char| !allowed(char))?;
    Some(format!(
        "a key can contain only letters, digits, `_`, `-` and `:`, and this one has {wrong:?}"
    ))
}
