//! The registry of resources: everything that has a `res://` name.

use super::{BlobRow, PortFuture};
use crate::blob::BlobHash;
use crate::ids::RunId;
use crate::resource::{ResourceKind, SearchEntry, Tier};

/// The registry: which resources exist, where they came from, how long they are kept. Blobs, files and trees are
/// registered; keys, tables and outputs of runs are read from their own stores.
pub trait Resources: Send + Sync {
    /// Returns the resource that a name refers to, even if it is gone. The path of the name is not read strictly.
    fn find(&self, uri: &str, now_ms: i64) -> PortFuture<'_, Option<ResourceRow>>;

    /// Returns a page of resources.
    fn list(&self, query: ResourceQuery) -> PortFuture<'_, ResourcePage>;

    /// Registers a stored blob under a name, outside of any run.
    fn register(&self, blob: BlobRow, now_ms: i64) -> PortFuture<'_, ()>;

    /// Removes the resource of a registered name; its former existence is remembered for a while. Tells whether it
    /// existed.
    fn delete(&self, uri: &str, now_ms: i64) -> PortFuture<'_, bool>;

    /// Sets the search entry of a registered resource; `None` removes it. Tells whether the resource exists.
    fn describe(&self, uri: &str, search: Option<SearchEntry>) -> PortFuture<'_, bool>;

    /// Returns the runs that are not over and mention a name.
    fn needed_by(&self, uri: &str) -> PortFuture<'_, Vec<RunId>>;
}

/// A resource as the registry knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResourceRow {
    /// Its name in canonical form.
    pub uri: String,
    pub kind: ResourceKind,
    /// The hash of the content, if it is stored as a blob.
    pub hash: Option<BlobHash>,
    /// The size in bytes, if known.
    pub size: Option<u64>,
    /// The name of a file, key or table, or the path of a step.
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
    /// Why the resource is gone, and since when, in milliseconds since 1970.
    pub gone: Option<(Gone, i64)>,
}

impl ResourceRow {
    /// Returns the row as that of a blob, if the resource is stored as one.
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

/// The reason why a resource is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gone {
    Deleted,
    Expired,
}

/// The selection, order and page of a list of resources.
#[derive(Debug, Clone, Default)]
pub struct ResourceQuery {
    /// Kinds of resources; empty: all but outputs of runs, which are listed only for a run.
    pub kinds: Vec<ResourceKind>,
    /// Prefix of the name: of the whole `res://` name, or of the part after the workspace.
    pub prefix: Option<String>,
    pub run: Option<String>,
    /// The path or the id of a step in that run.
    pub step: Option<String>,
    pub tier: Option<Tier>,
    /// A text in the short name or the name.
    pub text: Option<String>,
    /// Includes resources that are gone.
    pub with_gone: bool,
    pub sort: ResourceSort,
    /// The value of [`ResourcePage::next`] of the previous page.
    pub after: Option<String>,
    pub limit: usize,
    pub now_ms: i64,
}

/// The order of a list of resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResourceSort {
    /// By creation, newest first.
    #[default]
    Created,
    Name,
}

/// A page of resources.
#[derive(Debug, Clone, Default)]
pub struct ResourcePage {
    pub rows: Vec<ResourceRow>,
    /// The value for [`ResourceQuery::after`] of the next page; `None` on the last page.
    pub next: Option<String>,
}

impl ResourcePage {
    /// Cuts rows to a page. If there are more than `limit`, the page ends at the `position` of its last row.
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
