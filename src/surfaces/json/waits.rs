//! Waits and signals. Only a report contains the token of a wait.

use flowstone_engine::ports::{SignalRow, WaitRow, WaitState};
use flowstone_engine::waits::{actions, roles};
use flowstone_engine::{WaitReport, codec};
use flowstone_lang::value::Value;
use serde::Serialize;
use serde_json::{Value as Json, json};
use utoipa::ToSchema;

use super::values::{Values, instant, object};

/// What a run waits for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Wait {
    id: String,
    run: String,
    flow: String,
    /// The path of its step.
    step: String,
    key: String,
    /// `open`, or how it ended.
    state: &'static str,
    opened: Json,
    deadline: Option<Json>,
    /// The answers that it offers; empty if it takes any.
    actions: Vec<String>,
    /// Roles of which a decision needs one.
    roles: Vec<String>,
    event: Option<WaitEvent>,
    /// The path under which callers answer it.
    webhook: Option<String>,
    /// Changes with what is asked.
    digest: String,
    /// What is asked.
    details: Json,
    /// The answer.
    payload: Option<Json>,
    decided_by: Option<String>,
    decided_at: Option<Json>,
}

/// A wait that was decided, for those who may decide waits and not read them.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecidedWait {
    id: String,
    run: String,
    flow: String,
    key: String,
    /// `open`, or how it ended.
    state: &'static str,
    digest: String,
    decided_by: Option<String>,
    decided_at: Option<Json>,
}

/// The event that answers a wait.
#[derive(Debug, Serialize, ToSchema)]
pub struct WaitEvent {
    name: String,
    key: Option<String>,
    /// Where the key is in the payload.
    path: Option<Json>,
}

/// Returns a wait as JSON. The names of the fields are stable.
pub fn wait_json(wait: &WaitRow) -> Json {
    wait_json_as(wait, Values::Json)
}

/// Returns a wait as JSON, with its values in a form. The names of the fields are stable.
pub fn wait_json_as(wait: &WaitRow, values: Values) -> Json {
    object(&shown_wait(wait, values))
}

/// Returns what a decision says about a wait, without what was asked and answered. The names of the fields are stable.
pub fn decided_wait_json(wait: &WaitRow) -> Json {
    object(&DecidedWait {
        id: wait.id.clone(),
        run: wait.run.to_string(),
        flow: wait.flow.clone(),
        key: wait.key.clone(),
        state: state(wait),
        digest: wait.digest.clone(),
        decided_by: wait.decided_by.clone(),
        decided_at: wait.decided_ms.map(instant),
    })
}

/// Returns what is shown of a wait.
pub fn shown_wait(wait: &WaitRow, values: Values) -> Wait {
    let details = codec::decode(&wait.details).unwrap_or(Value::Nil);
    Wait {
        id: wait.id.clone(),
        run: wait.run.to_string(),
        flow: wait.flow.clone(),
        step: wait.path.clone(),
        key: wait.key.clone(),
        state: state(wait),
        opened: instant(wait.opened_ms),
        deadline: wait.deadline_ms.map(instant),
        actions: actions(&details).iter().map(ToString::to_string).collect(),
        roles: roles(&details).iter().map(ToString::to_string).collect(),
        event: wait.event.as_ref().map(|event| WaitEvent {
            name: event.name.clone(),
            key: event.key.clone(),
            path: event.path.as_deref().map(|text| values.shown(text)),
        }),
        webhook: wait.webhook.clone(),
        digest: wait.digest.clone(),
        details: values.shown(&wait.details),
        payload: wait.payload.as_deref().map(|text| values.shown(text)),
        decided_by: wait.decided_by.clone(),
        decided_at: wait.decided_ms.map(instant),
    }
}

/// Returns a wait with its token and what was refused as JSON. The names of the fields are stable.
pub fn wait_report_json(report: &WaitReport) -> Json {
    let mut wait = wait_json(&report.row);
    let refused: Vec<_> = report.refused.iter().map(signal_json).collect();
    if let Some(fields) = wait.as_object_mut() {
        fields.insert("token".into(), json!(report.token));
        let links = report.links.iter();
        let links: serde_json::Map<String, serde_json::Value> = links
            .map(|(action, link)| (action.clone(), json!(link)))
            .collect();
        fields.insert("links".into(), json!(links));
        fields.insert("refusedSignals".into(), json!(refused));
    }
    wait
}

/// A signal that no wait took.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Signal {
    /// The workspace whose waits may take it.
    workspace: String,
    /// The name of the event, if it is one.
    event: Option<String>,
    key: Option<String>,
    dedup: Option<String>,
    payload: Json,
    by: Option<String>,
    at: Json,
    /// The id of the wait that refused it.
    refused_by: Option<String>,
    /// Why it was refused.
    reason: Option<String>,
}

/// Returns a signal that no wait took as JSON. The names of the fields are stable.
pub fn signal_json(signal: &SignalRow) -> Json {
    signal_json_as(signal, Values::Json)
}

/// Returns a signal as JSON, with its payload in a form. The names of the fields are stable.
pub fn signal_json_as(signal: &SignalRow, values: Values) -> Json {
    let refused = signal.refused.clone().unzip();
    object(&Signal {
        workspace: signal.workspace.clone(),
        event: signal.event.clone(),
        key: signal.key.clone(),
        dedup: signal.dedup.clone(),
        payload: values.shown(&signal.payload),
        by: signal.by.clone(),
        at: instant(signal.at_ms),
        refused_by: refused.0,
        reason: refused.1,
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
