//! Runs looked up in the stores alone, without an engine.

use crate::engine::Engine;
use crate::error::EngineError;
use crate::format::FlowFormat;
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
        for format in self.services.formats {
            for name in format.run_names(prefix) {
                if let Some(first) = self.named(&name).await? {
                    return self.latest(*format, &name, first).await;
                }
            }
        }
        Err(missing)
    }

    /// Returns the last of the runs that took the place of the first one of a name.
    async fn latest(
        &self,
        format: &dyn FlowFormat,
        name: &str,
        first: RunRow,
    ) -> Result<RunRow, EngineError> {
        let (id, mut row) = (first.id.clone(), first);
        for number in 2.. {
            let later = match format.later_name(name, &id, number) {
                Some(later) => self.named(&later).await?,
                None => None,
            };
            match later {
                Some(later) => row = later,
                None => break,
            }
        }
        Ok(row)
    }

    /// Returns the run that the store keeps under a whole name.
    async fn named(&self, name: &str) -> Result<Option<RunRow>, EngineError> {
        match find(&self.services.stores, name).await {
            Ok(row) => Ok(Some(row).filter(|row| row.external_id.as_deref() == Some(name))),
            Err(EngineError::NoSuchRun { .. } | EngineError::AmbiguousRun { .. }) => Ok(None),
            Err(error) => Err(error),
        }
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
