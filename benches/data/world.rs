//! A project whose steps are timed: an engine over a real database, and the tools beside it.

use std::future::Future;
use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};

use flowstone_engine::disk::load;
use flowstone_engine::ids::RunId;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::ports::{NewRun, Random as _, Stores, SystemRandom};
use flowstone_engine::{Engine, EngineConfig, ExecuteOptions, Stay};
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;

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
        let checked = load(&Session::new(), &path, "bench.edn");
        let found = format!("{:?}", checked.findings);
        let loaded = checked.loaded.ok_or_else(|| Error::other(found))?;
        let new = NewRun {
            id: RunId::new(1_700_000_000_000, SystemRandom.next()),
            external_id: None,
            program: loaded.program.clone(),
            flow: loaded.flow.slug.to_string(),
            input: "{}".to_owned(),
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
        };
        block_on(async {
            let run = self.stores.runs.create(new).await.map_err(Error::other)?;
            let options = ExecuteOptions {
                stay: Stay::No,
                ..ExecuteOptions::default()
            };
            let begun = Instant::now();
            let outcome = engine.execute(&run, Rc::new(NoObserver), options).await;
            let took = begun.elapsed();
            match outcome.map_err(Error::other)? {
                RunOutcome::Completed(value) => Ok(Ran { value, took }),
                other => Err(Error::other(format!("the run ended so: {other:?}"))),
            }
        })
    }
}

fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    tokio::task::LocalSet::new().block_on(&runtime, future)
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
