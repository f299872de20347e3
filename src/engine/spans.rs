//! Spans of runs for programs that collect traces: made from the rows of a run's journal, by a fold.
//!
//! The ids of spans follow from their places, so the spans that an executor sends while a run executes and those that
//! [`Engine::spans_of`] makes of its journal later are the same. A span is made by the row that ends it. Replay adds no
//! rows, and therefore makes none.

mod contents;
mod fold;
mod recorder;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::ids::RunId;
use crate::outcome::decode_failure;
use crate::ports::{
    EventKind, FeedItem, FinishedSpan, RunFilter, RunRow, RunStatus, SpanKind, StoreError,
};
use crate::step::Services;
use crate::trace::{RunTrace, SpanPlace};

pub(crate) use recorder::Recorder;

/// Number of rows that are read at a time.
const PAGE: usize = 1000;
/// As much of a program's hash names a version.
const VERSION: usize = 12;
const NANOS: i64 = 1_000_000;

/// What the span of a run says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RunFacts {
    pub trace: RunTrace,
    pub flow: String,
    pub program: String,
    pub started_by: String,
    pub created_ms: i64,
}

impl RunFacts {
    pub(crate) fn of(row: &RunRow) -> RunFacts {
        RunFacts {
            trace: row.in_trace(),
            flow: row.flow.clone(),
            program: row.program.clone(),
            started_by: row.started_by.clone(),
            created_ms: row.created_ms,
        }
    }

    /// Returns the span of the run, which ended.
    fn span(&self, status: RunStatus, error: Option<&str>, ended_ms: i64) -> FinishedSpan {
        let trace = &self.trace;
        let version = self.program.get(..VERSION).unwrap_or(&self.program);
        let mut span = FinishedSpan {
            trace: trace.trace,
            id: SpanPlace::run(&trace.run).id(),
            parent: trace.parent.map(|parent| parent.span),
            name: format!("invoke_workflow {}", self.flow),
            kind: SpanKind::Internal,
            began_ns: self.created_ms * NANOS,
            ended_ns: ended_ms.max(self.created_ms) * NANOS,
            attributes: vec![
                ("gen_ai.operation.name", "invoke_workflow".into()),
                ("gen_ai.workflow.name", self.flow.as_str().into()),
                ("flowstone.run.id", trace.run.as_str().into()),
                ("flowstone.flow.version", version.into()),
                ("flowstone.started_by", self.started_by.as_str().into()),
                ("flowstone.status", status.name().into()),
            ],
            links: trace.link.into_iter().collect(),
            error: None,
        };
        let kind = match status {
            RunStatus::Failed => {
                let failure = error.and_then(decode_failure);
                let failure = failure.map(|failure| failure.exception);
                span.error = failure
                    .as_ref()
                    .map(|failure| failure.display_text().to_owned());
                let code = failure.map(|failure| failure.code.to_string());
                Some(code.filter(|code| !code.is_empty()).unwrap_or_else(other))
            }
            RunStatus::Cancelled | RunStatus::Terminated | RunStatus::TimedOut => {
                Some(status.name().to_owned())
            }
            RunStatus::Completed
            | RunStatus::Queued
            | RunStatus::Running
            | RunStatus::Waiting
            | RunStatus::FailedCompensating => None,
        };
        if let Some(kind) = kind {
            span.attributes.push(("error.type", kind.into()));
        }
        span
    }
}

/// Stands for an error without a code.
fn other() -> String {
    "_OTHER".to_owned()
}

impl Engine {
    /// Returns the spans of a run as its journal has them, in the order of their ends: those of its last pass, because a
    /// pass that continues as new removes the journal before it. That of the run itself is the last one, once the run is
    /// over.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn spans_of(&self, run: &RunId) -> Result<Vec<FinishedSpan>, EngineError> {
        let row = self.run_row(run).await?;
        let facts = RunFacts::of(&row);
        let has_content = self.services.telemetry.has_content();
        let mut fold = fold::Fold::new(facts.trace.clone(), row.created_ms, has_content);
        let (mut spans, mut after) = (Vec::new(), 0);
        loop {
            let page = self.stores().feed.read(run, after, PAGE).await?;
            let rows = page.map(|page| page.rows).unwrap_or_default();
            let Some(last) = rows.last() else {
                break;
            };
            after = last.seq;
            for row in rows {
                match row.item {
                    FeedItem::Entry(entry) => fold.take(&entry, &mut spans),
                    FeedItem::Event(event) if event.kind == EventKind::RunContinued => {
                        fold.next_pass(event.at_ms);
                    }
                    FeedItem::Event(event) if event.kind == EventKind::RunStarted => {
                        fold.begin(event.at_ms);
                    }
                    FeedItem::Event(_) => {}
                }
            }
        }
        if row.status.is_final() {
            let ended_ms = row.ended_ms.unwrap_or(row.updated_ms);
            spans.push(facts.span(row.status, row.error.as_deref(), ended_ms));
        }
        Ok(spans)
    }

    /// Sends the spans of runs that a change at a time has ended without executing them, and of the runs below them.
    pub(crate) async fn send_ends(&self, runs: &[RunId], at_ms: i64) -> Result<(), EngineError> {
        Ok(send_ends(&self.services, runs, at_ms).await?)
    }

    /// Sends the spans of runs that ended because a run above them did.
    pub(crate) async fn send_ends_below(&self, run: &RunId) -> Result<(), EngineError> {
        if !self.services.telemetry.is_on() {
            return Ok(());
        }
        let children = children_of(&self.services, run).await?;
        if children.is_empty() {
            return Ok(());
        }
        match self.run_row(run).await?.ended_ms {
            Some(at_ms) => self.send_ends(&children, at_ms).await,
            None => Ok(()),
        }
    }
}

/// As [`Engine::send_ends`], for a step that started a run.
pub(crate) async fn send_ends(
    services: &Services,
    runs: &[RunId],
    at_ms: i64,
) -> Result<(), StoreError> {
    let telemetry = &services.telemetry;
    if !telemetry.is_on() {
        return Ok(());
    }
    let mut left = runs.to_vec();
    while let Some(run) = left.pop() {
        let Some(row) = services.stores.runs.find(&run).await? else {
            continue;
        };
        if !row.status.is_final() || row.ended_ms != Some(at_ms) {
            continue;
        }
        let facts = RunFacts::of(&row);
        if telemetry.samples(facts.trace.trace, facts.trace.remote) {
            telemetry.send(vec![facts.span(row.status, row.error.as_deref(), at_ms)]);
        }
        left.extend(children_of(services, &run).await?);
    }
    Ok(())
}

async fn children_of(services: &Services, run: &RunId) -> Result<Vec<RunId>, StoreError> {
    let filter = RunFilter {
        parent: Some(run.clone()),
        ..RunFilter::default()
    };
    let children = services.stores.runs.list(filter).await?;
    Ok(children.into_iter().map(|row| row.id).collect())
}
