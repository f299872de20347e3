//! A project whose steps are timed: an engine over a real database, and the tools beside it.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::ports::Stores;
use flowstone_engine::{Engine, EngineConfig};
use flowstone_lang::value::Value;

use crate::run::{self, block_on};

/// A project folder with its stores.
pub struct World {
    folder: PathBuf,
    stores: Stores,
}

/// What a run gave, and how long its execution took.
pub struct Ran {
    pub value: Value,
    pub took: Duration,
}

impl World {
    pub fn open(folder: &Path) -> Result<World> {
        let stores = flowstone_stores::open(
            &folder.join(".flowstone"),
            &flowstone_stores::Options::default(),
        );
        Ok(World {
            folder: folder.to_owned(),
            stores: stores.map_err(Error::other)?,
        })
    }

    /// Opens an engine that remembers nothing of others.
    pub fn engine(&self) -> Engine {
        let steps = flowstone_project::all_steps();
        Engine::open(EngineConfig::for_tests(
            &self.folder,
            self.stores.clone(),
            steps,
        ))
    }

    /// Runs an expression as a flow, to its result.
    pub fn run(&self, engine: &Engine, expression: &str) -> Result<Ran> {
        let path = self.folder.join(".flowstone").join("bench.edn");
        std::fs::write(&path, format!("{{:slug :bench :flow '{expression}}}"))?;
        let loaded = run::flow(&path)?;
        block_on(async {
            let new = run::new_run(&loaded, 0, "{}".to_owned());
            let run = self.stores.runs.create(new).await.map_err(Error::other)?;
            let begun = Instant::now();
            let outcome = run::execute(engine, &run).await?;
            let took = begun.elapsed();
            match outcome {
                RunOutcome::Completed(value) => Ok(Ran { value, took }),
                other => Err(Error::other(format!("the run ended so: {other:?}"))),
            }
        })
    }
}

/// Runs a tool and returns what it prints and how long it took; `None` when it is not installed.
pub fn tool(folder: &Path, name: &str, args: &[&str]) -> Result<Option<(String, Duration)>> {
    let begun = Instant::now();
    let output = Command::new(name)
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output();
    match output {
        Ok(output) => Ok(Some((
            String::from_utf8_lossy(&output.stdout).into_owned(),
            begun.elapsed(),
        ))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The median of what `measure` gives, several times.
pub fn median(mut measure: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    let mut times = (0..5).map(|_| measure()).collect::<Result<Vec<_>>>()?;
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// Milliseconds, for people.
pub fn millis(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}
