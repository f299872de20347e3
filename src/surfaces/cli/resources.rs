//! `flowstone resources`: all that has a `res://` name. One file a verb.

mod get;
mod list;
mod search_index;
mod told;

use flowstone_engine::ports::{Clock as _, ResourceRow, SearchTarget, SystemClock};
use flowstone_engine::{Engine, EngineError};

use super::args::{Home, Resources, ResourcesCommand};
use super::exit::Exit;
use super::home::Project;
use super::outcome::of_engine_error;
use super::report::Report;
use super::runtime::Runtime;
use super::{App, Open, output, search};

/// Performs the command.
pub fn run(args: &Resources, app: &dyn App) -> Exit {
    let (done, as_json) = match &args.command {
        ResourcesCommand::Get(args) => (get::run(args, app), is_json(args.json)),
        ResourcesCommand::List(args) => (list::run(args, app), is_json(args.json)),
        ResourcesCommand::Search(args) => {
            return search::run(args, app, &[SearchTarget::Resources]);
        }
        ResourcesCommand::SearchIndex(args) => (
            search_index::run(args, app),
            search_index::is_asked_as_json(args),
        ),
    };
    done.unwrap_or_else(|report| {
        output::failure(&report, as_json);
        Exit::Failed
    })
}

/// People read tables on a terminal; whatever reads a pipe gets JSON.
fn is_json(asked: bool) -> bool {
    asked || !output::is_terminal()
}

/// Opens the engine and asks it.
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

/// Finds what a name stands for, also where it is gone.
async fn find(engine: &Engine, uri: &str) -> Result<ResourceRow, Report> {
    let resources = &engine.stores().resources;
    let found = resources.find(uri, SystemClock.now_ms()).await;
    let found = found.map_err(|error| of_engine_error(&EngineError::from(error)))?;
    found.ok_or_else(|| {
        Report::error("E0936", format!("there is no resource `{uri}`"))
            .hint("`flowstone resources list` shows what there is")
    })
}
