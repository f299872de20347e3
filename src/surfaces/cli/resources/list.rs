//! `flowstone resources list`: prints resources in a table, one page at a time.

use flowstone_engine::SystemClock;
use flowstone_engine::ports::{Clock as _, ResourcePage, ResourceQuery};
use flowstone_engine::{Engine, EngineError};
use serde_json::{Value as Json, json};

use super::ask_engine;
use crate::cli::args::ResourcesList;
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::report::Report;
use crate::cli::rows::{list as listed, maybe, ms, text};
use crate::cli::runs::size;
use crate::cli::table::{Column, ago, table};
use crate::cli::{App, Open, output};
use crate::json::{ok, resource_json};

/// Lists the resources.
pub(super) fn run(args: &ResourcesList, app: &dyn App) -> Result<Exit, Report> {
    let page = match Project::find(&args.output.home).home.is_dir() {
        true => ask_engine(app, &args.output, Open::Existing, async |engine| {
            list(engine, args).await
        })?,
        false => ResourcePage::default(),
    };
    tell(page_json(&page), args.output.json);
    Ok(Exit::Completed)
}

async fn list(engine: &Engine, args: &ResourcesList) -> Result<ResourcePage, EngineError> {
    let run = match &args.run {
        Some(run) => Some(engine.find_run(run).await?.id.to_string()),
        None => None,
    };
    let query = ResourceQuery {
        kinds: args.kinds.clone(),
        prefix: args.prefix.clone(),
        run,
        tier: args.tier,
        with_gone: args.all,
        sort: args.sort.into(),
        after: args.after.clone(),
        limit: usize::try_from(args.limit).unwrap_or(usize::MAX),
        now_ms: SystemClock.now_ms(),
        ..ResourceQuery::default()
    };
    Ok(engine.stores().resources.list(query).await?)
}

/// Returns a page, in the form of the API.
pub(super) fn page_json(page: &ResourcePage) -> Json {
    let rows: Vec<Json> = page.rows.iter().map(resource_json).collect();
    json!({"resources": rows, "next": page.next})
}

/// Prints a page, in the form of the API.
pub fn tell(page: Json, as_json: bool) {
    if as_json {
        output::json(&ok(page));
        return;
    }
    let rows: Vec<&Json> = listed(&page, "resources").collect();
    if rows.is_empty() {
        output::note("no resources");
        return;
    }
    let now_ms = SystemClock.now_ms();
    let rows = rows.iter().map(|row| line(row, now_ms));
    output::data(&table(
        &[
            Column::Cut("name"),
            Column::Extra("type"),
            Column::Extra("size"),
            Column::Extra("made"),
            Column::Whole("resource"),
        ],
        rows,
    ));
    if let Some(next) = maybe(&page, "next") {
        output::note(&format!("more resources: --after '{next}'"));
    }
}

fn line(row: &Json, now_ms: i64) -> Vec<String> {
    let kind = match row["goneAt"].is_null() {
        true => text(row, "type"),
        false => format!("{}, {}", text(row, "type"), text(row, "state")),
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    vec![
        or_none(maybe(row, "name")),
        kind,
        or_none(row["sizeBytes"].as_u64().map(size)),
        ago(now_ms, ms(&row["createdAt"]).unwrap_or(now_ms)),
        text(row, "uri"),
    ]
}
