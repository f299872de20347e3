//! `flowstone runs import`: adds a run from a file.

use flowstone_engine::archive::{Archive, ImportOptions};
use flowstone_engine::ids::RunId;
use flowstone_engine::{Engine, EngineError};
use flowstone_lang::value::Value;
use serde_json::json;

use crate::cli::args::RunsImport;
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::outcome::of_engine_error;
use crate::cli::report::Report;
use crate::cli::runtime::Runtime;
use crate::cli::{App, Open, ask, input, output};

/// Imports the runs of the file.
pub(super) fn run(args: &RunsImport, app: &dyn App) -> Result<Exit, Report> {
    let text = input::text(&args.file)?;
    let archive = Archive::read(&text).map_err(|error| of_engine_error(&error.into()))?;
    let options = ImportOptions {
        new_id: args.new_id,
    };
    let given = args.secrets.as_deref();
    let given = given
        .map(|text| input::read(text, "--secrets"))
        .transpose()?;
    let (imported, missing) = Runtime::start()?.block_on(async {
        let engine = app.open(&Project::find(&args.home), Open::OrMake)?;
        let taken = async {
            let imported = engine.import_runs(archive, options).await?;
            let missing = secrets(&engine, &imported.runs, given).await?;
            Ok((imported, missing))
        };
        taken.await.map_err(|error| of_engine_error(&error))
    })?;
    let runs: Vec<&str> = imported.runs.iter().map(|run| run.as_str()).collect();
    if args.json {
        output::json(&json!({
            "ok": true,
            "runs": runs,
            "over": imported.is_over,
            "missingSecrets": missing,
        }));
        return Ok(Exit::Completed);
    }
    output::note(&format!("imported {}", runs.join(", ")));
    if let (false, Some(run)) = (imported.is_over, runs.first()) {
        output::note(&format!(
            "the run is not finished; make sure that it runs nowhere else, then: flowstone runs resume {run}"
        ));
    }
    if let (false, Some(run)) = (missing.is_empty(), runs.first()) {
        let fields: Vec<String> = missing
            .iter()
            .map(|name| format!(":{name} \"...\""))
            .collect();
        output::note(&format!(
            "an export leaves secrets out; give them with: flowstone runs resume {run} --secrets '{{{}}}'",
            fields.join(" ")
        ));
    }
    Ok(Exit::Completed)
}

/// Gives the runs the secrets that their export left out, from the command line or typed at the terminal. Returns the
/// names of those that are still missing for the first run.
async fn secrets(
    engine: &Engine,
    runs: &[RunId],
    given: Option<Value>,
) -> Result<Vec<String>, EngineError> {
    let mut names = Vec::new();
    for run in runs {
        names.extend(engine.secrets_left_out(run).await?);
    }
    names.sort();
    names.dedup();
    let asked = || match names.is_empty() {
        true => None,
        false => ask::secrets(&names),
    };
    let Some(given) = given.or_else(asked) else {
        return Ok(names);
    };
    engine.give_secrets(runs, &given).await?;
    Ok(Vec::new())
}
