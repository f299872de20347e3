//! The Converse format of Amazon Bedrock: calls to JSON. Answers are read in [`stream`].
//!
//! Pure. One format for models of many makers: common options have their own fields, others go into
//! `additionalModelRequestFields`. Data with a schema is returned as the arguments of a tool that the model is forced
//! to call, if it can be forced. Thoughts are sent back unchanged.

mod stream;

use reqwest::Url;
use serde_json::{Map, Value as Json, json};

use super::anthropic;
use super::call::{Call, Message, Output, Part, Reply, Role, ToolCall, ToolChoice};
use super::call_id;
use super::capability::Capability;
use super::claude::Claude;
use super::dialect::Dialect;
use super::error::LlmError;
use super::family::{self, ANSWER_TOOL, ANSWER_VALUE_TOOL, Family, number};
use super::frames::Frames;
use super::sigv4::escaped;
use crate::json;

/// The format.
pub struct Bedrock;

/// The family's name, also that of its opaque blocks.
const ID: &str = "bedrock";

/// The fields of a request; further fields of a step go to the model itself.
const FIELDS: &[&str] = &[
    "additionalModelRequestFields",
    "additionalModelResponseFieldPaths",
    "guardrailConfig",
    "inferenceConfig",
    "messages",
    "outputConfig",
    "performanceConfig",
    "promptVariables",
    "requestMetadata",
    "serviceTier",
    "system",
    "toolConfig",
];

impl Family for Bedrock {
    fn id(&self) -> &'static str {
        ID
    }

    /// A model may be an ARN, with colons and slashes.
    fn address(&self, base: &Url, call: &Call) -> Url {
        family::below(
            base,
            &format!("model/{}/converse-stream", escaped(&call.model)),
        )
    }

    fn frames(&self) -> Frames {
        Frames::AwsEvents
    }

    fn is_signed(&self) -> bool {
        true
    }

    fn refuses(&self, call: &Call) -> Vec<&'static str> {
        refuses(call)
    }

    fn encode(&self, call: &Call, dialect: &Dialect) -> Json {
        encode(call, dialect)
    }

    fn decode(&self, provider: &str, body: &[u8]) -> Result<Reply, LlmError> {
        stream::whole(provider, body)
    }

    fn stream(&self, provider: &str) -> Box<dyn family::Stream> {
        Box::new(stream::Stream::new(provider))
    }
}

fn refuses(call: &Call) -> Vec<&'static str> {
    let mut names = match Maker::of(&call.model) {
        Maker::Anthropic => anthropic::refuses(call),
        Maker::Other if call.options.reasoning_effort.is_some() => vec!["reasoning-effort"],
        Maker::Amazon | Maker::Mistral | Maker::OpenAi | Maker::Other => Vec::new(),
    };
    let mut parts = call.messages.iter().flat_map(|it| &it.content);
    let is_elsewhere =
        |part: &Part| matches!(part, Part::Image { url, .. } if image(url).is_none());
    if parts.any(is_elsewhere) {
        names.push("image-url");
    }
    names
}

/// The maker of a model, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    Amazon,
    Anthropic,
    Mistral,
    OpenAi,
    Other,
}

impl Maker {
    fn of(model: &str) -> Maker {
        let has = |word: &str| model.contains(word);
        match () {
            () if has("anthropic") || Claude::of(model).is_some() => Maker::Anthropic,
            () if has("amazon.nova") => Maker::Amazon,
            () if has("mistral") => Maker::Mistral,
            () if has("openai.") || has("gpt-oss") => Maker::OpenAi,
            () => Maker::Other,
        }
    }
}

/// Tells whether a model can be forced to call a tool.
fn may_force(call: &Call) -> bool {
    match Maker::of(&call.model) {
        Maker::Anthropic => anthropic::may_force(call),
        Maker::Amazon => call.options.reasoning_effort.is_none(),
        Maker::Mistral => true,
        Maker::OpenAi | Maker::Other => false,
    }
}

/// The way in which a model is made to return the wanted format.
enum Shape<'a> {
    Text,
    Instructed,
    /// As the arguments of a tool that it is forced to call.
    Tool(&'a Json),
}

impl<'a> Shape<'a> {
    fn of(call: &'a Call, dialect: &Dialect) -> Shape<'a> {
        match &call.output {
            Output::Schema { schema, .. }
                if dialect.can(Capability::StructuredOutput) && may_force(call) =>
            {
                Shape::Tool(schema)
            }
            Output::Json | Output::Schema { .. } => Shape::Instructed,
            Output::Text | Output::Raw(_) => Shape::Text,
        }
    }
}

/// Returns the body of a request.
fn encode(call: &Call, dialect: &Dialect) -> Json {
    let shape = Shape::of(call, dialect);
    let mut body = Map::new();
    let system = system(call, &shape);
    if !system.is_empty() {
        body.insert("system".into(), Json::Array(system));
    }
    body.insert("messages".into(), messages(call));
    let config = inference_config(call);
    if !config.is_empty() {
        body.insert("inferenceConfig".into(), Json::Object(config));
    }
    if let Some(config) = tool_config(call, &shape) {
        body.insert("toolConfig".into(), config);
    }
    let additional = thinking(call);
    if !additional.is_empty() {
        body.insert(
            "additionalModelRequestFields".into(),
            Json::Object(additional),
        );
    }
    if let Output::Raw(raw) = &call.output {
        family::lay_over(&mut body, "outputConfig", raw);
    }
    for (key, value) in &call.extra {
        match FIELDS.contains(&key.as_str()) {
            true => family::lay_over(&mut body, key, value),
            false => {
                let own = json!({key: value});
                family::lay_over(&mut body, "additionalModelRequestFields", &own);
            }
        }
    }
    Json::Object(body)
}

/// Returns the fields that control thinking.
fn thinking(call: &Call) -> Map<String, Json> {
    let mut fields = Map::new();
    let Some(effort) = call.options.reasoning_effort.as_deref() else {
        return fields;
    };
    match Maker::of(&call.model) {
        Maker::Anthropic => return anthropic::thinking(call),
        Maker::OpenAi => {
            fields.insert("reasoning_effort".into(), json!(effort));
        }
        Maker::Amazon => {
            let config = match effort {
                "none" => json!({"type": "disabled"}),
                "minimal" => json!({"type": "enabled", "maxReasoningEffort": "low"}),
                effort => json!({"type": "enabled", "maxReasoningEffort": effort}),
            };
            fields.insert("reasoningConfig".into(), config);
        }
        Maker::Mistral | Maker::Other => {}
    }
    fields
}

fn inference_config(call: &Call) -> Map<String, Json> {
    let options = &call.options;
    let mut config = Map::new();
    let mut put = |key: &str, value: Option<Json>| {
        if let Some(value) = value {
            config.insert(key.into(), value);
        }
    };
    let limit = match Maker::of(&call.model) {
        // Thoughts count as part of the answer there.
        Maker::Anthropic if options.reasoning_effort.is_some() || options.max_tokens.is_some() => {
            Some(anthropic::max_tokens(call))
        }
        _ => options.max_tokens,
    };
    put("maxTokens", limit.map(Json::from));
    put("temperature", options.temperature.map(number));
    put("topP", options.top_p.map(number));
    let stop = &options.stop;
    put("stopSequences", (!stop.is_empty()).then(|| json!(stop)));
    config
}

fn system(call: &Call, shape: &Shape<'_>) -> Vec<Json> {
    let opening = call
        .messages
        .iter()
        .take_while(|it| it.role == Role::System);
    let mut blocks: Vec<Json> = opening.flat_map(|it| parts(&it.content)).collect();
    let mut tell = |words: String| blocks.push(json!({"text": words}));
    if matches!(shape, Shape::Instructed) {
        family::instructions(&call.output)
            .into_iter()
            .for_each(&mut tell);
    }
    match call.tool_choice {
        ToolChoice::Required | ToolChoice::Tool(_) if !may_force(call) => {
            call.asked_to_call().into_iter().for_each(&mut tell);
        }
        // The format has no such choice, and requires the definitions of tools that were called before.
        ToolChoice::None if !named(call).is_empty() => {
            tell("Answer now without calling a tool.".into());
        }
        ToolChoice::Auto | ToolChoice::Required | ToolChoice::Tool(_) | ToolChoice::None => {}
    }
    if call.options.cache_system && !blocks.is_empty() {
        blocks.push(cache_point());
    }
    blocks
}

fn cache_point() -> Json {
    json!({"cachePoint": {"type": "default"}})
}

/// Returns the names of the tools that were called before.
fn named(call: &Call) -> Vec<&str> {
    let calls = call.messages.iter().flat_map(|it| &it.tool_calls);
    let mut names: Vec<&str> = calls.map(|it| it.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn tool_config(call: &Call, shape: &Shape<'_>) -> Option<Json> {
    let before = named(call);
    let without = call.tool_choice == ToolChoice::None && before.is_empty();
    let own = call.tools.iter().filter(|_| !without);
    let mut tools: Vec<Json> = own
        .map(|it| spec(&it.name, it.description.as_deref(), &it.parameters))
        .collect();
    // A conversation with calls is rejected unless its tools are defined.
    let unknown = before
        .iter()
        .filter(|name| !call.tools.iter().any(|it| it.name == **name));
    tools.extend(unknown.map(|name| spec(name, None, &json!({"type": "object"}))));
    let has_tools = !call.tools.is_empty() && !without;
    let mut choice = match call.tool_choice {
        ToolChoice::Required if has_tools && may_force(call) => Some(json!({"any": {}})),
        ToolChoice::Tool(_) if has_tools && may_force(call) => call
            .forced_tool()
            .map(|name| json!({"tool": {"name": name}})),
        ToolChoice::Auto | ToolChoice::Required | ToolChoice::Tool(_) | ToolChoice::None => None,
    };
    if let Shape::Tool(schema) = shape {
        let name = answer_tool(schema);
        let words = Some("Gives the final answer.");
        tools.push(match name {
            ANSWER_TOOL => spec(name, words, schema),
            name => spec(
                name,
                words,
                &json!({"type": "object", "properties": {"answer": schema}, "required": ["answer"]}),
            ),
        });
        // With other tools, it may call those first.
        choice = Some(match has_tools && call.tool_choice != ToolChoice::None {
            true => json!({"any": {}}),
            false => json!({"tool": {"name": name}}),
        });
    }
    if tools.is_empty() {
        return None;
    }
    if call.options.cache_system && Maker::of(&call.model) == Maker::Anthropic {
        tools.push(cache_point());
    }
    let mut config = json!({"tools": tools});
    if let Some(choice) = choice {
        config["toolChoice"] = choice;
    }
    Some(config)
}

fn spec(name: &str, description: Option<&str>, schema: &Json) -> Json {
    let mut spec = json!({"name": name, "inputSchema": {"json": schema}});
    if let Some(description) = description.filter(|it| !it.trim().is_empty()) {
        spec["description"] = json!(description);
    }
    json!({"toolSpec": spec})
}

fn answer_tool(schema: &Json) -> &'static str {
    match schema.get("type").is_some_and(|it| it == "object") || schema.get("properties").is_some()
    {
        true => ANSWER_TOOL,
        false => ANSWER_VALUE_TOOL,
    }
}

/// Returns the conversation. Neighbours of one role are one message, in which results of tools come first.
fn messages(call: &Call) -> Json {
    let spoken = call
        .messages
        .iter()
        .skip_while(|it| it.role == Role::System);
    let mut turns: Vec<(&str, Vec<Json>)> = Vec::new();
    for message in spoken {
        let (role, blocks) = match message.role {
            Role::Assistant => ("assistant", contents_of(message)),
            Role::Tool => ("user", vec![tool_result(message)]),
            Role::System => {
                let words = family::aside(&message.plain_text());
                ("user", vec![json!({"text": words})])
            }
            Role::User => ("user", parts(&message.content)),
        };
        match turns.last_mut() {
            Some((last, before)) if *last == role => before.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    turns.retain(|(_, blocks)| !blocks.is_empty());
    for (role, blocks) in &mut turns {
        blocks.sort_by_key(|it| *role == "user" && it.get("toolResult").is_none());
    }
    let keeps = matches!(Maker::of(&call.model), Maker::Amazon | Maker::Anthropic);
    if call.options.cache_system && keeps && !call.tools.is_empty() {
        let users = turns.iter_mut().rev().filter(|(role, _)| *role == "user");
        let users = users.take(anthropic::MARKED);
        users.for_each(|(_, blocks)| blocks.push(cache_point()));
    }
    let turns = turns.into_iter();
    turns
        .map(|(role, blocks)| json!({"role": role, "content": blocks}))
        .collect()
}

/// Returns the contents of an assistant's message, unchanged if it is of this family.
fn contents_of(message: &Message) -> Vec<Json> {
    if let Some(opaque) = &message.opaque
        && opaque.family == ID
        && let Some(blocks) = opaque.blocks.as_array()
    {
        return blocks.clone();
    }
    let calls = message.tool_calls.iter().map(|call| {
        json!({"toolUse": {"toolUseId": call_id::fitting(&call.id), "name": call.name, "input": arguments(call)}})
    });
    parts(&message.content).into_iter().chain(calls).collect()
}

fn arguments(call: &ToolCall) -> Json {
    match json::read_integers(call.arguments.as_bytes()) {
        Ok(object @ Json::Object(_)) => object,
        _ if call.arguments.trim().is_empty() => json!({}),
        _ => json!({"arguments": call.arguments}),
    }
}

fn tool_result(message: &Message) -> Json {
    let mut content = parts(&message.content);
    if content.is_empty() {
        content.push(json!({"text": "(nothing)"}));
    }
    let id = message.tool_call_id.as_deref().unwrap_or_default();
    let status = if message.is_error { "error" } else { "success" };
    json!({"toolResult": {"toolUseId": call_id::fitting(id), "content": content, "status": status}})
}

/// Empty text is rejected, so it is left out.
fn parts(parts: &[Part]) -> Vec<Json> {
    let blocks = parts.iter().filter_map(|part| match part {
        Part::Text(text) if text.trim().is_empty() => None,
        Part::Text(text) => Some(json!({"text": text})),
        Part::Image { url, .. } => image(url),
        // No file is accepted for this format.
        Part::File { .. } => None,
    });
    blocks.collect()
}

/// Images are in the request, or in a bucket.
fn image(url: &str) -> Option<Json> {
    if url.starts_with("s3://") {
        let ending = url.rsplit('.').next().unwrap_or_default();
        let format = format(&format!("image/{}", ending.to_ascii_lowercase()));
        return Some(json!({"image": {"format": format, "source": {"s3Location": {"uri": url}}}}));
    }
    let (kind, data) = family::data_url(url)?;
    Some(json!({"image": {"format": format(&kind), "source": {"bytes": data}}}))
}

fn format(kind: &str) -> &'static str {
    match kind {
        "image/png" => "png",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => "jpeg",
    }
}
