//! The spans of a run, and those of some traces, in the order of their starts.

use std::rc::Rc;

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{RunFilter, RunRow};
use flowstone_flow::flow::{Flow, reload};
use flowstone_lang::value::Value;
use flowstone_model::installation::Side;
use flowstone_model::trace::TraceId;
use flowstone_steps::llm::usual_model;
use serde_json::json;

use super::context::KitCall;
use super::error::KitError;
use super::page;
use super::span_filter::SpanFilter;
use super::spans::{self, Span};
use super::tools::annotate_trace;

/// Maximum number of journals that one query reads.
pub const RUNS_MAX: usize = 1_000;
/// How long one query reads journals, in milliseconds.
pub const READ_MS: i64 = 8_000;
/// The name of the list in `next`.
pub const LIST: &str = "spans";
/// Maximum size of the spans of an answer about traces, in bytes; the first one may be larger. The rest is on the next page.
const ANSWER_MAX: usize = 16_000_000;

/// Which spans a page has.
pub struct Window {
    /// Spans that began at this time or later.
    pub oldest_ms: Option<i64>,
    /// Spans that began before this time.
    pub newest_ms: Option<i64>,
    /// Maximum number of spans.
    pub limit: usize,
    pub is_ascending: bool,
    /// Where the page begins: what the page before gave.
    pub next: Option<String>,
}

/// The spans of a page, and where the next one begins.
pub type Found = (Vec<Span>, Option<String>);

/// Returns the spans of some traces. `next` is how many were returned before.
///
/// # Errors
/// When a journal cannot be read; `invalid_arguments` when the traces have more runs than a query reads.
pub async fn of_traces(
    cx: &KitCall<'_>,
    (window, filter): (&Window, &SpanFilter),
    traces: &[String],
) -> Result<Found, KitError> {
    let mut found = Vec::new();
    let mut read = 0;
    let until_ms = cx.engine.now_ms().saturating_add(READ_MS);
    for trace in traces.iter().filter_map(|trace| trace_of(trace)) {
        for (row, side) in runs_of(cx, trace).await? {
            // The order of the spans is known only once all of them are read, so no partial answer can be given.
            if read >= RUNS_MAX || read > 0 && cx.engine.now_ms() > until_ms {
                return Err(too_many_runs());
            }
            read += 1;
            let spans = of_run(cx, (window, filter), (&row.id, side)).await?;
            found.extend(spans.into_iter().map(|(_, span)| span));
            // Other requests have their turn, and a caller that left is noticed.
            tokio::task::yield_now().await;
        }
    }
    // Runs of a trace overlap, so their spans are put in order together.
    found.sort_by_key(|span| span.began_ms);
    if !window.is_ascending {
        found.reverse();
    }
    let skipped = window.next.as_deref().and_then(|next| next.parse().ok());
    let skipped: usize = skipped.unwrap_or(0);
    let count = found.len();
    let mut bytes = 0;
    let found = found.into_iter().skip(skipped).take(window.limit);
    let found: Vec<Span> = found
        .take_while(|span| {
            let is_first = bytes == 0;
            bytes += json!(span.json).to_string().len();
            is_first || bytes <= ANSWER_MAX
        })
        .collect();
    let shown = skipped + found.len();
    let next = (count > shown && !found.is_empty()).then(|| page::write(&shown.to_string(), LIST));
    Ok((found, next))
}

fn too_many_runs() -> KitError {
    let seconds = READ_MS / 1_000;
    KitError::invalid(
        "/filtering",
        "fewer traces",
        format!(
            "the traces have more than {RUNS_MAX} runs, or reading them takes more than {seconds} s"
        ),
    )
}

fn trace_of(text: &str) -> Option<TraceId> {
    u128::from_str_radix(text, 16).ok().map(TraceId::from_bits)
}

/// Returns the runs of a trace that the caller reaches, oldest first, with the caller's side.
async fn runs_of(cx: &KitCall<'_>, trace: TraceId) -> Result<Vec<(RunRow, Side)>, KitError> {
    let filter = RunFilter {
        trace: Some(trace),
        ..RunFilter::default()
    };
    let rows = cx.engine.stores().runs.list(filter).await?;
    let sided = rows.into_iter().rev().map(|row| {
        let side = cx.side(&row.flow, &row.started_by);
        (row, side)
    });
    Ok(sided.filter(|(_, side)| side.is_any()).collect())
}

/// Returns the spans of a run that pass the filter and the window, with their numbers in the order of their starts.
///
/// # Errors
/// When its journal cannot be read.
pub async fn of_run(
    cx: &KitCall<'_>,
    (window, filter): (&Window, &SpanFilter),
    (run, side): (&RunId, Side),
) -> Result<Vec<(usize, Span)>, KitError> {
    let report = cx.engine.show_run(run).await?;
    let mut spans = match side {
        Side::Whole | Side::Author => {
            let notes = annotate_trace::events(cx, run).await?;
            spans::of_run(&report, notes)
        }
        // A filter sees what its caller sees, so it cannot ask about the rest.
        Side::Installer if report.row.parent.is_none() => vec![spans::of_run_only(&report)],
        Side::Installer | Side::Neither => Vec::new(),
    };
    if spans.iter().any(|span| spans::lacks_model(&span.json)) {
        let flow = flow_of(cx, &report.row).await?;
        let settings = cx.engine.settings();
        spans::name_models(&mut spans, |connection| {
            usual_model(&flow, settings, connection)
        });
    }
    let spans = spans.into_iter().enumerate().filter(|(_, span)| {
        let is_late = window
            .oldest_ms
            .is_none_or(|oldest| span.began_ms >= oldest);
        let is_early = window.newest_ms.is_none_or(|newest| span.began_ms < newest);
        is_late && is_early && filter.fits(&span.json)
    });
    Ok(spans.collect())
}

/// Returns the flow that a run executes; one without slots if its program is not kept any more.
async fn flow_of(cx: &KitCall<'_>, row: &RunRow) -> Result<Rc<Flow>, KitError> {
    let program = cx.engine.stores().runs.program(&row.program).await?;
    let session = cx.engine.session();
    let loaded = program.and_then(|program| reload(&session, &program).loaded);
    let flow = loaded.map(|loaded| loaded.flow);
    Ok(flow.unwrap_or_else(|| Rc::new(Flow::bare("none", Value::Nil))))
}
