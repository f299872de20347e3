//! Answers of Converse: complete ones, and streams of blocks in pieces.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::ID;
use crate::llm::call::{Delta, Opaque, Reply, ToolCall, Usage};
use crate::llm::call_id;
use crate::llm::error::LlmError;
use crate::llm::family::{self, ANSWER_TOOL, ANSWER_VALUE_TOOL, Stream as _};
use crate::{json, sse};

/// Joins a streamed answer.
pub(super) struct Stream {
    provider: String,
    reply: Reply,
    blocks: BTreeMap<u64, Block>,
    done: bool,
}

/// An incomplete block of the answer.
#[derive(Default)]
struct Block {
    text: String,
    call: Option<ToolCall>,
    thought: String,
    signature: String,
    /// Thoughts that only the provider can read.
    redacted: String,
}

/// Reads a whole answer.
pub(super) fn whole(provider: &str, body: &[u8]) -> Result<Reply, LlmError> {
    let json = family::parsed(provider, "the answer", body)?;
    let mut stream = Box::new(Stream::new(provider));
    let Some(content) = json
        .pointer("/output/message/content")
        .and_then(Json::as_array)
    else {
        return Err(family::malformed(provider, "it has no `output`", body));
    };
    for (at, block) in content.iter().enumerate() {
        check_text(provider, block, body)?;
        stream.whole_block(at as u64, block);
    }
    stream.stop(&json, body)?;
    stream.metadata(&json);
    stream.finish()
}

/// Rejects a block whose text is not a string.
fn check_text(provider: &str, block: &Json, whole: &[u8]) -> Result<(), LlmError> {
    match block.get("text") {
        None | Some(Json::String(_)) => Ok(()),
        Some(_) => Err(family::malformed(
            provider,
            "the text of a block is not text",
            whole,
        )),
    }
}

impl Stream {
    pub(super) fn new(provider: &str) -> Stream {
        Stream {
            provider: provider.to_string(),
            reply: Reply::default(),
            blocks: BTreeMap::new(),
            done: false,
        }
    }

    fn whole_block(&mut self, at: u64, block: &Json) {
        if let Some(call) = block.get("toolUse") {
            self.start(at, &json!({"toolUse": call}));
            let input = call.get("input").map(json::compact).unwrap_or_default();
            self.delta(at, &json!({"toolUse": {"input": input}}));
        }
        if let Some(text) = block.get("text") {
            self.delta(at, &json!({"text": text}));
        }
        if let Some(thought) = block.get("reasoningContent") {
            let flat = thought.get("reasoningText").unwrap_or(thought);
            self.delta(at, &json!({"reasoningContent": flat}));
        }
    }

    fn start(&mut self, at: u64, start: &Json) {
        let Some(call) = start.get("toolUse") else {
            return;
        };
        let text = |key: &str| call.get(key).and_then(Json::as_str).unwrap_or_default();
        self.blocks.entry(at).or_default().call = Some(ToolCall {
            id: text("toolUseId").to_string(),
            name: text("name").to_string(),
            arguments: String::new(),
        });
    }

    fn delta(&mut self, at: u64, delta: &Json) -> Option<Delta> {
        let text = |pointer: &str| {
            let text = delta.pointer(pointer).and_then(Json::as_str);
            text.filter(|it| !it.is_empty())
        };
        let block = self.blocks.entry(at).or_default();
        if let Some(piece) = text("/toolUse/input") {
            let call = block.call.get_or_insert_default();
            call.arguments.push_str(piece);
            // The arguments of the answer tool are the answer.
            let is_answer = call.name == ANSWER_TOOL;
            return is_answer.then(|| Delta::Text(piece.to_string()));
        }
        if let Some(piece) = text("/reasoningContent/signature") {
            block.signature.push_str(piece);
        }
        if let Some(piece) = text("/reasoningContent/redactedContent") {
            block.redacted.push_str(piece);
        }
        if let Some(piece) = text("/reasoningContent/text") {
            block.thought.push_str(piece);
            return Some(Delta::Thought(piece.to_string()));
        }
        let piece = text("/text")?;
        block.text.push_str(piece);
        Some(Delta::Text(piece.to_string()))
    }

    fn stop(&mut self, json: &Json, text: &[u8]) -> Result<(), LlmError> {
        let reason = match family::text_of(&self.provider, json, "stopReason", text)? {
            None => return Ok(()),
            Some("end_turn" | "stop_sequence") => "stop",
            Some("tool_use") => "tool_calls",
            Some("max_tokens" | "model_context_window_exceeded") => "length",
            Some("guardrail_intervened") => {
                self.reply.refusal = "a guardrail intervened".into();
                "content_filter"
            }
            Some("content_filtered") => "content_filter",
            Some(reason @ ("malformed_model_output" | "malformed_tool_use")) => {
                let cause = format!("the model stopped with {reason}");
                return Err(family::malformed(&self.provider, &cause, text));
            }
            Some(other) => other,
        };
        self.reply.finish_reason = reason.to_string();
        Ok(())
    }

    fn metadata(&mut self, json: &Json) {
        if let Some(usage) = json.get("usage").and_then(usage) {
            self.reply.usage = Some(usage);
        }
        let model = json.pointer("/trace/promptRouter/invokedModelId");
        if let Some(model) = model.and_then(Json::as_str) {
            self.reply.model = model.to_string();
        }
    }

    fn event(&mut self, event: &sse::Event) -> Result<Option<Delta>, LlmError> {
        let text = event.data.as_bytes();
        if event.name.ends_with("Exception") || event.name == "error" {
            return Err(self.exception(event));
        }
        let json = family::parsed(&self.provider, "an event", text)?;
        let at = json.get("contentBlockIndex").and_then(Json::as_u64);
        let at = at.unwrap_or_default();
        match event.name.as_str() {
            "contentBlockStart" => {
                if let Some(start) = json.get("start") {
                    self.start(at, start);
                }
            }
            "contentBlockDelta" => {
                let Some(delta) = json.get("delta") else {
                    return Ok(None);
                };
                check_text(&self.provider, delta, text)?;
                return Ok(self.delta(at, delta));
            }
            "messageStop" => self.stop(&json, text)?,
            "metadata" => {
                self.metadata(&json);
                self.done = true;
            }
            // `messageStart`, `contentBlockStop`, and future events.
            _ => {}
        }
        Ok(None)
    }

    fn exception(&self, event: &sse::Event) -> LlmError {
        let event_json: Json = serde_json::from_str(&event.data).unwrap_or_default();
        let status = match event.name.as_str() {
            "accessDeniedException" => 403,
            "internalServerException" => 500,
            "modelStreamErrorException" => 424,
            "modelTimeoutException" => 408,
            "resourceNotFoundException" => 404,
            "serviceUnavailableException" => 503,
            "throttlingException" => 429,
            "validationException" => 400,
            _ => 500,
        };
        let original = event_json.get("originalStatusCode").and_then(Json::as_u64);
        let message = event_json
            .get("message")
            .or(event_json.get("originalMessage"))
            .and_then(Json::as_str)
            .unwrap_or(&event.name);
        let kind = event_json
            .get("__type")
            .and_then(Json::as_str)
            .unwrap_or(&event.name);
        let code = original.unwrap_or(status);
        let error = json!({"code": code, "message": message, "__type": kind});
        LlmError::from_event(&self.provider, &error)
    }
}

impl family::Stream for Stream {
    fn push(&mut self, event: &sse::Event) -> Result<Vec<Delta>, LlmError> {
        Ok(self.event(event)?.into_iter().collect())
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn chars(&self) -> usize {
        let texts = self.blocks.values().map(|it| it.text.chars().count());
        texts.sum()
    }

    fn finish(self: Box<Self>) -> Result<Reply, LlmError> {
        if self.reply.finish_reason.is_empty() {
            return Err(LlmError::BrokeOff {
                chars: self.chars(),
                provider: self.provider,
                cause: "the stream ended without a stop reason".into(),
            });
        }
        let mut reply = self.reply;
        let (mut kept, mut is_signed, mut is_answer) = (Vec::new(), false, false);
        for block in self.blocks.into_values() {
            is_signed |= !block.signature.is_empty() || !block.redacted.is_empty();
            kept.extend(block.kept());
            if let Some(answer) = block.answer() {
                // The text around it is not part of the answer.
                reply.content = answer;
                is_answer = true;
                continue;
            }
            block.add_to(&mut reply, is_answer);
        }
        call_id::complete(&reply.id, &mut reply.tool_calls);
        let calls = kept.iter_mut().filter_map(|it| it.get_mut("toolUse"));
        for (kept, call) in calls.zip(&reply.tool_calls) {
            kept["toolUseId"] = json!(call_id::fitting(&call.id));
        }
        if is_answer && reply.tool_calls.is_empty() && reply.finish_reason == "tool_calls" {
            reply.finish_reason = "stop".into();
        }
        if is_signed && !is_answer {
            reply.opaque = Some(Opaque {
                family: ID.into(),
                blocks: Json::Array(kept),
            });
        }
        Ok(reply)
    }
}

impl Block {
    /// Returns the answer in the arguments of a tool, if it is the answer tool.
    fn answer(&self) -> Option<String> {
        let call = self.call.as_ref()?;
        match call.name.as_str() {
            ANSWER_TOOL => Some(call.arguments.clone()),
            ANSWER_VALUE_TOOL => {
                let arguments = json::read_integers(call.arguments.as_bytes()).ok();
                let answer = arguments.as_ref().and_then(|it| it.get("answer"));
                Some(answer.map_or(call.arguments.clone(), json::compact))
            }
            _ => None,
        }
    }

    /// Returns the block in the form in which it is sent back.
    fn kept(&self) -> Option<Json> {
        if let Some(call) = &self.call {
            let input = super::arguments(call);
            return Some(
                json!({"toolUse": {"toolUseId": call.id, "name": call.name, "input": input}}),
            );
        }
        if !self.redacted.is_empty() {
            return Some(json!({"reasoningContent": {"redactedContent": self.redacted}}));
        }
        if !self.thought.is_empty() || !self.signature.is_empty() {
            let mut thought = json!({"text": self.thought});
            if !self.signature.is_empty() {
                thought["signature"] = json!(self.signature);
            }
            return Some(json!({"reasoningContent": {"reasoningText": thought}}));
        }
        (!self.text.trim().is_empty()).then(|| json!({"text": self.text}))
    }

    fn add_to(self, reply: &mut Reply, is_answered: bool) {
        reply.reasoning.push_str(&self.thought);
        if !is_answered {
            reply.content.push_str(&self.text);
        }
        if let Some(mut call) = self.call {
            if call.arguments.is_empty() {
                call.arguments = "{}".into();
            }
            reply.tool_calls.push(call);
        }
    }
}

/// Tokens read from and written to the cache are counted separately from the rest of the prompt.
fn usage(json: &Json) -> Option<Usage> {
    let count = |key: &str| json.get(key).and_then(Json::as_i64).filter(|it| *it >= 0);
    let (input, completion) = (count("inputTokens")?, count("outputTokens").unwrap_or(0));
    let read = count("cacheReadInputTokens");
    let write = count("cacheWriteInputTokens");
    let prompt = [read, write]
        .into_iter()
        .flatten()
        .fold(input, i64::saturating_add);
    Some(Usage {
        prompt,
        completion,
        total: prompt.saturating_add(completion),
        cached: read,
        cache_write: write,
        reasoning: None,
        estimated: None,
    })
}
