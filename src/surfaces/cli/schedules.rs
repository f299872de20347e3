//! `flowstone schedules`: lists schedules, and starts them by hand.

use flowstone_engine::schedules::local_time;
use serde_json::{Value as Json, json};

use super::args::{Schedules, SchedulesCommand, SchedulesList, SchedulesRun};
use super::exit::Exit;
use super::home::Project;
use super::outcome::{of_engine_error, tell};
use super::report::Report;
use super::rows::{maybe, ms, text};
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
    tell_list(schedules.iter().map(schedule_json).collect(), args.json);
    Ok(Exit::Completed)
}

/// Prints schedules, in the form of the API.
pub fn tell_list(schedules: Vec<Json>, as_json: bool) {
    if as_json {
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
        output::data(&table(&columns, schedules.iter().map(cells)));
    }
}

fn cells(schedule: &Json) -> Vec<String> {
    let times = text(schedule, "times");
    let tick = |name: &str, none: &str| {
        let tick = ms(&schedule[name]);
        tick.map_or_else(|| none.to_owned(), |ms| local_time(&times, ms))
    };
    let or_none = |name: &str| maybe(schedule, name).unwrap_or_else(|| "-".to_owned());
    vec![
        text(schedule, "flow"),
        text(schedule, "id"),
        times.clone(),
        tick("next", "off"),
        tick("last", "-"),
        or_none("run"),
        or_none("outcome"),
    ]
}

fn run_now(args: &SchedulesRun, app: &dyn App) -> Result<Exit, Report> {
    let project = Project::with(&args.home, &args.limits, &args.permits);
    Runtime::start()?.block_on(async {
        let engine =
            app.open(&project, Open::Existing)
                .map_err(|report| match project.home.is_dir() {
                    true => report,
                    false => report.hint(
                        "a server reads the schedules of the flows: `flowstone serve --until-idle`",
                    ),
                })?;
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
