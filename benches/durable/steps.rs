//! Steps in a row, and many runs side by side.

use std::io::{Error, Result};
use std::num::NonZeroUsize;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use flowstone_engine::observer::{NoObserver, Observer};
use flowstone_engine::worker::{Until, Watch, WorkerEvent, WorkerOptions, serve};
use flowstone_flow::Interrupt;

use crate::Measured;
use crate::run::{add_runs, block_on, execute};
use crate::world::{World, each_once, engine, flow};

const IN_A_ROW: usize = 1_000;
const RUNS: usize = 1_000;
const STEPS: usize = 10;

fn lines(count: usize) -> String {
    format!(
        "(loop [n 0] (if (< n {count}) (do (flow/step :line :tell {{:value n}}) (recur (inc n))) n))"
    )
}

/// One run, one step after another: each waits for the intent of the next, which holds its own result.
pub fn in_a_row(folder: &Path) -> Result<Measured> {
    let world = World::open(folder)?;
    let loaded = flow(folder, &lines(IN_A_ROW))?;
    let took = block_on(async {
        let engine = world.engine()?;
        let runs = add_runs(&world.stores, &loaded, 1).await?;
        let begun = Instant::now();
        execute(&engine, &runs[0]).await?;
        Ok(begun.elapsed().as_secs_f64())
    })?;
    let is_once = each_once(&world.effects, IN_A_ROW)?;
    let rate = IN_A_ROW as f64 / took;
    Ok(Measured {
        words: format!("{rate:.0}/s, each effect once: {is_once}"),
        is_met: rate >= 1_200.0 && is_once,
    })
}

/// Watches nothing.
struct Nobody;

impl Watch for Nobody {
    fn event(&self, _: &WorkerEvent<'_>) {}

    fn observer(&self) -> Rc<dyn Observer> {
        Rc::new(NoObserver)
    }
}

/// A worker with a thread for each core, from the first run to the last.
pub fn side_by_side(folder: &Path) -> Result<Measured> {
    let world = World::open(folder)?;
    let loaded = flow(folder, &lines(STEPS))?;
    block_on(add_runs(&world.stores, &loaded, RUNS))?;
    let options = WorkerOptions {
        threads: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
        concurrency: NonZeroUsize::new(256).unwrap_or(NonZeroUsize::MIN),
        until: Until::Idle,
        flows: Vec::new(),
        interrupt: Interrupt::new(),
    };
    let watch: Arc<dyn Watch> = Arc::new(Nobody);
    let open = || engine(&world.home, &world.effects, world.stores.clone());
    let begun = Instant::now();
    let served = serve(&open, &options, &watch);
    let took = begun.elapsed().as_secs_f64();
    let served = served.map_err(|error| Error::other(format!("{error:?}")))?;
    let is_once = each_once(&world.effects, RUNS * STEPS)? && served.ended == RUNS;
    let rate = (RUNS * STEPS) as f64 / took;
    Ok(Measured {
        words: format!("{rate:.0} steps/s, each effect once: {is_once}"),
        is_met: rate >= 8_000.0 && is_once,
    })
}
