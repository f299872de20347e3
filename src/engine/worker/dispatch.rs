//! Finds due runs and assigns them to threads.
//!
//! The store is queried only if something has changed there, a timer is due, or a thread has room again.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::Notify;

use super::lane::Lane;
use super::planner::Planner;
use super::{Served, Until, Watch, WorkerEvent, WorkerOptions};
use crate::error::EngineError;
use crate::ids::RunId;
use crate::ports::{Clock, News, RunPages, RunQuery, RunStatus, StoreError, Stores, Taken};

/// Interval at which the worker checks for processes that died, and whether to stop.
const TICK: Duration = Duration::from_millis(100);
/// Number of polls of the store after which the files are checked.
const POLLS: u32 = 10;
/// Number of runs that are read at a time.
const PAGE: usize = 500;
/// Delay during which successive notifications are combined.
const TOGETHER: Duration = Duration::from_millis(2);
/// Pause after an error of the store.
const TROUBLE: Duration = Duration::from_secs(1);

pub(super) struct Dispatcher<'a> {
    pub stores: Stores,
    pub clock: Arc<dyn Clock>,
    pub lanes: Vec<Lane>,
    pub planner: Planner,
    pub room: Arc<Notify>,
    pub options: &'a WorkerOptions,
    pub watch: Arc<dyn Watch>,
    /// The runs in quarantine that were reported.
    pub skipped: HashSet<RunId>,
}

/// The result of a query for due runs.
enum Found {
    /// All threads are busy.
    Full,
    /// There are no more due runs; the next timer.
    All {
        assigned: usize,
        next_ms: Option<i64>,
    },
}

impl Dispatcher<'_> {
    pub(super) async fn run(mut self) -> Result<Served, EngineError> {
        let mut news = self.stores.agenda.news();
        let recovered = self.stores.agenda.sweep().await?;
        self.stores.agenda.forget_setbacks().await?;
        let threads = self.lanes.len();
        self.watch.event(&WorkerEvent::Ready { threads });
        self.report_recovered(recovered);
        self.report_skipped().await?;
        while !self.options.interrupt.is_set() {
            news.mark_seen();
            match self.assign().await {
                Ok(Found::Full) => self.pause(None, None).await,
                Ok(Found::All { assigned, next_ms }) => {
                    let is_idle = assigned == 0 && self.active() == 0;
                    if is_idle && self.options.until == Until::Idle && !news.has_changed() {
                        break;
                    }
                    self.pause(Some(&mut *news), next_ms).await;
                }
                Err(error) => {
                    let error = error.into();
                    self.watch
                        .event(&WorkerEvent::StoreFailed { error: &error });
                    self.pause_for(TROUBLE).await;
                }
            }
        }
        Ok(self.end().await)
    }

    /// Assigns runs to threads that have room.
    async fn assign(&mut self) -> Result<Found, StoreError> {
        self.planner.turn().await?;
        let room: usize = self.lanes.iter().map(Lane::room).sum();
        if room == 0 {
            return Ok(Found::Full);
        }
        let agenda = &self.stores.agenda;
        let taken = agenda.take(self.clock.now_ms(), room).await?;
        let assigned = taken.len();
        for taken in taken {
            self.give(taken).await?;
        }
        if assigned == room {
            return Ok(Found::Full);
        }
        // Read after the runs were taken, so that a timer that became due in between counts as past.
        let timer_ms = self.stores.agenda.next_ms().await?;
        let next_ms = timer_ms.into_iter().chain(self.planner.next_ms()).min();
        Ok(Found::All { assigned, next_ms })
    }

    async fn give(&mut self, taken: Taken) -> Result<(), StoreError> {
        let freest = self.lanes.iter().max_by_key(|lane| lane.room());
        let back = match freest {
            Some(lane) => lane.give(taken),
            None => Err(Box::new(taken)),
        };
        match back {
            Ok(()) => Ok(()),
            Err(taken) => {
                let runs = &self.stores.runs;
                runs.release(&taken.row.id, taken.epoch).await
            }
        }
    }

    /// Waits until there may be due runs.
    async fn pause(&mut self, news: Option<&mut dyn News>, next_ms: Option<i64>) {
        let timer = async {
            match next_ms {
                // An idle worker does not wait between its last query and its end.
                Some(due_ms) if self.options.until == Until::Interrupted => {
                    self.clock.sleep_until(due_ms).await;
                }
                _ => std::future::pending().await,
            }
        };
        let change = async {
            match news {
                Some(news) => {
                    // Fails when the store is closed; every other call fails then too.
                    let _ = news.changed().await;
                    tokio::time::sleep(TOGETHER).await;
                }
                None => std::future::pending().await,
            }
        };
        let is_recovered = tokio::select! {
            () = self.room.notified() => false,
            () = change => false,
            () = timer => false,
            is_recovered = self.poll() => is_recovered,
        };
        if is_recovered && let Err(error) = self.report_skipped().await {
            let error = error.into();
            self.watch
                .event(&WorkerEvent::StoreFailed { error: &error });
        }
    }

    async fn pause_for(&self, long: Duration) {
        tokio::select! {
            () = tokio::time::sleep(long) => {}
            () = self.options.interrupt.wait() => {}
        }
    }

    /// Returns when the worker must stop or check its files; meanwhile releases the runs of processes that died, which
    /// counts as a notification. Tells whether there were any.
    async fn poll(&self) -> bool {
        for _ in 0..POLLS {
            tokio::time::sleep(TICK).await;
            if self.options.interrupt.is_set() {
                return false;
            }
            match self.stores.agenda.sweep().await {
                Ok(0) => {}
                Ok(runs) => {
                    self.report_recovered(runs);
                    return true;
                }
                // A later query for due runs reports the error.
                Err(_) => return false,
            }
        }
        false
    }

    fn report_recovered(&self, runs: usize) {
        if runs > 0 {
            self.watch.event(&WorkerEvent::Recovered { runs });
        }
    }

    /// Reports the runs in quarantine, each once.
    async fn report_skipped(&mut self) -> Result<(), StoreError> {
        let mut pages = RunPages::new(RunQuery {
            // A run that continues is waiting until it has made its first entry.
            statuses: vec![
                RunStatus::FailedCompensating,
                RunStatus::Running,
                RunStatus::Waiting,
            ],
            limit: PAGE,
            ..RunQuery::default()
        });
        while let Some(found) = pages.next(&*self.stores.runs).await? {
            for summary in found {
                let Some(reason) = summary.quarantine else {
                    continue;
                };
                let error = EngineError::Quarantined {
                    run: summary.id.to_string(),
                    reason,
                };
                if self.skipped.insert(summary.id.clone()) {
                    self.watch.event(&WorkerEvent::Skipped {
                        run: &summary.id,
                        flow: &summary.flow,
                        error: &error,
                    });
                }
            }
        }
        Ok(())
    }

    fn active(&self) -> usize {
        self.lanes.iter().map(Lane::held).sum()
    }

    /// Lets the threads finish: runs that were not begun are returned, active ones are interrupted.
    async fn end(mut self) -> Served {
        let active = self.active();
        if self.options.interrupt.is_set() && active > 0 {
            self.watch.event(&WorkerEvent::Stopping { active });
        }
        let loads: Vec<_> = self.lanes.iter().map(|lane| lane.load.clone()).collect();
        // Dropping the lanes closes the channels.
        self.lanes.clear();
        while loads
            .iter()
            .any(|load| load.held.load(Ordering::SeqCst) > 0)
        {
            tokio::select! {
                () = self.room.notified() => {}
                () = tokio::time::sleep(TICK) => {}
            }
        }
        let mut served = Served::default();
        for load in loads {
            served.executions += load.executions.load(Ordering::SeqCst);
            served.ended += load.ended.load(Ordering::SeqCst);
            served.set_aside += load.set_aside.load(Ordering::SeqCst);
        }
        served
    }
}
