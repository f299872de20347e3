//! The journal of a run as a stream of events.
//!
//! Waits appear with their path and key. Tokens are not part of a journal, and secrets were removed before anything was
//! written.

use crate::engine::Engine;
use crate::error::EngineError;
use crate::ids::RunId;
use crate::ports::{Entry, RunRow};
use crate::versions::check_journal;

/// Number of entries that are read at a time.
const PAGE: usize = 1000;

/// One journal entry with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEventRow {
    /// Position in the pass, which grows with each entry; the next page continues after it.
    pub seq: i64,
    /// The pass of the run that it belongs to.
    pub pass: i64,
    pub entry: Entry,
}

/// The events after a position, read at one time.
#[derive(Debug, Clone)]
pub struct EventsPage {
    /// The run, read before the events: if it is finished, the events are complete.
    pub row: RunRow,
    pub events: Vec<RunEventRow>,
    /// Whether there are more events.
    pub is_full: bool,
}

impl Engine {
    /// Returns at most `limit` events of a run after a position.
    ///
    /// # Errors
    /// When the run does not exist, cannot be read, or its journal was removed.
    pub async fn journal_page(
        &self,
        run: &RunId,
        after: i64,
        limit: usize,
    ) -> Result<EventsPage, EngineError> {
        let row = self.run_row(run).await?;
        check_journal(&row)?;
        let journal = &self.services.stores.journal;
        let mut entries = journal.load_after(run, after, limit + 1).await?;
        let is_full = entries.len() > limit;
        entries.truncate(limit);
        let pass = row.pass;
        Ok(EventsPage {
            row,
            is_full,
            events: entries
                .into_iter()
                .map(|(seq, entry)| RunEventRow { seq, pass, entry })
                .collect(),
        })
    }

    /// Returns the events of a run after a position. If the run is in another pass than `pass`, its journal is a new
    /// one, and is returned from its start.
    ///
    /// # Errors
    /// When the run does not exist or cannot be read.
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
