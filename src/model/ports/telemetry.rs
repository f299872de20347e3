//! Spans of finished operations, for programs that collect traces.

use crate::trace::{SpanId, TraceId, TraceParent};

/// Accepts finished spans. It never makes its caller wait: spans that it cannot keep are dropped and counted.
pub trait Telemetry: Send + Sync {
    /// Tells whether spans are collected at all. If not, none are computed.
    fn is_on(&self) -> bool;

    /// Tells whether the spans of a trace are collected. `remote`: the decision of the program that began the trace, if
    /// that is another one.
    fn samples(&self, trace: TraceId, remote: Option<bool>) -> bool;

    /// Tells whether spans may contain prompts, arguments and results.
    fn has_content(&self) -> bool;

    /// Accepts spans that belong to committed changes.
    fn send(&self, spans: Vec<FinishedSpan>);

    /// Counts spans that the caller dropped.
    fn lose(&self, count: usize);
}

/// Telemetry that collects nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoTelemetry;

impl Telemetry for NoTelemetry {
    fn is_on(&self) -> bool {
        false
    }

    fn samples(&self, _trace: TraceId, _remote: Option<bool>) -> bool {
        false
    }

    fn has_content(&self) -> bool {
        false
    }

    fn send(&self, _spans: Vec<FinishedSpan>) {}

    fn lose(&self, _count: usize) {}
}

/// A finished span.
#[derive(Debug, Clone, PartialEq)]
pub struct FinishedSpan {
    pub trace: TraceId,
    pub id: SpanId,
    pub parent: Option<SpanId>,
    pub name: String,
    pub kind: SpanKind,
    /// The start in nanoseconds since 1970.
    pub began_ns: i64,
    pub ended_ns: i64,
    pub attributes: Vec<(&'static str, SpanValue)>,
    pub links: Vec<TraceParent>,
    /// The error, if the operation failed.
    pub error: Option<String>,
}

/// The role of a span, as in OpenTelemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    Internal,
    /// The span answers a request from outside.
    Server,
    /// The span is a request to another system.
    Client,
}

impl SpanKind {
    pub fn name(self) -> &'static str {
        match self {
            SpanKind::Internal => "internal",
            SpanKind::Server => "server",
            SpanKind::Client => "client",
        }
    }
}

/// The value of a span's attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum SpanValue {
    Text(String),
    Int(i64),
    Texts(Vec<String>),
}

impl From<&str> for SpanValue {
    fn from(text: &str) -> SpanValue {
        SpanValue::Text(text.to_owned())
    }
}

impl From<String> for SpanValue {
    fn from(text: String) -> SpanValue {
        SpanValue::Text(text)
    }
}

impl From<i64> for SpanValue {
    fn from(number: i64) -> SpanValue {
        SpanValue::Int(number)
    }
}
