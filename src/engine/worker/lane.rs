//! One thread of a worker: its own engine, and the runs that it executes concurrently.

use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flowstone_lang::fiber;
use flowstone_lang::value::{forget_deferred, free_deferred, heap};
use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinSet, LocalSet, spawn_local, yield_now};

use super::setbacks::Setbacks;
use super::{Watch, WorkerEvent, WorkerOptions};
use crate::asker::Asker;
use crate::debugger::Debugger;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::execute::{ExecuteOptions, Stay, panic_message};
use crate::ids::RunId;
use crate::observer::Observer;
use crate::outcome::RunOutcome;
use crate::ports::{ClaimBy, Setback, Taken};

/// Number of runs that are claimed ahead for each active one, so that a thread need not wait for the next.
const AHEAD: usize = 4;
/// Number of runs that are always executed concurrently.
const FEW: usize = 12;
/// Number of runs that stay in memory for a quick answer.
const KEPT_ALIVE: usize = 4;
/// If none of the active runs ends within this time, more are admitted. A slow disk alone does not take that long.
const CROWDED: Duration = Duration::from_millis(50);
/// Time without work after which a thread releases memory.
const QUIET: Duration = Duration::from_secs(3);

/// The state that a thread shares with the dispatcher.
#[derive(Debug, Default)]
pub(super) struct Load {
    /// Runs that were assigned and have not been left yet.
    pub held: AtomicUsize,
    pub executions: AtomicUsize,
    pub ended: AtomicUsize,
    pub set_aside: AtomicUsize,
    /// Notified when there is room again; shared by all threads of a worker.
    pub room: Arc<Notify>,
}

/// The dispatcher's end of the channel: dropping it lets the thread finish.
pub(super) struct Lane {
    runs: UnboundedSender<Taken>,
    pub load: Arc<Load>,
    capacity: usize,
}

/// The thread's end of the channel.
pub(super) struct LaneEnd {
    runs: UnboundedReceiver<Taken>,
    load: Arc<Load>,
    setbacks: Arc<Setbacks>,
    capacity: usize,
}

/// Creates a thread's channel. `setbacks` are shared by all threads of a worker, because any of them may take a run.
pub(super) fn pair(
    concurrency: NonZeroUsize,
    room: &Arc<Notify>,
    setbacks: &Arc<Setbacks>,
) -> (Lane, LaneEnd) {
    // Bounded by the dispatcher, which assigns no more runs than there is room for.
    let (sender, runs) = unbounded_channel();
    let load = Arc::new(Load {
        room: room.clone(),
        ..Load::default()
    });
    let capacity = concurrency.get() * AHEAD;
    let lane = Lane {
        runs: sender,
        load: load.clone(),
        capacity,
    };
    let end = LaneEnd {
        runs,
        load,
        setbacks: setbacks.clone(),
        capacity,
    };
    (lane, end)
}

impl Lane {
    /// Returns the number of further runs that the thread can take.
    pub(super) fn room(&self) -> usize {
        self.capacity.saturating_sub(self.held())
    }

    pub(super) fn held(&self) -> usize {
        self.load.held.load(Ordering::SeqCst)
    }

    /// Assigns a run; returns it if the thread has ended.
    pub(super) fn give(&self, taken: Taken) -> Result<(), Box<Taken>> {
        self.load.held.fetch_add(1, Ordering::SeqCst);
        self.runs.send(taken).map_err(|back| {
            self.load.held.fetch_sub(1, Ordering::SeqCst);
            Box::new(back.0)
        })
    }
}

/// The state that all executions of a thread share.
struct LaneState {
    engine: Engine,
    observer: Rc<dyn Observer>,
    execute: ExecuteOptions,
    watch: Arc<dyn Watch>,
    load: Arc<Load>,
    setbacks: Arc<Setbacks>,
    capacity: usize,
}

impl LaneEnd {
    /// Executes assigned runs until the dispatcher has ended and all of them are left.
    pub(super) fn work(mut self, engine: Engine, options: &WorkerOptions, watch: Arc<dyn Watch>) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = match runtime {
            Ok(runtime) => runtime,
            Err(error) => {
                let error = EngineError::Internal(format!("a thread has no runtime: {error}"));
                watch.event(&WorkerEvent::StoreFailed { error: &error });
                return;
            }
        };
        let state = Rc::new(LaneState {
            engine,
            observer: watch.observer(),
            execute: ExecuteOptions {
                interrupt: options.interrupt.clone(),
                stay: Stay::Briefly,
                // Child runs are ordinary runs, and another thread may execute them.
                leave_children: true,
                asker: Asker::default(),
                debugger: Debugger::default(),
                keep_alive: Some(Arc::new(Semaphore::new(KEPT_ALIVE))),
                by: ClaimBy::Search,
                is_test: false,
            },
            watch,
            load: self.load.clone(),
            setbacks: self.setbacks.clone(),
            capacity: self.capacity,
        });
        let interrupt = options.interrupt.clone();
        let mut slots = Slots::new(options.concurrency.get());
        LocalSet::new().block_on(&runtime, async {
            let mut executions = JoinSet::new();
            while let Some(slot) = slots.next().await {
                let Some(taken) = self.next(&state, &mut slots).await else {
                    break;
                };
                let state = state.clone();
                executions.spawn_local(async move {
                    state.clone().handle(taken).await;
                    drop(slot);
                    state.free_deferred().await;
                });
                while executions.try_join_next().is_some() {}
            }
            while executions.join_next().await.is_some() {}
        });
        if interrupt.is_set() {
            // The end of the process frees them faster.
            forget_deferred();
        }
    }
}

/// The number of runs that are executed concurrently. Each takes memory, and more than a few help only if they wait for
/// something outside; so more are admitted only when none of the active ones ends. If the thread is mostly idle, the
/// number soon doubles.
struct Slots {
    free: Arc<Semaphore>,
    open: usize,
    most: usize,
}

impl Slots {
    fn new(most: usize) -> Slots {
        let open = most.min(FEW);
        Slots {
            free: Arc::new(Semaphore::new(open)),
            open,
            most,
        }
    }

    async fn next(&mut self) -> Option<OwnedSemaphorePermit> {
        loop {
            let before = busy();
            tokio::select! {
                biased;
                slot = self.free.clone().acquire_owned() => return slot.ok(),
                () = tokio::time::sleep(CROWDED) => {
                    if self.open < self.most {
                        let more = match busy().saturating_sub(before) < CROWDED / 2 {
                            true => self.open,
                            false => (self.open / 4).max(1),
                        };
                        let more = more.min(self.most - self.open);
                        self.open += more;
                        self.free.add_permits(more);
                    }
                }
            }
        }
    }

    /// Returns to the minimum.
    fn shrink(&mut self) {
        let few = self.most.min(FEW);
        self.open -= self.free.forget_permits(self.open - few);
    }
}

/// Returns how long this thread was busy.
fn busy() -> Duration {
    Handle::current().metrics().worker_total_busy_duration(0)
}

impl LaneEnd {
    /// Returns the next run to execute. While no run is due, releases unneeded memory.
    async fn next(&mut self, state: &LaneState, slots: &mut Slots) -> Option<Taken> {
        let mut is_trimmed = false;
        loop {
            match tokio::time::timeout(QUIET, self.runs.recv()).await {
                Ok(next) => return next,
                Err(_) if !is_trimmed && self.load.held.load(Ordering::SeqCst) == 0 => {
                    is_trimmed = true;
                    state.engine.sessions.shrink();
                    fiber::trim();
                    slots.shrink();
                    heap::release_free_memory();
                }
                Err(_) => {}
            }
        }
    }
}

impl LaneState {
    /// Executes a run as far as possible now, and releases it.
    async fn handle(self: Rc<Self>, taken: Taken) {
        let (run, flow) = (taken.row.id.clone(), taken.row.flow.clone());
        let epoch = taken.epoch;
        let (load, watch) = (self.load.clone(), self.watch.clone());
        if self.execute.interrupt.is_set() {
            let _ = self.engine.stores().runs.release(&run, epoch).await;
            self.leave();
            return;
        }
        let begun_ms = self.engine.now_ms();
        let state = self.clone();
        // In a separate task, so that a panic affects nothing else.
        let task = spawn_local(async move {
            let (observer, options) = (state.observer.clone(), state.execute.clone());
            state.engine.execute_leased(&taken, observer, options).await
        });
        let executed = match task.await {
            Ok(executed) => executed,
            Err(error) => Err(EngineError::Internal(match error.try_into_panic() {
                Ok(panic) => panic_message(&*panic),
                Err(_) => "the task of an execution was ended".to_owned(),
            })),
        };
        load.executions.fetch_add(1, Ordering::SeqCst);
        let now_ms = self.engine.now_ms();
        match executed {
            Ok(outcome) => {
                watch.event(&WorkerEvent::Executed {
                    run: &run,
                    flow: &flow,
                    outcome: &outcome,
                    millis: now_ms - begun_ms,
                });
                self.let_go(&run, &flow, epoch, &outcome).await;
            }
            Err(error) => {
                let again_ms = self.setbacks.after(&run, &error, now_ms);
                self.set_aside(&run, &flow, epoch, &error, again_ms).await;
            }
        }
        self.leave();
    }

    /// Frees the values of stopped runs, in turns with the runs of this thread.
    async fn free_deferred(&self) {
        while !self.execute.interrupt.is_set() && free_deferred() {
            yield_now().await;
        }
    }

    async fn let_go(&self, run: &RunId, flow: &str, epoch: i64, outcome: &RunOutcome) {
        if let RunOutcome::Waiting { waits, .. } = outcome {
            let now_ms = self.engine.now_ms();
            let wait = waits.first().map(|wait| wait.id.as_str());
            if self.setbacks.is_looping(run, wait, now_ms) {
                let error = EngineError::Internal(
                    "the run is woken again and again without getting on".to_owned(),
                );
                let again_ms = self.setbacks.after(run, &error, now_ms);
                self.set_aside(run, flow, epoch, &error, again_ms).await;
                return;
            }
        } else {
            self.setbacks.forget(run);
            if !matches!(outcome, RunOutcome::Interrupted) {
                self.load.ended.fetch_add(1, Ordering::SeqCst);
            }
            if matches!(outcome, RunOutcome::Completed(_) | RunOutcome::Failed(_)) {
                // Ending a run releases its lease.
                return;
            }
        }
        let released = self.engine.stores().runs.release(run, epoch).await;
        if let Err(error) = released {
            self.report_failure(error);
        }
    }

    /// Releases a run that cannot be executed.
    async fn set_aside(
        &self,
        run: &RunId,
        flow: &str,
        epoch: i64,
        error: &EngineError,
        again_ms: Option<i64>,
    ) {
        self.load.set_aside.fetch_add(1, Ordering::SeqCst);
        // Another process has the run.
        let Some(again_ms) = again_ms else { return };
        self.watch.event(&WorkerEvent::SetAside {
            run,
            flow,
            error,
            again_ms,
        });
        let setback = Setback {
            reason: format!("{}: {error}", error.code()),
            again_ms,
        };
        let agenda = &self.engine.stores().agenda;
        if let Err(error) = agenda.set_aside(run, epoch, setback).await {
            self.report_failure(error);
        }
    }

    fn report_failure(&self, error: impl Into<EngineError>) {
        let error = error.into();
        self.watch
            .event(&WorkerEvent::StoreFailed { error: &error });
    }

    /// Makes room for the next run.
    fn leave(&self) {
        let held = self.load.held.fetch_sub(1, Ordering::SeqCst) - 1;
        if held == 0 || held == self.capacity / 2 {
            self.load.room.notify_one();
        }
    }
}
