//! The journal: the requests of a run and their results, in order, append-only.

use super::{NewWait, PortFuture, RunUpdate, StoreError, StoreOp, WaitState};
use crate::ids::RunId;

/// The journals of all runs.
pub trait Journal: Send + Sync {
    /// Makes a batch of changes, all or none, together with whatever other runs hand over at the time. Returns
    /// when it is as far as [`Batch::ack`] asks for. Batches take effect in the order of the calls, so that when
    /// one is durable, all before it are.
    fn commit(&self, batch: Batch) -> PortFuture<'static, Receipt>;

    /// Hands over a batch without waiting. If it fails, so does the next [`Journal::commit`] of that run.
    ///
    /// # Errors
    /// When an earlier batch of the run failed.
    fn post(&self, batch: Batch) -> Result<(), StoreError>;

    /// Returns the journal of a run, in order.
    fn load(&self, run: &RunId) -> PortFuture<'_, Vec<Entry>>;

    /// Returns at most `most` entries of a run after a place, in order, each with its own place. Places grow; 0 comes
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

/// What survives what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A commit that was acknowledged survives loss of power.
    #[default]
    Full,
    /// It survives a crash of the process only.
    Relaxed,
}

/// When a commit returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ack {
    /// When it is durable.
    #[default]
    Durable,
    /// When it has happened: it will be durable soon, and before whatever is handed over later. Should that fail,
    /// the next commit of the run fails.
    Applied,
}

/// Changes for one run that happen together.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    pub run: RunId,
    /// The epoch of the lease that the sender holds; the batch is refused when it is not the current one.
    pub epoch: i64,
    pub durability: Durability,
    pub ack: Ack,
    pub now_ms: i64,
    pub changes: Vec<Change>,
}

/// One change. See [`Batch`].
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Adds an entry.
    Append(Entry),
    /// Executes an operation and adds the entry, with the operation's result as its payload.
    Perform { op: Box<StoreOp>, entry: Entry },
    /// Changes the run's row. What ends the run gives its lease back, too.
    Update(RunUpdate),
    /// Opens a wait; an unconsumed signal for its key completes it at once.
    OpenWait(Box<NewWait>),
    /// Closes a wait that is in the state that the sender saw: the run has taken its answer, or it timed out.
    /// In any other state the batch is refused with kind `conflict`.
    CloseWait { path: String, seen: WaitState },
    /// Closes whatever waits the run still has open.
    CloseWaits,
    /// Closes what the step at a path waits for, if it waits: the flow has given it up.
    CloseWaitsOf { path: String },
    /// Ends the children that are not over by their [`super::ParentClose`]; `only`: that one of them.
    CloseChildren { only: Option<RunId> },
    /// Completes the open waits under a key, or is kept for one that opens later. Of several with one `dedup`, the
    /// first counts.
    Signal {
        key: String,
        dedup: String,
        payload: String,
    },
    /// Begins the next pass: journal and waits are dropped, and the run continues with this input and seed.
    Restart { input: String, seed: u64 },
}

/// What a commit gives back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receipt {
    /// The results of the [`Change::Perform`]s, in order.
    pub results: Vec<String>,
}

/// A row of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub kind: EntryKind,
    /// The text of a [`crate::ids::StepPath`].
    pub path: String,
    /// The step type, or which built-in asked.
    pub what: String,
    /// Hash of the resolved request.
    pub digest: String,
    /// The beginning of the request, to be shown; the first entry of a path has it.
    pub request: Option<String>,
    /// What this kind of entry carries, as EDN text. Large ones are kept out of line by the store.
    pub payload: String,
    pub at_ms: i64,
}

/// What an entry says about its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// It is about to be performed. Payload: `{:attempt n :config ... :title ...}`.
    Intent,
    /// It gave this value.
    Result,
    /// It failed for good, with this error.
    Error,
    /// It failed this time and is tried again, or sleeps. Payload: `{:due ms ...}`.
    Timer,
    /// It gave this value, which is to be checked or reviewed before it is the result.
    Draft,
    /// What it cost. Payload: `{:label :unit :quantity :micros}`.
    Cost,
    /// Someone outside answered: a checkpoint, a doubt, a confirmation, a review.
    Signal,
    /// A built-in's journaled answer: a time, a random number.
    Note,
    /// A step that performs others begins an attempt. Payload: `{:attempt n}`.
    Begin,
    /// A log line or event of the flow.
    Log,
    /// What the run that this one was forked from got for such a request.
    Reuse,
}

impl EntryKind {
    /// All kinds with the names they are stored under.
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

    /// Returns the name it is stored under.
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
