//! An engine over a real database, with an effect outside: a line in a file that nobody but the benchmark reads.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{Error, Result, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flowstone_engine::ports::Stores;
use flowstone_engine::{Engine, EngineConfig};
use flowstone_flow::flow::LoadedFlow;
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Outcome, Step, StepContext, StepError, StepSpec,
};
use flowstone_lang::value::Value;

use crate::run;

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

/// Writes a flow to a file and loads it.
pub fn flow(folder: &Path, text: &str) -> Result<LoadedFlow> {
    let path = folder.join("flow.clj");
    std::fs::write(&path, text)?;
    run::flow(&path)
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
