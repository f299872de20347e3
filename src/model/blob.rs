//! Blobs: large values and files, named by their contents.

use crate::resource::{ResourceKind, SearchEntry, Tier};

/// The SHA-256 of bytes in lower-case hexadecimal, by which a blob is named.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct BlobHash(pub String);

/// A change of the blob registry. The store executes it in the transaction of the step's journal row.
#[derive(Debug, Clone, PartialEq)]
pub enum BlobOp {
    /// Keeps a stored blob (see [`crate::ports::Blobs`]) under a resource name. The value of the step is `value`.
    Register {
        blob: Box<BlobRow>,
        /// The value of the step, as EDN text.
        value: String,
    },
}

/// A blob in the registry.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BlobRow {
    pub hash: BlobHash,
    pub size: u64,
    /// The `res://` name of the blob.
    pub uri: String,
    pub filename: Option<String>,
    pub content_type: Option<String>,
    pub kind: ResourceKind,
    pub tier: Tier,
    /// When the blob expires, in milliseconds since 1970. `None`: it does not expire.
    pub expires_ms: Option<i64>,
    /// The run that created it.
    pub run: Option<String>,
    /// The path of the step that created it.
    pub path: Option<String>,
    /// The bucket that the name states, if it is not the default one.
    pub bucket: Option<String>,
    /// The folder of an upload.
    pub folder: Option<String>,
    /// The entry by which `:search` finds it.
    pub search: Option<SearchEntry>,
}

impl BlobRow {
    /// Describes a retained blob, which is kept as long as something mentions it.
    pub fn new(uri: impl Into<String>, hash: BlobHash, size: u64) -> BlobRow {
        BlobRow {
            hash,
            size,
            uri: uri.into(),
            ..BlobRow::default()
        }
    }
}
