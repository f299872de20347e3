//! Scratch layers: changes of tables, keys, blobs and changesets that only some runs see, and that are dropped afterwards.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{PortFuture, StoreError, StoreOp, Stores};

/// Opens scratch layers over the stores of a project.
pub trait ScratchLayers: Send + Sync {
    /// Opens an empty layer over stores, which are those of the project as a whole. `folder` is created for what the layer
    /// holds, at most `most_bytes`, and removed when the last part of the layer is dropped.
    ///
    /// # Errors
    /// When the folder cannot be written.
    fn open(&self, whole: &Stores, folder: &Path, most_bytes: u64) -> Result<Scratch, StoreError>;
}

/// A scratch layer over the stores of a project.
#[derive(Clone)]
pub struct Scratch {
    /// The stores as runs with the layer have them: they read the project's data with the layer's changes. Runs, journals, waits
    /// and all else that executes a run are the project's own.
    pub stores: Stores,
    /// The changes of the layer.
    pub changes: Arc<dyn ScratchChanges>,
    /// The folder of the layer, where steps keep the contents of files, too.
    pub folder: PathBuf,
}

/// Changes of a scratch layer.
pub trait ScratchChanges: Send + Sync {
    /// Performs an operation in the layer, and returns its result as EDN text, as the project's stores would.
    ///
    /// # Errors
    /// As the project's stores; E0648 when the layer would become too large. Nothing is changed then.
    fn perform(&self, op: StoreOp, now_ms: i64) -> PortFuture<'_, String>;
}
