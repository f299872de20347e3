//! What lies on the disk, and how it stays fast.

use std::io::{Error, Result};
use std::path::Path;
use std::time::Instant;

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{
    Ack, Batch, Change, Claim, ClaimBy, Durability, RunFilter, RunStatus, RunUpdate,
};
use flowstone_flow::flow::LoadedFlow;

use crate::Measured;
use crate::run::{add_runs, block_on, execute};
use crate::world::{World, each_once, flow};

const STEPS: usize = 10_000;
const LONG: usize = 100_000;
const FINISHED: usize = 100_000;
const TURNS: usize = 1_000;
const MESSAGE: usize = 1_000;

/// Bytes of the database once its log is in it.
fn size(folder: &Path) -> Result<u64> {
    // The last connection that closes copies the log into the file.
    Ok(std::fs::metadata(folder.join("home/flowstone.db"))?.len())
}

/// Runs a flow to its end, and returns its run and how long that took.
fn run(folder: &Path, text: &str) -> Result<(RunId, f64)> {
    let world = World::open(folder)?;
    let loaded = flow(folder, text)?;
    block_on(async {
        let engine = world.engine()?;
        let run = add_runs(&world.stores, &loaded, 1).await?.remove(0);
        let begun = Instant::now();
        execute(&engine, &run).await?;
        Ok((run, begun.elapsed().as_secs_f64()))
    })
}

/// Steps with a small config and a small result.
pub fn bytes_a_step(folder: &Path) -> Result<Measured> {
    run(folder, "0")?;
    let before = size(folder)?;
    run(
        folder,
        &format!(
            "(loop [n 0] (if (< n {STEPS}) (do (flow/step :line :tell {{:value {{:n n}}}}) (recur (inc n))) n))"
        ),
    )?;
    let each = (size(folder)? - before) as f64 / STEPS as f64;
    let is_once = each_once(&folder.join("effects"), STEPS)?;
    Ok(Measured {
        words: format!("{each:.0} bytes, intent and result, each effect once: {is_once}"),
        is_met: each < 1_000.0 && is_once,
    })
}

/// Half of the steps are local.
pub fn long_run(folder: &Path) -> Result<Measured> {
    let (run, seconds) = run(
        folder,
        &format!(
            "(loop [n 0]
               (if (< n {LONG})
                 (do (flow/step :line :tell {{:value n}})
                     (flow/step :kv :count {{:operation :increment :key \"count\"}})
                     (recur (+ n 2)))
                 n))"
        ),
    )?;
    let megabytes = size(folder)? as f64 / 1e6;
    let world = World::open(folder)?;
    let replayed = block_on(async {
        let engine = world.engine()?;
        let begun = Instant::now();
        engine.verify(&run).await.map_err(Error::other)?;
        Ok(begun.elapsed().as_secs_f64())
    })?;
    let is_once = each_once(&world.effects, LONG / 2)?;
    Ok(Measured {
        words: format!(
            "{seconds:.1} s, {megabytes:.0} MB, replayed in {replayed:.2} s, each once: {is_once}"
        ),
        is_met: replayed < 2.0 && is_once,
    })
}

/// Adds runs that are over, made by what the executor writes at the end of a run.
pub async fn add_finished(world: &World, loaded: &LoadedFlow, count: usize) -> Result<Vec<RunId>> {
    let runs = add_runs(&world.stores, loaded, count).await?;
    for some in runs.chunks(1_000) {
        let mut commits = Vec::new();
        for run in some {
            let claim = world
                .stores
                .runs
                .claim(run, ClaimBy::Search, 1)
                .await
                .map_err(Error::other)?;
            let Claim::Taken { epoch } = claim else {
                return Err(Error::other("a run is held"));
            };
            commits.push(world.stores.journal.commit(Batch {
                run: run.clone(),
                epoch,
                durability: Durability::Full,
                ack: Ack::Durable,
                now_ms: 2,
                changes: vec![Change::Update(RunUpdate {
                    status: RunStatus::Completed,
                    wait_reason: None,
                    due_ms: None,
                    result: Some("0".to_owned()),
                    error: None,
                })],
            }));
        }
        for commit in commits {
            commit.await.map_err(Error::other)?;
        }
    }
    Ok(runs)
}

/// Runs that are over are listed and found.
pub fn finished_runs(folder: &Path) -> Result<Measured> {
    let world = World::open(folder)?;
    let loaded = flow(folder, "0")?;
    let (list, find) = block_on(async {
        let runs = add_finished(&world, &loaded, FINISHED).await?;
        let engine = world.engine()?;
        let begun = Instant::now();
        let newest = RunFilter {
            limit: 50,
            ..RunFilter::default()
        };
        engine.list_runs(newest).await.map_err(Error::other)?;
        let list = begun.elapsed().as_secs_f64() * 1e3;
        let begun = Instant::now();
        let wanted = &runs[FINISHED / 3];
        engine
            .find_run(wanted.as_str())
            .await
            .map_err(Error::other)?;
        engine.resumable().await.map_err(Error::other)?;
        Ok((list, begun.elapsed().as_secs_f64() * 1e3))
    })?;
    let megabytes = size(folder)? as f64 / 1e6;
    Ok(Measured {
        words: format!("list {list:.1} ms, find and resumable {find:.1} ms, {megabytes:.0} MB"),
        is_met: list < 20.0 && find < 20.0,
    })
}

/// Each turn gives the whole conversation, which is a message longer.
pub fn transcript(folder: &Path) -> Result<Measured> {
    run(folder, "0")?;
    let before = size(folder)?;
    let (_, seconds) = run(
        folder,
        &format!(
            "(loop [n 0 messages []]
               (if (< n {TURNS})
                 (let [message {{:role (if (even? n) :user :assistant)
                                :content (apply str n \":\" (map (fn [i] (char (+ 97 (mod (* i (+ n 7)) 26)))) (range {MESSAGE})))}}]
                   (recur (inc n) (flow/step :line :turn {{:value (conj messages message)}})))
                 (count messages)))"
        ),
    )?;
    let grown = size(folder)? - before;
    let own = (TURNS * MESSAGE) as f64;
    let times = grown as f64 / own;
    Ok(Measured {
        words: format!(
            "{:.1} MB for {:.1} MB of messages: {times:.1} times, {seconds:.1} s",
            grown as f64 / 1e6,
            own / 1e6
        ),
        is_met: times < 20.0,
    })
}
