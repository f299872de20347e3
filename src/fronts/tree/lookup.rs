//! Finds the run of a handle.

use flowstone_engine::EngineError;
use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{RunFilter, RunRow};

use super::driver::Trees;
use super::error::TreeError;
use super::handle::{self, Handle, HandleKind};

/// The run that a handle means now.
pub(super) struct Found {
    pub row: RunRow,
    /// The beginning of the names of later runs of the handle.
    pub base: String,
    /// The number of this run, counted from 1: an ended run that is reset is followed by another one.
    pub generation: u32,
}

impl Trees<'_> {
    /// Finds the run of a handle: the last one, if an ended run was reset. A handle without a scheme may also be the
    /// beginning of an id.
    pub(super) async fn find(&self, handle: &Handle) -> Result<Option<Found>, TreeError> {
        if let Some(found) = self.find_whole(handle).await? {
            return Ok(Some(found));
        }
        match &handle.kind {
            HandleKind::Run(id) if handle.may_be_short => match self.engine.find_run(id).await {
                Ok(row) => self.last(handle, row).await.map(Some),
                Err(EngineError::NoSuchRun { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            },
            HandleKind::File(_) | HandleKind::Memory(_) | HandleKind::Run(_) => Ok(None),
        }
    }

    /// Finds the run whose whole name or id a handle is.
    pub(super) async fn find_whole(&self, handle: &Handle) -> Result<Option<Found>, TreeError> {
        let mut first = match self.external_id(handle) {
            Some(external) => self.named(&external).await?,
            None => None,
        };
        if let (None, HandleKind::Run(name)) = (&first, &handle.kind)
            && !name.is_empty()
        {
            first = self.of_id(name).await?;
            if first.is_none() {
                // Flows name the runs of the trees that they call.
                first = self.named(name).await?;
            }
        }
        match first {
            Some(first) => self.last(handle, first).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns the last run that followed the first one of a handle.
    async fn last(&self, handle: &Handle, first: RunRow) -> Result<Found, TreeError> {
        let base = match &handle.kind {
            HandleKind::File(_) => self.external_id(handle).unwrap_or_default(),
            HandleKind::Memory(_) | HandleKind::Run(_) => handle::again(&first.id),
        };
        let mut found = Found {
            row: first,
            base,
            generation: 1,
        };
        loop {
            let next = format!("{}#{}", found.base, found.generation + 1);
            match self.named(&next).await? {
                Some(row) => found.row = row,
                None => return Ok(found),
            }
            found.generation += 1;
        }
    }

    async fn of_id(&self, id: &str) -> Result<Option<RunRow>, TreeError> {
        match self.engine.run(&RunId::from_text(id)).await {
            Ok(row) => Ok(Some(row)),
            Err(EngineError::NoSuchRun { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the run that the store keeps under a name.
    async fn named(&self, external: &str) -> Result<Option<RunRow>, TreeError> {
        let filter = RunFilter {
            external_id: Some(external.to_owned()),
            limit: 1,
            ..RunFilter::default()
        };
        let found = self.engine.list_runs(filter).await?;
        Ok(found.into_iter().next())
    }
}
