//! Spans of commits: the changes of a transaction, and its duration.

use std::sync::Arc;
use std::time::Instant;

use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    FinishedSpan, NoTelemetry, Random as _, SpanKind, SystemRandom, Telemetry, wall_clock_ms,
};
use flowstone_model::trace::{SpanId, SpanPlace, TraceId, TraceOrigin, TraceParent};
use rusqlite::{Connection, OptionalExtension as _};

/// One of this number of commits is sent, unless the log shows all of them.
const ONE_OF: u64 = 100;
/// Maximum number of runs that a span links to.
const LINKS_MAX: usize = 8;

/// The receiver of the spans of commits.
#[derive(Clone)]
pub struct Spans(Arc<dyn Telemetry>);

impl Spans {
    pub fn to(telemetry: Arc<dyn Telemetry>) -> Spans {
        Spans(telemetry)
    }
}

impl Default for Spans {
    fn default() -> Spans {
        Spans(Arc::new(NoTelemetry))
    }
}

impl std::fmt::Debug for Spans {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Spans")
    }
}

/// Traces the commits of a writer thread.
pub(super) struct Traced {
    telemetry: Arc<dyn Telemetry>,
    is_on: bool,
    count: u64,
}

/// A transaction that was committed.
pub(super) struct Committed<'a> {
    pub jobs: usize,
    pub rows: u64,
    pub begun: Instant,
    /// The numbers of some of its runs.
    pub runs: &'a [i64],
}

impl Traced {
    pub(super) fn new(spans: &Spans) -> Traced {
        Traced {
            is_on: spans.0.is_on(),
            telemetry: spans.0.clone(),
            count: 0,
        }
    }

    /// Records that a transaction adds entries of a run.
    pub(super) fn note(&self, runs: &mut Vec<i64>, run: i64) {
        if self.is_on && runs.len() < LINKS_MAX && !runs.contains(&run) {
            runs.push(run);
        }
    }

    /// Logs a commit, and sends the spans of some commits.
    pub(super) fn committed(&mut self, db: &Connection, committed: &Committed<'_>) {
        let Committed { jobs, rows, .. } = *committed;
        let is_shown = tracing::enabled!(target: "flowstone::store", tracing::Level::DEBUG);
        if !self.is_on && !is_shown {
            return;
        }
        let took = committed.begun.elapsed();
        let ms = took.as_millis() as u64;
        let span = tracing::debug_span!(target: "flowstone::store", "commit", batches = jobs, rows);
        tracing::debug!(target: "flowstone::store", parent: &span, ms, "committed");
        self.count += 1;
        let is_sent = self.is_on && (is_shown || self.count.is_multiple_of(ONE_OF));
        let random = || SystemRandom.next();
        let trace = TraceId::from_bits(u128::from(random()) << 64 | u128::from(random()));
        if !is_sent || !self.telemetry.samples(trace, None) {
            return;
        }
        let ended_ns = wall_clock_ms().saturating_mul(1_000_000);
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let links = committed.runs.iter().filter_map(|run| link(db, *run));
        self.telemetry.send(vec![FinishedSpan {
            trace,
            id: SpanId::from_bits(random()),
            parent: None,
            name: "store commit".to_owned(),
            kind: SpanKind::Internal,
            began_ns: ended_ns.saturating_sub(number(took.as_nanos().min(u64::MAX.into()) as u64)),
            ended_ns,
            attributes: vec![
                ("flowstone.store.rows", number(rows).into()),
                ("flowstone.store.batches", number(jobs as u64).into()),
                ("flowstone.store.wait_ms", number(ms).into()),
            ],
            links: links.collect(),
            error: None,
        }]);
    }
}

/// Returns the span of a run.
fn link(db: &Connection, run: i64) -> Option<TraceParent> {
    let (id, root, trace): (String, Option<String>, Option<String>) = db
        .prepare_cached("SELECT id, root, trace FROM run WHERE num = ?1")
        .and_then(|mut sql| {
            sql.query_row([run], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()
        })
        .ok()??;
    let parent = match trace.as_deref().and_then(TraceOrigin::parse) {
        Some(TraceOrigin::Parent(parent)) => Some(parent.trace),
        Some(TraceOrigin::Link(_)) | None => None,
    };
    let own = || TraceId::of_root(&RunId::from_text(root.unwrap_or_else(|| id.clone())));
    Some(TraceParent {
        trace: parent.unwrap_or_else(own),
        span: SpanPlace::run(&RunId::from_text(id.clone())).id(),
        is_sampled: true,
    })
}
