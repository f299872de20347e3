//! `flowstone steps run`: performs one step in a separate run.

use std::path::Path;

use flowstone_engine::StartOptions;
use flowstone_engine::ids::RunId;
use flowstone_engine::json::{pretty as pretty_json, to_exact_json};
use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::text::nearest;
use flowstone_flow::flow::{LoadedFlow, single};
use flowstone_flow::step::respelled;
use flowstone_lang::value::Value;
use serde_json::json;

use super::find;
use super::preview::{Bounds, at, preview};
use crate::cli::args::{Permits, StepsRun};
use crate::cli::check::of_findings;
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::outcome::{exit, in_json, of_engine_error, tell};
use crate::cli::pretty::pretty;
use crate::cli::report::Report;
use crate::cli::run::{load_file, watched};
use crate::cli::runtime::Runtime;
use crate::cli::{App, Open, input, output};

/// Performs the step and prints its result.
pub(super) fn run(args: &StepsRun, app: &dyn App) -> Result<Exit, Report> {
    let config = input::read(&args.config, "CONFIG")?;
    if config.as_map().is_none() {
        let message = format!("expected a map as the step's config, got {}", config.kind());
        return Err(
            Report::error("E0948", message).hint("such as '{:key \"a\"}' or '{\"key\": \"a\"}'")
        );
    }
    Runtime::start()?.block_on(perform(args, app, config))
}

async fn perform(args: &StepsRun, app: &dyn App, config: Value) -> Result<Exit, Report> {
    // A step typed by a person needs no further permission; a step of a flow has the flow's permissions.
    let project = Project {
        permits: Permits {
            allow_all: args.flow.is_none(),
            ..Permits::default()
        },
        ..Project::find(&args.home)
    };
    let engine = app.open(&project, Open::OrMake)?;
    let around = match &args.flow {
        Some(file) => Some(load_file(&engine, file, args.show.json)?),
        None => None,
    };
    let kind = args.kind.trim_start_matches(':');
    let mut config = match kind.contains('/') {
        true => packaged(around.as_ref(), kind).map(|()| config)?,
        false => respelled(find(engine.steps(), kind)?, &config),
    };
    if let Some(key) = &args.idempotency_key {
        let entries = config.as_map().into_iter().flat_map(|map| map.iter());
        let entries = entries.map(|(key, value)| (key.clone(), value.clone()));
        let named = (Value::keyword("idempotency-key"), Value::from(key.as_str()));
        config = Value::map(entries.chain([named]));
    }
    let session = engine.session();
    let loaded = single(&session, kind, around.as_ref()).map_err(|finding| {
        let reports = of_findings(&session, std::slice::from_ref(&finding));
        let report = reports.into_iter().next();
        report.unwrap_or_else(|| Report::error(finding.code, finding.message))
    })?;
    let given = Value::map([(Value::keyword("config"), config)]);
    let run = engine.start(&loaded, StartOptions::with_input(given)).await;
    let run = run.map_err(|error| of_engine_error(&error))?;
    let (observer, options) = watched(&engine, &args.show);
    let executed = engine.execute(&run, observer, options);
    let outcome = executed.await.map_err(|error| of_engine_error(&error))?;
    let RunOutcome::Completed(value) = &outcome else {
        return Ok(tell(&run, &outcome, args.show.json));
    };
    if let Some(file) = &args.result_file {
        write(file, value)?;
    }
    let part = match &args.result_path {
        Some(path) => at(value, path)?,
        None => value.clone(),
    };
    show(args, &run, part);
    Ok(exit(&outcome))
}

/// Prints the result, or the selected part of it.
fn show(args: &StepsRun, run: &RunId, part: Value) {
    let bounds = Bounds {
        depth: args.preview_depth,
        items: args.preview_items,
        chars: args.preview_chars,
    };
    match (args.show.json, args.full) {
        (true, true) => output::json(&in_json(run, &RunOutcome::Completed(part))),
        (true, false) => {
            let (shown, is_cut) = preview(&part, bounds);
            output::json(&json!({
                "ok": true,
                "run": run.as_str(),
                "status": "completed",
                "resultPreview": {
                    "format": "clojure-value-preview",
                    "value": shown,
                    "truncated": is_cut,
                },
            }));
        }
        (false, true) => output::data(&plain(&part)),
        (false, false) => {
            let (shown, is_cut) = preview(&part, bounds);
            output::data(match &part {
                Value::Text(text) if !is_cut => text,
                _ => &shown,
            });
            if is_cut {
                output::note(
                    "the result is shortened; --full shows all of it, --result-path a part",
                );
            }
        }
    }
}

fn packaged(around: Option<&LoadedFlow>, kind: &str) -> Result<(), Report> {
    let Some(around) = around else {
        let message = format!("`{kind}` is a packaged step, but no flow was given");
        return Err(Report::error("E0946", message).hint("name its flow with --flow FILE"));
    };
    let flow = &around.flow;
    if flow.packaged_step(kind).is_some() {
        return Ok(());
    }
    let names = flow.packaged.iter().map(|step| &*step.id);
    let report = Report::error("E0946", format!("the flow has no packaged step `{kind}`"));
    Err(match nearest(kind, names) {
        Some(near) => report.hint(format!("did you mean `{near}`?")),
        None => report.hint("a flow defines packaged steps under `:steps`"),
    })
}

fn plain(value: &Value) -> String {
    match value {
        Value::Text(text) => text.to_string(),
        value => pretty(value),
    }
}

fn write(file: &Path, value: &Value) -> Result<(), Report> {
    let failed =
        |why: String| Report::error("E0949", format!("cannot write {}: {why}", file.display()));
    let is_json = file.extension().is_some_and(|ending| ending == "json");
    let text = match is_json {
        true => {
            let json = to_exact_json(value).map_err(|error| failed(error.to_string()))?;
            format!("{}\n", pretty_json(&json))
        }
        false => format!("{}\n", pretty(value)),
    };
    std::fs::write(file, text).map_err(|error| failed(error.to_string()))
}
