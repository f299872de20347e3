//! What a turn costs beyond the model's own time, and how that grows with the conversation.

use std::io::{Error, Result};
use std::path::Path;

use crate::run::block_on;
use crate::world::{AGENT, Clock, Script, Took, Tool, World, execute, median};
use crate::{Measured, Row};

const RUNS: usize = 9;

pub const ROWS: &[Row] = &[
    Row {
        name: "an agent of 12 turns, function",
        target: "< 5 ms a turn",
        measure: |folder| short(folder, Tool::Look),
    },
    Row {
        name: "an agent of 12 turns, kv",
        target: "< 5 ms a turn",
        measure: |folder| short(folder, Tool::Add),
    },
    Row {
        name: "an agent of 50 turns",
        target: "< twice as much a turn",
        measure: |folder| longer(folder, 50),
    },
    Row {
        name: "an agent of 100 turns",
        target: "< twice as much a turn",
        measure: |folder| longer(folder, 100),
    },
];

/// Executes agents one after another; the medians, for each turn.
fn each_turn(folder: &Path, script: Script, durability: &str) -> Result<Took> {
    let world = World::open(folder, &script.settings(durability))?;
    let all = block_on(async {
        let engine = world.engine()?;
        let mut all = Vec::new();
        // The first one is not counted: it makes the session.
        for run in world.add_runs(AGENT, RUNS + 1).await? {
            let clock = Clock::start()?;
            let turns = execute(&engine, &run).await?;
            all.push(clock.took()?);
            if turns.as_int() != i64::try_from(script.turns).ok() {
                return Err(Error::other(format!("{turns:?} turns")));
            }
        }
        Ok(all.split_off(1))
    })?;
    let calls = match script.tool {
        Tool::Look => 0,
        Tool::Add => (RUNS + 1) * (script.turns - 1),
    };
    if world.counted()? != calls {
        return Err(Error::other("a call was not made once"));
    }
    let turns = script.turns as f64;
    Ok(Took {
        wall: median(all.iter().map(|took| took.wall).collect()) / turns,
        cpu: median(all.iter().map(|took| took.cpu).collect()) / turns,
    })
}

/// The same with what is written synced, and not.
fn both(folder: &Path, script: Script) -> Result<(Took, Took)> {
    let full = each_turn(&folder.join("full"), script, ":full")?;
    let relaxed = each_turn(&folder.join("relaxed"), script, ":relaxed")?;
    Ok((full, relaxed))
}

fn words((full, relaxed): (Took, Took)) -> String {
    format!(
        "{:.2} ms a turn, CPU {:.2} ms; relaxed {:.2} ms, CPU {:.2} ms",
        full.wall * 1e3,
        full.cpu * 1e3,
        relaxed.wall * 1e3,
        relaxed.cpu * 1e3
    )
}

fn short(folder: &Path, tool: Tool) -> Result<Measured> {
    let took = both(folder, Script::of(12, tool))?;
    Ok(Measured {
        words: words(took),
        is_met: took.0.wall < 0.005,
    })
}

/// Beside an agent of 12 turns: what is quadratic shows in the processor's time for each turn.
fn longer(folder: &Path, turns: usize) -> Result<Measured> {
    let few = each_turn(&folder.join("few"), Script::of(12, Tool::Look), ":relaxed")?;
    let took = both(folder, Script::of(turns, Tool::Look))?;
    let times = took.1.cpu / few.cpu;
    Ok(Measured {
        words: format!("{}; {times:.1} times that of 12 turns", words(took)),
        is_met: times < 2.0,
    })
}
