//! What spans say about requests and values of steps.

use flowstone_lang::value::Value;
use serde_json::{Map, Value as Json, json};

use crate::flow::name_of;
use crate::json::{compact, to_exact_json};
use crate::ports::SpanValue;

/// As much of a content is sent.
const CONTENT_MAX: usize = 64 << 10;

/// What a call of a model says.
pub(super) struct Chat {
    pub model: Option<String>,
    pub attributes: Vec<(&'static str, SpanValue)>,
}

/// Returns what the call of a model says, of the beginning of its request and of its reply.
pub(super) fn chat(request: &str, reply: &Value, has_content: bool) -> Chat {
    let text = |key: &str| {
        reply
            .get(key)
            .and_then(name_of)
            .map(|text| text.to_string())
    };
    let requested = quoted(request, ":model ");
    let answered = text("model");
    let model = requested.or(answered.clone());
    let provider = text("provider").or_else(|| keyword(request, ":provider "));
    let count = |key: &str| reply.get("usage")?.get(key)?.as_int();
    let mut attributes: Vec<(&'static str, SpanValue)> =
        vec![("gen_ai.operation.name", "chat".into())];
    let texts = [
        ("gen_ai.provider.name", provider),
        ("gen_ai.request.model", model.clone()),
        ("gen_ai.response.model", answered),
        ("gen_ai.response.id", text("response-id")),
    ];
    let texts = texts
        .into_iter()
        .filter_map(|(key, text)| Some((key, text?.into())));
    attributes.extend(texts);
    let counts = [
        ("gen_ai.usage.input_tokens", count("prompt-tokens")),
        ("gen_ai.usage.output_tokens", count("completion-tokens")),
        ("flowstone.cost.micros", micros(reply)),
    ];
    let counts = counts
        .into_iter()
        .filter_map(|(key, count)| Some((key, count?.into())));
    attributes.extend(counts);
    if let Some(reason) = text("finish-reason") {
        let reasons = SpanValue::Texts(vec![reason]);
        attributes.push(("gen_ai.response.finish_reasons", reasons));
    }
    if has_content {
        attributes.push(("gen_ai.input.messages", input(request)));
        attributes.extend(output(reply).map(|output| ("gen_ai.output.messages", output)));
    }
    Chat { model, attributes }
}

fn micros(reply: &Value) -> Option<i64> {
    let dollars = match reply.get("cost-usd")? {
        Value::Float(dollars) => *dollars,
        Value::Int(dollars) => *dollars as f64,
        _ => return None,
    };
    Some((dollars * 1e6).round() as i64)
}

/// Returns what the journal keeps of what a model was asked: the beginning of the request.
fn input(request: &str) -> SpanValue {
    let part = json!({"type": "text", "content": request});
    message(&json!([{"role": "user", "parts": [part]}]))
}

fn output(reply: &Value) -> Option<SpanValue> {
    let mut parts = Vec::new();
    match reply.get("content")? {
        Value::Text(text) if text.is_empty() => {}
        content => {
            let content = match content {
                Value::Text(text) => text.to_string(),
                data => compact(&exact(data)),
            };
            parts.push(json!({"type": "text", "content": content}));
        }
    }
    let calls = reply.get("tool-calls").and_then(Value::as_vector);
    for call in calls.into_iter().flat_map(|calls| calls.iter()) {
        let given = |key: &str| call.get(key).map_or(Json::Null, exact);
        parts.push(json!({
            "type": "tool_call",
            "id": given("tool-call-id"),
            "name": given("name"),
            "arguments": given("arguments"),
        }));
    }
    let reason = reply.get("finish-reason").map_or(Json::Null, exact);
    let whole = json!([{"role": "assistant", "parts": parts, "finish_reason": reason}]);
    Some(message(&whole))
}

fn message(json: &Json) -> SpanValue {
    SpanValue::Text(bounded(compact(json)))
}

/// Returns what the call of a tool says.
pub(super) fn tool(
    call: &Map<String, Json>,
    value: &Value,
    has_content: bool,
) -> Vec<(&'static str, SpanValue)> {
    let text = |key: &str| call.get(key).and_then(Json::as_str).map(str::to_owned);
    let mut attributes: Vec<(&'static str, SpanValue)> = vec![
        ("gen_ai.operation.name", "execute_tool".into()),
        ("gen_ai.tool.type", "function".into()),
    ];
    let texts = [
        ("gen_ai.tool.name", text("name")),
        ("gen_ai.tool.call.id", text("callId")),
    ];
    let texts = texts
        .into_iter()
        .filter_map(|(key, text)| Some((key, text?.into())));
    attributes.extend(texts);
    if has_content {
        let arguments = call.get("arguments").map(compact).map(bounded);
        let arguments = arguments.map(|text| ("gen_ai.tool.call.arguments", text.into()));
        attributes.extend(arguments);
        let result = bounded(compact(&exact(value)));
        attributes.push(("gen_ai.tool.call.result", result.into()));
    }
    attributes
}

fn exact(value: &Value) -> Json {
    to_exact_json(value).unwrap_or(Json::Null)
}

/// Cuts a text where it is too long to be sent.
fn bounded(mut text: String) -> String {
    if text.len() > CONTENT_MAX {
        let mut end = CONTENT_MAX;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Returns the host that a request names, with its port if there is one.
pub(super) fn server_address(request: &str) -> Option<String> {
    let url = quoted(request, ":url ").or_else(|| quoted(request, ":server "))?;
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    (!host.is_empty()).then(|| host.to_owned())
}

/// Returns the status of an HTTP response in a value, or in the data of an error.
pub(super) fn status(value: &Value) -> Option<i64> {
    let status = match value {
        Value::Exception(exception) => exception.data.get("status")?.as_int(),
        value => value.get("status")?.as_int(),
    };
    status.filter(|status| (100..600).contains(status))
}

/// Returns the string after a key in the beginning of a request.
fn quoted(request: &str, key: &str) -> Option<String> {
    let (_, rest) = request.split_once(key)?;
    let (text, _) = rest.strip_prefix('"')?.split_once('"')?;
    (!text.contains('\\')).then(|| text.to_owned())
}

/// Returns the keyword or string after a key in the beginning of a request.
fn keyword(request: &str, key: &str) -> Option<String> {
    let (_, rest) = request.split_once(key)?;
    let rest = rest.strip_prefix(':')?;
    let end = rest.find([' ', ',', '}', ']', ')']).unwrap_or(rest.len());
    (end > 0).then(|| rest[..end].to_owned())
}
