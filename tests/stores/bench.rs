//! An engine over a database in a scratch folder, with steps whose effects can be counted.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flowstone_engine::disk::load;
use flowstone_engine::ids::RunId;
use flowstone_engine::kv::KvOp;
use flowstone_engine::observer::{NoObserver, Observer, RunEvent};
use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::ports::{Clock, SimulatedClock, StoreError, StoreOp, Stores};
use flowstone_engine::{
    Engine, EngineConfig, EngineError, ExecuteOptions, Interrupt, StartOptions, codec,
};
use flowstone_flow::flow::{LoadedFlow, name_of};
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, OnTimeout, Outcome, Retry, Step, StepContext, StepError,
    StepSpec, WaitSpec,
};
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;
use flowstone_steps::job::Job;
use flowstone_stores::Options;
use flowstone_stores::memory::{Memory, MemoryOptions};

use crate::gate::{Gate, Script};
use crate::nested::Rounds;

/// The effects outside, counted by idempotency key; no step can see the counts.
pub type Effects = Rc<RefCell<BTreeMap<String, u32>>>;

/// The stores that the tests run over.
#[derive(Debug, Clone, Copy)]
pub enum Store {
    Memory,
    Sqlite,
}

impl Store {
    /// Creates a project without data.
    pub fn project(self) -> Project {
        match self {
            Store::Memory => Project::Memory(Memory::new(MemoryOptions::default())),
            Store::Sqlite => Project::Sqlite,
        }
    }
}

/// The place of a project's data.
pub enum Project {
    Memory(Memory),
    /// The project's home folder.
    Sqlite,
}

impl Project {
    /// Opens the stores in the same way as a new process.
    pub fn open(&self, home: &Path) -> Result<Stores, StoreError> {
        match self {
            Project::Memory(memory) => {
                // The engine keeps files of its own in the home folder.
                std::fs::create_dir_all(home).expect("a folder");
                Ok(memory.open())
            }
            Project::Sqlite => flowstone_stores::open(home, &Options::default()),
        }
    }
}

/// A scratch project. Its contents outlive engines, like a disk.
pub struct Bench {
    pub home: tempfile::TempDir,
    store: Project,
    pub effects: Effects,
    pub script: Script,
    pub clock: Arc<SimulatedClock>,
    /// The seed for the next engine: each engine has another one, like a machine.
    seeds: RefCell<u64>,
}

impl Bench {
    /// Creates a project with a database.
    pub fn new() -> Bench {
        Bench::over(Store::Sqlite)
    }

    pub fn over(store: Store) -> Bench {
        Bench::with(store.project())
    }

    /// Creates a bench for a project with existing data.
    pub fn with(store: Project) -> Bench {
        Bench {
            home: tempfile::tempdir().expect("a folder"),
            store,
            effects: Effects::default(),
            script: Script::default(),
            clock: Arc::new(SimulatedClock::starting_at(1_000_000)),
            seeds: RefCell::new(1),
        }
    }

    pub fn clock_ms(&self) -> i64 {
        Clock::now_ms(&*self.clock)
    }

    pub fn stores(&self) -> Stores {
        self.try_stores().expect("the database opens")
    }

    pub fn try_stores(&self) -> Result<Stores, StoreError> {
        self.store.open(&self.home.path().join("home"))
    }

    pub fn engine(&self) -> Engine {
        self.engine_over(self.stores())
    }

    pub fn engine_over(&self, stores: Stores) -> Engine {
        *self.seeds.borrow_mut() += 1;
        let steps = steps(&self.effects, &self.script);
        Engine::open(EngineConfig {
            home: self.home.path().join("home"),
            clock: self.clock.clone(),
            random: Arc::new(Mutex::new(*self.seeds.borrow())),
            ..EngineConfig::for_tests(self.home.path(), stores, steps)
        })
    }

    /// Writes a file of the project.
    pub fn file(&self, name: &str, text: &str) {
        let path = self.home.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    pub fn flow(&self, text: &str) -> LoadedFlow {
        let path = self.home.path().join("flow.clj");
        std::fs::write(&path, text).expect("a file");
        let checked = load(&Session::new(), Path::new(&path), "flow.clj");
        assert!(!checked.has_errors(), "{:?}", checked.findings);
        checked.loaded.expect("a flow")
    }

    /// Returns the findings of a check of a flow text.
    pub fn findings(&self, engine: &Engine, text: &str) -> Vec<String> {
        let path = self.home.path().join("flow.clj");
        std::fs::write(&path, text).expect("a file");
        let checked = engine.check(&engine.session(), &path, "flow.clj");
        let words = checked.findings.iter();
        words
            .map(|finding| format!("{} {}", finding.code, finding.message))
            .collect()
    }

    /// Starts a run of a flow text.
    pub fn start(&self, engine: &Engine, text: &str) -> RunId {
        let flow = self.flow(text);
        block_on(engine.start(&flow, StartOptions::with_input(Value::Nil))).expect("it starts")
    }

    pub fn effects(&self) -> String {
        let effects = self.effects.borrow();
        let lines: Vec<String> = effects
            .iter()
            .map(|(key, count)| {
                let path = key.split_once('/').map_or(&**key, |(_, path)| path);
                format!("{path}={count}")
            })
            .collect();
        lines.join(" ")
    }
}

/// Runs a future to its end on a runtime of one thread.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime");
    runtime.block_on(future)
}

pub fn execute(engine: &Engine, run: &RunId) -> Result<RunOutcome, EngineError> {
    block_on(engine.execute(run, Rc::new(NoObserver), ExecuteOptions::default()))
}

/// Executes a run, and returns its outcome as text.
pub fn outcome(engine: &Engine, run: &RunId) -> String {
    let outcome = execute(engine, run);
    // Every run of a test is replayed, too.
    if outcome.is_ok() {
        block_on(engine.verify(run)).expect("a replay ends the same");
    }
    outcome_text(&outcome)
}

pub fn outcome_text(outcome: &Result<RunOutcome, EngineError>) -> String {
    match outcome {
        Ok(RunOutcome::Completed(value)) => codec::encode(value).expect("data"),
        Ok(RunOutcome::Failed(failure)) => {
            let exception = &failure.exception;
            format!("failed {} {}", exception.code, exception.text())
        }
        Ok(RunOutcome::Waiting { reason, .. }) => format!("waiting: {reason}"),
        Ok(RunOutcome::Cancelled { reason, status }) => format!("{}: {reason}", status.name()),
        Ok(RunOutcome::Stuck { reason }) => format!("stuck: {reason}"),
        Ok(RunOutcome::Queued { place }) => format!("queued at {}", place.position),
        Ok(RunOutcome::Interrupted) => "interrupted".to_owned(),
        Err(error) => format!("error {} {error}", error.code()),
    }
}

/// Records the events of a run as text.
#[derive(Default)]
pub struct Recorder(pub RefCell<Vec<String>>);

impl Observer for Recorder {
    fn event(&self, _run: &RunId, event: &RunEvent) {
        let words = match event {
            RunEvent::Branches { .. } | RunEvent::BranchesEnded { .. } => return,
            RunEvent::Queued { place } => format!("queued {}", place.position),
            RunEvent::Started { replayed, .. } => format!("started {replayed}"),
            RunEvent::StepStarted(step) => format!("start {}", step.path),
            RunEvent::StepFinished { step, preview, .. } => format!("done {} {preview}", step.path),
            RunEvent::StepFailed { step, code, .. } => format!("failed {} {code}", step.path),
            RunEvent::StepRetrying { step, due_ms, .. } => format!("retry {} {due_ms}", step.path),
            RunEvent::StepSleeping { step, until_ms } => format!("sleep {} {until_ms}", step.path),
            RunEvent::StepWaiting { step, .. } => format!("wait {}", step.path),
            RunEvent::StepProgress { path, .. } => format!("progress {path}"),
            RunEvent::Log { level, message, .. } => format!("log {level} {message}"),
            RunEvent::Emitted { name, .. } => format!("emit {name}"),
            RunEvent::Printed { text } => format!("print {}", text.trim_end()),
        };
        self.0.borrow_mut().push(words);
    }
}

/// Interrupts a run that performs the effect of this path.
pub struct Trip {
    pub at: String,
    pub interrupt: Interrupt,
}

impl Observer for Trip {
    fn event(&self, _run: &RunId, event: &RunEvent) {
        if let RunEvent::StepFinished { step, .. } = event
            && step.path.to_string() == self.at
        {
            self.interrupt.trigger();
        }
    }
}

type Perform = fn(&StepContext, &Value, &Effects) -> Result<Outcome, StepError>;

struct Fake {
    spec: &'static StepSpec,
    effects: Effects,
    perform: Perform,
}

impl Step for Fake {
    fn spec(&self) -> &'static StepSpec {
        self.spec
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            if config.get("hang").is_some() {
                std::future::pending::<()>().await;
            }
            (self.perform)(cx, &config, &self.effects)
        })
    }
}

const VALUE: Field = Field::optional("value", FieldType::Any, "What it gives.");
const TIMES: Field = Field::optional("times", FieldType::Int, "How often it fails.");
const MILLIS: Field = Field::optional("millis", FieldType::Int, "How long it sleeps.");
const KIND: Field = Field::optional("kind", FieldType::Name, "Which error it fails with.");
const AFTER: Field = Field::optional("after", FieldType::Int, "When to come back, in ms.");
const HANG: Field = Field::optional("hang", FieldType::Bool, "Never ends.");

const fn spec(kind: &'static str, fields: &'static [Field], effect: Effect) -> StepSpec {
    StepSpec {
        operations: None,
        kind,
        aliases: &[],
        doc: "A step of the tests.",
        fields,
        examples: &[],
        effect,
    }
}

static PURE: StepSpec = spec("pure", &[VALUE], Effect::Pure);
static LOOK: StepSpec = spec("look", &[VALUE, TIMES, HANG, KIND, AFTER], Effect::Read);
static SEEN: StepSpec = spec("seen", &[VALUE, TIMES, KIND], Effect::Read);
static WRITE: StepSpec = spec(
    "write",
    &[VALUE, TIMES, HANG, KIND, AFTER],
    Effect::External,
);
static PUT: StepSpec = spec("put", &[VALUE], Effect::OwnStore);
static PAUSE: StepSpec = spec("pause", &[TIMES], Effect::Pure);
static SLEEP: StepSpec = spec("sleep", &[MILLIS], Effect::Pure);
static HOLD: StepSpec = spec("hold", &[VALUE, TIMES], Effect::Pure);

fn steps(effects: &Effects, script: &Script) -> Vec<Box<dyn Step>> {
    let step = |spec, perform: Perform| -> Box<dyn Step> {
        Box::new(Fake {
            spec,
            effects: effects.clone(),
            perform,
        })
    };
    vec![
        Box::new(Gate {
            script: script.clone(),
            effects: effects.clone(),
        }),
        Box::new(Rounds),
        Box::new(Job),
        step(&HOLD, hold),
        step(&LOOK, effect),
        step(&PAUSE, |cx, config, _| {
            let millis = config.get("times").and_then(Value::as_int).unwrap_or(0);
            Ok(Outcome::Sleep {
                until_ms: cx.now_ms() + millis,
                value: Value::keyword("slept"),
            })
        }),
        step(&PURE, |_, config, _| Ok(Outcome::Value(value(config)))),
        step(&PUT, |_, config, _| {
            Ok(Outcome::Commit(StoreOp::Kv(KvOp::Append {
                key: "all".to_owned(),
                items: vec![codec::encode(&value(config)).expect("data")],
                max_length: 1000,
                max_value: flowstone_engine::kv::MAX_VALUE,
            })))
        }),
        step(&SEEN, seen),
        step(&SLEEP, |cx, config, _| {
            let millis = config.get("millis").and_then(Value::as_int).unwrap_or(0);
            Ok(Outcome::Sleep {
                until_ms: cx.now_ms() + millis,
                value: Value::Nil,
            })
        }),
        step(&WRITE, effect),
    ]
}

fn value(config: &Value) -> Value {
    config.get("value").cloned().unwrap_or(Value::Nil)
}

fn effect(cx: &StepContext, config: &Value, effects: &Effects) -> Result<Outcome, StepError> {
    let mut effects = effects.borrow_mut();
    let count = effects.entry(cx.idempotency_key().to_owned()).or_default();
    *count += 1;
    let fails = config.get("times").and_then(Value::as_int).unwrap_or(0);
    if i64::from(*count) <= fails {
        return Err(failure(config));
    }
    Ok(Outcome::Value(value(config)))
}

fn failure(config: &Value) -> StepError {
    const KINDS: &[&str] = &[
        "denied",
        "not-found",
        "rate-limited",
        "timeout",
        "unavailable",
    ];
    let kind = config.get("kind").and_then(name_of);
    let kind = KINDS.iter().find(|known| Some(**known) == kind.as_deref());
    let kind = kind.copied().unwrap_or("unavailable");
    let after = config.get("after").and_then(Value::as_int);
    let retry = match after.and_then(|millis| u64::try_from(millis).ok()) {
        Some(millis) => Retry::After(Duration::from_millis(millis)),
        None if matches!(kind, "denied" | "not-found") => Retry::Never,
        None => Retry::Backoff,
    };
    StepError::new("E0799", kind, "not now").retry(retry)
}

/// Checks whether the effect of this key has happened. With `:times`, the check fails.
fn seen(cx: &StepContext, config: &Value, effects: &Effects) -> Result<Outcome, StepError> {
    if config.get("times").is_some() {
        return Err(failure(config));
    }
    let count = effects.borrow().get(cx.idempotency_key()).copied();
    Ok(Outcome::Value(match count {
        Some(_) => value(config),
        None => Value::Nil,
    }))
}

fn hold(cx: &StepContext, config: &Value, _: &Effects) -> Result<Outcome, StepError> {
    let timeout = config.get("times").and_then(Value::as_int);
    Ok(Outcome::Suspend(Box::new(WaitSpec {
        key: Some("door".to_owned()),
        deadline_ms: timeout.map(|timeout| cx.now_ms() + timeout),
        on_timeout: match config.get("value") {
            Some(value) => OnTimeout::Continue(value.clone()),
            None => OnTimeout::Fail,
        },
        validation: codec::decode("{:required [:action]}").expect("EDN"),
        details: Value::Nil,
        event: None,
        webhook: None,
    })))
}
