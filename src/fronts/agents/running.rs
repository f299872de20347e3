//! Generations that are not over, and what they still need of the records.
//!
//! The flow of a generation has what its agent and its tools were when it started. Two things it does not have: the agent, which
//! submitted outputs and boundaries refer to, and credentials. A record that a generation needs is therefore not deleted.

use std::collections::HashSet;

use flowstone_engine::Engine;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{RunPages, RunQuery, RunSummary};

use super::compile::{origin, slug};
use super::error::ApiError;
use super::records::Record;
use super::{ids, pauses, stuck};

/// Number of runs that are read at a time.
const PAGE: usize = 500;
/// Refuses to delete an agent with a generation that is not over. One in quarantine, or that waits for one there, does not count.
///
/// # Errors
/// E1262, with the generation.
pub async fn refuse_of_agent(engine: &Engine, agent: &Record) -> Result<(), ApiError> {
    let flow = slug(agent.project(), agent.id());
    let mut pages = RunPages::new(RunQuery {
        flow: Some(flow),
        ..unfinished()
    });
    while let Some(found) = pages.next(&*engine.stores().runs).await? {
        for run in &found {
            if !is_stuck(engine, run).await? {
                return Err(in_use("agent", &run.id));
            }
        }
    }
    Ok(())
}

async fn is_stuck(engine: &Engine, run: &RunSummary) -> Result<bool, ApiError> {
    let row = engine.run(&run.id).await?;
    match stuck::of(engine, &row).await? {
        Some(stuck) if stuck.run != run.id => Ok(pauses::of_tree(engine, &run.id).await?.is_none()),
        stuck => Ok(stuck.is_some()),
    }
}

/// Refuses to delete a record whose name is in the flow of a generation that is not over.
///
/// # Errors
/// E1262, with the generation.
pub async fn refuse_of_flow(
    engine: &Engine,
    record: &Record,
    name: Option<&str>,
) -> Result<(), ApiError> {
    let Some(name) = name else {
        return Ok(());
    };
    // Programs without the name.
    let mut known: HashSet<String> = HashSet::new();
    let mut pages = RunPages::new(unfinished());
    while let Some(found) = pages.next(&*engine.stores().runs).await? {
        for run in found.iter().filter(|run| is_of(run, record)) {
            let program = engine.run(&run.id).await?.program;
            if known.contains(&program) {
                continue;
            }
            let found = engine.stores().runs.program(&program).await?;
            match found.is_some_and(|it| it.source.contains(name)) {
                false => {
                    known.insert(program);
                }
                true if is_stuck(engine, run).await? => {}
                true => return Err(in_use(record.kind.noun(), &run.id)),
            }
        }
    }
    Ok(())
}

fn unfinished() -> RunQuery {
    RunQuery {
        statuses: stuck::STATUSES.to_vec(),
        limit: PAGE,
        ..RunQuery::default()
    }
}

/// Tells whether a run is a generation of the project of a record.
fn is_of(run: &RunSummary, record: &Record) -> bool {
    let project = origin(&run.flow).map(|origin| origin.project);
    project.is_some_and(|project| ids::key_of(&project) == ids::key_of(record.project()))
}

fn in_use(noun: &str, run: &RunId) -> ApiError {
    let generation = ids::generation(run);
    let message = format!(
        "the generation `{generation}` of the {noun} is not over: finish it, or end it with `flowstone runs cancel {run}`"
    );
    ApiError::conflict(message).with(serde_json::json!({"generation_id": generation}))
}
