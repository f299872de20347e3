//! `flowstone jobs`: lists jobs, and claims, reports on and ends them for workers without HTTP.

mod list;
mod work;

use flowstone_engine::{Engine, EngineError};

use super::args::{Home, Jobs, JobsCommand};
use super::exit::Exit;
use super::home::Project;
use super::outcome::of_engine_error;
use super::report::Report;
use super::runtime::Runtime;
use super::{App, Open, output};
pub use list::{list_table, print_job};
pub use work::{claim_table, print_end};

/// Performs the command.
pub fn run(args: &Jobs, app: &dyn App) -> Exit {
    let (done, as_json) = match &args.command {
        JobsCommand::Claim(args) => (work::claim(args, app), args.json),
        JobsCommand::Complete(args) => (work::complete(args, app), args.json),
        JobsCommand::Fail(args) => (work::fail(args, app), args.json),
        JobsCommand::List(args) => (list::list(args, app), args.json),
        JobsCommand::Progress(args) => (work::progress(args, app), args.json),
        JobsCommand::Show(args) => (list::show(args, app), args.json),
    };
    done.unwrap_or_else(|report| {
        output::failure(&report, as_json);
        Exit::Failed
    })
}

/// Asks the engine of an existing project.
fn ask<T>(
    home: &Home,
    app: &dyn App,
    question: impl AsyncFnOnce(&Engine) -> Result<T, EngineError>,
) -> Result<T, Report> {
    let project = Project::find(home);
    Runtime::start()?.block_on(async {
        let engine = app.open(&project, Open::Existing)?;
        let answer = question(&engine).await;
        answer.map_err(|error| of_engine_error(&error))
    })
}
