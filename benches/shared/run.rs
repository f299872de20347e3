//! Runs of a flow over real stores: loaded, added, executed. Shared by the benchmarks.

#![allow(dead_code, reason = "each benchmark uses a part")]

use std::io::{Error, Result};
use std::path::Path;
use std::rc::Rc;

use flowstone_engine::disk::load;
use flowstone_engine::ids::RunId;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::ports::{NewRun, Random as _, Stores, SystemRandom};
use flowstone_engine::{Engine, ExecuteOptions, Stay};
use flowstone_flow::flow::LoadedFlow;
use flowstone_lang::session::Session;

/// The time at which runs are added, in milliseconds.
const ADDED_MS: i64 = 1_700_000_000_000;

/// Loads a flow from a file.
pub fn flow(path: &Path) -> Result<LoadedFlow> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let checked = load(&Session::new(), path, &name);
    let found = format!("{:?}", checked.findings);
    checked.loaded.ok_or_else(|| Error::other(found))
}

/// Returns a run to be added. Runs with higher numbers are younger. `input`: EDN text.
pub fn new_run(loaded: &LoadedFlow, number: usize, input: String) -> NewRun {
    let number = i64::try_from(number).unwrap_or(0);
    NewRun {
        id: RunId::new(ADDED_MS + number, SystemRandom.next()),
        external_id: None,
        program: loaded.program.clone(),
        flow: loaded.flow.slug.to_string(),
        input,
        seed: SystemRandom.next(),
        now_ms: ADDED_MS,
        invocation: None,
        key: None,
        priority: 0,
        bindings: None,
        started_by: "manual".to_owned(),
        origin: None,
        parent: None,
        deadline_ms: None,
        trace: None,
        version: None,
        is_taken: false,
    }
}

/// Adds runs of a flow, for any worker to execute. The input of each is `{:number N}`.
pub async fn add_runs(stores: &Stores, loaded: &LoadedFlow, count: usize) -> Result<Vec<RunId>> {
    let mut added = Vec::new();
    for number in 0..count {
        let new = new_run(loaded, number, format!("{{:number {number}}}"));
        added.push(stores.runs.create(new));
    }
    let mut runs = Vec::new();
    for added in added {
        runs.push(added.await.map_err(Error::other)?);
    }
    Ok(runs)
}

/// Executes a run in this thread, to its end or to the point where it waits.
pub async fn execute(engine: &Engine, run: &RunId) -> Result<RunOutcome> {
    let options = ExecuteOptions {
        stay: Stay::No,
        ..ExecuteOptions::default()
    };
    let outcome = engine.execute(run, Rc::new(NoObserver), options).await;
    outcome.map_err(Error::other)
}

/// Runs a future to its end on a runtime of one thread.
pub fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    tokio::task::LocalSet::new().block_on(&runtime, future)
}
