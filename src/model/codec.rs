//! Values as bytes: the one place that decides how values are written.
//!
//! Journals, kv, tables and blobs hold EDN text made here. The format is versioned and fixed by golden tests: a later
//! build must read what an earlier build wrote.

mod decode;
mod encode;
mod text;

pub use decode::{code, decode, decode_all, entries_at};
pub use encode::{Digester, canonical, digest, digest_bytes, encode, encode_text};
pub use text::instant;

/// The version of the text format. Raised when an earlier build cannot read what this one writes.
pub const VERSION: i64 = 1;

/// Why a value cannot be written or read back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// A part of the value is not data, such as a function, an atom or a host object.
    #[error("{kind} cannot be stored{}", at(path))]
    NotData {
        kind: String,
        /// The place in the value, such as `[:rows 0 :f]`.
        path: String,
    },
    #[error("the value is nested deeper than {limit} levels")]
    TooDeep { limit: usize },
    /// A part is lazy and was not computed.
    #[error("a lazy sequence was not realised")]
    Unrealised,
    /// The text would be too large. Parts that are shared within the value are written at each place where they appear.
    #[error("the value is too large: its text would be more than 500 MB")]
    TooLarge,
    #[error("stored text cannot be read: {detail}")]
    Unreadable { detail: String },
}

/// Describes a place in a value; empty for the value itself.
fn at(path: &str) -> String {
    match path {
        "[]" => String::new(),
        path => format!(", at `{path}` of the value"),
    }
}

impl CodecError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            CodecError::NotData { .. } => "E0510",
            CodecError::TooDeep { .. } => "E0511",
            CodecError::Unrealised => "E0512",
            CodecError::Unreadable { .. } => "E0513",
            CodecError::TooLarge => "E0903",
        }
    }

    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            CodecError::NotData { kind, .. } if kind.contains("java.") => {
                Some("convert it to text: `(str value)`")
            }
            CodecError::NotData { .. } => {
                Some("use data: maps, vectors, strings, numbers, keywords, dates")
            }
            CodecError::TooLarge => Some(
                "use a part of the value; shared parts are written at each place where they appear",
            ),
            CodecError::TooDeep { .. } | CodecError::Unrealised | CodecError::Unreadable { .. } => {
                None
            }
        }
    }
}
