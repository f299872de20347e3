//! `flowstone check --against-running`: compares edited flows with their unfinished runs.

use std::path::PathBuf;

use flowstone_engine::{Against, Verdict};
use serde_json::json;

use super::backtest::difference_json;
use super::exit::Exit;
use super::home::Project;
use super::outcome::{of_engine_error, on_line};
use super::report::Report;
use super::run::load_file;
use super::runtime::Runtime;
use super::table::{Column, table};
use super::{App, Open, output};

/// Compares each file with the runs of its flow.
pub fn run(files: &[PathBuf], project: &Project, app: &dyn App, as_json: bool) -> Exit {
    let done = against(files, project, app, as_json);
    done.unwrap_or_else(|report| {
        output::failure(&report, as_json);
        Exit::Failed
    })
}

fn against(
    files: &[PathBuf],
    project: &Project,
    app: &dyn App,
    as_json: bool,
) -> Result<Exit, Report> {
    let all = Runtime::start()?.block_on(async {
        let mut all = Vec::new();
        if !project.home.is_dir() {
            return Ok(all);
        }
        let engine = app.open(project, Open::Existing)?;
        for file in files {
            let loaded = load_file(&engine, file, as_json)?;
            let found = engine.check_against_running(&loaded).await;
            all.extend(found.map_err(|error| of_engine_error(&error))?);
        }
        Ok::<_, Report>(all)
    })?;
    let conflicts = all.iter().filter(|one| is_conflict(one)).count();
    if as_json {
        let runs: Vec<_> = all.iter().map(in_json).collect();
        output::json(&json!({"ok": conflicts == 0, "runs": runs}));
    } else if all.is_empty() {
        output::note("no run of this flow is unfinished");
    } else {
        let rows = all.iter().map(|one| {
            vec![
                one.row.id.to_string(),
                one.row.flow.clone(),
                one.row.status.name().to_owned(),
                one.at.join(", "),
                one.verdict.name().to_owned(),
            ]
        });
        output::data(&table(
            &[
                Column::Whole("run"),
                Column::Extra("flow"),
                Column::Whole("status"),
                Column::Cut("at"),
                Column::Whole("verdict"),
            ],
            rows,
        ));
        for one in &all {
            explain(one);
        }
    }
    Ok(match conflicts {
        0 => Exit::Completed,
        _ => Exit::Failed,
    })
}

fn is_conflict(one: &Against) -> bool {
    matches!(one.verdict, Verdict::Conflict(_))
}

fn explain(one: &Against) {
    let Verdict::Conflict(met) = &one.verdict else {
        return;
    };
    let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "nothing".to_owned());
    let mut report = Report::error(
        "E0570",
        format!(
            "the flow conflicts with the journal of run {}: step `{}`\n  journal: {}\n  flow:    {}",
            one.row.id,
            met.path,
            side(&met.recorded),
            side(&met.requested)
        ),
    );
    if let Some(place) = &met.place {
        report = on_line(report, place);
    }
    output::report(&report.hint("the run keeps the flow that it was started with"));
}

fn in_json(one: &Against) -> serde_json::Value {
    json!({
        "run": one.row.id.as_str(),
        "flow": one.row.flow,
        "status": one.row.status.name(),
        "at": one.at,
        "answered": one.answered,
        "verdict": one.verdict.name(),
        "conflict": match &one.verdict {
            Verdict::Conflict(met) => difference_json(met),
            Verdict::Same | Verdict::Safe => serde_json::Value::Null,
        },
    })
}
