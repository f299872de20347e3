//! A run with its steps, and one step with all that is known of it.

use flowstone_engine::json::to_json;
use flowstone_engine::ports::Durability;
use flowstone_engine::{
    Attempt, CompensationReport, CostLine, LogLine, RunReport, StepDetails, StepReport,
};
use serde_json::json;

use super::conversations::conversation_json;
use super::errors::failure_json;
use super::runs::{place_json, row_json};
use super::values::{instant, stored_json};
use super::waits::wait_json;

/// Returns a run with its steps as JSON. The names of the fields are stable.
pub fn run_report_json(shown: &RunReport) -> serde_json::Value {
    let mut run = row_json(&shown.row);
    let steps: Vec<_> = shown.steps.iter().map(step_json).collect();
    let lines: Vec<_> = shown.lines.iter().map(line_json).collect();
    let waits: Vec<_> = shown.waits.iter().map(wait_json).collect();
    if let Some(fields) = run.as_object_mut() {
        if let Some(failure) = &shown.failure {
            fields.insert("error".into(), failure_json(failure));
        }
        fields.insert("costMicros".into(), json!(shown.cost_micros));
        fields.insert("queue".into(), json!(shown.queue.as_ref().map(place_json)));
        let durability = match shown.durability {
            Durability::Full => "full",
            Durability::Relaxed => "relaxed",
        };
        fields.insert("durability".into(), json!(durability));
        fields.insert("steps".into(), json!(steps));
        let children: Vec<_> = shown.children.iter().map(row_json).collect();
        fields.insert("children".into(), json!(children));
        let compensations: Vec<_> = shown.compensations.iter().map(compensation_json).collect();
        fields.insert("undone".into(), json!(compensations));
        let conversations = shown.conversations();
        let conversations: Vec<_> = conversations.iter().map(conversation_json).collect();
        fields.insert("conversations".into(), json!(conversations));
        fields.insert("log".into(), json!(lines));
        fields.insert("waits".into(), json!(waits));
    }
    run
}

/// Returns one step of a run as JSON. The names of the fields are stable.
pub fn step_details_json(details: &StepDetails) -> serde_json::Value {
    let mut step = step_json(&details.step);
    if let Some(fields) = step.as_object_mut() {
        let request = details.request.as_deref();
        let request = match details.is_whole {
            true => request.map(stored_json),
            false => request.map(|text| json!(text)),
        };
        fields.insert("request".into(), json!(request));
        fields.insert("requestIsWhole".into(), json!(details.is_whole));
        let place = details
            .place
            .as_ref()
            .map(|place| json!({"file": place.file, "line": place.line, "column": place.column}));
        fields.insert("place".into(), json!(place));
        let waits: Vec<_> = details.waits.iter().map(wait_json).collect();
        fields.insert("waits".into(), json!(waits));
    }
    step
}

fn step_json(step: &StepReport) -> serde_json::Value {
    json!({
        "path": step.path,
        "type": step.kind,
        "packaged": step.packaged,
        "title": step.title,
        "depth": step.depth,
        "status": step.status.name(),
        "attempts": step.attempts,
        "tries": step.tries.iter().map(try_json).collect::<Vec<_>>(),
        "inDoubt": step.in_doubt,
        "error": step.error,
        "errorData": step.error_data.as_deref().map(stored_json),
        "costs": step.costs.iter().map(cost_json).collect::<Vec<_>>(),
        "startedAt": instant(step.started_ms),
        "completedAt": step.ended_ms.map(instant),
        "millis": step.ended_ms.map(|ended| (ended - step.started_ms).max(0)),
        "request": step.request,
        "resultBytes": step.result_bytes,
        "result": step.result.as_deref().map(stored_json),
        "notification": step.notification.as_deref().map(stored_json),
    })
}

fn compensation_json(compensation: &CompensationReport) -> serde_json::Value {
    json!({
        "path": compensation.path,
        "what": compensation.what,
        "done": compensation.is_done,
        "message": compensation.message,
    })
}

fn try_json(attempt: &Attempt) -> serde_json::Value {
    json!({
        "number": attempt.number,
        "startedAt": instant(attempt.started_ms),
        "endedAt": attempt.ended_ms.map(instant),
        "error": attempt.error,
        "againAt": attempt.again_ms.map(instant),
    })
}

fn cost_json(cost: &CostLine) -> serde_json::Value {
    json!({
        "label": cost.label,
        "unit": cost.unit,
        "quantity": cost.quantity,
        "micros": cost.micros,
        "problem": cost.problem,
    })
}

fn line_json(line: &LogLine) -> serde_json::Value {
    json!({
        "at": instant(line.at_ms),
        "what": line.what,
        "line": to_json(&line.line).unwrap_or_default(),
    })
}
