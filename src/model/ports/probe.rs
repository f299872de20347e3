//! Looking in on a store as it commits: where tests of crashes and of full disks take hold.

use std::fmt::Debug;

use super::StoreError;

/// Observes each transaction of a store. A store that has a probe gives every job its own transaction, so that a crash
/// can be placed between any two of them.
pub trait Probe: Debug + Send + Sync {
    /// Called in that phase, in the thread that writes.
    ///
    /// # Errors
    /// What is given back becomes the end of the transaction: before the commit the transaction is rolled back; after it, it stays and
    /// nobody hears of it.
    fn reach(&self, phase: CommitPhase) -> Result<(), StoreError>;
}

/// A phase of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitPhase {
    /// Its rows are written, nothing is durable.
    BeforeCommit,
    /// It is durable, and nobody was told.
    AfterCommit,
}
