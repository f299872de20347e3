//! A bench for wire formats: encodes calls to bodies, and decodes bytes to replies however they are cut.

use flowstone_steps::llm::PROVIDERS;
use flowstone_steps::llm::call::{Call, Delta, Message, Part, Reply, Role, Tool, ToolCall};
use flowstone_steps::llm::dialect::Dialect;
use flowstone_steps::llm::error::LlmError;
use flowstone_steps::sse;
use serde_json::{Value as Json, json};

/// Returns the row of a provider.
pub fn row(provider: &str) -> &'static Dialect {
    PROVIDERS.iter().find(|it| it.id == provider).unwrap()
}

/// Returns a call with one question to a model.
pub fn ask(model: &str, text: &str) -> Call {
    Call {
        model: model.into(),
        messages: vec![Message::text(Role::User, text)],
        ..Call::default()
    }
}

pub fn tool(name: &str) -> Tool {
    Tool {
        name: name.into(),
        description: Some(format!("It can {name}.")),
        parameters: json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
    }
}

/// Returns the message of an assistant that calls tools: `(id, name, arguments)`.
pub fn calling(calls: &[(&str, &str, &str)]) -> Message {
    Message {
        tool_calls: calls
            .iter()
            .map(|(id, name, arguments)| ToolCall {
                id: (*id).into(),
                name: (*name).into(),
                arguments: (*arguments).into(),
            })
            .collect(),
        ..Message::empty(Role::Assistant)
    }
}

/// Returns the message with a tool's result.
pub fn answering(id: &str, name: Option<&str>, text: &str) -> Message {
    Message {
        tool_call_id: Some(id.into()),
        tool_name: name.map(str::to_string),
        ..Message::text(Role::Tool, text)
    }
}

pub fn image(url: &str) -> Part {
    Part::Image {
        url: url.into(),
        detail: None,
    }
}

/// Returns the body that is sent to a provider.
pub fn body(provider: &str, call: &Call) -> Json {
    let row = row(provider);
    row.family.encode(call, row)
}

pub fn pretty(json: &Json) -> String {
    serde_json::to_string_pretty(json).unwrap()
}

/// Returns the path that a call is sent to.
pub fn address(provider: &str, base: &str, model: &str) -> String {
    let base = base.parse().unwrap();
    let url = row(provider).family.address(&base, &ask(model, "x"));
    url.to_string()
}

/// Returns the bytes of server-sent events.
pub fn events(data: &[&str]) -> Vec<u8> {
    data.iter()
        .map(|data| format!("data: {data}\n\n"))
        .collect::<String>()
        .into_bytes()
}

/// Reads a stream whole, cut in two at every byte, and byte by byte. All must give the same reply, which is returned as
/// text.
#[track_caller]
pub fn stream(provider: &str, bytes: &[u8]) -> String {
    let whole = read(provider, &[bytes]);
    for at in 1..bytes.len() {
        let (head, tail) = bytes.split_at(at);
        assert_eq!(read(provider, &[head, tail]), whole, "cut at {at}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(read(provider, &single), whole, "byte by byte");
    whole
}

/// Reads a complete response, and returns the reply as text.
pub fn whole(provider: &str, body: &str) -> String {
    let decoded = row(provider).family.decode(provider, body.as_bytes());
    show(decoded, &[])
}

/// Returns the reply of a stream, to be used in the next call.
pub fn reply(provider: &str, bytes: &[u8]) -> Reply {
    let mut deltas = Vec::new();
    take(provider, &[bytes], &mut deltas).unwrap()
}

fn read(provider: &str, chunks: &[&[u8]]) -> String {
    let mut deltas = Vec::new();
    let outcome = take(provider, chunks, &mut deltas);
    show(outcome, &deltas)
}

fn take(provider: &str, chunks: &[&[u8]], deltas: &mut Vec<Delta>) -> Result<Reply, LlmError> {
    let family = row(provider).family;
    let mut stream = family.stream(provider);
    let mut decoder = family.frames().decoder();
    for chunk in chunks {
        let events = decoder.push(chunk).map_err(|cause| LlmError::Malformed {
            provider: provider.into(),
            cause,
            preview: String::new(),
        })?;
        for event in events {
            deltas.extend(stream.push(&event)?);
        }
    }
    let last: Option<sse::Event> = decoder.finish();
    if let Some(event) = last {
        deltas.extend(stream.push(&event)?);
    }
    stream.finish()
}

/// Formats the outcome of a call; empty parts are left out.
pub fn show(outcome: Result<Reply, LlmError>, deltas: &[Delta]) -> String {
    let reply = match outcome {
        Ok(reply) => reply,
        Err(error) => {
            let (code, kind) = error.code();
            return format!("{code} {kind}: {error} ({:?})", error.again());
        }
    };
    let text: String = deltas
        .iter()
        .filter_map(|it| match it {
            Delta::Text(text) => Some(text.as_str()),
            Delta::Thought(_) => None,
        })
        .collect();
    assert!(deltas.is_empty() || text == reply.content, "{deltas:?}");
    let mut lines = Vec::new();
    for (name, text) in [
        ("content", &reply.content),
        ("reasoning", &reply.reasoning),
        ("refusal", &reply.refusal),
    ] {
        if !text.is_empty() {
            lines.push(format!("{name}: {text}"));
        }
    }
    for call in &reply.tool_calls {
        lines.push(format!(
            "call {}: {} {}",
            call.id, call.name, call.arguments
        ));
    }
    lines.push(format!(
        "{} of {:?} by {:?}",
        reply.finish_reason, reply.id, reply.model
    ));
    if let Some(usage) = reply.usage {
        lines.push(format!(
            "{} + {} = {}, cached {:?}, kept {:?}, thought {:?}",
            usage.prompt,
            usage.completion,
            usage.total,
            usage.cached,
            usage.cache_write,
            usage.reasoning
        ));
    }
    if let Some(opaque) = reply.opaque {
        lines.push(format!("{}: {}", opaque.family, opaque.blocks));
    }
    lines.join("\n")
}
