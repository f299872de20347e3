//! A project whose model is a script, and whose tools count how often they are called.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use flowstone_engine::disk::load;
use flowstone_engine::ids::RunId;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::ports::{NewRun, Random as _, RunFilter, RunStatus, Stores, SystemRandom};
use flowstone_engine::{Engine, EngineConfig, ExecuteOptions, Stay};
use flowstone_flow::flow::LoadedFlow;
use flowstone_lang::session::Session;
use flowstone_lang::value::Value;
use nix::sys::resource::{UsageWho, getrusage};

/// What the flow has beside its body: tools that are packaged steps. `bench/add` counts in our own store.
const TOOLS: &str = ":functions [{:id :look :code (fn [{:keys [n]}] {:found n :text (str \"what there is at \" n)})}
             {:id :count :code (fn [{:keys [n]}] {:operation :increment :key \"count\"})}]
 :steps [{:id :bench/look :type :function :description \"Looks something up.\"
          :input-schema [:map [:n :int]] :defaults {:ref :look}}
         {:id :bench/add :type :kv :description \"Counts.\"
          :input-schema [:map [:n :int]] :prepare :count}]";

/// Which tool an agent calls in each of its turns but the last.
#[derive(Clone, Copy)]
pub enum Tool {
    Look,
    Add,
}

/// A conversation that is written beforehand.
#[derive(Clone, Copy)]
pub struct Script {
    /// With the last, which is the answer.
    pub turns: usize,
    pub tool: Tool,
    /// Milliseconds that each turn takes.
    pub latency: u64,
    /// Milliseconds that the last turn takes.
    pub last: u64,
}

impl Script {
    /// Turns that take no time.
    pub fn of(turns: usize, tool: Tool) -> Script {
        Script {
            turns,
            tool,
            latency: 0,
            last: 0,
        }
    }

    /// The settings of a project that asks it.
    pub fn settings(&self, durability: &str) -> String {
        let tool = match self.tool {
            Tool::Look => "bench_look",
            Tool::Add => "bench_add",
        };
        let calls = (1..self.turns).map(|n| {
            format!(
                "{{:content \"I look at number {n} next.\" :tool-calls [{{:name \"{tool}\" :arguments {{:n {n}}}}}]}}"
            )
        });
        let last = format!("{{:content \"That is all.\" :latency-ms {}}}", self.last);
        let turns: Vec<String> = calls.chain([last]).collect();
        format!(
            "{{:durability {durability}\n :connections {{:ai {{:backend :scripted :script {{:latency-ms {} :turns [{}]}}}}}}}}",
            self.latency,
            turns.join("\n")
        )
    }
}

/// One agent that works through the script.
pub const AGENT: &str = "(:iterations (flow/step :agent :work {:connection :ai :objective \"Look at all of them.\" \
     :max-iterations 100 :tools {:steps [:bench/look :bench/add]}}))";

/// A project in a folder.
pub struct World {
    folder: PathBuf,
    pub stores: Stores,
}

impl World {
    /// Writes the settings, and opens the database.
    pub fn open(folder: &Path, settings: &str) -> Result<World> {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("flowstone.edn"), settings)?;
        World::again(folder)
    }

    /// Opens a project that is there.
    pub fn again(folder: &Path) -> Result<World> {
        let stores =
            flowstone_stores::open(&folder.join("home"), &flowstone_stores::Options::default());
        Ok(World {
            folder: folder.to_owned(),
            stores: stores.map_err(Error::other)?,
        })
    }

    pub fn engine(&self) -> Result<Engine> {
        let settings = flowstone_steps::settings::load(&self.folder).map_err(Error::other)?;
        let steps = flowstone_project::all_steps();
        Ok(Engine::open(EngineConfig {
            home: self.folder.join("home"),
            library: flowstone_steps::sandbox::register,
            durability: flowstone_steps::settings::of_durability(&settings),
            settings,
            ..EngineConfig::for_tests(&self.folder, self.stores.clone(), steps)
        }))
    }

    /// Adds runs of a flow with this body, for any worker to execute.
    pub async fn add_runs(&self, body: &str, count: usize) -> Result<Vec<RunId>> {
        let loaded = self.flow(body)?;
        let mut added = Vec::new();
        for number in 0..count {
            let number = i64::try_from(number).unwrap_or(0);
            let id = RunId::new(1_700_000_000_000 + number, SystemRandom.next());
            added.push(self.stores.runs.create(new_run(id, &loaded)));
        }
        let mut runs = Vec::new();
        for added in added {
            runs.push(added.await.map_err(Error::other)?);
        }
        Ok(runs)
    }

    fn flow(&self, body: &str) -> Result<LoadedFlow> {
        let path = write_flow(&self.folder, body)?;
        let checked = load(&Session::new(), &path, "flow.clj");
        let found = format!("{:?}", checked.findings);
        checked.loaded.ok_or_else(|| Error::other(found))
    }

    /// How often `bench/add` was called.
    pub fn counted(&self) -> Result<usize> {
        let counted = block_on(async {
            let counted = self.stores.kv.get("count", 0).await;
            counted.map_err(Error::other)
        })?;
        Ok(counted.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    /// How many runs have completed.
    pub fn completed(&self) -> Result<usize> {
        block_on(async {
            let filter = RunFilter {
                statuses: vec![RunStatus::Completed],
                ..RunFilter::default()
            };
            let runs = self.stores.runs.list(filter).await;
            Ok(runs.map_err(Error::other)?.len())
        })
    }
}

/// Writes a flow with the tools and this body.
pub fn write_flow(folder: &Path, body: &str) -> Result<PathBuf> {
    let path = folder.join("flow.clj");
    std::fs::write(&path, format!("{{:slug :bench\n {TOOLS}\n :flow '{body}}}"))?;
    Ok(path)
}

fn new_run(id: RunId, loaded: &LoadedFlow) -> NewRun {
    NewRun {
        id,
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
    }
}

/// Executes a run in this thread, and returns its value.
pub async fn execute(engine: &Engine, run: &RunId) -> Result<Value> {
    let options = ExecuteOptions {
        stay: Stay::No,
        ..ExecuteOptions::default()
    };
    let outcome = engine.execute(run, Rc::new(NoObserver), options).await;
    match outcome.map_err(Error::other)? {
        RunOutcome::Completed(value) => Ok(value),
        other => Err(Error::other(format!("{other:?}"))),
    }
}

/// Runs a future to its end on a runtime of one thread.
pub fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    tokio::task::LocalSet::new().block_on(&runtime, future)
}

/// Seconds, by the wall and of the processor, with all threads of this process.
#[derive(Clone, Copy)]
pub struct Took {
    pub wall: f64,
    pub cpu: f64,
}

/// Measures what happens until it is asked.
pub struct Clock {
    begun: Instant,
    cpu: f64,
}

impl Clock {
    pub fn start() -> Result<Clock> {
        Ok(Clock {
            cpu: cpu_seconds()?,
            begun: Instant::now(),
        })
    }

    pub fn took(&self) -> Result<Took> {
        Ok(Took {
            wall: self.begun.elapsed().as_secs_f64(),
            cpu: cpu_seconds()? - self.cpu,
        })
    }
}

fn cpu_seconds() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let (user, system) = (usage.user_time(), usage.system_time());
    Ok((user.tv_sec() + system.tv_sec()) as f64 + (user.tv_usec() + system.tv_usec()) as f64 / 1e6)
}

/// The middle one.
pub fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}
