//! Which model a test used, and whose connection.

use flowstone_engine::test_runs::ModelEvidence;
use flowstone_flow::definition::Flow;
use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;
use flowstone_project::connections::ConnectionReport;
use serde_json::{Value as Json, json};

/// What executes the turns of agents.
const HARNESS: &str = "flowstone";

/// Returns `{harness, model, provider, connection_mode}` of the model that answered first.
pub fn resolved(
    model: Option<&ModelEvidence>,
    (flow, settings): (&Flow, &Value),
    connections: &[ConnectionReport],
) -> Json {
    let mode = model.map_or("none", |model| mode(model, (flow, settings), connections));
    json!({
        "harness": HARNESS,
        "model": model.and_then(|model| model.model.clone()),
        "provider": model.and_then(|model| model.provider.clone()),
        "connection_mode": mode,
    })
}

/// Returns whose connection it is: `own`, `author`, `environment` or `none`.
fn mode(
    model: &ModelEvidence,
    (flow, settings): (&Flow, &Value),
    connections: &[ConnectionReport],
) -> &'static str {
    let name = model.connection.as_ref().or(model.provider.as_ref());
    let Some(name) = name else {
        return "none";
    };
    let slot = flow.requirement(name);
    let provided_by = slot.and_then(|slot| slot.get("provided-by"));
    if provided_by.and_then(name_of).as_deref() == Some("author") {
        return "author";
    }
    let described = settings.get("connections").and_then(|all| all.get(name));
    let report = connections.iter().find(|report| report.name == *name);
    let is_bound = report.is_some_and(|report| report.bound_to.is_some());
    if described.is_some() || is_bound {
        return "own";
    }
    let needs_nothing =
        report.is_some_and(|report| report.secret.is_none() && report.login.is_none());
    match needs_nothing {
        true => "none",
        false => "environment",
    }
}
