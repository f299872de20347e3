//! `flowstone runs`: shows, resumes, ends and moves runs. One file per subcommand.

mod cancel;
mod diff;
mod events;
mod export;
pub mod feed;
pub mod fork;
mod gc;
mod import;
mod list;
pub mod replay;
mod resume;
mod show;
mod spans;
pub mod url;
pub mod verify;
mod watch;

pub use gc::size;
pub use list::RunTable;

use flowstone_engine::ports::{RunRow, RunStatus};
use flowstone_engine::{Engine, EngineError};

use super::args::{Gc, Home, Runs, RunsCommand};
use super::exit::Exit;
use super::home::Project;
use super::outcome::of_engine_error;
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
