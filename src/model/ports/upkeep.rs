//! What keeps a database from growing for ever: removing what nobody refers to any more, a little at a time.
//!
//! Which runs that is, the engine decides; the store sees to it that nothing that is referred to goes.

use std::path::Path;

use super::{Counts, PortFuture};
use crate::ids::RunId;

/// Measuring and removing. Each change is a small transaction: what was removed before a crash stays removed, and
/// the rest goes the next time.
pub trait Upkeep: Send + Sync {
    /// Says what the stores take.
    fn usage(&self) -> PortFuture<'_, Usage>;

    /// Counts runs, waits, jobs and commits. Reads all rows of runs and jobs.
    fn counts(&self) -> PortFuture<'_, Counts>;

    /// Says what the journal of a run takes.
    fn journal_usage(&self, run: &RunId) -> PortFuture<'_, Removed>;

    /// Removes the journal and the waits of a run that is over, and marks its row first. Does nothing to a run
    /// that is not over.
    fn prune(&self, run: &RunId, now_ms: i64) -> PortFuture<'_, Removed>;

    /// Removes the row of a run whose journal was removed.
    fn forget(&self, run: &RunId) -> PortFuture<'_, bool>;

    /// Returns the runs whose journals were not removed to the end.
    fn half_pruned(&self) -> PortFuture<'_, Vec<RunId>>;

    /// Removes, or with `dry_run` only counts, what nothing refers to.
    fn sweep(&self, sweep: Sweep, now_ms: i64) -> PortFuture<'_, Removed>;

    /// Returns free space in the file to the system. Takes as long as rewriting the file.
    fn compact(&self) -> PortFuture<'_, ()>;

    /// Copies all that is kept, as it is at one moment, to a folder that does not exist yet.
    fn backup(&self, place: &Path) -> PortFuture<'_, BackedUp>;

    /// Looks at all that is stored.
    fn verify(&self) -> PortFuture<'_, Verified>;
}

/// What was copied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackedUp {
    /// The file with the project's key is in it.
    pub has_key: bool,
    pub runs: u64,
    pub files: u64,
    pub bytes: u64,
}

/// What was looked at, and what is wrong with it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    pub runs: u64,
    /// Entries of journals.
    pub entries: u64,
    /// Texts of flows.
    pub programs: u64,
    /// Values that are kept apart from their journal entries.
    pub payloads: u64,
    pub blobs: u64,
    /// Contents of files in source trees and changesets.
    pub files: u64,
    pub flaws: Vec<Flaw>,
}

/// Something that is not as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// `database`, `program`, `value`, `journal`, `key`, `run`, `signal`, `wait`, `table`, `blob`,
    /// `tree` or `file`.
    pub what: &'static str,
    pub name: String,
    pub detail: String,
}

/// What is looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sweep {
    pub what: Swept,
    /// Younger ones stay: somebody may be about to refer to them.
    pub older_than_ms: i64,
    pub dry_run: bool,
}

/// What may be left without a reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swept {
    /// Changesets that no run, key, table, name or blob mentions.
    Changesets,
    /// Contents of resources that are over their time, which is [`Sweep::older_than_ms`].
    Expired,
    /// Large values of journals.
    Payloads,
    /// Sources of flows that no run is pinned to.
    Programs,
    /// Names of stored blobs that no run, key or table mentions.
    Resources,
    /// Files of blobs without a name.
    Blobs,
    /// Signals that waits have taken or refused: until they go, their `dedup` is remembered.
    Signals,
}

/// What was removed, or would be.
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

/// What the stores take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// The database file.
    pub file_bytes: u64,
    /// As much of it is free, and is used again before the file grows.
    pub free_bytes: u64,
}
