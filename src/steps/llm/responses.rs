//! The Responses format of OpenAI: calls to JSON. Answers are read in [`stream`].
//!
//! Pure. The conversation is a list of items. Reasoning is sent back as the original items at their places, encrypted
//! if the provider does not store them.

mod stream;

use reqwest::Url;
use serde_json::{Map, Value as Json, json};

use super::attachments;
use super::call::{Call, Message, Opaque, Output, Part, Reply, Role, ToolCall, ToolChoice};
use super::capability::Capability;
use super::chat_completions;
use super::dialect::Dialect;
use super::error::LlmError;
use super::family::{self, Family, number};
use super::places::{Mark, Place, places};
use super::provider_tool::{ProviderTool, ProviderToolKind};

/// The format.
pub struct Responses;

/// The family's name, also that of its opaque blocks.
const ID: &str = "openai";

/// The key for options of this format among those of the provider.
const OWN_OPTIONS: &str = "responses";

impl Family for Responses {
    fn id(&self) -> &'static str {
        ID
    }

    fn address(&self, base: &Url, _call: &Call) -> Url {
        family::below(base, "responses")
    }

    fn files(&self, _dialect: &Dialect) -> &'static [&'static str] {
        &[attachments::PDF]
    }

    fn provider_tool_options(&self, kind: ProviderToolKind) -> Option<&'static [&'static str]> {
        match kind {
            ProviderToolKind::CodeExecution => Some(&[]),
            ProviderToolKind::WebFetch => None,
            ProviderToolKind::WebSearch => Some(&["allowed-domains"]),
        }
    }

    fn stops(&self) -> bool {
        false
    }

    fn leaves_out(&self, call: &Call) -> Vec<&'static str> {
        let seed = call.options.seed.map(|_| "seed");
        seed.into_iter().collect()
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

/// Returns the body of a streamed request.
fn encode(call: &Call, dialect: &Dialect) -> Json {
    let mut body = Map::new();
    body.insert("model".into(), json!(call.model));
    if let Some(instructions) = instructions(call) {
        body.insert("instructions".into(), json!(instructions));
    }
    body.insert("input".into(), Json::Null);
    if !call.tools.is_empty() {
        let tools = call.tools.iter().map(|tool| {
            let mut json = json!({"type": "function", "name": tool.name});
            if let Some(description) = &tool.description {
                json["description"] = json!(description);
            }
            json["parameters"] = tool.parameters.clone();
            // By default, the provider makes every parameter required.
            json["strict"] = json!(false);
            json
        });
        body.insert("tools".into(), tools.collect());
        match call.tool_choice {
            ToolChoice::Auto => None,
            ToolChoice::Required => body.insert("tool_choice".into(), json!("required")),
            ToolChoice::Tool(_) => call.forced_tool().and_then(|name| {
                let choice = json!({"type": "function", "name": name});
                body.insert("tool_choice".into(), choice)
            }),
            ToolChoice::None => body.insert("tool_choice".into(), json!("none")),
        };
    }
    if !call.provider_tools.is_empty() {
        let own = call.provider_tools.iter().map(provider_tool);
        match body.get_mut("tools") {
            Some(Json::Array(tools)) => tools.extend(own),
            _ => drop(body.insert("tools".into(), own.collect())),
        }
    }
    options(call, &mut body);
    if let Some(format) = format(&call.output, dialect) {
        body.insert("text".into(), json!({"format": format}));
    }
    if dialect.older_format
        && let Some(format) = chat_completions::response_format(&call.output, dialect)
    {
        body.insert("response_format".into(), format);
    }
    body.insert("stream".into(), json!(true));
    for (key, value) in &call.extra {
        match value {
            Json::Object(own) if key == OWN_OPTIONS => {
                for (key, value) in own {
                    family::lay_over(&mut body, key, value);
                }
            }
            value => family::lay_over(&mut body, key, value),
        }
    }
    // If the provider does not store answers, thoughts can only be sent back as a whole.
    let keeps = body.get("store") != Some(&Json::Bool(false));
    let mut items: Vec<Json> = instruction(call, dialect).into_iter().collect();
    items.extend(input(call, keeps));
    body.insert("input".into(), Json::Array(items));
    Json::Object(body)
}

fn provider_tool(tool: &ProviderTool) -> Json {
    match tool.kind {
        ProviderToolKind::CodeExecution => {
            json!({"type": "code_interpreter", "container": {"type": "auto"}})
        }
        ProviderToolKind::WebFetch | ProviderToolKind::WebSearch => {
            let mut json = json!({"type": "web_search"});
            if !tool.allowed_domains.is_empty() {
                json["filters"] = json!({"allowed_domains": tool.allowed_domains});
            }
            json
        }
    }
}

fn options(call: &Call, body: &mut Map<String, Json>) {
    let options = &call.options;
    let mut put = |key: &str, value: Option<Json>| {
        if let Some(value) = value {
            body.insert(key.into(), value);
        }
    };
    put("temperature", options.temperature.map(number));
    put("top_p", options.top_p.map(number));
    put("max_output_tokens", options.max_tokens.map(Json::from));
    put("presence_penalty", options.presence_penalty.map(number));
    put("frequency_penalty", options.frequency_penalty.map(number));
    let effort = options.reasoning_effort.as_deref();
    put(
        "reasoning",
        effort.map(|effort| match effort {
            "none" => json!({"effort": "none"}),
            effort => json!({"effort": effort, "summary": "auto"}),
        }),
    );
    if reasons(&call.model) || effort.is_some_and(|it| it != "none") {
        put("include", Some(json!(["reasoning.encrypted_content"])));
    }
    let text = |text: &Option<String>| text.as_ref().map(|it| json!(it));
    put("prompt_cache_key", text(&options.prompt_cache_key));
    put("previous_response_id", text(&options.previous_response_id));
}

/// Tells whether a model reasons; others reject the option.
fn reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let digit = |prefix: &str| {
        let rest = name.strip_prefix(prefix)?;
        rest.chars().next()?.to_digit(10)
    };
    let is_chat = name.contains("-chat");
    digit("o").is_some() || digit("gpt-").is_some_and(|it| it >= 5) && !is_chat
}

fn instructions(call: &Call) -> Option<String> {
    let leading = call
        .messages
        .iter()
        .take_while(|it| it.role == Role::System);
    let texts: Vec<String> = leading.map(text_of).filter(|it| !it.is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Returns an instruction about the format of the answer, for models that are not constrained to it. It must be in the
/// input, because the provider searches there for the word JSON.
fn instruction(call: &Call, dialect: &Dialect) -> Option<Json> {
    let is_held =
        matches!(call.output, Output::Schema { .. }) && dialect.can(Capability::StructuredOutput);
    let words = if is_held {
        None
    } else {
        family::instructions(&call.output)
    };
    words.map(|words| json!({"role": "developer", "content": words}))
}

fn format(output: &Output, dialect: &Dialect) -> Option<Json> {
    match output {
        Output::Text => None,
        Output::Schema {
            name,
            schema,
            strict,
        } if dialect.can(Capability::StructuredOutput) => {
            Some(json!({"type": "json_schema", "name": name, "schema": schema, "strict": strict}))
        }
        Output::Json | Output::Schema { .. } => Some(json!({"type": "json_object"})),
        // In chat completions, the facts of the schema are one level deeper.
        Output::Raw(raw) => match (raw.get("type"), raw.get("json_schema")) {
            (Some(kind), Some(Json::Object(facts))) => {
                let mut flat = facts.clone();
                flat.insert("type".into(), kind.clone());
                Some(Json::Object(flat))
            }
            _ => Some(raw.clone()),
        },
    }
}

fn input(call: &Call, keeps: bool) -> Vec<Json> {
    let spoken = call
        .messages
        .iter()
        .skip_while(|it| it.role == Role::System);
    let mut items = Vec::new();
    for message in spoken {
        match message.role {
            Role::System => items.push(json!({"role": "developer", "content": text_of(message)})),
            Role::User => items.push(json!({"role": "user", "content": content(&message.content)})),
            Role::Tool => items.push(json!({
                "type": "function_call_output",
                "call_id": message.tool_call_id.as_deref().unwrap_or_default(),
                "output": content(&message.content),
            })),
            Role::Assistant => assistant(message, keeps, &mut items),
        }
    }
    items
}

fn text_of(message: &Message) -> String {
    let texts = message.content.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::File { .. } | Part::Image { .. } => None,
    });
    texts.collect()
}

fn content(parts: &[Part]) -> Json {
    match parts {
        [] => json!(""),
        [Part::Text(text)] => json!(text),
        parts => parts.iter().map(part).collect(),
    }
}

fn part(part: &Part) -> Json {
    match part {
        Part::Text(text) => json!({"type": "input_text", "text": text}),
        Part::File { kind, data, name } => {
            let data = format!("data:{kind};base64,{data}");
            json!({"type": "input_file", "filename": name, "file_data": data})
        }
        Part::Image { url, detail: None } => json!({"type": "input_image", "image_url": url}),
        Part::Image {
            url,
            detail: Some(detail),
        } => json!({"type": "input_image", "image_url": url, "detail": detail}),
    }
}

fn function_call(call: &ToolCall) -> Json {
    let arguments = match call.arguments.trim() {
        "" => "{}",
        _ => &call.arguments,
    };
    json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments})
}

/// Adds an assistant's items: those to send back unchanged at their places, with the current text and calls.
fn assistant(message: &Message, keeps: bool, items: &mut Vec<Json>) {
    let text = text_of(message);
    let places = places(message, &text, ID, stream::mark);
    items.extend(places.into_iter().filter_map(|place| match place {
        Place::Text(text, Some(mark)) => Some(stream::with_text(mark, text)),
        Place::Text(text, None) => Some(json!({"role": "assistant", "content": text})),
        Place::Call(call) => Some(function_call(call)),
        Place::Block(item) => (keeps || !is_lost(item)).then(|| item.clone()),
    }));
}

/// Tells whether an item only refers to thoughts that the provider has not stored.
fn is_lost(item: &Json) -> bool {
    item["type"] == "reasoning" && item.get("encrypted_content").is_none_or(Json::is_null)
}

/// Returns the items of an answer that are sent back unchanged, if there are any.
fn opaque(items: Vec<Json>) -> Option<Opaque> {
    let is_ours = |item: &Json| !matches!(stream::mark(item), Mark::Block);
    (!items.iter().all(is_ours)).then(|| Opaque {
        family: ID.to_string(),
        blocks: Json::Array(items),
    })
}
