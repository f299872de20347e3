//! The feed: the journal of a run together with the events of its life, and the order of these rows in the project.
//!
//! Events of a run's life (created, started, a wait opened, a job claimed, ended) are rows of its journal that replay
//! does not see: [`super::Journal`] returns entries only, and this port returns both. The number of a row in its run is
//! the number of its event. The numbers of a run begin at 1, have no gaps, and continue over all passes.

use super::{Entry, JobRow, NewWait, News, PortFuture, RunStatus, StoreError, WaitEnding};
use crate::codec;
use crate::ids::RunId;
use crate::names::name_of;
use crate::waits::{Answered, actions, conditions};
use flowstone_lang::value::Value;

/// Maximum size of a progress report in its event, in bytes; a longer report is only in the job.
const PROGRESS_MAX: usize = 8 << 10;

/// Read access to the feeds of runs and of the project.
pub trait Feed: Send + Sync {
    /// Returns the rows of a run after a number, in order; `None` if the run does not exist.
    fn read(&self, run: &RunId, after: i64, limit: usize) -> PortFuture<'_, Option<FeedPage>>;

    /// Returns the rows of all runs after a position in the project, in the order of their commits.
    fn project(
        &self,
        after: i64,
        limit: usize,
        detail: FeedDetail,
    ) -> PortFuture<'_, ProjectFeedPage>;

    /// Returns the position of the last row.
    fn last_position(&self) -> PortFuture<'_, i64>;

    /// Returns a signal that changes with each commit that may have added rows: of this process and, soon after, of
    /// others.
    fn news(&self) -> Box<dyn News>;

    /// Returns the same signal as [`Feed::news`] for the rows of one run. It may also change without new rows.
    fn watch(&self, run: &RunId) -> Box<dyn News>;
}

/// The rows that the feed of a project includes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FeedDetail {
    /// Events of runs, waits and jobs.
    #[default]
    Events,
    /// Events and journal entries.
    Steps,
}

/// Rows of one run, with the state of the run when they were read.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedPage {
    pub status: RunStatus,
    pub pass: i64,
    /// The journal was removed, and with it the rows of the feed.
    pub is_pruned: bool,
    pub rows: Vec<FeedRow>,
}

/// A row of a run's feed.
#[derive(Debug, Clone, PartialEq)]
pub struct FeedRow {
    /// The number of the row in the run.
    pub seq: i64,
    pub item: FeedItem,
}

/// The content of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum FeedItem {
    Entry(Entry),
    Event(Event),
}

impl FeedItem {
    /// Returns when the row was written.
    pub fn at_ms(&self) -> i64 {
        match self {
            FeedItem::Entry(entry) => entry.at_ms,
            FeedItem::Event(event) => event.at_ms,
        }
    }
}

/// A page of rows of all runs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProjectFeedPage {
    pub rows: Vec<ProjectFeedRow>,
    /// The position to continue after; no row before it was left out.
    pub next: i64,
}

/// A row in the feed of a project.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectFeedRow {
    /// The position in the project. Positions increase with each row, with gaps.
    pub position: i64,
    pub run: RunId,
    pub flow: String,
    /// The current pass of the run.
    pub pass: i64,
    pub row: FeedRow,
}

/// A kind of event in the life of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    RunCreated,
    /// A process executes the run for the first time.
    RunStarted,
    /// A process executes the run again.
    RunResumed,
    /// The next pass of the run begins.
    RunContinued,
    /// The process that executed the run ended without giving it back.
    RunOrphaned,
    /// Records that the run is asked to cancel.
    RunCancelling,
    RunCompleted,
    RunFailed,
    RunCancelled,
    RunTerminated,
    RunTimedOut,
    WaitOpened,
    WaitAnswered,
    WaitTimedOut,
    /// A worker claimed a job of the run.
    JobClaimed,
    /// The worker of a job reported its progress.
    JobProgress,
}

impl EventKind {
    /// All kinds with their names in the store and in events.
    pub const NAMES: &'static [(EventKind, &'static str)] = &[
        (EventKind::JobClaimed, "job.claimed"),
        (EventKind::JobProgress, "job.progress"),
        (EventKind::RunCancelled, "run.cancelled"),
        (EventKind::RunCancelling, "run.cancelling"),
        (EventKind::RunCompleted, "run.completed"),
        (EventKind::RunContinued, "run.continued"),
        (EventKind::RunCreated, "run.created"),
        (EventKind::RunFailed, "run.failed"),
        (EventKind::RunOrphaned, "run.orphaned"),
        (EventKind::RunResumed, "run.resumed"),
        (EventKind::RunStarted, "run.started"),
        (EventKind::RunTerminated, "run.terminated"),
        (EventKind::RunTimedOut, "run.timed-out"),
        (EventKind::WaitAnswered, "wait.answered"),
        (EventKind::WaitOpened, "wait.opened"),
        (EventKind::WaitTimedOut, "wait.timed-out"),
    ];

    /// Returns the name of the kind in the store and in events.
    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(kind, _)| *kind == self)
            .map_or("unknown", |(_, name)| name)
    }

    /// Returns the kind of a stored name.
    pub fn from_name(name: &str) -> Option<EventKind> {
        Self::NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(kind, _)| *kind)
    }

    /// Tells whether this is the last event of its run.
    pub fn is_end(self) -> bool {
        match self {
            EventKind::RunCompleted
            | EventKind::RunFailed
            | EventKind::RunCancelled
            | EventKind::RunTerminated
            | EventKind::RunTimedOut => true,
            EventKind::RunCreated
            | EventKind::RunStarted
            | EventKind::RunResumed
            | EventKind::RunContinued
            | EventKind::RunOrphaned
            | EventKind::RunCancelling
            | EventKind::WaitOpened
            | EventKind::WaitAnswered
            | EventKind::WaitTimedOut
            | EventKind::JobClaimed
            | EventKind::JobProgress => false,
        }
    }
}

/// An event in the life of a run, as a store keeps it. Stores write it in the transaction that changes the run or the
/// wait, so that all stores produce the same events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    pub kind: EventKind,
    /// The path of the wait, or of the step that submitted the job; empty for an event of the run.
    pub path: String,
    /// The data of the event, a map as EDN text.
    pub data: String,
    pub at_ms: i64,
}

impl Event {
    /// The stored kind of these rows in the journal, beside those of entries.
    pub const STORED_KIND: &'static str = "event";

    /// Restores an event from its stored parts.
    ///
    /// # Errors
    /// When this build does not know the name.
    pub fn stored(name: &str, path: String, data: String, at_ms: i64) -> Result<Event, StoreError> {
        let kind = EventKind::from_name(name).ok_or_else(|| StoreError::Damaged {
            path: String::new(),
            detail: format!("unknown event `{name}`"),
        })?;
        Ok(Event {
            kind,
            path,
            data,
            at_ms,
        })
    }

    fn of_run(kind: EventKind, data: &[(&str, Value)], at_ms: i64) -> Event {
        Event {
            kind,
            path: String::new(),
            data: map_text(data),
            at_ms,
        }
    }

    /// Records that the run was added.
    pub fn created(status: RunStatus, started_by: &str, at_ms: i64) -> Event {
        let data = [
            ("status", Value::keyword(status.name())),
            ("started-by", Value::from(started_by)),
        ];
        Event::of_run(EventKind::RunCreated, &data, at_ms)
    }

    /// Records that a process took the lease of the run to execute it. `is_first`: for the first time.
    pub fn taken(is_first: bool, pass: i64, at_ms: i64) -> Event {
        let kind = match is_first {
            true => EventKind::RunStarted,
            false => EventKind::RunResumed,
        };
        Event::of_run(kind, &[("pass", Value::Int(pass))], at_ms)
    }

    /// Records that the process that executed the run ended without giving it back.
    pub fn orphaned(pass: i64, at_ms: i64) -> Event {
        Event::of_run(EventKind::RunOrphaned, &[("pass", Value::Int(pass))], at_ms)
    }

    /// Records that the next pass of the run begins.
    pub fn continued(pass: i64, at_ms: i64) -> Event {
        Event::of_run(
            EventKind::RunContinued,
            &[("pass", Value::Int(pass))],
            at_ms,
        )
    }

    /// Records that the run is asked to cancel.
    pub fn cancelling(reason: &str, at_ms: i64) -> Event {
        let data = [("reason", Value::from(reason))];
        Event::of_run(EventKind::RunCancelling, &data, at_ms)
    }

    /// Records the end of the run; its result or error is in its row. Returns `None` for a status that is not final.
    pub fn ended(status: RunStatus, at_ms: i64) -> Option<Event> {
        let kind = match status {
            RunStatus::Completed => EventKind::RunCompleted,
            RunStatus::Failed => EventKind::RunFailed,
            RunStatus::Cancelled => EventKind::RunCancelled,
            RunStatus::Terminated => EventKind::RunTerminated,
            RunStatus::TimedOut => EventKind::RunTimedOut,
            RunStatus::Queued
            | RunStatus::Running
            | RunStatus::Waiting
            | RunStatus::FailedCompensating => return None,
        };
        Some(Event::of_run(kind, &[], at_ms))
    }

    /// Records that a wait was opened. Returns `None` for a wait for a child run, which only the engine answers.
    pub fn wait_opened(wait: &NewWait, at_ms: i64) -> Option<Event> {
        if wait.key.starts_with(super::CHILD_KEY) {
            return None;
        }
        let offered = actions(&conditions(&wait.details));
        let offered = offered.iter().map(|name| Value::keyword(name));
        let data = [
            ("wait", Value::from(wait.id.as_str())),
            ("key", Value::from(wait.key.as_str())),
            ("actions", Value::vector(offered)),
            ("deadline", wait.deadline_ms.map_or(Value::Nil, Value::Int)),
        ];
        Some(Event {
            kind: EventKind::WaitOpened,
            path: wait.path.clone(),
            data: map_text(&data),
            at_ms,
        })
    }

    /// Records that a wait was answered or cancelled. Returns `None` for a wait for a child run.
    pub fn wait_answered(wait: &WaitPlace<'_>, answered: &Answered) -> Option<Event> {
        if wait.key.starts_with(super::CHILD_KEY) {
            return None;
        }
        let payload = codec::decode(&answered.payload).unwrap_or(Value::Nil);
        let action = match answered.ending {
            WaitEnding::Cancelled => Some("cancel".into()),
            WaitEnding::Answered | WaitEnding::TimedOut => payload.get("action").and_then(name_of),
        };
        let text = |text: Option<&str>| text.map_or(Value::Nil, Value::from);
        let data = [
            ("wait", Value::from(wait.id)),
            ("action", text(action.as_deref())),
            ("by", text(answered.by.as_deref())),
        ];
        Some(Event {
            kind: EventKind::WaitAnswered,
            path: wait.path.to_owned(),
            data: map_text(&data),
            at_ms: answered.at_ms,
        })
    }

    /// Records that a wait timed out. Returns `None` for a wait for a child run.
    pub fn wait_timed_out(wait: &WaitPlace<'_>, at_ms: i64) -> Option<Event> {
        (!wait.key.starts_with(super::CHILD_KEY)).then(|| Event {
            kind: EventKind::WaitTimedOut,
            path: wait.path.to_owned(),
            data: map_text(&[("wait", Value::from(wait.id))]),
            at_ms,
        })
    }

    /// Returns this event as it is in the feeds of the runs that called its run, directly or through others: with the id of its
    /// run as `:child`. These are events of the wait with a key that a person answers, and the end of a process that executed
    /// the run; `None` for others.
    #[must_use]
    pub fn above(&self, child: &RunId, key: &str) -> Option<Event> {
        if [super::CHILD_KEY, super::JOB_KEY, super::BATCH_KEY]
            .iter()
            .any(|it| key.starts_with(it))
        {
            return None;
        }
        let is_told = match self.kind {
            EventKind::RunOrphaned
            | EventKind::WaitOpened
            | EventKind::WaitAnswered
            | EventKind::WaitTimedOut => true,
            EventKind::RunCreated
            | EventKind::RunStarted
            | EventKind::RunResumed
            | EventKind::RunContinued
            | EventKind::RunCancelling
            | EventKind::RunCompleted
            | EventKind::RunFailed
            | EventKind::RunCancelled
            | EventKind::RunTerminated
            | EventKind::RunTimedOut
            | EventKind::JobClaimed
            | EventKind::JobProgress => false,
        };
        let data = codec::decode(&self.data).ok()?;
        let child = (Value::keyword("child"), Value::from(child.as_str()));
        let entries = data.as_map()?.iter();
        let entries = entries.map(|(key, value)| (key.clone(), value.clone()));
        let data = Value::map(entries.chain([child]));
        is_told.then(|| Event {
            data: codec::encode(&data).unwrap_or_else(|_| self.data.clone()),
            ..self.clone()
        })
    }

    /// Records that a worker claimed a job.
    pub fn job_claimed(job: &JobRow, at_ms: i64) -> Event {
        let worker = job.worker.as_deref();
        let worker = ("worker", worker.map_or(Value::Nil, Value::from));
        Event::of_job(EventKind::JobClaimed, job, worker, at_ms)
    }

    /// Records that the worker of a job reported its progress. A long report is only in the job.
    pub fn job_progress(job: &JobRow, at_ms: i64) -> Event {
        let progress = job.progress.as_deref();
        let progress = progress.filter(|text| text.len() <= PROGRESS_MAX);
        let progress = progress.and_then(|text| codec::decode(text).ok());
        let progress = ("progress", progress.unwrap_or(Value::Nil));
        Event::of_job(EventKind::JobProgress, job, progress, at_ms)
    }

    fn of_job(kind: EventKind, job: &JobRow, fact: (&str, Value), at_ms: i64) -> Event {
        let data = [
            ("job", Value::from(job.id.as_str())),
            ("attempt", Value::Int(i64::from(job.attempt))),
            fact,
        ];
        Event {
            kind,
            path: job.path.clone(),
            data: map_text(&data),
            at_ms,
        }
    }
}

/// The names of a wait that its events contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitPlace<'a> {
    pub id: &'a str,
    pub path: &'a str,
    pub key: &'a str,
}

/// Returns a map as EDN text, without entries whose value is nil.
fn map_text(data: &[(&str, Value)]) -> String {
    let present = data.iter().filter(|(_, value)| !value.is_nil());
    let entries = present.map(|(key, value)| (Value::keyword(key), value.clone()));
    codec::encode(&Value::map(entries)).unwrap_or_else(|_| "{}".to_owned())
}
