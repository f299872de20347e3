//! The value that a flow gets for a reply, including what can be sent back in a later call.

use flowstone_lang::value::Value;

use super::call::{Opaque, Reply, ToolCall, Usage};
use super::citations::Citation;
use super::estimate::ESTIMATED;
use super::provider::Endpoint;
use crate::json;

/// Returns the result of the step.
pub(super) fn envelope(
    endpoint: &Endpoint,
    content: Value,
    reply: &Reply,
    usage: Usage,
    iterations: usize,
) -> Value {
    let key = Value::keyword;
    let model = answered_by(endpoint, reply);
    let mut facts = vec![(key("content"), content)];
    if !reply.tool_calls.is_empty() {
        let calls = Value::vector(reply.tool_calls.iter().map(tool_call));
        facts.push((key("tool-calls"), calls));
    }
    facts.push((key("usage"), usage_map(usage)));
    facts.push((key("tokens-used"), Value::Int(usage.total)));
    let usd = dollars(endpoint, reply, &usage);
    facts.extend(usd.map(|usd| (key("cost-usd"), Value::Float(usd))));
    let text = |name: &str, text: &str| (key(name), Value::from(text));
    facts.push(text("model", model));
    facts.push((key("provider"), Value::keyword(&endpoint.provider)));
    facts.push(text("finish-reason", &reply.finish_reason));
    facts.push((key("iterations"), Value::from(iterations)));
    if !reply.id.is_empty() {
        facts.push(text("response-id", &reply.id));
    }
    if !reply.reasoning.is_empty() {
        facts.push(text("reasoning", &reply.reasoning));
    }
    if !reply.citations.is_empty() {
        let citations = Value::vector(reply.citations.iter().map(citation));
        facts.push((key("citations"), citations));
    }
    facts.extend(reply.opaque.as_ref().map(|it| (key("opaque"), opaque(it))));
    Value::map(facts)
}

fn citation(citation: &Citation) -> Value {
    let Citation { url, title, text } = citation;
    let facts = [
        ("url", Some(url)),
        ("title", title.as_ref()),
        ("text", text.as_ref()),
    ];
    let facts = facts
        .into_iter()
        .filter_map(|(name, text)| Some((Value::keyword(name), Value::from(text?.as_str()))));
    Value::map(facts)
}

/// Returns the model that made a reply: the one that it names, or the one that was asked.
pub(super) fn answered_by<'a>(endpoint: &'a Endpoint, reply: &'a Reply) -> &'a str {
    match reply.model.is_empty() {
        true => &endpoint.model,
        false => &reply.model,
    }
}

/// Returns what tokens cost in dollars; nothing where the price is not known, or the tokens were not counted.
pub(super) fn dollars(endpoint: &Endpoint, reply: &Reply, usage: &Usage) -> Option<f64> {
    if usage.estimated.is_some() {
        return None;
    }
    let cost = |model: &str| endpoint.prices.cost(&endpoint.provider, model, usage);
    let micros = cost(answered_by(endpoint, reply)).or_else(|| cost(&endpoint.model))?;
    Some(micros as f64 / 1e6)
}

/// Returns token counts in the form for flows.
pub(super) fn usage_map(usage: Usage) -> Value {
    let counts = [
        ("prompt-tokens", Some(usage.prompt)),
        ("completion-tokens", Some(usage.completion)),
        ("total-tokens", Some(usage.total)),
        ("cached-tokens", usage.cached),
        ("cache-write-tokens", usage.cache_write),
        ("reasoning-tokens", usage.reasoning),
        (ESTIMATED, usage.estimated),
    ];
    Value::map(
        counts
            .into_iter()
            .filter_map(|(name, count)| Some((Value::keyword(name), Value::Int(count?)))),
    )
}

/// Returns a tool call. Arguments that are not JSON are returned as the model wrote them.
fn tool_call(call: &ToolCall) -> Value {
    let text = match call.arguments.trim().is_empty() {
        true => "{}",
        false => &call.arguments,
    };
    let arguments = match json::read_integers(text.as_bytes()) {
        Ok(arguments) => ("arguments", json::from_exact_json(&arguments)),
        Err(_) => ("arguments-text", Value::from(text)),
    };
    Value::map([
        (
            Value::keyword("tool-call-id"),
            Value::from(call.id.as_str()),
        ),
        (Value::keyword("name"), Value::from(call.name.as_str())),
        (Value::keyword(arguments.0), arguments.1),
    ])
}

/// Returns the blocks that a provider requires back. They are JSON text, because signed blocks must be sent back
/// unchanged.
fn opaque(opaque: &Opaque) -> Value {
    Value::map([
        (
            Value::keyword("family"),
            Value::from(opaque.family.as_str()),
        ),
        (
            Value::keyword("blocks"),
            Value::from(json::compact(&opaque.blocks)),
        ),
    ])
}
