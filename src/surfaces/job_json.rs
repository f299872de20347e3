//! Jobs as JSON. The names of the fields are stable. Only [`claimed_json`] shows the token of a lease.

use flowstone_engine::codec;
use flowstone_engine::jobs::Extended;
use flowstone_engine::json::to_exact_json;
use flowstone_engine::ports::JobRow;
use flowstone_lang::value::Value;
use serde_json::{Value as Json, json};

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
        "payload": stored(&job.payload),
        "metadata": job.metadata.as_deref().map(stored),
        "priority": job.priority,
        "attempt": job.attempt,
        "maxAttempts": job.max_attempts,
        "idempotencyKey": job.idempotency_key,
        "worker": job.worker,
        "leaseUntil": job.lease.as_ref().map(|lease| codec::instant(lease.until_ms)),
        "cancelRequested": job.cancel_ms.is_some() && !job.status.is_final(),
        "progress": job.progress.as_deref().map(stored),
        "result": job.result.as_deref().map(stored),
        "error": job.error.as_deref().map(stored),
        "createdAt": codec::instant(job.created_ms),
        "updatedAt": codec::instant(job.updated_ms),
        "endedAt": job.ended_ms.map(codec::instant),
        "deadline": job.deadline_ms.map(codec::instant),
    })
}

/// Returns a job as the worker sees it that claimed it.
pub fn claimed_json(job: &JobRow) -> Json {
    json!({
        "id": job.id,
        "type": job.kind,
        "payload": stored(&job.payload),
        "metadata": job.metadata.as_deref().map(stored),
        "attempt": job.attempt,
        "maxAttempts": job.max_attempts,
        "lease": job.lease.as_ref().map(|lease| json!({
            "token": lease.token,
            "until": codec::instant(lease.until_ms),
        })),
        "idempotencyKey": job.idempotency_key,
    })
}

/// Returns the answer to a report of progress.
pub fn progress_json(extended: &Extended) -> Json {
    json!({
        "until": codec::instant(extended.until_ms),
        "cancelRequested": extended.is_cancel_requested,
    })
}

/// Returns stored EDN text as JSON. What JSON cannot say exactly is shown as its text.
fn stored(text: &str) -> Json {
    let value = codec::decode(text).unwrap_or(Value::Nil);
    to_exact_json(&value).unwrap_or_else(|_| Json::from(text))
}
