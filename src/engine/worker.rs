//! Keeps runs going: finds those that can go on, and drives them on threads of its own.
//!
//! Workers, commands and other processes meet in the store only, so they need not know of each other. A run stays on
//! the thread that executes it; when it waits, it is dropped, and the next thread that takes it replays it. A failure
//! to execute a run is reported by this worker only: the run itself is unchanged.

mod dispatch;
mod files;
mod lane;
mod planner;
mod setbacks;
mod tidy;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;

use flowstone_lang::session::Session;
use tokio::sync::Notify;

use crate::Interrupt;
use crate::diagnostic::Diagnostic;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::ids::RunId;
use crate::observer::Observer;
use crate::outcome::RunOutcome;
use crate::ports::{StoreError, is_lack_of_handles};

/// Evaluating, printing and comparing deep values takes this much at most; what is not used is not there.
const STACK: usize = 64 << 20;

/// How a worker works.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    pub threads: NonZeroUsize,
    /// How many runs one thread drives at the same time.
    pub drives: NonZeroUsize,
    pub until: Until,
    /// Files and folders of flows whose schedules start runs.
    pub flows: Vec<PathBuf>,
    /// Ends the work: runs are left at the next safe moment.
    pub interrupt: Interrupt,
}

/// When a worker ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// Never.
    Interrupted,
    /// When no run can go on now.
    Idle,
}

/// Takes what a worker does, from all its threads.
pub trait Watch: Send + Sync {
    fn event(&self, event: &WorkerEvent<'_>);

    /// Returns what watches the runs of one thread.
    fn observer(&self) -> Rc<dyn Observer>;
}

/// Something that a worker did.
pub enum WorkerEvent<'a> {
    /// It begins to work.
    Ready { threads: usize },
    /// The files of flows were read, also when they have changed since.
    Planned { flows: usize, schedules: usize },
    /// These many runs were left by processes that are gone, and go on.
    Recovered { runs: usize },
    /// A drive has ended.
    Driven {
        run: &'a RunId,
        flow: &'a str,
        outcome: &'a RunOutcome,
        millis: i64,
    },
    /// A run cannot be driven; it is tried again at that moment.
    SetAside {
        run: &'a RunId,
        flow: &'a str,
        error: &'a EngineError,
        again_ms: i64,
    },
    /// A file with schedules cannot be used; what was known of it goes on.
    BrokenFlow {
        file: &'a Path,
        /// The places of the findings lie in its sources.
        session: &'a Session,
        findings: &'a [Diagnostic],
    },
    /// A moment of a schedule has come.
    Scheduled {
        flow: &'a str,
        schedule: &'a str,
        moment_ms: i64,
        started: &'a Result<RunId, EngineError>,
    },
    /// The store does not answer; the worker goes on trying.
    Troubled { error: &'a EngineError },
    /// It was asked to end, and waits for what is under way.
    Stopping { active: usize },
}

/// What a worker has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Served {
    /// Drives, however they ended.
    pub drives: usize,
    /// Those after which the run was over.
    pub ended: usize,
    /// Those that could not be done.
    pub set_aside: usize,
}

/// Why a worker could not begin.
#[derive(Debug)]
pub enum ServeError<E> {
    /// The engine of a thread could not be opened.
    Open(E),
    Engine(EngineError),
}

/// Works until there is a reason to end. `open` makes the engine of each thread, all over the same stores.
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
    let planner = planner::Planner::new(own.clone(), options.flows.clone(), watch.clone());
    thread::scope(|scope| {
        let mut lanes = Vec::new();
        let room = Arc::new(Notify::new());
        for number in 0..options.threads.get() {
            let (lane, inside) = lane::pair(options.drives, &room);
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
                    inside.work(engine, options, watch);
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
        };
        let served = runtime.block_on(async {
            tokio::select! {
                served = dispatcher.run() => served,
                never = tidy::tidy(&own, &loads, &options.interrupt) => match never {},
            }
        });
        if options.until == Until::Idle && !options.interrupt.is_set() {
            runtime.block_on(own.collect_garbage_daily(&options.interrupt));
        }
        served.map_err(ServeError::Engine)
    })
}

/// The system gives no thread, or no file handles for a runtime.
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

fn internal<E>(words: String) -> ServeError<E> {
    ServeError::Engine(EngineError::Internal(words))
}
