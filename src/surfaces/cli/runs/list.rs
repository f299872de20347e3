//! `flowstone runs list`: prints runs in a table, one page at a time.

use std::collections::{HashMap, HashSet};

use flowstone_engine::SystemClock;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{Clock, QueuePlace, RunOrder, RunQuery, RunStatus, RunSummary};
use flowstone_engine::{Engine, EngineError, read_instant};
use serde_json::{Value, json};

use super::{NOT_BEGUN, ask};
use crate::cli::args::{INTERRUPTED, QUARANTINED, RunsList, Status};
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::progress::seconds;
use crate::cli::queue::place_of_json;
use crate::cli::report::Report;
use crate::cli::table::{Column, ago, table};
use crate::cli::{App, output};
use crate::json::{marked_json, row_json, summary_json};

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
    let mut list = RunTable::new(args, SystemClock.now_ms());
    if Project::find(&args.home).home.is_dir() {
        ask(app, &args.home, async |engine| {
            let mut query = query(engine, args).await?;
            loop {
                let page = find(engine, args, &query).await?;
                let is_last = query.limit == 0 || page.runs.len() < query.limit;
                query.after = page.runs.last().map(|run| run.id.clone());
                list.add(&page.to_json(), query.after.clone());
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

impl Page {
    /// Returns the runs as JSON. The names of the fields are stable.
    fn to_json(&self) -> Vec<Value> {
        let runs = self.runs.iter().enumerate();
        let shown = runs.map(|(idx, run)| {
            let json = self.full.get(idx).cloned();
            let json = json.unwrap_or_else(|| summary_json(run));
            marked_json(
                json,
                self.doubts.contains(&run.id),
                self.queued.get(&run.id),
            )
        });
        shown.collect()
    }
}

/// A list of runs to print, in the form of the API.
pub struct RunTable<'a> {
    args: &'a RunsList,
    now_ms: i64,
    count: usize,
    last: Option<RunId>,
    /// The rows of the table.
    rows: Vec<Vec<String>>,
}

impl RunTable<'_> {
    pub fn new(args: &RunsList, now_ms: i64) -> RunTable<'_> {
        RunTable {
            args,
            now_ms,
            count: 0,
            last: None,
            rows: Vec::new(),
        }
    }

    /// Returns the number of runs so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the maximum number of runs on the next page; 0 if none is left.
    fn left(&self) -> usize {
        match self.args.limit {
            0 => PAGE,
            limit => (limit - self.count).min(PAGE),
        }
    }

    /// Adds a page, and the id of its last run.
    pub fn add(&mut self, runs: &[Value], last: Option<RunId>) {
        if self.args.json {
            self.write(runs);
        } else {
            let rows = runs.iter().map(|run| row(run, self.now_ms));
            self.rows.extend(rows);
        }
        self.count += runs.len();
        self.last = last;
    }

    /// Prints part of the JSON object.
    fn write(&self, runs: &[Value]) {
        let mut text = String::new();
        for (idx, run) in runs.iter().enumerate() {
            let json = format!("{run:#}");
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

    /// Returns the rows below their headings.
    fn table(self) -> String {
        table(
            &[
                Column::Whole("run"),
                Column::Cut("flow"),
                Column::Cut("status"),
                Column::Extra("started"),
                Column::Extra("took"),
                Column::Extra("changed"),
            ],
            self.rows,
        )
    }

    /// Prints the end of the list.
    pub fn end(self) {
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
            let next = next.map(str::to_owned);
            output::data(&self.table());
            if let Some(next) = next {
                output::note(&format!("more runs: --before {next}"));
            }
        }
    }
}

/// Returns a page of runs, in the form of the API and as a table.
///
/// # Errors
/// When the runs cannot be read.
pub(in crate::cli) async fn listed(
    engine: &Engine,
    args: &RunsList,
) -> Result<(Vec<Value>, String), EngineError> {
    let query = query(engine, args).await?;
    let shown = find(engine, args, &query).await?.to_json();
    let mut list = RunTable::new(args, engine.now_ms());
    list.add(&shown, None);
    let page = list.table();
    Ok((shown, page))
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

fn row(run: &Value, now_ms: i64) -> Vec<String> {
    let text = |name: &str| run[name].as_str().unwrap_or_default().to_owned();
    let at = |name: &str| read_instant(run[name].as_str()?, now_ms);
    let created_ms = at("createdAt").unwrap_or(now_ms);
    let took = at("endedAt").map(|ended| seconds((ended - created_ms).max(0)));
    vec![
        text("id"),
        match run["version"].as_u64() {
            Some(version) => format!("{}@{version}", text("flow")),
            None => text("flow"),
        },
        match (&run["queue"], run["inDoubt"] == json!(true)) {
            (place, _) if !place.is_null() => place_of_json(place),
            (_, true) => format!("{}, in doubt", status_of_json(run)),
            (_, false) => status_of_json(run),
        },
        ago(now_ms, created_ms),
        took.unwrap_or_else(|| "-".to_owned()),
        ago(now_ms, at("updatedAt").unwrap_or(now_ms)),
    ]
}

/// Describes the state of a run as far as a list knows it.
pub(super) fn status_of_json(run: &Value) -> String {
    let is = |name: &str| run[name] == json!(true);
    if !run["quarantine"].is_null() {
        return QUARANTINED.to_owned();
    }
    if is("held") {
        return "on hold: imported while unfinished".to_owned();
    }
    let status = run["status"].as_str().unwrap_or_default();
    match (RunStatus::from_name(status), run["waitReason"].as_str()) {
        (Some(RunStatus::Running), _) if !is("driven") && !is("begun") => NOT_BEGUN.to_owned(),
        (Some(RunStatus::Running), _) if !is("driven") => INTERRUPTED.to_owned(),
        (Some(RunStatus::Waiting), Some(reason)) => match reason.char_indices().nth(REASON) {
            Some((end, _)) => format!("waiting: {}…", &reason[..end]),
            None => format!("waiting: {reason}"),
        },
        _ => status.to_owned(),
    }
}
