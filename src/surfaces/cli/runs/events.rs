//! `flowstone runs events`: prints the journal of a run, one event per line, also while another process executes it.

use std::time::Duration;

use flowstone_engine::{Engine, EngineError, EventsPage, RunEventRow};
use serde_json::json;

use super::ask;
use crate::cli::args::RunsEvents;
use crate::cli::exit::Exit;
use crate::cli::interrupt::Interrupt;
use crate::cli::report::Report;
use crate::cli::{App, output};
use crate::json::{event_json, instant};

/// How often the journal is polled while nothing happens.
const LOOK_EVERY: Duration = Duration::from_millis(150);
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
                end(&page, args.json);
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
        if as_json {
            output::json_line(&event_json(event));
        } else {
            output::data(&line(event));
        }
    }
}

/// Reports how the run ended, if the command waited for that.
fn end(page: &EventsPage, as_json: bool) {
    let status = page.row.status.name();
    if as_json {
        output::json_line(&json!({
            "kind": "end",
            "status": status,
            "at": page.row.ended_ms.map(instant),
        }));
    } else {
        output::note(&format!("the run is {status}"));
    }
}

fn line(event: &RunEventRow) -> String {
    let entry = &event.entry;
    let at = instant(entry.at_ms);
    let what = format!(":{}", entry.what);
    format!(
        "{:>5}  {}  {:<7} {:<12} {}  {}",
        event.seq,
        at.as_str().unwrap_or_default(),
        entry.kind.name(),
        what,
        entry.path,
        brief(&entry.payload)
    )
}

fn brief(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ");
    match text.char_indices().nth(BRIEF) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
