//! `flowstone runs watch`: redraws the state of runs as it changes, or prints one line per change.

mod keys;

use std::collections::HashMap;
use std::io::{self, IsTerminal};
use std::time::Duration;

use flowstone_engine::SystemClock;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{Clock, RunQuery, RunStatus, RunSummary};
use flowstone_engine::{Engine, EngineError, RunReport};

use self::keys::Keys;
use super::list::status_text;
use super::{ask, show};
use crate::cli::args::RunsWatch;
use crate::cli::exit::Exit;
use crate::cli::interrupt::Interrupt;
use crate::cli::progress::seconds;
use crate::cli::report::Report;
use crate::cli::table::{Column, table};
use crate::cli::{App, output};

/// How often the runs are polled.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Moves the cursor home and clears the rest of each line and of the screen.
const HOME: &str = "\x1b[H";
const REST_OF_LINE: &str = "\x1b[K\n";
const BELOW: &str = "\x1b[J";
/// The alternate screen of the terminal. Leaving it restores the earlier contents.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// Watches until the run ends, or the user leaves.
pub(super) fn run(args: &RunsWatch, app: &dyn App) -> Result<Exit, Report> {
    let interrupt = Interrupt::listen();
    ask(app, &args.home, async |engine| {
        let watched = match &args.id {
            Some(id) => Some(engine.find_run(id).await?.id),
            None => None,
        };
        let screen = Screen::open();
        let mut seen = HashMap::new();
        let mut steps = Steps::default();
        let end = loop {
            if interrupt.is_set() || screen.is_left() {
                break None;
            }
            let now_ms = SystemClock.now_ms();
            let is_over = match &watched {
                Some(run) => {
                    if steps.has_moved(engine, run).await? {
                        let report = engine.show_run(run).await?;
                        screen.one(&report, &mut seen);
                        report.row.status.is_final().then_some(report)
                    } else {
                        None
                    }
                }
                None => {
                    let runs = live(engine, args.limit).await?;
                    if screen.keys.is_some() {
                        steps.poll(engine, &runs).await?;
                        screen.all(&runs, &steps, now_ms);
                    } else {
                        tell_changes(engine, &runs, &mut seen).await?;
                    }
                    None
                }
            };
            if is_over.is_some() {
                break is_over;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        };
        let was_drawn = screen.close();
        // Leaving the alternate screen removes what was drawn, so it is printed once more.
        if let (Some(report), true) = (end, was_drawn) {
            output::data(&show::describe(&report, false));
        }
        Ok(Exit::Completed)
    })
}

/// Returns the unfinished runs.
async fn live(engine: &Engine, limit: usize) -> Result<Vec<RunSummary>, EngineError> {
    let statuses = RunStatus::NAMES.iter().map(|(status, _)| *status);
    let query = RunQuery {
        statuses: statuses.filter(|status| !status.is_final()).collect(),
        limit,
        ..RunQuery::default()
    };
    engine.summaries(query).await
}

/// The output of the command.
struct Screen {
    /// The terminal; `None` if it cannot redraw lines.
    keys: Option<Keys>,
}

impl Screen {
    fn open() -> Screen {
        let keys = io::stdout().is_terminal().then(Keys::listen);
        if keys.is_some() {
            output::screen(ENTER);
        }
        Screen { keys }
    }

    fn is_left(&self) -> bool {
        self.keys.as_ref().is_some_and(Keys::is_quit)
    }

    /// Tells whether anything was drawn on the alternate screen.
    fn close(self) -> bool {
        self.keys.is_some()
    }

    fn draw(&self, text: &str) {
        // Lines beyond the height of the screen would make it scroll.
        let room = screen_size().map_or(24, |(rows, _)| usize::from(rows));
        let lines: Vec<&str> = text.lines().collect();
        let mut out = HOME.to_owned();
        for line in lines.iter().take(room.saturating_sub(2)) {
            out.push_str(&output::as_shown(line));
            out.push_str(REST_OF_LINE);
        }
        out.push_str("q ends this");
        out.push_str(REST_OF_LINE.trim_end_matches('\n'));
        out.push_str(BELOW);
        output::screen(&out);
    }

    fn one(&self, report: &RunReport, seen: &mut HashMap<String, String>) {
        if self.keys.is_some() {
            self.draw(&show::describe(report, false));
            return;
        }
        for step in &report.steps {
            tell_change(seen, &step.path, step.status.name());
        }
        tell_change(seen, "the run", &super::status_text(&report.row));
    }

    fn all(&self, runs: &[RunSummary], steps: &Steps, now_ms: i64) {
        let rows = runs.iter().map(|run| {
            vec![
                run.id.to_string(),
                run.flow.clone(),
                status_text(run),
                steps.of(&run.id).to_owned(),
                seconds((now_ms - run.created_ms).max(0)),
            ]
        });
        let columns = [
            Column::Whole("run"),
            Column::Extra("flow"),
            Column::Cut("status"),
            Column::Cut("step"),
            Column::Whole("for"),
        ];
        let table = table(&columns, rows);
        let count = match runs.len() {
            0 => "no run is unfinished".to_owned(),
            1 => "1 run".to_owned(),
            count => format!("{count} runs"),
        };
        self.draw(&format!("{count}\n\n{table}"));
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        if self.keys.is_some() {
            output::screen(LEAVE);
        }
    }
}

/// The latest step of each run, as far as its journal was read.
#[derive(Default)]
struct Steps(HashMap<RunId, Place>);

#[derive(Default)]
struct Place {
    seq: i64,
    pass: Option<i64>,
    path: String,
    /// Pass, last change and status.
    row: Option<(i64, i64, RunStatus)>,
}

impl Steps {
    fn of(&self, run: &RunId) -> &str {
        self.0.get(run).map_or("", |place| &place.path)
    }

    /// Tells whether a run has changed since the last poll.
    async fn has_moved(&mut self, engine: &Engine, run: &RunId) -> Result<bool, EngineError> {
        let place = self.0.entry(run.clone()).or_default();
        let page = engine.events_after(run, place.seq, place.pass).await?;
        let now = (page.row.pass, page.row.updated_ms, page.row.status);
        let has_moved = !page.events.is_empty() || place.row != Some(now);
        place.row = Some(now);
        place.pass = Some(page.row.pass);
        place.seq = page.events.last().map_or(place.seq, |last| last.seq);
        Ok(has_moved)
    }

    /// Reads the events of the runs since the last poll.
    async fn poll(&mut self, engine: &Engine, runs: &[RunSummary]) -> Result<(), EngineError> {
        self.0.retain(|id, _| runs.iter().any(|run| run.id == *id));
        for run in runs {
            let place = self.0.entry(run.id.clone()).or_default();
            loop {
                let page = engine.events_after(&run.id, place.seq, place.pass).await?;
                place.pass = Some(page.row.pass);
                if let Some(last) = page.events.last() {
                    place.seq = last.seq;
                    place.path.clone_from(&last.entry.path);
                }
                if !page.is_full {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Prints a line for each run that has changed.
async fn tell_changes(
    engine: &Engine,
    runs: &[RunSummary],
    seen: &mut HashMap<String, String>,
) -> Result<(), EngineError> {
    let is_live = |id: &str| runs.iter().any(|run| run.id.as_str() == id);
    let mut gone: Vec<String> = seen.keys().filter(|id| !is_live(id)).cloned().collect();
    gone.sort_unstable();
    for id in gone {
        let row = engine.find_run(&id).await?;
        output::data(&format!("{id}  {}", row.status.name()));
        seen.remove(&id);
    }
    for run in runs {
        tell_change(seen, run.id.as_str(), &status_text(run));
    }
    Ok(())
}

/// Prints a line if something has changed.
fn tell_change(seen: &mut HashMap<String, String>, what: &str, now: &str) {
    if seen.get(what).is_some_and(|before| before == now) {
        return;
    }
    seen.insert(what.to_owned(), now.to_owned());
    output::data(&format!("{what}  {now}"));
}

/// Returns the height and width of the terminal.
fn screen_size() -> Option<(u16, u16)> {
    console::Term::stdout().size_checked()
}
