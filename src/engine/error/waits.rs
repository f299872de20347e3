//! The reasons why a wait refuses an answer.

use std::fmt;

use flowstone_model::waits::listed;

use crate::codec;
use crate::ports::WaitEnding;

/// A wait refuses an answer, and stays open.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WaitError {
    #[error("the time of the wait `{target}` was over at {}", codec::instant(*deadline_ms))]
    Expired { target: String, deadline_ms: i64 },
    #[error(
        "only a person with one of the roles {} may answer the wait `{target}`",
        listed(needed)
    )]
    Role { target: String, needed: Vec<String> },
    #[error("what the wait `{target}` asks has changed since it was shown")]
    Stale { target: String },
    #[error("`{target}` may be any of these waits: {}", waits.join(", "))]
    Ambiguous { target: String, waits: Vec<String> },
    #[error(
        "the wait `{target}` does not offer `:{action}`; it offers {}",
        listed(offered)
    )]
    NotOffered {
        target: String,
        action: String,
        offered: Vec<String>,
    },
    #[error("the wait `{target}` asks for a decision, which an event or a webhook cannot make")]
    Unattended { target: String },
}

impl WaitError {
    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            WaitError::Expired { .. } => "E0524",
            WaitError::Role { .. } => "E0525",
            WaitError::Stale { .. } => "E0526",
            WaitError::Ambiguous { .. } => "E0527",
            WaitError::NotOffered { .. } => "E0528",
            WaitError::Unattended { .. } => "E1040",
        }
    }

    /// Returns a hint.
    pub fn hint(&self) -> String {
        match self {
            WaitError::Expired { .. } => {
                "the run continues according to the wait's `:on-timeout`; `flowstone runs resume` resumes it now"
                    .to_owned()
            }
            WaitError::Role { needed, .. } => format!(
                "the wait is still open; say who you are with `--as NAME --role {}`",
                needed.first().map_or("ROLE", String::as_str)
            ),
            WaitError::Stale { .. } => {
                "look at it again with `flowstone waits show`, and answer what it shows".to_owned()
            }
            WaitError::Ambiguous { .. } => "give more of its id".to_owned(),
            WaitError::Unattended { .. } => {
                "a person decides with `flowstone waits approve` or `reject`; a program can, if the wait has a `:webhook` with an `:auth` of its own".to_owned()
            }
            WaitError::NotOffered { offered, .. } => format!(
                "the wait is still open; answer with `flowstone waits complete ID --value '{{:action :{}}}'`",
                offered.first().map_or("action", String::as_str)
            ),
        }
    }
}

/// How an answered wait was decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The target of the late answer.
    pub target: String,
    /// `None`: its run had ended.
    pub ending: Option<WaitEnding>,
    /// The `:action` that was chosen.
    pub action: Option<String>,
    pub by: Option<String>,
    pub at_ms: Option<i64>,
}

impl fmt::Display for Decided {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Decided { target, .. } = self;
        match self.ending {
            Some(WaitEnding::Answered) => {
                write!(out, "the wait `{target}` has been answered already")?;
            }
            Some(WaitEnding::Cancelled) => write!(out, "the wait `{target}` was cancelled")?,
            Some(WaitEnding::TimedOut) => {
                write!(out, "the wait `{target}` is over: nobody answered in time")?;
            }
            None => write!(out, "the wait `{target}` is over, because its run is")?,
        }
        let facts = [
            self.action.as_ref().map(|action| format!("`:{action}`")),
            self.by.as_ref().map(|by| format!("by {by}")),
            self.at_ms.map(|at| format!("at {}", codec::instant(at))),
        ];
        let facts: Vec<String> = facts.into_iter().flatten().collect();
        match facts.is_empty() {
            true => Ok(()),
            false => write!(out, " ({})", facts.join(" ")),
        }
    }
}
