//! `flowstone resources list`: prints resources in a table, one page at a time.

use flowstone_engine::SystemClock;
use flowstone_engine::ports::{Clock as _, ResourcePage, ResourceQuery, ResourceRow};
use flowstone_engine::{Engine, EngineError};
use serde_json::json;

use super::ask_engine;
use super::render::size;
use crate::cli::args::ResourcesList;
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::report::Report;
use crate::cli::table::{Column, ago, table};
use crate::cli::{App, Open, output};
use crate::json::{resource_json, resource_state as state};

/// Lists the resources.
pub(super) fn run(args: &ResourcesList, app: &dyn App) -> Result<Exit, Report> {
    let page = match Project::find(&args.output.home).home.is_dir() {
        true => ask_engine(app, &args.output, Open::Existing, async |engine| {
            list(engine, args).await
        })?,
        false => ResourcePage::default(),
    };
    tell(&page, args.output.json);
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

/// Prints a page.
pub(super) fn tell(page: &ResourcePage, as_json: bool) {
    if as_json {
        let rows: Vec<_> = page.rows.iter().map(resource_json).collect();
        output::json(&json!({"ok": true, "resources": rows, "next": page.next}));
        return;
    }
    if page.rows.is_empty() {
        output::note("no resources");
        return;
    }
    let now_ms = SystemClock.now_ms();
    let rows = page.rows.iter().map(|row| line(row, now_ms));
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
    if let Some(next) = &page.next {
        output::note(&format!("more resources: --after '{next}'"));
    }
}

fn line(row: &ResourceRow, now_ms: i64) -> Vec<String> {
    let kind = match row.gone {
        None => row.kind.name().to_owned(),
        Some(_) => format!("{}, {}", row.kind.name(), state(row)),
    };
    vec![
        row.name.clone().unwrap_or_else(|| "-".to_owned()),
        kind,
        size(row),
        ago(now_ms, row.created_ms),
        row.uri.clone(),
    ]
}
