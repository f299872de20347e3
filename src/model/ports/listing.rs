//! Summaries of runs for lists: without inputs, results and errors, so that a long list is cheap.

use super::{Parent, RunStatus};
use crate::ids::RunId;
use crate::registry::RunVersion;

/// A run without its large values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunSummary {
    pub id: RunId,
    pub external_id: Option<String>,
    pub flow: String,
    pub status: RunStatus,
    /// The reason for waiting of a run, as text.
    pub wait_reason: Option<String>,
    pub due_ms: Option<i64>,
    /// A live process executes the run now.
    pub executing: bool,
    /// The same as [`super::RunRow::begun`].
    pub begun: bool,
    /// The same as [`super::RunRow::held`].
    pub held: bool,
    /// The same as [`super::RunRow::quarantine`].
    pub quarantine: Option<String>,
    /// Someone asked for the run to be cancelled.
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
    /// The same as [`super::RunRow::version`].
    pub version: Option<RunVersion>,
}

/// The selection, order and page of a list of runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunQuery {
    /// The run has one of these statuses; empty: any status.
    pub statuses: Vec<RunStatus>,
    /// Includes runs that have begun, are in status `running`, and that no process executes.
    pub interrupted: bool,
    pub flow: Option<String>,
    /// The run was created at or after this time.
    pub since_ms: Option<i64>,
    /// The run was created before this time.
    pub until_ms: Option<i64>,
    /// The value of `:concurrency :key-field`, as EDN text or as its plain text.
    pub key: Option<String>,
    /// A text in id, flow, key, input, result or error; the case of ASCII letters is ignored.
    pub text: Option<String>,
    /// The same as [`super::NewRun::started_by`]; `schedule` also matches `schedule:<id>`.
    pub started_by: Option<String>,
    pub parent: Option<RunId>,
    /// The run ended before this time.
    pub ended_before_ms: Option<i64>,
    /// Selects runs whose journal was removed, or runs whose journal exists.
    pub pruned: Option<bool>,
    pub sort: RunOrder,
    /// The last run of the previous page.
    pub after: Option<RunId>,
    /// Maximum number of runs; 0: no limit.
    pub limit: usize,
}

/// The order of a list of resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunOrder {
    /// By creation, newest first.
    #[default]
    Newest,
    /// By creation, oldest first.
    Oldest,
    /// By the last change, latest first.
    Changed,
}

impl RunOrder {
    /// All orders with their names.
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
