//! Runs, and their places in the queue.

use flowstone_engine::StartedRun;
use flowstone_engine::ids::RunId;
use flowstone_engine::outcome::code_of;
use flowstone_engine::ports::{QueuePlace, RunRow, RunStatus, RunSummary as Summary};
use flowstone_engine::registry::Target;
use flowstone_lang::diagnostic::Diagnostic;
use serde::Serialize;
use serde_json::{Map, Value as Json};
use utoipa::ToSchema;

use super::reports::{Finding, finding_of};
use super::values::{Values, instant, object, stored_json};

/// A run, without its steps.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    id: String,
    flow: String,
    /// `queued`, `running`, `waiting`, `failed-compensating`, `completed`, `failed`, `cancelled`, `terminated` or
    /// `timed-out`.
    status: &'static str,
    /// The digest of its program.
    program: String,
    /// The number of its version in the registry; null for a flow of a file.
    version: Option<i64>,
    /// The pointer that named the version: `draft` or `live`.
    target: Option<&'static str>,
    /// The run that called it.
    parent: Option<String>,
    /// The run at the top of its calls.
    root: Option<String>,
    /// The number of runs above it.
    depth: u32,
    /// How often it was continued as new.
    pass: i64,
    deadline: Option<Json>,
    /// A process executes it now.
    driven: bool,
    /// A process has executed it before.
    begun: bool,
    /// What it waits for, in words.
    wait_reason: Option<String>,
    due: Option<Json>,
    created_at: Json,
    updated_at: Json,
    ended_at: Option<Json>,
    /// It was imported, and is not executed before somebody resumes it.
    held: bool,
    /// Why nobody executes it.
    quarantine: Option<String>,
    /// The id that its starter gave it.
    external_id: Option<String>,
    invocation: Option<String>,
    /// The value of `:concurrency :key-field`.
    key: Option<String>,
    /// Runs with higher numbers start first.
    priority: i64,
    started_by: String,
    /// The run that it was made from by a fork or an import.
    origin: Option<String>,
    /// It was asked to cancel.
    cancel_requested: bool,
    /// Why it was asked to cancel.
    cancel_reason: Option<String>,
    /// Its journal was not removed.
    journal: bool,
    /// When its journal was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    journal_removed_at: Option<Json>,
    /// With `[secret]` for each secret.
    input: Json,
    result: Option<Json>,
    /// The error, with its `code`: null where the flow itself threw it.
    error: Option<Json>,
}

/// What those may know about a run who may act on it and not read it.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunState {
    id: String,
    flow: String,
    /// As that of a run.
    status: &'static str,
}

/// A run of a list.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunSummary {
    id: String,
    external_id: Option<String>,
    flow: String,
    /// As that of a run.
    version: Option<i64>,
    /// As that of a run.
    target: Option<&'static str>,
    status: &'static str,
    driven: bool,
    begun: bool,
    held: bool,
    quarantine: Option<String>,
    wait_reason: Option<String>,
    due: Option<Json>,
    cancel_requested: bool,
    created_at: Json,
    updated_at: Json,
    ended_at: Option<Json>,
    invocation: Option<String>,
    key: Option<String>,
    priority: i64,
    started_by: String,
    origin: Option<String>,
    parent: Option<String>,
    pass: i64,
    journal: bool,
}

/// What a list says about a run beside its row.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunMarks {
    /// A step of it was under way when a process ended, and nobody has said yet whether it was done.
    in_doubt: bool,
    queue: Option<QueueEntry>,
}

/// The place of a run in the queue.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueEntry {
    waits_for: &'static str,
    position: u32,
    /// The runs that it waits for.
    behind: Vec<String>,
    due: Option<Json>,
}

/// How a run was started.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StartMarks {
    concurrency_decision: &'static str,
    concurrency_key: Option<Json>,
    /// The runs that were cancelled in favour of this one.
    replaced: Vec<String>,
    /// Inputs that the flow does not declare; left out if the flow declares all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<Finding>>,
}

/// Returns a run's row as JSON. The names of the fields are stable.
pub fn row_json(run: &RunRow) -> Json {
    row_json_as(run, Values::Json)
}

/// Returns a run's row as JSON, with its values in a form. The names of the fields are stable.
pub fn row_json_as(run: &RunRow, values: Values) -> Json {
    let parent = run.parent.as_ref();
    object(&Run {
        id: run.id.to_string(),
        flow: run.flow.clone(),
        status: run.status.name(),
        program: run.program.clone(),
        version: run.version.map(|version| version.number),
        target: run
            .version
            .and_then(|version| version.target)
            .map(Target::name),
        parent: parent.map(|parent| parent.run.to_string()),
        root: parent.map(|parent| parent.root.to_string()),
        depth: parent.map_or(0, |parent| parent.depth),
        pass: run.pass,
        deadline: run.deadline_ms.map(instant),
        driven: run.executing,
        begun: run.begun,
        wait_reason: run.wait_reason.clone(),
        due: run.due_ms.map(instant),
        created_at: instant(run.created_ms),
        updated_at: instant(run.updated_ms),
        ended_at: run.ended_ms.map(instant),
        held: run.held,
        quarantine: run.quarantine.clone(),
        external_id: run.external_id.clone(),
        invocation: run.invocation.clone(),
        key: run.key.clone(),
        priority: run.priority,
        started_by: run.started_by.clone(),
        origin: run.origin.as_ref().map(ToString::to_string),
        cancel_requested: run.cancel_requested.is_some(),
        cancel_reason: run.cancel_requested.clone(),
        journal: run.pruned_ms.is_none(),
        journal_removed_at: run.pruned_ms.map(instant),
        input: values.shown(&run.input),
        result: run.result.as_deref().map(|text| values.shown(text)),
        error: run.error.as_deref().map(|text| failed_with(text, values)),
    })
}

/// Returns why a run failed. As JSON, it has the code of the error.
fn failed_with(text: &str, values: Values) -> Json {
    let mut shown = values.shown(text);
    if let Some(members) = shown.as_object_mut() {
        members.insert("code".to_owned(), code_of(text).into());
    }
    shown
}

/// Returns what may be known about a run without reading it. The names of the fields are stable.
pub fn run_state_json(run: &RunRow) -> Json {
    object(&RunState {
        id: run.id.to_string(),
        flow: run.flow.clone(),
        status: run.status.name(),
    })
}

/// Returns a run of a list as JSON. The names of the fields are stable.
pub fn summary_json(run: &Summary) -> Json {
    object(&RunSummary {
        id: run.id.to_string(),
        external_id: run.external_id.clone(),
        flow: run.flow.clone(),
        version: run.version.map(|version| version.number),
        target: run
            .version
            .and_then(|version| version.target)
            .map(Target::name),
        status: run.status.name(),
        driven: run.executing,
        begun: run.begun,
        held: run.held,
        quarantine: run.quarantine.clone(),
        wait_reason: run.wait_reason.clone(),
        due: run.due_ms.map(instant),
        cancel_requested: run.is_cancel_requested,
        created_at: instant(run.created_ms),
        updated_at: instant(run.updated_ms),
        ended_at: run.ended_ms.map(instant),
        invocation: run.invocation.clone(),
        key: run.key.clone(),
        priority: run.priority,
        started_by: run.started_by.clone(),
        origin: run.origin.as_ref().map(ToString::to_string),
        parent: run.parent.as_ref().map(|parent| parent.run.to_string()),
        pass: run.pass,
        journal: run.pruned_ms.is_none(),
    })
}

/// A run that was started together with others.
#[derive(Debug, Serialize, ToSchema)]
pub struct BulkRun {
    /// Its place in the request.
    index: usize,
    id: String,
    status: &'static str,
    /// Inputs that the flow does not declare; left out if the flow declares all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Vec<Finding>>,
}

/// Returns a run that was started together with others as JSON. The names of the fields are stable.
pub fn bulk_run_json(
    index: usize,
    (run, status): (&RunId, RunStatus),
    warnings: &[Diagnostic],
) -> Json {
    object(&BulkRun {
        index,
        id: run.to_string(),
        status: status.name(),
        warnings: findings(warnings),
    })
}

/// Adds to a run of a list what its row alone does not contain. The names of the fields are stable.
pub fn marked_json(mut run: Json, is_in_doubt: bool, place: Option<&QueuePlace>) -> Json {
    let marks = object(&RunMarks {
        in_doubt: is_in_doubt,
        queue: place.map(queue_entry),
    });
    if let (Some(fields), Json::Object(marks)) = (run.as_object_mut(), marks) {
        fields.extend(marks);
    }
    run
}

/// Returns the place of a run in the queue as JSON. The names of the fields are stable.
pub fn place_json(place: &QueuePlace) -> Json {
    object(&queue_entry(place))
}

/// Returns what is shown of the place of a run in the queue.
pub fn queue_entry(place: &QueuePlace) -> QueueEntry {
    QueueEntry {
        waits_for: place.waits_for.name(),
        position: place.position,
        behind: place.behind.iter().map(ToString::to_string).collect(),
        due: place.due_ms.map(instant),
    }
}

/// Adds to the object about a run how it was started. The names of the fields are stable.
pub fn add_decision(fields: &mut Map<String, Json>, started: &StartedRun, warnings: &[Diagnostic]) {
    let marks = object(&StartMarks {
        concurrency_decision: started.decision.name(),
        concurrency_key: started.key.as_deref().map(stored_json),
        replaced: started.replaced.iter().map(ToString::to_string).collect(),
        warnings: findings(warnings),
    });
    if let Json::Object(marks) = marks {
        fields.extend(marks);
    }
}

/// Returns findings; `None` without any.
fn findings(warnings: &[Diagnostic]) -> Option<Vec<Finding>> {
    let findings: Vec<Finding> = warnings.iter().map(finding_of).collect();
    (!findings.is_empty()).then_some(findings)
}
