//! `flowstone search` and `flowstone resources search`: prints what was found, as a table or as JSON.

use flowstone_engine::ports::SearchTarget;
use flowstone_engine::{Engine, EngineError};
use flowstone_project::search::{Ask, Found, FoundHit, Hydrate, SearchError, Seeker};

use super::args::Search;
use super::exit::Exit;
use super::home::Project;
use super::outcome::of_engine_error;
use super::report::Report;
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
            tell(&found, as_json);
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

fn tell(found: &Found, as_json: bool) {
    if as_json {
        output::json(&ok(found_json(found)));
        return;
    }
    for warning in &found.warnings {
        output::note(&format!("warning: {warning}"));
    }
    if found.hits.is_empty() {
        output::note("nothing was found");
        return;
    }
    let rows = found.hits.iter().map(line);
    output::data(&table(&COLUMNS, rows));
    let contents = found.hits.iter().filter_map(content);
    contents.for_each(|content| output::data(&content));
}

fn line(found: &FoundHit) -> Vec<String> {
    let hit = &found.hit;
    vec![
        hit.target.name().to_owned(),
        hit.title.clone(),
        hit.snippet.clone(),
        hit.id.clone(),
    ]
}

fn content(found: &FoundHit) -> Option<String> {
    use flowstone_project::search::Content;
    match found.content.as_ref()? {
        Content::Text { text, is_cut } => {
            let more = if *is_cut { "\n…" } else { "" };
            Some(format!("\n== {}\n{text}{more}", found.hit.title))
        }
        Content::Omitted => None,
    }
}
