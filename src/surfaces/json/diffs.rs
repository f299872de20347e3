//! Differences between two runs.

use flowstone_engine::{RunDiff, StepDiff, StepSide, StepVerdict};
use serde_json::{Value, json};

use super::values::stored_json;

/// Returns the differences as JSON. The names of the fields are stable.
pub fn diff_json(diff: &RunDiff, all: bool) -> Value {
    let steps = diff.steps.iter();
    let steps: Vec<Value> = steps
        .filter(|step| all || step.verdict != StepVerdict::Same)
        .map(step_json)
        .collect();
    let texts = |pair: &(String, String)| json!({"a": pair.0, "b": pair.1});
    json!({
        "same": diff.is_same(),
        "a": diff.a.id.as_str(),
        "b": diff.b.id.as_str(),
        "flow": diff.flow,
        "input": diff.input.as_ref().map(|(a, b)| json!({"a": stored_json(a), "b": stored_json(b)})),
        "steps": steps,
        "end": diff.end.as_ref().map(texts),
    })
}

fn step_json(step: &StepDiff) -> Value {
    json!({
        "path": step.path,
        "difference": step.verdict.name(),
        "a": step.a.as_ref().map(side_json),
        "b": step.b.as_ref().map(side_json),
    })
}

fn side_json(side: &StepSide) -> Value {
    json!({
        "type": side.what,
        "request": side.request,
        "failed": side.failed,
        "result": side.end.as_deref().map(stored_json),
    })
}
