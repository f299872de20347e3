//! `flowstone runs`: shows, resumes, ends and moves runs. One file per subcommand.

mod cancel;
mod diff;
mod events;
mod export;
pub mod fork;
mod gc;
mod import;
mod list;
pub mod replay;
mod resume;
mod show;
pub mod verify;
mod watch;

pub use gc::size;

use flowstone_engine::ports::{RunRow, RunStatus};
use flowstone_engine::{Engine, EngineError};
use serde_json::json;

use super::args::{Gc, Home, Runs, RunsCommand};
use super::exit::Exit;
use super::home::Project;
use super::outcome::{instant, of_engine_error, stored_json};
use super::report::Report;
use super::runtime::Runtime;
use super::{App, Open, output};

/// Performs the command.
pub fn run(args: &Runs, app: &dyn App) -> Exit {
    let (done, as_json) = match &args.command {
        RunsCommand::Cancel(args) => (cancel::run(args, app), args.json),
        RunsCommand::Diff(args) => (diff::run(args, app), args.json),
        RunsCommand::Events(args) => (events::run(args, app), args.json),
        RunsCommand::Export(args) => (export::run(args, app), args.json),
        RunsCommand::Fork(args) => (fork::run(args, app), args.show.json),
        RunsCommand::Gc(args) => (gc::run(args, app), args.json),
        RunsCommand::Import(args) => (import::run(args, app), args.json),
        RunsCommand::List(args) => (list::run(args, app), args.json),
        RunsCommand::Replay(args) => (replay::run(args, app), args.json),
        RunsCommand::Resume(args) => (resume::run(args, app), args.show.json),
        RunsCommand::Show(args) => (show::run(args, app), args.json),
        RunsCommand::Verify(args) => (verify::run(args, app), args.json),
        RunsCommand::Watch(args) => (watch::run(args, app), false),
    };
    done.unwrap_or_else(|report| {
        output::failure(&report, as_json);
        Exit::Failed
    })
}

/// Performs `gc`, which is also a top-level command.
pub fn collect_garbage(args: &Gc, app: &dyn App) -> Exit {
    gc::run(args, app).unwrap_or_else(|report| {
        output::failure(&report, args.json);
        Exit::Failed
    })
}

/// Queries the engine of an existing project.
fn ask<T>(
    app: &dyn App,
    home: &Home,
    question: impl AsyncFnOnce(&Engine) -> Result<T, EngineError>,
) -> Result<T, Report> {
    Runtime::start()?.block_on(async {
        let engine = app.open(&Project::find(home), Open::Existing)?;
        let answer = question(&engine).await;
        answer.map_err(|error| of_engine_error(&error))
    })
}

/// The status of a run that may start, but that no process has taken: a worker or `runs resume` does.
pub const NOT_BEGUN: &str = "not begun";

/// Describes the state of a run as far as its row tells.
pub fn status_words(run: &RunRow) -> String {
    if let Some(reason) = &run.quarantine {
        return format!("quarantined: {reason}");
    }
    if run.held {
        return "on hold: imported while unfinished".to_owned();
    }
    match (run.status, &run.wait_reason) {
        (RunStatus::Running, _) if !run.executing && !run.begun => NOT_BEGUN.to_owned(),
        (RunStatus::Running, _) if !run.executing => "interrupted".to_owned(),
        (RunStatus::Waiting, Some(reason)) => format!("waiting: {reason}"),
        (status, _) => status.name().to_owned(),
    }
}

/// Returns a run's row as JSON. The names of the fields are stable.
pub fn row_json(run: &RunRow) -> serde_json::Value {
    json!({
        "id": run.id.as_str(),
        "flow": run.flow,
        "status": run.status.name(),
        "program": run.program,
        "parent": run.parent.as_ref().map(|parent| parent.run.as_str()),
        "root": run.parent.as_ref().map(|parent| parent.root.as_str()),
        "depth": run.parent.as_ref().map_or(0, |parent| parent.depth),
        "pass": run.pass,
        "deadline": run.deadline_ms.map(instant),
        "driven": run.executing,
        "begun": run.begun,
        "waitReason": run.wait_reason,
        "due": run.due_ms.map(instant),
        "createdAt": instant(run.created_ms),
        "updatedAt": instant(run.updated_ms),
        "endedAt": run.ended_ms.map(instant),
        "held": run.held,
        "quarantine": run.quarantine,
        "externalId": run.external_id,
        "invocation": run.invocation,
        "key": run.key,
        "priority": run.priority,
        "startedBy": run.started_by,
        "origin": run.origin.as_ref().map(|id| id.as_str()),
        "parent": run.parent.as_ref().map(|parent| parent.run.as_str()),
        "pass": run.pass,
        "cancelRequested": run.cancel_requested,
        "program": run.program,
        "journal": run.pruned_ms.is_none(),
        "input": stored_json(&run.input),
        "result": run.result.as_deref().map(stored_json),
        "error": run.error.as_deref().map(stored_json),
    })
}
