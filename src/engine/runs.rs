//! Runs as data: lists, events, differences between two runs, and the retention of journals.

mod compare;
mod diff;
mod earlier;
mod events;
mod instant;
mod retention;

pub use compare::{RunDiff, StepDiff, StepSide, StepVerdict, shown_end};
pub use events::{EventsPage, RunEventRow};
pub use instant::read_instant;
pub use retention::{GcOptions, GcReport};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::ports::{RunQuery, RunSummary};

impl Engine {
    /// Returns runs as lists show them.
    ///
    /// # Errors
    /// When the store cannot be read, or the run after which the list continues does not exist.
    pub async fn summaries(&self, query: RunQuery) -> Result<Vec<RunSummary>, EngineError> {
        Ok(self.services.stores.runs.summaries(query).await?)
    }
}
