//! The journal of a run as a stream of events.
//!
//! Waits are told by their path and key; tokens are no part of a journal, and secrets were taken out before
//! anything was written.

use crate::engine::Engine;
use crate::error::EngineError;
use crate::ids::RunId;
use crate::ports::{Entry, RunRow};

/// Number of entries that are read at a time.
const PAGE: usize = 1000;

/// One journal entry with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEventRow {
    /// Grows with each entry of a pass; what to go on after.
    pub seq: i64,
    /// Which pass of the run it belongs to.
    pub pass: i64,
    pub entry: Entry,
}

/// What there is after a place, as of one moment.
#[derive(Debug, Clone)]
pub struct EventsPage {
    /// The run, read before the events: once it is over, they are all there.
    pub row: RunRow,
    pub events: Vec<RunEventRow>,
    /// There are more.
    pub is_full: bool,
}

impl Engine {
    /// Returns the events of a run after a place. When the run is in another pass than `pass`, its journal is a
    /// new one, and is given from its start.
    ///
    /// # Errors
    /// When there is no such run, or it cannot be read.
    pub async fn events_after(
        &self,
        run: &RunId,
        seq: i64,
        pass: Option<i64>,
    ) -> Result<EventsPage, EngineError> {
        let row = self.run_row(run).await?;
        let is_other_pass = pass.is_some_and(|pass| pass != row.pass);
        let after = if is_other_pass { 0 } else { seq };
        let journal = &self.services.stores.journal;
        let entries = journal.load_after(run, after, PAGE).await?;
        let pass = row.pass;
        Ok(EventsPage {
            row,
            is_full: entries.len() == PAGE,
            events: entries
                .into_iter()
                .map(|(seq, entry)| RunEventRow { seq, pass, entry })
                .collect(),
        })
    }
}
