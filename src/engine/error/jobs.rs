//! The reasons why a call of a worker is refused.

use crate::limits;
use crate::ports::{JobStatus, MOST_JOBS};

/// A call about a job was refused; the job is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    #[error("there is no job `{job}`")]
    Missing { job: String },
    #[error("`{job}` is the beginning of several jobs: {}", jobs.join(", "))]
    Ambiguous { job: String, jobs: Vec<String> },
    #[error("the lease of the job {job} is lost: the job is {}", status.name())]
    LeaseLost { job: String, status: JobStatus },
    #[error("the claim is wrong: {why}")]
    BadClaim { why: String },
    #[error("{count} jobs are too many for one call, which takes at most {MOST_JOBS}")]
    TooMany { count: usize },
    #[error("the value has {bytes} bytes, and at most {most} are allowed")]
    TooLarge { bytes: usize, most: String },
}

impl JobError {
    /// The code of a job that does not exist.
    pub const MISSING: &str = "E0536";
    /// The code of a call under a lease that is lost.
    pub const LEASE_LOST: &str = "E0537";
    /// The code of a claim whose options are out of range.
    pub const BAD_CLAIM: &str = "E0538";

    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            JobError::Missing { .. } | JobError::Ambiguous { .. } => JobError::MISSING,
            JobError::LeaseLost { .. } => JobError::LEASE_LOST,
            JobError::BadClaim { .. } | JobError::TooMany { .. } => JobError::BAD_CLAIM,
            JobError::TooLarge { .. } => limits::RESULT.code,
        }
    }

    /// Returns a hint.
    pub fn hint(&self) -> String {
        match self {
            JobError::Missing { .. } => "`flowstone jobs list` shows the jobs".to_owned(),
            JobError::Ambiguous { .. } => "give more of its id".to_owned(),
            JobError::LeaseLost { .. } => {
                "stop working on it; claim a job again, and report progress before the lease is over".to_owned()
            }
            JobError::BadClaim { .. } => "ask again within these limits".to_owned(),
            JobError::TooMany { .. } => "make several calls".to_owned(),
            JobError::TooLarge { .. } => {
                "keep large data in a file, table or blob, and hand over a reference".to_owned()
            }
        }
    }
}
