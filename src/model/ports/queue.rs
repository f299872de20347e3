//! The door that runs begin through: `:concurrency`, `:limits` and priorities, decided by the store.
//!
//! A run that may not start yet is a row in status `queued`. The event that frees a place (a run ends, a queued run is
//! cancelled, an instant is reached) starts the next run in the same transaction, so that neither a crash nor a second
//! process can intervene. All counts are read from the rows of runs; there are no separate counters.

use super::{Delivered, Delivery, Entry, NewRun, PastDelivery, PortFuture};
use crate::ids::RunId;

/// The queue of a project.
pub trait Queue: Send + Sync {
    /// Adds a run and decides whether it begins, all in one transaction. With an `external_id` that is taken,
    /// decides nothing and returns the run that has it.
    fn admit(&self, run: NewRun, rules: StartRules) -> PortFuture<'_, Admission>;

    /// As [`Queue::admit`], of a run that begins with a journal; both are added in one transaction.
    fn admit_with(
        &self,
        run: NewRun,
        rules: StartRules,
        journal: Vec<Entry>,
    ) -> PortFuture<'_, Admission>;

    /// As [`Queue::deliver`], but all runs are added, or nothing happens.
    fn admit_all(&self, delivery: Delivery) -> PortFuture<'_, BulkAdmission>;

    /// Takes something from outside: answers waits and starts runs in one transaction, unless it came before.
    fn deliver(&self, delivery: Delivery) -> PortFuture<'_, Delivered>;

    /// Returns what was delivered under a receipt that is not over.
    fn receipt(&self, scope: &str, key: &str, now_ms: i64) -> PortFuture<'_, Option<PastDelivery>>;

    /// Starts queued runs whose moment has come, and returns them: they are `running`, and nobody executes them.
    fn promote(&self, now_ms: i64) -> PortFuture<'_, Vec<RunId>>;

    /// Returns what a queued run waits for; nothing where it is not queued.
    fn place(&self, run: &RunId) -> PortFuture<'_, Option<QueuePlace>>;
}

/// What the start of a run has to pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StartRules {
    pub slot: Option<SlotRule>,
    pub limit: Option<LimitRule>,
}

/// At most one live run in a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotRule {
    /// The flow, and the key's value where there is one.
    pub name: String,
    pub on_new_version: OnNewVersion,
    pub on_conflict: OnConflict,
}

/// What happens to live runs of another version of the flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnNewVersion {
    /// Both may run.
    Coexist,
    /// They finish first.
    Drain,
    /// They are cancelled, and the new one begins when they are gone.
    #[default]
    Supersede,
}

impl OnNewVersion {
    /// All, with the names they have in flows.
    pub const NAMES: &'static [(OnNewVersion, &'static str)] = &[
        (OnNewVersion::Coexist, "coexist"),
        (OnNewVersion::Drain, "drain"),
        (OnNewVersion::Supersede, "supersede"),
    ];
}

/// What happens when the slot is taken by a run of the same version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// That one is cancelled, and so are those that are queued; the new one begins when it is gone.
    CancelRunning,
    /// The new one waits for its turn.
    #[default]
    Queue,
    /// There is no new one.
    Reject,
}

impl OnConflict {
    /// All, with the names they have in flows.
    pub const NAMES: &'static [(OnConflict, &'static str)] = &[
        (OnConflict::CancelRunning, "cancel-running"),
        (OnConflict::Queue, "queue"),
        (OnConflict::Reject, "reject"),
    ];
}

/// How many runs may be live under a name, and how fast they may begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitRule {
    /// The scope, and the key's value where there is one.
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

/// The outcome of a start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    Admitted {
        run: RunId,
        decision: StartDecision,
        /// The runs that were cancelled, or asked to, in favour of this one.
        replaced: Vec<RunId>,
    },
    /// Its slot is taken, and the flow says `:on-conflict :reject`. There is no new run.
    Taken { by: RunId },
    /// It would wait for a run that waits for it: its own caller. There is no new run.
    WaitsForCaller { caller: RunId },
}

/// The outcome of several starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BulkAdmission {
    /// All runs were added; each is [`Admission::Admitted`].
    Admitted(Vec<Admission>),
    /// This one was refused, so none was added.
    Refused {
        idx: usize,
        admission: Box<Admission>,
    },
    /// It came before; nothing was changed.
    Known(PastDelivery),
}

/// How a run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartDecision {
    /// It waits until runs of an older version have finished.
    Blocked,
    /// It starts beside a run of another version.
    Coexisted,
    /// There was a run with this external id; nothing was started.
    Deduped,
    /// It waits for its turn.
    Queued,
    /// It begins at once.
    Started,
}

impl StartDecision {
    /// Returns the name that commands show. It is stable.
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

/// Where a queued run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuePlace {
    pub waits_for: QueueReason,
    /// 1: it is the next.
    pub position: u32,
    /// Live runs that it waits for, the oldest first; some of them, where there are many.
    pub behind: Vec<RunId>,
    /// When it may begin, where only a moment is missing.
    pub due_ms: Option<i64>,
}

/// What a queued run waits for.
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
    /// Returns the name that commands show. It is stable.
    pub fn name(self) -> &'static str {
        match self {
            QueueReason::Limit => "limit",
            QueueReason::Rate => "rate",
            QueueReason::Slot => "slot",
        }
    }
}
