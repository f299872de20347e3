//! Answers of `generateContent`: a stream is a sequence of answers, each with the new parts.
//!
//! The end of a stream is only marked by a finish reason and the end of the connection.

use serde_json::{Map, Value as Json};

use super::ID;
use crate::llm::call::{Delta, Opaque, Reply, ToolCall, Usage};
use crate::llm::call_id;
use crate::llm::citations::{self, Citation};
use crate::llm::error::LlmError;
use crate::llm::family::{self, Stream as _};
use crate::{json, sse};

/// Joins a streamed answer.
pub(super) struct Stream {
    provider: String,
    reply: Reply,
    /// The received parts, with the pieces of one text joined.
    parts: Vec<Json>,
    /// Whether a part must be sent back unchanged: it is signed, or a step of the provider's own tools.
    is_signed: bool,
    /// Whether content was received, even if it is empty.
    has_content: bool,
}

/// Reads a complete answer, or all of a stream at once, for servers that do not send events.
pub(super) fn whole(provider: &str, body: &[u8]) -> Result<Reply, LlmError> {
    let mut stream = Box::new(Stream::new(provider));
    let json = family::parsed(provider, "the answer", body)?;
    stream.chunks(&json, body)?;
    if stream.reply.finish_reason.is_empty() && stream.parts.is_empty() {
        return Err(family::malformed(provider, "it has no `candidates`", body));
    }
    stream.finish()
}

impl Stream {
    pub(super) fn new(provider: &str) -> Stream {
        Stream {
            provider: provider.to_string(),
            reply: Reply::default(),
            parts: Vec::new(),
            is_signed: false,
            has_content: false,
        }
    }

    fn chunks(&mut self, json: &Json, text: &[u8]) -> Result<Vec<Delta>, LlmError> {
        match json {
            Json::Array(chunks) => {
                let mut deltas = Vec::new();
                for chunk in chunks {
                    deltas.extend(self.chunk(chunk, text)?);
                }
                Ok(deltas)
            }
            chunk => self.chunk(chunk, text),
        }
    }

    fn chunk(&mut self, json: &Json, text: &[u8]) -> Result<Vec<Delta>, LlmError> {
        if !json.is_object() {
            return Err(family::malformed(
                &self.provider,
                "it is not an object",
                text,
            ));
        }
        if json.get("error").is_some_and(|error| !error.is_null()) {
            return Err(LlmError::from_event(&self.provider, json));
        }
        let word = |key: &str| json.get(key).and_then(Json::as_str).map(str::to_string);
        if let Some(model) = word("modelVersion") {
            self.reply.model = model;
        }
        if let Some(id) = word("responseId") {
            self.reply.id = id;
        }
        if let Some(usage) = json.get("usageMetadata").and_then(usage) {
            self.reply.usage = Some(usage);
        }
        let blocked = json.pointer("/promptFeedback/blockReason");
        if let Some(reason) = blocked.and_then(Json::as_str) {
            let message = json.pointer("/promptFeedback/blockReasonMessage");
            let message = message.and_then(Json::as_str).map(|it| format!(": {it}"));
            return Err(LlmError::Filtered {
                provider: self.provider.clone(),
                message: format!(
                    "the prompt is blocked ({reason}){}",
                    message.unwrap_or_default()
                ),
            });
        }
        let Some(candidate) = json.pointer("/candidates/0") else {
            return Ok(Vec::new());
        };
        let bad = |cause: &str| Err(family::malformed(&self.provider, cause, text));
        let parts: &[Json] = match candidate.get("content") {
            None | Some(Json::Null) => &[],
            Some(content @ Json::Object(_)) => {
                self.has_content = true;
                match content.get("parts") {
                    None | Some(Json::Null) => &[],
                    Some(Json::Array(parts)) => parts,
                    Some(_) => return bad("its `parts` are not a list"),
                }
            }
            Some(_) => return bad("its `content` is not an object"),
        };
        let is_text = |part: &Json| part.get("text").is_none_or(Json::is_string);
        if !parts.iter().all(|part| part.is_object() && is_text(part)) {
            return bad("a part of it is not text");
        }
        let deltas = parts.iter().filter_map(|it| self.part(it)).collect();
        self.cite(candidate);
        self.finish_reason(candidate, text)?;
        Ok(deltas)
    }

    fn part(&mut self, part: &Json) -> Option<Delta> {
        let part = part.as_object()?;
        self.keep(part);
        if let Some(function) = part.get("functionCall") {
            let text = |key: &str| function.get(key).and_then(Json::as_str).unwrap_or_default();
            self.reply.tool_calls.push(ToolCall {
                id: text("id").to_string(),
                name: text("name").to_string(),
                arguments: match function.get("args") {
                    None | Some(Json::Null) => "{}".to_string(),
                    Some(Json::String(text)) => text.clone(),
                    Some(args) => json::compact(args),
                },
            });
            return None;
        }
        let text = part.get("text")?.as_str().filter(|it| !it.is_empty())?;
        Some(match is_thought(part) {
            true => {
                self.reply.reasoning.push_str(text);
                Delta::Thought(text.to_string())
            }
            false => {
                self.reply.content.push_str(text);
                Delta::Text(text.to_string())
            }
        })
    }

    /// Keeps a part to be sent back. Parts with a signature are not joined with others; thoughts without one have no
    /// use for the model.
    fn keep(&mut self, part: &Map<String, Json>) {
        let is_signed = |part: &Map<String, Json>| part.contains_key("thoughtSignature");
        let is_step = OF_PROVIDER.iter().any(|key| part.contains_key(*key));
        self.is_signed |= is_signed(part) || is_step;
        if is_thought(part) && !is_signed(part) {
            return;
        }
        let is_plain = |part: &Map<String, Json>| part.len() == 1 && part.contains_key("text");
        if is_plain(part) && part["text"] == "" {
            return;
        }
        if is_plain(part)
            && let Some(Json::Object(last)) = self.parts.last_mut()
            && is_plain(last)
            && let (Some(Json::String(before)), Some(Json::String(more))) =
                (last.get_mut("text"), part.get("text"))
        {
            before.push_str(more);
            return;
        }
        self.parts.push(Json::Object(part.clone()));
    }

    /// Adds the sources of a candidate.
    fn cite(&mut self, candidate: &Json) {
        let chunks = candidate.pointer("/groundingMetadata/groundingChunks");
        for chunk in chunks.and_then(Json::as_array).into_iter().flatten() {
            let citation = chunk.get("web").and_then(|web| Citation::read(web, "uri"));
            citations::add(&mut self.reply.citations, citation);
        }
    }

    fn finish_reason(&mut self, candidate: &Json, text: &[u8]) -> Result<(), LlmError> {
        let reason = family::text_of(&self.provider, candidate, "finishReason", text)?;
        let Some(reason) = reason else {
            return Ok(());
        };
        let message = candidate.get("finishMessage").and_then(Json::as_str);
        let reason = match reason {
            "FINISH_REASON_UNSPECIFIED" => return Ok(()),
            "STOP" | "FUNCTION_CALL" => "stop",
            "MAX_TOKENS" => "length",
            "BLOCKLIST"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION"
            | "IMAGE_SAFETY"
            | "LANGUAGE"
            | "MODEL_ARMOR"
            | "PROHIBITED_CONTENT"
            | "RECITATION"
            | "SAFETY"
            | "SPII" => {
                self.reply.refusal = message.unwrap_or(reason).to_string();
                "content_filter"
            }
            "IMAGE_OTHER"
            | "MALFORMED_FUNCTION_CALL"
            | "MALFORMED_RESPONSE"
            | "MISSING_THOUGHT_SIGNATURE"
            | "NO_IMAGE"
            | "OTHER"
            | "TOO_MANY_TOOL_CALLS"
            | "UNEXPECTED_TOOL_CALL" => {
                let message = message.map(|it| format!(": {it}")).unwrap_or_default();
                let cause = format!("the model stopped with {reason}{message}");
                return Err(family::malformed(&self.provider, &cause, text));
            }
            // Unknown reasons are passed on unchanged, as in the other formats.
            other => other,
        };
        self.reply.finish_reason = reason.to_string();
        Ok(())
    }
}

impl family::Stream for Stream {
    fn push(&mut self, event: &sse::Event) -> Result<Vec<Delta>, LlmError> {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(Vec::new());
        }
        let json = family::parsed(&self.provider, "an event", data.as_bytes())?;
        self.chunks(&json, data.as_bytes())
    }

    fn is_done(&self) -> bool {
        false
    }

    fn chars(&self) -> usize {
        self.reply.content.chars().count()
    }

    fn finish(mut self: Box<Self>) -> Result<Reply, LlmError> {
        if self.reply.finish_reason.is_empty() {
            return Err(LlmError::BrokeOff {
                chars: self.chars(),
                provider: self.provider,
                cause: "the stream ended without a finish reason".into(),
            });
        }
        if self.reply.finish_reason == "stop" && !self.has_content {
            let cause = "it has no `content`";
            return Err(family::malformed(&self.provider, cause, b""));
        }
        let mut reply = self.reply;
        call_id::complete(&reply.id, &mut reply.tool_calls);
        let calls = self.parts.iter_mut();
        let calls = calls.filter_map(|part| part.get_mut("functionCall")?.as_object_mut());
        for (kept, call) in calls.zip(&reply.tool_calls) {
            if super::own_id(&call.id).is_none() {
                kept.shift_remove("id");
            }
        }
        if reply.finish_reason == "stop" && !reply.tool_calls.is_empty() {
            reply.finish_reason = "tool_calls".into();
        }
        if self.is_signed {
            reply.opaque = Some(Opaque {
                family: ID.into(),
                blocks: Json::Array(std::mem::take(&mut self.parts)),
            });
        }
        Ok(reply)
    }
}

/// Keys of parts that are steps of the provider's own tools.
const OF_PROVIDER: &[&str] = &[
    "codeExecutionResult",
    "executableCode",
    "toolCall",
    "toolResponse",
];

fn is_thought(part: &Map<String, Json>) -> bool {
    part.get("thought").and_then(Json::as_bool) == Some(true)
}

/// Thoughts are counted separately from the answer, tool results separately from the prompt.
fn usage(json: &Json) -> Option<Usage> {
    let count = |key: &str| json.get(key).and_then(Json::as_i64).filter(|it| *it >= 0);
    let thoughts = count("thoughtsTokenCount");
    let add = |a: Option<i64>, b: Option<i64>| a.unwrap_or(0).saturating_add(b.unwrap_or(0));
    let prompt = add(count("promptTokenCount"), count("toolUsePromptTokenCount"));
    let completion = add(count("candidatesTokenCount"), thoughts);
    json.is_object().then(|| Usage {
        prompt,
        completion,
        total: count("totalTokenCount").unwrap_or(prompt.saturating_add(completion)),
        cached: count("cachedContentTokenCount"),
        cache_write: None,
        reasoning: thoughts,
        estimated: None,
    })
}
