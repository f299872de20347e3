//! Traces of callers, and the span of a request.

use std::time::Duration;

use axum::http::HeaderMap;
use flowstone_engine::ids::RunId;
use flowstone_engine::interfaces::Received;
use flowstone_engine::ports::{FinishedSpan, Random as _, SpanKind, SystemRandom, Telemetry};
use flowstone_engine::trace::{SpanId, TraceId, TraceOrigin, TraceParent};
use tracing::Span;

/// The header that names the span of a caller.
pub(crate) const HEADER: &str = "traceparent";

/// The field of a request's log lines that names a run.
pub(super) const RUN: &str = "run";

/// Returns the trace of a caller with a token: what they start belongs to it.
pub(super) fn of_caller(headers: &HeaderMap) -> Option<TraceOrigin> {
    parent(headers).map(TraceOrigin::Parent)
}

/// As [`of_caller`], of a request to an interface.
pub(super) fn of_receiver(received: &Received) -> Option<TraceOrigin> {
    let parent = TraceParent::parse(received.header(HEADER)?)?;
    Some(TraceOrigin::Parent(parent))
}

/// Returns what a sender without a token names. Such a sender must not write into the traces of others, so it is a link.
pub(super) fn of_unknown_sender(received: &Received) -> Option<TraceOrigin> {
    let linked = TraceParent::parse(received.header(HEADER)?)?;
    Some(TraceOrigin::Link(linked))
}

/// Names in the log lines of a request a run that it starts or is about.
pub(super) fn touches(run: &RunId) {
    // Outside of a request, or where its span is off, there is no such field, and nothing happens.
    Span::current().record(RUN, run.as_str());
}

/// Returns the span that a request names, once.
pub(super) fn parent(headers: &HeaderMap) -> Option<TraceParent> {
    let mut all = headers.get_all(HEADER).iter();
    let only = all.next().filter(|_| all.next().is_none())?;
    TraceParent::parse(only.to_str().ok()?)
}

/// A request that was answered.
pub(super) struct Answered<'a> {
    pub method: &'a str,
    pub route: &'a str,
    pub status: u16,
    pub id: &'a str,
    /// The token that it was made with.
    pub token: Option<&'a str>,
    pub ended_ns: i64,
    pub took: Duration,
}

/// Sends the span of a request. Only callers with a token are believed about their trace.
pub(super) fn send(telemetry: &dyn Telemetry, named: Option<TraceParent>, answered: &Answered<'_>) {
    if !telemetry.is_on() {
        return;
    }
    let parent = named.filter(|_| answered.token.is_some());
    let link = named.filter(|_| answered.token.is_none());
    let random = || SystemRandom.next();
    let own = || TraceId::from_bits(u128::from(random()) << 64 | u128::from(random()));
    let trace = parent.map_or_else(own, |parent| parent.trace);
    if !telemetry.samples(trace, parent.map(|parent| parent.is_sampled)) {
        return;
    }
    let Answered {
        method,
        route,
        status,
        id,
        ..
    } = *answered;
    let mut attributes = vec![
        ("http.request.method", method.into()),
        ("http.route", route.into()),
        ("http.response.status_code", i64::from(status).into()),
        ("url.scheme", "http".into()),
        ("flowstone.request.id", id.into()),
    ];
    attributes.extend(
        answered
            .token
            .map(|token| ("flowstone.token.id", token.into())),
    );
    if status >= 500 {
        attributes.push(("error.type", status.to_string().into()));
    }
    let took_ns = i64::try_from(answered.took.as_nanos()).unwrap_or(i64::MAX);
    telemetry.send(vec![FinishedSpan {
        trace,
        id: SpanId::from_bits(random()),
        parent: parent.map(|parent| parent.span),
        name: format!("{method} {route}"),
        kind: SpanKind::Server,
        began_ns: answered.ended_ns.saturating_sub(took_ns),
        ended_ns: answered.ended_ns,
        attributes,
        links: link.into_iter().collect(),
        error: (status >= 500).then(|| format!("answered with {status}")),
    }]);
}
