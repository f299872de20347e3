//! The journal: the requests of a run and their results, in order, append-only.

use super::{NewWait, PortFuture, RunUpdate, StoreError, StoreOp, WaitState};
use crate::ids::RunId;

/// The journals of all runs.
pub trait Journal: Send + Sync {
    /// Applies a batch of changes, all or none, together with batches of other runs that are pending. Returns when the
    /// batch has reached the state that [`Batch::ack`] asks for. Batches take effect in the order of the calls: when
    /// one is durable, all earlier ones are.
    fn commit(&self, batch: Batch) -> PortFuture<'static, Receipt>;

    /// Posts a batch without waiting for it. If it fails, the next [`Journal::commit`] of that run fails.
    ///
    /// # Errors
    /// When an earlier batch of the run failed.
    fn post(&self, batch: Batch) -> Result<(), StoreError>;

    /// Returns the journal of a run, in order.
    fn load(&self, run: &RunId) -> PortFuture<'_, Vec<Entry>>;

    /// Returns at most `most` entries of a run after a place, in order, each with its own place. Places increase; 0 is
    /// before the first.
    fn load_after(
        &self,
        run: &RunId,
        place: i64,
        limit: usize,
    ) -> PortFuture<'_, Vec<(i64, Entry)>> {
        let loading = self.load(run);
        Box::pin(async move {
            let entries = (1..).zip(loading.await?);
            let after = entries.filter(|(at, _)| *at > place);
            Ok(after.take(limit).collect())
        })
    }
}

/// Which failures a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// An acknowledged commit survives a loss of power.
    #[default]
    Full,
    /// An acknowledged commit survives only a crash of the process.
    Relaxed,
}

/// When a commit returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ack {
    /// The commit returns when the batch is durable.
    #[default]
    Durable,
    /// The commit returns when the batch is applied: it will be durable soon, and before any later batch. If that
    /// fails, the next commit of the run fails.
    Applied,
}

/// Changes of one run that are applied together.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    pub run: RunId,
    /// The epoch of the sender's lease; the batch is refused if it is not the current one.
    pub epoch: i64,
    pub durability: Durability,
    pub ack: Ack,
    pub now_ms: i64,
    pub changes: Vec<Change>,
}

/// One change of a [`Batch`].
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Adds an entry.
    Append(Entry),
    /// Executes an operation and adds the entry, with the operation's result as its payload.
    Perform { op: Box<StoreOp>, entry: Entry },
    /// Changes the run's row. A final status gives the lease back, too.
    Update(RunUpdate),
    /// Opens a wait; an unconsumed signal for its key completes it at once.
    OpenWait(Box<NewWait>),
    /// Closes a wait that is in the state that the sender saw: the run has taken its answer, or it timed out.
    /// In any other state the batch is refused with kind `conflict`.
    CloseWait { path: String, seen: WaitState },
    /// Closes all waits of the run that are open.
    CloseWaits,
    /// Closes the wait of the step at a path, if it has one: the flow has given up the step.
    CloseWaitsOf { path: String },
    /// Ends the children that are not over by their [`super::ParentClose`]; `only`: this child alone.
    CloseChildren { only: Option<RunId> },
    /// Completes the open waits under a key, or is kept for one that opens later. Of several signals with the same
    /// `dedup`, the first one counts.
    Signal {
        key: String,
        dedup: String,
        payload: String,
    },
    /// Records that the run is being unwound: a request to cancel it has no further effect, and does not make it due.
    Unwind,
    /// Begins the next pass: journal and waits are removed, and the run continues with this input and seed.
    Restart { input: String, seed: u64 },
}

/// The outcome of a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The results of the [`Change::Perform`]s, in order.
    pub results: Vec<String>,
}

/// An entry of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub kind: EntryKind,
    /// The text of a [`crate::ids::StepPath`].
    pub path: String,
    /// The step type, or the built-in that made the request.
    pub what: String,
    /// The hash of the resolved request.
    pub digest: String,
    /// The beginning of the request, for display; only in the first entry of a path.
    pub request: Option<String>,
    /// The content of this kind of entry, as EDN text. The store keeps large payloads apart.
    pub payload: String,
    pub at_ms: i64,
}

/// The meaning of an entry for its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// The request is about to be performed. Payload: `{:attempt n :config ... :title ...}`.
    Intent,
    /// The request has this value.
    Result,
    /// The request failed finally, with this error.
    Error,
    /// The attempt failed and is repeated later, or the request sleeps. Payload: `{:due ms ...}`.
    Timer,
    /// The request has this value, which is checked or reviewed before it is the result.
    Draft,
    /// The cost of an attempt. Payload: `{:label :unit :quantity :micros}`.
    Cost,
    /// Someone outside answered: a checkpoint, an effect in doubt, a confirmation, a review.
    Signal,
    /// The journaled answer of a built-in: a time, a random number.
    Note,
    /// A step that performs nested steps begins an attempt. Payload: `{:attempt n}`.
    Begin,
    /// A log line or event of the flow.
    Log,
    /// The answer that the run from which this one was forked received for the same request.
    Reuse,
}

impl EntryKind {
    /// All kinds with their names in the store.
    pub const NAMES: &'static [(EntryKind, &'static str)] = &[
        (EntryKind::Begin, "begin"),
        (EntryKind::Cost, "cost"),
        (EntryKind::Draft, "draft"),
        (EntryKind::Error, "error"),
        (EntryKind::Intent, "intent"),
        (EntryKind::Log, "log"),
        (EntryKind::Note, "note"),
        (EntryKind::Result, "result"),
        (EntryKind::Reuse, "reuse"),
        (EntryKind::Signal, "signal"),
        (EntryKind::Timer, "timer"),
    ];

    /// Returns the name of the kind in the store.
    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(kind, _)| *kind == self)
            .map_or("unknown", |(_, name)| name)
    }

    /// Returns the kind of a stored name.
    pub fn from_name(name: &str) -> Option<EntryKind> {
        Self::NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(kind, _)| *kind)
    }
}
