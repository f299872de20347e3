//! The registry of resources: all that has a `res://` name.

use super::{BlobRow, PortFuture};
use crate::blob::BlobHash;
use crate::ids::RunId;
use crate::resource::{ResourceKind, SearchEntry, Tier};

/// The registry: what there is, where it came from, how long it stays. Blobs, files and trees are registered; keys,
/// tables and outputs of runs are found where they are.
pub trait Resources: Send + Sync {
    /// Returns what a name stands for, also where that is gone. The path of the name is not read strictly.
    fn find(&self, uri: &str, now_ms: i64) -> PortFuture<'_, Option<ResourceRow>>;

    /// Lists resources, a page at a time.
    fn list(&self, query: ResourceQuery) -> PortFuture<'_, ResourcePage>;

    /// Keeps a blob that was put before under a name, outside of any run.
    fn register(&self, blob: BlobRow, now_ms: i64) -> PortFuture<'_, ()>;

    /// Removes what a registered name stands for; that it was there is remembered for a while. Returns whether it was.
    fn delete(&self, uri: &str, now_ms: i64) -> PortFuture<'_, bool>;

    /// Says what a registered resource is found by; `None` takes it away. Returns whether there is such a resource.
    fn describe(&self, uri: &str, search: Option<SearchEntry>) -> PortFuture<'_, bool>;

    /// Returns the runs that are not over and mention a name.
    fn needed_by(&self, uri: &str) -> PortFuture<'_, Vec<RunId>>;
}

/// What is known of a resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRow {
    /// Its name as we write it.
    pub uri: String,
    pub kind: ResourceKind,
    /// Of what is stored as a blob.
    pub hash: Option<BlobHash>,
    /// Bytes, where that is known.
    pub size: Option<u64>,
    /// A file's name, a key, a table's name, or a step's path.
    pub name: Option<String>,
    pub content_type: Option<String>,
    pub tier: Tier,
    pub created_ms: i64,
    pub expires_ms: Option<i64>,
    pub run: Option<String>,
    pub path: Option<String>,
    pub bucket: Option<String>,
    pub folder: Option<String>,
    pub search: Option<SearchEntry>,
    /// Why it is not there any more, and since when.
    pub gone: Option<(Gone, i64)>,
}

impl ResourceRow {
    /// Returns the row as a blob, if it is stored as one.
    pub fn into_blob(self) -> Option<BlobRow> {
        Some(BlobRow {
            hash: self.hash?,
            size: self.size.unwrap_or(0),
            uri: self.uri,
            filename: self.name,
            content_type: self.content_type,
            kind: self.kind,
            tier: self.tier,
            expires_ms: self.expires_ms,
            run: self.run,
            path: self.path,
            bucket: self.bucket,
            folder: self.folder,
            search: self.search,
        })
    }
}

/// Why a resource is not there any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    Deleted,
    Expired,
}

/// Which resources to list.
#[derive(Debug, Clone, Default)]
pub struct ResourceQuery {
    /// Empty: all but outputs of runs, which are listed only for a run.
    pub kinds: Vec<ResourceKind>,
    /// What the name starts with: the whole `res://` name, or the part after the workspace.
    pub prefix: Option<String>,
    pub run: Option<String>,
    /// The path of a step in that run, or its id.
    pub step: Option<String>,
    pub tier: Option<Tier>,
    /// What the short name or the name contains.
    pub text: Option<String>,
    /// Also those that are gone.
    pub with_gone: bool,
    pub sort: ResourceSort,
    /// Where the page before ended.
    pub after: Option<String>,
    pub limit: usize,
    pub now_ms: i64,
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResourceSort {
    /// The newest first.
    #[default]
    Created,
    Name,
}

/// A part of a list.
#[derive(Debug, Clone, Default)]
pub struct ResourcePage {
    pub rows: Vec<ResourceRow>,
    /// What [`ResourceQuery::after`] takes to go on; `None` at the end.
    pub next: Option<String>,
}

impl ResourcePage {
    /// Cuts rows to a page. If there are more of them than `limit`, the page ends at `position` of its last row.
    pub fn cut(
        mut rows: Vec<ResourceRow>,
        limit: usize,
        position: impl FnOnce(&ResourceRow) -> String,
    ) -> ResourcePage {
        let is_cut = rows.len() > limit;
        rows.truncate(limit);
        let next = rows.last().filter(|_| is_cut).map(position);
        ResourcePage { rows, next }
    }
}
