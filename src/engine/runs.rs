//! Runs as data: lists of them, their events, what differs between two, and how long their journals are kept.

mod compare;
mod earlier;
mod events;
mod lines;
mod moment;
mod retention;

pub use compare::{RunDiff, StepDiff, StepSide, StepVerdict, shown_end};
pub use events::{EventsPage, RunEventRow};
pub use moment::moment;
pub use retention::{GcOptions, GcReport};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::ports::{RunQuery, RunSummary};

impl Engine {
    /// Returns runs as a list shows them.
    ///
    /// # Errors
    /// When the store cannot be read, or there is no run where the list is to go on.
    pub async fn summaries(&self, query: RunQuery) -> Result<Vec<RunSummary>, EngineError> {
        Ok(self.services.stores.runs.summaries(query).await?)
    }
}
