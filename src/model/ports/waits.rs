//! Waits: rows that something outside completes, and signals that arrived before their wait.
//!
//! Deciding a wait is one transaction: a late answer is refused with the name of the person who was first.
//! [`crate::waits::judge`] decides inside it whether an answer is valid, so that all stores decide alike.

use super::{BATCH_KEY, JOB_KEY, PortFuture};
use crate::ids::RunId;

/// All waits, and the signals that arrived before theirs.
pub trait Waits: Send + Sync {
    fn list(&self, filter: WaitFilter) -> PortFuture<'_, Vec<WaitRow>>;

    /// Returns the wait of a run at a path: the one that is not closed, otherwise the last one.
    fn at(&self, run: &RunId, path: &str) -> PortFuture<'_, Option<WaitRow>>;

    /// Returns the token of a wait. Only people who may answer the wait may see it.
    fn token(&self, id: &str) -> PortFuture<'_, Option<String>>;

    /// Completes the open waits that a target names, once. If no open wait matches and the sender asks for it, the
    /// payload is kept as an early signal.
    fn complete(&self, completion: Completion) -> PortFuture<'_, WaitsAnswer>;

    /// Returns signals that wait for their wait, and those that a wait refused, oldest first.
    fn signals(&self, filter: SignalFilter) -> PortFuture<'_, Vec<SignalRow>>;
}

/// Prefix of the keys under which runs wait for their children; the id of the child follows.
pub const CHILD_KEY: &str = "child-run:";

/// A wait to open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWait {
    pub id: String,
    pub path: String,
    pub key: String,
    /// The token that completes this wait alone, once.
    pub token: String,
    pub deadline_ms: Option<i64>,
    /// What is shown to the person who decides, and the rules for the payload, as EDN text.
    pub details: String,
    /// The digest of what is shown: the token is valid for that only.
    pub digest: String,
    pub event: Option<WaitEvent>,
    /// The path at which a webhook for this wait arrives.
    pub webhook: Option<String>,
}

/// An event that completes a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitEvent {
    pub name: String,
    /// The required key of the event; `None`: any.
    pub key: Option<String>,
    /// The place of the key in the payload, as an EDN vector, for events that arrive without one.
    pub path: Option<String>,
}

/// The state of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitState {
    Open,
    /// Completed, but the run has not taken the answer yet.
    Completed,
    /// Completed and taken, timed out, or closed because its run has ended.
    Closed,
}

/// The way in which a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEnding {
    Answered,
    /// The wait was cancelled; the payload is `{:reason ...}`.
    Cancelled,
    /// No answer arrived in time.
    TimedOut,
}

impl WaitEnding {
    /// All endings with their names in the store and in listings.
    pub const NAMES: &'static [(WaitEnding, &'static str)] = &[
        (WaitEnding::Answered, "answered"),
        (WaitEnding::Cancelled, "cancelled"),
        (WaitEnding::TimedOut, "timed-out"),
    ];

    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(ending, _)| *ending == self)
            .map_or("unknown", |(_, name)| name)
    }

    pub fn from_name(name: &str) -> Option<WaitEnding> {
        Self::NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(ending, _)| *ending)
    }
}

/// A wait in stored form, without its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitRow {
    pub id: String,
    pub run: RunId,
    pub flow: String,
    pub path: String,
    pub key: String,
    pub state: WaitState,
    pub deadline_ms: Option<i64>,
    pub details: String,
    pub digest: String,
    /// The payload of the answer, as EDN text.
    pub payload: Option<String>,
    pub opened_ms: i64,
    /// How the wait ended; also `None` if its run ended first.
    pub ending: Option<WaitEnding>,
    pub decided_by: Option<String>,
    pub decided_ms: Option<i64>,
    pub event: Option<WaitEvent>,
    pub webhook: Option<String>,
}

/// The selection of a list of waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitFilter {
    pub run: Option<RunId>,
    pub flow: Option<String>,
    pub key: Option<String>,
    /// An id, the beginning of an id, a token or a key.
    pub target: Option<String>,
    /// The path at which its webhook arrives.
    pub webhook: Option<String>,
    /// Includes waits that are not open.
    pub all: bool,
}

impl WaitRow {
    /// Tells whether the run waits for a child run.
    pub fn is_for_child(&self) -> bool {
        self.key.starts_with(CHILD_KEY)
    }

    /// Tells whether the run waits for the end of a job or of a batch of jobs.
    pub fn is_for_job(&self) -> bool {
        self.key.starts_with(JOB_KEY) || self.key.starts_with(BATCH_KEY)
    }

    /// Tells whether someone outside may answer. The ends of children and of jobs are reported by the engine alone.
    pub fn is_question(&self) -> bool {
        !self.is_for_child() && !self.is_for_job()
    }
}

/// The waits that an answer is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An id, the beginning of an id, a token or a key.
    Name(String),
    /// Every wait for an event with this name and key. Without a key, it is read from the payload at the place that the
    /// wait states.
    Event { name: String, key: Option<String> },
}

/// An answer to a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitAnswer {
    /// The payload, as EDN text.
    pub payload: String,
    /// [`WaitEnding::Answered`] or [`WaitEnding::Cancelled`].
    pub ending: WaitEnding,
    /// The sender, if known.
    pub by: Option<String>,
    /// The roles of the sender.
    pub roles: Vec<String>,
    /// The digest of what was shown to the sender.
    pub digest: Option<String>,
    /// The answer comes from a program that has not proved that it may decide for a person: approvals refuse it.
    pub is_unattended: bool,
}

/// An answer with the waits that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    pub target: Target,
    pub answer: WaitAnswer,
    /// A second completion with the same text is accepted, and has no effect.
    pub dedup: Option<String>,
    /// Keeps the answer for a wait that opens later if none is open.
    pub keep: bool,
    pub now_ms: i64,
}

/// The outcome of a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitsAnswer {
    /// These waits are completed; the refused ones stay open.
    Completed {
        waits: Vec<WaitRow>,
        refused: Vec<(WaitRow, Refusal)>,
    },
    /// The answer is kept for a wait that opens later.
    Kept,
    /// An answer with this `dedup` was taken before.
    Duplicate,
    /// No wait takes the answer; all stay open. Never empty.
    Refused(Vec<(WaitRow, Refusal)>),
    /// Another answer was first, or the deadline has passed.
    AlreadyDecided(Box<WaitRow>),
    /// The text is the beginning of several ids.
    Ambiguous(Vec<String>),
    /// There is no wait of this name.
    Missing,
}

/// The reason why a wait does not take an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The payload violates the `:validation` of the wait.
    Invalid { problems: Vec<String> },
    /// The wait does not offer this action.
    NotOffered {
        action: String,
        offered: Vec<String>,
    },
    /// The sender has none of the required roles.
    Role { needed: Vec<String> },
    /// The deadline has passed; the run decides by its timeout.
    Expired { deadline_ms: i64 },
    /// The question has changed since it was shown to the sender.
    Stale,
    /// Only a person can decide.
    Unattended,
}

/// The selection of a list of signals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignalFilter {
    pub key: Option<String>,
    /// Only signals that this wait refused.
    pub refused_by: Option<String>,
}

/// A signal that no wait took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalRow {
    pub event: Option<String>,
    pub key: Option<String>,
    pub dedup: Option<String>,
    /// The payload, as EDN text.
    pub payload: String,
    pub by: Option<String>,
    pub at_ms: i64,
    /// The id of the wait that refused it, and the reason.
    pub refused: Option<(String, String)>,
}
