//! A project whose model is a script, and whose tools count how often they are called.

use std::io::{Error, Result};
use std::path::{Path, PathBuf};
use std::time::Instant;

use flowstone_engine::ids::RunId;
use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::ports::{RunFilter, RunStatus, Stores};
use flowstone_engine::{Engine, EngineConfig};
use flowstone_flow::flow::LoadedFlow;
use flowstone_lang::value::Value;
use nix::sys::resource::{UsageWho, getrusage};

use crate::run::{self, block_on};

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
        let mut steps = flowstone_project::all_steps();
        steps.extend(flowstone_fronts::steps());
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
        run::add_runs(&self.stores, &self.flow(body)?, count).await
    }

    fn flow(&self, body: &str) -> Result<LoadedFlow> {
        run::flow(&write_flow(&self.folder, body)?)
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

/// Executes a run in this thread, and returns its value.
pub async fn execute(engine: &Engine, run: &RunId) -> Result<Value> {
    match run::execute(engine, run).await? {
        RunOutcome::Completed(value) => Ok(value),
        other => Err(Error::other(format!("{other:?}"))),
    }
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
