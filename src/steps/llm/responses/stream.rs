//! Answers of the Responses format: converts events and complete answers to a reply.
//!
//! An answer is a list of items. A complete item replaces what its pieces made, and the complete answer in the last
//! event replaces them all; if a server leaves those out, the pieces are enough. Unknown events and items are ignored;
//! a malformed known one is an error.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::super::call::{Delta, Reply, ToolCall, Usage};
use super::super::call_id;
use super::super::citations::{self, Citation};
use super::super::error::LlmError;
use super::super::family::{self, count, malformed};
use super::super::places::Mark;
use crate::sse;

/// Joins a streamed answer.
pub(super) struct Stream {
    provider: String,
    reply: Reply,
    items: BTreeMap<u64, Item>,
    thoughts: Thoughts,
    chars: usize,
    done: bool,
}

/// An incomplete item.
#[derive(Default)]
struct Item {
    /// The item as it began, or in its final form.
    json: Json,
    text: String,
    refusal: String,
    arguments: String,
    thought: String,
}

/// Whether the next thought begins a paragraph.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Thoughts {
    None,
    Running,
    NewPart,
}

/// Reads a whole answer.
pub(super) fn whole(provider: &str, body: &[u8]) -> Result<Reply, LlmError> {
    let json = family::parsed(provider, "the answer", body)?;
    if json.get("error").is_some_and(|it| !it.is_null()) {
        return Err(LlmError::from_event(provider, &json));
    }
    if json.get("output").and_then(Json::as_array).is_none() {
        return Err(malformed(provider, "it has no `output`", body));
    }
    let mut stream = Stream::new(provider);
    stream.ended("response.completed", &json)?;
    Ok(stream.reply())
}

/// Returns the meaning of a kept item.
pub(super) fn mark(kept: &Json) -> Mark<'_> {
    let length = kept.get("length").and_then(Json::as_u64);
    let length = length.and_then(|it| usize::try_from(it).ok());
    let id = kept.get("call_id").and_then(Json::as_str);
    match (kept["type"].as_str(), length, id) {
        (Some("message"), Some(length), _) => Mark::Text(length),
        (Some("function_call"), _, Some(id)) if kept.get("name").is_none() => Mark::Call(id),
        _ => Mark::Block,
    }
}

/// Returns a kept message with this text.
pub(super) fn with_text(kept: &Json, text: &str) -> Json {
    let mut item = kept.clone();
    if let Some(item) = item.as_object_mut() {
        item.shift_remove("length");
    }
    item["content"] = json!([{"type": "output_text", "text": text, "annotations": []}]);
    item
}

impl Stream {
    pub(super) fn new(provider: &str) -> Stream {
        Stream {
            provider: provider.to_string(),
            reply: Reply::default(),
            items: BTreeMap::new(),
            thoughts: Thoughts::None,
            chars: 0,
            done: false,
        }
    }

    fn take(&mut self, event: &sse::Event) -> Result<Vec<Delta>, LlmError> {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(Vec::new());
        }
        let json = family::parsed(&self.provider, "an event", data.as_bytes())?;
        let kind = json.get("type").and_then(Json::as_str);
        let kind = kind.unwrap_or(event.name.as_str());
        if kind == "error" || kind.is_empty() && json.get("error").is_some_and(|it| !it.is_null()) {
            return Err(LlmError::from_event(&self.provider, &json));
        }
        let response = json.get("response").unwrap_or(&Json::Null);
        match kind {
            "response.created" | "response.in_progress" | "response.queued" => {
                self.common(response);
            }
            "response.output_item.added" | "response.output_item.done" => {
                let Some(item) = json.get("item").filter(|it| it.is_object()) else {
                    return Err(self.bad("an event has no `item`", data));
                };
                self.item(&json, Some(item), data)?.json = item.clone();
            }
            "response.output_text.delta" => {
                let text = self.text(&json, "delta", data)?;
                self.item(&json, None, data)?.text.push_str(&text);
                self.chars += text.chars().count();
                return Ok(vec![Delta::Text(text)]);
            }
            "response.refusal.delta" => {
                let text = self.text(&json, "delta", data)?;
                self.item(&json, None, data)?.refusal.push_str(&text);
            }
            "response.function_call_arguments.delta" => {
                let text = self.text(&json, "delta", data)?;
                self.item(&json, None, data)?.arguments.push_str(&text);
            }
            "response.function_call_arguments.done" => {
                let text = self.text(&json, "arguments", data)?;
                self.item(&json, None, data)?.arguments = text;
            }
            "response.reasoning_summary_part.added" if self.thoughts == Thoughts::Running => {
                self.thoughts = Thoughts::NewPart;
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                return self.thought(&json, data);
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                if !response.is_object() {
                    return Err(self.bad("the last event has no `response`", data));
                }
                self.ended(kind, response)?;
            }
            _ => {}
        }
        Ok(Vec::new())
    }

    fn bad(&self, cause: &str, data: &str) -> LlmError {
        malformed(&self.provider, cause, data.as_bytes())
    }

    fn text(&self, json: &Json, key: &str, data: &str) -> Result<String, LlmError> {
        let text = json.get(key).and_then(Json::as_str).map(str::to_string);
        text.ok_or_else(|| self.bad(&format!("an event has no `{key}`"), data))
    }

    /// Returns the item that an event refers to: by its index, by its id, or the last one. Some servers send only one
    /// of them.
    fn item(
        &mut self,
        event: &Json,
        item: Option<&Json>,
        data: &str,
    ) -> Result<&mut Item, LlmError> {
        let id = item.map_or(event.get("item_id"), |it| it.get("id"));
        let id = id.and_then(Json::as_str).filter(|it| !it.is_empty());
        let last = self.items.last_key_value().map(|it| *it.0);
        let index = match (event.get("output_index"), id) {
            (Some(index), _) => match index.as_u64() {
                Some(index) => index,
                None => return Err(self.bad("an `output_index` is not a number", data)),
            },
            (None, Some(id)) => {
                let known = self.items.iter().find(|(_, it)| it.json["id"] == id);
                let next = || last.map_or(0, |it| it.saturating_add(1));
                known.map_or_else(next, |it| *it.0)
            }
            (None, None) => last.unwrap_or(0),
        };
        Ok(self.items.entry(index).or_default())
    }

    fn thought(&mut self, json: &Json, data: &str) -> Result<Vec<Delta>, LlmError> {
        let mut text = self.text(json, "delta", data)?;
        if self.thoughts == Thoughts::NewPart {
            text.insert_str(0, "\n\n");
        }
        self.thoughts = Thoughts::Running;
        self.item(json, None, data)?.thought.push_str(&text);
        Ok(vec![Delta::Thought(text)])
    }

    fn common(&mut self, response: &Json) {
        let text = |key: &str| response.get(key).and_then(Json::as_str);
        if let Some(model) = text("model").filter(|it| !it.is_empty()) {
            self.reply.model = model.to_string();
        }
        if let Some(id) = text("id").filter(|it| !it.is_empty()) {
            self.reply.id = id.to_string();
        }
        if let Some(usage) = response.get("usage").and_then(usage) {
            self.reply.usage = Some(usage);
        }
    }

    /// Takes the answer from the last event.
    fn ended(&mut self, kind: &str, response: &Json) -> Result<(), LlmError> {
        self.common(response);
        let status = response.get("status").and_then(Json::as_str);
        let status = status.or(kind.strip_prefix("response."));
        if status == Some("failed") || response.get("error").is_some_and(Json::is_object) {
            return Err(LlmError::from_event(&self.provider, response));
        }
        if let Some(output) = response.get("output").and_then(Json::as_array)
            && !output.is_empty()
        {
            if !output.iter().all(Json::is_object) {
                let text = response.to_string();
                return Err(self.bad("an item of `output` is not an object", &text));
            }
            for (at, item) in output.iter().enumerate() {
                self.items.entry(at as u64).or_default().json = item.clone();
            }
            self.items.retain(|at, _| *at < output.len() as u64);
        }
        let why = response.pointer("/incomplete_details/reason");
        self.reply.finish_reason = match (status, why.and_then(Json::as_str)) {
            (_, Some("max_output_tokens" | "max_tokens")) => "length",
            (_, Some(reason)) => reason,
            (Some("incomplete"), None) => "length",
            (Some("cancelled"), None) => "cancelled",
            _ => "stop",
        }
        .to_string();
        if self.items.is_empty() && self.reply.finish_reason == "stop" {
            return Err(self.bad("its `output` is empty", &response.to_string()));
        }
        if let Some(cause) = self.items.values().find_map(Item::misfit) {
            return Err(self.bad(cause, &response.to_string()));
        }
        self.done = true;
        Ok(())
    }

    /// Makes a reply of the received items.
    fn reply(mut self) -> Reply {
        let mut kept = Vec::new();
        for item in std::mem::take(&mut self.items).into_values() {
            item.add(&mut self.reply, &mut kept);
        }
        if self.reply.finish_reason == "stop" {
            let (calls, refusal) = (&self.reply.tool_calls, &self.reply.refusal);
            let reason = match (calls.is_empty(), refusal.is_empty()) {
                (false, _) => "tool_calls",
                (true, false) => "refusal",
                (true, true) => "stop",
            };
            self.reply.finish_reason = reason.to_string();
        }
        call_id::complete(&self.reply.id, &mut self.reply.tool_calls);
        let marks = kept
            .iter_mut()
            .filter(|it| matches!(mark(it), Mark::Call(_)));
        for (mark, call) in marks.zip(&self.reply.tool_calls) {
            mark["call_id"] = json!(call.id);
        }
        self.reply.opaque = super::opaque(kept);
        self.reply
    }
}

impl Item {
    /// Returns the error of a message whose content is not a list of parts with texts.
    fn misfit(&self) -> Option<&'static str> {
        match self.json.get("type").and_then(Json::as_str) {
            Some("message") => {}
            Some(_) if !self.text.is_empty() => return Some("an item with text is not a message"),
            _ => return None,
        }
        let has_pieces = !self.text.is_empty() || !self.refusal.is_empty();
        match self.json.get("content") {
            None | Some(Json::Null) if has_pieces => None,
            None | Some(Json::Null) => Some("a message of it has no `content`"),
            Some(Json::Array(parts)) => {
                let is_text = |part: &Json| match part.get("type").and_then(Json::as_str) {
                    Some("output_text" | "text") => part["text"].is_string(),
                    Some("refusal") => part["refusal"].is_string(),
                    _ => true,
                };
                (!parts.iter().all(is_text)).then_some("a part of a message of it is not text")
            }
            Some(_) => Some("the `content` of a message of it is not a list"),
        }
    }

    fn add(self, reply: &mut Reply, kept: &mut Vec<Json>) {
        let text = |key: &str| self.json.get(key).and_then(Json::as_str);
        match text("type") {
            Some("message") => {
                let (content, refused) = self.spoken();
                self.cite(reply);
                let mut mark = self.json.clone();
                if let Some(mark) = mark.as_object_mut() {
                    mark.shift_remove("content");
                    mark.insert("length".into(), json!(content.chars().count()));
                }
                kept.push(mark);
                reply.content.push_str(&content);
                reply.refusal.push_str(&refused);
            }
            Some("function_call") => {
                let id = text("call_id").or(text("id")).unwrap_or_default();
                let whole = text("arguments").filter(|it| !it.is_empty());
                reply.tool_calls.push(ToolCall {
                    id: id.to_string(),
                    name: text("name").unwrap_or_default().to_string(),
                    arguments: whole.unwrap_or(&self.arguments).to_string(),
                });
                kept.push(json!({"type": "function_call", "call_id": id}));
            }
            Some("reasoning") => {
                let thought = match self.thought.is_empty() {
                    true => summary(&self.json),
                    false => self.thought,
                };
                if !reply.reasoning.is_empty() && !thought.is_empty() && !thought.starts_with('\n')
                {
                    reply.reasoning.push_str("\n\n");
                }
                reply.reasoning.push_str(&thought);
                kept.push(self.json);
            }
            Some(_) => kept.push(self.json),
            // Some servers send no items, only pieces.
            None => {
                reply.content.push_str(&self.text);
                reply.refusal.push_str(&self.refusal);
                reply.reasoning.push_str(&self.thought);
            }
        }
    }

    /// Adds the sources of a message to a reply.
    fn cite(&self, reply: &mut Reply) {
        let parts = self.json.get("content").and_then(Json::as_array);
        let annotations = parts
            .into_iter()
            .flatten()
            .filter_map(|part| part.get("annotations")?.as_array())
            .flatten();
        for annotation in annotations.filter(|it| it["type"] == "url_citation") {
            citations::add(&mut reply.citations, Citation::read(annotation, "url"));
        }
    }

    /// Returns the text of a message, and its refusal.
    fn spoken(&self) -> (String, String) {
        let parts = self.json.get("content").and_then(Json::as_array);
        let Some(parts) = parts.filter(|it| !it.is_empty()) else {
            return (self.text.clone(), self.refusal.clone());
        };
        let of = |kinds: &[&str], key: &str| -> String {
            let parts = parts.iter().filter(|part| {
                let kind = part.get("type").and_then(Json::as_str);
                kind.is_some_and(|it| kinds.contains(&it))
            });
            parts
                .filter_map(|part| part.get(key).and_then(Json::as_str))
                .collect()
        };
        (
            of(&["output_text", "text"], "text"),
            of(&["refusal"], "refusal"),
        )
    }
}

fn summary(item: &Json) -> String {
    let of = |key: &str| {
        let parts = item.get(key).and_then(Json::as_array);
        let texts = parts.into_iter().flatten();
        let texts: Vec<&str> = texts
            .filter_map(|part| part.get("text").and_then(Json::as_str))
            .collect();
        texts.join("\n\n")
    };
    match of("summary") {
        text if text.is_empty() => of("content"),
        text => text,
    }
}

fn usage(json: &Json) -> Option<Usage> {
    let of = |pointer: &str| count(json.pointer(pointer));
    let (prompt, completion) = (of("/input_tokens"), of("/output_tokens"));
    if prompt.is_none() && completion.is_none() {
        return None;
    }
    let (prompt, completion) = (prompt.unwrap_or(0), completion.unwrap_or(0));
    Some(Usage {
        prompt,
        completion,
        total: of("/total_tokens").unwrap_or(prompt + completion),
        cached: of("/input_tokens_details/cached_tokens"),
        cache_write: of("/input_tokens_details/cache_write_tokens"),
        reasoning: of("/output_tokens_details/reasoning_tokens"),
        estimated: None,
    })
}

impl family::Stream for Stream {
    fn push(&mut self, event: &sse::Event) -> Result<Vec<Delta>, LlmError> {
        self.take(event)
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn chars(&self) -> usize {
        self.chars
    }

    fn finish(self: Box<Self>) -> Result<Reply, LlmError> {
        if !self.done {
            return Err(LlmError::BrokeOff {
                chars: self.chars,
                provider: self.provider,
                cause: "the stream ended before the answer was complete".into(),
            });
        }
        Ok(self.reply())
    }
}
