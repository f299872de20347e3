//! `flowstone flows list`, `show` and `versions`: the flows of a project, in the form of a server's responses.

use std::path::PathBuf;

use flowstone_engine::catalog::{Catalog, ServedFlow};
use flowstone_engine::diagnostic::nearest;
use flowstone_engine::{Engine, EngineError};
use serde_json::{Value as Json, json};

use super::registered;
use crate::cli::args::{FlowsList, FlowsShow, FlowsVersions, Home};
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::outcome::of_engine_error;
use crate::cli::report::Report;
use crate::cli::rows::{list as listed, maybe, text};
use crate::cli::runtime::Runtime;
use crate::cli::serve::flows_of;
use crate::cli::table::{Column, table};
use crate::cli::{App, Open, output};
use crate::json::{flow_json, flow_summary_json, ok, version_json};

/// The code of a flow that does not exist.
const NO_FLOW: &str = "E1014";
/// Number of digits of a version in a table, which are enough to name it.
const VERSION: usize = 12;

/// Opens the engine with the flows in files and folders.
fn with_flows<T>(
    app: &dyn App,
    (home, paths): (&Home, &[PathBuf]),
    question: impl AsyncFnOnce(&Engine, &Catalog) -> Result<T, Report>,
) -> Result<T, Report> {
    let project = Project::find(home);
    let catalog = Catalog::new(flows_of(&project, paths.to_vec()));
    Runtime::start()?.block_on(async {
        let engine = app.open(&project, Open::OrMake)?;
        catalog.follow(&engine).await;
        let answer = question(&engine, &catalog).await?;
        for problem in catalog.problems(&engine) {
            let (file, code, message) = (problem.file, problem.code, problem.message);
            output::note(&format!("warning: {file}: {code} {message}"));
        }
        Ok(answer)
    })
}

fn find(engine: &Engine, catalog: &Catalog, slug: &str) -> Result<std::rc::Rc<ServedFlow>, Report> {
    if let Some(flow) = catalog.flow(engine, slug) {
        return Ok(flow);
    }
    let flows = catalog.flows(engine);
    let report = Report::error(NO_FLOW, format!("there is no flow `{slug}`"));
    Err(match nearest(slug, flows.iter().map(|flow| &*flow.slug)) {
        Some(near) => report.hint(format!("did you mean `{near}`?")),
        None => report.hint("`flowstone flows list` shows the flows of the project"),
    })
}

pub(super) fn list(args: &FlowsList, app: &dyn App) -> Result<Exit, Report> {
    if args.registry {
        return registered::list(args, app);
    }
    let flows = with_flows(app, (&args.home, &args.paths), async |engine, catalog| {
        let flows = catalog.flows(engine).into_iter();
        Ok(flows.map(|flow| flow_summary_json(&flow)).collect())
    })?;
    tell_list(flows, args.json);
    Ok(Exit::Completed)
}

/// Prints flows, in the form of the API.
pub fn tell_list(flows: Vec<Json>, as_json: bool) {
    if as_json {
        output::json(&json!({"ok": true, "flows": flows, "next": null}));
    } else if flows.is_empty() {
        output::note("there are no flows; the folder `flows` is where `serve` looks for them");
    } else {
        let columns = [
            Column::Whole("flow"),
            Column::Cut("title"),
            Column::Cut("inputs"),
            Column::Extra("interfaces"),
            Column::Extra("schedules"),
            Column::Whole("version"),
        ];
        output::data(&table(&columns, flows.iter().map(row)));
    }
}

fn row(flow: &Json) -> Vec<String> {
    let names = |name: &str| or_dash(joined(flow, name));
    vec![
        text(flow, "slug"),
        or_dash(text(flow, "name")),
        names("inputs"),
        names("interfaces"),
        names("schedules"),
        version(flow),
    ]
}

/// Returns the number of the released version, or else the beginning of the digest of the file.
fn version(flow: &Json) -> String {
    match flow["release"].as_i64() {
        Some(number) => format!("live@{number}"),
        None => short(&text(flow, "version")),
    }
}

/// Joins the texts of a list.
fn joined(value: &Json, name: &str) -> String {
    let texts: Vec<&str> = listed(value, name).filter_map(Json::as_str).collect();
    texts.join(" ")
}

fn or_dash(text: String) -> String {
    match text.is_empty() {
        true => "-".to_owned(),
        false => text,
    }
}

fn short(version: &str) -> String {
    version.get(..VERSION).unwrap_or(version).to_owned()
}

pub(super) fn show(args: &FlowsShow, app: &dyn App) -> Result<Exit, Report> {
    if args.text || args.slug.contains('@') {
        return registered::show_version(args, app);
    }
    let flow = with_flows(app, (&args.home, &args.paths), async |engine, catalog| {
        let known = registered::shown_of(engine, &args.slug).await?;
        let flow = match (find(engine, catalog, &args.slug), &known) {
            (Ok(flow), _) => Some(flow_json(&flow)),
            (Err(report), None) => return Err(report),
            (Err(_), Some(_)) => None,
        };
        Ok((flow, known))
    })?;
    let (flow, known) = flow;
    tell(
        flow.unwrap_or_else(|| json!({"slug": args.slug})),
        known,
        args.json,
    );
    Ok(Exit::Completed)
}

/// Prints a flow, and what the registry knows of it, in the form of the API.
pub fn tell(mut flow: Json, known: Option<Json>, as_json: bool) {
    if as_json {
        if let Some(known) = known {
            flow["registry"] = known;
        }
        output::json(&ok(flow));
        return;
    }
    let mut text = describe(&flow);
    if let Some(known) = known {
        text += &registered::describe(&known);
    }
    output::whole(&text);
}

fn describe(flow: &Json) -> String {
    let facts = [
        ("flow", maybe(flow, "slug")),
        ("title", maybe(flow, "name")),
        ("file", maybe(flow, "file")),
        (
            "tags",
            Some(joined(flow, "tags")).filter(|it| !it.is_empty()),
        ),
        ("version", maybe(flow, "version")),
        (
            "live",
            flow["release"].as_i64().map(|number| number.to_string()),
        ),
    ];
    let mut out = String::new();
    for (name, fact) in facts {
        if let Some(fact) = fact {
            out.push_str(&format!("{name:<8} {fact}\n"));
        }
    }
    if let Some(description) = maybe(flow, "description") {
        out.push_str(&format!("\n{}\n", description.trim()));
    }
    let inputs = [
        Column::Whole("input"),
        Column::Whole("type"),
        Column::Whole("needed"),
        Column::Extra("invocation"),
        Column::Cut("description"),
    ];
    section(&mut out, &inputs, listed(flow, "inputs").map(input_row));
    let interfaces = [
        Column::Whole("interface"),
        Column::Whole("type"),
        Column::Extra("invocation"),
        Column::Cut("reached by"),
    ];
    let rows = listed(flow, "interfaces").map(interface_row);
    section(&mut out, &interfaces, rows);
    let schedules = [Column::Whole("schedule"), Column::Cut("times")];
    section(
        &mut out,
        &schedules,
        listed(flow, "schedules").map(schedule_row),
    );
    out
}

/// Adds a table, unless it has no rows.
fn section(out: &mut String, columns: &[Column<'_>], rows: impl Iterator<Item = Vec<String>>) {
    let rows: Vec<Vec<String>> = rows.collect();
    if !rows.is_empty() {
        out.push('\n');
        out.push_str(&table(columns, rows));
    }
}

fn input_row(input: &Json) -> Vec<String> {
    let needed = match input["required"] == true {
        true => "yes",
        false => "no",
    };
    vec![
        text(input, "name"),
        text(input, "type"),
        needed.to_owned(),
        text(input, "invocation"),
        or_dash(text(input, "description")),
    ]
}

fn interface_row(interface: &Json) -> Vec<String> {
    let addresses = joined(interface, "addresses");
    let reached = match (maybe(interface, "method"), maybe(interface, "event")) {
        (Some(method), _) => format!("{method} {addresses}"),
        (None, Some(event)) => format!("event {event}"),
        (None, None) => or_dash(addresses),
    };
    vec![
        text(interface, "id"),
        text(interface, "type"),
        or_dash(text(interface, "invocation")),
        reached,
    ]
}

fn schedule_row(schedule: &Json) -> Vec<String> {
    let named = ["cron", "every", "timezone"].map(|name| match &schedule[name] {
        Json::Null => None,
        Json::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    });
    let times: Vec<String> = named.into_iter().flatten().collect();
    vec![text(schedule, "id"), or_dash(times.join(" "))]
}

pub(super) fn versions(args: &FlowsVersions, app: &dyn App) -> Result<Exit, Report> {
    if !args.programs
        && let Some(exit) = registered::versions(args, app)?
    {
        return Ok(exit);
    }
    let versions = with_flows(app, (&args.home, &args.paths), async |engine, catalog| {
        let flow = find(engine, catalog, &args.slug)?;
        let hash = &flow.loaded.program.hash;
        let failed = |error: EngineError| of_engine_error(&error);
        let versions = engine.flow_versions(&flow.slug, Some(hash)).await;
        let versions = versions.map_err(failed)?;
        let shown = versions
            .iter()
            .map(|it| version_json(it, it.program == *hash));
        Ok(shown.collect())
    })?;
    tell_versions(versions, args.json);
    Ok(Exit::Completed)
}

/// Prints the versions of a flow, in the form of the API.
pub fn tell_versions(versions: Vec<Json>, as_json: bool) {
    if as_json {
        output::json(&json!({"ok": true, "versions": versions, "next": null}));
        return;
    }
    let columns = [
        Column::Whole("version"),
        Column::Whole("served"),
        Column::Whole("runs"),
        Column::Whole("open"),
        Column::Extra("first run"),
        Column::Extra("last run"),
    ];
    let rows = versions.iter().map(|version| {
        let served = match version["served"] == true {
            true => "yes",
            false => "no",
        };
        vec![
            text(version, "version"),
            served.to_owned(),
            version["runs"].to_string(),
            version["open"].to_string(),
            or_dash(text(version, "firstRunAt")),
            or_dash(text(version, "lastRunAt")),
        ]
    });
    output::data(&table(&columns, rows));
}
