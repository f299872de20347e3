//! Waits as they are stored, and the answers to them.

use crate::ids::RunId;
use crate::jobs::{BATCH_KEY, JOB_KEY};

/// How the keys begin under which runs wait for their children. The child's id follows.
pub const CHILD_KEY: &str = "child-run:";

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

/// How a wait is completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub payload: String,
    pub ending: WaitEnding,
    pub by: Option<String>,
    pub at_ms: i64,
}
