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
    #[error("{kind} cannot be stored")]
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
    #[error("stored text cannot be read: {detail}")]
    Unreadable { detail: String },
}

impl CodecError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            CodecError::NotData { .. } => "E0510",
            CodecError::TooDeep { .. } => "E0511",
            CodecError::Unrealised => "E0512",
            CodecError::Unreadable { .. } => "E0513",
        }
    }
}
