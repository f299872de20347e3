//! Values as bytes: the one place that decides how they are written down.
//!
//! Journals, kv, tables and blobs hold EDN text made here. The format is versioned and held by golden tests:
//! what an earlier build wrote must be read by a later one.

mod decode;
mod encode;
mod text;

pub use decode::{decode, decode_all};
pub use encode::{Digester, canonical, digest, digest_bytes, encode};
pub use text::instant;

/// The version of the text format. Raised when an earlier build could not read what this one writes.
pub const VERSION: i64 = 1;

/// Why a value cannot be written down or read back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// A function, an atom, an object of the host.
    #[error("{kind} cannot be stored{}", at(path))]
    NotData {
        kind: String,
        /// Where in the value, such as `[:rows 0 :f]`.
        path: String,
    },
    #[error("the value is nested deeper than {limit} levels")]
    TooDeep { limit: usize },
    /// A lazy part was not computed before.
    #[error("a lazy sequence was not realised")]
    Unrealised,
    /// Parts that are shared within the value are written wherever they appear.
    #[error("the value is too large: its text would be more than 500 MB")]
    TooLarge,
    #[error("stored text cannot be read: {detail}")]
    Unreadable { detail: String },
}

/// Says where in a value something is, unless it is the value itself.
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

    /// Returns what a person may do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            CodecError::NotData { kind, .. } if kind.contains("java.") => {
                Some("make text of it: `(str value)`")
            }
            CodecError::NotData { .. } => {
                Some("give data: maps, vectors, strings, numbers, keywords, dates")
            }
            CodecError::TooLarge => {
                Some("give a part of the value: what it shares is written wherever it appears")
            }
            CodecError::TooDeep { .. } | CodecError::Unrealised | CodecError::Unreadable { .. } => {
                None
            }
        }
    }
}
