//! `flowstone runs list`: runs in a table, a page at a time.

use std::collections::{HashMap, HashSet};

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{Clock, QueuePlace, RunQuery, RunStatus, RunSummary, SystemClock};
use flowstone_engine::{Engine, EngineError};
use serde_json::{Value, json};

use super::{NOT_BEGUN, ask, row_json};
use crate::cli::args::{INTERRUPTED, QUARANTINED, RunsList, Status};
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::outcome::instant;
use crate::cli::progress::seconds;
use crate::cli::queue::{place_json, place_words};
use crate::cli::report::Report;
use crate::cli::table::{Column, ago, table};
use crate::cli::{App, output};

/// As much of a reason is shown.
const REASON: usize = 60;

/// What a list comes to.
struct Page {
    runs: Vec<RunSummary>,
    /// With `--full`, the whole of each.
    full: Vec<Value>,
    /// Those with a step of which nobody knows whether it was done.
    doubts: HashSet<RunId>,
    /// Where the queued ones stand.
    queued: HashMap<RunId, QueuePlace>,
}

/// Lists the runs.
pub(super) fn run(args: &RunsList, app: &dyn App) -> Result<Exit, Report> {
    let page = if Project::find(&args.home).home.is_dir() {
        ask(app, &args.home, async |engine| find(engine, args).await)?
    } else {
        Page {
            runs: Vec::new(),
            full: Vec::new(),
            doubts: HashSet::new(),
            queued: HashMap::new(),
        }
    };
    // A page that is not full is the last one.
    let next = match page.runs.last() {
        Some(last) if page.runs.len() == args.limit => Some(last.id.as_str()),
        _ => None,
    };
    if args.json {
        let runs = match args.full {
            true => page.full.clone(),
            false => page.runs.iter().map(summary_json).collect(),
        };
        let runs: Vec<Value> = page
            .runs
            .iter()
            .zip(runs)
            .map(|(run, json)| marked(json, run, &page))
            .collect();
        output::json(&json!({"ok": true, "runs": runs, "next": next}));
    } else if page.runs.is_empty() {
        output::note("no runs");
    } else {
        let now_ms = SystemClock.now_ms();
        let rows = page.runs.iter().map(|run| row(run, &page, now_ms));
        output::data(&table(
            &[
                Column::Whole("run"),
                Column::Cut("flow"),
                Column::Cut("status"),
                Column::Extra("started"),
                Column::Extra("took"),
                Column::Extra("changed"),
            ],
            rows,
        ));
        if let Some(next) = next {
            output::note(&format!("there may be more: --before {next}"));
        }
    }
    Ok(Exit::Completed)
}

async fn find(engine: &Engine, args: &RunsList) -> Result<Page, EngineError> {
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
        limit: args.limit,
        ..RunQuery::default()
    };
    if let Some(parent) = &args.parent {
        query.parent = Some(engine.find_run(parent).await?.id);
    }
    if let Some(before) = &args.before {
        query.after = Some(engine.find_run(before).await?.id);
    }
    let runs = engine.summaries(query).await?;
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

/// Adds what the row alone does not tell.
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

/// Says what a run is at, as far as a list knows.
pub(super) fn status_words(run: &RunSummary) -> String {
    if run.quarantine.is_some() {
        return QUARANTINED.to_owned();
    }
    if run.held {
        return "held: imported while it was not over".to_owned();
    }
    match (run.status, &run.wait_reason) {
        (RunStatus::Running, _) if !run.driven && !run.begun => NOT_BEGUN.to_owned(),
        (RunStatus::Running, _) if !run.driven => INTERRUPTED.to_owned(),
        (RunStatus::Waiting, Some(reason)) => match reason.char_indices().nth(REASON) {
            Some((end, _)) => format!("waiting: {}…", &reason[..end]),
            None => format!("waiting: {reason}"),
        },
        (status, _) => status.name().to_owned(),
    }
}

/// Returns a run of a list as JSON. The names of the fields are stable.
pub(super) fn summary_json(run: &RunSummary) -> Value {
    json!({
        "id": run.id.as_str(),
        "externalId": run.external_id,
        "flow": run.flow,
        "status": run.status.name(),
        "driven": run.driven,
        "begun": run.begun,
        "held": run.held,
        "quarantine": run.quarantine,
        "waitReason": run.wait_reason,
        "due": run.due_ms.map(instant),
        "cancelRequested": run.is_cancel_requested,
        "createdAt": instant(run.created_ms),
        "updatedAt": instant(run.updated_ms),
        "endedAt": run.ended_ms.map(instant),
        "invocation": run.invocation,
        "key": run.key,
        "priority": run.priority,
        "startedBy": run.started_by,
        "origin": run.origin.as_ref().map(|id| id.as_str()),
        "parent": run.parent.as_ref().map(|parent| parent.run.as_str()),
        "pass": run.pass,
        "journal": run.pruned_ms.is_none(),
    })
}
