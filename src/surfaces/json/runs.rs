//! Runs, and their places in the queue.

use flowstone_engine::StartedRun;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{QueuePlace, RunRow, RunSummary};
use serde_json::{Map, Value, json};

use super::values::{instant, stored_json};

/// Returns a run's row as JSON. The names of the fields are stable.
pub fn row_json(run: &RunRow) -> Value {
    json!({
        "id": run.id.as_str(),
        "flow": run.flow,
        "status": run.status.name(),
        "program": run.program,
        "parent": run.parent.as_ref().map(|parent| parent.run.as_str()),
        "root": run.parent.as_ref().map(|parent| parent.root.as_str()),
        "depth": run.parent.as_ref().map_or(0, |parent| parent.depth),
        "pass": run.pass,
        "deadline": run.deadline_ms.map(instant),
        "driven": run.executing,
        "begun": run.begun,
        "waitReason": run.wait_reason,
        "due": run.due_ms.map(instant),
        "createdAt": instant(run.created_ms),
        "updatedAt": instant(run.updated_ms),
        "endedAt": run.ended_ms.map(instant),
        "held": run.held,
        "quarantine": run.quarantine,
        "externalId": run.external_id,
        "invocation": run.invocation,
        "key": run.key,
        "priority": run.priority,
        "startedBy": run.started_by,
        "origin": run.origin.as_ref().map(|id| id.as_str()),
        "parent": run.parent.as_ref().map(|parent| parent.run.as_str()),
        "pass": run.pass,
        "cancelRequested": run.cancel_requested,
        "program": run.program,
        "journal": run.pruned_ms.is_none(),
        "input": stored_json(&run.input),
        "result": run.result.as_deref().map(stored_json),
        "error": run.error.as_deref().map(stored_json),
    })
}

/// Returns a run of a list as JSON. The names of the fields are stable.
pub fn summary_json(run: &RunSummary) -> Value {
    json!({
        "id": run.id.as_str(),
        "externalId": run.external_id,
        "flow": run.flow,
        "status": run.status.name(),
        "driven": run.executing,
        "begun": run.begun,
        "held": run.held,
        "quarantine": run.quarantine,
        "waitReason": run.wait_reason,
        "due": run.due_ms.map(instant),
        "cancelRequested": run.is_cancel_requested,
        "createdAt": instant(run.created_ms),
        "updatedAt": instant(run.updated_ms),
        "endedAt": run.ended_ms.map(instant),
        "invocation": run.invocation,
        "key": run.key,
        "priority": run.priority,
        "startedBy": run.started_by,
        "origin": run.origin.as_ref().map(|id| id.as_str()),
        "parent": run.parent.as_ref().map(|parent| parent.run.as_str()),
        "pass": run.pass,
        "journal": run.pruned_ms.is_none(),
    })
}

/// Adds to a run of a list what its row alone does not contain. The names of the fields are stable.
pub fn marked_json(mut run: Value, is_in_doubt: bool, place: Option<&QueuePlace>) -> Value {
    if let Some(fields) = run.as_object_mut() {
        fields.insert("inDoubt".into(), json!(is_in_doubt));
        fields.insert("queue".into(), json!(place.map(place_json)));
    }
    run
}

/// Returns the place of a run in the queue as JSON. The names of the fields are stable.
pub fn place_json(place: &QueuePlace) -> Value {
    json!({
        "waitsFor": place.waits_for.name(),
        "position": place.position,
        "behind": place.behind.iter().map(RunId::as_str).collect::<Vec<_>>(),
        "due": place.due_ms.map(instant),
    })
}

/// Adds to the object about a run how it was started. The names of the fields are stable.
pub fn add_decision(fields: &mut Map<String, Value>, started: &StartedRun) {
    let key = started.key.as_deref().map(stored_json);
    let replaced: Vec<&str> = started.replaced.iter().map(RunId::as_str).collect();
    fields.insert("concurrencyDecision".into(), json!(started.decision.name()));
    fields.insert("concurrencyKey".into(), json!(key));
    fields.insert("replaced".into(), json!(replaced));
}
