//! The chat completions wire format: calls to JSON, JSON and stream events to replies.
//!
//! Pure: bytes in, data out. What one provider does differently stands in its [`Dialect`].

use reqwest::Url;
use serde_json::{Map, Value as Json, json};

use super::call::{Call, Delta, Message, Output, Part, Reply, Role, ToolCall, ToolChoice, Usage};
use super::capability::Capability;
use super::dialect::{AskUsage, Dialect, Effort};
use super::error::LlmError;
use super::family::{self, Family};
use crate::sse;

/// The format.
pub struct ChatCompletions;

impl Family for ChatCompletions {
    fn id(&self) -> &'static str {
        "chat-completions-compatible"
    }

    fn address(&self, base: &Url, _call: &Call) -> Url {
        family::below(base, "chat/completions")
    }

    fn encode(&self, call: &Call, dialect: &Dialect) -> Json {
        encode(call, dialect)
    }

    fn decode(&self, provider: &str, body: &[u8]) -> Result<Reply, LlmError> {
        decode(provider, body)
    }

    fn stream(&self, provider: &str) -> Box<dyn family::Stream> {
        Box::new(Stream::new(provider))
    }
}

/// Returns the body of a streamed request.
pub fn encode(call: &Call, dialect: &Dialect) -> Json {
    let mut body = Map::new();
    body.insert("model".into(), json!(call.model));
    body.insert("messages".into(), messages(call, dialect));
    if !call.tools.is_empty() {
        let tools = call.tools.iter().map(|tool| {
            let mut function = json!({"name": tool.name, "parameters": tool.parameters});
            if let Some(description) = &tool.description {
                function["description"] = json!(description);
            }
            json!({"type": "function", "function": function})
        });
        body.insert("tools".into(), tools.collect());
        match call.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::Required => body.insert("tool_choice".into(), json!(dialect.chat.required)),
            ToolChoice::None => body.insert("tool_choice".into(), json!("none")),
        };
    }
    options(call, dialect, &mut body);
    if let Some(format) = response_format(&call.output, dialect) {
        body.insert("response_format".into(), format);
    }
    if dialect.can(Capability::Streaming) {
        body.insert("stream".into(), json!(true));
    }
    match dialect.chat.usage {
        AskUsage::StreamOptions if dialect.can(Capability::Streaming) => {
            body.insert("stream_options".into(), json!({"include_usage": true}));
        }
        AskUsage::Include => {
            body.insert("usage".into(), json!({"include": true}));
        }
        AskUsage::StreamOptions | AskUsage::Unasked => {}
    }
    for (key, value) in &call.extra {
        body.insert(key.clone(), value.clone());
    }
    Json::Object(body)
}

fn options(call: &Call, dialect: &Dialect, body: &mut Map<String, Json>) {
    let options = &call.options;
    let mut put = |key: &str, value: Option<Json>| {
        if let Some(value) = value {
            body.insert(key.into(), value);
        }
    };
    put("temperature", options.temperature.map(number));
    put("top_p", options.top_p.map(number));
    put(
        "stop",
        (!options.stop.is_empty()).then(|| json!(options.stop)),
    );
    put(
        dialect.chat.max_tokens,
        options.max_tokens.map(|it| json!(it)),
    );
    put(dialect.chat.seed, options.seed.map(|it| json!(it)));
    put("presence_penalty", options.presence_penalty.map(number));
    put("frequency_penalty", options.frequency_penalty.map(number));
    let effort = options.reasoning_effort.as_ref();
    match dialect.chat.effort {
        Effort::Word => put("reasoning_effort", effort.map(|it| json!(it))),
        Effort::WordParsed => {
            put("reasoning_effort", effort.map(|it| json!(it)));
            put("reasoning_format", effort.map(|_| json!("parsed")));
        }
        Effort::Object => put("reasoning", effort.map(|it| json!({"effort": it}))),
    }
    put(
        "prompt_cache_key",
        options.prompt_cache_key.as_ref().map(|it| json!(it)),
    );
}

/// Writes 1.0 as 1: what a person would write.
fn number(number: f64) -> Json {
    match number.fract() == 0.0 && number.abs() < 1e15 {
        true => json!(number as i64),
        false => json!(number),
    }
}

fn messages(call: &Call, dialect: &Dialect) -> Json {
    let mut messages: Vec<Json> = Vec::new();
    // Who cannot be held to a schema is told about it.
    if !dialect.can(Capability::StructuredOutput)
        && let Output::Schema { schema, .. } = &call.output
    {
        let words = format!(
            "Answer with one JSON document and nothing else. It must satisfy this JSON Schema:\n{schema}"
        );
        messages.push(json!({"role": "system", "content": words}));
    }
    messages.extend(call.messages.iter().map(message));
    Json::Array(messages)
}

fn message(message: &Message) -> Json {
    let mut json = json!({"role": message.role.name()});
    json["content"] = match message.content.as_slice() {
        [] => Json::Null,
        [Part::Text(text)] => json!(text),
        parts => parts.iter().map(part).collect(),
    };
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(|call| {
            json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
        });
        json["tool_calls"] = calls.collect();
    }
    if let (Role::Tool, Some(id)) = (message.role, &message.tool_call_id) {
        json["tool_call_id"] = json!(id);
    }
    json
}

fn part(part: &Part) -> Json {
    match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Image { url, detail: None } => {
            json!({"type": "image_url", "image_url": {"url": url}})
        }
        Part::Image {
            url,
            detail: Some(detail),
        } => {
            json!({"type": "image_url", "image_url": {"url": url, "detail": detail}})
        }
    }
}

fn response_format(output: &Output, dialect: &Dialect) -> Option<Json> {
    match output {
        Output::Text => None,
        Output::Json => Some(json!({"type": "json_object"})),
        Output::Schema {
            name,
            schema,
            strict,
        } if dialect.can(Capability::StructuredOutput) => Some(json!({
            "type": "json_schema",
            "json_schema": {"name": name, "schema": schema, "strict": strict},
        })),
        Output::Schema { .. } => Some(json!({"type": "json_object"})),
        Output::Raw(raw) => Some(raw.clone()),
    }
}

/// Reads a whole answer, from a server that does not stream.
pub fn decode(provider: &str, body: &[u8]) -> Result<Reply, LlmError> {
    let malformed = |cause: String| LlmError::Malformed {
        provider: provider.to_string(),
        cause,
        preview: crate::http::error::preview(body),
    };
    let json: Json =
        serde_json::from_slice(body).map_err(|error| malformed(format!("not JSON ({error})")))?;
    if json.get("error").is_some_and(|error| !error.is_null()) {
        return Err(LlmError::from_event(provider, &json));
    }
    let Some(choice) = json.pointer("/choices/0") else {
        return Err(malformed("it has no `choices`".into()));
    };
    let mut stream = Stream::new(provider);
    stream.common(&json);
    stream.message(choice.get("message").unwrap_or(&Json::Null));
    stream.finish_reason(choice);
    Ok(stream.reply)
}

/// Puts a streamed answer together.
#[derive(Debug)]
pub struct Stream {
    provider: String,
    reply: Reply,
    /// Where each tool call being told is: the number that the provider gives it.
    indexes: Vec<u64>,
    done: bool,
}

impl Stream {
    pub fn new(provider: &str) -> Stream {
        Stream {
            provider: provider.to_string(),
            reply: Reply::default(),
            indexes: Vec::new(),
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
        let json: Json = serde_json::from_str(data).map_err(|error| LlmError::Malformed {
            provider: self.provider.clone(),
            cause: format!("an event is not JSON ({error})"),
            preview: crate::http::error::preview(data.as_bytes()),
        })?;
        if json.get("error").is_some_and(|error| !error.is_null()) {
            return Err(LlmError::from_event(&self.provider, &json));
        }
        self.common(&json);
        // The first event of some and the last of most have no choices.
        let Some(choice) = json.pointer("/choices/0") else {
            return Ok(Vec::new());
        };
        let deltas = self.message(choice.get("delta").unwrap_or(&Json::Null));
        self.finish_reason(choice);
        Ok(deltas)
    }

    fn common(&mut self, json: &Json) {
        if let Some(model) = json.get("model").and_then(Json::as_str)
            && !model.is_empty()
        {
            self.reply.model = model.to_string();
        }
        if let Some(id) = json.get("id").and_then(Json::as_str) {
            self.reply.id = id.to_string();
        }
        // One provider puts it aside.
        if let Some(usage) = json
            .get("usage")
            .or_else(|| json.pointer("/x_groq/usage"))
            .and_then(usage)
        {
            self.reply.usage = Some(usage);
        }
    }

    fn message(&mut self, message: &Json) -> Vec<Delta> {
        let text = |key: &str| {
            message
                .get(key)
                .and_then(Json::as_str)
                .filter(|text| !text.is_empty())
        };
        let mut deltas = Vec::new();
        if let Some(thought) = text("reasoning_content").or_else(|| text("reasoning")) {
            self.reply.reasoning.push_str(thought);
            deltas.push(Delta::Thought(thought.to_string()));
        }
        if let Some(content) = text("content") {
            self.reply.content.push_str(content);
            deltas.push(Delta::Text(content.to_string()));
        }
        if let Some(refusal) = text("refusal") {
            self.reply.refusal.push_str(refusal);
        }
        for call in message
            .get("tool_calls")
            .and_then(Json::as_array)
            .into_iter()
            .flatten()
        {
            self.tool_call(call);
        }
        deltas
    }

    /// Adds a piece of a tool call. Pieces belong together by `index`; where there is none, a new id
    /// begins a new call.
    fn tool_call(&mut self, piece: &Json) {
        let text = |pointer: &str| piece.pointer(pointer).and_then(Json::as_str);
        let id = text("/id").filter(|id| !id.is_empty());
        let index = piece.get("index").and_then(Json::as_u64);
        let known = match (index, id) {
            (Some(index), _) => self.indexes.iter().position(|it| *it == index),
            (None, Some(id)) => self.reply.tool_calls.iter().position(|call| call.id == id),
            (None, None) => self.reply.tool_calls.len().checked_sub(1),
        };
        let at = known.unwrap_or_else(|| {
            self.reply.tool_calls.push(ToolCall::default());
            // Numbers that no provider gives keep the unnumbered apart.
            let unnumbered = u64::MAX - self.indexes.len() as u64;
            self.indexes.push(index.unwrap_or(unnumbered));
            self.reply.tool_calls.len() - 1
        });
        let call = &mut self.reply.tool_calls[at];
        if let Some(id) = id {
            call.id = id.to_string();
        }
        if let Some(name) = text("/function/name") {
            call.name.push_str(name);
        }
        match piece.pointer("/function/arguments") {
            Some(Json::String(arguments)) => call.arguments.push_str(arguments),
            Some(arguments @ Json::Object(_)) => call.arguments = arguments.to_string(),
            _ => {}
        }
    }

    fn finish_reason(&mut self, choice: &Json) {
        if let Some(reason) = choice.get("finish_reason").and_then(Json::as_str) {
            self.reply.finish_reason = reason.to_string();
        }
    }
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
        Ok(self.reply)
    }
}

fn usage(json: &Json) -> Option<Usage> {
    let count = |pointer: &str| json.pointer(pointer).and_then(Json::as_i64);
    let (prompt, completion) = (count("/prompt_tokens"), count("/completion_tokens"));
    if prompt.is_none() && completion.is_none() {
        return None;
    }
    let (prompt, completion) = (prompt.unwrap_or(0), completion.unwrap_or(0));
    Some(Usage {
        prompt,
        completion,
        total: count("/total_tokens").unwrap_or(prompt + completion),
        cached: count("/prompt_tokens_details/cached_tokens")
            .or_else(|| count("/prompt_cache_hit_tokens")),
        cache_write: None,
        reasoning: count("/completion_tokens_details/reasoning_tokens"),
    })
}
