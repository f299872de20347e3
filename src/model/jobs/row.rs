//! Jobs as they are stored: their status, lease and batch.

use crate::ids::RunId;

/// How the keys begin under which runs wait for the end of a job. The job's id follows.
pub const JOB_KEY: &str = "job:";
/// How the keys begin under which runs wait for the end of a batch of jobs. The batch's id follows.
pub const BATCH_KEY: &str = "job-batch:";

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
