//! Answers in chat completions: complete ones, and streams of pieces.
//!
//! Many servers imitate the format, each in its own way: missing, null, repeated or differently shaped values are
//! accepted if their meaning is clear.

use serde_json::{Map, Value as Json, json};

use super::ID;
use crate::llm::call::{Delta, Opaque, Reply, ToolCall, Usage};
use crate::llm::call_id;
use crate::llm::error::LlmError;
use crate::llm::family::{self, Stream as _};
use crate::{json, sse};

/// Reads a whole answer, from a server that does not stream.
pub(super) fn whole(provider: &str, body: &[u8]) -> Result<Reply, LlmError> {
    let json = family::parsed(provider, "it", body)?;
    refused(provider, &json)?;
    let Some(choice) = json.pointer("/choices/0") else {
        return Err(family::malformed(provider, "it has no `choices`", body));
    };
    refused(provider, choice)?;
    let Some(message) = choice.get("message").filter(|it| !it.is_null()) else {
        return Err(family::malformed(provider, "it has no `message`", body));
    };
    let mut stream = Box::new(Stream::new(provider));
    stream.common(&json);
    stream.message(message, body)?;
    stream.finish_reason(choice, body)?;
    stream.done = true;
    stream.finish()
}

/// Converts an error inside a response to an error.
fn refused(provider: &str, json: &Json) -> Result<(), LlmError> {
    let error = json.get("error").or_else(|| json.pointer("/x_groq/error"));
    match error {
        None | Some(Json::Null) => Ok(()),
        Some(error) => Err(LlmError::from_event(provider, &json!({"error": error}))),
    }
}

/// Joins a streamed answer.
pub(super) struct Stream {
    provider: String,
    reply: Reply,
    /// The provider's number of each incomplete tool call.
    indexes: Vec<u64>,
    /// The thoughts as text, for providers that require them back.
    thoughts: String,
    /// The thoughts as data, for providers that require that back.
    details: Vec<Map<String, Json>>,
    /// Whether a message was received, even an empty one.
    has_message: bool,
    done: bool,
}

impl Stream {
    pub(super) fn new(provider: &str) -> Stream {
        Stream {
            provider: provider.to_string(),
            reply: Reply::default(),
            indexes: Vec::new(),
            thoughts: String::new(),
            details: Vec::new(),
            has_message: false,
            done: false,
        }
    }

    fn take(&mut self, data: &str) -> Result<Vec<Delta>, LlmError> {
        let data = data.trim();
        if data == "[DONE]" {
            self.done = true;
            return Ok(Vec::new());
        }
        if data.is_empty() {
            return Ok(Vec::new());
        }
        let json = family::parsed(&self.provider, "an event", data.as_bytes())?;
        refused(&self.provider, &json)?;
        self.common(&json);
        // The first event of some providers and the last of most have no choices.
        let Some(choice) = json.pointer("/choices/0") else {
            return Ok(Vec::new());
        };
        refused(&self.provider, choice)?;
        // Some servers send the whole answer at once, though as an event.
        let message = choice.get("delta").or_else(|| choice.get("message"));
        let deltas = self.message(message.unwrap_or(&Json::Null), data.as_bytes())?;
        self.finish_reason(choice, data.as_bytes())?;
        Ok(deltas)
    }

    fn common(&mut self, json: &Json) {
        let text = |key: &str| {
            let text = json.get(key).and_then(Json::as_str);
            text.filter(|text| !text.is_empty()).map(str::to_string)
        };
        if let Some(model) = text("model") {
            self.reply.model = model;
        }
        if let Some(id) = text("id") {
            self.reply.id = id;
        }
        // One provider puts the usage elsewhere.
        let places = ["/usage", "/x_groq/usage", "/choices/0/usage"];
        let counted = places.iter().find_map(|it| usage(json.pointer(it)?));
        if let Some(usage) = counted {
            self.reply.usage = Some(usage);
        }
    }

    fn message(&mut self, message: &Json, whole: &[u8]) -> Result<Vec<Delta>, LlmError> {
        match message {
            // Some events have none.
            Json::Null => return Ok(Vec::new()),
            Json::Object(_) => self.has_message = true,
            _ => {
                let cause = "its `message` is not an object";
                return Err(family::malformed(&self.provider, cause, whole));
            }
        }
        let text = |key: &str| {
            let text = message.get(key).and_then(Json::as_str);
            text.filter(|text| !text.is_empty())
        };
        let mut deltas = Vec::new();
        if let Some(thought) = text("reasoning_content") {
            self.thoughts.push_str(thought);
        }
        let details = message.get("reasoning_details").and_then(Json::as_array);
        for detail in details.into_iter().flatten().filter_map(Json::as_object) {
            self.detail(detail);
        }
        if let Some(thought) = text("reasoning_content").or_else(|| text("reasoning")) {
            self.thought(thought, &mut deltas);
        }
        match message.get("content") {
            Some(Json::String(text)) => self.text(text, &mut deltas),
            Some(Json::Array(parts)) => {
                let mut are_read = parts.is_empty();
                for part in parts {
                    are_read |= self.part(part, &mut deltas);
                }
                if !are_read {
                    let cause = "its `content` has no part that is text";
                    return Err(family::malformed(&self.provider, cause, whole));
                }
            }
            None | Some(Json::Null) => {}
            Some(_) => {
                let cause = "its `content` is not text";
                return Err(family::malformed(&self.provider, cause, whole));
            }
        }
        if let Some(refusal) = text("refusal") {
            self.reply.refusal.push_str(refusal);
        }
        match message.get("tool_calls") {
            Some(Json::Array(calls)) => calls.iter().for_each(|call| self.tool_call(call)),
            Some(call @ Json::Object(_)) => self.tool_call(call),
            _ => {}
        }
        Ok(deltas)
    }

    fn text(&mut self, text: &str, deltas: &mut Vec<Delta>) {
        if !text.is_empty() {
            self.reply.content.push_str(text);
            deltas.push(Delta::Text(text.to_string()));
        }
    }

    fn thought(&mut self, text: &str, deltas: &mut Vec<Delta>) {
        if !text.is_empty() {
            self.reply.reasoning.push_str(text);
            deltas.push(Delta::Thought(text.to_string()));
        }
    }

    /// Reads a part of the content: one provider sends parts that are text, or thoughts that consist of parts again.
    /// Returns whether the part is one of these.
    fn part(&mut self, part: &Json, deltas: &mut Vec<Delta>) -> bool {
        let text = match part {
            Json::String(text) => Some(text.as_str()),
            part => part
                .get("text")
                .or(part.get("refusal"))
                .and_then(Json::as_str),
        };
        if let Some(text) = text {
            match part.get("refusal") {
                None => self.text(text, deltas),
                Some(_) => self.reply.refusal.push_str(text),
            }
            return true;
        }
        match part.get("thinking") {
            Some(Json::String(text)) => self.thought(text, deltas),
            Some(Json::Array(parts)) => {
                let texts = parts.iter().filter_map(|it| it.get("text")?.as_str());
                texts.for_each(|text| self.thought(text, deltas));
            }
            _ => return false,
        }
        true
    }

    /// Joins the pieces of one detail, which follow one another with the same number and type.
    fn detail(&mut self, piece: &Map<String, Json>) {
        const JOINED: [&str; 3] = ["data", "summary", "text"];
        let is_same = |last: &Map<String, Json>| {
            ["index", "type"]
                .iter()
                .all(|key| last.get(*key) == piece.get(*key))
                && piece.contains_key("index")
        };
        let Some(last) = self.details.last_mut().filter(|last| is_same(last)) else {
            self.details.push(piece.clone());
            return;
        };
        for (key, value) in piece {
            match (last.get_mut(key), value) {
                (_, Json::Null) => {}
                (Some(Json::String(before)), Json::String(more))
                    if JOINED.contains(&key.as_str()) =>
                {
                    before.push_str(more);
                }
                _ => {
                    last.insert(key.clone(), value.clone());
                }
            }
        }
    }

    /// Adds a piece of a tool call. Pieces belong together by `index`; if it is missing, or all have the same, a new id
    /// or a name after a whole call begins another.
    fn tool_call(&mut self, piece: &Json) {
        let text = |pointer: &str| piece.pointer(pointer).and_then(Json::as_str);
        let id = text("/id").filter(|id| !id.is_empty());
        let name = text("/function/name").filter(|name| !name.is_empty());
        let index = piece.get("index").and_then(Json::as_u64);
        let calls = &self.reply.tool_calls;
        let known = match (index, id) {
            (Some(index), _) => self.indexes.iter().rposition(|it| *it == index),
            (None, Some(id)) => calls.iter().rposition(|call| call.id == id),
            (None, None) => calls.len().checked_sub(1),
        };
        let known = known.filter(|at| !begins(&calls[*at], id, name));
        let at = known.unwrap_or_else(|| {
            self.reply.tool_calls.push(ToolCall::default());
            // Calls without numbers get numbers that no provider uses.
            let unnumbered = u64::MAX - self.indexes.len() as u64;
            self.indexes.push(index.unwrap_or(unnumbered));
            self.reply.tool_calls.len() - 1
        });
        let call = &mut self.reply.tool_calls[at];
        if let Some(id) = id {
            call.id = id.to_string();
        }
        match name {
            // Some servers repeat the whole name in each piece.
            Some(name) if name != call.name => call.name.push_str(name),
            _ => {}
        }
        match piece.pointer("/function/arguments") {
            Some(Json::String(arguments)) => call.arguments.push_str(arguments),
            Some(arguments @ Json::Object(_)) => call.arguments = json::compact(arguments),
            _ => {}
        }
    }

    fn finish_reason(&mut self, choice: &Json, whole: &[u8]) -> Result<(), LlmError> {
        let reason = family::text_of(&self.provider, choice, "finish_reason", whole)?;
        let Some(reason) = reason else {
            return Ok(());
        };
        let reason = match reason {
            "" => return Ok(()),
            "end_turn" | "eos" | "stop_sequence" => "stop",
            "function_call" | "tool_use" => "tool_calls",
            "max_tokens" | "model_length" => "length",
            "safety" => "content_filter",
            "abort" | "error" | "insufficient_system_resource" => {
                let message = format!("it ended the answer with `{reason}`");
                let error = json!({"code": 503, "message": message});
                return Err(LlmError::from_event(&self.provider, &error));
            }
            reason => reason,
        };
        self.reply.finish_reason = reason.to_string();
        Ok(())
    }
}

/// Tells whether a piece begins a new call, and does not continue the one with its number.
fn begins(call: &ToolCall, id: Option<&str>, name: Option<&str>) -> bool {
    if name.is_none() || call.name.is_empty() {
        return false;
    }
    match id {
        Some(id) if !call.id.is_empty() => id != call.id,
        _ => is_whole(&call.arguments),
    }
}

fn is_whole(arguments: &str) -> bool {
    serde_json::from_str::<Map<String, Json>>(arguments).is_ok()
}

impl family::Stream for Stream {
    fn push(&mut self, event: &sse::Event) -> Result<Vec<Delta>, LlmError> {
        self.take(&event.data)
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn chars(&self) -> usize {
        self.reply.content.chars().count()
    }

    fn finish(self: Box<Self>) -> Result<Reply, LlmError> {
        if !self.done && self.reply.finish_reason.is_empty() {
            return Err(LlmError::BrokeOff {
                chars: self.chars(),
                provider: self.provider,
                cause: "the stream ended without a finish reason".into(),
            });
        }
        if !self.has_message {
            let cause = "it has no `message`";
            return Err(family::malformed(&self.provider, cause, b""));
        }
        let mut reply = self.reply;
        // A call without a name and arguments is not a call.
        let calls = &mut reply.tool_calls;
        calls.retain(|it| !it.name.is_empty() || !it.arguments.is_empty());
        call_id::complete(&reply.id, &mut reply.tool_calls);
        if !reply.tool_calls.is_empty() && matches!(reply.finish_reason.as_str(), "" | "stop") {
            reply.finish_reason = "tool_calls".into();
        }
        let mut kept = Map::new();
        if !self.details.is_empty() {
            kept.insert("reasoning_details".into(), json!(self.details));
        }
        if !self.thoughts.is_empty() && !reply.tool_calls.is_empty() {
            kept.insert("reasoning_content".into(), json!(self.thoughts));
        }
        reply.opaque = (!kept.is_empty()).then(|| Opaque {
            family: ID.into(),
            blocks: Json::Object(kept),
        });
        Ok(reply)
    }
}

fn usage(json: &Json) -> Option<Usage> {
    let count = |pointer: &str| {
        let number = json.pointer(pointer)?;
        let whole = || number.as_f64().map(|it| it as i64);
        number.as_i64().or_else(whole).filter(|it| *it >= 0)
    };
    let (prompt, completion) = (count("/prompt_tokens"), count("/completion_tokens"));
    if prompt.is_none() && completion.is_none() {
        return None;
    }
    let (prompt, completion) = (prompt.unwrap_or(0), completion.unwrap_or(0));
    Some(Usage {
        prompt,
        completion,
        total: count("/total_tokens").unwrap_or(prompt.saturating_add(completion)),
        cached: count("/prompt_tokens_details/cached_tokens")
            .or_else(|| count("/prompt_cache_hit_tokens"))
            .or_else(|| count("/cached_tokens")),
        cache_write: count("/prompt_tokens_details/cache_write_tokens"),
        reasoning: count("/completion_tokens_details/reasoning_tokens"),
        estimated: None,
    })
}
