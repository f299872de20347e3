//! Jobs as data: the operation that submits them, and the form in which a flow sees them.

mod row;

use flowstone_lang::value::{Object, Value};

use crate::codec;
use crate::ids::RunId;

pub use row::{BATCH_KEY, JOB_KEY, JobBatch, JobLease, JobRow, JobStatus};

/// Default number of attempts at a job.
pub const USUAL_ATTEMPTS: u32 = 3;
/// Maximum number of attempts that a step may set.
pub const MOST_ATTEMPTS: u32 = 100;
/// Maximum number of jobs in a batch.
pub const MOST_IN_BATCH: usize = 1_000;

/// Puts jobs into the queue. The store executes it in the transaction of the step's journal row; `answer`, as EDN text
/// by [`crate::codec`], becomes the value of the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOp {
    pub run: RunId,
    /// The path of the step.
    pub path: String,
    pub batch: Option<String>,
    pub jobs: Vec<NewJob>,
    pub answer: String,
}

/// See [`JobOp`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    pub id: String,
    /// The job type.
    pub kind: String,
    /// The payload, as EDN text.
    pub payload: String,
    /// The metadata, a map as EDN text.
    pub metadata: Option<String>,
    pub priority: i64,
    pub max_attempts: u32,
    pub idempotency_key: String,
    /// When the job ends as timed out, in milliseconds since 1970.
    pub deadline_ms: Option<i64>,
}

impl JobOp {
    /// Returns the rows of the new jobs.
    pub fn rows(&self, now_ms: i64) -> impl Iterator<Item = JobRow> {
        self.jobs.iter().map(move |job| JobRow {
            id: job.id.clone(),
            batch: self.batch.clone(),
            run: self.run.clone(),
            flow: String::new(),
            path: self.path.clone(),
            kind: job.kind.clone(),
            status: JobStatus::Queued,
            payload: job.payload.clone(),
            metadata: job.metadata.clone(),
            priority: job.priority,
            attempt: 0,
            max_attempts: job.max_attempts,
            idempotency_key: job.idempotency_key.clone(),
            created_ms: now_ms,
            updated_ms: now_ms,
            ended_ms: None,
            deadline_ms: job.deadline_ms,
            lease: None,
            worker: None,
            progress: None,
            result: None,
            error: None,
            cancel_ms: None,
            last_call: None,
        })
    }
}

/// Returns a job in the form that a flow sees.
pub fn job_value(job: &JobRow) -> Value {
    let stored = |text: &String| codec::decode(text).unwrap_or(Value::Nil);
    let instant = |millis: i64| Value::from(Object::Inst(millis));
    let always = [
        ("job-id", Value::from(job.id.as_str())),
        ("job-type", Value::from(job.kind.as_str())),
        ("status", Value::keyword(job.status.name())),
        ("payload", stored(&job.payload)),
        ("attempt", Value::Int(i64::from(job.attempt))),
        ("max-attempts", Value::Int(i64::from(job.max_attempts))),
        ("created-at", instant(job.created_ms)),
    ];
    let sometimes = [
        ("batch-id", job.batch.as_deref().map(Value::from)),
        ("metadata", job.metadata.as_ref().map(stored)),
        ("worker", job.worker.as_deref().map(Value::from)),
        ("progress", job.progress.as_ref().map(stored)),
        ("result", job.result.as_ref().map(stored)),
        ("error", job.error.as_ref().map(stored)),
        ("ended-at", job.ended_ms.map(instant)),
    ];
    let sometimes = sometimes
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)));
    let facts = always.into_iter().chain(sometimes);
    Value::map(facts.map(|(key, value)| (Value::keyword(key), value)))
}

/// Returns a batch in the form that a flow sees.
pub fn batch_value(batch: &JobBatch) -> Value {
    let counts = batch
        .counts
        .iter()
        .map(|(status, count)| (Value::keyword(status.name()), count_value(*count)));
    Value::map([
        (Value::keyword("batch-id"), Value::from(batch.id.as_str())),
        (Value::keyword("status"), Value::keyword(batch.status())),
        (Value::keyword("total"), count_value(batch.total())),
        (Value::keyword("counts"), Value::map(counts)),
    ])
}

fn count_value(count: u64) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}
