//! Figures about a server for Prometheus: what runs, what was asked over HTTP, and how it went.
//!
//! Counts of runs come from the feed of the project, so runs of other processes count, too. Figures of steps, models and
//! commits are those of this process. Labels never hold ids, keys or paths.

mod labels;
mod names;
mod process;
mod runs;
mod store;

use std::sync::atomic::AtomicU64;

use flowstone_engine::feed_event::FeedEvent;
use flowstone_engine::ports::{Counts, RunStatus};
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Metric, Registry};

use labels::{
    Flow, HttpRequest, JobsAt, Kind, Model, Reason, RunEnded, RunStarted, Signal, Status,
    StepEnded, StepRetried, Streamed, Tokens, Webhook,
};
use names::Names;
pub use runs::Measured;

/// Histograms by label.
type Seconds<L> = Family<L, Histogram, fn() -> Histogram>;

/// All figures of a server.
pub struct Metrics {
    registry: Registry,
    figures: Figures,
}

#[derive(Default)]
struct Figures {
    /// The flows that have a label of their own.
    flows: Names,
    /// The job types that have a label of their own.
    job_types: Names,
    /// The models that have a label of their own.
    models: Names,
    started: Family<RunStarted, Counter>,
    ended: Family<RunEnded, Counter>,
    run_seconds: Timed<RunEnded>,
    queue_seconds: Timed<Flow>,
    live: Family<Status, Gauge>,
    step_seconds: Timed<StepEnded>,
    retries: Family<StepRetried, Counter>,
    waits: Family<Kind, Gauge>,
    jobs: Family<JobsAt, Gauge>,
    requests: Family<HttpRequest, Counter>,
    request_seconds: Timed<HttpRequest>,
    webhooks: Family<Webhook, Counter>,
    readers: Family<Streamed, Gauge>,
    resyncs: Family<Streamed, Counter>,
    refused: Family<Reason, Counter>,
    store_bytes: Gauge,
    store_queue: Gauge,
    model_tokens: Family<Tokens, Counter>,
    model_cost: Family<Model, Counter<f64, AtomicU64>>,
    model_seconds: Timed<Model>,
    dropped: Family<Signal, Counter>,
}

/// Histograms of times by label, from a millisecond to some minutes.
struct Timed<L>(Seconds<L>);

impl<L: Clone + std::hash::Hash + Eq> Default for Timed<L> {
    fn default() -> Timed<L> {
        let made: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2.0, 18));
        Timed(Family::new_with_constructor(made))
    }
}

impl<L: Clone + std::hash::Hash + Eq> Timed<L> {
    fn observe(&self, labels: &L, seconds: f64) {
        self.0.get_or_create(labels).observe(seconds);
    }
}

/// The outcome of a request to a webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebhookOutcome {
    /// It started a run, completed a wait or was kept for one.
    Started,
    /// The delivery was taken before.
    Deduped,
    /// The flow did not take it: a run with its key is under way, or its input does not fit.
    Refused,
    /// Its timestamp is too far from now.
    Replayed,
    /// It does not prove its sender, or it cannot be read.
    Invalid,
}

impl WebhookOutcome {
    fn name(self) -> &'static str {
        match self {
            WebhookOutcome::Started => "started",
            WebhookOutcome::Deduped => "deduped",
            WebhookOutcome::Refused => "refused",
            WebhookOutcome::Replayed => "replayed",
            WebhookOutcome::Invalid => "invalid",
        }
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        let mut metrics = Metrics {
            registry: Registry::with_prefix("flowstone"),
            figures: Figures::default(),
        };
        metrics.register_runs();
        metrics.register_server();
        metrics.register_models();
        metrics
    }
}

impl Metrics {
    fn register(&mut self, name: &str, help: &str, metric: impl Metric) {
        self.registry.register(name, help, metric);
    }

    fn register_runs(&mut self) {
        let (started, ended) = (self.figures.started.clone(), self.figures.ended.clone());
        self.register("runs_started", "Runs that were started", started);
        self.register("runs_ended", "Runs that ended", ended);
        let seconds = self.figures.run_seconds.0.clone();
        self.register("run_seconds", "Time from start to end of runs", seconds);
        let seconds = self.figures.queue_seconds.0.clone();
        self.register(
            "queue_seconds",
            "Time from start of runs until they were executed",
            seconds,
        );
        let live = self.figures.live.clone();
        self.register("runs", "Runs that are not over", live);
        let seconds = self.figures.step_seconds.0.clone();
        self.register(
            "step_seconds",
            "Time that steps took in this process",
            seconds,
        );
        let retries = self.figures.retries.clone();
        self.register(
            "step_retries",
            "Attempts of steps that are repeated",
            retries,
        );
        let waits = self.figures.waits.clone();
        self.register("waits_open", "Open waits of runs", waits);
        let jobs = self.figures.jobs.clone();
        self.register("jobs", "Jobs of workers", jobs);
    }

    fn register_server(&mut self) {
        let requests = self.figures.requests.clone();
        self.register("http_requests", "Requests that were answered", requests);
        let seconds = self.figures.request_seconds.0.clone();
        self.register(
            "http_request_seconds",
            "Time until requests were answered",
            seconds,
        );
        let webhooks = self.figures.webhooks.clone();
        self.register("webhooks", "Deliveries to webhooks", webhooks);
        let readers = self.figures.readers.clone();
        self.register("sse_readers", "Open streams of events", readers);
        let resyncs = self.figures.resyncs.clone();
        self.register(
            "sse_resyncs",
            "Streams that were closed because their reader was too slow",
            resyncs,
        );
        let refused = self.figures.refused.clone();
        self.register(
            "auth_failures",
            "Tokens, proofs and links that were refused",
            refused,
        );
        let (bytes, queue) = (
            self.figures.store_bytes.clone(),
            self.figures.store_queue.clone(),
        );
        self.register("store_bytes", "Size of the database file", bytes);
        self.register(
            "store_queue",
            "Changes that wait for their transaction",
            queue,
        );
        let dropped = self.figures.dropped.clone();
        self.register("telemetry_dropped", "Spans that were not sent", dropped);
    }

    fn register_models(&mut self) {
        let tokens = self.figures.model_tokens.clone();
        self.register(
            "model_tokens",
            "Tokens that models read and wrote in this process",
            tokens,
        );
        let cost = self.figures.model_cost.clone();
        self.register(
            "model_cost_usd",
            "Dollars that calls of models with known prices cost",
            cost,
        );
        let seconds = self.figures.model_seconds.0.clone();
        self.register(
            "model_call_seconds",
            "Time that calls of models took in this process",
            seconds,
        );
    }

    /// Counts a request that was answered.
    pub fn request(&self, route: &str, method: &str, status: u16, seconds: f64) {
        let labels = HttpRequest {
            route: route.to_owned(),
            method: method.to_owned(),
            status,
        };
        self.figures.requests.get_or_create(&labels).inc();
        self.figures.request_seconds.observe(&labels, seconds);
    }

    /// Counts a token, a proof or a link that was refused.
    pub fn refused(&self, reason: &str) {
        let reason = reason.to_owned();
        self.figures.refused.get_or_create(&Reason { reason }).inc();
    }

    /// Counts a request to a webhook of a flow.
    pub fn webhook(&self, flow: &str, outcome: WebhookOutcome) {
        let labels = Webhook {
            flow: self.figures.flows.label(flow),
            outcome: outcome.name(),
        };
        self.figures.webhooks.get_or_create(&labels).inc();
    }

    /// Counts a stream that was closed because its reader was too slow.
    pub fn resync(&self, stream: &'static str) {
        self.figures
            .resyncs
            .get_or_create(&Streamed { stream })
            .inc();
    }

    /// Counts an event of the project's feed.
    pub fn event(&self, event: &FeedEvent) {
        let flow = self.figures.flows.label(&event.flow);
        let since_creation = || {
            let created_ms = event.run.started_ms()?;
            Some((event.at_ms - created_ms).max(0) as f64 / 1_000.0)
        };
        match event.name {
            "run.created" => {
                let by = event.data.get("startedBy").and_then(|by| by.as_str());
                let by = by.unwrap_or("manual").split(':').next().unwrap_or("manual");
                let started_by = by.to_owned();
                let labels = RunStarted { flow, started_by };
                self.figures.started.get_or_create(&labels).inc();
            }
            "run.started" => {
                if let Some(seconds) = since_creation() {
                    self.figures.queue_seconds.observe(&Flow { flow }, seconds);
                }
            }
            name => {
                let status = name.strip_prefix("run.").and_then(RunStatus::from_name);
                let Some(status) = status.filter(|status| status.is_final()) else {
                    return;
                };
                let status = status.name().to_owned();
                let labels = RunEnded { flow, status };
                self.figures.ended.get_or_create(&labels).inc();
                if let Some(seconds) = since_creation() {
                    self.figures.run_seconds.observe(&labels, seconds);
                }
            }
        }
    }

    /// Returns the text that Prometheus reads, with these figures of the moment.
    ///
    /// # Errors
    /// When the text cannot be written.
    pub fn text(&self, now: &Now) -> Result<String, std::fmt::Error> {
        self.set(now);
        let mut text = String::new();
        encode_registry(&mut text, &self.registry)?;
        text.push_str(&store::text(&now.counts.commits));
        text.push_str(&process::text());
        encode_eof(&mut text)?;
        Ok(text)
    }

    /// Sets the figures of the moment.
    fn set(&self, now: &Now) {
        let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        self.figures.live.clear();
        for (status, count) in &now.counts.runs {
            let status = status.name().to_owned();
            self.figures
                .live
                .get_or_create(&Status { status })
                .set(whole(*count));
        }
        self.figures.waits.clear();
        for (kind, count) in &now.counts.waits {
            let kind = kind.name();
            self.figures
                .waits
                .get_or_create(&Kind { kind })
                .set(whole(*count));
        }
        self.figures.jobs.clear();
        for (kind, status, count) in &now.counts.jobs {
            let labels = JobsAt {
                r#type: self.figures.job_types.label(kind),
                status: status.name(),
            };
            // Several types may share a label.
            self.figures
                .jobs
                .get_or_create(&labels)
                .inc_by(whole(*count));
        }
        for (stream, count) in now.readers {
            let count = whole(count as u64);
            self.figures
                .readers
                .get_or_create(&Streamed { stream })
                .set(count);
        }
        self.figures.store_bytes.set(whole(now.store_bytes));
        self.figures
            .store_queue
            .set(whole(now.counts.commits.queued));
        let dropped = self
            .figures
            .dropped
            .get_or_create(&Signal { signal: "traces" });
        dropped.inc_by(now.spans_dropped.saturating_sub(dropped.get()));
    }
}

/// Figures that are read when they are asked for.
#[derive(Debug, Clone, Default)]
pub struct Now {
    pub counts: Counts,
    /// Open streams by what they are of.
    pub readers: [(&'static str, usize); 3],
    /// Bytes.
    pub store_bytes: u64,
    /// Since the process began.
    pub spans_dropped: u64,
}
