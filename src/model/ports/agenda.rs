//! The agenda: the runs that can continue, found without reading all runs.

use std::future::Future;
use std::pin::Pin;

use super::{PortFuture, Program, RunRow};
use crate::ids::RunId;

/// The runs that no process executes and that can continue.
///
/// These are runs in status `running` (new, interrupted, or left by a process that ended), waiting ones whose timer is
/// due or whose wait was answered, and those that are to be cancelled.
pub trait Agenda: Send + Sync {
    /// Returns a signal that changes whenever there may be more runs to execute: after commits of this process, and
    /// soon after those of others. Polling for those of others begins with the first call.
    fn news(&self) -> Box<dyn News>;

    /// Takes the leases of runs that can continue: the highest priority first, then the oldest.
    fn take(&self, now_ms: i64, limit: usize) -> PortFuture<'_, Vec<Taken>>;

    /// Returns when the next timer is due, in milliseconds since 1970; the time may have passed.
    fn next_ms(&self) -> PortFuture<'_, Option<i64>>;

    /// Frees the runs whose process has ended. Returns their number.
    fn sweep(&self) -> PortFuture<'_, usize>;

    /// Gives back the lease of a run that cannot be executed; no worker takes it before the time in the setback.
    fn set_aside(&self, run: &RunId, epoch: i64, setback: Setback) -> PortFuture<'_, ()>;

    /// Ends the delay of all setbacks, because a new worker may succeed where an earlier one failed. Returns the number
    /// of runs.
    fn forget_setbacks(&self) -> PortFuture<'_, usize>;

    /// Returns the state of all schedules, by flow and id.
    fn schedules(&self) -> PortFuture<'_, Vec<ScheduleRow>>;

    /// Writes the state of a schedule if it is still as the caller saw it. Tells whether it was.
    fn plan(&self, change: PlanChange) -> PortFuture<'_, bool>;
}

/// A signal that there may be more work or more rows.
pub trait News: Send {
    /// Marks all changes so far as seen.
    fn mark_seen(&mut self);

    /// Tells whether there is an unseen change.
    fn has_changed(&self) -> bool;

    /// Waits until there is an unseen change, or the store is closed.
    fn changed(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// The stored state of a flow's schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleRow {
    /// The slug of the flow.
    pub flow: String,
    pub id: String,
    /// The timing as text; when it changes, the next instant is computed again.
    pub timing: String,
    /// The hash of the program that the schedule starts.
    pub program: String,
    /// The file that declares the schedule.
    pub file: String,
    /// The next instant; `None` if the schedule is disabled, or no longer in its file.
    pub next_ms: Option<i64>,
    /// The last instant that was not missed.
    pub last_ms: Option<i64>,
    pub last_run: Option<RunId>,
    /// Why the last instant started no run.
    pub note: Option<String>,
}

/// A change of the stored state of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanChange {
    /// The state that the caller saw; `None`: there was no row.
    pub seen: Option<ScheduleRow>,
    pub row: ScheduleRow,
    /// The program, to be stored in case it is new.
    pub program: Option<Program>,
    pub now_ms: i64,
}

/// A run that the caller may execute under this epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The row before the lease was taken.
    pub row: RunRow,
    pub epoch: i64,
}

/// Why a run cannot be executed, and when a worker may try again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setback {
    pub reason: String,
    pub again_ms: i64,
}
