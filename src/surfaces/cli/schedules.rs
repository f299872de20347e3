//! `flowstone schedules`: lists schedules, and starts them by hand.

use flowstone_engine::schedules::ScheduleReport;
use serde_json::json;

use super::args::{Schedules, SchedulesCommand, SchedulesList, SchedulesRun};
use super::exit::Exit;
use super::home::Project;
use super::outcome::{of_engine_error, tell};
use super::report::Report;
use super::run::{tell_left, watched};
use super::runtime::Runtime;
use super::table::{Column, table};
use super::{App, Open, output};
use crate::json::schedule_json;

/// Performs the command.
pub fn run(args: &Schedules, app: &dyn App) -> Exit {
    let (done, as_json) = match &args.command {
        SchedulesCommand::List(args) => (list(args, app), args.json),
        SchedulesCommand::Run(args) => (run_now(args, app), args.show.json),
    };
    done.unwrap_or_else(|report| {
        output::failure(&report, as_json);
        Exit::Failed
    })
}

fn list(args: &SchedulesList, app: &dyn App) -> Result<Exit, Report> {
    let project = Project::find(&args.home);
    let schedules = Runtime::start()?.block_on(async {
        if !project.home.is_dir() {
            return Ok(Vec::new());
        }
        let engine = app.open(&project, Open::Existing)?;
        let schedules = engine.schedules().await;
        schedules.map_err(|error| of_engine_error(&error))
    })?;
    if args.json {
        let schedules: Vec<_> = schedules.iter().map(schedule_json).collect();
        output::json(&json!({"ok": true, "schedules": schedules}));
    } else if schedules.is_empty() {
        output::note("no schedules are known; `flowstone serve` reads them from the flows");
    } else {
        let columns = [
            Column::Whole("flow"),
            Column::Whole("schedule"),
            Column::Cut("times"),
            Column::Whole("next"),
            Column::Extra("last"),
            Column::Whole("run"),
            Column::Extra("outcome"),
        ];
        output::data(&table(&columns, schedules.iter().map(in_words)));
    }
    Ok(Exit::Completed)
}

fn in_words(schedule: &ScheduleReport) -> Vec<String> {
    let row = &schedule.row;
    let tick =
        |ms: Option<i64>, none: &str| ms.map_or_else(|| none.to_owned(), |ms| schedule.local(ms));
    vec![
        row.flow.clone(),
        row.id.clone(),
        row.timing.clone(),
        tick(row.next_ms, "off"),
        tick(row.last_ms, "-"),
        row.last_run
            .as_ref()
            .map_or_else(|| "-".to_owned(), ToString::to_string),
        schedule.outcome().unwrap_or("-").to_owned(),
    ]
}

fn run_now(args: &SchedulesRun, app: &dyn App) -> Result<Exit, Report> {
    let project = Project::with(&args.home, &args.limits, &args.permits);
    Runtime::start()?.block_on(async {
        let engine = app.open(&project, Open::Existing)?;
        let run = engine
            .start_schedule(&args.flow, &args.id, args.detach)
            .await
            .map_err(|error| of_engine_error(&error))?;
        if args.detach {
            return Ok(tell_left(&run, args.show.json));
        }
        let (observer, options) = watched(&engine, &args.show);
        let executed = engine.execute(&run, observer, options);
        let outcome = executed.await.map_err(|error| of_engine_error(&error))?;
        Ok(tell(&run, &outcome, args.show.json))
    })
}
