//! Waits and signals. Neither contains the token of a wait.

use flowstone_engine::ports::{SignalRow, WaitRow, WaitState};
use flowstone_engine::waits::{actions, roles};
use flowstone_engine::{WaitReport, codec};
use flowstone_lang::value::Value;
use serde_json::json;

use super::values::{instant, stored_json};

/// Returns a wait as JSON. The names of the fields are stable.
pub fn wait_json(wait: &WaitRow) -> serde_json::Value {
    let details = codec::decode(&wait.details).unwrap_or(Value::Nil);
    json!({
        "id": wait.id,
        "run": wait.run.as_str(),
        "flow": wait.flow,
        "step": wait.path,
        "key": wait.key,
        "state": state(wait),
        "opened": instant(wait.opened_ms),
        "deadline": wait.deadline_ms.map(instant),
        "actions": actions(&details),
        "roles": roles(&details),
        "event": wait.event.as_ref().map(|event| json!({
            "name": event.name,
            "key": event.key,
            "path": event.path.as_deref().map(stored_json),
        })),
        "webhook": wait.webhook,
        "digest": wait.digest,
        "details": stored_json(&wait.details),
        "payload": wait.payload.as_deref().map(stored_json),
        "decidedBy": wait.decided_by,
        "decidedAt": wait.decided_ms.map(instant),
    })
}

/// Returns a wait with its token and what was refused as JSON. The names of the fields are stable.
pub fn wait_report_json(report: &WaitReport) -> serde_json::Value {
    let mut wait = wait_json(&report.row);
    let refused: Vec<_> = report.refused.iter().map(signal_json).collect();
    if let Some(fields) = wait.as_object_mut() {
        fields.insert("token".into(), json!(report.token));
        fields.insert("refusedSignals".into(), json!(refused));
    }
    wait
}

/// Returns a signal that no wait took as JSON. The names of the fields are stable.
pub fn signal_json(signal: &SignalRow) -> serde_json::Value {
    json!({
        "event": signal.event,
        "key": signal.key,
        "dedup": signal.dedup,
        "payload": stored_json(&signal.payload),
        "by": signal.by,
        "at": instant(signal.at_ms),
        "refusedBy": signal.refused.as_ref().map(|(wait, _)| wait),
        "reason": signal.refused.as_ref().map(|(_, why)| why),
    })
}

/// Describes the state of a wait.
pub fn state(wait: &WaitRow) -> &'static str {
    match (wait.state, wait.ending) {
        (WaitState::Open, _) => "open",
        (_, Some(ending)) => ending.name(),
        (WaitState::Completed, None) => "answered",
        (WaitState::Closed, None) => "closed",
    }
}
