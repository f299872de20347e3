//! `flowstone runs import`: a run from a file.

use flowstone_engine::archive::{Archive, ImportOptions};
use serde_json::json;

use crate::cli::args::RunsImport;
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::outcome::of_engine_error;
use crate::cli::report::Report;
use crate::cli::runtime::Runtime;
use crate::cli::{App, Open, input, output};

/// Takes the runs of the file in.
pub(super) fn run(args: &RunsImport, app: &dyn App) -> Result<Exit, Report> {
    let text = input::text(&args.file)?;
    let archive = Archive::read(&text).map_err(|error| of_engine_error(&error.into()))?;
    let options = ImportOptions {
        new_id: args.new_id,
    };
    let imported = Runtime::start()?.block_on(async {
        let engine = app.open(&Project::find(&args.home), Open::OrMake)?;
        let imported = engine.import_runs(archive, options).await;
        imported.map_err(|error| of_engine_error(&error))
    })?;
    let runs: Vec<&str> = imported.runs.iter().map(|run| run.as_str()).collect();
    if args.json {
        output::json(&json!({"ok": true, "runs": runs, "over": imported.is_over}));
        return Ok(Exit::Completed);
    }
    output::note(&format!("imported {}", runs.join(", ")));
    if let (false, Some(run)) = (imported.is_over, runs.first()) {
        output::note(&format!(
            "it is not over; make sure that it goes on nowhere else, then: flowstone runs resume {run}"
        ));
    }
    Ok(Exit::Completed)
}
