//! Scratch layers of dry tests: what the runs of a test write to tables, keys, blobs and files, only they see.
//!
//! A test has one layer, by the run at the root. It exists as long as something that executes the test holds it, so it ends with
//! the test. Its folder is named after the process: folders of processes that ended are removed before the next test.

use std::fs;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::bindings::{Bindings, TestMode};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::ids::RunId;
use crate::ports::{RunRow, Scratch};
use crate::step::Services;

/// Maximum size of what a dry test writes, with copies of the tables that it changes.
const MOST_BYTES: u64 = 256 << 20;
/// The folder of scratch layers in the home folder.
const FOLDER: &str = "scratch";
/// Stands between the process and the run in the names of folders.
const BETWEEN: &str = "--";

impl Engine {
    /// Returns what a run has. A dry test has its changes in a scratch layer.
    pub(crate) fn services_of(&self, row: &RunRow) -> Result<Rc<Services>, EngineError> {
        let bindings = Bindings::decode(row.bindings.as_deref())?;
        let is_dry = bindings.test == Some(TestMode::Dry);
        if bindings == self.bindings && !is_dry {
            return Ok(self.of_runs.clone());
        }
        let scratch = match is_dry {
            true => {
                let root = row.parent.as_ref().map_or(&row.id, |parent| &parent.root);
                Some(self.scratch_of(root)?)
            }
            false => None,
        };
        self.services_over(bindings, scratch)
    }

    /// Returns the scratch layer of a dry test, by its root. An empty one is opened if nothing holds the layer.
    ///
    /// # Errors
    /// When a layer cannot be opened.
    pub(crate) fn scratch_of(&self, root: &RunId) -> Result<Rc<Scratch>, EngineError> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let mut known = self.scratches.borrow_mut();
        known.retain(|_, scratch| scratch.strong_count() > 0);
        if let Some(scratch) = known.get(root).and_then(std::rc::Weak::upgrade) {
            return Ok(scratch);
        }
        let stores = &self.services.stores;
        let process = stores.upkeep.process();
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = self
            .scratch_folder()
            .join(format!("{process}{BETWEEN}{root}-{number}"));
        let scratch = Rc::new(stores.scratch.open(stores, &folder, MOST_BYTES)?);
        known.insert(root.clone(), Rc::downgrade(&scratch));
        Ok(scratch)
    }

    /// Removes the scratch layers of processes that have ended.
    pub(crate) fn remove_left_scratches(&self) {
        let upkeep = &self.services.stores.upkeep;
        let folders = fs::read_dir(self.scratch_folder());
        for folder in folders.into_iter().flatten().flatten() {
            let name = folder.file_name().to_string_lossy().into_owned();
            let is_left = name
                .split_once(BETWEEN)
                .is_some_and(|(process, _)| !upkeep.is_alive(process));
            if is_left && let Err(error) = fs::remove_dir_all(folder.path()) {
                tracing::warn!(%error, name, "a scratch layer of a process that ended cannot be removed");
            }
        }
    }

    fn scratch_folder(&self) -> PathBuf {
        self.services.home.join(FOLDER)
    }
}
