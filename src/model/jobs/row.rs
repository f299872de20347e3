//! Jobs as they are stored: their status, lease and batch.

use crate::ids::RunId;

/// Prefix of the keys under which runs wait for the end of a job; the id of the job follows.
pub const JOB_KEY: &str = "job:";
/// Prefix of the keys under which runs wait for the end of a batch of jobs; the id of the batch follows.
pub const BATCH_KEY: &str = "job-batch:";

/// The state of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JobStatus {
    /// No worker has claimed the job.
    Queued,
    /// A worker holds a lease of the job.
    Claimed,
    Succeeded,
    /// The worker ended the job without changes.
    NoChanges,
    Failed,
    /// The run was cancelled, or gave up the job.
    Cancelled,
    /// The `:timeout` of the job passed before it ended.
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

    /// Tells whether the job has ended.
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

    /// Returns the status of a name; `no-changes` and `timed-out` are accepted too.
    pub fn from_name(name: &str) -> Option<JobStatus> {
        let name = name.replace('-', "_");
        Self::NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(status, _)| *status)
    }
}

/// A job in stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRow {
    pub id: String,
    /// The id of the batch that the job was submitted with.
    pub batch: Option<String>,
    pub run: RunId,
    /// The slug of the run's flow, set by the store.
    pub flow: String,
    /// The path of the step that submitted the job.
    pub path: String,
    /// The job type, by which workers claim it.
    pub kind: String,
    pub status: JobStatus,
    /// EDN text.
    pub payload: String,
    /// The metadata, a map as EDN text.
    pub metadata: Option<String>,
    /// Jobs with a higher priority are claimed first.
    pub priority: i64,
    /// Number of times the job was claimed.
    pub attempt: u32,
    pub max_attempts: u32,
    pub idempotency_key: String,
    pub created_ms: i64,
    pub updated_ms: i64,
    pub ended_ms: Option<i64>,
    /// When the job ends as [`JobStatus::TimedOut`], in milliseconds since 1970.
    pub deadline_ms: Option<i64>,
    /// The lease of a worker, while the job is claimed.
    pub lease: Option<JobLease>,
    /// The worker that claimed the job last.
    pub worker: Option<String>,
    /// The last progress report of a worker, as EDN text.
    pub progress: Option<String>,
    /// EDN text.
    pub result: Option<String>,
    /// A map `{:message :kind :data}` as EDN text; also set by an attempt after which the job was queued again.
    pub error: Option<String>,
    /// When the worker was asked to stop, in milliseconds since 1970.
    pub cancel_ms: Option<i64>,
    /// The call that ended the last lease: the same call gets the same answer if it is repeated.
    pub last_call: Option<String>,
}

/// The right of one worker to work on a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobLease {
    /// Random, new for each claim. Only the worker that claimed the job may see it.
    pub token: String,
    pub until_ms: i64,
    /// The length of the lease, and of each extension.
    pub length_ms: i64,
}

/// A batch of jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobBatch {
    pub id: String,
    /// Number of jobs for each status that occurs.
    pub counts: Vec<(JobStatus, u64)>,
}

impl JobBatch {
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// Returns `running`, `completed` if every job succeeded, or `failed`.
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
