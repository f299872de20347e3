//! Executes due runs on a worker's own threads.
//!
//! Workers, commands and other processes communicate through the store only, so they need not know of each other. A run
//! stays on the thread that executes it; when it waits, it is dropped, and the next thread that takes it replays it. A
//! failure to execute a run is reported by this worker only: the run itself is unchanged.

mod dispatch;
mod lane;
mod planner;
mod setbacks;
mod tidy;

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

pub use planner::Planner;

use flowstone_lang::session::Session;
use tokio::sync::Notify;

use self::setbacks::Setbacks;
use crate::Interrupt;
use crate::diagnostic::Diagnostic;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::ids::RunId;
use crate::observer::Observer;
use crate::outcome::RunOutcome;
use crate::ports::{StoreError, is_lack_of_handles};

/// Maximum stack for evaluating, printing and comparing deep values. Unused stack takes no memory.
const STACK: usize = 64 << 20;

/// The options of a worker.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    pub threads: NonZeroUsize,
    /// Maximum number of concurrent runs per thread.
    pub concurrency: NonZeroUsize,
    pub until: Until,
    /// Files and folders of flows whose schedules start runs.
    pub flows: Vec<PathBuf>,
    /// Stops the worker: runs are suspended at the next safe point.
    pub interrupt: Interrupt,
}

/// The condition under which a worker stops by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Never.
    Interrupted,
    /// When no run is due.
    Idle,
}

/// Receives the events of a worker, from all its threads.
pub trait Watch: Send + Sync {
    fn event(&self, event: &WorkerEvent<'_>);

    /// Returns the observer of the runs of one thread.
    fn observer(&self) -> Rc<dyn Observer>;
}

/// An event of a worker.
pub enum WorkerEvent<'a> {
    /// The worker starts.
    Ready { threads: usize },
    /// Flow files were read, at the start or because they have changed.
    Planned { flows: usize, schedules: usize },
    /// Runs left by processes that have ended were released, and are resumed.
    Recovered { runs: usize },
    /// A run is in quarantine, and is not executed.
    Skipped {
        run: &'a RunId,
        flow: &'a str,
        error: &'a EngineError,
    },
    /// The execution of a run ended.
    Executed {
        run: &'a RunId,
        flow: &'a str,
        outcome: &'a RunOutcome,
        millis: i64,
    },
    /// A run cannot be executed; it is retried at that time.
    SetAside {
        run: &'a RunId,
        flow: &'a str,
        error: &'a EngineError,
        again_ms: i64,
    },
    /// A file with schedules cannot be used; its earlier schedules stay in force.
    BrokenFlow {
        file: &'a Path,
        /// Contains the sources of the findings' places.
        session: &'a Session,
        findings: &'a [Diagnostic],
    },
    /// A schedule is due.
    Scheduled {
        flow: &'a str,
        schedule: &'a str,
        tick_ms: i64,
        started: &'a Result<RunId, EngineError>,
    },
    /// The store failed, or a thread could not start; the worker keeps trying.
    StoreFailed { error: &'a EngineError },
    /// The worker was asked to stop, and waits for work in progress.
    Stopping { active: usize },
}

/// The totals of a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    /// Number of executions, however they ended.
    pub executions: usize,
    /// Number of executions that ended their run.
    pub ended: usize,
    /// Number of executions that failed with an error of the engine.
    pub set_aside: usize,
}

/// The reason why a worker could not start.
#[derive(Debug)]
pub enum ServeError<E> {
    /// The engine of a thread could not be opened.
    Open(E),
    Engine(EngineError),
}

/// Executes runs until the worker is stopped. `open` creates the engine of each thread, all over the same stores.
///
/// # Errors
/// When it cannot start. Later errors are reported to `watch`.
pub fn serve<E: Send>(
    open: &(dyn Fn() -> Result<Engine, E> + Sync),
    options: &WorkerOptions,
    watch: &Arc<dyn Watch>,
) -> Result<Served, ServeError<E>> {
    let own = Rc::new(open().map_err(ServeError::Open)?);
    let stores = own.stores().clone();
    let clock = own.services.clock.clone();
    let planner = Planner::new(own.clone(), options.flows.clone(), watch.clone());
    thread::scope(|scope| {
        let mut lanes = Vec::new();
        let room = Arc::new(Notify::new());
        let setbacks = Arc::new(Setbacks::default());
        for number in 0..options.threads.get() {
            let (lane, end) = lane::pair(options.concurrency, &room, &setbacks);
            let watch = watch.clone();
            let (opened, opening) = std::sync::mpsc::sync_channel(1);
            thread::Builder::new()
                .name(format!("worker-{number}"))
                .stack_size(STACK)
                .spawn_scoped(scope, move || {
                    let engine = match open() {
                        Ok(engine) => engine,
                        Err(error) => {
                            let _ = opened.send(Err(error));
                            return;
                        }
                    };
                    let _ = opened.send(Ok(()));
                    end.work(engine, options, watch);
                })
                .map_err(|error| unstarted(&error))?;
            match opening.recv() {
                Ok(Ok(())) => lanes.push(lane),
                Ok(Err(error)) => return Err(ServeError::Open(error)),
                Err(_) => return Err(internal("a thread ended at its start".to_owned())),
            }
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| unstarted(&error))?;
        let loads: Vec<_> = lanes.iter().map(|lane| lane.load.clone()).collect();
        let dispatcher = dispatch::Dispatcher {
            stores,
            clock,
            lanes,
            planner,
            room,
            options,
            watch: watch.clone(),
            skipped: HashSet::new(),
        };
        let served = runtime.block_on(async {
            tokio::select! {
                served = dispatcher.run() => served,
                never = tidy::tidy(&own, &loads, &options.interrupt) => match never {},
                never = tidy::left_tests(&own) => match never {},
            }
        });
        if options.until == Until::Idle && !options.interrupt.is_set() {
            runtime.block_on(own.collect_garbage_daily(&options.interrupt));
        }
        served.map_err(ServeError::Engine)
    })
}

/// Returns the error of a system that provides no thread, or no file handles for a runtime.
fn unstarted<E>(error: &std::io::Error) -> ServeError<E> {
    let error = match is_lack_of_handles(error) {
        true => StoreError::NoHandle {
            path: "what threads wait with".to_owned(),
        },
        false => StoreError::NoThread {
            detail: format!("for the worker: {error}"),
        },
    };
    ServeError::Engine(error.into())
}

fn internal<E>(message: String) -> ServeError<E> {
    ServeError::Engine(EngineError::Internal(message))
}
