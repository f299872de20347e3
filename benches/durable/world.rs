//! An engine over a real database, with an effect outside: a line in a file that nobody but the benchmark reads.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::future::Future;
use std::io::{Error, Result, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flowstone_engine::disk::load;
use flowstone_engine::ids::RunId;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::ports::{NewRun, Random as _, Stores, SystemRandom};
use flowstone_engine::{Engine, EngineConfig, ExecuteOptions, Stay};
use flowstone_flow::flow::LoadedFlow;
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Outcome, Step, StepContext, StepError, StepSpec,
};
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;

/// A project with one flow.
pub struct World {
    pub home: PathBuf,
    pub effects: PathBuf,
    pub stores: Stores,
}

impl World {
    pub fn open(folder: &Path) -> Result<World> {
        let home = folder.join("home");
        let stores = flowstone_stores::open(&home, &flowstone_stores::Options::default());
        Ok(World {
            home,
            effects: folder.join("effects"),
            stores: stores.map_err(Error::other)?,
        })
    }

    pub fn engine(&self) -> Result<Engine> {
        engine(&self.home, &self.effects, self.stores.clone())
    }
}

/// Opens an engine; every thread needs its own.
pub fn engine(home: &Path, effects: &Path, stores: Stores) -> Result<Engine> {
    let file = OpenOptions::new().create(true).append(true).open(effects)?;
    let mut steps = flowstone_project::all_steps();
    steps.push(Box::new(Line(Rc::new(RefCell::new(file)))));
    Ok(Engine::open(EngineConfig {
        home: home.to_owned(),
        ..EngineConfig::for_tests(home, stores, steps)
    }))
}

/// Loads a flow text.
pub fn flow(folder: &Path, text: &str) -> Result<LoadedFlow> {
    let path = folder.join("flow.clj");
    std::fs::write(&path, text)?;
    let checked = load(&Session::new(), &path, "flow.clj");
    let found = format!("{:?}", checked.findings);
    checked.loaded.ok_or_else(|| Error::other(found))
}

/// Adds runs of a flow, for any worker to execute.
pub async fn add_runs(stores: &Stores, loaded: &LoadedFlow, count: usize) -> Result<Vec<RunId>> {
    let mut added = Vec::new();
    for number in 0..count {
        let id = RunId::new(
            i64::try_from(number).unwrap_or(0) + 1_700_000_000_000,
            SystemRandom.next(),
        );
        added.push(stores.runs.create(NewRun {
            id,
            external_id: None,
            program: loaded.program.clone(),
            flow: loaded.flow.slug.to_string(),
            input: format!("{{:number {number}}}"),
            seed: SystemRandom.next(),
            now_ms: 1_700_000_000_000,
            invocation: None,
            key: None,
            priority: 0,
            bindings: None,
            started_by: "manual".to_owned(),
            origin: None,
            parent: None,
            deadline_ms: None,
            trace: None,
            is_taken: false,
        }));
    }
    let mut runs = Vec::new();
    for added in added {
        runs.push(added.await.map_err(Error::other)?);
    }
    Ok(runs)
}

/// Executes a run in this thread, to its end or to where it waits.
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

/// How often each effect ran.
pub fn effects(file: &Path) -> Result<HashMap<String, usize>> {
    let mut counts = HashMap::new();
    for line in std::fs::read_to_string(file)?.lines() {
        *counts.entry(line.to_owned()).or_default() += 1;
    }
    Ok(counts)
}

/// Tells whether there are `count` effects, each performed once.
pub fn each_once(file: &Path, count: usize) -> Result<bool> {
    let effects = effects(file)?;
    Ok(effects.len() == count && effects.values().all(|times| *times == 1))
}

/// The step type `:line`: appends its idempotency key to a file outside.
struct Line(Rc<RefCell<File>>);

static LINE: StepSpec = StepSpec {
    kind: "line",
    operations: None,
    aliases: &[],
    doc: "Writes a line.",
    fields: &[Field::optional("value", FieldType::Any, "What it gives.")],
    examples: &[],
    effect: Effect::External,
};

impl Step for Line {
    fn spec(&self) -> &'static StepSpec {
        &LINE
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, std::result::Result<Outcome, StepError>> {
        Box::pin(async move {
            let line = format!("{}\n", cx.idempotency_key());
            self.0
                .borrow_mut()
                .write_all(line.as_bytes())
                .map_err(|error| StepError::new("E0799", "unavailable", error.to_string()))?;
            Ok(Outcome::Value(
                config.get("value").cloned().unwrap_or(Value::Nil),
            ))
        })
    }
}
