//! The Messages format of Anthropic: calls to JSON. Answers are read in [`stream`].
//!
//! Pure. The name of a model tells what it accepts, in [`Claude`]. Data with a schema is returned as the text of an
//! answer: by newer models with `output_config`, by others as arguments of a tool that they must call. The assistant's
//! thinking is sent back unchanged, at the same place.

mod stream;

use reqwest::Url;
use serde_json::{Map, Value as Json, json};

use super::attachments;
use super::call::{Call, Message, Opaque, Output, Part, Reply, Role, ToolCall, ToolChoice};
use super::capability::Capability;
use super::claude::{Claude, Thinking};
use super::dialect::Dialect;
use super::error::LlmError;
use super::family::{self, ANSWER_TOOL, ANSWER_VALUE_TOOL, Family, number};
use super::places::{Mark, Place, places};
use super::provider_tool::{ProviderTool, ProviderToolKind};
use super::subset;
use crate::json;

/// The format.
pub struct Anthropic;

/// The family's name, also that of its opaque blocks.
const ID: &str = "anthropic";

/// Keywords that a schema of `output_config` must not contain.
const NOT_IN_SCHEMA: &[&str] = &[
    "$schema",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "uniqueItems",
];

/// Number of user messages whose end is marked as the end of the cached prefix, in a conversation with tools: the
/// newest, which the next turn reads, and the one before, which this turn reads.
pub(super) const MARKED: usize = 2;

/// Minimum number of thinking tokens.
const LEAST_BUDGET: i64 = 1024;

impl Family for Anthropic {
    fn id(&self) -> &'static str {
        ID
    }

    /// Anthropic's own tools expect a base without `v1`, ours one with it; both are accepted.
    fn address(&self, base: &Url, _call: &Call) -> Url {
        match base.path().trim_end_matches('/').ends_with("/v1") {
            true => family::below(base, "messages"),
            false => family::below(base, "v1/messages"),
        }
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn files(&self, _dialect: &Dialect) -> &'static [&'static str] {
        &[attachments::PDF]
    }

    fn provider_tool_options(&self, kind: ProviderToolKind) -> Option<&'static [&'static str]> {
        match kind {
            ProviderToolKind::CodeExecution => Some(&[]),
            ProviderToolKind::WebFetch | ProviderToolKind::WebSearch => {
                Some(&["allowed-domains", "blocked-domains", "max-uses"])
            }
        }
    }

    fn features(&self, call: &Call) -> Option<(&'static str, String)> {
        let features = call.provider_tools.iter().filter_map(|it| match it.kind {
            ProviderToolKind::CodeExecution => Some("code-execution-2025-08-25"),
            ProviderToolKind::WebFetch => Some("web-fetch-2025-09-10"),
            ProviderToolKind::WebSearch => None,
        });
        let features: Vec<&str> = features.collect();
        (!features.is_empty()).then(|| ("anthropic-beta", features.join(",")))
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

pub(super) fn refuses(call: &Call) -> Vec<&'static str> {
    let (options, model) = (&call.options, call.model.as_str());
    let is_unusual = |it: Option<f64>| it.is_some_and(|it| it != 1.0);
    let thinks_by_budget = matches!(effort(call), Effort::Budget(_));
    let mut names = Vec::new();
    if is_unusual(options.temperature) && (thinks_by_budget || !Claude::takes_sampling(model)) {
        names.push("temperature");
    }
    if is_unusual(options.top_p) && !Claude::takes_sampling(model) {
        names.push("top-p");
    }
    if matches!(effort(call), Effort::Unknown) {
        names.push("reasoning-effort");
    }
    names
}

/// Returns the body of a streamed request.
fn encode(call: &Call, dialect: &Dialect) -> Json {
    let shape = Shape::of(call, dialect);
    let mut body = Map::new();
    body.insert("model".into(), json!(call.model));
    body.insert("max_tokens".into(), json!(max_tokens(call)));
    if let Some(system) = system(call, &shape) {
        body.insert("system".into(), system);
    }
    body.insert("messages".into(), messages(call));
    let tools = tools(call, &shape);
    if !tools.is_empty() {
        body.insert("tools".into(), Json::Array(tools));
    }
    if let Some(choice) = tool_choice(call, &shape) {
        body.insert("tool_choice".into(), choice);
    }
    options(call, &shape, &mut body);
    body.insert("stream".into(), json!(true));
    for (key, value) in &call.extra {
        family::lay_over(&mut body, key, value);
    }
    Json::Object(body)
}

/// The way in which a model is made to return the wanted format.
enum Shape<'a> {
    Text,
    /// By an instruction only.
    Instructed,
    /// As `output_config.format`.
    Format(Json),
    /// As the arguments of a tool, which some models can be forced to call.
    Tool {
        schema: &'a Json,
        forced: bool,
    },
}

impl<'a> Shape<'a> {
    fn of(call: &'a Call, dialect: &Dialect) -> Shape<'a> {
        match &call.output {
            Output::Text => Shape::Text,
            Output::Json => Shape::Instructed,
            Output::Raw(raw) => Shape::Format(raw.clone()),
            Output::Schema { .. } if !dialect.can(Capability::StructuredOutput) => {
                Shape::Instructed
            }
            Output::Schema {
                schema,
                strict: true,
                ..
            } if Claude::takes_schema(&call.model) => Shape::Format(
                json!({"type": "json_schema", "schema": subset::without(schema, NOT_IN_SCHEMA)}),
            ),
            Output::Schema { schema, .. } => Shape::Tool {
                schema,
                forced: may_force(call),
            },
        }
    }
}

/// A model that thinks cannot be forced to call a tool.
pub(super) fn may_force(call: &Call) -> bool {
    let thinks = matches!(effort(call), Effort::Budget(_) | Effort::Adaptive(_));
    !thinks && Claude::can_be_forced(&call.model)
}

fn is_object(schema: &Json) -> bool {
    schema.get("type").is_some_and(|it| it == "object") || schema.get("properties").is_some()
}

fn answer_tool(schema: &Json) -> &'static str {
    match is_object(schema) {
        true => ANSWER_TOOL,
        false => ANSWER_VALUE_TOOL,
    }
}

fn system(call: &Call, shape: &Shape<'_>) -> Option<Json> {
    let leading = call
        .messages
        .iter()
        .take_while(|it| it.role == Role::System);
    let mut texts: Vec<String> = leading.map(text_of).filter(|it| !it.is_empty()).collect();
    match shape {
        Shape::Instructed => texts.extend(family::instructions(&call.output)),
        Shape::Tool {
            schema,
            forced: false,
        } => texts.push(format!(
            "Give the final answer by calling the tool `{}`, and in no other way.",
            answer_tool(schema)
        )),
        Shape::Text | Shape::Format(_) | Shape::Tool { .. } => {}
    }
    if !may_force(call) {
        texts.extend(call.asked_to_call());
    }
    if texts.is_empty() {
        return None;
    }
    if !call.options.cache_system {
        return Some(json!(texts.join("\n\n")));
    }
    let mut blocks: Vec<Json> = texts.iter().map(|it| text_block(it)).collect();
    cached(&mut blocks);
    Some(Json::Array(blocks))
}

/// Marks the end of the prefix to cache.
fn cached(blocks: &mut [Json]) {
    if let Some(last) = blocks.last_mut() {
        last["cache_control"] = json!({"type": "ephemeral"});
    }
}

fn tools(call: &Call, shape: &Shape<'_>) -> Vec<Json> {
    let described = |name: &str, description: Option<&str>, schema: &Json| {
        let mut tool = json!({"name": name});
        if let Some(description) = description {
            tool["description"] = json!(description);
        }
        tool["input_schema"] = schema.clone();
        tool
    };
    let own = call.tools.iter();
    let mut tools: Vec<Json> = own
        .map(|tool| described(&tool.name, tool.description.as_deref(), &tool.parameters))
        .collect();
    if let Shape::Tool { schema, .. } = shape {
        let words = Some("Gives the final answer.");
        tools.push(match answer_tool(schema) {
            ANSWER_TOOL => described(ANSWER_TOOL, words, schema),
            name => described(
                name,
                words,
                &json!({"type": "object", "properties": {"answer": schema}, "required": ["answer"]}),
            ),
        });
    }
    tools.extend(call.provider_tools.iter().map(provider_tool));
    if call.options.cache_system {
        cached(&mut tools);
    }
    tools
}

fn provider_tool(tool: &ProviderTool) -> Json {
    let (kind, name) = match tool.kind {
        ProviderToolKind::CodeExecution => ("code_execution_20250825", "code_execution"),
        ProviderToolKind::WebFetch => ("web_fetch_20250910", "web_fetch"),
        ProviderToolKind::WebSearch => ("web_search_20250305", "web_search"),
    };
    let mut json = json!({"type": kind, "name": name});
    if let Some(max_uses) = tool.max_uses {
        json["max_uses"] = json!(max_uses);
    }
    let domains = [
        ("allowed_domains", &tool.allowed_domains),
        ("blocked_domains", &tool.blocked_domains),
    ];
    for (key, domains) in domains.into_iter().filter(|(_, it)| !it.is_empty()) {
        json[key] = json!(domains);
    }
    json
}

fn tool_choice(call: &Call, shape: &Shape<'_>) -> Option<Json> {
    let has_tools = !call.tools.is_empty();
    let choice = if has_tools {
        call.tool_choice
    } else {
        ToolChoice::Auto
    };
    match (shape, choice) {
        // With other tools, it may call those first.
        (
            Shape::Tool {
                schema,
                forced: true,
            },
            choice,
        ) => match has_tools && choice != ToolChoice::None {
            true => Some(json!({"type": "any"})),
            false => Some(json!({"type": "tool", "name": answer_tool(schema)})),
        },
        (_, ToolChoice::Auto) => None,
        (_, ToolChoice::Required) if may_force(call) => Some(json!({"type": "any"})),
        (_, ToolChoice::Tool(_)) if may_force(call) => {
            Some(json!({"type": "tool", "name": call.forced_tool()?}))
        }
        (_, ToolChoice::Required | ToolChoice::Tool(_)) => None,
        (Shape::Tool { .. }, ToolChoice::None) => None,
        (_, ToolChoice::None) => Some(json!({"type": "none"})),
    }
}

fn options(call: &Call, shape: &Shape<'_>, body: &mut Map<String, Json>) {
    let options = &call.options;
    let mut put = |key: &str, value: Option<Json>| {
        if let Some(value) = value {
            body.insert(key.into(), value);
        }
    };
    put(
        "stop_sequences",
        (!options.stop.is_empty()).then(|| json!(options.stop)),
    );
    put("temperature", options.temperature.map(number));
    put("top_p", options.top_p.map(number));
    let mut config = Map::new();
    match effort(call) {
        Effort::Unsaid | Effort::Unknown => {}
        Effort::Off => put("thinking", Some(json!({"type": "disabled"}))),
        Effort::Least => {
            config.insert("effort".into(), json!("low"));
        }
        Effort::Budget(budget) => put(
            "thinking",
            Some(json!({"type": "enabled", "budget_tokens": budget})),
        ),
        Effort::Adaptive(effort) => {
            let mut thinking = json!({"type": "adaptive"});
            if Claude::hides_thoughts(&call.model) {
                thinking["display"] = json!("summarized");
            }
            put("thinking", Some(thinking));
            config.insert("effort".into(), json!(effort));
        }
    }
    if let Shape::Format(format) = shape {
        config.insert("format".into(), format.clone());
    }
    put(
        "output_config",
        (!config.is_empty()).then_some(Json::Object(config)),
    );
}

/// Returns the fields that control the amount of thinking, also for other families with Claude models.
pub(super) fn thinking(call: &Call) -> Map<String, Json> {
    let mut body = Map::new();
    options(call, &Shape::Text, &mut body);
    body.retain(|key, _| key == "thinking" || key == "output_config");
    body
}

/// The translation of `:reasoning-effort`.
enum Effort {
    Unsaid,
    /// The model does not support the setting.
    Unknown,
    Off,
    /// Thinking cannot be turned off, but can be reduced to a minimum.
    Least,
    Budget(i64),
    Adaptive(String),
}

fn effort(call: &Call) -> Effort {
    let Some(effort) = call.options.reasoning_effort.as_deref() else {
        return Effort::Unsaid;
    };
    let thinking = Claude::thinking(&call.model);
    match (thinking, effort) {
        (Thinking::Never | Thinking::Budget | Thinking::Asked, "none") => Effort::Unsaid,
        (Thinking::Usual, "none") => Effort::Off,
        (Thinking::Always, "none") => Effort::Least,
        (Thinking::Never, _) => Effort::Unknown,
        (Thinking::Budget, _) => match budget(effort) {
            Some(most) => Effort::Budget(within(most, call)),
            None => Effort::Unknown,
        },
        (_, "minimal") => Effort::Adaptive("low".into()),
        // The generation that introduced the value.
        (Thinking::Asked, "xhigh") if !Claude::hides_thoughts(&call.model) => {
            Effort::Adaptive("high".into())
        }
        (_, effort) => Effort::Adaptive(effort.to_string()),
    }
}

fn budget(effort: &str) -> Option<i64> {
    Some(match effort {
        "minimal" => LEAST_BUDGET,
        "low" => 2_048,
        "medium" => 6_144,
        "high" => 12_288,
        "max" | "xhigh" => 24_576,
        _ => return None,
    })
}

/// Thoughts count as part of the answer: they get at most three quarters of it.
fn within(budget: i64, call: &Call) -> i64 {
    (limit(call) / 4 * 3).min(budget).max(LEAST_BUDGET)
}

fn limit(call: &Call) -> i64 {
    call.options
        .max_tokens
        .unwrap_or_else(|| Claude::usual_limit(&call.model))
}

/// The limit must be above the budget: a limit too low for any thinking is raised by the minimum budget.
pub(super) fn max_tokens(call: &Call) -> i64 {
    match effort(call) {
        Effort::Budget(budget) if budget >= limit(call) => budget.saturating_add(limit(call)),
        _ => limit(call),
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
            Role::Assistant => ("assistant", assistant(message)),
            Role::Tool => ("user", vec![tool_result(message)]),
            Role::User => ("user", parts(&message.content)),
            // In the middle of a conversation, a system message can only be sent as a user's.
            Role::System => ("user", vec![text_block(&family::aside(&text_of(message)))]),
        };
        match turns.last_mut() {
            Some((last, under)) if *last == role => under.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    turns.retain(|(_, blocks)| !blocks.is_empty());
    for (role, blocks) in &mut turns {
        blocks.sort_by_key(|it| *role == "user" && it["type"] != "tool_result");
    }
    let is_long = turns.iter().any(|(role, _)| *role == "assistant");
    let grows = is_long || !call.tools.is_empty() || !call.provider_tools.is_empty();
    if call.options.cache_system && grows {
        let users = turns.iter_mut().rev().filter(|(role, _)| *role == "user");
        users.take(MARKED).for_each(|(_, blocks)| cached(blocks));
    }
    let turns = turns.into_iter();
    turns
        .map(|(role, blocks)| json!({"role": role, "content": blocks}))
        .collect()
}

fn text_of(message: &Message) -> String {
    let texts = message.content.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::File { .. } | Part::Image { .. } => None,
    });
    texts.collect()
}

fn text_block(text: &str) -> Json {
    json!({"type": "text", "text": text})
}

/// Empty text is rejected, so it is left out.
fn parts(parts: &[Part]) -> Vec<Json> {
    let blocks = parts.iter().filter_map(|part| match part {
        Part::Text(text) if text.is_empty() => None,
        Part::Text(text) => Some(text_block(text)),
        Part::Image { url, .. } => Some(image(url)),
        Part::File { kind, data, name } => Some(json!({
            "type": "document", "title": name,
            "source": {"type": "base64", "media_type": kind, "data": data},
        })),
    });
    blocks.collect()
}

fn image(url: &str) -> Json {
    let source = match family::data_url(url) {
        Some((kind, data)) => json!({"type": "base64", "media_type": kind, "data": data}),
        None => json!({"type": "url", "url": url}),
    };
    json!({"type": "image", "source": source})
}

fn tool_result(message: &Message) -> Json {
    let id = message.tool_call_id.as_deref().unwrap_or_default();
    let mut block = json!({"type": "tool_result", "tool_use_id": plain(id)});
    match message.content.as_slice() {
        [] => {}
        [Part::Text(text)] => block["content"] = json!(text),
        several => block["content"] = Json::Array(parts(several)),
    }
    if message.is_error {
        block["is_error"] = json!(true);
    }
    block
}

/// Ids of other providers may contain characters that are rejected here.
fn plain(id: &str) -> String {
    let fits = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    id.chars()
        .map(|it| if fits(it) { it } else { '_' })
        .collect()
}

fn tool_use(call: &ToolCall) -> Json {
    let input = match json::read_integers(call.arguments.as_bytes()) {
        Ok(input @ Json::Object(_)) => input,
        _ if call.arguments.trim().is_empty() => json!({}),
        // If the model's text is not an object, it is sent back as text.
        _ => json!({"arguments_text": call.arguments}),
    };
    json!({"type": "tool_use", "id": plain(&call.id), "name": call.name, "input": input})
}

/// Returns an assistant's blocks: those to send back unchanged at their places, with the current text and calls.
fn assistant(message: &Message) -> Vec<Json> {
    let text = text_of(message);
    let places = places(message, &text, ID, stream::mark);
    let blocks = places.into_iter().map(|place| match place {
        Place::Text(text, mark) => cited(text, mark),
        Place::Call(call) => tool_use(call),
        Place::Block(block) => block.clone(),
    });
    blocks.collect()
}

/// Returns a text with the sources that the provider named for it, unless the text was changed.
fn cited(text: &str, mark: Option<&Json>) -> Json {
    let mut block = text_block(text);
    let is_same = |mark: &&Json| mark["length"].as_u64() == Some(text.chars().count() as u64);
    if let Some(citations) = mark.filter(is_same).and_then(|it| it.get("citations")) {
        block["citations"] = citations.clone();
    }
    block
}

/// Returns the blocks of an answer that are sent back unchanged, if there are any.
fn opaque(blocks: Vec<Json>) -> Option<Opaque> {
    let is_ours = |block: &Json| !matches!(stream::mark(block), Mark::Block);
    (!blocks.iter().all(is_ours)).then(|| Opaque {
        family: ID.to_string(),
        blocks: Json::Array(blocks),
    })
}
