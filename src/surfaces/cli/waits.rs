//! `flowstone waits`: what runs wait for, and answering it.

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::WaitFilter;
use flowstone_engine::{Answered, Engine};
use serde_json::json;

use super::args::{Waits, WaitsCommand, WaitsComplete, WaitsList};
use super::exit::Exit;
use super::home::Project;
use super::outcome::{how_to_answer, instant, of_engine_error, tell, wait_json};
use super::report::Report;
use super::run::{drive_options, observer};
use super::runtime::Runtime;
use super::table::table;
use super::{App, Open, input, output};

/// Performs the command.
pub fn run(args: &Waits, app: &dyn App) -> Exit {
    let (done, as_json) = match &args.command {
        WaitsCommand::Complete(args) => (complete(args, app), args.show.json),
        WaitsCommand::List(args) => (list(args, app), args.json),
    };
    done.unwrap_or_else(|report| {
        output::failure(&report, as_json);
        Exit::Failed
    })
}

fn list(args: &WaitsList, app: &dyn App) -> Result<Exit, Report> {
    let project = Project::find(&args.home);
    let waits = Runtime::start()?.block_on(async {
        if !project.home.is_dir() {
            return Ok(Vec::new());
        }
        let engine = app.open(&project, Open::Existing)?;
        let waits = engine.list_waits(WaitFilter::default()).await;
        waits.map_err(|error| of_engine_error(&error))
    })?;
    if args.json {
        let waits: Vec<_> = waits.iter().map(wait_json).collect();
        output::json(&json!({"ok": true, "waits": waits}));
        return Ok(Exit::Completed);
    }
    if waits.is_empty() {
        output::note("nothing waits");
        return Ok(Exit::Completed);
    }
    let rows = waits.iter().map(|wait| {
        let deadline = wait.deadline_ms.map(instant);
        let deadline = deadline.as_ref().and_then(|deadline| deadline.as_str());
        vec![
            wait.id.clone(),
            wait.flow.clone(),
            wait.run.to_string(),
            wait.key.clone(),
            deadline.unwrap_or("-").to_owned(),
        ]
    });
    output::data(&table(&["wait", "flow", "run", "key", "until"], rows));
    if let Some(wait) = waits.first() {
        output::note(&format!("answer {}", how_to_answer(wait)));
    }
    Ok(Exit::Completed)
}

fn complete(args: &WaitsComplete, app: &dyn App) -> Result<Exit, Report> {
    let value = match input::read(&args.value, "--value") {
        Ok(value) => value,
        Err(report) => {
            output::failure(&report, args.show.json);
            return Ok(Exit::Usage);
        }
    };
    let project = Project::find(&args.home);
    Runtime::start()?.block_on(async {
        let engine = app.open(&project, Open::Existing)?;
        let answered = engine
            .complete_wait(&args.id, &value, args.keep)
            .await
            .map_err(|error| of_engine_error(&error))?;
        match answered {
            Answered::Duplicate => {
                acknowledge(args, "this was answered before; nothing was done");
                Ok(Exit::Completed)
            }
            Answered::Runs(runs) | Answered::Partly { runs, .. } if !args.no_resume => {
                go_on(&engine, &runs, args).await
            }
            Answered::Runs(runs) | Answered::Partly { runs, .. } => {
                let runs: Vec<&str> = runs.iter().map(RunId::as_str).collect();
                acknowledge(
                    args,
                    &format!(
                        "answered; go on with: flowstone runs resume {}",
                        runs.join(" ")
                    ),
                );
                Ok(Exit::Completed)
            }
            Answered::Kept => {
                acknowledge(
                    args,
                    &format!("nothing waits for {} yet; the answer is kept", args.id),
                );
                Ok(Exit::Completed)
            }
        }
    })
}

/// Drives the runs that were answered, one after another; the worst of their ends is the command's.
async fn go_on(engine: &Engine, runs: &[RunId], args: &WaitsComplete) -> Result<Exit, Report> {
    let mut exit = Exit::Completed;
    for run in runs {
        let outcome = engine
            .drive(run, observer(&args.show), drive_options())
            .await
            .map_err(|error| of_engine_error(&error))?;
        exit = exit.worse(tell(run, &outcome, args.show.json));
    }
    Ok(exit)
}

fn acknowledge(args: &WaitsComplete, words: &str) {
    if args.show.json {
        output::json(&json!({"ok": true, "message": words}));
    } else if !args.show.quiet {
        output::note(words);
    }
}
