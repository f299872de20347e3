//! Blobs: large values and files, named by their contents.

use crate::resource::{ResourceKind, SearchEntry, Tier};

/// Names bytes by their SHA-256, in lower-case hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct BlobHash(pub String);

/// A change of the blob registry. Executed by the store in the transaction of the step's journal row.
#[derive(Debug, Clone, PartialEq)]
pub enum BlobOp {
    /// Keeps a blob that was put before with [`crate::ports::Blobs`] under a resource name. The
    /// step's value is `value`.
    Register {
        blob: Box<BlobRow>,
        /// What the step's value is, as EDN text.
        value: String,
    },
}

/// A registered blob.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlobRow {
    pub hash: BlobHash,
    pub size: u64,
    /// The `res://` name.
    pub uri: String,
    pub filename: Option<String>,
    pub content_type: Option<String>,
    pub kind: ResourceKind,
    pub tier: Tier,
    /// When it is gone.
    pub expires_ms: Option<i64>,
    /// The run that made it.
    pub run: Option<String>,
    /// The path of the step that made it.
    pub path: Option<String>,
    /// Where the name says that it is to be kept, when not where all are.
    pub bucket: Option<String>,
    /// The folder that an upload was put into.
    pub folder: Option<String>,
    /// What it is found by.
    pub search: Option<SearchEntry>,
}

impl BlobRow {
    /// Describes a blob that is kept like others, as long as something mentions it.
    pub fn new(uri: impl Into<String>, hash: BlobHash, size: u64) -> BlobRow {
        BlobRow {
            hash,
            size,
            uri: uri.into(),
            ..BlobRow::default()
        }
    }
}
