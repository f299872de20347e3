//! Google's `generateContent`: calls to JSON. Answers are read in [`stream`].
//!
//! Pure. Tool results refer to tools by name, and ids are optional: missing ids are made here, and never sent. Parts
//! with a signature are sent back unchanged.

mod stream;

use reqwest::Url;
use serde_json::{Map, Value as Json, json};

use super::attachments;
use super::call::{Call, Message, Output, Part, Reply, Role, ToolCall, ToolChoice};
use super::call_id;
use super::dialect::Dialect;
use super::error::LlmError;
use super::family::{self, Family, number};
use super::provider_tool::{ProviderTool, ProviderToolKind};
use crate::json;

/// The format.
pub struct Gemini;

/// The family's name, also that of its opaque blocks.
const ID: &str = "google";

/// Replaces the signature of a call that came from another provider's model.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

impl Family for Gemini {
    fn id(&self) -> &'static str {
        ID
    }

    /// The base may end with the version or before it; a model may be given with its collection.
    fn address(&self, base: &Url, call: &Call) -> Url {
        let is_version = |it: &str| {
            let mut chars = it.chars();
            chars.next() == Some('v') && chars.next().is_some_and(|it| it.is_ascii_digit())
        };
        let version = match base.path().split('/').any(is_version) {
            true => "",
            false => "v1beta/",
        };
        let model = match call.model.contains('/') {
            true => call.model.clone(),
            false => format!("models/{}", call.model),
        };
        let mut url = family::below(base, &format!("{version}{model}:streamGenerateContent"));
        url.query_pairs_mut().append_pair("alt", "sse");
        url
    }

    fn files(&self, _dialect: &Dialect) -> &'static [&'static str] {
        &[attachments::PDF, attachments::MP3, attachments::WAV]
    }

    fn provider_tool_options(&self, _kind: ProviderToolKind) -> Option<&'static [&'static str]> {
        Some(&[])
    }

    fn refuses(&self, call: &Call) -> Vec<&'static str> {
        let is_mixed = !call.tools.is_empty() && !call.provider_tools.is_empty();
        match is_mixed && !takes_both(call) {
            true => vec!["provider-tools"],
            false => Vec::new(),
        }
    }

    fn encode(&self, call: &Call, _dialect: &Dialect) -> Json {
        encode(call)
    }

    fn decode(&self, provider: &str, body: &[u8]) -> Result<Reply, LlmError> {
        stream::whole(provider, body)
    }

    fn stream(&self, provider: &str) -> Box<dyn family::Stream> {
        Box::new(stream::Stream::new(provider))
    }
}

/// Returns the body of a request.
fn encode(call: &Call) -> Json {
    let mut body = Map::new();
    let system = system(call);
    if !system.is_empty() {
        body.insert("systemInstruction".into(), json!({"parts": system}));
    }
    body.insert("contents".into(), contents(call));
    if !call.tools.is_empty() {
        let tools: Vec<Json> = call.tools.iter().map(tool).collect();
        body.insert("tools".into(), json!([{"functionDeclarations": tools}]));
    }
    provider_tools(call, &mut body);
    let mode = match call.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::Required | ToolChoice::Tool(_) => Some("ANY"),
        ToolChoice::None => Some("NONE"),
    };
    if let (Some(mode), false) = (mode, call.tools.is_empty()) {
        let mut config = json!({"mode": mode});
        if let Some(name) = call.forced_tool() {
            config["allowedFunctionNames"] = json!([name]);
        }
        let config = json!({"functionCallingConfig": config});
        family::lay_over(&mut body, "toolConfig", &config);
    }
    let config = generation_config(call);
    if !config.is_empty() {
        body.insert("generationConfig".into(), Json::Object(config));
    }
    for (key, value) in &call.extra {
        family::lay_over(&mut body, key, value);
    }
    Json::Object(body)
}

/// Adds the tools that the provider runs. Beside other tools, their calls are requested as parts of the answer, because
/// the model needs them back.
fn provider_tools(call: &Call, body: &mut Map<String, Json>) {
    if call.provider_tools.is_empty() {
        return;
    }
    let own = call.provider_tools.iter().map(provider_tool);
    match body.get_mut("tools") {
        Some(Json::Array(tools)) => {
            tools.extend(own);
            let config = json!({"includeServerSideToolInvocations": true});
            body.insert("toolConfig".into(), config);
        }
        _ => drop(body.insert("tools".into(), own.collect())),
    }
}

fn provider_tool(tool: &ProviderTool) -> Json {
    match tool.kind {
        ProviderToolKind::CodeExecution => json!({"codeExecution": {}}),
        ProviderToolKind::WebFetch => json!({"urlContext": {}}),
        ProviderToolKind::WebSearch => json!({"googleSearch": {}}),
    }
}

fn tool(tool: &super::call::Tool) -> Json {
    let mut json = json!({"name": tool.name, "parametersJsonSchema": tool.parameters});
    if let Some(description) = &tool.description {
        json["description"] = json!(description);
    }
    json
}

/// Returns the instructions: the system messages at the beginning, and the requested format if it is described in text.
fn system(call: &Call) -> Vec<Json> {
    let opening = call.messages.iter().take(opening(call));
    let mut parts: Vec<Json> = opening.flat_map(|it| it.content.iter().map(part)).collect();
    if !call.tools.is_empty() && !takes_both(call) {
        parts.extend(family::instructions(&call.output).map(|text| json!({"text": text})));
    }
    parts
}

/// Returns the number of system messages at the beginning.
fn opening(call: &Call) -> usize {
    let mut messages = call.messages.iter();
    let others = messages.position(|it| it.role != Role::System);
    others.unwrap_or(call.messages.len())
}

/// Tells whether tools and an answer format can be combined.
fn takes_both(call: &Call) -> bool {
    generation(&call.model).is_some_and(|it| it >= 3)
}

/// Returns the generation of a model: 2 for `gemini-2.5-flash`.
fn generation(model: &str) -> Option<u32> {
    let (_, rest) = model.rsplit_once("gemini-")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

/// Consecutive messages of the same side become one content.
fn contents(call: &Call) -> Json {
    let mut contents: Vec<(&str, Vec<Json>)> = Vec::new();
    for message in &call.messages[opening(call)..] {
        let role = match message.role {
            Role::Assistant => "model",
            Role::System | Role::User | Role::Tool => "user",
        };
        let parts = match message.role {
            Role::Assistant => contents_of(call, message),
            Role::Tool => answered(call, message),
            Role::System => vec![json!({"text": family::aside(&message.plain_text())})],
            Role::User => message.content.iter().map(part).collect(),
        };
        match contents.last_mut() {
            Some((last, before)) if *last == role => before.extend(parts),
            _ => contents.push((role, parts)),
        }
    }
    for (_, parts) in &mut contents {
        // The results of a turn's tools are adjacent, followed by their images.
        parts.sort_by_key(|part| part.get("functionResponse").is_none());
    }
    let contents = contents.into_iter().filter(|(_, parts)| !parts.is_empty());
    contents
        .map(|(role, parts)| json!({"role": role, "parts": parts}))
        .collect()
}

/// Returns the parts of an assistant's message, unchanged if it is of this family.
fn contents_of(call: &Call, message: &Message) -> Vec<Json> {
    if let Some(opaque) = &message.opaque
        && opaque.family == ID
        && let Some(parts) = opaque.blocks.as_array()
    {
        return parts.clone();
    }
    // With calls, empty texts are dropped.
    let is_something = |it: &&Part| !matches!(it, Part::Text(text) if text.is_empty());
    let content = message.content.iter().filter(is_something);
    let mut parts: Vec<Json> = content.map(part).collect();
    let needs_signature = generation(&call.model).is_some_and(|it| it >= 3);
    for (at, tool_call) in message.tool_calls.iter().enumerate() {
        let mut function = json!({"name": tool_call.name, "args": arguments(tool_call)});
        if let Some(id) = own_id(&tool_call.id) {
            function["id"] = json!(id);
        }
        let mut part = json!({"functionCall": function});
        if needs_signature && at == 0 {
            part["thoughtSignature"] = json!(NO_SIGNATURE);
        }
        parts.push(part);
    }
    parts
}

/// Returns an id, unless it was made here.
pub(super) fn own_id(id: &str) -> Option<&str> {
    (!id.is_empty() && !id.starts_with(call_id::MADE)).then_some(id)
}

fn arguments(call: &ToolCall) -> Json {
    match json::read_integers(call.arguments.as_bytes()) {
        Ok(object @ Json::Object(_)) => object,
        _ if call.arguments.trim().is_empty() => json!({}),
        _ => json!({"arguments": call.arguments}),
    }
}

/// Returns the result of a tool, followed by its images: not every model accepts them inside.
fn answered(call: &Call, message: &Message) -> Vec<Json> {
    let id = message.tool_call_id.as_deref().unwrap_or_default();
    let calls = call.messages.iter().flat_map(|it| &it.tool_calls);
    let name = message.tool_name.as_deref().or_else(|| {
        let mut calls = calls.filter(|it| it.id == id);
        calls.next_back().map(|it| it.name.as_str())
    });
    let mut text = String::new();
    let mut images = Vec::new();
    for it in &message.content {
        match it {
            Part::Text(more) => text.push_str(more),
            Part::File { .. } | Part::Image { .. } => images.push(part(it)),
        }
    }
    let value = json::read_integers(text.as_bytes()).unwrap_or(Json::String(text));
    let response = match (message.is_error, value) {
        // The error of an agent's tool already is such an object.
        (true, Json::Object(object)) if object.contains_key("error") => Json::Object(object),
        (true, value) => json!({"error": value}),
        (false, object @ Json::Object(_)) => object,
        (false, value) => json!({"result": value}),
    };
    let mut function = json!({"name": name.unwrap_or("tool"), "response": response});
    if let Some(id) = own_id(id) {
        function["id"] = json!(id);
    }
    let mut parts = vec![json!({"functionResponse": function})];
    parts.append(&mut images);
    parts
}

fn part(part: &Part) -> Json {
    match part {
        Part::Text(text) => json!({"text": text}),
        Part::File { kind, data, .. } => json!({"inlineData": {"mimeType": kind, "data": data}}),
        Part::Image { url, .. } => match family::data_url(url) {
            Some((kind, data)) => json!({"inlineData": {"mimeType": kind, "data": data}}),
            None => json!({"fileData": {"mimeType": image_type(url), "fileUri": url}}),
        },
    }
}

/// Guesses the type of an image from its address.
fn image_type(url: &str) -> &'static str {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let ending = path.rsplit('.').next().unwrap_or_default();
    match ending.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "webp" => "image/webp",
        "gif" => "image/gif",
        "heic" => "image/heic",
        "heif" => "image/heif",
        _ => "image/jpeg",
    }
}

fn generation_config(call: &Call) -> Map<String, Json> {
    let options = &call.options;
    let mut config = Map::new();
    let mut put = |key: &str, value: Option<Json>| {
        if let Some(value) = value {
            config.insert(key.into(), value);
        }
    };
    put("maxOutputTokens", options.max_tokens.map(Json::from));
    put("temperature", options.temperature.map(number));
    put("topP", options.top_p.map(number));
    let stop = &options.stop;
    put("stopSequences", (!stop.is_empty()).then(|| json!(stop)));
    put("seed", options.seed.map(Json::from));
    put("presencePenalty", options.presence_penalty.map(number));
    put("frequencyPenalty", options.frequency_penalty.map(number));
    let effort = options.reasoning_effort.as_deref();
    put("thinkingConfig", effort.map(|it| thinking(&call.model, it)));
    let is_data = call.tools.is_empty() || takes_both(call);
    match &call.output {
        Output::Json if is_data => put("responseMimeType", Some(json!("application/json"))),
        Output::Schema { schema, .. } if is_data => {
            put("responseMimeType", Some(json!("application/json")));
            put("responseJsonSchema", Some(schema.clone()));
        }
        Output::Raw(Json::Object(raw)) => {
            for (key, value) in raw {
                family::lay_over(&mut config, key, value);
            }
        }
        Output::Text | Output::Json | Output::Schema { .. } | Output::Raw(_) => {}
    }
    config
}

/// Newer models have levels of effort, older ones a number of tokens.
fn thinking(model: &str, effort: &str) -> Json {
    let is_by_level = generation(model).is_none_or(|it| it >= 3);
    let budget = match effort {
        "none" => 0,
        "minimal" | "low" => 1024,
        "medium" => 8192,
        _ => 24_576,
    };
    match (is_by_level, effort) {
        (true, "none") => json!({"thinkingLevel": "minimal"}),
        (true, level) => json!({"thinkingLevel": level, "includeThoughts": true}),
        (false, _) => json!({"thinkingBudget": budget, "includeThoughts": budget > 0}),
    }
}
