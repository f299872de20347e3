//! `flowstone runs replay`: evaluates a run again from its journal.

use std::path::Path;

use clap::Args;
use flowstone_engine::archive::Archive;
use flowstone_engine::ports::RunStatus;
use flowstone_engine::{EngineError, Replayed};
use flowstone_flow::bindings::Bindings;
use serde_json::json;

use crate::cli::args::Home;
use crate::cli::exit::Exit;
use crate::cli::home::{ExchangesWith, Project};
use crate::cli::outcome::of_engine_error;
use crate::cli::report::{Report, unreadable};
use crate::cli::runtime::Runtime;
use crate::cli::{App, Open, output};

/// Evaluates a run again from its journal, and compares its requests and its end
///
/// Nothing is performed and nothing is written. A file that `runs export` wrote needs no project.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  flowstone runs replay r3
  flowstone runs replay report.run")]
pub struct RunsReplay {
    /// The run's id, the beginning of the id, or an exported file
    pub run: String,

    #[command(flatten)]
    pub home: Home,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Performs the command.
pub fn run(args: &RunsReplay, app: &dyn App) -> Result<Exit, Report> {
    let file = Path::new(&args.run);
    let replayed = if file.is_file() {
        from_file(file, app)?
    } else {
        vec![from_store(args, app)?]
    };
    if args.json {
        let runs: Vec<_> = replayed.iter().map(in_json).collect();
        output::json(&json!({"ok": true, "runs": runs}));
    } else {
        for run in &replayed {
            output::data(&describe(run));
        }
    }
    Ok(Exit::Completed)
}

fn from_store(args: &RunsReplay, app: &dyn App) -> Result<Replayed, Report> {
    let project = Project::find(&args.home);
    Runtime::start()?.block_on(async {
        let engine = app.open(&project, Open::Existing)?;
        let replayed = async {
            let row = engine.find_run(&args.run).await?;
            engine.replay(&row.id).await
        };
        replayed.await.map_err(|error| of_engine_error(&error))
    })
}

fn from_file(file: &Path, app: &dyn App) -> Result<Vec<Replayed>, Report> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(&name, &error))?;
    let archive = Archive::read(&text).map_err(|error| of_engine_error(&error.into()))?;
    let folder = tempfile::tempdir().map_err(|error| unreadable("a temporary folder", &error))?;
    let project = Project {
        root: folder.path().to_path_buf(),
        home: folder.path().join("home"),
        exchanges: ExchangesWith::Servers,
        bindings: Bindings::default(),
        max_memory: None,
        permits: Default::default(),
    };
    Runtime::start()?.block_on(async {
        let engine = app.open(&project, Open::OrMake)?;
        let replayed: Result<_, EngineError> = engine.replay_archive(&archive).await;
        replayed.map_err(|error| of_engine_error(&error))
    })
}

/// Returns what a replay found as a line.
pub(in crate::cli) fn describe(run: &Replayed) -> String {
    let steps = match run.answered {
        1 => "1 step".to_owned(),
        count => format!("{count} steps"),
    };
    let end = match (run.row.status, &run.at[..]) {
        (RunStatus::Completed | RunStatus::Failed, _) => "the same end".to_owned(),
        (status, []) => format!("it is {}", status.name()),
        (status, at) => format!("it is {} at {}", status.name(), at.join(", ")),
    };
    format!(
        "run {} of {}: {steps} answered from the journal, {end}\n",
        run.row.id, run.row.flow
    )
}

/// Returns what a replay found as JSON. The names of the fields are stable.
pub(in crate::cli) fn in_json(run: &Replayed) -> serde_json::Value {
    json!({
        "run": run.row.id.as_str(),
        "flow": run.row.flow,
        "status": run.row.status.name(),
        "answered": run.answered,
        "at": run.at,
    })
}
