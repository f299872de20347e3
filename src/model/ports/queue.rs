//! The queue of starts: `:concurrency`, `:limits` and priorities, decided by the store.
//!
//! A run that may not start yet is a row in status `queued`. The event that frees a place (a run ends, a queued run is
//! cancelled, a time is reached) starts the next run in the same transaction, so that neither a crash nor a second
//! process can intervene. All counts are read from the rows of runs; there are no separate counters.

use super::{Delivered, Delivery, Entry, NewRun, PastDelivery, PortFuture};
use crate::ids::RunId;

/// The queue of a project.
pub trait Queue: Send + Sync {
    /// Adds a run and decides whether it starts, in one transaction. If its `external_id` is taken, decides nothing and
    /// returns the run that has it.
    fn admit(&self, run: NewRun, rules: StartRules) -> PortFuture<'_, Admission>;

    /// Works like [`Queue::admit`] for a run with an initial journal; both are added in one transaction.
    fn admit_with(
        &self,
        run: NewRun,
        rules: StartRules,
        journal: Vec<Entry>,
    ) -> PortFuture<'_, Admission>;

    /// Works like [`Queue::deliver`], but either all runs are added, or nothing is changed.
    fn admit_all(&self, delivery: Delivery) -> PortFuture<'_, BulkAdmission>;

    /// Accepts a delivery from outside: answers waits and starts runs in one transaction, unless the delivery arrived
    /// before.
    fn deliver(&self, delivery: Delivery) -> PortFuture<'_, Delivered>;

    /// Returns the earlier delivery of a receipt that has not expired.
    fn receipt(&self, scope: &str, key: &str, now_ms: i64) -> PortFuture<'_, Option<PastDelivery>>;

    /// Starts the queued runs whose time has come, and returns them: they are `running`, and no process executes them
    /// yet.
    fn promote(&self, now_ms: i64) -> PortFuture<'_, Vec<RunId>>;

    /// Returns the place of a queued run; `None` if the run is not queued.
    fn place(&self, run: &RunId) -> PortFuture<'_, Option<QueuePlace>>;
}

/// The rules for the start of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartRules {
    pub slot: Option<SlotRule>,
    pub limit: Option<LimitRule>,
}

/// Allows at most one live run in a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotRule {
    /// The slug of the flow, and the value of the key if there is one.
    pub name: String,
    pub on_new_version: OnNewVersion,
    pub on_conflict: OnConflict,
}

/// The policy for live runs of another version of the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnNewVersion {
    /// Runs of both versions may be live.
    Coexist,
    /// The live runs finish first.
    Drain,
    /// The live runs are cancelled, and the new one starts when they have ended.
    #[default]
    Supersede,
}

impl OnNewVersion {
    /// All policies with their names in flows.
    pub const NAMES: &'static [(OnNewVersion, &'static str)] = &[
        (OnNewVersion::Coexist, "coexist"),
        (OnNewVersion::Drain, "drain"),
        (OnNewVersion::Supersede, "supersede"),
    ];
}

/// The policy for a slot that is taken by a run of the same version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// The live run is cancelled, and so are queued ones; the new run starts when it has ended.
    CancelRunning,
    /// The new run waits for its turn.
    #[default]
    Queue,
    /// The new run is refused.
    Reject,
}

impl OnConflict {
    /// All policies with their names in flows.
    pub const NAMES: &'static [(OnConflict, &'static str)] = &[
        (OnConflict::CancelRunning, "cancel-running"),
        (OnConflict::Queue, "queue"),
        (OnConflict::Reject, "reject"),
    ];
}

/// The maximum number of live runs under a name, and the maximum rate of starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitRule {
    /// The scope, and the value of the key if there is one.
    pub name: String,
    pub concurrency: Option<u32>,
    pub rate: Option<RateRule>,
}

/// Maximum number of starts in any interval of this length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateRule {
    pub max: u32,
    pub per_ms: i64,
}

/// The outcome of a request to start a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    Admitted {
        run: RunId,
        decision: StartDecision,
        /// The runs that were cancelled, or asked to cancel, in favour of this one.
        replaced: Vec<RunId>,
    },
    /// The slot is taken, and the flow has `:on-conflict :reject`. No run was added.
    Taken { by: RunId },
    /// The run would wait for its own caller, which waits for it. No run was added.
    WaitsForCaller { caller: RunId },
}

/// The outcome of a request to start several runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BulkAdmission {
    /// All runs were added; each is [`Admission::Admitted`].
    Admitted(Vec<Admission>),
    /// This run was refused, so no run was added.
    Refused {
        idx: usize,
        admission: Box<Admission>,
    },
    /// The delivery arrived before; nothing was changed.
    Known(PastDelivery),
}

/// The decision about a new run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartDecision {
    /// The run waits until runs of an older version have finished.
    Blocked,
    /// The run starts although a run of another version is live.
    Coexisted,
    /// A run with this external id exists; nothing was started.
    Deduped,
    /// The run waits for its turn.
    Queued,
    /// The run starts at once.
    Started,
}

impl StartDecision {
    /// Returns the stable name of the decision in commands.
    pub fn name(self) -> &'static str {
        match self {
            StartDecision::Blocked => "blocked",
            StartDecision::Coexisted => "coexisted",
            StartDecision::Deduped => "deduped",
            StartDecision::Queued => "queued",
            StartDecision::Started => "started",
        }
    }
}

/// The place of a queued run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePlace {
    pub waits_for: QueueReason,
    /// The position in the queue, counted from 1.
    pub position: u32,
    /// Live runs that it waits for, oldest first; if there are many, only some of them.
    pub behind: Vec<RunId>,
    /// When the run may start, if it waits only for a time; in milliseconds since 1970.
    pub due_ms: Option<i64>,
}

/// The reason for which a run is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueReason {
    /// `:limits :concurrency`.
    Limit,
    /// `:limits :rate`.
    Rate,
    /// `:concurrency`.
    Slot,
}

impl QueueReason {
    /// Returns the stable name of the reason in commands.
    pub fn name(self) -> &'static str {
        match self {
            QueueReason::Limit => "limit",
            QueueReason::Rate => "rate",
            QueueReason::Slot => "slot",
        }
    }
}
