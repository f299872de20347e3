//! Sends spans to a collector, as OTLP over HTTP. The environment says where to, never a flow.
//!
//! A thread of its own sends; those who hand over spans never wait. What does not fit into the queue, or is not accepted in
//! time, is dropped and counted.

mod otlp;
mod queue;
mod send;
mod settings;

use std::env;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use flowstone_engine::ports::{FinishedSpan, NoTelemetry, Telemetry};
use flowstone_engine::trace::{TraceId, TraceOrigin, TraceParent};

use queue::Queue;
pub use send::SendError;
use settings::{Protocol, Settings};

/// The variable with the span of the program that starts a command.
const PARENT: &str = "TRACEPARENT";
/// How long a command that ends waits for spans to be sent.
const FLUSH: Duration = Duration::from_secs(5);

/// What the environment asked for when the process began.
static EXPORTER: OnceLock<Option<Arc<Exporter>>> = OnceLock::new();

/// Reads the environment. Returns what is wrong with it.
pub fn start() -> Vec<String> {
    let (settings, problems) = Settings::read(&|name| env::var(name).ok());
    EXPORTER.get_or_init(|| settings.map(|settings| Arc::new(Exporter::new(settings))));
    problems
}

/// Returns what takes the spans of this process.
pub fn port() -> Arc<dyn Telemetry> {
    match exporter() {
        Some(exporter) => exporter.clone(),
        None => Arc::new(NoTelemetry),
    }
}

/// Returns how many spans were dropped.
pub fn dropped() -> u64 {
    exporter().map_or(0, |exporter| exporter.queue.dropped())
}

/// Waits until what was handed over is sent, within a bound.
pub fn flush() {
    if let Some(exporter) = exporter() {
        exporter.queue.flush(FLUSH.min(exporter.settings.timeout));
    }
}

/// Sends spans now.
///
/// # Errors
/// When no collector is configured, or it does not take them.
pub fn send_now(spans: &[FinishedSpan]) -> Result<(), SendError> {
    let exporter = exporter().ok_or(SendError::NoEndpoint)?;
    send::all(&exporter.settings, spans)
}

/// Returns the trace that the program which starts this one is in.
pub fn trace_of_environment() -> Option<TraceOrigin> {
    let parent = TraceParent::parse(env::var(PARENT).ok()?.trim())?;
    Some(TraceOrigin::Parent(parent))
}

/// Returns spans as the JSON of OTLP.
pub fn spans_json(spans: &[FinishedSpan]) -> serde_json::Value {
    spans.iter().map(otlp::span_json).collect()
}

fn exporter() -> Option<&'static Arc<Exporter>> {
    EXPORTER.get().and_then(Option::as_ref)
}

/// Takes spans for the collector.
struct Exporter {
    settings: Arc<Settings>,
    queue: Arc<Queue>,
}

impl Exporter {
    fn new(settings: Settings) -> Exporter {
        let settings = Arc::new(settings);
        Exporter {
            queue: Arc::new(Queue::new(settings.clone())),
            settings,
        }
    }
}

impl Telemetry for Exporter {
    fn is_on(&self) -> bool {
        true
    }

    fn samples(&self, trace: TraceId, remote: Option<bool>) -> bool {
        self.settings.sampler.samples(trace, remote)
    }

    fn has_content(&self) -> bool {
        self.settings.has_content
    }

    fn send(&self, spans: Vec<FinishedSpan>) {
        Queue::add(&self.queue, spans);
    }

    fn lose(&self, count: usize) {
        self.queue.lose(count);
    }
}
