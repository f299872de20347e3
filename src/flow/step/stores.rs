//! The stores of the project as a step sees them.
//!
//! A flow that may not read the project sees what its own run, or a run that it started, has made, and the resources
//! that its input names. Everything else in the stores needs the permission to read the project; changes that others
//! see need the permission to write it. Steps have no other way to the stores.

use flowstone_lang::value::Value;
use flowstone_model::names::name_of;

use super::{Gate, StepContext, StepError};
use crate::bindings::Bindings;
use crate::codec;
use crate::ids::RunId;
use crate::ports::{ResourceRow, RunRow, StoreError, StoreOp, Stores};
use crate::resource::{ResourceKind, uris_in};

/// Maximum number of runs above one that are looked at.
const DEEPEST: usize = 100;

impl StepContext {
    /// Returns the stores of the project.
    ///
    /// # Errors
    /// E0960 if the flow may not read the project.
    pub fn stores(&self) -> Result<&Stores, StepError> {
        self.gate().read(self.project_root())?;
        Ok(self.own_stores())
    }

    /// Returns the stores for data that the step itself names or makes, and for the contents of a resource that
    /// [`StepContext::resource`] returned. Everything else needs [`StepContext::stores`].
    pub fn own_stores(&self) -> &Stores {
        let services = &self.scope().services;
        match &services.installation {
            Some(installation) if self.is_of_author() => &installation.author,
            _ => &services.stores,
        }
    }

    /// Finds a resource by its name.
    ///
    /// # Errors
    /// E0960 if the flow may not read the project, and the resource is not of its run; when the store fails.
    pub async fn resource(&self, uri: &str) -> Result<Option<ResourceRow>, StepError> {
        let Err(refused) = self.stores() else {
            return Ok(self.find(uri).await?);
        };
        match self.find(uri).await? {
            Some(row) if self.is_own(&row).await? => Ok(Some(row)),
            // Whether there is such a resource is not revealed either.
            _ => Err(refused),
        }
    }

    /// Checks that the flow may read a resource, which need not be in the registry if the flow may read the project.
    ///
    /// # Errors
    /// As for [`StepContext::resource`].
    pub async fn check_resource(&self, uri: &str) -> Result<(), StepError> {
        match self.stores() {
            Ok(_) => Ok(()),
            Err(_) => self.resource(uri).await.map(drop),
        }
    }

    /// Returns those of some resources that the flow may read.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn visible(&self, rows: Vec<ResourceRow>) -> Result<Vec<ResourceRow>, StepError> {
        if self.stores().is_ok() {
            return Ok(rows);
        }
        let mut visible = Vec::new();
        for row in rows {
            if self.is_own(&row).await? {
                visible.push(row);
            }
        }
        Ok(visible)
    }

    /// Checks that the flow may have a change of the stores made.
    ///
    /// # Errors
    /// E0960 if others see the change, and the flow may not write the project.
    pub fn check_change(&self, change: &StoreOp) -> Result<(), StepError> {
        match change {
            StoreOp::Kv(_) | StoreOp::Table(_) | StoreOp::Job(_) => {
                self.gate().write(self.project_root()).map(drop)
            }
            // New contents, and changesets that the step has found by their names.
            StoreOp::Blob(_) | StoreOp::Changeset(_) => Ok(()),
        }
    }

    /// As [`StepContext::check_change`], for the result of a step that is stored as `:persist` says: before the step is
    /// performed.
    ///
    /// # Errors
    /// As for [`StepContext::check_change`].
    pub fn check_persist(&self, config: &Value) -> Result<(), StepError> {
        match config.get("type").and_then(name_of).as_deref() {
            Some("kv" | "table") => self.gate().write(self.project_root()).map(drop),
            _ => Ok(()),
        }
    }

    async fn find(&self, uri: &str) -> Result<Option<ResourceRow>, StoreError> {
        let resources = &self.own_stores().resources;
        resources.find(uri, self.now_ms()).await
    }

    /// Tells whether a resource was made by the run of the flow or a run below it, or is named by its input.
    async fn is_own(&self, row: &ResourceRow) -> Result<bool, StoreError> {
        match row.kind {
            ResourceKind::Kv | ResourceKind::Table => return Ok(false),
            ResourceKind::Blob
            | ResourceKind::Changeset
            | ResourceKind::File
            | ResourceKind::FlowOutput
            | ResourceKind::StepOutput
            | ResourceKind::Tree => {}
        }
        let maker = row.run.as_deref().map(RunId::from_text);
        let mut run = self.run_id().clone();
        let mut input = codec::encode(self.input()).unwrap_or_default();
        for _ in 0..DEEPEST {
            if let Some(maker) = &maker
                && self.is_below(maker, &run).await?
            {
                return Ok(true);
            }
            if uris_in(&input).all(|uri| uri != row.uri) {
                return Ok(false);
            }
            // The run was given the resource. The run that gave it must be allowed to read it.
            let Some(found) = self.own_stores().runs.find(&run).await? else {
                return Ok(true);
            };
            let Some(parent) = found.parent else {
                return Ok(true);
            };
            let Some(above) = self.own_stores().runs.find(&parent.run).await? else {
                return Ok(false);
            };
            if self.is_of_project(&above) {
                return Ok(true);
            }
            input = above.input;
            run = above.id;
        }
        Ok(false)
    }

    /// Tells whether a run is another one, or was started by it or by a run below it.
    async fn is_below(&self, run: &RunId, top: &RunId) -> Result<bool, StoreError> {
        let mut run = run.clone();
        for _ in 0..DEEPEST {
            if run == *top {
                return Ok(true);
            }
            let found = self.own_stores().runs.find(&run).await?;
            match found.and_then(|found| found.parent) {
                Some(parent) => run = parent.run,
                None => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Tells whether the flow of a run belongs to the project, and may read it.
    fn is_of_project(&self, row: &RunRow) -> bool {
        let services = &self.scope().services;
        let is_outside =
            Bindings::decode(row.bindings.as_deref()).map_or(true, |bindings| bindings.is_outside);
        let allow = services.permissions.of_flow(&row.flow);
        let gate = Gate::new(self.project_root(), allow);
        !is_outside && gate.read(self.project_root()).is_ok()
    }
}
