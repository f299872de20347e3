//! `flowstone search` and `flowstone resources search`: prints the results, as a table or as JSON.

use flowstone_engine::ports::SearchTarget;
use flowstone_engine::{Engine, EngineError};
use flowstone_project::search::{Ask, Found, Hydrate, SearchError, Seeker};
use serde_json::Value as Json;

use super::args::Search;
use super::exit::Exit;
use super::home::Project;
use super::outcome::of_engine_error;
use super::report::Report;
use super::rows::{list, maybe, text};
use super::runtime::Runtime;
use super::table::{Column, table};
use super::{App, Open, output};
use crate::json::{found_json, ok};

/// Performs the command. Without explicit targets, `everywhere` searches all of them, otherwise only resources.
pub fn run(args: &Search, app: &dyn App, everywhere: &[SearchTarget]) -> Exit {
    let as_json = args.json;
    let found = find(args, app, everywhere);
    match found {
        Ok(found) => {
            tell(found_json(&found), as_json);
            Exit::Completed
        }
        Err(report) => {
            output::failure(&report, as_json);
            Exit::Failed
        }
    }
}

fn find(args: &Search, app: &dyn App, everywhere: &[SearchTarget]) -> Result<Found, Report> {
    let ask = ask(args, everywhere);
    let project = Project::find(&args.home);
    // Flows and settings can be found before anything has run.
    let open = match project.home.is_dir() {
        true => Open::Existing,
        false => Open::OrMake,
    };
    Runtime::start()?.block_on(async {
        let engine = app.open(&project, open)?;
        seek(app, &engine, async |seeker| seeker.find(&ask).await).await
    })
}

/// Queries the search index of a project.
pub(super) async fn seek<T>(
    app: &dyn App,
    engine: &Engine,
    question: impl AsyncFnOnce(&Seeker<'_>) -> Result<T, SearchError>,
) -> Result<T, Report> {
    let embedder = app.embedder(engine)?;
    let seeker = flowstone_project::search::seeker(engine, embedder.as_deref());
    question(&seeker).await.map_err(|error| of_search(&error))
}

fn ask(args: &Search, everywhere: &[SearchTarget]) -> Ask {
    let targets = match args.targets.is_empty() {
        true => everywhere,
        false => &args.targets,
    };
    let count = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    Ask {
        targets: SearchTarget::ALL
            .into_iter()
            .filter(|target| targets.contains(target))
            .collect(),
        limit: count(args.limit),
        mode: args.mode,
        backend: args.storage_backend.clone(),
        root: args.storage_root.clone(),
        prefix: args.path_prefix.clone(),
        hydrate: args.hydrate.then_some(Hydrate {
            top_k: count(args.top_k),
            max_chars: count(args.max_chars),
        }),
        ..Ask::new(args.query.join(" "))
    }
}

pub(super) fn of_search(error: &SearchError) -> Report {
    if let SearchError::Store(error) = error {
        return of_engine_error(&EngineError::from(error.clone()));
    }
    let report = Report::error(error.code(), error.to_string());
    match error.hint() {
        Some(hint) => report.hint(hint),
        None => report,
    }
}

const COLUMNS: [Column<'static>; 4] = [
    Column::Extra("in"),
    Column::Cut("name"),
    Column::Cut("what fits"),
    Column::Whole("is"),
];

/// Prints results, in the form of the API.
pub fn tell(found: Json, as_json: bool) {
    if as_json {
        output::json(&ok(found));
        return;
    }
    for warning in list(&found, "warnings").filter_map(Json::as_str) {
        output::note(&format!("warning: {warning}"));
    }
    let hits: Vec<&Json> = list(&found, "results").collect();
    if hits.is_empty() {
        output::note("nothing was found");
        return;
    }
    output::data(&table(&COLUMNS, hits.iter().map(|hit| line(hit))));
    let contents = hits.iter().filter_map(|hit| content(hit));
    contents.for_each(|content| output::data(&content));
}

fn line(hit: &Json) -> Vec<String> {
    let id = maybe(hit, "uri").filter(|_| hit["id"].is_null());
    vec![
        text(hit, "target"),
        text(hit, "title"),
        text(hit, "snippet"),
        id.unwrap_or_else(|| text(hit, "id")),
    ]
}

fn content(hit: &Json) -> Option<String> {
    let content = maybe(hit, "content")?;
    let is_cut = hit["contentTruncated"] == true;
    let more = if is_cut { "\n…" } else { "" };
    Some(format!("\n== {}\n{content}{more}", text(hit, "title")))
}
