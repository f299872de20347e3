//! Answers of the Messages format: converts events and complete answers to a reply.
//!
//! An answer is a list of blocks. Each is joined from its pieces, in any order of those of several blocks. Unknown
//! events, blocks and pieces are ignored; a malformed known one is an error.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::super::call::{Delta, Reply, ToolCall, Usage};
use super::super::call_id;
use super::super::citations::{self, Citation};
use super::super::error::LlmError;
use super::super::family::{self, ANSWER_TOOL, ANSWER_VALUE_TOOL, malformed};
use super::super::places::Mark;
use crate::{json, sse};

/// Joins a streamed answer.
pub(super) struct Stream {
    provider: String,
    reply: Reply,
    blocks: BTreeMap<u64, Block>,
    usage: Counts,
    chars: usize,
    done: bool,
}

/// An incomplete block.
#[derive(Default)]
struct Block {
    kind: String,
    /// The block as it began, with the additions of its pieces.
    json: Map<String, Json>,
    /// The text of a tool's input, whose pieces are not valid JSON.
    input: String,
}

/// The counts as the provider reports them; later events replace single ones.
#[derive(Default)]
struct Counts {
    input: Option<i64>,
    cache_read: Option<i64>,
    cache_write: Option<i64>,
    output: Option<i64>,
    thinking: Option<i64>,
}

/// Reads a whole answer.
pub(super) fn whole(provider: &str, body: &[u8]) -> Result<Reply, LlmError> {
    let json = family::parsed(provider, "the answer", body)?;
    if is_error(&json) {
        return Err(LlmError::from_event(provider, &json));
    }
    let bad = |cause: &str| malformed(provider, cause, body);
    let Some(content) = json.get("content").and_then(Json::as_array) else {
        return Err(bad("it has no `content`"));
    };
    let mut stream = Stream::new(provider);
    stream.message(&json);
    for (at, block) in content.iter().enumerate() {
        let block = Block::begin(block).ok_or_else(|| bad("a block of it has no `type`"))?;
        if block.is_textless() {
            return Err(bad("a text of it is not text"));
        }
        stream.blocks.insert(at as u64, block);
    }
    stream.stopped(&json, body)?;
    if stream.reply.finish_reason.is_empty() && stream.blocks.is_empty() {
        return Err(bad("its `content` is empty, and it has no `stop_reason`"));
    }
    Ok(stream.reply())
}

/// Returns the meaning of a kept block.
pub(super) fn mark(kept: &Json) -> Mark<'_> {
    let length = kept.get("length").and_then(Json::as_u64);
    let length = length.and_then(|it| usize::try_from(it).ok());
    let id = kept.get("id").and_then(Json::as_str);
    match (kept["type"].as_str(), length, id) {
        (Some("text"), Some(length), _) => Mark::Text(length),
        (Some("tool_use"), _, Some(id)) => Mark::Call(id),
        _ => Mark::Block,
    }
}

fn is_error(json: &Json) -> bool {
    json["type"] == "error" || json.get("error").is_some_and(|it| !it.is_null())
}

impl Stream {
    pub(super) fn new(provider: &str) -> Stream {
        Stream {
            provider: provider.to_string(),
            reply: Reply::default(),
            blocks: BTreeMap::new(),
            usage: Counts::default(),
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
        if is_error(&json) {
            return Err(LlmError::from_event(&self.provider, &json));
        }
        let kind = json.get("type").and_then(Json::as_str);
        match kind.unwrap_or(event.name.as_str()) {
            "message_start" => self.message(json.get("message").unwrap_or(&Json::Null)),
            "content_block_start" => return self.block_start(&json, data),
            "content_block_delta" => return self.block_delta(&json, data),
            "message_delta" => {
                self.usage.take(&json);
                let delta = json.get("delta").unwrap_or(&Json::Null);
                self.stopped(delta, data.as_bytes())?;
            }
            "message_stop" => self.done = true,
            _ => {}
        }
        Ok(Vec::new())
    }

    fn message(&mut self, message: &Json) {
        let text = |key: &str| message.get(key).and_then(Json::as_str);
        if let Some(model) = text("model") {
            self.reply.model = model.to_string();
        }
        if let Some(id) = text("id") {
            self.reply.id = id.to_string();
        }
        self.usage.take(message);
    }

    fn stopped(&mut self, delta: &Json, whole: &[u8]) -> Result<(), LlmError> {
        let reason = family::text_of(&self.provider, delta, "stop_reason", whole)?;
        let Some(reason) = reason else {
            return Ok(());
        };
        self.reply.finish_reason = match reason {
            "end_turn" | "stop_sequence" => "stop",
            "max_tokens" | "model_context_window_exceeded" => "length",
            "tool_use" => "tool_calls",
            other => other,
        }
        .to_string();
        if reason == "refusal" {
            let of = |key: &str| {
                let text = delta.pointer(&format!("/stop_details/{key}"));
                text.and_then(Json::as_str).filter(|it| !it.is_empty())
            };
            self.reply.refusal = of("explanation")
                .or_else(|| of("category"))
                .unwrap_or("it gives no reason")
                .to_string();
        }
        Ok(())
    }

    fn index(&self, json: &Json, data: &str) -> Result<u64, LlmError> {
        let index = json.get("index").and_then(Json::as_u64);
        index.ok_or_else(|| {
            let cause = "a block's event has no `index`";
            malformed(&self.provider, cause, data.as_bytes())
        })
    }

    fn block_start(&mut self, json: &Json, data: &str) -> Result<Vec<Delta>, LlmError> {
        let index = self.index(json, data)?;
        let block = json.get("content_block").and_then(Block::begin);
        let Some(block) = block else {
            let cause = "a block begins without a `type`";
            return Err(malformed(&self.provider, cause, data.as_bytes()));
        };
        if block.is_textless() {
            let cause = "the text of a block is not text";
            return Err(malformed(&self.provider, cause, data.as_bytes()));
        }
        // Most blocks begin empty.
        let text = block.text("text").to_string();
        let thought = block.text("thinking").to_string();
        self.blocks.insert(index, block);
        self.chars += text.chars().count();
        let deltas = [Delta::Text(text), Delta::Thought(thought)];
        let is_some =
            |it: &Delta| !matches!(it, Delta::Text(it) | Delta::Thought(it) if it.is_empty());
        Ok(deltas.into_iter().filter(is_some).collect())
    }

    fn block_delta(&mut self, json: &Json, data: &str) -> Result<Vec<Delta>, LlmError> {
        let index = self.index(json, data)?;
        let bad = |provider: &str, cause: &str| malformed(provider, cause, data.as_bytes());
        let Some(block) = self.blocks.get_mut(&index) else {
            return Err(bad(&self.provider, "a piece of a block that never began"));
        };
        let delta = json.get("delta").unwrap_or(&Json::Null);
        let text = |key: &str| match delta.get(key).and_then(Json::as_str) {
            Some(text) => Ok(text),
            None => Err(bad(&self.provider, &format!("a piece has no `{key}`"))),
        };
        match delta.get("type").and_then(Json::as_str) {
            None => Err(bad(&self.provider, "a piece has no `type`")),
            Some("text_delta") => {
                let text = text("text")?;
                // Text of another kind of block would be shown, but missing from the answer.
                if block.text("type") != "text" {
                    return Err(bad(&self.provider, "text for a block that is not text"));
                }
                block.add("text", text);
                self.chars += text.chars().count();
                Ok(vec![Delta::Text(text.to_string())])
            }
            Some("thinking_delta") => {
                let text = text("thinking")?;
                block.add("thinking", text);
                Ok(vec![Delta::Thought(text.to_string())])
            }
            Some("signature_delta") => {
                block.add("signature", text("signature")?);
                Ok(Vec::new())
            }
            Some("input_json_delta") => {
                let text = text("partial_json")?;
                block.input.push_str(text);
                if block.text("name") != ANSWER_TOOL {
                    return Ok(Vec::new());
                }
                self.chars += text.chars().count();
                Ok(vec![Delta::Text(text.to_string())])
            }
            Some("citations_delta") => {
                block.cite(delta.get("citation"));
                Ok(Vec::new())
            }
            Some(_) => Ok(Vec::new()),
        }
    }

    /// Makes a reply of the received blocks.
    fn reply(mut self) -> Reply {
        let mut kept = Vec::new();
        let mut answer = None;
        for block in std::mem::take(&mut self.blocks).into_values() {
            match block.kind.as_str() {
                "text" => {
                    let text = block.text("text");
                    let mut mark = json!({"type": "text", "length": text.chars().count()});
                    if let Some(cited) = block.citations() {
                        for citation in cited.as_array().into_iter().flatten() {
                            let citation = Citation::read(citation, "url");
                            citations::add(&mut self.reply.citations, citation);
                        }
                        mark["citations"] = cited.clone();
                    }
                    kept.push(mark);
                    self.reply.content.push_str(text);
                }
                "tool_use" => match block.text("name") {
                    ANSWER_TOOL => answer = Some(block.arguments()),
                    ANSWER_VALUE_TOOL => answer = Some(block.answer()),
                    _ => {
                        let call = block.call();
                        kept.push(json!({"type": "tool_use", "id": call.id}));
                        self.reply.tool_calls.push(call);
                    }
                },
                _ => {
                    if block.kind == "thinking" {
                        self.reply.reasoning.push_str(block.text("thinking"));
                    }
                    kept.push(Json::Object(block.finished()));
                }
            }
        }
        // The answer by a tool is the content; text around it is not. With other calls, it is too early.
        if let Some(answer) = answer
            && self.reply.tool_calls.is_empty()
        {
            kept.retain(|it| !matches!(mark(it), Mark::Text(_)));
            kept.push(json!({"type": "text", "length": answer.chars().count()}));
            self.reply.content = answer;
            if self.reply.finish_reason == "tool_calls" {
                self.reply.finish_reason = "stop".to_string();
            }
        }
        call_id::complete(&self.reply.id, &mut self.reply.tool_calls);
        let marks = kept
            .iter_mut()
            .filter(|it| matches!(mark(it), Mark::Call(_)));
        for (mark, call) in marks.zip(&self.reply.tool_calls) {
            mark["id"] = json!(call.id);
        }
        self.reply.opaque = super::opaque(kept);
        self.reply.usage = self.usage.usage();
        self.reply
    }
}

impl Block {
    fn begin(json: &Json) -> Option<Block> {
        let json = json.as_object()?;
        Some(Block {
            kind: json.get("type")?.as_str()?.to_string(),
            json: json.clone(),
            input: String::new(),
        })
    }

    /// Tells whether it is a text block whose text is not a string.
    fn is_textless(&self) -> bool {
        let text = self.json.get("text");
        self.kind == "text" && text.is_some_and(|text| !text.is_string())
    }

    fn text(&self, key: &str) -> &str {
        self.json
            .get(key)
            .and_then(Json::as_str)
            .unwrap_or_default()
    }

    fn add(&mut self, key: &str, text: &str) {
        match self.json.get_mut(key) {
            Some(Json::String(before)) => before.push_str(text),
            _ => {
                self.json.insert(key.to_string(), Json::from(text));
            }
        }
    }

    fn cite(&mut self, citation: Option<&Json>) {
        let Some(citation) = citation else { return };
        match self.json.get_mut("citations") {
            Some(Json::Array(before)) => before.push(citation.clone()),
            _ => {
                self.json.insert("citations".into(), json!([citation]));
            }
        }
    }

    /// Returns the sources of a text, if it has any.
    fn citations(&self) -> Option<&Json> {
        let citations = self.json.get("citations")?;
        citations
            .as_array()
            .is_some_and(|it| !it.is_empty())
            .then_some(citations)
    }

    /// Returns the input as the model wrote it.
    fn arguments(&self) -> String {
        if !self.input.trim().is_empty() {
            return self.input.clone();
        }
        let input = self.json.get("input").filter(|it| !it.is_null());
        input.map_or_else(|| "{}".to_string(), json::compact)
    }

    /// Returns the value under `answer` of the input.
    fn answer(&self) -> String {
        let arguments = self.arguments();
        match json::read_integers(arguments.as_bytes()) {
            Ok(json) => json.get("answer").map_or(arguments, json::compact),
            Err(_) => arguments,
        }
    }

    fn call(&self) -> ToolCall {
        ToolCall {
            id: self.text("id").to_string(),
            name: self.text("name").to_string(),
            arguments: self.arguments(),
        }
    }

    /// Returns the block as if it had been sent in one piece.
    fn finished(mut self) -> Map<String, Json> {
        if !self.input.trim().is_empty()
            && let Ok(input) = json::read_integers(self.input.as_bytes())
        {
            self.json.insert("input".into(), input);
        }
        self.json
    }
}

impl Counts {
    fn take(&mut self, holder: &Json) {
        let count = |key: &str| {
            let count = holder.pointer(&format!("/usage/{key}"));
            family::count(count)
        };
        let put = |place: &mut Option<i64>, found: Option<i64>| *place = found.or(*place);
        put(&mut self.input, count("input_tokens"));
        put(&mut self.cache_read, count("cache_read_input_tokens"));
        put(&mut self.cache_write, count("cache_creation_input_tokens"));
        put(&mut self.output, count("output_tokens"));
        put(
            &mut self.thinking,
            count("output_tokens_details/thinking_tokens"),
        );
    }

    /// The provider counts tokens read from and written to its cache separately from the input.
    fn usage(&self) -> Option<Usage> {
        if self.input.is_none() && self.output.is_none() {
            return None;
        }
        let of = |count: Option<i64>| count.unwrap_or(0);
        let prompt = of(self.input)
            .saturating_add(of(self.cache_read))
            .saturating_add(of(self.cache_write));
        let completion = of(self.output);
        Some(Usage {
            prompt,
            completion,
            total: prompt.saturating_add(completion),
            cached: self.cache_read,
            cache_write: self.cache_write,
            reasoning: self.thinking,
            estimated: None,
        })
    }
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
        if !self.done && self.reply.finish_reason.is_empty() {
            return Err(LlmError::BrokeOff {
                chars: self.chars,
                provider: self.provider,
                cause: "the stream ended without a stop reason".into(),
            });
        }
        Ok(self.reply())
    }
}
