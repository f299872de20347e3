//! Waits: rows that something outside completes; and answers that came before theirs.
//!
//! Deciding a wait is one transaction: a late answer is refused with the name of the person who was first. Whether an
//! answer is valid is judged inside it, by [`crate::waits::judge`], so that every store judges alike.

use super::PortFuture;
use crate::ids::RunId;
use crate::waits::{Refusal, Target, WaitAnswer, WaitEvent, WaitRow};

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
