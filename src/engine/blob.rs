//! Blobs: large values and files, named by their contents.

/// Names bytes by their SHA-256, in lower-case hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobHash(pub String);

/// A change of the blob registry. Executed by the store in the transaction of the step's journal row.
#[derive(Debug, Clone, PartialEq)]
pub enum BlobOp {
    /// Keeps a blob that was put before with [`crate::ports::Blobs::put`] under a resource name. The
    /// step's value is `value`.
    Register {
        hash: BlobHash,
        size: u64,
        /// The `res://` name.
        uri: String,
        filename: Option<String>,
        content_type: Option<String>,
        /// What the step's value is, as EDN text.
        value: String,
    },
}
