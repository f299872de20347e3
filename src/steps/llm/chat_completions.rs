//! The chat completions wire format: calls to JSON. Answers are read in [`answer`].
//!
//! Pure: bytes in, data out. Differences between providers are in their [`Dialect`]s.

mod answer;

use std::borrow::Cow;

use reqwest::Url;
use serde_json::{Map, Value as Json, json};

use super::attachments;
use super::call::{Call, Message, Output, Part, Reply, Role, ToolChoice};
use super::call_id;
use super::capability::Capability;
use super::dialect::{AskUsage, CallIds, Dialect, Effort, OPENAI, OPENAI_CHAT, OPENROUTER};
use super::error::LlmError;
use super::family::{self, Family, number};

/// The format.
pub struct ChatCompletions;

/// The family's name, also that of its opaque blocks.
const ID: &str = "chat-completions-compatible";

/// Keys of opaque blocks that a message may contain.
const KEPT: [&str; 2] = ["reasoning_content", "reasoning_details"];

impl Family for ChatCompletions {
    fn id(&self) -> &'static str {
        ID
    }

    fn address(&self, base: &Url, _call: &Call) -> Url {
        family::below(base, "chat/completions")
    }

    fn files(&self, dialect: &Dialect) -> &'static [&'static str] {
        let takes = [OPENAI.id, OPENAI_CHAT.id, OPENROUTER.id];
        match takes.contains(&dialect.id) {
            true => &[attachments::PDF, attachments::MP3, attachments::WAV],
            false => &[],
        }
    }

    fn encode(&self, call: &Call, dialect: &Dialect) -> Json {
        encode(call, dialect)
    }

    fn decode(&self, provider: &str, body: &[u8]) -> Result<Reply, LlmError> {
        answer::whole(provider, body)
    }

    fn stream(&self, provider: &str) -> Box<dyn family::Stream> {
        Box::new(answer::Stream::new(provider))
    }
}

/// Returns the body of a request.
fn encode(call: &Call, dialect: &Dialect) -> Json {
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
            ToolChoice::Tool(_) => call.forced_tool().and_then(|name| {
                let choice = json!({"type": "function", "function": {"name": name}});
                body.insert("tool_choice".into(), choice)
            }),
            ToolChoice::None => body.insert("tool_choice".into(), json!("none")),
        };
    }
    options(call, dialect, &mut body);
    if let Some(format) = response_format(&call.output, dialect) {
        body.insert("response_format".into(), format);
    }
    let streams = dialect.can(Capability::Streaming);
    body.insert("stream".into(), json!(streams));
    match dialect.chat.usage {
        AskUsage::StreamOptions if streams => {
            body.insert("stream_options".into(), json!({"include_usage": true}));
        }
        AskUsage::Include => {
            body.insert("usage".into(), json!({"include": true}));
        }
        AskUsage::StreamOptions | AskUsage::Unasked => {}
    }
    for (key, value) in &call.extra {
        family::lay_over(&mut body, key, value);
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
    let stop = &options.stop;
    put("stop", (!stop.is_empty()).then(|| json!(stop)));
    put(dialect.chat.max_tokens, options.max_tokens.map(Json::from));
    put(dialect.chat.seed, options.seed.map(Json::from));
    put("presence_penalty", options.presence_penalty.map(number));
    put("frequency_penalty", options.frequency_penalty.map(number));
    let effort = options.reasoning_effort.as_ref();
    let word = || effort.map(|it| json!(it));
    match dialect.chat.effort {
        Effort::Word => put("reasoning_effort", word()),
        Effort::WordParsed => {
            put("reasoning_effort", word());
            // One line of models reasons anyway, and rejects the option.
            let is_asked = effort.is_some() && !call.model.contains("gpt-oss");
            put("reasoning_format", is_asked.then(|| json!("parsed")));
        }
        Effort::Object => put("reasoning", effort.map(|it| json!({"effort": it}))),
    }
    let key = options.prompt_cache_key.as_ref();
    put("prompt_cache_key", key.map(|it| json!(it)));
}

fn messages(call: &Call, dialect: &Dialect) -> Json {
    let mut messages: Vec<Json> = Vec::new();
    if let Some(words) = instruction(call, dialect) {
        messages.push(json!({"role": "system", "content": words}));
    }
    let asked = call.messages.iter().rposition(|it| it.role == Role::User);
    let mut pictures: Vec<Json> = Vec::new();
    for (at, it) in call.messages.iter().enumerate() {
        if it.role != Role::Tool {
            show(&mut pictures, &mut messages);
        }
        let mut json = message(it, dialect);
        if it.role == Role::Tool {
            let images = it
                .content
                .iter()
                .filter(|it| matches!(it, Part::Image { .. }));
            pictures.extend(images.map(part));
        }
        if it.role == Role::Assistant {
            keep(it, dialect, asked.is_none_or(|asked| at > asked), &mut json);
        }
        messages.push(json);
    }
    show(&mut pictures, &mut messages);
    if call.options.cache_system {
        cached(&mut messages);
    }
    Json::Array(messages)
}

/// Returns an instruction about the format of the answer: for models that cannot be constrained to a schema, and for
/// those that only answer with JSON if the conversation mentions it.
fn instruction(call: &Call, dialect: &Dialect) -> Option<String> {
    let speaks = |it: &Message| it.plain_text().to_ascii_lowercase().contains("json");
    match &call.output {
        Output::Schema { .. } if !dialect.can(Capability::StructuredOutput) => {
            family::instructions(&call.output)
        }
        Output::Json if !call.messages.iter().any(speaks) => family::instructions(&call.output),
        Output::Text | Output::Json | Output::Schema { .. } | Output::Raw(_) => None,
    }
}

/// Shows the images of tool results in a separate message, because the result of a tool can only be text.
fn show(pictures: &mut Vec<Json>, messages: &mut Vec<Json>) {
    if pictures.is_empty() {
        return;
    }
    let mut content = vec![json!({"type": "text", "text": "What the tools gave to be seen:"})];
    content.append(pictures);
    messages.push(json!({"role": "user", "content": content}));
}

/// Adds what the provider requires back, if it accepts it: one line of models requires its thoughts back in the turns
/// since the last message of the user, and only there.
fn keep(message: &Message, dialect: &Dialect, is_recent: bool, json: &mut Json) {
    let kept = message.opaque.as_ref().filter(|it| it.family == ID);
    for key in KEPT {
        let Some(value) = kept.and_then(|it| it.blocks.get(key)) else {
            continue;
        };
        let is_wanted = match key {
            "reasoning_content" => dialect.chat.reasoning_back && is_recent,
            _ => dialect.chat.details_back,
        };
        if is_wanted {
            json[key] = value.clone();
        }
    }
}

/// Marks the end of the system message as the end of the prefix to cache.
fn cached(messages: &mut [Json]) {
    let system = messages.iter_mut().take_while(|it| it["role"] == "system");
    let Some(content) = system.last().and_then(|it| it.get_mut("content")) else {
        return;
    };
    if let Json::String(text) = content {
        *content = json!([{"type": "text", "text": text}]);
    }
    if let Some(last) = content.as_array_mut().and_then(|it| it.last_mut()) {
        last["cache_control"] = json!({"type": "ephemeral"});
    }
}

fn message(message: &Message, dialect: &Dialect) -> Json {
    let mut json = json!({"role": message.role.name()});
    json["content"] = match message.content.as_slice() {
        _ if message.role == Role::Tool => json!(message.plain_text()),
        [] => Json::Null,
        [Part::Text(text)] => json!(text),
        parts => parts.iter().map(part).collect(),
    };
    let id = |id: &str| match dialect.chat.call_ids {
        CallIds::Any => id.to_string(),
        CallIds::Nine => call_id::nine(id),
    };
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(|call| {
            json!({"id": id(&call.id), "type": "function", "function": {"name": call.name, "arguments": arguments(&call.arguments)}})
        });
        json["tool_calls"] = calls.collect();
    }
    if let (Role::Tool, Some(of)) = (message.role, &message.tool_call_id) {
        json["tool_call_id"] = json!(id(of));
    }
    json
}

/// Returns arguments as JSON text; some servers parse it, and fail if it is not JSON.
fn arguments(text: &str) -> Cow<'_, str> {
    if text.trim().is_empty() {
        return Cow::Borrowed("{}");
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(json!({"arguments": text}).to_string()),
    }
}

fn part(part: &Part) -> Json {
    match part {
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::File { kind, data, name } if kind == attachments::PDF => {
            let data = format!("data:{kind};base64,{data}");
            json!({"type": "file", "file": {"filename": name, "file_data": data}})
        }
        Part::File { kind, data, .. } => {
            let format = match kind == attachments::WAV {
                true => "wav",
                false => "mp3",
            };
            json!({"type": "input_audio", "input_audio": {"data": data, "format": format}})
        }
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

pub(super) fn response_format(output: &Output, dialect: &Dialect) -> Option<Json> {
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
