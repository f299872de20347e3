//! Figures about a server for Prometheus: what runs, what was asked over HTTP, and how it went.
//!
//! Counts of runs come from the feed of the project, so runs of other processes count, too. Figures of steps are those of
//! this process. Labels never hold ids, keys or paths.

mod process;

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use flowstone_engine::feed_event::FeedEvent;
use flowstone_engine::ids::RunId;
use flowstone_engine::observer::{Observer, RunEvent};
use flowstone_engine::ports::RunStatus;
use flowstone_engine::worker::{Watch, WorkerEvent};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Flows beyond this number share the label `other`.
const FLOWS_MAX: usize = 200;
const OTHER: &str = "other";

/// A flow and a word about it: a status, or who started the run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RunStarted {
    flow: String,
    started_by: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RunEnded {
    flow: String,
    status: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepEnded {
    r#type: String,
    status: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepType {
    r#type: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Status {
    status: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Signal {
    signal: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct HttpRequest {
    route: String,
    method: String,
    status: u16,
}

/// All figures of a server.
pub struct Metrics {
    registry: Registry,
    /// The flows that have a label of their own.
    flows: Mutex<BTreeSet<String>>,
    started: Family<RunStarted, Counter>,
    ended: Family<RunEnded, Counter>,
    run_seconds: Family<RunEnded, Histogram, fn() -> Histogram>,
    live: Family<Status, Gauge>,
    step_seconds: Family<StepEnded, Histogram, fn() -> Histogram>,
    retries: Family<StepType, Counter>,
    requests: Family<HttpRequest, Counter>,
    request_seconds: Family<HttpRequest, Histogram, fn() -> Histogram>,
    refused: Family<Reason, Counter>,
    readers: Gauge,
    store_bytes: Gauge,
    dropped: Family<Signal, Counter>,
}

/// Buckets from a millisecond to some minutes.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 18))
}

impl Default for Metrics {
    fn default() -> Metrics {
        let histogram: fn() -> Histogram = seconds;
        let mut metrics = Metrics {
            registry: Registry::with_prefix("flowstone"),
            flows: Mutex::default(),
            started: Family::default(),
            ended: Family::default(),
            run_seconds: Family::new_with_constructor(histogram),
            live: Family::default(),
            step_seconds: Family::new_with_constructor(histogram),
            retries: Family::default(),
            requests: Family::default(),
            request_seconds: Family::new_with_constructor(histogram),
            refused: Family::default(),
            readers: Gauge::default(),
            store_bytes: Gauge::default(),
            dropped: Family::default(),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let all = &mut self.registry;
        all.register(
            "runs_started",
            "Runs that were started",
            self.started.clone(),
        );
        all.register("runs_ended", "Runs that ended", self.ended.clone());
        all.register(
            "run_seconds",
            "Time from start to end of runs",
            self.run_seconds.clone(),
        );
        all.register("runs", "Runs that are not over", self.live.clone());
        all.register(
            "step_seconds",
            "Time that steps took in this process",
            self.step_seconds.clone(),
        );
        all.register(
            "step_retries",
            "Attempts of steps that are repeated",
            self.retries.clone(),
        );
        all.register(
            "http_requests",
            "Requests that were answered",
            self.requests.clone(),
        );
        all.register(
            "http_request_seconds",
            "Time until requests were answered",
            self.request_seconds.clone(),
        );
        all.register(
            "auth_failures",
            "Tokens that were refused",
            self.refused.clone(),
        );
        all.register(
            "sse_readers",
            "Open streams of events",
            self.readers.clone(),
        );
        all.register(
            "store_bytes",
            "Size of the database file",
            self.store_bytes.clone(),
        );
        all.register(
            "telemetry_dropped",
            "Spans that were not sent",
            self.dropped.clone(),
        );
    }

    /// Returns the label of a flow.
    fn flow(&self, slug: &str) -> String {
        let mut flows = self.flows.lock().unwrap_or_else(PoisonError::into_inner);
        if !flows.contains(slug) {
            if flows.len() >= FLOWS_MAX {
                return OTHER.to_owned();
            }
            flows.insert(slug.to_owned());
        }
        slug.to_owned()
    }

    /// Counts a request that was answered.
    pub fn request(&self, route: &str, method: &str, status: u16, seconds: f64) {
        let labels = HttpRequest {
            route: route.to_owned(),
            method: method.to_owned(),
            status,
        };
        self.requests.get_or_create(&labels).inc();
        self.request_seconds.get_or_create(&labels).observe(seconds);
    }

    /// Counts a token that was refused.
    pub fn refused(&self, reason: &str) {
        let reason = reason.to_owned();
        self.refused.get_or_create(&Reason { reason }).inc();
    }

    /// Counts an event of the project's feed.
    pub fn event(&self, event: &FeedEvent) {
        let flow = self.flow(&event.flow);
        if event.name == "run.created" {
            let by = event.data.get("startedBy").and_then(|by| by.as_str());
            let by = by.unwrap_or("manual").split(':').next().unwrap_or("manual");
            let started_by = by.to_owned();
            self.started
                .get_or_create(&RunStarted { flow, started_by })
                .inc();
            return;
        }
        let status = match event.name.strip_prefix("run.") {
            Some(name) => RunStatus::from_name(name).filter(|status| status.is_final()),
            None => None,
        };
        if let Some(status) = status {
            let labels = RunEnded {
                flow,
                status: status.name().to_owned(),
            };
            self.ended.get_or_create(&labels).inc();
            if let Some(started_ms) = event.run.started_ms() {
                let seconds = (event.at_ms - started_ms).max(0) as f64 / 1_000.0;
                self.run_seconds.get_or_create(&labels).observe(seconds);
            }
        }
    }

    /// Returns the text that Prometheus reads, with these figures of the moment.
    ///
    /// # Errors
    /// When the text cannot be written.
    pub fn text(&self, now: &Now) -> Result<String, std::fmt::Error> {
        self.live.clear();
        for (status, count) in &now.live {
            let status = status.name().to_owned();
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            self.live.get_or_create(&Status { status }).set(count);
        }
        self.readers
            .set(i64::try_from(now.readers).unwrap_or(i64::MAX));
        self.store_bytes
            .set(i64::try_from(now.store_bytes).unwrap_or(i64::MAX));
        let dropped = self.dropped.get_or_create(&Signal { signal: "traces" });
        let more = now.spans_dropped.saturating_sub(dropped.get());
        dropped.inc_by(more);
        drop(dropped);
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        text.push_str(&process::text());
        encode_eof(&mut text)?;
        Ok(text)
    }
}

/// Figures that are read when they are asked for.
#[derive(Debug, Clone, Default)]
pub struct Now {
    pub live: Vec<(RunStatus, u64)>,
    pub readers: usize,
    pub store_bytes: u64,
    /// Since the process began.
    pub spans_dropped: u64,
}

/// Watches a worker for its figures, beside another watch.
pub struct Measured {
    pub metrics: Arc<Metrics>,
    pub watch: Arc<dyn Watch>,
}

impl Watch for Measured {
    fn event(&self, event: &WorkerEvent<'_>) {
        self.watch.event(event);
    }

    fn observer(&self) -> Rc<dyn Observer> {
        Rc::new(MeasuredRuns {
            metrics: self.metrics.clone(),
            observer: self.watch.observer(),
        })
    }
}

struct MeasuredRuns {
    metrics: Arc<Metrics>,
    observer: Rc<dyn Observer>,
}

impl Observer for MeasuredRuns {
    fn event(&self, run: &RunId, event: &RunEvent) {
        let metrics = &self.metrics;
        let ended = |kind: &str, status: &str, millis: i64| {
            let labels = StepEnded {
                r#type: kind.to_owned(),
                status: status.to_owned(),
            };
            let seconds = millis.max(0) as f64 / 1_000.0;
            metrics.step_seconds.get_or_create(&labels).observe(seconds);
        };
        match event {
            RunEvent::StepFinished { step, millis, .. } => ended(step.kind, "completed", *millis),
            RunEvent::StepFailed { step, millis, .. } => ended(step.kind, "failed", *millis),
            RunEvent::StepRetrying { step, .. } => {
                let r#type = step.kind.to_owned();
                metrics.retries.get_or_create(&StepType { r#type }).inc();
            }
            RunEvent::Queued { .. }
            | RunEvent::Started { .. }
            | RunEvent::Branches { .. }
            | RunEvent::BranchesEnded { .. }
            | RunEvent::StepStarted(_)
            | RunEvent::StepProgress { .. }
            | RunEvent::StepSleeping { .. }
            | RunEvent::StepWaiting { .. }
            | RunEvent::Log { .. }
            | RunEvent::Emitted { .. }
            | RunEvent::Printed { .. } => {}
        }
        self.observer.event(run, event);
    }
}
