//! Runs that wait: what they cost while they do, and how soon they go on.

use std::io::{Error, Result};
use std::path::Path;
use std::time::{Duration, Instant};

use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::ports::{RunFilter, RunStatus};
use flowstone_lang::value::Value;

use crate::Measured;
use crate::process::Process;
use crate::run::{add_runs, block_on, execute};
use crate::world::{World, each_once, flow};

const SUSPENDED: usize = 10_000;
const LONG: usize = 10_000;

/// Waits for a signal that all of them get.
const WAITING: &str = "(do (flow/step :wait :go {:key \"go\" :timeout \"1d\"}) :woken)";

/// The server with nothing to do.
pub fn idle(folder: &Path) -> Result<Measured> {
    let server = Process::serve(folder)?;
    std::thread::sleep(Duration::from_secs(1));
    let before = server.cpu_seconds()?;
    std::thread::sleep(Duration::from_secs(4));
    let resident = server.resident()?;
    let busy = (server.cpu_seconds()? - before) / 4.0 * 100.0;
    Ok(Measured {
        words: format!("{resident:.1} MB, {busy:.2} % of a core"),
        is_met: resident < 30.0,
    })
}

/// A server that has suspended all its runs.
struct Suspended {
    world: World,
    server: Process,
    /// Megabytes above those of the idle server.
    above: f64,
    seconds: f64,
}

async fn count(world: &World, status: RunStatus) -> Result<usize> {
    let filter = RunFilter {
        statuses: vec![status],
        ..RunFilter::default()
    };
    let runs = world.stores.runs.list(filter).await;
    Ok(runs.map_err(Error::other)?.len())
}

/// Polls until a number of runs have a status.
async fn until(world: &World, status: RunStatus, wanted: usize) -> Result<()> {
    let begun = Instant::now();
    while count(world, status).await? < wanted {
        if begun.elapsed() > Duration::from_secs(120) {
            let words = format!("{} of {wanted}", count(world, status).await?);
            return Err(Error::other(words));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

fn suspend(folder: &Path) -> Result<Suspended> {
    let world = World::open(folder)?;
    let loaded = flow(folder, WAITING)?;
    let server = Process::serve(folder)?;
    std::thread::sleep(Duration::from_secs(1));
    let before = server.resident()?;
    let begun = Instant::now();
    block_on(async {
        add_runs(&world.stores, &loaded, SUSPENDED).await?;
        until(&world, RunStatus::Waiting, SUSPENDED).await
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    std::thread::sleep(Duration::from_secs(1));
    let above = server.resident()? - before;
    Ok(Suspended {
        world,
        server,
        above,
        seconds,
    })
}

/// What the server holds more of when all runs are suspended.
pub fn suspended(folder: &Path) -> Result<Measured> {
    let suspended = suspend(folder)?;
    Ok(Measured {
        words: format!(
            "{:.1} MB more, started and suspended in {:.1} s",
            suspended.above, suspended.seconds
        ),
        is_met: suspended.above < 20.0,
    })
}

/// From the signal to the last run that is completed.
pub fn all_woken(folder: &Path) -> Result<Measured> {
    let suspended = suspend(folder)?;
    let seconds = block_on(async {
        let engine = suspended.world.engine()?;
        let begun = Instant::now();
        let answered = engine.complete_wait("go", &Value::Int(1), false).await;
        answered.map_err(Error::other)?;
        until(&suspended.world, RunStatus::Completed, SUSPENDED).await?;
        Ok(begun.elapsed().as_secs_f64())
    })?;
    let resident = suspended.server.resident()?;
    Ok(Measured {
        words: format!("{seconds:.2} s, {resident:.1} MB resident afterwards"),
        is_met: seconds < 3.0,
    })
}

/// A run that has done all its steps and waits: from the call that executes it to its end. What a process needs once to
/// begin is not in it.
pub fn long_run(folder: &Path) -> Result<Measured> {
    let world = World::open(folder)?;
    let loaded = flow(
        folder,
        &format!(
            "(do (loop [n 0] (when (< n {LONG}) (flow/step :line :tell {{:value {{:n n :text \"a line\"}}}}) (recur (inc n))))
                 (flow/step :wait :go {{:key \"go\" :timeout \"1d\"}}))"
        ),
    )?;
    let run = block_on(async {
        let engine = world.engine()?;
        let run = add_runs(&world.stores, &loaded, 1).await?.remove(0);
        execute(&engine, &run).await?;
        Ok(run)
    })?;
    let mut times = Vec::new();
    for _ in 0..7 {
        // Nothing is known of it any more: it is read and replayed, to its wait.
        let engine = world.engine()?;
        times.push(block_on(async {
            let begun = Instant::now();
            execute(&engine, &run).await?;
            Ok(begun.elapsed().as_secs_f64() * 1e3)
        })?);
    }
    let is_over = block_on(async {
        let engine = world.engine()?;
        let answered = engine.complete_wait("go", &Value::Int(1), false).await;
        answered.map_err(Error::other)?;
        Ok(matches!(
            execute(&engine, &run).await?,
            RunOutcome::Completed(_)
        ))
    })?;
    times.sort_by(f64::total_cmp);
    let median = times[times.len() / 2];
    let is_once = each_once(&world.effects, LONG)? && is_over;
    Ok(Measured {
        words: format!("{median:.1} ms (median of 7), each effect once: {is_once}"),
        is_met: median < 50.0 && is_once,
    })
}
