//! Changesets, as data: what was changed over a source tree that itself never changes.
//!
//! A changeset is a tree's id and one row for each path that differs. The content of files is in the object store,
//! by its hash, before a row names it.

/// What the name of a changeset begins with.
pub const URI: &str = "res://v1/ws/local/bundle/changeset/files/";

/// A change of the changesets. Executed by the store in the transaction of the step's journal row; its `answer`, as
/// EDN text by [`crate::codec`], becomes the step's value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangesetOp {
    /// Begins a changeset without changes.
    Open(NewChangeset),
    /// Changes some of its paths, all or none.
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
    /// The revision that the changes were made for. What others have changed since must not touch the same paths.
    pub seen: i64,
    pub changes: Vec<PathChange>,
    pub on_race: OnRace,
    pub answer: String,
}

/// What becomes of an edit whose paths somebody else has changed meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRace {
    /// The step is performed again, on what is there now.
    Again,
    /// The step fails: it would overwrite what it has not seen.
    Fail,
}

/// What is at a path now, whatever the source tree has there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChange {
    pub path: String,
    /// `None`: nothing.
    pub now: Option<FileState>,
    /// Where it was moved from.
    pub moved_from: Option<String>,
}

/// A file or a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileState {
    /// As in manifests of source trees, such as `file` or `link`.
    pub kind: String,
    /// Of its content in the object store; empty for a link.
    pub hash: String,
    pub size: u64,
    pub lines: u64,
    pub executable: bool,
    /// Where a link points to.
    pub target: Option<String>,
}

/// A changeset as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlay {
    pub id: String,
    /// See [`NewChangeset::base`].
    pub base: String,
    pub source: String,
    /// How many edits there were.
    pub revision: i64,
    /// Sorted by path, in the order of bytes.
    pub changes: Vec<PathChange>,
}

/// What changesets keep alive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Referenced {
    /// Objects of files, by hash; sorted, each once.
    pub objects: Vec<String>,
    /// Manifests of source trees, by hash; sorted, each once.
    pub trees: Vec<String>,
}
