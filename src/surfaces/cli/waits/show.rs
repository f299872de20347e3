//! `flowstone waits show`: prints one wait, with everything that is needed to answer it.

use flowstone_engine::ports::WaitRow;
use flowstone_engine::waits::{actions, roles};
use flowstone_engine::{Caller, WaitReport, codec};
use flowstone_lang::value::Value;

use super::list::instant_text;
use super::render::how_to_answer;
use crate::cli::args::WaitsShow;
use crate::cli::exit::Exit;
use crate::cli::home::Project;
use crate::cli::outcome::of_engine_error;
use crate::cli::pretty::pretty;
use crate::cli::report::Report;
use crate::cli::runtime::Runtime;
use crate::cli::{App, Open, output};
use crate::json::{ok, state, wait_report_json};

/// The details of a wait that are printed, in this order.
const SHOWN: &[&str] = &[
    "title", "message", "question", "request", "value", "data", "error", "approval",
];

/// Shows the wait.
pub(super) fn run(args: &WaitsShow, app: &dyn App) -> Result<Exit, Report> {
    let caller = Caller {
        name: None,
        roles: args.roles.clone(),
    };
    let report = Runtime::start()?.block_on(async {
        let engine = app.open(&Project::find(&args.home), Open::Existing)?;
        let report = engine.show_wait(&args.id, &caller).await;
        report.map_err(|error| of_engine_error(&error))
    })?;
    if args.json {
        output::json(&ok(wait_report_json(&report)));
    } else {
        output::data(&describe(&report));
    }
    Ok(Exit::Completed)
}

/// Prints a wait from a server's response, which does not contain the token.
pub fn print_wait(row: WaitRow) {
    let details = codec::decode(&row.details).unwrap_or(Value::Nil);
    output::data(&describe(&WaitReport {
        actions: actions(&details),
        roles: roles(&details),
        details,
        token: None,
        links: Vec::new(),
        refused: Vec::new(),
        row,
    }));
}

/// Returns the page of a wait.
pub(in crate::cli) fn describe(report: &WaitReport) -> String {
    let row = &report.row;
    let mut lines: Vec<(&str, String)> = vec![
        ("wait", row.id.clone()),
        ("flow", row.flow.clone()),
        ("run", row.run.to_string()),
        ("step", row.path.clone()),
        ("key", row.key.clone()),
        ("state", state_text(report)),
    ];
    lines.extend(shown_details(&report.details));
    let listed = |names: &[String]| {
        let names: Vec<String> = names.iter().map(|name| format!(":{name}")).collect();
        names.join(" ")
    };
    if !report.actions.is_empty() {
        lines.push(("actions", listed(&report.actions)));
    }
    if !report.roles.is_empty() {
        lines.push(("roles", listed(&report.roles)));
    }
    let validation = report.details.get("validation");
    if let Some(validation) = validation.filter(|validation| !validation.is_nil()) {
        lines.push(("validation", brief(validation)));
    }
    if let Some(event) = &row.event {
        let key = event.key.as_deref().unwrap_or("any");
        lines.push(("event", format!("{}, key {key}", event.name)));
    }
    if let Some(webhook) = &row.webhook {
        lines.push(("webhook", webhook.clone()));
    }
    lines.push(("digest", row.digest.clone()));
    match &report.token {
        Some(token) => lines.push(("token", token.clone())),
        None if row.ending.is_none() && !report.roles.is_empty() => {
            lines.push(("token", "hidden; requires one of the roles".to_owned()));
        }
        None => {}
    }
    for (_, link) in &report.links {
        lines.push(("link", link.clone()));
    }
    for signal in &report.refused {
        let why = signal.refused.as_ref().map_or("", |(_, why)| why);
        lines.push(("refused", format!("{}: {why}", signal.payload)));
    }
    if state(row) == "open" {
        let command = how_to_answer(row);
        let start = row.key.len() + 2;
        lines.push(("answer", command[start..].to_owned()));
    }
    lines
        .into_iter()
        .map(|(name, value)| format!("{name:<10}  {}\n", value.replace('\n', "\n            ")))
        .collect()
}

fn state_text(report: &WaitReport) -> String {
    let row = &report.row;
    match (state(row), row.deadline_ms) {
        ("open", Some(deadline)) => format!("open until {}", instant_text(deadline)),
        ("open", None) => "open".to_owned(),
        (state, _) => {
            let by = row.decided_by.as_ref().map(|by| format!(" by {by}"));
            let at = row.decided_ms.map(|at| format!(" at {}", instant_text(at)));
            let payload = row
                .payload
                .as_ref()
                .map(|payload| format!(" with {payload}"));
            let facts = [by, at, payload].map(Option::unwrap_or_default).concat();
            format!("{state}{facts}")
        }
    }
}

/// Returns what a wait shows to the person who answers it, with the name of each part.
pub(in crate::cli) fn shown_details(details: &Value) -> Vec<(&'static str, String)> {
    let parts = SHOWN.iter();
    let shown = parts.filter_map(|key| Some((*key, brief(detail(details, key)?))));
    shown.collect()
}

fn detail<'a>(details: &'a Value, key: &str) -> Option<&'a Value> {
    let own = details.get("show").and_then(|show| show.get(key));
    own.or_else(|| details.get(key))
        .filter(|value| !value.is_nil())
}

fn brief(value: &Value) -> String {
    match value.as_str() {
        Some(text) => text.to_string(),
        None => pretty(value).trim_end().to_owned(),
    }
}
