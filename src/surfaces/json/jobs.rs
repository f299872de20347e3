//! Jobs as JSON. The names of the fields are stable. Only [`ClaimedJob`] shows the token of a lease.

use flowstone_engine::jobs::{self as engine, Extended};
use flowstone_engine::ports::JobRow;
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::values::{Values, instant, object};

/// A job of a worker outside, as everybody may see it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    id: String,
    r#type: String,
    /// `queued`, `claimed`, `succeeded`, `no_changes`, `failed`, `cancelled` or `timed_out`.
    status: &'static str,
    run: String,
    flow: String,
    /// The path of the step that submitted it.
    path: String,
    batch: Option<String>,
    payload: Json,
    metadata: Option<Json>,
    /// Jobs with higher numbers are claimed first.
    priority: i64,
    /// How often it was claimed.
    attempt: u32,
    max_attempts: u32,
    /// The same for all attempts.
    idempotency_key: String,
    /// The worker that claimed it last.
    worker: Option<String>,
    lease_until: Option<Json>,
    cancel_requested: bool,
    /// When it was asked to stop.
    #[serde(skip_serializing_if = "Option::is_none")]
    cancel_requested_at: Option<Json>,
    progress: Option<Json>,
    result: Option<Json>,
    error: Option<Json>,
    created_at: Json,
    updated_at: Json,
    ended_at: Option<Json>,
    deadline: Option<Json>,
}

/// Returns a job as everybody may see it.
pub fn job_json(job: &JobRow) -> Json {
    job_json_as(job, Values::Json)
}

/// Returns a job as everybody may see it, with its values in a form.
pub fn job_json_as(job: &JobRow, values: Values) -> Json {
    let shown = |text: &str| values.shown(text);
    object(&Job {
        id: job.id.clone(),
        r#type: job.kind.clone(),
        status: job.status.name(),
        run: job.run.to_string(),
        flow: job.flow.clone(),
        path: job.path.clone(),
        batch: job.batch.clone(),
        payload: values.shown(&job.payload),
        metadata: job.metadata.as_deref().map(shown),
        priority: job.priority,
        attempt: job.attempt,
        max_attempts: job.max_attempts,
        idempotency_key: job.idempotency_key.clone(),
        worker: job.worker.clone(),
        lease_until: job.lease.as_ref().map(|lease| instant(lease.until_ms)),
        cancel_requested: job.cancel_ms.is_some() && !job.status.is_final(),
        cancel_requested_at: job
            .cancel_ms
            .filter(|_| !job.status.is_final())
            .map(instant),
        progress: job.progress.as_deref().map(shown),
        result: job.result.as_deref().map(shown),
        error: job.error.as_deref().map(shown),
        created_at: instant(job.created_ms),
        updated_at: instant(job.updated_ms),
        ended_at: job.ended_ms.map(instant),
        deadline: job.deadline_ms.map(instant),
    })
}

/// A job as the worker sees it that claimed it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClaimedJob {
    id: String,
    r#type: String,
    payload: Json,
    metadata: Option<Json>,
    attempt: u32,
    max_attempts: u32,
    lease: Option<Lease>,
    /// The same for all attempts, for servers that recognise repeated requests.
    idempotency_key: String,
    /// The span of the step that waits for the job, for workers that trace, too.
    traceparent: Option<String>,
}

/// The right to work on a job.
#[derive(Debug, Serialize, ToSchema)]
pub struct Lease {
    /// Each call about the job names it.
    token: String,
    until: Json,
}

/// Returns a job as the worker sees it that claimed it.
pub fn claimed_json(job: &engine::ClaimedJob) -> Json {
    claimed_json_as(job, Values::Json)
}

/// Returns a job as the worker sees it that claimed it, with its values in a form.
pub fn claimed_json_as(job: &engine::ClaimedJob, values: Values) -> Json {
    let shown = |text: &str| values.shown(text);
    object(&ClaimedJob {
        id: job.id.clone(),
        r#type: job.kind.clone(),
        payload: values.shown(&job.payload),
        metadata: job.metadata.as_deref().map(shown),
        attempt: job.attempt,
        max_attempts: job.max_attempts,
        lease: job.lease.as_ref().map(|lease| Lease {
            token: lease.token.clone(),
            until: instant(lease.until_ms),
        }),
        idempotency_key: job.idempotency_key.clone(),
        traceparent: job.trace_parent.map(|parent| parent.to_string()),
    })
}

/// A job that a call for several jobs ended, or why it did not.
#[derive(Debug, Serialize, ToSchema)]
pub struct EndedJob {
    id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Json>,
}

/// Returns what an answer to several calls says about a job that was ended.
pub fn ended_job_json(job: &JobRow) -> Json {
    object(&EndedJob {
        id: job.id.clone(),
        status: Some(job.status.name()),
        error: None,
    })
}

/// Returns what an answer to several calls says about a job that was not ended.
pub fn unended_job_json(id: &str, error: Json) -> Json {
    object(&EndedJob {
        id: id.to_owned(),
        status: None,
        error: Some(error),
    })
}

/// The lease of a job after a report of progress.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExtendedLease {
    until: Json,
    /// The worker should stop.
    cancel_requested: bool,
}

/// Returns the answer to a report of progress.
pub fn progress_json(extended: &Extended) -> Json {
    object(&ExtendedLease {
        until: instant(extended.until_ms),
        cancel_requested: extended.is_cancel_requested,
    })
}
