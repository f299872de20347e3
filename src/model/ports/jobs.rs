//! Jobs: work that `:job` steps put into a queue, and that workers outside claim under a lease.
//!
//! The rules in [`crate::rules::jobs`] decide, inside one transaction, what the call of a worker does to a job. Every
//! call names the random token of its lease, which no listing shows.

use super::PortFuture;
use crate::ids::RunId;
use crate::jobs::{JobBatch, JobRow, JobStatus};
use crate::token::Token;

/// Maximum number of jobs in one call: a claim, or the end of several jobs.
pub const MOST_JOBS: usize = 100;

/// The jobs of a project.
pub trait Jobs: Send + Sync {
    /// Leases queued jobs to a worker: the highest priority first, then the oldest. Jobs that are due by time are
    /// updated first.
    fn claim(&self, claim: JobClaim) -> PortFuture<'_, Vec<JobRow>>;

    /// Applies calls of workers about claimed jobs, each on its own, all in one transaction. The answers are in the
    /// order of the calls.
    fn call(&self, calls: Vec<JobCall>, now_ms: i64) -> PortFuture<'_, Vec<JobAnswer>>;

    /// Updates the jobs that are due: expired leases, deadlines, and cancellations that no worker answered. Returns the
    /// number of jobs that changed.
    fn expire(&self, now_ms: i64) -> PortFuture<'_, usize>;

    fn find(&self, id: &str) -> PortFuture<'_, Option<JobRow>>;

    /// Returns jobs, newest first.
    ///
    /// # Errors
    /// [`super::StoreError::Rejected`] with kind `not-found` when the job [`JobQuery::after`] does not exist.
    fn list(&self, query: JobQuery) -> PortFuture<'_, Vec<JobRow>>;

    /// Counts the jobs of a batch.
    fn batch(&self, id: &str) -> PortFuture<'_, Option<JobBatch>>;
}

/// The jobs that a worker reaches: those of flows and installations that its token reaches as the one who runs them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobReach {
    pub token: Token,
    /// The flows with a label of the token.
    pub labelled: Vec<String>,
}

impl JobReach {
    /// Tells whether jobs of the runs of a flow are within reach.
    pub fn takes(&self, flow: &str) -> bool {
        let is_labelled = self.labelled.iter().any(|known| known == flow);
        let labels = match is_labelled {
            true => &self.token.limits.labels[..],
            false => &[],
        };
        self.token.reaches_side(flow, labels).is_installer()
    }
}

/// The request of a worker for jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobClaim {
    pub types: Vec<String>,
    /// Restricts the claim to jobs within a reach; `None`: all jobs.
    pub reach: Option<JobReach>,
    pub worker: String,
    /// Tokens for the jobs to claim; their number is the maximum number of jobs.
    pub tokens: Vec<String>,
    pub lease_ms: i64,
    pub now_ms: i64,
}

/// A call of a worker about a job that it claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCall {
    pub job: String,
    /// The token of the lease.
    pub token: String,
    pub report: JobReport,
}

/// What a worker reports about its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobReport {
    /// The job is in progress. The lease is extended from now on, by its own length unless another one is given.
    Progress {
        /// The progress, as EDN text.
        progress: Option<String>,
        extend_ms: Option<i64>,
    },
    /// The job is done.
    Complete {
        /// [`JobStatus::Succeeded`] or [`JobStatus::NoChanges`].
        status: JobStatus,
        /// The result, as EDN text.
        result: Option<String>,
    },
    /// The attempt failed.
    Fail {
        /// The error in the form of [`JobRow::error`].
        error: String,
        /// Another attempt may succeed.
        retry: bool,
    },
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobAnswer {
    /// The call was accepted; this is the job now.
    Taken(Box<JobRow>),
    /// The lease has expired, or another worker holds it now.
    LeaseLost(Box<JobRow>),
    Missing,
}

/// The selection and the page of a list of jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobQuery {
    pub kind: Option<String>,
    pub status: Option<JobStatus>,
    pub batch: Option<String>,
    pub run: Option<RunId>,
    pub id_prefix: Option<String>,
    /// The id of the last job of the previous page.
    pub after: Option<String>,
    /// Maximum number of jobs; 0: no limit.
    pub limit: usize,
}
