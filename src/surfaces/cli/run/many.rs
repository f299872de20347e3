//! `flowstone run FLOW --many FILE`: starts a run for each input of a file, all of them or none.

use std::path::Path;

use flowstone_engine::{BulkStart, MOST_STARTS, StartOptions};
use flowstone_flow::flow::undeclared_inputs;
use flowstone_lang::value::Value;
use serde_json::json;

use super::{ask, load, may_start, tell_decision};
use crate::cli::args::Run;
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::outcome::of_engine_error;
use crate::cli::report::Report;
use crate::cli::{App, Open, input, output};
use crate::json::bulk_run_json;
use crate::telemetry;

/// Starts the runs, and prints their ids in the order of the inputs.
pub(super) async fn start(args: &Run, file: &Path, app: &dyn App) -> Result<Exit, Report> {
    let inputs = match inputs(args, file) {
        Ok(inputs) => inputs,
        Err(report) => {
            output::failure(&report, args.show.json);
            return Ok(Exit::Usage);
        }
    };
    let project = Project {
        bindings: args.bound.bindings(),
        max_memory: args.limits.max_memory,
        permits: args.permits.clone(),
        ..Project::find(&args.home)
    };
    let engine = app.open(&project, Open::OrMake)?;
    let loaded = load(&engine, args).await?;
    may_start(&loaded, args.invocation.as_deref())?;
    let undeclared = inputs.iter().map(|input| {
        let invocation = args.invocation.as_deref();
        undeclared_inputs(&loaded.flow, invocation, input)
    });
    let undeclared: Vec<Vec<Report>> = undeclared.collect();
    let starts = inputs.into_iter().map(|input| BulkStart {
        loaded: &loaded,
        options: StartOptions {
            invocation: args.invocation.clone(),
            priority: args.priority,
            is_left: true,
            timeout: args.timeout,
            trace: telemetry::trace_of_environment(),
            ..StartOptions::with_input(input)
        },
    });
    let started = engine.submit_many(starts.collect()).await;
    let started = started.map_err(|error| of_engine_error(&error))?;
    if args.show.json {
        let runs =
            started
                .iter()
                .zip(&undeclared)
                .enumerate()
                .map(|(index, (started, warnings))| {
                    bulk_run_json(index, (&started.run.run, started.status), warnings)
                });
        let runs: Vec<_> = runs.collect();
        output::json(&json!({"ok": true, "runs": runs}));
        return Ok(Exit::Completed);
    }
    once(undeclared.iter().flatten().cloned());
    for started in &started {
        output::data(started.run.run.as_str());
        tell_decision(&started.run);
    }
    Ok(Exit::Completed)
}

/// Prints reports, each once: inputs of one kind have the same names.
pub fn once(reports: impl Iterator<Item = Report>) {
    let mut printed: Vec<String> = Vec::new();
    for report in reports {
        if !printed.contains(&report.message) {
            output::report(&report);
            printed.push(report.message);
        }
    }
}

/// Reads the inputs, and adds the values of `--setup` to each.
fn inputs(args: &Run, file: &Path) -> Result<Vec<Value>, Report> {
    let inputs = input::read_list(file)?;
    if inputs.len() > MOST_STARTS {
        let message = format!(
            "`--many` takes at most {MOST_STARTS} inputs, and there are {}",
            inputs.len()
        );
        return Err(Report::error("E0912", message).hint("split the file"));
    }
    let setup = args.setup.as_deref();
    let inputs = inputs.into_iter();
    inputs.map(|input| ask::with_setup(input, setup)).collect()
}
