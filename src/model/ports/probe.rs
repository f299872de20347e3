//! A probe of a store's commits: the hook for tests of crashes and of full disks.

use std::fmt::Debug;

use super::StoreError;

/// Observes each transaction of a store. A store with a probe gives every job its own transaction, so that a crash can
/// be placed between any two of them.
pub trait Probe: Debug + Send + Sync {
    /// Called in each phase, in the thread that writes.
    ///
    /// # Errors
    /// An error becomes the outcome of the transaction. Before the commit the transaction is rolled back; after it, the
    /// transaction stays committed and its callers get no answer.
    fn reach(&self, phase: CommitPhase) -> Result<(), StoreError>;
}

/// A phase of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitPhase {
    /// The rows are written, nothing is durable.
    BeforeCommit,
    /// The transaction is durable, and its callers have not been notified.
    AfterCommit,
}
