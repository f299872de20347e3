//! `flowstone runs show`: prints one run with its steps.

mod conversation;
mod one_step;

use flowstone_engine::codec;
use flowstone_engine::outcome::Failure;
use flowstone_engine::ports::{Durability, WaitRow, WaitState};
use flowstone_engine::{RunReport, StepReport, StepStatus};

use super::{ask, status_words};
use crate::cli::App;
use crate::cli::args::RunsShow;
use crate::cli::exit::Exit;
use crate::cli::outcome::{how_to_answer, of_failure};
use crate::cli::output;
use crate::cli::pretty::pretty;
use crate::cli::progress::seconds;
use crate::cli::queue::place_words;
use crate::cli::report::{Report, Shown};
use crate::cli::table::{Column, table};
use crate::json::{instant, ok, run_report_json};

/// How many characters of a value fit on a line.
const BRIEF: usize = 60;

/// Prints the run, or one step of it.
pub(super) fn run(args: &RunsShow, app: &dyn App) -> Result<Exit, Report> {
    if let Some(path) = &args.step {
        let details = ask(app, &args.home, async |engine| {
            let run = engine.find_run(&args.id).await?.id;
            engine.show_step(&run, path).await
        })?;
        one_step::tell(&details, args.json);
        return Ok(Exit::Completed);
    }
    let shown = ask(app, &args.home, async |engine| {
        engine.show_run(&engine.find_run(&args.id).await?.id).await
    })?;
    if args.json {
        output::json(&ok(run_report_json(&shown)));
    } else {
        output::data(&in_words(&shown, args.full));
        if let Some(failure) = &shown.failure {
            output::data(&error_page(failure, args.full));
        }
    }
    Ok(Exit::Completed)
}

/// Returns why a run failed, as part of its page.
fn error_page(failure: &Failure, full: bool) -> String {
    let mut report = of_failure(failure);
    let data = &failure.exception.data;
    let has_data = data.as_map().is_some_and(|data| !data.is_empty());
    if !full || !has_data {
        return format!("\n{}", report.draw());
    }
    report.data = None;
    format!("\n{}\nerror data\n{}\n", report.draw(), pretty(data))
}

pub(super) fn in_words(shown: &RunReport, full: bool) -> String {
    let row = &shown.row;
    let mut out = String::new();
    for (name, words) in heading(shown) {
        out.push_str(&format!("{name:<7} {words}\n"));
    }
    for child in &shown.children {
        let status = status_words(child);
        out.push_str(&format!("child   {}  {}  {status}\n", child.id, child.flow));
    }
    if !shown.steps.is_empty() {
        out.push('\n');
        let rows = shown
            .steps
            .iter()
            .map(|step| step_row(step, row.created_ms));
        let columns = [
            Column::Whole("step"),
            Column::Extra("type"),
            Column::Cut("status"),
            Column::Extra("at"),
            Column::Extra("took"),
            Column::Extra("bytes"),
            Column::Cut("result"),
        ];
        out.push_str(&table(&columns, rows));
    }
    for step in &shown.steps {
        out.push_str(&more(step, shown, full));
    }
    if shown.steps.iter().any(|step| !step.costs.is_empty()) {
        out.push_str(&format!("\ncost    {}\n", dollars(shown.cost_micros)));
    }
    for step in &shown.steps {
        if let Some(notification) = &step.notification {
            out.push_str(&format!("{} notified  {notification}\n", step.path));
        }
    }
    for conversation in shown.conversations() {
        out.push_str(&conversation::in_words(&conversation, full));
    }
    for compensation in &shown.compensations {
        let status = match &compensation.message {
            Some(message) => format!("failed: {message}"),
            None => "done".to_owned(),
        };
        out.push_str(&format!(
            "{}  {}  {status}\n",
            compensation.what, compensation.path
        ));
    }
    for line in &shown.lines {
        out.push_str(&format!("{}  {}\n", line.what, pretty(&line.line)));
    }
    for wait in shown.waits.iter().filter(|wait| wait.payload.is_none()) {
        if wait.state == WaitState::Open && wait.is_question() {
            out.push_str(&format!("\nanswer {}\n", how_to_answer(wait)));
        }
    }
    if let Some(result) = &row.result {
        let value = codec::decode(result).map_or_else(|_| result.clone(), |value| pretty(&value));
        out.push_str(&format!("\nresult\n{value}\n"));
    }
    out
}

/// Describes the run as a whole; default values are left out.
fn heading(shown: &RunReport) -> Vec<(&'static str, String)> {
    let row = &shown.row;
    let shown_at = |ms: i64| instant(ms).as_str().unwrap_or_default().to_owned();
    let mut lines = vec![
        ("run", row.id.to_string()),
        ("flow", row.flow.clone()),
        (
            "status",
            shown
                .queue
                .as_ref()
                .map_or_else(|| status_words(row), place_words),
        ),
        ("input", row.input.clone()),
        (
            "started",
            format!("{} by {}", shown_at(row.created_ms), row.started_by),
        ),
    ];
    if let Some(ended) = row.ended_ms {
        let took = seconds(ended.saturating_sub(row.created_ms).max(0));
        lines.push(("ended", format!("{} after {took}", shown_at(ended))));
    }
    let texts = [
        ("known as", row.external_id.clone()),
        ("invoked as", row.invocation.clone()),
        ("key", row.key.clone()),
        ("cancel", row.cancel_requested.clone()),
        ("made from", row.origin.as_ref().map(ToString::to_string)),
        (
            "parent",
            row.parent
                .as_ref()
                .map(|parent| format!("{} (root {})", parent.run, parent.root)),
        ),
        (
            "due",
            row.due_ms.filter(|_| !row.status.is_final()).map(shown_at),
        ),
        (
            "priority",
            (row.priority != 0).then(|| row.priority.to_string()),
        ),
        (
            "pass",
            (row.pass != 0).then(|| row.pass.saturating_add(1).to_string()),
        ),
    ];
    lines.extend(
        texts
            .into_iter()
            .filter_map(|(name, text)| Some((name, text?))),
    );
    if let Some(pruned) = row.pruned_ms {
        let words = format!(
            "removed by gc at {}; the steps are no longer available",
            shown_at(pruned)
        );
        lines.push(("journal", words));
    }
    lines.push((
        "durability",
        match shown.durability {
            Durability::Full => "full: finished work survives a power failure",
            Durability::Relaxed => "relaxed: finished work survives a crash of the process",
        }
        .to_owned(),
    ));
    lines
}

/// Prints details that do not fit into the table.
fn more(step: &StepReport, shown: &RunReport, full: bool) -> String {
    let mut out = String::new();
    let created_ms = shown.row.created_ms;
    if step.tries.len() > 1 {
        for attempt in &step.tries {
            out.push_str(&format!(
                "  {} attempt {} at {}: {}\n",
                step.path,
                attempt.number,
                seconds((attempt.started_ms - created_ms).max(0)),
                attempt.error.as_deref().unwrap_or(match attempt.ended_ms {
                    Some(_) => "done",
                    None => "under way",
                })
            ));
        }
    }
    let questions = format!("{}?", step.path);
    for wait in &shown.waits {
        if wait.path == step.path || wait.path.starts_with(&questions) {
            out.push_str(&format!("  {}\n", wait_words(wait)));
        }
    }
    if full {
        let request = step.request.as_deref().unwrap_or("(not kept)");
        let result = step.result.as_deref().unwrap_or("(none)");
        out.push_str(&format!(
            "  {}\n    asked {request}\n    gave  {result}\n",
            step.path
        ));
        if let Some(data) = &step.error_data {
            out.push_str(&format!("    data  {data}\n"));
        }
    }
    out
}

/// Describes how long a wait took, and who answered it.
fn wait_words(wait: &WaitRow) -> String {
    let who = match &wait.decided_by {
        Some(who) => format!(" by {who}"),
        None => String::new(),
    };
    match (wait.decided_ms, wait.state) {
        (Some(decided), _) => format!(
            "{} waited {} for an answer{who}",
            wait.path,
            seconds((decided - wait.opened_ms).max(0))
        ),
        (None, WaitState::Open) => format!("{} waits under the key {}", wait.path, wait.key),
        (None, _) => format!("{} waited, and was not answered", wait.path),
    }
}

/// Converts millionths of a dollar to dollars.
fn dollars(micros: i64) -> String {
    format!("${}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn step_row(step: &StepReport, created_ms: i64) -> Vec<String> {
    let took = step
        .ended_ms
        .map(|ended| seconds((ended - step.started_ms).max(0)));
    let tries = match step.attempts {
        0 | 1 => String::new(),
        attempts => format!(", {attempts} attempts"),
    };
    let doubt = match step.in_doubt && step.status != StepStatus::InDoubt {
        true => ", in doubt",
        false => "",
    };
    let title = match &step.title {
        Some(title) => format!(" {}", brief(title)),
        None => String::new(),
    };
    vec![
        format!("{}{}{title}", "  ".repeat(step.depth), step.path),
        match &step.packaged {
            Some(id) => format!("{} {id}", step.kind),
            None => step.kind.clone(),
        },
        format!("{}{tries}{doubt}", step.status.name()),
        format!("+{}", seconds((step.started_ms - created_ms).max(0))),
        took.unwrap_or_else(|| "-".to_owned()),
        step.result_bytes
            .map_or_else(|| "-".to_owned(), |bytes| bytes.to_string()),
        brief(step.result.as_deref().unwrap_or("")),
    ]
}

fn brief(text: &str) -> String {
    match text.char_indices().nth(BRIEF) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
