//! Jobs: work that `:job` steps put into a queue, and that workers outside claim under a lease.
//!
//! What a call of a worker does to a job is decided inside one transaction by [`crate::rules::jobs`]. Every call names the
//! random token of its lease, which no listing shows.

use super::PortFuture;
use crate::ids::RunId;

/// How the keys begin under which runs wait for the end of a job. The job's id follows.
pub const JOB_KEY: &str = "job:";
/// How the keys begin under which runs wait for the end of a batch of jobs. The batch's id follows.
pub const BATCH_KEY: &str = "job-batch:";
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

/// How far a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JobStatus {
    /// No worker has it.
    Queued,
    /// A worker has a lease of it.
    Claimed,
    Succeeded,
    /// The worker found nothing to do.
    NoChanges,
    Failed,
    /// Its run was cancelled, or gave it up.
    Cancelled,
    /// Its `:timeout` was over first.
    TimedOut,
}

impl JobStatus {
    /// All, with the names they are stored and shown under.
    pub const NAMES: &'static [(JobStatus, &'static str)] = &[
        (JobStatus::Cancelled, "cancelled"),
        (JobStatus::Claimed, "claimed"),
        (JobStatus::Failed, "failed"),
        (JobStatus::NoChanges, "no_changes"),
        (JobStatus::Queued, "queued"),
        (JobStatus::Succeeded, "succeeded"),
        (JobStatus::TimedOut, "timed_out"),
    ];

    /// Tells whether nothing will happen to the job any more.
    pub fn is_final(self) -> bool {
        match self {
            JobStatus::Queued | JobStatus::Claimed => false,
            JobStatus::Succeeded
            | JobStatus::NoChanges
            | JobStatus::Failed
            | JobStatus::Cancelled
            | JobStatus::TimedOut => true,
        }
    }

    /// Tells whether a worker completed the job.
    pub fn is_success(self) -> bool {
        matches!(self, JobStatus::Succeeded | JobStatus::NoChanges)
    }

    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(status, _)| *status == self)
            .map_or("unknown", |(_, name)| name)
    }

    /// Returns the status of a name; `no-changes` and `timed-out` are taken too.
    pub fn from_name(name: &str) -> Option<JobStatus> {
        let name = name.replace('-', "_");
        Self::NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(status, _)| *status)
    }
}

/// A job as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRow {
    pub id: String,
    /// The batch that it was submitted with.
    pub batch: Option<String>,
    pub run: RunId,
    /// The slug of the run's flow. Filled in by the store.
    pub flow: String,
    /// The path of the step that submitted it.
    pub path: String,
    /// The job type, by which workers claim it.
    pub kind: String,
    pub status: JobStatus,
    /// EDN text.
    pub payload: String,
    /// A map as EDN text.
    pub metadata: Option<String>,
    /// Higher is claimed first.
    pub priority: i64,
    /// How often it was claimed.
    pub attempt: u32,
    pub max_attempts: u32,
    pub idempotency_key: String,
    pub created_ms: i64,
    pub updated_ms: i64,
    pub ended_ms: Option<i64>,
    /// When it ends as [`JobStatus::TimedOut`].
    pub deadline_ms: Option<i64>,
    /// The lease that a worker has, while the job is claimed.
    pub lease: Option<JobLease>,
    /// The worker that claimed it last.
    pub worker: Option<String>,
    /// What the worker reported last, as EDN text.
    pub progress: Option<String>,
    /// EDN text.
    pub result: Option<String>,
    /// A map `{:message :kind :data}` as EDN text; also of an attempt after which the job was queued again.
    pub error: Option<String>,
    /// When its worker was asked to stop.
    pub cancel_ms: Option<i64>,
    /// The call that ended the last lease: the same call again gets the same answer.
    pub last_call: Option<String>,
}

/// The right of one worker to work on a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobLease {
    /// Random, new with each claim. Only the worker that claimed the job may see it.
    pub token: String,
    pub until_ms: i64,
    /// How long it was claimed for, and is extended by.
    pub length_ms: i64,
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

/// A batch of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobBatch {
    pub id: String,
    /// How many jobs have which status; only those that occur.
    pub counts: Vec<(JobStatus, u64)>,
}

impl JobBatch {
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// Returns `running`, `completed` where every job succeeded, or `failed`.
    pub fn status(&self) -> &'static str {
        let any = |condition: fn(JobStatus) -> bool| {
            self.counts
                .iter()
                .any(|(status, count)| *count > 0 && condition(*status))
        };
        if any(|status| !status.is_final()) {
            "running"
        } else if any(|status| !status.is_success()) {
            "failed"
        } else {
            "completed"
        }
    }
}
