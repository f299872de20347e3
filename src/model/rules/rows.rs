//! Access of the rules to the rows of a store, inside one of its transactions.
//!
//! Each method is one small read or write that a store can answer from an index. Runs are named by their number, which
//! the store assigns in the order of creation.

use super::admission::{Caller, Replaced};
use super::answers::{EarlySignal, SignalSlot, SignalState};
use super::jobs::JobRows;
use super::queue::{Limited, SlotRows, Withdrawn};
use super::run_tree::Member;
use crate::ids::RunId;
use crate::ports::{
    Completion, NewReceipt, NewRun, PastDelivery, RunStatus, StartRules, StoreError, WaitRow,
};
use crate::waits::Answered;

/// Rows of runs with their slots and limits.
pub trait QueueRows {
    /// Returns the run that already has the external id of a new one.
    fn by_external_id(&mut self, run: &NewRun) -> Result<Option<RunId>, StoreError>;

    /// Adds a run and its program.
    fn insert(&mut self, run: &NewRun, status: RunStatus) -> Result<RunId, StoreError>;

    /// Writes the slot and the limit of a run, and returns its number.
    fn write_rules(&mut self, run: &RunId, rules: &StartRules) -> Result<i64, StoreError>;

    /// Returns a run that called another one.
    fn caller(&mut self, run: &RunId) -> Result<Option<Caller>, StoreError>;

    /// Returns one live run and the first queued run of each version in a slot.
    fn slot(&mut self, slot: &str) -> Result<SlotRows, StoreError>;

    /// Asks the live runs of a slot to cancel, and returns those that had not been asked before.
    fn cancel_live(
        &mut self,
        replaced: &Replaced<'_>,
        now_ms: i64,
    ) -> Result<Vec<RunId>, StoreError>;

    /// Returns the queued runs of one version in a slot, except one.
    fn queued(&mut self, slot: &str, program: &str, except: i64) -> Result<Vec<RunId>, StoreError>;

    /// Ends a run that has not begun. Returns `None` if the run was not queued.
    fn cancel_queued(
        &mut self,
        run: &RunId,
        reason: &str,
        now_ms: i64,
    ) -> Result<Option<Withdrawn>, StoreError>;

    /// Returns the slot and the limit of a run.
    fn needs(&mut self, num: i64) -> Result<(Option<String>, Option<String>), StoreError>;

    /// Clears the mark of the runs that are next in a slot, and returns their limits.
    fn clear_next(&mut self, slot: &str) -> Result<Vec<Option<String>>, StoreError>;

    /// Marks a queued run as next: it has its slot and waits only for its limit.
    fn set_next(&mut self, num: i64) -> Result<(), StoreError>;

    /// Sets the status of a queued run to running.
    fn start(&mut self, num: i64, now_ms: i64) -> Result<(), StoreError>;

    /// Returns the run that starts next under a limit.
    fn first_in_limit(&mut self, limit: &str) -> Result<Option<Limited>, StoreError>;

    /// Counts the live runs of a limit, up to a maximum.
    fn live_in_limit(&mut self, limit: &str, most: u32) -> Result<u32, StoreError>;

    /// Moves starts of a limit that lie in the future to the present: the clock was set back.
    fn cap_starts(&mut self, limit: &str, now_ms: i64) -> Result<(), StoreError>;

    /// Returns when the nth start before now took place under a limit; 1 is the last start.
    fn earlier_start(&mut self, limit: &str, nth: u32) -> Result<Option<i64>, StoreError>;

    /// Clears the times at which queued runs of a limit may start.
    fn clear_due(&mut self, limit: &str) -> Result<(), StoreError>;

    /// Records when a queued run may start.
    fn set_due(&mut self, num: i64, due_ms: i64) -> Result<(), StoreError>;

    /// Returns the limits under which a queued run may start by now.
    fn due_limits(&mut self, now_ms: i64) -> Result<Vec<String>, StoreError>;

    /// Returns the id of a run.
    fn id_of(&mut self, num: i64) -> Result<RunId, StoreError>;
}

/// Rows of runs with their parents and children.
pub trait RunTreeRows {
    fn member(&mut self, run: &RunId) -> Result<Option<Member>, StoreError>;

    /// Returns the children of a run that are not over, the oldest first.
    fn open_children(&mut self, run: &str) -> Result<Vec<Member>, StoreError>;

    /// Ends a run at once and voids its lease.
    fn terminate(&mut self, num: i64, reason: &str, now_ms: i64) -> Result<(), StoreError>;

    /// Asks a run that is not over to cancel. Tells whether this was the first request.
    fn ask_to_cancel(&mut self, run: &RunId, reason: &str, now_ms: i64)
    -> Result<bool, StoreError>;

    /// Closes all waits of a run.
    fn close_waits(&mut self, num: i64) -> Result<(), StoreError>;
}

/// Waits, and the inbox of signals that arrived before their wait.
pub trait WaitRows {
    fn wait_by_id(&mut self, id: &str) -> Result<Option<WaitRow>, StoreError>;

    fn wait_by_token(&mut self, token: &str) -> Result<Option<WaitRow>, StoreError>;

    /// Returns waits whose id begins with a text, sorted by id.
    fn waits_by_prefix(&mut self, prefix: &str, most: usize) -> Result<Vec<WaitRow>, StoreError>;

    /// Returns the open waits of a key, the oldest first.
    fn open_waits_of_key(&mut self, key: &str) -> Result<Vec<WaitRow>, StoreError>;

    /// Returns the wait of a key that was opened last.
    fn last_wait_of_key(&mut self, key: &str) -> Result<Option<WaitRow>, StoreError>;

    /// Returns the open waits for an event: those for any key, or those for one key; `path` restricts them to waits
    /// that look for their key at that place of the payload.
    fn open_waits_of_event(
        &mut self,
        event: &str,
        key: Option<&str>,
        path: Option<&str>,
    ) -> Result<Vec<WaitRow>, StoreError>;

    /// Returns the places in an event's payload at which open waits look for their key, each once.
    fn event_paths(&mut self, event: &str) -> Result<Vec<String>, StoreError>;

    /// Completes a wait.
    fn set_answered(&mut self, id: &str, answered: &Answered) -> Result<(), StoreError>;

    /// Tells whether the inbox has a signal with this `dedup`.
    fn has_signal(&mut self, slot: &SignalSlot, dedup: &str) -> Result<bool, StoreError>;

    /// Adds a signal to the inbox.
    fn add_signal(
        &mut self,
        slot: &SignalSlot,
        completion: &Completion,
        state: SignalState,
    ) -> Result<(), StoreError>;

    /// Returns kept signals of a slot; without a key, those of an event under any key.
    fn kept_signals(
        &mut self,
        event: &str,
        key: Option<&str>,
    ) -> Result<Vec<EarlySignal>, StoreError>;

    /// Records that a wait took a kept signal, or refused it with a reason.
    fn settle_signal(
        &mut self,
        num: i64,
        wait: &str,
        refusal: Option<String>,
    ) -> Result<(), StoreError>;
}

/// Receipts of deliveries from outside.
pub trait ReceiptRows {
    /// Returns a receipt, which may have expired.
    fn receipt(&mut self, scope: &str, key: &str) -> Result<Option<PastDelivery>, StoreError>;

    /// Writes a receipt; an expired one is replaced.
    fn write_receipt(
        &mut self,
        receipt: &NewReceipt,
        runs: &[RunId],
        now_ms: i64,
    ) -> Result<(), StoreError>;

    /// Removes some expired receipts.
    fn forget_receipts(&mut self, now_ms: i64) -> Result<(), StoreError>;
}

/// All rows that the rules for starts and ends of runs need.
pub trait Rows: QueueRows + RunTreeRows + WaitRows + JobRows {}

impl<T: QueueRows + RunTreeRows + WaitRows + JobRows> Rows for T {}
