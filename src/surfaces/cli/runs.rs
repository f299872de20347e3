//! `flowstone runs`: looking at runs, going on with them, ending them.

use flowstone_engine::ids::RunId;
use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::ports::{Clock, RunFilter, RunRow, RunStatus, SystemClock};
use flowstone_engine::{CancelOutcome, Engine, EngineError};
use serde_json::json;

use super::args::{Runs, RunsCancel, RunsCommand, RunsList, RunsResume};
use super::exit::Exit;
use super::home::Project;
use super::outcome::{exit, in_json, instant, of_engine_error, stored_json, tell};
use super::report::{Report, Shown};
use super::run::{drive_options, observer};
use super::runtime::Runtime;
use super::table::{ago, table};
use super::{App, Open, output, show_run};

/// Performs the command.
pub fn run(args: &Runs, app: &dyn App) -> Exit {
    let (done, as_json) = match &args.command {
        RunsCommand::Cancel(args) => (cancel(args, app), args.json),
        RunsCommand::List(args) => (list(args, app), args.json),
        RunsCommand::Resume(args) => (resume(args, app), args.show.json),
        RunsCommand::Show(args) => (show_run::run(args, app), args.json),
    };
    done.unwrap_or_else(|report| {
        output::failure(&report, as_json);
        Exit::Failed
    })
}

fn list(args: &RunsList, app: &dyn App) -> Result<Exit, Report> {
    let project = Project::find(&args.home);
    let filter = RunFilter {
        statuses: args.status.iter().copied().collect(),
        limit: args.limit,
        ..RunFilter::default()
    };
    let runs = Runtime::start()?.block_on(async {
        if !project.home.is_dir() {
            return Ok(Vec::new());
        }
        let engine = app.open(&project, Open::Existing)?;
        let runs = engine.list_runs(filter).await;
        runs.map_err(|error| of_engine_error(&error))
    })?;
    if args.json {
        let runs: Vec<_> = runs.iter().map(row_json).collect();
        output::json(&json!({"ok": true, "runs": runs}));
    } else if runs.is_empty() {
        output::note("no runs");
    } else {
        let now_ms = SystemClock.now_ms();
        let rows = runs.iter().map(|run| {
            vec![
                run.id.to_string(),
                run.flow.clone(),
                status_words(run),
                ago(now_ms, run.created_ms),
                ago(now_ms, run.updated_ms),
            ]
        });
        output::data(&table(
            &["run", "flow", "status", "started", "changed"],
            rows,
        ));
    }
    Ok(Exit::Completed)
}

/// Says what a run is at, as far as its row tells.
pub fn status_words(run: &RunRow) -> String {
    match (run.status, &run.wait_reason) {
        (RunStatus::Running, _) if !run.driven => "interrupted".to_owned(),
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
        "driven": run.driven,
        "waitReason": run.wait_reason,
        "due": run.due_ms.map(instant),
        "createdAt": instant(run.created_ms),
        "updatedAt": instant(run.updated_ms),
        "input": stored_json(&run.input),
        "result": run.result.as_deref().map(stored_json),
        "error": run.error.as_deref().map(stored_json),
    })
}

fn resume(args: &RunsResume, app: &dyn App) -> Result<Exit, Report> {
    let project = Project::find(&args.home);
    Runtime::start()?.block_on(async {
        let engine = app.open(&project, Open::Existing)?;
        let done = match &args.id {
            Some(id) => resume_one(&engine, id, args).await,
            None => resume_all(&engine, args).await,
        };
        done.map_err(|error| of_engine_error(&error))
    })
}

async fn resume_one(engine: &Engine, id: &str, args: &RunsResume) -> Result<Exit, EngineError> {
    let run = engine.find_run(id).await?.id;
    let outcome = engine
        .drive(&run, observer(&args.show), drive_options())
        .await?;
    Ok(tell(&run, &outcome, args.show.json))
}

async fn resume_all(engine: &Engine, args: &RunsResume) -> Result<Exit, EngineError> {
    let driven = engine
        .resume_all(observer(&args.show), drive_options())
        .await?;
    if args.show.json {
        let runs: Vec<_> = driven
            .iter()
            .map(|(run, outcome)| one_json(run, outcome))
            .collect();
        output::json(&json!({"ok": true, "runs": runs}));
    } else if driven.is_empty() && !args.show.quiet {
        output::note("no run can go on");
    }
    let mut worst = Exit::Completed;
    for (run, outcome) in &driven {
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

fn cancel(args: &RunsCancel, app: &dyn App) -> Result<Exit, Report> {
    let project = Project::find(&args.home);
    let reason = args
        .reason
        .as_deref()
        .unwrap_or("cancelled on the command line");
    let (run, outcome) = Runtime::start()?.block_on(async {
        let engine = app.open(&project, Open::Existing)?;
        let done = cancel_one(&engine, &args.id, reason).await;
        done.map_err(|error| of_engine_error(&error))
    })?;
    let words = match outcome {
        CancelOutcome::Cancelled => "cancelled",
        CancelOutcome::Requested => "asked to cancel; another process drives it",
    };
    if args.json {
        output::json(&json!({"ok": true, "run": run.as_str(), "status": words}));
    } else {
        output::note(&format!("run {run} is {words}"));
    }
    Ok(Exit::Completed)
}

async fn cancel_one(
    engine: &Engine,
    id: &str,
    reason: &str,
) -> Result<(RunId, CancelOutcome), EngineError> {
    let run = engine.find_run(id).await?.id;
    let observer = std::rc::Rc::new(flowstone_engine::observer::NoObserver);
    let outcome = engine.cancel(&run, reason, observer).await?;
    Ok((run, outcome))
}
