//! `flowstone runs events`: prints the journal of a run, one event per line, also while another process executes it.

use std::time::Duration;

use flowstone_engine::{Engine, EngineError, EventsPage};
use serde_json::{Value as Json, json};

use super::ask;
use crate::cli::args::RunsEvents;
use crate::cli::exit::Exit;
use crate::cli::interrupt::Interrupt;
use crate::cli::report::Report;
use crate::cli::rows::text;
use crate::cli::{App, output};
use crate::json::{Values, event_json, instant};

/// How often the journal is polled while nothing happens.
pub const LOOK_EVERY: Duration = Duration::from_millis(150);
/// How many characters of a payload are shown to people.
const BRIEF: usize = 100;

/// Prints the events.
pub(super) fn run(args: &RunsEvents, app: &dyn App) -> Result<Exit, Report> {
    let interrupt = Interrupt::listen();
    ask(app, &args.home, async |engine| {
        follow(engine, args, &interrupt).await
    })
}

async fn follow(
    engine: &Engine,
    args: &RunsEvents,
    interrupt: &Interrupt,
) -> Result<Exit, EngineError> {
    let run = engine.find_run(&args.id).await?.id;
    let (mut seq, mut pass) = (args.after, None);
    loop {
        let page = engine.events_after(&run, seq, pass).await?;
        tell(&page, args.json);
        pass = Some(page.row.pass);
        seq = page.events.last().map_or(seq, |event| event.seq);
        if page.is_full {
            continue;
        }
        if !args.follow || page.row.status.is_final() {
            if args.follow {
                let ended = page.row.ended_ms.map(instant);
                end(page.row.status.name(), &ended.into(), args.json);
            }
            return Ok(Exit::Completed);
        }
        if interrupt.is_set() {
            return Ok(Exit::Interrupted);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn tell(page: &EventsPage, as_json: bool) {
    for event in &page.events {
        print(&event_json(event, values(as_json)), as_json);
    }
}

/// Returns the form of the payloads that the command prints.
pub fn values(as_json: bool) -> Values {
    match as_json {
        true => Values::Json,
        false => Values::Edn,
    }
}

/// Prints an entry, in the form of the API.
pub fn print(entry: &Json, as_json: bool) {
    match as_json {
        true => output::json_line(entry),
        false => output::data(&line(entry)),
    }
}

/// Reports how the run ended, if the command waited for that.
pub fn end(status: &str, ended_at: &Json, as_json: bool) {
    if as_json {
        output::json_line(&json!({
            "kind": "end",
            "status": status,
            "at": ended_at,
        }));
    } else {
        output::note(&format!("the run is {status}"));
    }
}

/// Returns an entry as a line.
pub(in crate::cli) fn line(entry: &Json) -> String {
    let what = format!(":{}", text(entry, "type"));
    format!(
        "{:>5}  {}  {:<7} {:<12} {}  {}",
        entry["seq"].as_i64().unwrap_or_default(),
        text(entry, "at"),
        text(entry, "kind"),
        what,
        text(entry, "path"),
        brief(&text(entry, "payload"))
    )
}

fn brief(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    match text.char_indices().nth(BRIEF) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
