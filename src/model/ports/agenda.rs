//! What can go on: how a worker finds runs without looking at all of them.

use std::future::Future;
use std::pin::Pin;

use super::{PortFuture, Program, RunRow};
use crate::ids::RunId;

/// The runs that nobody executes and that can go on.
///
/// That is: those in status `running` (new, interrupted, or left by a process that died), waiting ones whose timer
/// is due or whose wait was answered, and those that are to be cancelled.
pub trait Agenda: Send + Sync {
    /// Returns what changes whenever there may be more to do: after commits of this process, and soon after those of
    /// others. Looking for those of others begins with the first call.
    fn news(&self) -> Box<dyn News>;

    /// Takes the leases of runs that can go on, those of the highest priority first, then the oldest.
    fn take(&self, now_ms: i64, limit: usize) -> PortFuture<'_, Vec<Taken>>;

    /// Returns when the next timer is due, a moment that may have passed.
    fn next_ms(&self) -> PortFuture<'_, Option<i64>>;

    /// Frees the runs that processes held which are gone. Returns how many.
    fn sweep(&self) -> PortFuture<'_, usize>;

    /// Gives back the lease of a run that cannot be executed: nobody takes it before that moment.
    fn set_aside(&self, run: &RunId, epoch: i64, setback: Setback) -> PortFuture<'_, ()>;

    /// Forgets all setbacks: a worker that starts may be able to do what the one before it was not.
    fn forget_setbacks(&self) -> PortFuture<'_, usize>;

    /// Returns what is known of schedules, by flow and id.
    fn schedules(&self) -> PortFuture<'_, Vec<ScheduleRow>>;

    /// Writes what is known of a schedule, if it is still as the sender saw it. Tells whether it was.
    fn plan(&self, change: PlanChange) -> PortFuture<'_, bool>;
}

/// Reports that there may be more to do.
pub trait News: Send {
    /// Marks what has changed so far as seen.
    fn mark_seen(&mut self);

    /// Tells whether there is a change that was not seen.
    fn has_changed(&self) -> bool;

    /// Returns when there is a change that was not seen, or the store is gone.
    fn changed(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// What is known of a schedule of a flow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleRow {
    /// The flow's slug.
    pub flow: String,
    pub id: String,
    /// The times as text; when they change, the next instant is computed again.
    pub timing: String,
    /// The hash of the program that it starts.
    pub program: String,
    /// The file that it stands in.
    pub file: String,
    /// `None`: it is switched off, or no longer in its file.
    pub next_ms: Option<i64>,
    /// The last moment that was not missed.
    pub last_ms: Option<i64>,
    pub last_run: Option<RunId>,
    /// Why the last moment started no run.
    pub note: Option<String>,
}

/// A change of what is known of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanChange {
    /// As the sender saw it; `None`: there was none.
    pub seen: Option<ScheduleRow>,
    pub row: ScheduleRow,
    /// Its program, to be kept, where it may be new.
    pub program: Option<Program>,
    pub now_ms: i64,
}

/// A run that the caller may execute, under that epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// As it was before it was taken.
    pub row: RunRow,
    pub epoch: i64,
}

/// Why a run cannot be executed, and when that is to be tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setback {
    pub reason: String,
    pub again_ms: i64,
}
