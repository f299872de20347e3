//! Waiting in the process for the turn of a queued run.
//!
//! While a process waits, it holds the run's lease, so that it also executes the run when its turn comes. It waits as
//! long as that can be soon: a live process executes what is ahead, or only a moment is missing.

use std::collections::HashSet;
use std::rc::Rc;

use super::{ExecuteOptions, Stay, epoch_of};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::ids::RunId;
use crate::observer::{Observer, RunEvent};
use crate::outcome::RunOutcome;
use crate::ports::{ClaimBy, QueuePlace, RunRow, RunStatus};

/// How often the store is asked.
const LOOK_EVERY_MS: i64 = 250;
/// How long a run that began may take until somebody executes it.
const GRACE_MS: i64 = 2_000;

/// Waits until a queued run may begin, and returns nothing then. Else, says where it stands.
pub(crate) async fn await_turn(
    engine: &Engine,
    run: &RunId,
    observer: &Rc<dyn Observer>,
    options: &ExecuteOptions,
) -> Result<Option<RunOutcome>, EngineError> {
    let runs = &engine.services.stores.runs;
    let now_ms = engine.services.clock.now_ms();
    let epoch = epoch_of(runs.claim(run, options.by, now_ms).await?, run)?;
    let turn = Turn {
        engine,
        run,
        observer,
        options,
        since_ms: engine.services.clock.now_ms(),
    };
    let outcome = turn.wait().await;
    // The next executor claims the run again; the lease is not released in between.
    let is_over = engine.run_row(run).await?.status.is_final();
    if is_over || !matches!(outcome, Ok(None)) {
        runs.release(run, epoch).await?;
    }
    outcome
}

struct Turn<'a> {
    engine: &'a Engine,
    run: &'a RunId,
    observer: &'a Rc<dyn Observer>,
    options: &'a ExecuteOptions,
    since_ms: i64,
}

impl Turn<'_> {
    async fn wait(&self) -> Result<Option<RunOutcome>, EngineError> {
        let services = &self.engine.services;
        let mut cleared = HashSet::new();
        let mut shown: Option<QueuePlace> = None;
        loop {
            let now_ms = services.clock.now_ms();
            services.stores.queue.promote(now_ms).await?;
            let Some(place) = services.stores.queue.place(self.run).await? else {
                return Ok(None);
            };
            if shown.as_ref() != Some(&place) {
                self.observer.event(
                    self.run,
                    &RunEvent::Queued {
                        place: place.clone(),
                    },
                );
                shown = Some(place.clone());
            }
            if self.options.interrupt.is_set() {
                // It leaves memory as it was: it has not begun.
                return Ok(Some(RunOutcome::Queued { place }));
            }
            let ahead = self.ahead(&place).await?;
            if self.options.stay == Stay::No {
                return Ok(Some(RunOutcome::Queued { place }));
            }
            if self.clear(&ahead, &mut cleared).await {
                continue;
            }
            if !self.is_soon(&place, &ahead, now_ms) {
                return Ok(Some(RunOutcome::Queued { place }));
            }
            let next_ms = now_ms + LOOK_EVERY_MS;
            let until_ms = place.due_ms.map_or(next_ms, |due_ms| due_ms.min(next_ms));
            tokio::select! {
                biased;
                () = services.clock.sleep_until(until_ms) => {}
                () = self.options.interrupt.wait() => {}
            }
        }
    }

    async fn ahead(&self, place: &QueuePlace) -> Result<Vec<RunRow>, EngineError> {
        let mut rows = Vec::new();
        for run in &place.behind {
            rows.extend(self.engine.services.stores.runs.find(run).await?);
        }
        Ok(rows)
    }

    /// Ends what is ahead and was asked to end, where nobody else does. Each is tried once.
    async fn clear(&self, ahead: &[RunRow], cleared: &mut HashSet<RunId>) -> bool {
        let mut has_ended = false;
        for row in ahead {
            let is_ours = row.cancel_requested.is_some() && !row.executing;
            if is_ours && cleared.insert(row.id.clone()) {
                let options = ExecuteOptions {
                    stay: Stay::Timers,
                    by: ClaimBy::Search,
                    ..self.options.clone()
                };
                let execute = self.engine.execute(&row.id, self.observer.clone(), options);
                // What hinders that run is reported by its own commands; this run stays behind it.
                let outcome = Box::pin(execute).await;
                has_ended |= outcome.is_ok();
            }
        }
        has_ended
    }

    fn is_soon(&self, place: &QueuePlace, ahead: &[RunRow], now_ms: i64) -> bool {
        let is_fresh = now_ms - self.since_ms < GRACE_MS;
        let moves = |row: &RunRow| {
            let begins = is_fresh && matches!(row.status, RunStatus::Running | RunStatus::Queued);
            row.executing || begins
        };
        // Nothing is ahead any more: the run that was there has just ended.
        place.due_ms.is_some() || ahead.is_empty() || ahead.iter().any(moves)
    }
}
