//! Waits as they are stored, and the answers to them.

use crate::ids::RunId;
use crate::jobs::{BATCH_KEY, JOB_KEY};

/// Prefix of the keys under which runs wait for their children; the id of the child follows.
pub const CHILD_KEY: &str = "child-run:";

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
    /// EDN text.
    pub payload: Option<String>,
    pub opened_ms: i64,
    /// How the wait ended; also `None` if its run ended first.
    pub ending: Option<WaitEnding>,
    pub decided_by: Option<String>,
    pub decided_ms: Option<i64>,
    pub event: Option<WaitEvent>,
    pub webhook: Option<String>,
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
    /// EDN text.
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

/// The completion of a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    pub payload: String,
    pub ending: WaitEnding,
    pub by: Option<String>,
    pub at_ms: i64,
}
