//! Cancelling a run: the flow receives the cancellation at one place, and a replay delivers it at the same place.
//!
//! The journal records that the cancellation was delivered; entries before that record were made without it. While
//! entries are still being replayed, no new cancellation is delivered.

use std::cell::Cell;

use super::end::TOO_LONG;
use super::{Executor, Halt};
use crate::journal::Checks;
use crate::ports::{Change, StoreError};
use crate::step::Cut;

/// Marks that concurrent branches are active, as long as this lives.
pub(super) struct Concurrent<'d>(&'d Cell<bool>, &'d Cell<bool>);

impl Drop for Concurrent<'_> {
    fn drop(&mut self) {
        self.0.set(false);
        self.1.set(false);
    }
}

impl Executor<'_> {
    /// Leaves the run if the code of a function was interrupted or met a limit, so that nothing uses its partial result.
    pub(super) fn check_cut(&self) -> Result<(), Halt> {
        match self.scope.cutoff.cut() {
            Some(Cut::Suspended) => Err(Halt::Interrupted),
            Some(Cut::Late) => Err(Halt::Cancelled {
                reason: TOO_LONG.to_owned(),
            }),
            Some(Cut::Limit(stop)) => Err(Halt::Stopped(stop)),
            None => Ok(()),
        }
    }

    /// Raises a requested cancellation, once.
    pub(super) fn check_cancel(&self) -> Result<(), Halt> {
        if let Some(reason) = self.cancel.take() {
            return Err(Halt::Cancelled { reason });
        }
        match self.deadline_ms() {
            Some(deadline) if deadline <= self.now_ms() => Err(Halt::Cancelled {
                reason: TOO_LONG.to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Tells whether the run is being unwound: cancelled, late, or compensated.
    pub(super) fn is_unwinding(&self) -> bool {
        self.is_compensating.get() || self.cancelling.borrow().is_some()
    }

    /// Returns the deadline at which the run is unwound, if it is not being unwound yet.
    pub(super) fn deadline_ms(&self) -> Option<i64> {
        self.facts.deadline_ms.filter(|_| !self.is_unwinding())
    }

    /// Returns a time, or the run's deadline if that is earlier.
    pub(super) fn bounded(&self, due_ms: Option<i64>) -> Option<i64> {
        match (due_ms, self.deadline_ms()) {
            (Some(due), Some(deadline)) => Some(due.min(deadline)),
            (due, deadline) => due.or(deadline),
        }
    }

    /// Returns the reason of the cancellation if it was delivered to the flow before the entry at `place` was made.
    pub(super) fn recorded_cancel(&self, place: usize) -> Option<String> {
        let mut history = self.shared.history.borrow_mut();
        let reason = history.take_cancel_before(place)?;
        self.take_recorded();
        Some(reason)
    }

    fn take_recorded(&self) {
        self.is_cancel_noted.set(true);
        self.cancel.take();
    }

    /// Raises the journaled cancellation, before the answer at `place` is delivered.
    pub(super) fn check_recorded_cancel(&self, place: usize) -> Result<(), Halt> {
        match self.recorded_cancel(place) {
            Some(reason) => Err(Halt::Cancelled { reason }),
            None => Ok(()),
        }
    }

    /// Checks, during a long computation, whether the run is to be cancelled. `next`: the place of the next answer in
    /// the journal.
    pub(super) async fn poll_cancel_at(&self, next: usize) -> Result<(), Halt> {
        let reached = self.shared.reached();
        let (recorded, has_later, is_replayed) = {
            let mut history = self.shared.history.borrow_mut();
            let recorded = history.take_cancel_at(reached, next);
            (recorded, history.has_later_cancel(), history.is_empty())
        };
        if let Some(reason) = recorded {
            self.take_recorded();
            return Err(Halt::Cancelled { reason });
        }
        if has_later {
            return Ok(());
        }
        // A run that is over can no longer be cancelled.
        if !is_replayed || next != usize::MAX || self.replay_only {
            return Ok(());
        }
        let polled = self.poll_cancel().await;
        if let Err(Halt::Cancelled { reason }) = &polled {
            self.note_cancel_at(reason, Some(reached));
        }
        polled
    }

    /// Checks the store for a request to cancel the run.
    pub(super) async fn poll_cancel(&self) -> Result<(), Halt> {
        self.check_cancel()?;
        let has_news = self.options.interrupt.take_notification();
        if !self.shared.poll_is_due(self.now_ms()) && !has_news {
            return Ok(());
        }
        let row = self
            .engine
            .services
            .stores
            .runs
            .find(&self.scope.run)
            .await?;
        if row.as_ref().is_some_and(|row| row.status.is_final()) {
            let run = self.scope.run.to_string();
            return Err(StoreError::LeaseLost { run }.into());
        }
        match row
            .and_then(|row| row.cancel_requested)
            .filter(|_| !self.is_unwinding())
        {
            Some(reason) => Err(Halt::Cancelled { reason }),
            None => Ok(()),
        }
    }

    /// Records in the journal that the cancellation is delivered at a request of the flow.
    pub(super) fn note_cancel(&self, reason: &str) {
        self.note_cancel_at(reason, None);
    }

    fn note_cancel_at(&self, reason: &str, reached: Option<Checks>) {
        if self.is_cancel_noted.replace(true) || self.replay_only {
            return;
        }
        self.shared.append_cancel(reason, reached);
    }

    /// Takes the reason for which native work was stopped to unwind the run.
    pub(super) fn take_cancel(&self) -> Option<String> {
        let reason = self.shared.take_cancel()?;
        self.take_recorded();
        Some(reason)
    }

    /// Sets the reason for which the flow is being unwound. Deadlines no longer apply from here on.
    pub(super) fn unwind(&self, reason: String) {
        self.note_cancel(&reason);
        self.scope.cutoff.unwind();
        self.shared.watch_requests(None);
        self.cancelling.replace(Some(reason));
    }

    /// Abandons a step in progress on a cancelled branch: its wait no longer takes an answer.
    pub(super) fn give_up(&self, path: String) {
        self.shared.journal.usage().closed(&path);
        self.shared.journal.push(Change::CloseWaitsOf { path });
    }

    /// Marks that concurrent branches are active, until the returned guard is dropped.
    pub(super) fn mark_concurrent(&self) -> Concurrent<'_> {
        self.is_concurrent.set(true);
        Concurrent(&self.is_concurrent, &self.is_leaving)
    }

    /// Notifies the branches that the run is interrupted.
    pub(super) fn notify_leaving(&self) {
        self.is_leaving.set(true);
        self.leaving.notify_waiters();
    }

    /// Returns when the branches must leave.
    pub(super) async fn left(&self) {
        while !self.is_leaving.get() {
            self.leaving.notified().await;
        }
    }
}
