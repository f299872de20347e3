//! Operations on the key-value store, as data.

/// Keys are no longer than this.
pub const MAX_KEY: usize = 256;
/// A value's text is no longer than this many bytes, where the settings say nothing else.
pub const MAX_VALUE: usize = 1_000_000;
/// Seconds that a key may be kept at most, when it is to expire at all.
pub const MAX_TTL: i64 = 31_536_000;

/// A change of the key-value store. Executed by the store in the transaction of the step's journal row;
/// its result, as EDN text by [`crate::codec`], becomes the step's value. Values are EDN text too.
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
        /// The oldest are dropped beyond this many.
        max_length: usize,
        /// The text of the whole is no longer than this many bytes.
        max_value: usize,
    },
}

/// See [`KvOp::Set`].
#[derive(Debug, Clone, PartialEq)]
pub struct KvSet {
    pub key: String,
    pub value: String,
    pub ttl_seconds: Option<i64>,
    /// A map as EDN text, kept beside the value.
    pub metadata: Option<String>,
    /// Leaves a value that is there, and is not expired, as it is.
    pub if_not_exists: bool,
    /// What the operation answers with, instead of its own envelope: for `:persist`.
    pub answer: Option<String>,
    /// Neither value nor metadata is longer than this many bytes.
    pub max_value: usize,
}

/// What is kept under a key.
#[derive(Debug, Clone, PartialEq)]
pub struct KvEntry {
    /// EDN text.
    pub value: String,
    /// A map as EDN text.
    pub metadata: Option<String>,
    pub expires_ms: Option<i64>,
}

/// What [`KvOp::Increment`] adds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KvNumber {
    Int(i64),
    Float(f64),
}

/// Tells what is wrong with a key, in words; `None` for a good one.
pub fn key_problem(key: &str) -> Option<String> {
    if key.is_empty() {
        return Some("a key has at least one character".to_owned());
    }
    let count = key.chars().count();
    if count > MAX_KEY {
        return Some(format!(
            "a key has at most {MAX_KEY} characters, and this one has {count}"
        ));
    }
    let allowed = |char: &char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | ':');
    let wrong = key.chars().find(|char| !allowed(char))?;
    Some(format!(
        "a key is made of letters, digits, `_`, `-` and `:`, and this one has {wrong:?}"
    ))
}
