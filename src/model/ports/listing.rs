//! Runs as a list shows them: no inputs, results or errors, so that a long list is cheap.

use super::{Parent, RunStatus};
use crate::ids::RunId;

/// A run without what may be large.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    pub id: RunId,
    pub external_id: Option<String>,
    pub flow: String,
    pub status: RunStatus,
    /// What a waiting run waits for, in words.
    pub wait_reason: Option<String>,
    pub due_ms: Option<i64>,
    /// A live process executes it now.
    pub executing: bool,
    /// As in [`super::RunRow::begun`].
    pub begun: bool,
    /// As in [`super::RunRow::held`].
    pub held: bool,
    /// As in [`super::RunRow::quarantine`].
    pub quarantine: Option<String>,
    /// Somebody asked for it to be cancelled.
    pub is_cancel_requested: bool,
    pub created_ms: i64,
    pub updated_ms: i64,
    pub ended_ms: Option<i64>,
    pub invocation: Option<String>,
    pub key: Option<String>,
    pub priority: i64,
    pub started_by: String,
    pub origin: Option<RunId>,
    pub parent: Option<Parent>,
    pub pass: i64,
    pub pruned_ms: Option<i64>,
}

/// Which runs to show, and in which order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// Any of these; none: all.
    pub statuses: Vec<RunStatus>,
    /// Also those that run by their status and that no process executes.
    pub interrupted: bool,
    pub flow: Option<String>,
    /// Created at or after.
    pub since_ms: Option<i64>,
    /// Created before.
    pub until_ms: Option<i64>,
    /// The value of `:concurrency :key-field`, as EDN text or as the text it is.
    pub key: Option<String>,
    /// Somewhere in id, flow, key, input, result or error; case does not matter for ASCII.
    pub text: Option<String>,
    /// As in [`super::NewRun::started_by`]; `schedule` also means `schedule:<id>`.
    pub started_by: Option<String>,
    pub parent: Option<RunId>,
    /// Over for longer than since this moment.
    pub ended_before_ms: Option<i64>,
    /// Only runs whose journal is there, or only those whose is not.
    pub pruned: Option<bool>,
    pub sort: RunOrder,
    /// The runs that come after this one in the order.
    pub after: Option<RunId>,
    /// 0: no limit.
    pub limit: usize,
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunOrder {
    /// By creation, the newest first.
    #[default]
    Newest,
    /// By creation, the oldest first.
    Oldest,
    /// By the last change, the latest first.
    Changed,
}

impl RunOrder {
    /// All, with their names.
    pub const NAMES: &'static [(RunOrder, &'static str)] = &[
        (RunOrder::Changed, "changed"),
        (RunOrder::Newest, "newest"),
        (RunOrder::Oldest, "oldest"),
    ];

    /// Returns the order of a name.
    pub fn from_name(name: &str) -> Option<RunOrder> {
        Self::NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(order, _)| *order)
    }
}
