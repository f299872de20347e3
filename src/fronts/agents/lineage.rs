//! Nested generations: which generation started another, and what those below one wait for.
//!
//! A nested generation is a child run of the run that started it.

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{RunQuery, RunRow, RunStatus, RunSummary};
use flowstone_engine::{Engine, EngineError};

use super::compile::origin;

/// The most runs above or below a generation that are looked at.
const MOST: usize = 1_000;

/// Where a generation is among others.
#[derive(Debug, Clone, Default)]
pub struct Lineage {
    /// The generation that started it.
    pub initiator: Option<RunId>,
    /// The outermost generation, if it is not this one.
    pub root: Option<RunId>,
    /// Who started the outermost run.
    pub started_by: String,
}

/// Returns where a generation is among others.
///
/// # Errors
/// When the store cannot be read.
pub async fn of(engine: &Engine, row: &RunRow) -> Result<Lineage, EngineError> {
    let mut lineage = Lineage {
        started_by: row.started_by.clone(),
        ..Lineage::default()
    };
    let mut above = row.parent.as_ref().map(|it| it.run.clone());
    let mut count = 0;
    while let Some(run) = above.take().filter(|_| count < MOST) {
        count += 1;
        let row = match engine.run(&run).await {
            Ok(row) => row,
            // It was removed by the project's retention.
            Err(EngineError::NoSuchRun { .. }) => break,
            Err(error) => return Err(error),
        };
        if origin(&row.flow).is_some() {
            lineage.initiator = lineage.initiator.or_else(|| Some(row.id.clone()));
            lineage.root = Some(row.id.clone());
        }
        lineage.started_by = row.started_by;
        above = row.parent.map(|it| it.run);
    }
    Ok(lineage)
}

/// Returns the runs directly below one, oldest first.
///
/// # Errors
/// When the store cannot be read.
pub async fn children(engine: &Engine, run: &RunId) -> Result<Vec<RunSummary>, EngineError> {
    let query = RunQuery {
        parent: Some(run.clone()),
        limit: MOST,
        ..RunQuery::default()
    };
    let mut children = engine.summaries(query).await?;
    children.sort_by(|one, other| {
        (one.created_ms, one.id.as_str()).cmp(&(other.created_ms, other.id.as_str()))
    });
    Ok(children)
}

/// Returns the waiting runs below one, outer ones first.
///
/// # Errors
/// When the store cannot be read.
pub async fn waiting_below(engine: &Engine, run: &RunId) -> Result<Vec<RunId>, EngineError> {
    let mut found = Vec::new();
    let mut open = vec![run.clone()];
    while let Some(run) = open.pop().filter(|_| found.len() < MOST) {
        for child in children(engine, &run).await? {
            if child.status == RunStatus::Waiting {
                open.push(child.id.clone());
                found.push(child.id);
            }
        }
    }
    Ok(found)
}
