//! `flowstone run`: a flow file, to its result.

use std::path::Path;
use std::rc::Rc;

use flowstone_engine::codec;
use flowstone_engine::flow::{LoadedFlow, coerce_input};
use flowstone_engine::ids::RunId;
use flowstone_engine::observer::{NoObserver, Observer};
use flowstone_engine::ports::{RunFilter, RunStatus};
use flowstone_engine::{DriveOptions, Engine, EngineError, StartOptions};
use flowstone_lang::value::Value;
use serde_json::json;

use super::args::{Run, Show};
use super::check::of_findings;
use super::exit::Exit;
use super::home::Project;
use super::interrupt::Interrupt;
use super::outcome::{of_engine_error, tell};
use super::progress::Terminal;
use super::report::{Report, Severity};
use super::runtime::Runtime;
use super::{App, Open};
use super::{input, output};

/// Runs the flow, and tells what became of it.
pub fn run(args: &Run, app: &dyn App) -> Exit {
    let input = match &args.input {
        None => Value::map([]),
        Some(text) => match input::read(text, "--input") {
            Ok(value) => value,
            Err(report) => {
                output::failure(&report, args.show.json);
                return Exit::Usage;
            }
        },
    };
    let done = Runtime::start().and_then(|runtime| runtime.block_on(drive(args, app, input)));
    done.unwrap_or_else(|report| {
        output::failure(&report, args.show.json);
        Exit::Failed
    })
}

async fn drive(args: &Run, app: &dyn App, input: Value) -> Result<Exit, Report> {
    let engine = app.open(&Project::find(&args.home), Open::OrMake)?;
    let loaded = load(&engine, args)?;
    let started = start(&engine, &loaded, input, args);
    let run = started.await.map_err(|error| of_engine_error(&error))?;
    if args.detach {
        return Ok(tell_left(&run, args.show.json));
    }
    let driven = engine.drive(&run, observer(&args.show), drive_options());
    let outcome = driven.await.map_err(|error| of_engine_error(&error))?;
    let exit = tell(&run, &outcome, args.show.json);
    engine.collect_garbage_daily().await;
    Ok(exit)
}

/// Tells which run a worker is to drive.
pub fn tell_left(run: &RunId, as_json: bool) -> Exit {
    if as_json {
        output::json(&json!({"ok": true, "run": run.as_str(), "status": "left"}));
    } else {
        output::data(run.as_str());
    }
    Exit::Completed
}

/// Reads and checks the file. Warnings are shown at once; of errors, the first is the answer and the others are shown.
fn load(engine: &Engine, args: &Run) -> Result<LoadedFlow, Report> {
    load_file(engine, &args.file, args.show.json)
}

/// Reads and checks a file; warnings are left out where nobody reads them.
pub fn load_file(engine: &Engine, file: &Path, quietly: bool) -> Result<LoadedFlow, Report> {
    let session = engine.session();
    let name = file.display().to_string();
    let checked = engine.check(&session, file, &name);
    let mut first = None;
    for report in of_findings(&session, &checked.findings) {
        if first.is_none() && report.severity == Severity::Error {
            first = Some(report);
        } else if !quietly {
            output::report(&report);
        }
    }
    match (first, checked.loaded) {
        (None, Some(loaded)) => Ok(loaded),
        (Some(report), _) => Err(report),
        (None, None) => Err(Report::error("E0910", format!("{name} holds no flow"))),
    }
}

/// Finds the run to go on with, or adds one.
async fn start(
    engine: &Engine,
    loaded: &LoadedFlow,
    input: Value,
    args: &Run,
) -> Result<RunId, EngineError> {
    if let Some(run) = unfinished(engine, loaded, &input, args).await? {
        output::note(&format!(
            "going on with run {run}, which was interrupted (--new starts another)"
        ));
        return Ok(run);
    }
    let options = StartOptions {
        invocation: args.invocation.clone(),
        is_left: args.detach,
        ..StartOptions::with_input(input)
    };
    engine.start(loaded, options).await
}

/// Finds an interrupted run of the same flow with the same input: the same command goes on with it.
async fn unfinished(
    engine: &Engine,
    loaded: &LoadedFlow,
    input: &Value,
    args: &Run,
) -> Result<Option<RunId>, EngineError> {
    if args.new {
        return Ok(None);
    }
    let input = coerce_input(&loaded.flow, args.invocation.as_deref(), input)?;
    let input = codec::encode(&input)?;
    let filter = RunFilter {
        statuses: vec![RunStatus::Running],
        flow: Some(loaded.flow.slug.to_string()),
        ..RunFilter::default()
    };
    let runs = engine.list_runs(filter).await?;
    let same = runs
        .into_iter()
        .find(|run| !run.driven && run.program == loaded.program.hash && run.input == input);
    Ok(same.map(|run| run.id))
}

/// Returns what shows the progress of a run.
pub fn observer(show: &Show) -> Rc<dyn Observer> {
    if show.quiet {
        Rc::new(NoObserver)
    } else {
        Rc::new(Terminal::new())
    }
}

/// Returns options under which Ctrl-C suspends a run.
pub fn drive_options() -> DriveOptions {
    DriveOptions {
        interrupt: Interrupt::listen().for_engine(),
        ..DriveOptions::default()
    }
}
