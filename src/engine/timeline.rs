//! A run to look at: its steps in order, what they were asked and what came of them.

use flowstone_lang::value::Value;

use crate::codec;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::ids::RunId;
use crate::outcome::{Failure, decode_failure};
use crate::ports::{Entry, EntryKind, RunRow, WaitFilter, WaitRow};

/// Everything that is known of a run.
#[derive(Debug)]
pub struct RunReport {
    pub row: RunRow,
    pub steps: Vec<StepReport>,
    /// What `flow/log` and `flow/emit` wrote, in order.
    pub lines: Vec<LogLine>,
    pub waits: Vec<WaitRow>,
    /// Why it failed.
    pub failure: Option<Failure>,
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct StepReport {
    pub path: String,
    pub kind: String,
    pub status: StepStatus,
    /// How often it was attempted, as far as known.
    pub attempts: u32,
    /// The beginning of the request, as EDN text.
    pub request: Option<String>,
    /// Its value as EDN text, or its error's words.
    pub result: Option<String>,
    pub started_ms: i64,
    pub ended_ms: Option<i64>,
}

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepStatus {
    Done,
    Failed,
    /// It failed and is tried again.
    Retrying,
    Sleeping,
    Waiting,
    /// It was begun and nothing says how it ended: the run is driven now, or a crash left it in doubt.
    InFlight,
}

impl StepStatus {
    pub fn name(self) -> &'static str {
        match self {
            StepStatus::Done => "done",
            StepStatus::Failed => "failed",
            StepStatus::Retrying => "retrying",
            StepStatus::Sleeping => "sleeping",
            StepStatus::Waiting => "waiting",
            StepStatus::InFlight => "in flight",
        }
    }
}

/// A line of a run's log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    pub at_ms: i64,
    /// `flow/log` or `flow/emit`.
    pub what: String,
    /// A map: `:level :message :data`, or `:name :data`.
    pub line: Value,
}

impl Engine {
    /// Returns a run with its timeline.
    ///
    /// # Errors
    /// When there is no such run, or it cannot be read.
    pub async fn show_run(&self, run: &RunId) -> Result<RunReport, EngineError> {
        let row = self.run_row(run).await?;
        let stores = &self.services.stores;
        let mut report = RunReport {
            failure: row.error.as_deref().and_then(decode_failure),
            row,
            steps: Vec::new(),
            lines: Vec::new(),
            waits: Vec::new(),
        };
        let filter = WaitFilter {
            run: Some(run.clone()),
            all: true,
            ..WaitFilter::default()
        };
        report.waits = stores.waits.list(filter).await?;
        for entry in stores.journal.load(run).await? {
            report.add(entry);
        }
        Ok(report)
    }
}

impl RunReport {
    fn add(&mut self, entry: Entry) {
        match entry.kind {
            EntryKind::Note | EntryKind::Reuse => return,
            EntryKind::Log => {
                let line = codec::decode(&entry.payload).unwrap_or(Value::Nil);
                self.lines.push(LogLine {
                    at_ms: entry.at_ms,
                    what: entry.what,
                    line,
                });
                return;
            }
            EntryKind::Intent
            | EntryKind::Result
            | EntryKind::Error
            | EntryKind::Timer
            | EntryKind::Signal
            | EntryKind::Turn
            | EntryKind::Tool => {}
        }
        let at = match self.steps.iter().rposition(|step| step.path == entry.path) {
            Some(at) => at,
            None => {
                self.steps.push(StepReport {
                    path: entry.path.clone(),
                    kind: entry.what.clone(),
                    status: StepStatus::InFlight,
                    attempts: 0,
                    request: None,
                    result: None,
                    started_ms: entry.at_ms,
                    ended_ms: None,
                });
                self.steps.len() - 1
            }
        };
        self.steps[at].add(entry);
    }
}

impl StepReport {
    fn add(&mut self, entry: Entry) {
        if entry.request.is_some() {
            self.request = entry.request;
        }
        match entry.kind {
            EntryKind::Intent => {
                self.attempts += 1;
                self.status = StepStatus::InFlight;
            }
            EntryKind::Result => {
                self.status = StepStatus::Done;
                self.result = Some(entry.payload);
                self.ended_ms = Some(entry.at_ms);
            }
            EntryKind::Error => {
                self.status = StepStatus::Failed;
                let words = match codec::decode(&entry.payload) {
                    Ok(Value::Exception(exception)) => exception.shown().to_owned(),
                    _ => entry.payload,
                };
                self.result = Some(words);
                self.ended_ms = Some(entry.at_ms);
            }
            EntryKind::Timer => {
                let note = codec::decode(&entry.payload).unwrap_or(Value::Nil);
                let attempts = note.get("attempt").and_then(Value::as_int);
                self.attempts = attempts
                    .and_then(|count| u32::try_from(count).ok())
                    .unwrap_or(self.attempts);
                let kind = note.get("kind").and_then(Value::as_keyword);
                self.status = match kind {
                    Some(kind) if kind.is("retry") => StepStatus::Retrying,
                    Some(kind) if kind.is("sleep") => StepStatus::Sleeping,
                    _ => StepStatus::Waiting,
                };
            }
            EntryKind::Signal => self.status = StepStatus::InFlight,
            EntryKind::Turn
            | EntryKind::Tool
            | EntryKind::Note
            | EntryKind::Log
            | EntryKind::Reuse => {}
        }
        self.attempts = self.attempts.max(1);
    }
}
