//! An agent that is killed before its last turn: how soon it goes on, with the journal answering for the turns before.

use std::io::{Error, Result};
use std::path::Path;
use std::time::{Duration, Instant};

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{EntryKind, RunFilter};

use crate::process::Process;
use crate::run::block_on;
use crate::world::{AGENT, Script, Tool, World, execute, median, write_flow};
use crate::{Measured, Row};

const TURNS: usize = 12;
const ROUNDS: usize = 5;
/// Milliseconds: the last turn never ends by itself.
const FOREVER: u64 = 600_000;

pub const ROWS: &[Row] = &[
    Row {
        name: "killed after 11 of 12 turns",
        target: "< 0.3 s to its end",
        measure: |folder| rounds(folder, by_process, 0.3),
    },
    Row {
        name: "the same, without a process's start",
        target: "< 50 ms to its end",
        measure: |folder| rounds(folder, in_this_process, 0.05),
    },
];

fn rounds(folder: &Path, end: fn(&Path) -> Result<f64>, most: f64) -> Result<Measured> {
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let place = folder.join(round.to_string());
        killed(&place)?;
        times.push(end(&place)?);
        let world = World::again(&place)?;
        let counted = world.counted()?;
        if counted != TURNS - 1 || ended_turns(&world)? != TURNS {
            let words = format!("{counted} calls, {} turns", ended_turns(&world)?);
            return Err(Error::other(words));
        }
    }
    let seconds = median(times);
    Ok(Measured {
        words: format!(
            "{:.0} ms (median of {ROUNDS}), no turn and no call made again",
            seconds * 1e3
        ),
        is_met: seconds < most,
    })
}

/// Starts an agent, and kills it in its last turn.
fn killed(folder: &Path) -> Result<()> {
    let script = Script {
        last: FOREVER,
        ..Script::of(TURNS, Tool::Add)
    };
    let world = World::open(folder, &script.settings(":full"))?;
    write_flow(folder, AGENT)?;
    let mut first = Process::start(folder, &["run", "flow.clj", "--quiet"])?;
    let begun = Instant::now();
    while ended_turns(&world)? < TURNS - 1 || world.counted()? < TURNS - 1 {
        if begun.elapsed() > Duration::from_secs(30) {
            return Err(Error::other("the agent does not get on"));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    first.kill()?;
    let patient = Script::of(TURNS, Tool::Add);
    std::fs::write(folder.join("flowstone.edn"), patient.settings(":full"))
}

/// From the start of a process that finds the run to its end.
fn by_process(folder: &Path) -> Result<f64> {
    let begun = Instant::now();
    Process::start(folder, &["runs", "resume", "--all", "--quiet"])?.watch()?;
    Ok(begun.elapsed().as_secs_f64())
}

/// From the call that executes the run to its end, with nothing known of it.
fn in_this_process(folder: &Path) -> Result<f64> {
    let world = World::again(folder)?;
    block_on(async {
        let engine = world.engine()?;
        let run = the_run(&world).await?;
        let begun = Instant::now();
        execute(&engine, &run).await?;
        Ok(begun.elapsed().as_secs_f64())
    })
}

async fn the_run(world: &World) -> Result<RunId> {
    let runs = world.stores.runs.list(RunFilter::default()).await;
    let first = runs.map_err(Error::other)?.into_iter().next();
    first
        .map(|row| row.id)
        .ok_or_else(|| Error::other("no run"))
}

/// How many turns the journal knows the end of.
fn ended_turns(world: &World) -> Result<usize> {
    block_on(async {
        let Ok(run) = the_run(world).await else {
            return Ok(0);
        };
        let entries = world.stores.journal.load(&run).await;
        let entries = entries.map_err(Error::other)?;
        let turns = entries
            .iter()
            .filter(|entry| is_turn(&entry.path) && entry.kind == EntryKind::Result);
        Ok(turns.count())
    })
}

/// Tells whether a path is that of a turn itself: `work/turn`, `work/turn#2`.
fn is_turn(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or(path);
    last == "turn" || last.starts_with("turn#")
}
