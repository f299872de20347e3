//! Jobs as JSON. The names of the fields are stable. Only [`claimed_json`] shows the token of a lease.

use flowstone_engine::jobs::Extended;
use flowstone_engine::ports::JobRow;
use serde_json::{Value as Json, json};

use super::values::{instant, stored_json};

/// Returns a job as everybody may see it.
pub fn job_json(job: &JobRow) -> Json {
    json!({
        "id": job.id,
        "type": job.kind,
        "status": job.status.name(),
        "run": job.run.as_str(),
        "flow": job.flow,
        "path": job.path,
        "batch": job.batch,
        "payload": stored_json(&job.payload),
        "metadata": job.metadata.as_deref().map(stored_json),
        "priority": job.priority,
        "attempt": job.attempt,
        "maxAttempts": job.max_attempts,
        "idempotencyKey": job.idempotency_key,
        "worker": job.worker,
        "leaseUntil": job.lease.as_ref().map(|lease| instant(lease.until_ms)),
        "cancelRequested": job.cancel_ms.is_some() && !job.status.is_final(),
        "progress": job.progress.as_deref().map(stored_json),
        "result": job.result.as_deref().map(stored_json),
        "error": job.error.as_deref().map(stored_json),
        "createdAt": instant(job.created_ms),
        "updatedAt": instant(job.updated_ms),
        "endedAt": job.ended_ms.map(instant),
        "deadline": job.deadline_ms.map(instant),
    })
}

/// Returns a job as the worker sees it that claimed it.
pub fn claimed_json(job: &JobRow) -> Json {
    json!({
        "id": job.id,
        "type": job.kind,
        "payload": stored_json(&job.payload),
        "metadata": job.metadata.as_deref().map(stored_json),
        "attempt": job.attempt,
        "maxAttempts": job.max_attempts,
        "lease": job.lease.as_ref().map(|lease| json!({
            "token": lease.token,
            "until": instant(lease.until_ms),
        })),
        "idempotencyKey": job.idempotency_key,
    })
}

/// Returns the answer to a report of progress.
pub fn progress_json(extended: &Extended) -> Json {
    json!({
        "until": instant(extended.until_ms),
        "cancelRequested": extended.is_cancel_requested,
    })
}
