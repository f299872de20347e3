//! A run with its steps, and one step with all that is known of it.

use flowstone_engine::codec;
use flowstone_engine::json::to_json;
use flowstone_engine::ports::Durability;
use flowstone_engine::{
    Attempt as Try, CompensationReport, CostLine, LogLine as Line, RunReport, StepDetails,
    StepReport, StepStatus,
};
use flowstone_lang::diagnostic::Diagnostic;
use flowstone_lang::value::Value;
use serde::Serialize;
use serde_json::{Value as Json, json};
use utoipa::ToSchema;

use super::conversations::{Conversation, conversation};
use super::errors::{TextPiece, error_text, failure_json, of_failure, on_line, printed};
use super::runs::{QueueEntry, queue_entry, row_json_as};
use super::values::{Values, instant, object};
use super::waits::{Wait, shown_wait};

/// What a run has beside its row.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunParts {
    /// The cost of all steps by their `:metering`, in millionths of a dollar.
    cost_micros: i64,
    queue: Option<QueueEntry>,
    /// `full` or `relaxed`.
    durability: &'static str,
    steps: Vec<Step>,
    /// The runs that it called. Those out of reach have an id and a status only.
    children: Vec<Json>,
    /// Compensations, in the order in which they ran.
    undone: Vec<Compensation>,
    conversations: Vec<Conversation>,
    log: Vec<LogLine>,
    waits: Vec<Wait>,
    /// With `values=edn`: the error as people read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_text: Option<Vec<TextPiece>>,
    /// With `values=edn`: the whole data of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_data: Option<String>,
}

/// A step of a run.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    path: String,
    r#type: String,
    /// The packaged step by which the flow called it.
    packaged: Option<String>,
    title: Option<String>,
    /// The number of branches around it.
    depth: usize,
    status: &'static str,
    attempts: u32,
    tries: Vec<Attempt>,
    in_doubt: bool,
    error: Option<String>,
    error_data: Option<Json>,
    costs: Vec<Cost>,
    started_at: Json,
    completed_at: Option<Json>,
    millis: Option<i64>,
    /// The request: its beginning as EDN text, or the whole of it.
    request: Option<Json>,
    result_bytes: Option<usize>,
    result: Option<Json>,
    /// How people were notified about the wait.
    notification: Option<Json>,
}

/// What one step has beside its row.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepParts {
    request: Option<Json>,
    request_is_whole: bool,
    place: Option<SourcePlace>,
    waits: Vec<Wait>,
    /// With `values=edn`: the error as people read it, with its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_text: Option<Vec<TextPiece>>,
}

/// A place in a flow's text.
#[derive(Debug, Serialize, ToSchema)]
pub struct SourcePlace {
    file: String,
    line: u32,
    column: u32,
}

/// An attempt of a step.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attempt {
    number: u32,
    started_at: Json,
    ended_at: Option<Json>,
    error: Option<String>,
    /// When it is tried again.
    again_at: Option<Json>,
}

/// What a step cost.
#[derive(Debug, Serialize, ToSchema)]
pub struct Cost {
    label: Option<String>,
    unit: String,
    quantity: f64,
    /// Millionths of a dollar.
    micros: i64,
    /// Why the quantity is not known.
    problem: Option<String>,
}

/// A compensation of a run that did not complete.
#[derive(Debug, Serialize, ToSchema)]
pub struct Compensation {
    path: String,
    what: String,
    done: bool,
    message: Option<String>,
}

/// A line of a run's log.
#[derive(Debug, Serialize, ToSchema)]
pub struct LogLine {
    at: Json,
    /// `flow/log` or `flow/emit`.
    what: String,
    line: Json,
}

/// Returns a run with its steps as JSON, with values in a form. The names of the fields are stable.
pub fn run_report_json(shown: &RunReport, values: Values) -> Json {
    let mut run = row_json_as(&shown.row, values);
    let conversations = shown.conversations();
    let conversations = conversations.iter();
    let failure = shown.failure.as_ref().filter(|_| values == Values::Edn);
    let has_data = |data: &Value| data.as_map().is_some_and(|data| !data.is_empty());
    let data = failure.map(|it| &it.exception.data);
    let parts = object(&RunParts {
        cost_micros: shown.cost_micros,
        queue: shown.queue.as_ref().map(queue_entry),
        durability: match shown.durability {
            Durability::Full => "full",
            Durability::Relaxed => "relaxed",
        },
        steps: shown.steps.iter().map(|it| step(it, values)).collect(),
        children: shown
            .children
            .iter()
            .map(|it| row_json_as(it, values))
            .collect(),
        undone: shown.compensations.iter().map(compensation).collect(),
        conversations: conversations.map(|it| conversation(it, values)).collect(),
        log: shown.lines.iter().map(|it| line(it, values)).collect(),
        waits: shown
            .waits
            .iter()
            .map(|it| shown_wait(it, values))
            .collect(),
        error_text: failure.map(|failure| error_text(&of_failure(failure))),
        error_data: data
            .filter(|data| has_data(data))
            .map(|data| codec::encode(data).unwrap_or_else(|_| printed(data))),
    });
    if let (Some(fields), Json::Object(parts)) = (run.as_object_mut(), parts) {
        if let Some(failure) = &shown.failure {
            fields.insert("error".into(), failure_json(failure));
        }
        fields.extend(parts);
    }
    run
}

/// Returns one step of a run as JSON, with values in a form. The names of the fields are stable.
pub fn step_details_json(details: &StepDetails, values: Values) -> Json {
    let mut shown = object(&step(&details.step, values));
    let request = details.request.as_deref();
    let parts = object(&StepParts {
        request: match details.is_whole {
            true => request.map(|text| values.shown(text)),
            false => request.map(|text| json!(text)),
        },
        request_is_whole: details.is_whole,
        place: details.place.as_ref().map(|place| SourcePlace {
            file: place.file.clone(),
            line: place.line,
            column: place.column,
        }),
        waits: details
            .waits
            .iter()
            .map(|it| shown_wait(it, values))
            .collect(),
        error_text: step_error(details).filter(|_| values == Values::Edn),
    });
    if let (Some(fields), Json::Object(parts)) = (shown.as_object_mut(), parts) {
        fields.extend(parts);
    }
    shown
}

/// Returns the error of a step that failed, with the place of the step in the flow.
fn step_error(details: &StepDetails) -> Option<Vec<TextPiece>> {
    let is_failed = details.step.status == StepStatus::Failed;
    let place = details.place.as_ref().filter(|_| is_failed)?;
    let error = details.step.error.as_deref()?;
    let report = Diagnostic::error("", error.to_owned());
    Some(error_text(&on_line(report, place)))
}

fn step(step: &StepReport, values: Values) -> Step {
    let shown = |text: &str| values.shown(text);
    Step {
        path: step.path.clone(),
        r#type: step.kind.clone(),
        packaged: step.packaged.clone(),
        title: step.title.clone(),
        depth: step.depth,
        status: step.status.name(),
        attempts: step.attempts,
        tries: step.tries.iter().map(attempt).collect(),
        in_doubt: step.in_doubt,
        error: step.error.clone(),
        error_data: step.error_data.as_deref().map(shown),
        costs: step.costs.iter().map(cost).collect(),
        started_at: instant(step.started_ms),
        completed_at: step.ended_ms.map(instant),
        millis: step.ended_ms.map(|ended| (ended - step.started_ms).max(0)),
        request: step.request.as_ref().map(|text| json!(text)),
        result_bytes: step.result_bytes,
        result: step.result.as_deref().map(shown),
        notification: step.notification.as_deref().map(shown),
    }
}

fn compensation(compensation: &CompensationReport) -> Compensation {
    Compensation {
        path: compensation.path.clone(),
        what: compensation.what.clone(),
        done: compensation.is_done,
        message: compensation.message.clone(),
    }
}

fn attempt(attempt: &Try) -> Attempt {
    Attempt {
        number: attempt.number,
        started_at: instant(attempt.started_ms),
        ended_at: attempt.ended_ms.map(instant),
        error: attempt.error.clone(),
        again_at: attempt.again_ms.map(instant),
    }
}

fn cost(cost: &CostLine) -> Cost {
    Cost {
        label: cost.label.clone(),
        unit: cost.unit.clone(),
        quantity: cost.quantity,
        micros: cost.micros,
        problem: cost.problem.clone(),
    }
}

fn line(line: &Line, values: Values) -> LogLine {
    LogLine {
        at: instant(line.at_ms),
        what: line.what.clone(),
        line: match values {
            Values::Json => to_json(&line.line).unwrap_or_default(),
            Values::Edn => json!(codec::encode(&line.line).unwrap_or_else(|_| printed(&line.line))),
        },
    }
}
