//! The facts of a run that do not change during a pass.

use crate::ports::RunRow;
use crate::trace::RunTrace;

/// The columns of a run's row that do not change during a pass.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub has_parent: bool,
    pub invocation: Option<String>,
    pub pass: i64,
    pub seed: u64,
    pub deadline_ms: Option<i64>,
    /// Whether the row already records that the run is being unwound.
    pub is_unwinding: bool,
    /// The run's place in traces; `None` for executions that are not a run of a flow.
    pub trace: Option<RunTrace>,
    /// Whether no flow runs, and steps are requested at a prompt.
    pub is_prompt: bool,
}

impl Facts {
    pub(super) fn of(row: &RunRow) -> Facts {
        Facts {
            has_parent: row.parent.is_some(),
            invocation: row.invocation.clone(),
            pass: row.pass,
            seed: row.seed,
            deadline_ms: row.deadline_ms,
            is_unwinding: row.is_unwinding,
            trace: Some(row.in_trace()),
            is_prompt: false,
        }
    }
}
