//! Waits: rows that something outside completes.

use super::PortFuture;
use crate::ids::RunId;

/// All waits, and signals that came before theirs.
pub trait Waits: Send + Sync {
    fn list(&self, filter: WaitFilter) -> PortFuture<'_, Vec<WaitRow>>;

    /// Completes the open waits that an id, token or key names, once. Keeps the payload as an early signal
    /// when the target can only be a key and nothing is open under it.
    fn complete(&self, completion: Completion) -> PortFuture<'_, WaitsAnswer>;
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

/// A wait as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitRow {
    pub id: String,
    pub run: RunId,
    pub flow: String,
    pub path: String,
    pub key: String,
    pub token: String,
    pub state: WaitState,
    pub deadline_ms: Option<i64>,
    pub details: String,
    /// EDN text.
    pub payload: Option<String>,
    pub opened_ms: i64,
}

/// Which waits to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitFilter {
    pub run: Option<RunId>,
    /// An id, an id's beginning, a token or a key.
    pub target: Option<String>,
    /// Also those that are not open.
    pub all: bool,
}

impl WaitRow {
    /// Tells whether the run waits for a child and not for somebody outside.
    pub fn is_for_child(&self) -> bool {
        self.key.starts_with(CHILD_KEY)
    }
}

/// What completes a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// An id, an id's beginning, a token or a key.
    pub target: String,
    /// EDN text.
    pub payload: String,
    /// A second signal with the same text is not kept.
    pub dedup: Option<String>,
    /// Keep it for a wait that comes later, where none is open.
    pub keep: bool,
    pub now_ms: i64,
}

/// What became of a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitsAnswer {
    /// These waits are complete.
    Completed(Vec<WaitRow>),
    /// It is kept for a wait that comes later.
    Kept,
    /// Somebody was faster.
    AlreadyDecided(Box<WaitRow>),
    /// There is nothing of that name.
    Missing,
}
