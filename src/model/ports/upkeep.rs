//! Upkeep: bounds the growth of a database by removing unreferenced rows, a few at a time.
//!
//! The engine decides which runs are removed; the store ensures that nothing that is referred to is removed.

use std::path::Path;

use super::{Counts, PortFuture};
use crate::ids::RunId;

/// Measures and removes stored data. Each change is a small transaction: what was removed before a crash stays removed,
/// and the rest is removed by the next call.
pub trait Upkeep: Send + Sync {
    /// Returns the id of this process in the project.
    fn process(&self) -> &str;

    /// Tells whether a process that opened the project still lives.
    fn is_alive(&self, process: &str) -> bool;

    /// Returns the disk space that the stores use.
    fn usage(&self) -> PortFuture<'_, Usage>;

    /// Counts runs, waits, jobs and commits. Reads all rows of runs and jobs.
    fn counts(&self) -> PortFuture<'_, Counts>;

    /// Returns the size of the journal of a run.
    fn journal_usage(&self, run: &RunId) -> PortFuture<'_, Removed>;

    /// Removes the journal and the waits of a finished run, and marks its row first. A run that is not over stays
    /// unchanged.
    fn prune(&self, run: &RunId, now_ms: i64) -> PortFuture<'_, Removed>;

    /// Removes the row of a run whose journal was removed. Tells whether there was such a run.
    fn forget(&self, run: &RunId) -> PortFuture<'_, bool>;

    /// Returns the runs whose journals were only partly removed.
    fn half_pruned(&self) -> PortFuture<'_, Vec<RunId>>;

    /// Removes unreferenced data; with `dry_run`, only counts it.
    fn sweep(&self, sweep: Sweep, now_ms: i64) -> PortFuture<'_, Removed>;

    /// Returns free space of the file to the system. Takes as long as rewriting the file.
    fn compact(&self) -> PortFuture<'_, ()>;

    /// Copies a consistent snapshot of everything stored to a folder that does not exist yet.
    fn backup(&self, place: &Path) -> PortFuture<'_, BackedUp>;

    /// Checks everything stored.
    fn verify(&self) -> PortFuture<'_, Verified>;
}

/// The contents of a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackedUp {
    /// The backup includes the file with the project's key.
    pub has_key: bool,
    pub runs: u64,
    pub files: u64,
    pub bytes: u64,
}

/// The amounts that were checked, and the flaws that were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    pub runs: u64,
    /// Number of journal entries.
    pub entries: u64,
    /// Number of programs of flows.
    pub programs: u64,
    /// Number of values that are stored apart from their journal entries.
    pub payloads: u64,
    pub blobs: u64,
    /// Number of file contents in source trees and changesets.
    pub files: u64,
    pub flaws: Vec<Flaw>,
}

/// Stored data that differs from what was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// The kind of data: `database`, `program`, `value`, `journal`, `key`, `run`, `signal`, `wait`, `table`, `blob`,
    /// `tree` or `file`.
    pub what: &'static str,
    pub name: String,
    pub detail: String,
}

/// What is to be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    pub what: SweepKind,
    /// Newer data stays, in milliseconds since 1970: a run may be about to refer to it.
    pub older_than_ms: i64,
    pub dry_run: bool,
}

/// A kind of data that may be left without a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepKind {
    /// Changesets that no run, key, table, name or blob mentions.
    Changesets,
    /// Contents of resources that had expired at [`Sweep::older_than_ms`].
    Expired,
    /// Large values of journals.
    Payloads,
    /// Sources of flows that no run is pinned to.
    Programs,
    /// Names of stored blobs that no run, key or table mentions.
    Resources,
    /// Files of blobs without a name.
    Blobs,
    /// Signals that waits have taken or refused: until they are removed, their `dedup` is remembered.
    Signals,
}

/// The number and size of what was removed, or would be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    pub count: u64,
    pub bytes: u64,
}

impl std::ops::AddAssign for Removed {
    fn add_assign(&mut self, other: Removed) {
        self.count += other.count;
        self.bytes += other.bytes;
    }
}

/// The disk space that the stores use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Size of the database file.
    pub file_bytes: u64,
    /// The part of the file that is free, and is used again before the file grows.
    pub free_bytes: u64,
}
