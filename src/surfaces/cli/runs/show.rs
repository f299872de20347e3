//! `flowstone runs show`: prints one run with its steps, in the form of the API.

mod conversation;
pub(in crate::cli) mod one_step;

use flowstone_engine::StepStatus;
use flowstone_engine::codec;
use serde_json::Value as Json;

use super::{ask, state_text};
use crate::cli::App;
use crate::cli::args::RunsShow;
use crate::cli::exit::Exit;
use crate::cli::outcome::how_to_answer;
use crate::cli::output;
use crate::cli::pretty::pretty;
use crate::cli::progress::seconds;
use crate::cli::queue::place_of_json;
use crate::cli::report::{Report, draw_pieces};
use crate::cli::rows::{self, list, maybe, ms, text};
use crate::cli::table::{Column, table};
use crate::json::{Values, ok, run_report_json, step_details_json};

/// How many characters of a value fit on a line.
const BRIEF: usize = 60;

/// Prints the run, or one step of it.
pub(super) fn run(args: &RunsShow, app: &dyn App) -> Result<Exit, Report> {
    let values = values(args);
    let shown = ask(app, &args.home, async |engine| {
        let run = engine.find_run(&args.id).await?.id;
        match &args.step {
            Some(path) => {
                let details = engine.show_step(&run, path).await?;
                Ok(step_details_json(&details, values))
            }
            None => Ok(run_report_json(&engine.show_run(&run).await?, values)),
        }
    })?;
    tell(shown, args);
    Ok(Exit::Completed)
}

/// Returns the form of the values that the command prints.
pub fn values(args: &RunsShow) -> Values {
    match args.json {
        true => Values::Json,
        false => Values::Edn,
    }
}

/// Prints a run, or one step of it, in the form of the API.
pub fn tell(shown: Json, args: &RunsShow) {
    match (&args.step, args.json) {
        (_, true) => output::json(&ok(shown)),
        (Some(_), false) => one_step::tell(&shown),
        (None, false) => {
            output::data(&describe_json(&shown, args.full));
            if !shown["errorText"].is_null() {
                output::data(&error_page(&shown, args.full));
            }
        }
    }
}

/// Returns the page of a run, with why it failed.
pub(in crate::cli) fn page(shown: &Json) -> String {
    let mut page = describe_json(shown, false);
    if !shown["errorText"].is_null() {
        page.push_str(&error_page(shown, false));
    }
    page
}

/// Returns why a run failed, as part of its page.
fn error_page(shown: &Json, full: bool) -> String {
    let pieces = &shown["errorText"];
    match maybe(shown, "errorData").filter(|_| full) {
        None => format!("\n{}", draw_pieces(pieces, None)),
        Some(data) => format!(
            "\n{}\nerror data\n{}\n",
            draw_pieces(pieces, Some("data")),
            laid_out(&data)
        ),
    }
}

/// Lays out a value that is EDN text.
fn laid_out(text: &str) -> String {
    codec::decode(text).map_or_else(|_| text.to_owned(), |value| pretty(&value))
}

/// Returns the page of a run without its error.
pub(super) fn describe_json(run: &Json, full: bool) -> String {
    let created_ms = ms(&run["createdAt"]).unwrap_or_default();
    let steps: Vec<&Json> = list(run, "steps").collect();
    let mut out = String::new();
    for (name, words) in heading(run) {
        out.push_str(&format!("{name:<7} {words}\n"));
    }
    for child in list(run, "children") {
        out.push_str(&child_line(child));
    }
    if !steps.is_empty() {
        out.push('\n');
        out.push_str(&step_table(&steps, created_ms));
    }
    for step in &steps {
        out.push_str(&more(step, run, full));
    }
    if steps
        .iter()
        .any(|step| list(step, "costs").next().is_some())
    {
        let micros = run["costMicros"].as_i64().unwrap_or_default();
        out.push_str(&format!("\ncost    {}\n", dollars(micros)));
    }
    for step in &steps {
        if let Some(notification) = maybe(step, "notification") {
            out.push_str(&format!(
                "{} notified  {notification}\n",
                text(step, "path")
            ));
        }
    }
    for conversation in list(run, "conversations") {
        out.push_str(&conversation::describe(conversation, full));
    }
    out.push_str(&endings(run));
    out
}

/// Describes a child run. If the caller has no access to it, only its id and status are known.
fn child_line(child: &Json) -> String {
    let status = state_text(child);
    let names = [Some(text(child, "id")), maybe(child, "flow"), Some(status)];
    let names: Vec<String> = names.into_iter().flatten().collect();
    format!("child   {}\n", names.join("  "))
}

/// Returns the lines after the steps: compensations, log lines, open questions and the result.
fn endings(run: &Json) -> String {
    let mut out = String::new();
    for compensation in list(run, "undone") {
        let status = match maybe(compensation, "message") {
            Some(message) => format!("failed: {message}"),
            None => "done".to_owned(),
        };
        let [what, path] = ["what", "path"].map(|name| text(compensation, name));
        out.push_str(&format!("{what}  {path}  {status}\n"));
    }
    for line in list(run, "log") {
        let words = laid_out(&text(line, "line"));
        out.push_str(&format!("{}  {words}\n", text(line, "what")));
    }
    for wait in list(run, "waits") {
        if wait["payload"].is_null() && wait["state"] == "open" {
            let answer = how_to_answer(&rows::wait(wait));
            out.push_str(&format!("\nanswer {answer}\n"));
        }
    }
    if let Some(result) = maybe(run, "result") {
        out.push_str(&format!("\nresult\n{}\n", laid_out(&result)));
    }
    out
}

/// Describes the run as a whole; default values are left out.
fn heading(run: &Json) -> Vec<(&'static str, String)> {
    let created = text(run, "createdAt");
    let status = match &run["queue"] {
        Json::Null => state_text(run),
        place => place_of_json(place),
    };
    let mut lines = vec![
        ("run", text(run, "id")),
        ("flow", text(run, "flow")),
        ("status", status),
        ("input", text(run, "input")),
        (
            "started",
            format!("{created} by {}", text(run, "startedBy")),
        ),
    ];
    if let (Some(ended), Some(began_ms)) = (maybe(run, "endedAt"), ms(&run["createdAt"])) {
        let ended_ms = ms(&run["endedAt"]).unwrap_or(began_ms);
        let took = seconds(ended_ms.saturating_sub(began_ms).max(0));
        lines.push(("ended", format!("{ended} after {took}")));
    }
    let number = |name: &str| run[name].as_i64().filter(|number| *number != 0);
    let is_over = !run["endedAt"].is_null();
    let texts = [
        ("known as", maybe(run, "externalId")),
        ("invoked as", maybe(run, "invocation")),
        ("key", maybe(run, "key")),
        ("cancel", maybe(run, "cancelReason")),
        ("made from", maybe(run, "origin")),
        (
            "parent",
            maybe(run, "parent").map(|parent| format!("{parent} (root {})", text(run, "root"))),
        ),
        ("due", maybe(run, "due").filter(|_| !is_over)),
        ("priority", number("priority").map(|it| it.to_string())),
        ("pass", number("pass").map(|it| (it + 1).to_string())),
        (
            "journal",
            maybe(run, "journalRemovedAt")
                .map(|at| format!("removed by gc at {at}; the steps are no longer available")),
        ),
    ];
    lines.extend(
        texts
            .into_iter()
            .filter_map(|(name, text)| Some((name, text?))),
    );
    lines.push((
        "durability",
        match run["durability"].as_str() {
            Some("relaxed") => "relaxed: finished work survives a crash of the process",
            _ => "full: finished work survives a power failure",
        }
        .to_owned(),
    ));
    lines
}

/// Prints details that do not fit into the table.
fn more(step: &Json, run: &Json, full: bool) -> String {
    let mut out = String::new();
    let path = text(step, "path");
    let created_ms = ms(&run["createdAt"]).unwrap_or_default();
    let tries: Vec<&Json> = list(step, "tries").collect();
    for attempt in tries.iter().filter(|_| tries.len() > 1) {
        let started_ms = ms(&attempt["startedAt"]).unwrap_or(created_ms);
        let end = maybe(attempt, "error").unwrap_or_else(|| {
            match attempt["endedAt"].is_null() {
                true => "under way",
                false => "done",
            }
            .to_owned()
        });
        out.push_str(&format!(
            "  {path} attempt {} at {}: {end}\n",
            attempt["number"],
            seconds((started_ms - created_ms).max(0)),
        ));
    }
    let questions = format!("{path}?");
    for wait in list(run, "waits") {
        let at = text(wait, "step");
        if at == path || at.starts_with(&questions) {
            out.push_str(&format!("  {}\n", wait_text(wait)));
        }
    }
    if full {
        let request = maybe(step, "request").unwrap_or_else(|| "(not kept)".to_owned());
        let result = maybe(step, "result").unwrap_or_else(|| "(none)".to_owned());
        out.push_str(&format!(
            "  {path}\n    asked {request}\n    gave  {result}\n"
        ));
        if let Some(data) = maybe(step, "errorData") {
            out.push_str(&format!("    data  {data}\n"));
        }
    }
    out
}

/// Describes how long a wait took, and who answered it.
fn wait_text(wait: &Json) -> String {
    let path = text(wait, "step");
    let who = maybe(wait, "decidedBy").map_or_else(String::new, |who| format!(" by {who}"));
    match (ms(&wait["decidedAt"]), wait["state"] == "open") {
        (Some(decided_ms), _) => {
            let opened_ms = ms(&wait["opened"]).unwrap_or(decided_ms);
            let took = seconds((decided_ms - opened_ms).max(0));
            format!("{path} waited {took} for an answer{who}")
        }
        (None, true) => format!("{path} waits under the key {}", text(wait, "key")),
        (None, false) => format!("{path} waited, and was not answered"),
    }
}

/// Converts millionths of a dollar to dollars.
fn dollars(micros: i64) -> String {
    format!("${}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn step_table(steps: &[&Json], created_ms: i64) -> String {
    let columns = [
        Column::Whole("step"),
        Column::Extra("type"),
        Column::Cut("status"),
        Column::Extra("at"),
        Column::Extra("took"),
        Column::Extra("bytes"),
        Column::Cut("result"),
    ];
    table(
        &columns,
        steps.iter().map(|step| step_row(step, created_ms)),
    )
}

fn step_row(step: &Json, created_ms: i64) -> Vec<String> {
    let started_ms = ms(&step["startedAt"]).unwrap_or(created_ms);
    let tries = match step["attempts"].as_u64() {
        Some(attempts @ 2..) => format!(", {attempts} attempts"),
        _ => String::new(),
    };
    let status = text(step, "status");
    let is_in_doubt = step["inDoubt"] == true && status != StepStatus::InDoubt.name();
    let doubt = if is_in_doubt { ", in doubt" } else { "" };
    let title = match maybe(step, "title") {
        Some(title) => format!(" {}", brief(&title)),
        None => String::new(),
    };
    let depth = step["depth"].as_u64().unwrap_or_default();
    let indent = "  ".repeat(usize::try_from(depth).unwrap_or_default());
    let kind = text(step, "type");
    vec![
        format!("{indent}{}{title}", text(step, "path")),
        match maybe(step, "packaged") {
            Some(id) => format!("{kind} {id}"),
            None => kind,
        },
        format!("{status}{tries}{doubt}"),
        format!("+{}", seconds((started_ms - created_ms).max(0))),
        step["millis"]
            .as_i64()
            .map_or_else(|| "-".to_owned(), seconds),
        step["resultBytes"]
            .as_u64()
            .map_or_else(|| "-".to_owned(), |bytes| bytes.to_string()),
        brief(&text(step, "result")),
    ]
}

fn brief(text: &str) -> String {
    match text.char_indices().nth(BRIEF) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
