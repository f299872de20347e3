//! `flowstone resources`: everything with a `res://` name. One file per subcommand.

mod delete;
mod get;
pub mod list;
mod read;
pub mod render;
mod search_index;
mod table;
mod upload;
mod url;
pub mod workflow;

use flowstone_engine::ports::{ResourceRow, SearchTarget};
use flowstone_engine::{Engine, EngineError};

use super::args::{Home, Resources, ResourcesCommand, ResourcesOutput};
use super::exit::Exit;
use super::home::Project;
use super::outcome::of_engine_error;
use super::report::Report;
use super::runtime::Runtime;
use super::{App, Open, output, search};
pub use upload::{references, upload_file};

/// Performs the command.
pub fn run(args: &Resources, app: &dyn App) -> Exit {
    let (done, output) = match &args.command {
        ResourcesCommand::Delete(args) => (delete::run(args, app), &args.one.output),
        ResourcesCommand::Get(args) => (get::run(args, app), &args.one.output),
        ResourcesCommand::List(args) => (list::run(args, app), &args.output),
        ResourcesCommand::Read(args) => (read::run(args, app), &args.one.output),
        ResourcesCommand::Search(args) => {
            return search::run(args, app, &[SearchTarget::Resources]);
        }
        ResourcesCommand::SearchIndex(args) => {
            let done = search_index::run(args, app);
            return ended(done, search_index::is_asked_as_json(args));
        }
        ResourcesCommand::Table(args) => return table::run(args, app),
        ResourcesCommand::Upload(args) => (upload::run(args, app), &args.output),
        ResourcesCommand::Url(args) => (url::run(args, app), &args.output),
        ResourcesCommand::Workflow(args) => (workflow::run(args, app), workflow::output_of(args)),
    };
    ended(done, output.json)
}

fn ended(done: Result<Exit, Report>, as_json: bool) -> Exit {
    done.unwrap_or_else(|report| {
        output::failure(&report, as_json);
        Exit::Failed
    })
}

/// Opens the engine and queries it.
fn ask<T>(
    app: &dyn App,
    home: &Home,
    open: Open,
    question: impl AsyncFnOnce(&Engine) -> Result<T, Report>,
) -> Result<T, Report> {
    Runtime::start()?.block_on(async {
        let engine = app.open(&Project::find(home), open)?;
        question(&engine).await
    })
}

/// Like [`ask`], for queries that only the engine answers.
fn ask_engine<T>(
    app: &dyn App,
    output: &ResourcesOutput,
    open: Open,
    question: impl AsyncFnOnce(&Engine) -> Result<T, EngineError>,
) -> Result<T, Report> {
    ask(app, &output.home, open, async |engine| {
        let answer = question(engine).await;
        answer.map_err(|error| of_engine_error(&error))
    })
}

/// Resolves the name of a resource.
async fn find(engine: &Engine, uri: &str) -> Result<ResourceRow, Report> {
    let found = engine.live_resource(uri).await;
    found.map_err(|error| of_engine_error(&error))
}
