//! `flowstone runs`: shows, resumes, ends and moves runs. One file per subcommand.

mod cancel;
pub mod diff;
pub mod events;
pub mod export;
pub mod feed;
pub mod fork;
mod gc;
mod import;
mod list;
pub mod replay;
mod resume;
pub mod show;
pub mod spans;
pub mod url;
pub mod verify;
pub mod watch;

pub(super) use diff::describe as diff_page;
pub(super) use events::line as event_line;
pub use gc::size;
pub use list::RunTable;
pub(super) use list::listed;
pub(super) use replay::{describe as replayed_page, in_json as replayed_json};
pub(super) use show::{one_step::page as step_page, page};

use flowstone_engine::ports::RunStatus;
use flowstone_engine::{Engine, EngineError};
use serde_json::Value;

use super::args::{Gc, Home, INTERRUPTED, Runs, RunsCommand};
use super::exit::Exit;
use super::home::Project;
use super::outcome::of_engine_error;
use super::report::Report;
use super::rows::{maybe, text};
use super::runtime::Runtime;
use super::{App, Open, output};

/// Performs the command.
pub fn run(args: &Runs, app: &dyn App) -> Exit {
    let (done, as_json) = match &args.command {
        RunsCommand::Cancel(args) => (cancel::run(args, app), args.json),
        RunsCommand::Diff(args) => (diff::run(args, app), args.json),
        RunsCommand::Events(args) => (events::run(args, app), args.json),
        RunsCommand::Export(args) => (export::run(args, app), args.json),
        RunsCommand::Feed(args) => (feed::run(args, app), args.json),
        RunsCommand::Fork(args) => (fork::run(args, app), args.show.json),
        RunsCommand::Gc(args) => (gc::run(args, app), args.json),
        RunsCommand::Import(args) => (import::run(args, app), args.json),
        RunsCommand::List(args) => (list::run(args, app), args.json),
        RunsCommand::Replay(args) => (replay::run(args, app), args.json),
        RunsCommand::Resume(args) => (resume::run(args, app), args.show.json),
        RunsCommand::Show(args) => (show::run(args, app), args.json),
        RunsCommand::Spans(args) => (spans::run(args, app), args.json),
        RunsCommand::Url(args) => (url::run(args, app), args.json),
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

/// Describes the state of a run that is JSON.
fn state_text(run: &Value) -> String {
    let is = |name: &str| run[name] == true;
    if let Some(reason) = maybe(run, "quarantine") {
        return format!("quarantined: {reason}");
    }
    if is("held") {
        return "on hold: imported while unfinished".to_owned();
    }
    let status = text(run, "status");
    // The row of an inaccessible child does not tell whether a process executes it.
    let is_executed = run["driven"] != false;
    match (RunStatus::from_name(&status), maybe(run, "waitReason")) {
        (Some(RunStatus::Running), _) if !is_executed && !is("begun") => NOT_BEGUN.to_owned(),
        (Some(RunStatus::Running), _) if !is_executed => INTERRUPTED.to_owned(),
        (Some(RunStatus::Waiting), Some(reason)) => format!("waiting: {reason}"),
        _ => status,
    }
}
