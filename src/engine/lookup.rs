//! Runs looked up in the stores alone, without an engine.

use crate::engine::Engine;
use crate::error::EngineError;
use crate::ports::{Durability, RunFilter, RunRow, Stores};
use crate::report::RunReport;

impl Engine {
    /// Finds the run that an id, the beginning of one, or a name means. A name of a format, such as the handle of a behaviour
    /// tree, comes last.
    ///
    /// # Errors
    /// When no run or more than one has this prefix.
    pub async fn find_run(&self, prefix: &str) -> Result<RunRow, EngineError> {
        let found = find(&self.services.stores, prefix).await;
        let Err(missing @ EngineError::NoSuchRun { .. }) = found else {
            return found;
        };
        let formats = self.services.formats.iter();
        for name in formats.flat_map(|format| format.run_names(prefix)) {
            match find(&self.services.stores, &name).await {
                Ok(row) if row.external_id.as_ref() == Some(&name) => return Ok(row),
                Ok(_) | Err(EngineError::NoSuchRun { .. } | EngineError::AmbiguousRun { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(missing)
    }
}

/// Finds the run that an id, or the beginning of one, means.
///
/// # Errors
/// When no run or more than one has this prefix.
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
