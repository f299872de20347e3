//! Prints the outcome of executing a run: the result on standard output, messages on standard error, and an exit code.

use flowstone_engine::EngineError;
use flowstone_engine::ids::RunId;
use flowstone_engine::json::to_exact_json;
use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::ports::{RunStatus, StoreError};
use flowstone_lang::value::Value;
use serde_json::{Map, json};

use super::exit::Exit;
use super::interrupt::Printing;
use super::output;
use super::pretty::pretty;
use super::queue::place_text;
use super::report::Report;
pub use super::waits::how_to_answer;
use crate::json::{failure_json, place_json, wait_json};
pub use crate::json::{of_failure, on_line};

/// Maximum number of waits that are listed with the command that answers them.
const MOST_WAITS: usize = 5;
/// Maximum number of runs ahead in the queue that are listed.
const MOST_AHEAD: usize = 3;

/// Reports the outcome of a run.
pub fn tell(run: &RunId, outcome: &RunOutcome, as_json: bool) -> Exit {
    let _printing = matches!(outcome, RunOutcome::Completed(_)).then(Printing::begin);
    if as_json {
        output::json(&in_json(run, outcome));
        return exit(outcome);
    }
    match outcome {
        RunOutcome::Completed(Value::Text(text)) => output::data(text),
        RunOutcome::Completed(value) => output::data(&pretty(value)),
        RunOutcome::Failed(failure) => {
            output::report(&of_failure(failure).note(format!("run {run}")));
        }
        RunOutcome::Waiting { reason, waits, .. } => {
            output::note(&format!("run {run} waits: {reason}"));
            for wait in waits.iter().take(MOST_WAITS) {
                output::note(&format!("  answer {}", how_to_answer(wait)));
            }
            if let Some(more) = waits.len().checked_sub(MOST_WAITS).filter(|more| *more > 0) {
                output::note(&format!("  and {more} more: flowstone waits list"));
            }
            if waits.is_empty() {
                output::note(&format!("  resume it with: flowstone runs resume {run}"));
            }
        }
        RunOutcome::Cancelled { reason, status } => {
            output::note(&format!("run {run} is {}: {reason}", status.name()));
        }
        RunOutcome::Stuck { reason } => {
            output::note(&format!("run {run} could not be compensated: {reason}"));
            output::note(&format!("  try again with: flowstone runs resume {run}"));
            output::note(&format!(
                "  or end it with: flowstone runs cancel {run} --force"
            ));
        }
        RunOutcome::Queued { place } => {
            output::note(&format!("run {run} is {}", place_text(place)));
            for ahead in place.behind.iter().take(MOST_AHEAD) {
                output::note(&format!("  look at {ahead}: flowstone runs show {ahead}"));
                output::note(&format!("    resume it: flowstone runs resume {ahead}"));
                output::note(&format!("    or end it: flowstone runs cancel {ahead}"));
            }
            output::note(&format!(
                "  then wait for its turn: flowstone runs resume {run}"
            ));
        }
        RunOutcome::Interrupted => output::note(&format!(
            "run {run} is suspended; resume it with: flowstone runs resume {run}"
        )),
    }
    exit(outcome)
}

/// Reports the outcomes of a run and of the parents that resumed with it. JSON contains only the run itself.
pub fn show_all(outcomes: &[(RunId, RunOutcome)], as_json: bool) -> Exit {
    let count = if as_json { 1 } else { outcomes.len() };
    outcomes
        .iter()
        .take(count)
        .fold(Exit::Completed, |worst, (run, outcome)| {
            worst.worse(tell(run, outcome, as_json))
        })
}

/// Returns the exit code for an outcome.
pub fn exit(outcome: &RunOutcome) -> Exit {
    match outcome {
        RunOutcome::Completed(_) => Exit::Completed,
        RunOutcome::Failed(_) | RunOutcome::Stuck { .. } => Exit::Failed,
        RunOutcome::Waiting { .. } | RunOutcome::Queued { .. } => Exit::Waiting,
        RunOutcome::Cancelled { .. } => Exit::Cancelled,
        RunOutcome::Interrupted => Exit::Interrupted,
    }
}

/// Returns the JSON object about a run's end. The names of the fields are stable.
pub fn in_json(run: &RunId, outcome: &RunOutcome) -> serde_json::Value {
    let mut fields = Map::new();
    let is_good = !matches!(
        outcome,
        RunOutcome::Failed(_) | RunOutcome::Cancelled { .. } | RunOutcome::Stuck { .. }
    );
    fields.insert("ok".into(), json!(is_good));
    fields.insert("run".into(), json!(run.as_str()));
    let (status, name, value) = match outcome {
        RunOutcome::Completed(value) => ("completed", "result", value_json(value)),
        RunOutcome::Failed(failure) => ("failed", "error", failure_json(failure)),
        RunOutcome::Waiting { waits, .. } => {
            let waits: Vec<_> = waits.iter().map(wait_json).collect();
            ("waiting", "waits", json!(waits))
        }
        RunOutcome::Cancelled { reason, status } => (status.name(), "reason", json!(reason)),
        RunOutcome::Stuck { reason } => {
            let status = RunStatus::FailedCompensating.name();
            (status, "reason", json!(reason))
        }
        RunOutcome::Queued { place } => ("queued", "queue", place_json(place)),
        RunOutcome::Interrupted => ("interrupted", "reason", json!("Ctrl-C")),
    };
    fields.insert("status".into(), json!(status));
    fields.insert(name.into(), value);
    fields.into()
}

fn value_json(value: &Value) -> serde_json::Value {
    to_exact_json(value).unwrap_or_else(|_| json!(pretty(value)))
}

/// Reports an error of the engine.
pub fn of_engine_error(error: &EngineError) -> Report {
    let mut report = Report::error(error.code(), error.to_string());
    if let Some(place) = error.place() {
        report = on_line(report, place);
    }
    match error.hint() {
        Some(hint) => report.hint(hint),
        None => report,
    }
}

/// Reports why a store cannot be used.
pub fn of_store_error(error: &StoreError) -> Report {
    let report = Report::error(error.code(), error.to_string());
    match error.hint() {
        Some(hint) => report.hint(hint),
        None => report,
    }
}
