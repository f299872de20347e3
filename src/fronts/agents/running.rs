//! Generations that are not over, and what they still need of the records.
//!
//! The flow of a generation has what its agent and its tools were when it started. Two things it does not have: the agent, which
//! submitted outputs and boundaries refer to, and credentials. A record that a generation needs is therefore not deleted.

use std::collections::HashSet;

use flowstone_engine::Engine;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{RunQuery, RunStatus, RunSummary};

use super::compile::{origin, slug};
use super::error::ApiError;
use super::ids;
use super::records::Record;

/// Number of runs that are read at a time.
const PAGE: usize = 500;
/// The states of a run that is not over.
const STATUSES: [RunStatus; 4] = [
    RunStatus::FailedCompensating,
    RunStatus::Queued,
    RunStatus::Running,
    RunStatus::Waiting,
];

/// Refuses to delete an agent with a generation that is not over.
///
/// # Errors
/// E1262, with the generation.
pub async fn refuse_of_agent(engine: &Engine, agent: &Record) -> Result<(), ApiError> {
    let flow = slug(agent.project(), agent.id());
    let query = RunQuery {
        flow: Some(flow),
        limit: 1,
        ..unfinished()
    };
    match engine.summaries(query).await?.first() {
        None => Ok(()),
        Some(run) => Err(in_use("agent", &run.id)),
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
    let mut known: HashSet<String> = HashSet::new();
    let mut query = unfinished();
    loop {
        let found = engine.summaries(query.clone()).await?;
        for run in found.iter().filter(|run| is_of(run, record)) {
            let program = engine.run(&run.id).await?.program;
            if !known.insert(program.clone()) {
                continue;
            }
            let program = engine.stores().runs.program(&program).await?;
            if program.is_some_and(|program| program.source.contains(name)) {
                return Err(in_use(record.kind.noun(), &run.id));
            }
        }
        if found.len() < PAGE {
            return Ok(());
        }
        query.after = found.last().map(|run| run.id.clone());
    }
}

fn unfinished() -> RunQuery {
    RunQuery {
        statuses: STATUSES.to_vec(),
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
