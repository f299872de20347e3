//! Waits: rows that something outside completes; and answers that came before theirs.
//!
//! Deciding a wait is one transaction: a late answer is refused with the name of the person who was first. Whether an
//! answer is valid is judged inside it, by [`crate::waits::judge`], so that every store judges alike.

use super::{BATCH_KEY, JOB_KEY, PortFuture};
use crate::ids::RunId;

/// All waits, and signals that came before theirs.
pub trait Waits: Send + Sync {
    fn list(&self, filter: WaitFilter) -> PortFuture<'_, Vec<WaitRow>>;

    /// Returns the wait of a run at a path: the one that is not closed, else the last.
    fn at(&self, run: &RunId, path: &str) -> PortFuture<'_, Option<WaitRow>>;

    /// Returns the token of a wait, which only people who may answer may see.
    fn token(&self, id: &str) -> PortFuture<'_, Option<String>>;

    /// Completes the open waits that a target names, once. Keeps the payload as an early signal where nothing
    /// is open that it could be for, and the sender wants that.
    fn complete(&self, completion: Completion) -> PortFuture<'_, WaitsAnswer>;

    /// Returns signals that wait for their wait, and those that their wait refused, oldest first.
    fn signals(&self, filter: SignalFilter) -> PortFuture<'_, Vec<SignalRow>>;
}

/// How the keys begin under which runs wait for their children. The child's id follows.
pub const CHILD_KEY: &str = "child-run:";

/// A wait to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewWait {
    pub id: String,
    pub path: String,
    pub key: String,
    /// Completes this wait and no other; single use.
    pub token: String,
    pub deadline_ms: Option<i64>,
    /// What is shown to who decides, and what the payload must satisfy, as EDN text.
    pub details: String,
    /// Of what is shown: the token is good for that only.
    pub digest: String,
    pub event: Option<WaitEvent>,
    /// Where a webhook for this wait comes in.
    pub webhook: Option<String>,
}

/// An event that completes a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitEvent {
    pub name: String,
    /// What the event's key must be. `None`: any.
    pub key: Option<String>,
    /// Where in the payload the key is, as an EDN vector, for events that come without one.
    pub path: Option<String>,
}

/// How far a wait is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitState {
    Open,
    /// Completed, and the run has not taken it yet.
    Completed,
    /// Completed and taken, timed out, or its run is over.
    Closed,
}

/// How a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEnding {
    Answered,
    /// Somebody took it away; the payload is `{:reason ...}`.
    Cancelled,
    /// Nobody answered in time.
    TimedOut,
}

impl WaitEnding {
    /// All, with the names they are stored and shown under.
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

/// A wait as it is stored, without its token.
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
    /// EDN text.
    pub payload: Option<String>,
    pub opened_ms: i64,
    /// How it ended; `None` too where its run was over first.
    pub ending: Option<WaitEnding>,
    pub decided_by: Option<String>,
    pub decided_ms: Option<i64>,
    pub event: Option<WaitEvent>,
    pub webhook: Option<String>,
}

/// Which waits to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitFilter {
    pub run: Option<RunId>,
    pub flow: Option<String>,
    pub key: Option<String>,
    /// An id, an id's beginning, a token or a key.
    pub target: Option<String>,
    /// Where its webhook comes in.
    pub webhook: Option<String>,
    /// Also those that are not open.
    pub all: bool,
}

impl WaitRow {
    /// Tells whether the run waits for a child and not for somebody outside.
    pub fn is_for_child(&self) -> bool {
        self.key.starts_with(CHILD_KEY)
    }

    /// Tells whether the run waits for the end of a job or of a batch of jobs.
    pub fn is_for_job(&self) -> bool {
        self.key.starts_with(JOB_KEY) || self.key.starts_with(BATCH_KEY)
    }

    /// Tells whether anybody may answer it. Ends of children and of jobs are reported by the engine alone.
    pub fn is_question(&self) -> bool {
        !self.is_for_child() && !self.is_for_job()
    }
}

/// What an answer is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// An id, an id's beginning, a token or a key.
    Name(String),
    /// Every wait for an event of this name and key. Without a key, the payload has it where a wait says.
    Event { name: String, key: Option<String> },
}

/// What somebody says to a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitAnswer {
    /// EDN text.
    pub payload: String,
    /// [`WaitEnding::Answered`] or [`WaitEnding::Cancelled`].
    pub ending: WaitEnding,
    /// Who says it, as far as known.
    pub by: Option<String>,
    /// What who says it may do.
    pub roles: Vec<String>,
    /// The digest of what was shown to who says it.
    pub digest: Option<String>,
    /// Comes from a program that has not shown that it may decide for a person: approvals refuse it.
    pub is_unattended: bool,
}

/// What completes waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    pub target: Target,
    pub answer: WaitAnswer,
    /// A second one with the same text is taken, and does nothing.
    pub dedup: Option<String>,
    /// Keep it for a wait that comes later, where none is open.
    pub keep: bool,
    pub now_ms: i64,
}

/// The outcome of a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitsAnswer {
    /// These waits are complete; those stay open.
    Completed {
        waits: Vec<WaitRow>,
        refused: Vec<(WaitRow, Refusal)>,
    },
    /// It is kept for a wait that comes later.
    Kept,
    /// One with this `dedup` was taken before.
    Duplicate,
    /// None of the waits takes it; they stay open. Never empty.
    Refused(Vec<(WaitRow, Refusal)>),
    /// Somebody was faster, or the time is over.
    AlreadyDecided(Box<WaitRow>),
    /// It is the beginning of several ids.
    Ambiguous(Vec<String>),
    /// There is nothing of that name.
    Missing,
}

/// Why a wait does not take an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The payload breaks its `:validation`.
    Invalid { problems: Vec<String> },
    /// The wait does not offer this action.
    NotOffered {
        action: String,
        offered: Vec<String>,
    },
    /// The sender has none of these roles.
    Role { needed: Vec<String> },
    /// Its time is over; the run decides by its timeout.
    Expired { deadline_ms: i64 },
    /// What was shown to the sender is not what is asked now.
    Stale,
    /// Only a person can decide.
    Unattended,
}

/// Which signals to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignalFilter {
    pub key: Option<String>,
    /// Those that this wait refused.
    pub refused_by: Option<String>,
}

/// A signal that no wait took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalRow {
    pub event: Option<String>,
    pub key: Option<String>,
    pub dedup: Option<String>,
    /// EDN text.
    pub payload: String,
    pub by: Option<String>,
    pub at_ms: i64,
    /// Which wait refused it, and why.
    pub refused: Option<(String, String)>,
}
