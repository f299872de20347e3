//! `flowstone runs watch` against a server, which is asked again and again.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use flowstone_engine::SystemClock;
use flowstone_engine::ports::Clock as _;
use serde_json::Value;

use super::{PAGE, Remote};
use crate::cli::args::RunsWatch;
use crate::cli::exit::Exit;
use crate::cli::interrupt::Interrupt;
use crate::cli::report::Report;
use crate::cli::rows::{list as listed, text};
use crate::cli::runs::watch::{LOOK_EVERY, View, unfinished};

/// How often the list of unfinished runs is asked for: each look is a request for the list, and one for each run on a
/// screen.
const LIST_EVERY: Duration = Duration::from_secs(1);

/// Watches until the run ends, or the user leaves.
pub(super) fn watch(remote: &Remote, args: &RunsWatch) -> Result<Exit, Report> {
    let interrupt = Interrupt::listen();
    let mut places = HashMap::new();
    if let Some(id) = &args.id {
        // A run that does not exist is reported before the screen is cleared.
        remote.get(&["runs", id], &[])?;
    }
    let mut view = View::open();
    while !interrupt.is_set() && !view.is_left() {
        let pause = match &args.id {
            Some(id) => {
                if has_moved(remote, id, &mut places)? && view.one(report(remote, id)?) {
                    break;
                }
                LOOK_EVERY
            }
            None => {
                all(remote, args.limit, (&mut view, &mut places))?;
                LIST_EVERY
            }
        };
        pause_within(pause, || interrupt.is_set() || view.is_left());
    }
    view.close();
    Ok(Exit::Completed)
}

/// Sleeps, and returns early if the user leaves.
fn pause_within(pause: Duration, is_left: impl Fn() -> bool) {
    let mut left = pause;
    while !left.is_zero() && !is_left() {
        let part = left.min(LOOK_EVERY);
        thread::sleep(part);
        left -= part;
    }
}

/// How far the journal of a run was read.
#[derive(Default)]
struct Place {
    seq: i64,
    /// The path of the latest entry.
    path: String,
    /// Pass, last change and status.
    row: Option<[String; 3]>,
}

fn report(remote: &Remote, run: &str) -> Result<Value, Report> {
    let query = [("full", "true".to_owned()), ("values", "edn".to_owned())];
    remote.get(&["runs", run], &query)
}

/// Tells whether a run has changed since the last look.
fn has_moved(
    remote: &Remote,
    run: &str,
    places: &mut HashMap<String, Place>,
) -> Result<bool, Report> {
    let place = places.entry(run.to_owned()).or_default();
    let shown = remote.get(&["runs", run], &[])?;
    let now = [
        shown["pass"].to_string(),
        text(&shown, "updatedAt"),
        text(&shown, "status"),
    ];
    let is_other_pass = place.row.as_ref().is_some_and(|row| row[0] != now[0]);
    if is_other_pass {
        place.seq = 0;
    }
    let has_journal = shown["journal"] == true;
    let has_entries = has_journal && read_on(remote, run, place)?;
    let is_other_row = place.row.as_ref() != Some(&now);
    place.row = Some(now);
    Ok(has_entries || is_other_row)
}

/// Reads the journal of a run to its end, and tells whether there was anything.
fn read_on(remote: &Remote, run: &str, place: &mut Place) -> Result<bool, Report> {
    let before = place.seq;
    loop {
        let query = [
            ("after", place.seq.to_string()),
            ("limit", PAGE.to_string()),
        ];
        let page = remote.get(&["runs", run, "journal"], &query)?;
        if let Some(last) = listed(&page, "entries").last() {
            place.seq = last["seq"].as_i64().unwrap_or(place.seq);
            place.path = text(last, "path");
        }
        if page["next"].is_null() {
            return Ok(place.seq != before);
        }
    }
}

/// Shows the unfinished runs.
fn all(
    remote: &Remote,
    limit: usize,
    (view, places): (&mut View, &mut HashMap<String, Place>),
) -> Result<(), Report> {
    let statuses: Vec<&str> = unfinished().map(|status| status.name()).collect();
    let filters = [("status", statuses.join(","))];
    let (runs, _) = remote.pages(&["runs"], "runs", &filters, limit)?;
    if view.is_redrawn() {
        places.retain(|id, _| runs.iter().any(|run| run["id"] == **id));
        for run in &runs {
            has_moved(remote, &text(run, "id"), places)?;
        }
        let step = |id: &str| {
            places
                .get(id)
                .map_or_else(String::new, |it| it.path.clone())
        };
        view.all(&runs, step, SystemClock.now_ms());
        return Ok(());
    }
    for id in view.gone(&runs) {
        let run = remote.get(&["runs", &id], &[])?;
        view.end(&id, &text(&run, "status"));
    }
    view.changes(&runs);
    Ok(())
}
