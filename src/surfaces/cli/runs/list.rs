//! `flowstone runs list`: prints runs in a table, one page at a time.

use std::collections::{HashMap, HashSet};

use flowstone_engine::SystemClock;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{Clock, QueuePlace, RunOrder, RunQuery, RunStatus, RunSummary};
use flowstone_engine::{Engine, EngineError};
use serde_json::{Value, json};

use super::{NOT_BEGUN, ask};
use crate::cli::args::{INTERRUPTED, QUARANTINED, RunsList, Status};
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::progress::seconds;
use crate::cli::queue::place_words;
use crate::cli::report::Report;
use crate::cli::table::{Column, ago, table};
use crate::cli::{App, output};
use crate::json::{place_json, row_json, summary_json};

/// How many characters of a reason are shown.
const REASON: usize = 60;

/// How many runs are read at a time.
const PAGE: usize = 1_000;

/// A part of a list.
struct Page {
    runs: Vec<RunSummary>,
    /// The complete details of each run, with `--full`.
    full: Vec<Value>,
    /// The runs with a step in doubt.
    doubts: HashSet<RunId>,
    /// The places of queued runs.
    queued: HashMap<RunId, QueuePlace>,
}

/// Lists the runs.
pub(super) fn run(args: &RunsList, app: &dyn App) -> Result<Exit, Report> {
    let mut list = List::new(args);
    if Project::find(&args.home).home.is_dir() {
        ask(app, &args.home, async |engine| {
            let mut query = query(engine, args).await?;
            loop {
                let page = find(engine, args, &query).await?;
                let is_last = query.limit == 0 || page.runs.len() < query.limit;
                query.after = page.runs.last().map(|run| run.id.clone());
                list.add(&page);
                query.limit = list.left();
                if is_last || query.limit == 0 {
                    return Ok(());
                }
            }
        })?;
    }
    list.end();
    Ok(Exit::Completed)
}

/// A list that is being printed.
struct List<'a> {
    args: &'a RunsList,
    now_ms: i64,
    count: usize,
    last: Option<RunId>,
    /// The rows of the table.
    rows: Vec<Vec<String>>,
}

impl List<'_> {
    fn new(args: &RunsList) -> List<'_> {
        List {
            args,
            now_ms: SystemClock.now_ms(),
            count: 0,
            last: None,
            rows: Vec::new(),
        }
    }

    /// Returns the maximum number of runs on the next page; 0 if none is left.
    fn left(&self) -> usize {
        match self.args.limit {
            0 => PAGE,
            limit => (limit - self.count).min(PAGE),
        }
    }

    fn add(&mut self, page: &Page) {
        if self.args.json {
            self.write(page);
        } else {
            let rows = page.runs.iter().map(|run| row(run, page, self.now_ms));
            self.rows.extend(rows);
        }
        self.count += page.runs.len();
        self.last = page.runs.last().map(|run| run.id.clone());
    }

    /// Prints part of the JSON object.
    fn write(&self, page: &Page) {
        let mut text = String::new();
        for (idx, run) in page.runs.iter().enumerate() {
            let json = match page.full.get(idx) {
                Some(full) => full.clone(),
                None => summary_json(run),
            };
            let json = format!("{:#}", marked(json, run, page));
            text += match self.count + idx {
                0 => "{\n  \"ok\": true,\n  \"runs\": [",
                _ => ",",
            };
            for line in json.lines() {
                text += "\n    ";
                text += line;
            }
        }
        output::json_part(&text);
    }

    fn end(self) {
        // A page that is not full is the last one.
        let is_full = self.args.limit > 0 && self.count == self.args.limit;
        let next = self.last.as_ref().filter(|_| is_full);
        let next = next.map(RunId::as_str);
        if self.args.json && self.count == 0 {
            output::json(&json!({"ok": true, "runs": [], "next": next}));
        } else if self.args.json {
            output::json_part(&format!("\n  ],\n  \"next\": {}\n}}\n", json!(next)));
        } else if self.rows.is_empty() {
            output::note("no runs");
        } else {
            output::data(&table(
                &[
                    Column::Whole("run"),
                    Column::Cut("flow"),
                    Column::Cut("status"),
                    Column::Extra("started"),
                    Column::Extra("took"),
                    Column::Extra("changed"),
                ],
                self.rows,
            ));
            if let Some(next) = next {
                output::note(&format!("more runs: --before {next}"));
            }
        }
    }
}

/// Returns the query of the first page.
async fn query(engine: &Engine, args: &RunsList) -> Result<RunQuery, EngineError> {
    let statuses = args.status.iter().filter_map(|status| match status {
        Status::Stored(status) => Some(*status),
        Status::Interrupted => None,
    });
    let mut query = RunQuery {
        statuses: statuses.collect(),
        interrupted: args.status.contains(&Status::Interrupted),
        flow: args.flow.clone(),
        since_ms: args.since,
        until_ms: args.until,
        key: args.key.clone(),
        text: args.text.clone(),
        started_by: args.started_by.clone(),
        sort: args.sort,
        limit: match (args.sort, args.limit) {
            // A run that changes meanwhile would move between pages.
            (RunOrder::Changed, limit) => limit,
            (RunOrder::Newest | RunOrder::Oldest, 0) => PAGE,
            (RunOrder::Newest | RunOrder::Oldest, limit) => limit.min(PAGE),
        },
        ..RunQuery::default()
    };
    if let Some(parent) = &args.parent {
        query.parent = Some(engine.find_run(parent).await?.id);
    }
    if let Some(before) = &args.before {
        query.after = Some(engine.find_run(before).await?.id);
    }
    Ok(query)
}

async fn find(engine: &Engine, args: &RunsList, query: &RunQuery) -> Result<Page, EngineError> {
    let runs = engine.summaries(query.clone()).await?;
    let mut full = Vec::new();
    if args.full {
        for run in &runs {
            full.push(row_json(&engine.find_run(run.id.as_str()).await?));
        }
    }
    let doubts = engine.in_doubt(&runs).await?;
    let mut queued = HashMap::new();
    for run in runs.iter().filter(|run| run.status == RunStatus::Queued) {
        if let Some(place) = engine.queue_place(&run.id).await? {
            queued.insert(run.id.clone(), place);
        }
    }
    Ok(Page {
        runs,
        full,
        doubts,
        queued,
    })
}

/// Adds what the row of a run alone does not contain.
fn marked(mut json: Value, run: &RunSummary, page: &Page) -> Value {
    if let Some(fields) = json.as_object_mut() {
        fields.insert("inDoubt".into(), json!(page.doubts.contains(&run.id)));
        let place = page.queued.get(&run.id).map(place_json);
        fields.insert("queue".into(), json!(place));
    }
    json
}

fn row(run: &RunSummary, page: &Page, now_ms: i64) -> Vec<String> {
    let took = run
        .ended_ms
        .map(|ended| seconds((ended - run.created_ms).max(0)));
    vec![
        run.id.to_string(),
        run.flow.clone(),
        match (page.queued.get(&run.id), page.doubts.contains(&run.id)) {
            (Some(place), _) => place_words(place),
            (None, true) => format!("{}, in doubt", status_words(run)),
            (None, false) => status_words(run),
        },
        ago(now_ms, run.created_ms),
        took.unwrap_or_else(|| "-".to_owned()),
        ago(now_ms, run.updated_ms),
    ]
}

/// Describes the state of a run as far as a list knows it.
pub(super) fn status_words(run: &RunSummary) -> String {
    if run.quarantine.is_some() {
        return QUARANTINED.to_owned();
    }
    if run.held {
        return "on hold: imported while unfinished".to_owned();
    }
    match (run.status, &run.wait_reason) {
        (RunStatus::Running, _) if !run.executing && !run.begun => NOT_BEGUN.to_owned(),
        (RunStatus::Running, _) if !run.executing => INTERRUPTED.to_owned(),
        (RunStatus::Waiting, Some(reason)) => match reason.char_indices().nth(REASON) {
            Some((end, _)) => format!("waiting: {}…", &reason[..end]),
            None => format!("waiting: {reason}"),
        },
        (status, _) => status.name().to_owned(),
    }
}
