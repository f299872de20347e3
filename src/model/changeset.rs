//! Changesets as data: edits over a source tree that itself never changes.
//!
//! A changeset is the id of a tree and one row for each path that differs. The content of a file is in the object
//! store, under its hash, before a row names it.

/// The prefix of the names of changesets.
pub const URI: &str = "res://v1/ws/local/bundle/changeset/files/";

/// A change of the changesets. The store executes it in the transaction of the step's journal row; `answer`, as EDN
/// text by [`crate::codec`], becomes the value of the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangesetOp {
    /// Creates a changeset without changes.
    Open(NewChangeset),
    /// Changes paths of a changeset, all or none.
    Edit(ChangesetEdit),
}

/// See [`ChangesetOp::Open`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChangeset {
    pub id: String,
    /// The hash of the manifest of its source tree, a blob.
    pub base: String,
    /// The `res://` name of that tree.
    pub source: String,
    pub answer: String,
}

/// See [`ChangesetOp::Edit`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangesetEdit {
    pub id: String,
    /// The revision that the changes were made for. Edits made since then must not touch the same paths.
    pub seen: i64,
    pub changes: Vec<PathChange>,
    pub on_race: OnRace,
    pub answer: String,
}

/// What happens to an edit whose paths another edit has changed in the meantime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRace {
    /// The step is performed again, on the current state.
    Repeat,
    /// The step fails: it would overwrite changes that it has not seen.
    Fail,
}

/// The state of a path in a changeset, in place of its state in the source tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChange {
    pub path: String,
    /// The file or link at the path; `None` if it was removed.
    pub now: Option<FileState>,
    /// The path that the file was moved from.
    pub moved_from: Option<String>,
}

/// A file or a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    /// The kind as in manifests of source trees, such as `file` or `link`.
    pub kind: String,
    /// The hash of the content in the object store; empty for a link.
    pub hash: String,
    pub size: u64,
    pub lines: u64,
    pub executable: bool,
    /// The target of a link.
    pub target: Option<String>,
}

/// The current state of a changeset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlay {
    pub id: String,
    /// See [`NewChangeset::base`].
    pub base: String,
    pub source: String,
    /// Number of edits so far.
    pub revision: i64,
    /// The changes, sorted by path in byte order.
    pub changes: Vec<PathChange>,
}

/// The objects and trees that changesets refer to, which must be kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Referenced {
    /// Hashes of file contents; sorted, without duplicates.
    pub objects: Vec<String>,
    /// Hashes of manifests of source trees; sorted, without duplicates.
    pub trees: Vec<String>,
}
