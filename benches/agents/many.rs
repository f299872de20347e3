//! A thousand agents at once, whose model takes its time: as runs of a worker, and as branches of one run.

use std::io::{Error, Result};
use std::path::Path;
use std::time::Instant;

use crate::process::{Process, Watched};
use crate::run::block_on;
use crate::world::{AGENT, Script, Tool, World};
use crate::{Measured, Row};

const AGENTS: usize = 1_000;
const TURNS: usize = 5;
const LATENCY: u64 = 200;

pub const ROWS: &[Row] = &[
    Row {
        name: "1,000 agents, each a run",
        target: "< 3 s; the model takes 1 s",
        measure: runs,
    },
    Row {
        name: "1,000 agents, branches of one run",
        target: "< 3 s; the model takes 1 s",
        measure: branches,
    },
];

fn script() -> Script {
    Script {
        turns: TURNS,
        tool: Tool::Add,
        latency: LATENCY,
        last: LATENCY,
    }
}

/// A worker of two threads, from its start to the end of the last run.
fn runs(folder: &Path) -> Result<Measured> {
    measured(folder, AGENT, AGENTS)
}

fn branches(folder: &Path) -> Result<Measured> {
    let body =
        format!("(reduce + (flow/pmap {{:max {AGENTS}}} (fn [_] {AGENT}) (range {AGENTS})))");
    measured(folder, &body, 1)
}

fn measured(folder: &Path, body: &str, count: usize) -> Result<Measured> {
    let idle = idle(&folder.join("idle"))?;
    let place = folder.join("busy");
    let world = World::open(&place, &script().settings(":full"))?;
    block_on(world.add_runs(body, count))?;
    drop(world);
    let begun = Instant::now();
    let worker = Process::start(
        &place,
        &["serve", "--until-idle", "--quiet", "--concurrency", "1000"],
    )?;
    let Watched { peak, cpu } = worker.watch()?;
    let seconds = begun.elapsed().as_secs_f64();
    let world = World::again(&place)?;
    let (done, counted) = (world.completed()?, world.counted()?);
    if done != count || counted != AGENTS * (TURNS - 1) {
        return Err(Error::other(format!("{done} runs done, {counted} calls")));
    }
    let turns = (AGENTS * TURNS) as f64;
    Ok(Measured {
        words: format!(
            "{seconds:.2} s, CPU {cpu:.2} s ({:.2} ms a turn), {:.0} MB above idle ({idle:.0} MB)",
            cpu * 1e3 / turns,
            peak - idle
        ),
        is_met: seconds < 3.0,
    })
}

/// What a server with nothing to do takes.
fn idle(folder: &Path) -> Result<f64> {
    World::open(folder, &script().settings(":full"))?;
    Process::idle(folder)
}
