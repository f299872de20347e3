//! `flowstone runs show`: one run with its timeline.

use flowstone_engine::codec;
use flowstone_engine::json::to_json;
use flowstone_engine::{CostLine, LogLine, RunReport, StepReport, StepStatus, UndoReport};
use serde_json::json;

use super::{ask, row_json, status_words};
use crate::cli::App;
use crate::cli::args::RunsShow;
use crate::cli::exit::Exit;
use crate::cli::outcome::{how_to_answer, instant, of_failure, stored_json, wait_json};
use crate::cli::output;
use crate::cli::pretty::pretty;
use crate::cli::progress::seconds;
use crate::cli::queue::{place_json, place_words};
use crate::cli::report::{Report, Shown};
use crate::cli::table::table;

/// How much of a value a line shows.
const BRIEF: usize = 60;

/// Shows the run.
pub(super) fn run(args: &RunsShow, app: &dyn App) -> Result<Exit, Report> {
    let shown = ask(app, &args.home, async |engine| {
        engine.show_run(&engine.find_run(&args.id).await?.id).await
    })?;
    if args.json {
        output::json(&in_json(&shown));
    } else {
        output::data(&in_words(&shown));
        if let Some(failure) = &shown.failure {
            output::report(&of_failure(failure));
        }
    }
    Ok(Exit::Completed)
}

fn in_json(shown: &RunReport) -> serde_json::Value {
    let mut run = row_json(&shown.row);
    let steps: Vec<_> = shown.steps.iter().map(step_json).collect();
    let lines: Vec<_> = shown.lines.iter().map(line_json).collect();
    let waits: Vec<_> = shown.waits.iter().map(wait_json).collect();
    if let Some(fields) = run.as_object_mut() {
        fields.insert("ok".into(), json!(true));
        if let Some(failure) = &shown.failure {
            fields.insert("error".into(), of_failure(failure).to_json());
        }
        fields.insert("costMicros".into(), json!(shown.cost_micros));
        fields.insert("queue".into(), json!(shown.queue.as_ref().map(place_json)));
        fields.insert("steps".into(), json!(steps));
        let children: Vec<_> = shown.children.iter().map(row_json).collect();
        fields.insert("children".into(), json!(children));
        let undone: Vec<_> = shown.undone.iter().map(undone_json).collect();
        fields.insert("undone".into(), json!(undone));
        fields.insert("log".into(), json!(lines));
        fields.insert("waits".into(), json!(waits));
    }
    run
}

fn step_json(step: &StepReport) -> serde_json::Value {
    json!({
        "path": step.path,
        "type": step.kind,
        "status": step.status.name(),
        "attempts": step.attempts,
        "inDoubt": step.in_doubt,
        "error": step.error,
        "costs": step.costs.iter().map(cost_json).collect::<Vec<_>>(),
        "startedAt": instant(step.started_ms),
        "completedAt": step.ended_ms.map(instant),
        "request": step.request,
        "result": step.result.as_deref().map(stored_json),
        "notification": step.notification.as_deref().map(stored_json),
    })
}

fn undone_json(undone: &UndoReport) -> serde_json::Value {
    json!({
        "path": undone.path,
        "what": undone.what,
        "done": undone.is_done,
        "message": undone.message,
    })
}

fn cost_json(cost: &CostLine) -> serde_json::Value {
    json!({
        "label": cost.label,
        "unit": cost.unit,
        "quantity": cost.quantity,
        "micros": cost.micros,
        "problem": cost.problem,
    })
}

fn line_json(line: &LogLine) -> serde_json::Value {
    json!({
        "at": instant(line.at_ms),
        "what": line.what,
        "line": to_json(&line.line).unwrap_or_default(),
    })
}

fn in_words(shown: &RunReport) -> String {
    let row = &shown.row;
    let mut out = format!("run     {}\nflow    {}\n", row.id, row.flow);
    let status = match &shown.queue {
        Some(place) => place_words(place),
        None => status_words(row),
    };
    out.push_str(&format!("status  {status}\n"));
    if let Some(parent) = &row.parent {
        out.push_str(&format!("parent  {} (root {})\n", parent.run, parent.root));
    }
    if row.pass > 0 {
        out.push_str(&format!("pass    {}\n", row.pass + 1));
    }
    out.push_str(&format!("input   {}\n", row.input));
    for child in &shown.children {
        let status = status_words(child);
        out.push_str(&format!("child   {}  {}  {status}\n", child.id, child.flow));
    }
    if !shown.steps.is_empty() {
        out.push('\n');
        let rows = shown.steps.iter().map(step_row);
        out.push_str(&table(&["step", "type", "status", "took", "result"], rows));
    }
    if shown.steps.iter().any(|step| !step.costs.is_empty()) {
        out.push_str(&format!("\ncost    {}\n", dollars(shown.cost_micros)));
    }
    for step in &shown.steps {
        if let Some(notification) = &step.notification {
            out.push_str(&format!("{} notified  {notification}\n", step.path));
        }
    }
    for undone in &shown.undone {
        let status = match &undone.message {
            Some(message) => format!("failed: {message}"),
            None => "done".to_owned(),
        };
        out.push_str(&format!("{}  {}  {status}\n", undone.what, undone.path));
    }
    for line in &shown.lines {
        out.push_str(&format!("{}  {}\n", line.what, pretty(&line.line)));
    }
    for wait in shown.waits.iter().filter(|wait| wait.payload.is_none()) {
        out.push_str(&format!("\nanswer {}\n", how_to_answer(wait)));
    }
    if let Some(result) = &row.result {
        let value = codec::decode(result).map_or_else(|_| result.clone(), |value| pretty(&value));
        out.push_str(&format!("\nresult\n{value}\n"));
    }
    out
}

/// Returns millionths of a dollar in dollars.
fn dollars(micros: i64) -> String {
    format!("${}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

fn step_row(step: &StepReport) -> Vec<String> {
    let took = step.ended_ms.map(|ended| seconds(ended - step.started_ms));
    let tries = match step.attempts {
        0 | 1 => String::new(),
        attempts => format!(", {attempts} attempts"),
    };
    let doubt = match step.in_doubt && step.status != StepStatus::InDoubt {
        true => ", in doubt",
        false => "",
    };
    vec![
        step.path.clone(),
        step.kind.clone(),
        format!("{}{tries}{doubt}", step.status.name()),
        took.unwrap_or_else(|| "-".to_owned()),
        brief(step.result.as_deref().unwrap_or("")),
    ]
}

fn brief(text: &str) -> String {
    match text.char_indices().nth(BRIEF) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
