//! Spans as OTLP: protocol buffers, and their JSON form.

use flowstone_engine::ports::{FinishedSpan, SpanKind, SpanValue};
use prost::Message as _;
use serde_json::{Value as Json, json};

use super::Protocol;

/// The name of what makes the spans.
const SCOPE: &str = "flowstone";
/// The bits of the trace flags.
const SAMPLED: u32 = 1;
const STATUS_ERROR: i32 = 2;

/// The messages of OTLP, as far as spans need them. The numbers are those of its definition.
mod wire {
    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ExportRequest {
        #[prost(message, repeated, tag = "1")]
        pub resource_spans: Vec<ResourceSpans>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ResourceSpans {
        #[prost(message, optional, tag = "1")]
        pub resource: Option<Resource>,
        #[prost(message, repeated, tag = "2")]
        pub scope_spans: Vec<ScopeSpans>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Resource {
        #[prost(message, repeated, tag = "1")]
        pub attributes: Vec<KeyValue>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ScopeSpans {
        #[prost(message, optional, tag = "1")]
        pub scope: Option<Scope>,
        #[prost(message, repeated, tag = "2")]
        pub spans: Vec<Span>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Scope {
        #[prost(string, tag = "1")]
        pub name: String,
        #[prost(string, tag = "2")]
        pub version: String,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Span {
        #[prost(bytes = "vec", tag = "1")]
        pub trace_id: Vec<u8>,
        #[prost(bytes = "vec", tag = "2")]
        pub span_id: Vec<u8>,
        #[prost(bytes = "vec", tag = "4")]
        pub parent_span_id: Vec<u8>,
        #[prost(string, tag = "5")]
        pub name: String,
        #[prost(int32, tag = "6")]
        pub kind: i32,
        #[prost(fixed64, tag = "7")]
        pub start_time_unix_nano: u64,
        #[prost(fixed64, tag = "8")]
        pub end_time_unix_nano: u64,
        #[prost(message, repeated, tag = "9")]
        pub attributes: Vec<KeyValue>,
        #[prost(message, repeated, tag = "13")]
        pub links: Vec<Link>,
        #[prost(message, optional, tag = "15")]
        pub status: Option<Status>,
        #[prost(fixed32, tag = "16")]
        pub flags: u32,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Link {
        #[prost(bytes = "vec", tag = "1")]
        pub trace_id: Vec<u8>,
        #[prost(bytes = "vec", tag = "2")]
        pub span_id: Vec<u8>,
        #[prost(fixed32, tag = "6")]
        pub flags: u32,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct Status {
        #[prost(string, tag = "2")]
        pub message: String,
        #[prost(int32, tag = "3")]
        pub code: i32,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct KeyValue {
        #[prost(string, tag = "1")]
        pub key: String,
        #[prost(message, optional, tag = "2")]
        pub value: Option<AnyValue>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct AnyValue {
        #[prost(oneof = "Held", tags = "1, 3, 5")]
        pub value: Option<Held>,
    }

    #[derive(Clone, PartialEq, prost::Oneof)]
    pub enum Held {
        #[prost(string, tag = "1")]
        Text(String),
        #[prost(int64, tag = "3")]
        Int(i64),
        #[prost(message, tag = "5")]
        Array(ArrayValue),
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ArrayValue {
        #[prost(message, repeated, tag = "1")]
        pub values: Vec<AnyValue>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct ExportResponse {
        #[prost(message, optional, tag = "1")]
        pub partial_success: Option<PartialSuccess>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub struct PartialSuccess {
        #[prost(int64, tag = "1")]
        pub rejected_spans: i64,
        #[prost(string, tag = "2")]
        pub error_message: String,
    }
}

/// Returns the request that sends spans, as protocol buffers.
pub(super) fn protobuf(spans: &[FinishedSpan], resource: &[(String, String)]) -> Vec<u8> {
    let attributes = resource.iter();
    let attributes = attributes.map(|(key, value)| pair(key, &SpanValue::Text(value.clone())));
    let request = wire::ExportRequest {
        resource_spans: vec![wire::ResourceSpans {
            resource: Some(wire::Resource {
                attributes: attributes.collect(),
            }),
            scope_spans: vec![wire::ScopeSpans {
                scope: Some(wire::Scope {
                    name: SCOPE.to_owned(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                }),
                spans: spans.iter().map(span).collect(),
            }],
        }],
    };
    request.encode_to_vec()
}

fn span(span: &FinishedSpan) -> wire::Span {
    let links = span.links.iter().map(|link| wire::Link {
        trace_id: link.trace.bytes().to_vec(),
        span_id: link.span.bytes().to_vec(),
        flags: u32::from(link.is_sampled),
    });
    wire::Span {
        trace_id: span.trace.bytes().to_vec(),
        span_id: span.id.bytes().to_vec(),
        parent_span_id: span
            .parent
            .map_or_else(Vec::new, |parent| parent.bytes().to_vec()),
        name: span.name.clone(),
        kind: kind(span.kind),
        start_time_unix_nano: nanos(span.began_ns),
        end_time_unix_nano: nanos(span.ended_ns),
        attributes: span
            .attributes
            .iter()
            .map(|(key, value)| pair(key, value))
            .collect(),
        links: links.collect(),
        status: span.error.as_ref().map(|message| wire::Status {
            message: message.clone(),
            code: STATUS_ERROR,
        }),
        flags: SAMPLED,
    }
}

fn kind(kind: SpanKind) -> i32 {
    match kind {
        SpanKind::Internal => 1,
        SpanKind::Server => 2,
        SpanKind::Client => 3,
    }
}

fn nanos(nanos: i64) -> u64 {
    u64::try_from(nanos).unwrap_or(0)
}

fn pair(key: &str, value: &SpanValue) -> wire::KeyValue {
    wire::KeyValue {
        key: key.to_owned(),
        value: Some(any(value)),
    }
}

fn any(value: &SpanValue) -> wire::AnyValue {
    let held = match value {
        SpanValue::Text(text) => wire::Held::Text(text.clone()),
        SpanValue::Int(number) => wire::Held::Int(*number),
        SpanValue::Texts(texts) => wire::Held::Array(wire::ArrayValue {
            values: texts
                .iter()
                .map(|text| any(&SpanValue::Text(text.clone())))
                .collect(),
        }),
    };
    wire::AnyValue { value: Some(held) }
}

/// Returns the request that sends spans, as JSON.
pub(super) fn json(spans: &[FinishedSpan], resource: &[(String, String)]) -> String {
    let attributes = resource.iter();
    let attributes =
        attributes.map(|(key, value)| json!({"key": key, "value": {"stringValue": value}}));
    let spans: Vec<Json> = spans.iter().map(span_json).collect();
    json!({
        "resourceSpans": [{
            "resource": {"attributes": attributes.collect::<Vec<_>>()},
            "scopeSpans": [{
                "scope": {"name": SCOPE, "version": env!("CARGO_PKG_VERSION")},
                "spans": spans,
            }],
        }],
    })
    .to_string()
}

/// Returns a span as the JSON of OTLP.
pub(super) fn span_json(span: &FinishedSpan) -> Json {
    let attributes = span.attributes.iter();
    let attributes = attributes.map(|(key, value)| json!({"key": key, "value": any_json(value)}));
    let links = span.links.iter().map(|link| {
        json!({
            "traceId": link.trace.to_string(),
            "spanId": link.span.to_string(),
            "flags": u32::from(link.is_sampled),
        })
    });
    let mut shown = json!({
        "traceId": span.trace.to_string(),
        "spanId": span.id.to_string(),
        "name": span.name,
        "kind": kind(span.kind),
        "startTimeUnixNano": nanos(span.began_ns).to_string(),
        "endTimeUnixNano": nanos(span.ended_ns).to_string(),
        "attributes": attributes.collect::<Vec<_>>(),
        "flags": SAMPLED,
    });
    if let Some(parent) = &span.parent {
        shown["parentSpanId"] = json!(parent.to_string());
    }
    let links: Vec<Json> = links.collect();
    if !links.is_empty() {
        shown["links"] = json!(links);
    }
    if let Some(message) = &span.error {
        shown["status"] = json!({"code": STATUS_ERROR, "message": message});
    }
    shown
}

fn any_json(value: &SpanValue) -> Json {
    match value {
        SpanValue::Text(text) => json!({"stringValue": text}),
        SpanValue::Int(number) => json!({"intValue": number.to_string()}),
        SpanValue::Texts(texts) => {
            let values: Vec<Json> = texts
                .iter()
                .map(|text| json!({"stringValue": text}))
                .collect();
            json!({"arrayValue": {"values": values}})
        }
    }
}

/// Returns how many spans a collector has left out, and why.
pub(super) fn rejected(answer: &[u8], protocol: Protocol) -> Option<(i64, String)> {
    let (rejected, message) = match protocol {
        Protocol::Protobuf => {
            let partial = wire::ExportResponse::decode(answer).ok()?.partial_success?;
            (partial.rejected_spans, partial.error_message)
        }
        Protocol::Json => {
            let answer: Json = serde_json::from_slice(answer).ok()?;
            let partial = &answer["partialSuccess"];
            let rejected = &partial["rejectedSpans"];
            let rejected = rejected
                .as_i64()
                .or_else(|| rejected.as_str()?.parse().ok())?;
            let message = partial["errorMessage"].as_str().unwrap_or_default();
            (rejected, message.to_owned())
        }
    };
    (rejected > 0).then_some((rejected, message))
}
