//! Jobs: work that `:job` steps put into a queue, and that workers outside claim under a lease.
//!
//! What a call of a worker does to a job is decided inside one transaction by [`crate::rules::jobs`]. Every call names the
//! random token of its lease, which no listing shows.

use super::PortFuture;
use crate::ids::RunId;
use crate::jobs::{JobBatch, JobRow, JobStatus};

/// Maximum number of jobs in one call: a claim, or the end of many.
pub const MOST_JOBS: usize = 100;

/// All jobs.
pub trait Jobs: Send + Sync {
    /// Leases queued jobs to a worker, those of the highest priority first, then the oldest. What time did to jobs is
    /// settled first.
    fn claim(&self, claim: JobClaim) -> PortFuture<'_, Vec<JobRow>>;

    /// Makes calls of workers about claimed jobs, each for itself, all in one transaction. The answers are in the order
    /// of the calls.
    fn call(&self, calls: Vec<JobCall>, now_ms: i64) -> PortFuture<'_, Vec<JobAnswer>>;

    /// Settles what time did to jobs: expired leases, deadlines, and cancels that no worker answered. Returns how many
    /// jobs changed.
    fn expire(&self, now_ms: i64) -> PortFuture<'_, usize>;

    fn find(&self, id: &str) -> PortFuture<'_, Option<JobRow>>;

    /// Returns jobs, newest first.
    ///
    /// # Errors
    /// [`super::StoreError::Rejected`] with kind `not-found` when there is no job [`JobQuery::after`].
    fn list(&self, query: JobQuery) -> PortFuture<'_, Vec<JobRow>>;

    /// Counts the jobs of a batch.
    fn batch(&self, id: &str) -> PortFuture<'_, Option<JobBatch>>;
}

/// A worker asks for jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobClaim {
    pub types: Vec<String>,
    /// Only jobs of these flows; nothing for those of all.
    pub flows: Option<Vec<String>>,
    pub worker: String,
    /// A token for each job that may be claimed: as many as there are are claimed at most.
    pub tokens: Vec<String>,
    pub lease_ms: i64,
    pub now_ms: i64,
}

/// A worker says something about a job that it claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCall {
    pub job: String,
    /// The token of its lease.
    pub token: String,
    pub report: JobReport,
}

/// What a worker says about its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobReport {
    /// It is at work. The lease is extended from now on, by its own length where nothing else is given.
    Progress {
        /// EDN text.
        progress: Option<String>,
        extend_ms: Option<i64>,
    },
    /// It is done.
    Complete {
        /// [`JobStatus::Succeeded`] or [`JobStatus::NoChanges`].
        status: JobStatus,
        /// EDN text.
        result: Option<String>,
    },
    /// It failed.
    Fail {
        /// As in [`JobRow::error`].
        error: String,
        /// Another attempt may succeed.
        retry: bool,
    },
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobAnswer {
    /// It was taken; the job as it is now.
    Taken(Box<JobRow>),
    /// The lease is another worker's by now, or over.
    LeaseLost(Box<JobRow>),
    Missing,
}

/// Which jobs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobQuery {
    pub kind: Option<String>,
    pub status: Option<JobStatus>,
    pub batch: Option<String>,
    pub run: Option<RunId>,
    pub id_prefix: Option<String>,
    /// The id of the last job of the page before.
    pub after: Option<String>,
    /// 0: no limit.
    pub limit: usize,
}
