//! `flowstone runs resume`: resumes runs.

use flowstone_engine::ids::RunId;
use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::ports::ClaimBy;
use flowstone_engine::{Engine, EngineError, ExecuteOptions};
use flowstone_lang::value::Value;
use serde_json::json;

use crate::cli::args::RunsResume;
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::outcome::{exit, in_json, of_engine_error, show_all, tell};
use crate::cli::report::{Report, Shown};
use crate::cli::run::{load_file, watched};
use crate::cli::runtime::Runtime;
use crate::cli::{App, Open, input, output};

/// Resumes one run, or all runs that can be resumed.
pub(super) fn run(args: &RunsResume, app: &dyn App) -> Result<Exit, Report> {
    let given = args.secrets.as_deref();
    let given = given
        .map(|text| input::read(text, "--secrets"))
        .transpose()?;
    Runtime::start()?.block_on(async {
        let project = Project::with(&args.home, &args.limits, &args.permits);
        let engine = app.open(&project, Open::Existing)?;
        let Some(file) = &args.flow else {
            let resumed = match &args.id {
                Some(id) => resume_one(&engine, id, given.as_ref(), args).await,
                None => resume_all(&engine, args).await,
            };
            return match resumed {
                Ok(exit) => Ok(exit),
                Err(error) => Err(with_secrets_hint(&engine, &error).await),
            };
        };
        let edited = load_file(&engine, file, args.show.json)?;
        let id = args.id.as_deref().unwrap_or_default();
        let adopted = async {
            let run = engine.find_run(id).await?.id;
            engine.adopt(&run, &edited).await?;
            resume_one(&engine, id, given.as_ref(), args).await
        };
        adopted.await.map_err(|error| of_engine_error(&error))
    })
}

async fn resume_one(
    engine: &Engine,
    id: &str,
    given: Option<&Value>,
    args: &RunsResume,
) -> Result<Exit, EngineError> {
    let run = engine.find_run(id).await?.id;
    if let Some(given) = given {
        engine
            .give_secrets(std::slice::from_ref(&run), given)
            .await?;
    }
    let (observer, options) = watched(engine, &args.show);
    let options = ExecuteOptions {
        by: ClaimBy::Name,
        ..options
    };
    let outcomes = engine.execute_with_parents(&run, observer, options).await?;
    Ok(show_all(&outcomes, args.show.json))
}

/// Reports that a run which differs from its journal may have been given a wrong secret.
async fn with_secrets_hint(engine: &Engine, error: &EngineError) -> Report {
    let report = of_engine_error(error);
    let EngineError::Diverged { run, .. } = error else {
        return report;
    };
    let id = RunId::from_text(run.clone());
    let names = engine.secret_inputs(&id).await.unwrap_or_default();
    if names.is_empty() {
        return report;
    }
    let fields: Vec<String> = names
        .iter()
        .map(|name| format!(":{name} \"...\""))
        .collect();
    report.hint(format!(
        "if a secret input was given wrongly, give it again: flowstone runs resume {run} --secrets '{{{}}}'",
        fields.join(" ")
    ))
}

async fn resume_all(engine: &Engine, args: &RunsResume) -> Result<Exit, EngineError> {
    let (observer, options) = watched(engine, &args.show);
    let executed = engine.resume_all(observer, options).await?;
    if args.show.json {
        let runs: Vec<_> = executed
            .iter()
            .map(|(run, outcome)| one_json(run, outcome))
            .collect();
        output::json(&json!({"ok": true, "runs": runs}));
    } else if executed.is_empty() && !args.show.quiet {
        output::note("there are no runs to resume");
    }
    let mut worst = Exit::Completed;
    for (run, outcome) in &executed {
        let exit = match outcome {
            Ok(outcome) if args.show.json => exit(outcome),
            Ok(outcome) => tell(run, outcome, false),
            Err(error) => {
                if !args.show.json {
                    output::report(&of_engine_error(error).note(format!("run {run}")));
                }
                Exit::Failed
            }
        };
        worst = worst.worse(exit);
    }
    Ok(worst)
}

fn one_json(run: &RunId, outcome: &Result<RunOutcome, EngineError>) -> serde_json::Value {
    match outcome {
        Ok(outcome) => in_json(run, outcome),
        Err(error) => {
            json!({"ok": false, "run": run.as_str(), "error": of_engine_error(error).to_json()})
        }
    }
}
