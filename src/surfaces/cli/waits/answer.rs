//! The subcommands that answer waits, and then resume the runs.

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::Target;
use flowstone_engine::{Answered, Answering, Caller, Engine, EngineError, Remark};
use flowstone_lang::value::Value;
use serde_json::json;

use crate::cli::args::{
    Answer, WaitsApprove, WaitsCancel, WaitsComplete, WaitsEvent, WaitsReject, WaitsSignal,
};
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::outcome::{exit, in_json, of_engine_error, tell};
use crate::cli::report::Report;
use crate::cli::run::watched;
use crate::cli::runtime::Runtime;
use crate::cli::{App, Open, input, output};

/// The person who answers, if no name is given: anyone who may use the database.
const LOCAL: &str = "local";

pub(super) fn approve(args: &WaitsApprove, app: &dyn App) -> Result<Exit, Report> {
    let value = match args.value.as_deref().map(value).transpose() {
        Ok(value) => value,
        Err(report) => return Ok(misspelt(&report, &args.answer)),
    };
    let remark = Remark {
        text: args.comment.clone(),
        value,
        ..Remark::default()
    };
    let how = answering(&args.answer, args.digest.clone());
    perform(&args.answer, app, async |engine| {
        engine.decide_wait(&args.id, true, remark, how).await
    })
}

pub(super) fn reject(args: &WaitsReject, app: &dyn App) -> Result<Exit, Report> {
    let remark = Remark {
        text: args.reason.clone(),
        ..Remark::default()
    };
    let how = answering(&args.answer, args.digest.clone());
    perform(&args.answer, app, async |engine| {
        engine.decide_wait(&args.id, false, remark, how).await
    })
}

pub(super) fn cancel(args: &WaitsCancel, app: &dyn App) -> Result<Exit, Report> {
    let how = answering(&args.answer, None);
    perform(&args.answer, app, async |engine| {
        engine
            .cancel_wait(&args.id, args.reason.as_deref(), how)
            .await
    })
}

pub(super) fn complete(args: &WaitsComplete, app: &dyn App) -> Result<Exit, Report> {
    let how = Answering {
        dedup: args.dedup.clone(),
        keep: args.keep,
        ..answering(&args.answer, args.digest.clone())
    };
    let target = Target::Name(args.id.clone());
    give(&args.answer, app, target, &args.value, how)
}

pub(super) fn signal(args: &WaitsSignal, app: &dyn App) -> Result<Exit, Report> {
    let how = Answering {
        dedup: args.dedup.clone(),
        keep: true,
        ..answering(&args.answer, None)
    };
    let target = Target::Name(args.key.clone());
    give(&args.answer, app, target, &args.value, how)
}

pub(super) fn event(args: &WaitsEvent, app: &dyn App) -> Result<Exit, Report> {
    let how = Answering {
        dedup: args.dedup.clone(),
        keep: true,
        ..answering(&args.answer, None)
    };
    let target = Target::Event {
        name: args.name.clone(),
        key: args.key.clone(),
    };
    give(&args.answer, app, target, &args.value, how)
}

fn give(
    args: &Answer,
    app: &dyn App,
    target: Target,
    text: &str,
    how: Answering,
) -> Result<Exit, Report> {
    let value = match value(text) {
        Ok(value) => value,
        Err(report) => return Ok(misspelt(&report, args)),
    };
    perform(args, app, async |engine| {
        engine.answer_waits(target, &value, how).await
    })
}

fn value(text: &str) -> Result<Value, Report> {
    input::read(text, "--value")
}

fn misspelt(report: &Report, args: &Answer) -> Exit {
    output::failure(report, args.show.json);
    Exit::Usage
}

fn answering(args: &Answer, digest: Option<String>) -> Answering {
    Answering {
        caller: Caller {
            name: args.caller.clone().or_else(|| Some(LOCAL.to_owned())),
            roles: args
                .roles
                .iter()
                .map(|role| role.trim_start_matches(':').to_owned())
                .collect(),
        },
        digest,
        ..Answering::default()
    }
}

/// Delivers the answer, and resumes the runs that waited for it.
fn perform(
    args: &Answer,
    app: &dyn App,
    answer: impl AsyncFnOnce(&Engine) -> Result<Answered, EngineError>,
) -> Result<Exit, Report> {
    Runtime::start()?.block_on(async {
        let project = Project::with(&args.home, &args.limits, &args.permits);
        let engine = app.open(&project, Open::OrMake)?;
        let answered = answer(&engine)
            .await
            .map_err(|error| of_engine_error(&error))?;
        if let Answered::Partly { refused, .. } = &answered {
            for (wait, why) in refused {
                output::note(&format!("{wait} stays open: {why}"));
            }
        }
        match &answered {
            Answered::Runs(runs) | Answered::Partly { runs, .. } if !args.no_resume => {
                go_on(&engine, runs, args).await
            }
            Answered::Runs(runs) | Answered::Partly { runs, .. } => {
                let ids: Vec<&str> = runs.iter().map(RunId::as_str).collect();
                let words = format!(
                    "answered; resume the run with: flowstone runs resume {}",
                    ids.join(" ")
                );
                acknowledge(args, &words, &ids);
                Ok(Exit::Completed)
            }
            Answered::Kept => {
                acknowledge(args, "no wait is open for it yet; it is kept", &[]);
                Ok(Exit::Completed)
            }
            Answered::Duplicate => {
                acknowledge(args, "it was delivered before; nothing was done", &[]);
                Ok(Exit::Completed)
            }
        }
    })
}

/// Executes the answered runs and the parents that wait for them, one after another. The worst of their outcomes is
/// that of the command. A run that another process executes continues there.
async fn go_on(engine: &Engine, runs: &[RunId], args: &Answer) -> Result<Exit, Report> {
    let mut worst = Exit::Completed;
    let mut reports = Vec::new();
    for run in runs {
        let (observer, options) = watched(engine, &args.show);
        let executed = engine.execute_with_parents(run, observer, options).await;
        let executed = match executed {
            Ok(executed) => executed,
            Err(EngineError::Held { owner, .. }) => {
                let words = format!("answered; another process ({owner}) continues the run {run}");
                match args.show.json {
                    true => {
                        reports.push(json!({"ok": true, "run": run.as_str(), "message": words}))
                    }
                    false => acknowledge(args, &words, &[]),
                }
                continue;
            }
            Err(error) => return Err(of_engine_error(&error)),
        };
        for (run, outcome) in &executed {
            worst = worst.worse(match args.show.json {
                true => exit(outcome),
                false => tell(run, outcome, false),
            });
            reports.push(in_json(run, outcome));
        }
    }
    if args.show.json {
        match reports.pop() {
            Some(one) if reports.is_empty() => output::json(&one),
            Some(last) => {
                reports.push(last);
                let ok = reports.iter().all(|run| run["ok"] == json!(true));
                output::json(&json!({"ok": ok, "runs": reports}));
            }
            None => output::json(&json!({"ok": true, "runs": []})),
        }
    }
    Ok(worst)
}

fn acknowledge(args: &Answer, words: &str, runs: &[&str]) {
    if args.show.json {
        output::json(&json!({"ok": true, "message": words, "runs": runs}));
    } else if !args.show.quiet {
        output::note(words);
    }
}
