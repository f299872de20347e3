//! The agenda of workers: which runs can continue, and the order in which they are taken.

use std::collections::HashSet;

use crate::ports::RunStatus;

/// A run that no process executes, with the facts that decide whether it can continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idle {
    pub status: RunStatus,
    /// The run is interactive: only the process with its prompt executes it.
    pub is_interactive: bool,
    /// The run was imported, or is in quarantine: a person has to name it.
    pub is_held: bool,
    /// When the run's timer is due, in milliseconds since 1970.
    pub due_ms: Option<i64>,
    /// A wait of the run was answered.
    pub is_answered: bool,
    /// Someone asked for the run to be cancelled, and it is not being unwound yet.
    pub is_cancel_requested: bool,
    /// When a worker may try again after one could not execute the run.
    pub again_ms: Option<i64>,
}

/// Tells whether a worker may take a run now.
pub fn is_ready(run: &Idle, now_ms: i64) -> bool {
    let is_due = |at_ms: Option<i64>| at_ms.is_some_and(|at_ms| at_ms <= now_ms);
    if run.is_held || run.again_ms.is_some_and(|again_ms| again_ms > now_ms) {
        return false;
    }
    match run.status {
        RunStatus::Running => !run.is_interactive,
        RunStatus::Waiting => {
            is_due(run.due_ms)
                || run.is_answered
                || (run.is_cancel_requested && !run.is_interactive)
        }
        RunStatus::Queued
        | RunStatus::FailedCompensating
        | RunStatus::Completed
        | RunStatus::Failed
        | RunStatus::Cancelled
        | RunStatus::Terminated
        | RunStatus::TimedOut => false,
    }
}

/// A run that can continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub num: i64,
    pub priority: i64,
}

/// Chooses the runs to take, each once: highest priority first, then oldest.
pub fn choose(mut candidates: Vec<Candidate>, limit: usize) -> Vec<i64> {
    candidates.sort_unstable_by_key(|run| (std::cmp::Reverse(run.priority), run.num));
    let mut seen = HashSet::new();
    let nums = candidates.into_iter().map(|run| run.num);
    nums.filter(|num| seen.insert(*num)).take(limit).collect()
}

#[cfg(test)]
mod tests;
