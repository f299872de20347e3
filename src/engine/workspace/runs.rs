//! Runs as whoever is inside one sees them: from the stores alone.

use crate::child;
use crate::error::EngineError;
use crate::ids::RunId;
use crate::ports::{Durability, RunFilter, RunRow, Stores};
use crate::step::{StepContext, StepError};
use crate::timeline::RunReport;
use flowstone_lang::value::Value;

/// Finds the run that an id, or the beginning of one, means.
///
/// # Errors
/// When there is none, or more than one.
pub async fn find(stores: &Stores, prefix: &str) -> Result<RunRow, EngineError> {
    let filter = RunFilter {
        id_prefix: Some(prefix.to_owned()),
        limit: 6,
        ..RunFilter::default()
    };
    let mut found = stores.runs.list(filter).await?;
    if let Some(at) = found.iter().position(|row| row.id.as_str() == prefix) {
        return Ok(found.swap_remove(at));
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(EngineError::NoSuchRun {
            run: prefix.to_owned(),
        }),
        _ => Err(EngineError::AmbiguousRun {
            prefix: prefix.to_owned(),
            runs: found.iter().map(|row| row.id.to_string()).collect(),
        }),
    }
}

/// Returns a run with its timeline.
///
/// # Errors
/// When it cannot be read.
pub async fn report(stores: &Stores, row: RunRow) -> Result<RunReport, EngineError> {
    RunReport::read(stores, row, Durability::Full).await
}

/// Starts a run of a flow below the run of a step, as `flow/call-flow` does with the same config. Its id follows from
/// the place of the step: asked again after a crash, it is the same run.
///
/// # Errors
/// When there is no such flow, it does not take the input, or does not take another run.
pub async fn start(cx: &StepContext, config: &Value) -> Result<RunId, StepError> {
    child::start(cx, config).await
}
