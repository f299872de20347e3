//! Waits: rows that something outside completes, and signals that arrived before their wait.
//!
//! Deciding a wait is one transaction: a late answer is refused with the name of the person who was first.
//! [`crate::waits::judge`] decides inside it whether an answer is valid, so that all stores decide alike.

use super::{Durability, PortFuture};
use crate::ids::RunId;
use crate::waits::{AnswerRules, Refusal, Target, WaitAnswer, WaitEvent, WaitRow};

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
    /// What the fronts say about early answers.
    pub rules: AnswerRules,
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
    /// The maximum number of waits: the newest are listed.
    pub last: Option<usize>,
}

/// An answer with the waits that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    pub target: Target,
    pub answer: WaitAnswer,
    /// The workspace of the sender, which reaches waits of its own runs only; `None`: all waits.
    pub workspace: Option<String>,
    /// A second completion with the same text is accepted, and has no effect.
    pub dedup: Option<String>,
    /// Keeps the answer for a wait that opens later if none is open.
    pub keep: bool,
    /// Relaxed only where the sender reports the answer after a later commit, which makes it durable, too.
    pub durability: Durability,
    /// What the fronts say about the answer.
    pub rules: AnswerRules,
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

/// The selection of a list of signals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignalFilter {
    pub key: Option<String>,
    /// Only signals that this wait refused.
    pub refused_by: Option<String>,
    /// Only signals for the waits of this workspace.
    pub workspace: Option<String>,
}

/// A signal that no wait took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignalRow {
    /// The workspace whose waits may take it.
    pub workspace: String,
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
