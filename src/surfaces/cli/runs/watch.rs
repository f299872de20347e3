//! `flowstone runs watch`: redraws the state of runs as it changes, or prints one line per change.

mod keys;
mod view;

use std::collections::HashMap;
use std::time::Duration;

use flowstone_engine::SystemClock;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{Clock, RunQuery, RunStatus, RunSummary};
use flowstone_engine::{Engine, EngineError};
use serde_json::Value as Json;

use super::ask;
use crate::cli::App;
use crate::cli::args::RunsWatch;
use crate::cli::exit::Exit;
use crate::cli::interrupt::Interrupt;
use crate::cli::report::Report;
use crate::json::{Values, run_report_json, summary_json};
pub use view::View;

/// How often the runs are polled.
pub const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Watches until the run ends, or the user leaves.
pub(super) fn run(args: &RunsWatch, app: &dyn App) -> Result<Exit, Report> {
    let interrupt = Interrupt::listen();
    ask(app, &args.home, async |engine| {
        let watched = match &args.id {
            Some(id) => Some(engine.find_run(id).await?.id),
            None => None,
        };
        let mut view = View::open();
        let mut steps = Steps::default();
        while !interrupt.is_set() && !view.is_left() {
            let is_over = match &watched {
                Some(run) if steps.has_moved(engine, run).await? => {
                    let report = engine.show_run(run).await?;
                    view.one(run_report_json(&report, Values::Edn))
                }
                Some(_) => false,
                None => {
                    all(engine, args.limit, (&mut view, &mut steps)).await?;
                    false
                }
            };
            if is_over {
                break;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        view.close();
        Ok(Exit::Completed)
    })
}

/// Shows the unfinished runs.
async fn all(
    engine: &Engine,
    limit: usize,
    (view, steps): (&mut View, &mut Steps),
) -> Result<(), EngineError> {
    let runs = live(engine, limit).await?;
    let shown: Vec<Json> = runs.iter().map(summary_json).collect();
    if view.is_redrawn() {
        steps.poll(engine, &runs).await?;
        view.all(&shown, |id| steps.of(id), SystemClock.now_ms());
        return Ok(());
    }
    for id in view.gone(&shown) {
        let row = engine.find_run(&id).await?;
        view.end(&id, row.status.name());
    }
    view.changes(&shown);
    Ok(())
}

/// Returns the unfinished runs.
async fn live(engine: &Engine, limit: usize) -> Result<Vec<RunSummary>, EngineError> {
    let query = RunQuery {
        statuses: unfinished().collect(),
        limit,
        ..RunQuery::default()
    };
    engine.summaries(query).await
}

/// Returns the statuses of runs that are not finished.
pub fn unfinished() -> impl Iterator<Item = RunStatus> {
    let statuses = RunStatus::NAMES.iter().map(|(status, _)| *status);
    statuses.filter(|status| !status.is_final())
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
    fn of(&self, run: &str) -> String {
        let place = self.0.get(&RunId::from_text(run));
        place.map_or_else(String::new, |place| place.path.clone())
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
