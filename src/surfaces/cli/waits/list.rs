//! `flowstone waits list`: prints open waits, or signals that no wait has taken.

use flowstone_engine::ports::{SignalFilter, WaitFilter, WaitRow};
use flowstone_engine::{Engine, EngineError};
use serde_json::{Value as Json, json};

use super::render::how_to_answer;
use crate::cli::args::WaitsList;
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::outcome::of_engine_error;
use crate::cli::report::Report;
use crate::cli::rows::{maybe, ms, text};
use crate::cli::runtime::Runtime;
use crate::cli::table::{Column, table};
use crate::cli::{App, Open, output};
use crate::json::{Values, signal_json_as, state, wait_json};

/// Lists waits, or signals.
pub(super) fn run(args: &WaitsList, app: &dyn App) -> Result<Exit, Report> {
    if args.signals {
        return signals(args, app);
    }
    let waits = read(args, app, async |engine| {
        let run = match &args.run {
            Some(run) => Some(engine.find_run(run).await?.id),
            None => None,
        };
        let filter = WaitFilter {
            run,
            flow: args.flow.clone(),
            key: args.key.clone(),
            all: args.all,
            ..WaitFilter::default()
        };
        engine.list_waits(filter).await
    })?;
    if args.json {
        let waits: Vec<_> = waits.iter().map(wait_json).collect();
        output::json(&json!({"ok": true, "waits": waits}));
        return Ok(Exit::Completed);
    }
    list_table(&waits, args.all);
    Ok(Exit::Completed)
}

/// Prints waits, and how the first open one is answered.
pub fn list_table(waits: &[WaitRow], with_state: bool) {
    if waits.is_empty() {
        output::note("nothing waits");
        return;
    }
    output::data(&page(waits, with_state));
    if let Some(wait) = waits.iter().find(|wait| state(wait) == "open") {
        output::note(&format!("answer {}", how_to_answer(wait)));
    }
}

/// Returns waits as a table.
pub(in crate::cli) fn page(waits: &[WaitRow], with_state: bool) -> String {
    let mut heading = vec![
        Column::Whole("wait"),
        Column::Extra("flow"),
        Column::Extra("run"),
        Column::Whole("key"),
        Column::Extra("until"),
    ];
    if with_state {
        heading.push(Column::Cut("state"));
    }
    let rows = waits.iter().map(|wait| row(wait, with_state));
    table(&heading, rows)
}

fn row(wait: &WaitRow, with_state: bool) -> Vec<String> {
    let mut row = vec![
        wait.id.clone(),
        wait.flow.clone(),
        wait.run.to_string(),
        wait.key.clone(),
        wait.deadline_ms
            .map_or_else(|| "-".to_owned(), instant_text),
    ];
    if with_state {
        row.push(match &wait.decided_by {
            Some(by) => format!("{} by {by}", state(wait)),
            None => state(wait).to_owned(),
        });
    }
    row
}

fn signals(args: &WaitsList, app: &dyn App) -> Result<Exit, Report> {
    let filter = SignalFilter {
        key: args.key.clone(),
        ..SignalFilter::default()
    };
    let signals = read(args, app, async |engine| engine.list_signals(filter).await)?;
    let values = match args.json {
        true => Values::Json,
        false => Values::Edn,
    };
    let signals: Vec<Json> = signals
        .iter()
        .map(|it| signal_json_as(it, values))
        .collect();
    list_signals(&signals, args.json);
    Ok(Exit::Completed)
}

/// Prints signals, as the API answers them with `values=edn`, or as JSON.
pub fn list_signals(signals: &[Json], as_json: bool) {
    if as_json {
        output::json(&json!({"ok": true, "signals": signals}));
        return;
    }
    if signals.is_empty() {
        output::note("no signals are kept");
        return;
    }
    let rows = signals.iter().map(|signal| {
        let or_none = |name: &str| maybe(signal, name).unwrap_or_else(|| "-".to_owned());
        let state = match maybe(signal, "refusedBy") {
            Some(wait) => format!("refused by {wait}: {}", text(signal, "reason")),
            None => "kept".to_owned(),
        };
        vec![
            or_none("event"),
            or_none("key"),
            ms(&signal["at"]).map_or_else(String::new, instant_text),
            text(signal, "payload"),
            state,
        ]
    });
    output::data(&table(
        &[
            Column::Whole("event"),
            Column::Whole("key"),
            Column::Extra("came"),
            Column::Cut("payload"),
            Column::Cut("state"),
        ],
        rows,
    ));
}

/// Queries the engine; a project that was never used has no waits.
fn read<T>(
    args: &WaitsList,
    app: &dyn App,
    question: impl AsyncFnOnce(&Engine) -> Result<Vec<T>, EngineError>,
) -> Result<Vec<T>, Report> {
    let project = Project::find(&args.home);
    Runtime::start()?.block_on(async {
        if !project.home.is_dir() {
            return Ok(Vec::new());
        }
        let engine = app.open(&project, Open::Existing)?;
        let found = question(&engine).await;
        found.map_err(|error| of_engine_error(&error))
    })
}

/// Formats a point in time as ISO 8601.
pub(super) fn instant_text(millis: i64) -> String {
    flowstone_engine::codec::instant(millis)
}
