//! Flows that are served.

use flowstone_engine::catalog::ServedFlow;
use flowstone_engine::json::to_json;
use flowstone_engine::ports::FlowVersion;
use serde_json::{Value, json};

use super::values::instant;

/// Returns a flow of a list as JSON. The names of the fields are stable.
pub fn flow_summary_json(flow: &ServedFlow) -> Value {
    let definition = &flow.loaded.flow.definition;
    let text = |key: &str| {
        definition
            .get(key)
            .and_then(|it| it.as_str().map(|it| it.to_string()))
    };
    json!({
        "slug": flow.slug,
        "name": text("name"),
        "description": text("description"),
        "file": flow.name,
        "tags": flow.labels,
        "version": flow.loaded.program.hash,
    })
}

/// Everything that a caller needs to start the flow. Its code is not part of it.
pub fn flow_json(flow: &ServedFlow) -> Value {
    let mut shown = flow_summary_json(flow);
    let definition = &flow.loaded.flow.definition;
    for key in ["invocations", "schedules"] {
        let value = definition.get(key).and_then(|value| to_json(value).ok());
        shown[key] = json!(value);
    }
    shown
}

/// Returns a version of a flow as JSON. The names of the fields are stable.
pub fn version_json(version: &FlowVersion, is_served: bool) -> Value {
    let is_used = version.runs > 0;
    json!({
        "version": version.program,
        "served": is_served,
        "runs": version.runs,
        "open": version.open,
        "firstRunAt": is_used.then(|| instant(version.first_ms)),
        "lastRunAt": is_used.then(|| instant(version.last_ms)),
    })
}
