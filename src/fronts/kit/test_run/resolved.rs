//! Which model a test used, and whose connection.

use flowstone_engine::test_runs::ModelEvidence;
use flowstone_flow::definition::Flow;
use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;
use flowstone_project::connections::ConnectionReport;
use flowstone_steps::llm::{BY_ENVIRONMENT, usual_model};
use serde_json::{Value as Json, json};

/// What executes the turns of agents.
const HARNESS: &str = "flowstone";

/// Returns `{harness, model, provider, connection_mode}` of the model that was asked first. What it did not say, because it did not
/// answer, is what its connection leads to.
pub fn resolved(
    model: Option<&ModelEvidence>,
    (flow, settings): (&Flow, &Value),
    connections: &[ConnectionReport],
) -> Json {
    let model = model.map(|model| completed(model, (flow, settings), connections));
    let mode = model
        .as_ref()
        .map_or("none", |model| mode(model, (flow, settings), connections));
    json!({
        "harness": HARNESS,
        "model": model.as_ref().and_then(|model| model.model.clone()),
        "provider": model.as_ref().and_then(|model| model.provider.clone()),
        "connection_mode": mode,
    })
}

/// Returns what is known about a model, with what its connection leads to.
fn completed(
    model: &ModelEvidence,
    (flow, settings): (&Flow, &Value),
    connections: &[ConnectionReport],
) -> ModelEvidence {
    let mut model = model.clone();
    if model.model.is_some() && model.provider.is_some() {
        return model;
    }
    let named = model.connection.clone().or_else(|| model.provider.clone());
    // A request that names neither takes the first provider that the environment has a key for.
    let in_environment = |id: &&&str| {
        let mut known = connections.iter();
        known.any(|it| it.source == "environment" && it.name == **id)
    };
    let named = named.or_else(|| {
        let found = BY_ENVIRONMENT.iter().find(in_environment);
        found.map(|id| (*id).to_owned())
    });
    let usual = named.map(|name| usual_model(flow, settings, &name));
    let usual = usual.unwrap_or_default();
    model.provider = model.provider.or(usual.provider);
    model.model = model.model.or(usual.model);
    model
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
