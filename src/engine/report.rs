//! A view of a run: its steps in order, with their requests and results.

mod attempts;
pub(crate) mod conversation;

use std::collections::{HashMap, HashSet};

use flowstone_lang::value::Value;

use crate::codec;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::flow::name_of;
use crate::ids::RunId;
use crate::journal::{COMPENSATE, ON_CANCEL};
use crate::outcome::{Failure, decode_failure};
use crate::ports::{
    Durability, Entry, EntryKind, QueuePlace, RunFilter, RunRow, RunStatus, RunSummary, Stores,
    WaitFilter, WaitRow, WaitState,
};

pub use attempts::Attempt;
pub(crate) use attempts::Begun;
pub use conversation::{CallStep, Conversation, ToolCall, Turn};

/// Everything that is known of a run.
#[derive(Debug)]
pub struct RunReport {
    pub row: RunRow,
    pub steps: Vec<StepReport>,
    /// What `flow/log` and `flow/emit` wrote, in order.
    pub lines: Vec<LogLine>,
    pub waits: Vec<WaitRow>,
    /// Where it stands, if it is queued.
    pub queue: Option<QueuePlace>,
    /// What the steps cost together by their `:metering`, in millionths of a dollar.
    pub cost_micros: i64,
    /// What a commit survives in this project.
    pub durability: Durability,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// The runs that it called, in their order.
    pub children: Vec<RunRow>,
    /// What was done because it did not complete, in its order.
    pub compensations: Vec<CompensationReport>,
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct StepReport {
    pub path: String,
    pub kind: String,
    /// The packaged step by which the flow called it, such as `:github/open-pr`.
    pub packaged: Option<String>,
    /// `:title`, where the kept part of the request has it.
    pub title: Option<String>,
    /// How deep in branches it stands.
    pub depth: usize,
    pub status: StepStatus,
    /// The number of attempts, as far as it is known.
    pub attempts: u32,
    /// Each of them, as far as known.
    pub tries: Vec<Attempt>,
    /// The beginning of the request, as EDN text.
    pub request: Option<String>,
    /// Its value as EDN text, or its error's text.
    pub result: Option<String>,
    /// What its value or error takes as text.
    pub result_bytes: Option<usize>,
    /// The text of the last error, also where the step went on after it.
    pub error: Option<String>,
    /// The data of the error that it ended with, as EDN text.
    pub error_data: Option<String>,
    /// The code of that error.
    pub error_code: Option<String>,
    /// The process ended while it was under way, and nobody has said yet whether it was done.
    pub in_doubt: bool,
    pub costs: Vec<CostLine>,
    /// The outcome of notifying people about the wait, as EDN text.
    pub notification: Option<String>,
    pub started_ms: i64,
    pub ended_ms: Option<i64>,
}

/// What a step cost, by its `:metering`.
#[derive(Debug, Clone, PartialEq)]
pub struct CostLine {
    pub label: Option<String>,
    pub unit: String,
    pub quantity: f64,
    /// Millionths of a dollar.
    pub micros: i64,
    /// Why the quantity could not be told.
    pub problem: Option<String>,
}

/// How far a step is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepStatus {
    Done,
    Failed,
    /// It failed, and the flow goes on without its value.
    Skipped,
    /// It failed and is tried again.
    Retrying,
    Sleeping,
    Waiting,
    /// It is under way, or will be when the run goes on.
    InFlight,
    /// The process ended while it was under way.
    InDoubt,
    /// It had no end when the run ended: the run, or the branch that asked for it, was cancelled.
    Cancelled,
}

impl StepStatus {
    pub fn name(self) -> &'static str {
        match self {
            StepStatus::Done => "done",
            StepStatus::Failed => "failed",
            StepStatus::Skipped => "skipped",
            StepStatus::Retrying => "retrying",
            StepStatus::Sleeping => "sleeping",
            StepStatus::Waiting => "waiting",
            StepStatus::InFlight => "in flight",
            StepStatus::InDoubt => "in doubt",
            StepStatus::Cancelled => "cancelled",
        }
    }
}

/// The outcome of a function registered with `flow/compensate` or `flow/on-cancel`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompensationReport {
    /// Its steps have paths below this one.
    pub path: String,
    /// `flow/compensate` or `flow/on-cancel`.
    pub what: String,
    pub is_done: bool,
    /// Why it is not.
    pub message: Option<String>,
}

impl CompensationReport {
    fn read(entry: &Entry) -> CompensationReport {
        let record = codec::decode(&entry.payload).unwrap_or(Value::Nil);
        let message = record.get("message").and_then(Value::as_str);
        CompensationReport {
            path: entry.path.clone(),
            what: entry.what.clone(),
            is_done: record.get("status") == Some(&Value::keyword("done")),
            message: message.map(str::to_owned),
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
        RunReport::read(&self.services.stores, row, self.durability).await
    }

    /// Returns those of some runs that have a step in doubt.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn in_doubt(&self, runs: &[RunSummary]) -> Result<HashSet<RunId>, EngineError> {
        let mut found = HashSet::new();
        for row in runs.iter().filter(|row| row.status == RunStatus::Waiting) {
            let filter = WaitFilter {
                run: Some(row.id.clone()),
                ..WaitFilter::default()
            };
            let waits = self.list_waits(filter).await?;
            if waits.iter().any(|wait| is_about_doubt(&wait.details)) {
                found.insert(row.id.clone());
            }
        }
        for row in runs {
            // A run that somebody executes is in the middle of a step, not in doubt about it.
            let may_be = matches!(row.status, RunStatus::Running | RunStatus::Cancelled);
            if !may_be || row.executing {
                continue;
            }
            let report = self.show_run(&row.id).await?;
            if report.steps.iter().any(|step| step.in_doubt) {
                found.insert(row.id.clone());
            }
        }
        Ok(found)
    }
}

impl RunReport {
    /// Reads a run with its timeline.
    pub(crate) async fn read(
        stores: &Stores,
        row: RunRow,
        durability: Durability,
    ) -> Result<RunReport, EngineError> {
        let run = row.id.clone();
        let run = &run;
        let mut report = RunReport {
            failure: row.error.as_deref().and_then(decode_failure),
            row,
            steps: Vec::new(),
            lines: Vec::new(),
            waits: Vec::new(),
            queue: stores.queue.place(run).await?,
            cost_micros: 0,
            children: Vec::new(),
            compensations: Vec::new(),
            durability,
        };
        let filter = RunFilter {
            parent: Some(run.clone()),
            ..RunFilter::default()
        };
        report.children = stores.runs.list(filter).await?;
        report.children.reverse();
        let filter = WaitFilter {
            run: Some(run.clone()),
            all: true,
            ..WaitFilter::default()
        };
        report.waits = stores.waits.list(filter).await?;
        // What a run waits for at another run is nobody's to answer.
        report.waits.retain(WaitRow::is_question);
        let mut places = Places::default();
        for entry in stores.journal.load(run).await? {
            report.add(entry, &mut places);
        }
        report.settle();
        Ok(report)
    }

    /// Says what only the whole tells: what is in doubt, what it cost.
    fn settle(&mut self) {
        for step in &mut self.steps {
            step.in_doubt &= !self.row.executing;
            if step.in_doubt {
                step.status = StepStatus::InDoubt;
            }
            // Somebody was asked, and has not said.
            if step.status == StepStatus::Waiting {
                let path = format!("{}?", step.path);
                step.in_doubt = self.waits.iter().any(|wait| {
                    wait.state != WaitState::Closed
                        && wait.path.starts_with(&path)
                        && is_about_doubt(&wait.details)
                });
            }
            let is_open = match step.status {
                StepStatus::Retrying
                | StepStatus::Sleeping
                | StepStatus::Waiting
                | StepStatus::InFlight => true,
                StepStatus::Done
                | StepStatus::Failed
                | StepStatus::Skipped
                | StepStatus::InDoubt
                | StepStatus::Cancelled => false,
            };
            if is_open && !step.in_doubt && self.row.status.is_final() {
                step.status = StepStatus::Cancelled;
            }
            let micros = step.costs.iter().map(|cost| cost.micros);
            self.cost_micros = micros.fold(self.cost_micros, i64::saturating_add);
        }
    }

    fn add(&mut self, entry: Entry, places: &mut Places) {
        match entry.kind {
            EntryKind::Note if [COMPENSATE, ON_CANCEL].contains(&&*entry.what) => {
                self.compensations.retain(|it| it.path != entry.path);
                self.compensations.push(CompensationReport::read(&entry));
                return;
            }
            EntryKind::Signal if entry.what == COMPENSATE => return,
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
            | EntryKind::Cost
            | EntryKind::Draft
            | EntryKind::Begin => {}
        }
        let has_begun = matches!(entry.kind, EntryKind::Begin | EntryKind::Intent);
        let began_ms = match has_begun {
            true => entry.at_ms,
            false => places.begun.at(&entry.path, self.row.created_ms),
        };
        // A fork has entries of the other run before its own first one.
        let is_own = entry.at_ms >= self.row.created_ms;
        let began_ms = if is_own {
            began_ms.max(self.row.created_ms)
        } else {
            began_ms
        };
        places.begun.note(&entry.path, entry.at_ms);
        let at = match places.steps.get(&entry.path) {
            Some(at) => *at,
            None => {
                places.steps.insert(entry.path.clone(), self.steps.len());
                self.steps.push(StepReport {
                    path: entry.path.clone(),
                    kind: entry.what.clone(),
                    packaged: None,
                    title: None,
                    depth: depth(&entry.path),
                    status: StepStatus::InFlight,
                    attempts: 0,
                    tries: Vec::new(),
                    request: None,
                    result: None,
                    result_bytes: None,
                    error: None,
                    error_data: None,
                    error_code: None,
                    in_doubt: false,
                    costs: Vec::new(),
                    notification: None,
                    started_ms: began_ms,
                    ended_ms: None,
                });
                self.steps.len() - 1
            }
        };
        attempts::note(&mut self.steps[at].tries, &entry, began_ms);
        self.steps[at].add(entry);
    }
}

impl StepReport {
    fn add(&mut self, entry: Entry) {
        if let Some(request) = entry.request {
            let (packaged, request) = packaged_request(request);
            self.packaged = packaged;
            self.title = title(&request);
            self.request = Some(request);
        }
        self.in_doubt = entry.kind == EntryKind::Intent;
        let is_end = matches!(
            entry.kind,
            EntryKind::Draft | EntryKind::Error | EntryKind::Result
        );
        // Of what changes nothing outside, the last attempt has no entry of its own.
        if is_end && self.status == StepStatus::Retrying {
            self.attempts += 1;
        }
        match entry.kind {
            EntryKind::Intent => {
                self.attempts += 1;
                self.status = StepStatus::InFlight;
            }
            EntryKind::Begin => self.status = StepStatus::InFlight,
            EntryKind::Result => {
                self.status = StepStatus::Done;
                self.result_bytes = Some(entry.payload.len());
                self.result = Some(entry.payload);
                self.ended_ms = Some(entry.at_ms);
            }
            EntryKind::Error => {
                if self.status != StepStatus::Skipped {
                    self.status = StepStatus::Failed;
                }
                self.result_bytes = Some(entry.payload.len());
                let text = match codec::decode(&entry.payload) {
                    Ok(Value::Exception(exception)) => {
                        let code = exception.code.to_string();
                        self.error_code = Some(code).filter(|code| !code.is_empty());
                        self.error_data = match exception.data.as_map() {
                            Some(data) if !data.is_empty() => codec::encode(&exception.data).ok(),
                            _ => None,
                        };
                        exception.display_text().to_owned()
                    }
                    _ => entry.payload,
                };
                self.error = Some(text.clone());
                self.result = Some(text);
                self.ended_ms = Some(entry.at_ms);
            }
            EntryKind::Timer => {
                let note = codec::decode(&entry.payload).unwrap_or(Value::Nil);
                if note.get("kind") == Some(&Value::keyword("notify")) {
                    self.notification = Some(entry.payload);
                    return;
                }
                let attempts = note.get("attempt").and_then(Value::as_int);
                self.attempts = attempts
                    .and_then(|count| u32::try_from(count).ok())
                    .unwrap_or(self.attempts);
                let message = note.get("message").and_then(Value::as_str);
                self.error = message.map(str::to_owned).or(self.error.take());
                let kind = note.get("kind").and_then(Value::as_keyword);
                self.status = match kind {
                    Some(kind) if kind.is("retry") => StepStatus::Retrying,
                    Some(kind) if kind.is("sleep") => StepStatus::Sleeping,
                    _ => StepStatus::Waiting,
                };
            }
            EntryKind::Signal => {
                let note = codec::decode(&entry.payload).unwrap_or(Value::Nil);
                let is_skip = note.get("kind") == Some(&Value::keyword("skip"));
                self.status = match is_skip {
                    true => StepStatus::Skipped,
                    false => StepStatus::InFlight,
                };
            }
            EntryKind::Cost => self.costs.extend(cost_line(&entry.payload)),
            EntryKind::Note | EntryKind::Log | EntryKind::Reuse => {}
            EntryKind::Draft => self.status = StepStatus::InFlight,
        }
        self.attempts = self.attempts.max(1);
    }
}

/// Where the steps of a report are while it is made.
#[derive(Default)]
struct Places {
    steps: HashMap<String, usize>,
    begun: Begun,
}

/// Takes the packaged step's id from the front of a request.
pub(crate) fn packaged_request(request: String) -> (Option<String>, String) {
    match request.split_once(' ') {
        Some((id, config)) if id.starts_with(':') => (Some(id.to_owned()), config.to_owned()),
        _ => (None, request),
    }
}

/// Returns the title in a request of which the beginning is kept.
pub(crate) fn title(request: &str) -> Option<String> {
    if !request.contains(":title ") {
        return None;
    }
    let request = codec::decode(request).ok()?;
    request
        .get("title")
        .and_then(Value::as_str)
        .map(str::to_owned)
}

fn depth(path: &str) -> usize {
    path.matches('/').count()
}

fn is_about_doubt(details: &str) -> bool {
    let details = codec::decode(details).unwrap_or(Value::Nil);
    details.get("question") == Some(&Value::keyword("in-doubt"))
}

fn cost_line(payload: &str) -> Option<CostLine> {
    let line = codec::decode(payload).ok()?;
    let text = |key: &str| line.get(key).and_then(Value::as_str).map(str::to_owned);
    Some(CostLine {
        label: text("label"),
        unit: line.get("unit").and_then(name_of)?.to_string(),
        quantity: match line.get("quantity")? {
            Value::Int(int) => *int as f64,
            Value::Float(float) => *float,
            _ => return None,
        },
        micros: line.get("micros").and_then(Value::as_int)?,
        problem: text("problem"),
    })
}
