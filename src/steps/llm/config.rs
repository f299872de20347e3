//! A step's config to a model call: messages, tools, options.

use base64::Engine as _;
use flowstone_engine::flow::name_of;
use flowstone_engine::step::{StepContext, StepError};
use flowstone_lang::value::Value;
use serde_json::{Value as Json, json};

use super::call::{Message, Options, Part, Role, Tool, ToolCall};
use super::capability::Capability;
use super::dialect::Dialect;
use crate::connections::scalar_text;
use crate::fields::{Fields, listed};
use crate::{json as convert, schema};

/// Fields that no provider has.
const CANNOT: &[&str] = &[
    "available-steps",
    "max-iterations",
    "max-repeated-tool-calls",
    "max-tool-calls",
];

/// Refuses what the provider cannot do, by name and before anything is sent.
pub(super) fn refuse_unsupported(
    fields: Fields<'_>,
    provider: &str,
    dialect: &Dialect,
) -> Result<(), StepError> {
    let lacking = Capability::ALL
        .iter()
        .filter(|it| it.is_field() && !dialect.can(**it))
        .map(|it| it.name());
    let given: Vec<&str> = CANNOT
        .iter()
        .copied()
        .chain(lacking)
        .filter(|key| fields.has(key))
        .collect();
    if given.is_empty() {
        return Ok(());
    }
    let error = StepError::config(
        "E0809",
        format!("`:{provider}` cannot do {}", listed(&given)),
    );
    let loops = given
        .iter()
        .any(|key| key.starts_with("max-") || *key == "available-steps");
    Err(match loops {
        true => error.hint(
            "`:llm` returns the calls of tools to the flow; it does not run them in a loop yet",
        ),
        false => error.hint("leave them out, or use another `:provider`"),
    })
}

/// Refuses what the model asked does not take, though others of its provider do.
pub(super) fn refuse_of_model(
    names: &[&str],
    provider: &str,
    model: &str,
) -> Result<(), StepError> {
    if names.is_empty() {
        return Ok(());
    }
    Err(StepError::config(
        "E0809",
        format!(
            "`{model}` of `:{provider}` does not take {} as the step has it",
            listed(names)
        ),
    )
    .hint("leave it out, or use another `:model`"))
}

/// Returns the conversation: system prompt first.
pub(super) async fn messages(
    cx: &StepContext,
    fields: Fields<'_>,
) -> Result<Vec<Message>, StepError> {
    let nothing = Value::map([]);
    let input = Fields::inside(":input", fields.map("input")?.unwrap_or(&nothing))?;
    input.only(&["messages", "prompt", "system"])?;
    let pick = |key: &str| fields.get(key).or_else(|| input.get(key));
    let mut messages = Vec::new();
    if let Some(system) = pick("system") {
        messages.push(Message::text(Role::System, prompt_text(":system", system)?));
    }
    match (pick("messages"), pick("prompt")) {
        (Some(_), Some(_)) => {
            return Err(StepError::config(
                "E0809",
                "`:prompt` and `:messages` cannot both be given",
            ));
        }
        (None, Some(prompt)) => {
            messages.push(Message::text(Role::User, prompt_text(":prompt", prompt)?))
        }
        (Some(list), None) => {
            for entry in convert::items(list).unwrap_or_default() {
                messages.push(message(cx, &entry).await?);
            }
        }
        (None, None) => {}
    }
    if !messages.iter().any(|message| message.role != Role::System) {
        return Err(StepError::config("E0809", "there is nothing to ask")
            .hint("give it a `:prompt` or `:messages`"));
    }
    Ok(messages)
}

/// Text as it is, data as JSON.
fn prompt_text(key: &str, value: &Value) -> Result<String, StepError> {
    match value {
        Value::Text(text) => Ok(text.to_string()),
        Value::Map(_)
        | Value::Vector(_)
        | Value::List(_)
        | Value::Set(_)
        | Value::Seq(_)
        | Value::Lazy(_) => Ok(as_json(key, value)?.to_string()),
        other => scalar_text(other).ok_or_else(|| {
            StepError::config("E0780", format!("`{key}` takes text, not {}", other.kind()))
        }),
    }
}

fn as_json(key: &str, value: &Value) -> Result<Json, StepError> {
    convert::to_json(value).map_err(|error| StepError::config("E0809", format!("`{key}`: {error}")))
}

async fn message(cx: &StepContext, entry: &Value) -> Result<Message, StepError> {
    let fields = Fields::inside("a message of :messages", entry)?;
    fields.only(&["content", "role", "tool-call-id", "tool-calls"])?;
    let role = match fields.name("role")?.as_deref() {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool") => Role::Tool,
        other => {
            let said = other.map_or_else(
                || "no role".to_string(),
                |role| format!("the role `:{role}`"),
            );
            return Err(StepError::config("E0809", format!("a message has {said}"))
                .hint("there are `:system`, `:user`, `:assistant` and `:tool`"));
        }
    };
    let content = match fields.get("content") {
        None => Vec::new(),
        Some(Value::Text(text)) => vec![Part::Text(text.to_string())],
        Some(Value::Vector(parts)) if role != Role::Tool => {
            let mut content = Vec::new();
            for entry in parts.iter() {
                content.push(part(cx, entry).await?);
            }
            content
        }
        Some(data) => vec![Part::Text(prompt_text(":content", data)?)],
    };
    let calls = fields
        .get("tool-calls")
        .and_then(convert::items)
        .unwrap_or_default();
    let tool_calls = calls.iter().map(tool_call).collect::<Result<Vec<_>, _>>()?;
    if content.is_empty() && tool_calls.is_empty() {
        return Err(StepError::config(
            "E0809",
            format!("a message of `:{}` has no `:content`", role.name()),
        ));
    }
    let tool_call_id = fields.text("tool-call-id")?.map(str::to_string);
    if role == Role::Tool && tool_call_id.is_none() {
        return Err(StepError::config(
            "E0809",
            "a message of `:tool` needs the `:tool-call-id` that it answers",
        ));
    }
    Ok(Message {
        role,
        content,
        tool_calls,
        tool_call_id,
        ..Message::empty(role)
    })
}

fn tool_call(call: &Value) -> Result<ToolCall, StepError> {
    let fields = Fields::inside("a call of :tool-calls", call)?;
    let need =
        |what: &str| StepError::config("E0809", format!("a call of `:tool-calls` needs `:{what}`"));
    let arguments = match fields.get("arguments") {
        None => "{}".to_string(),
        Some(Value::Text(text)) => text.to_string(),
        Some(data) => as_json(":arguments", data)?.to_string(),
    };
    Ok(ToolCall {
        id: fields
            .text("tool-call-id")?
            .or(fields.text("id")?)
            .ok_or_else(|| need("tool-call-id"))?
            .to_string(),
        name: fields
            .text("name")?
            .ok_or_else(|| need("name"))?
            .to_string(),
        arguments,
    })
}

async fn part(cx: &StepContext, entry: &Value) -> Result<Part, StepError> {
    if let Some(text) = entry.as_str() {
        return Ok(Part::Text(text.to_string()));
    }
    let fields = Fields::inside("a part of :content", entry)?;
    let detail = fields.name("detail")?.map(|detail| detail.to_string());
    let need =
        |what: &str| StepError::config("E0809", format!("a part of `:content` needs `:{what}`"));
    match fields.name("type")?.as_deref() {
        Some("text") => {
            fields.only(&["text", "type"])?;
            Ok(Part::Text(
                fields
                    .text("text")?
                    .ok_or_else(|| need("text"))?
                    .to_string(),
            ))
        }
        Some("image" | "image-url") => {
            fields.only(&["detail", "type", "url"])?;
            Ok(Part::Image {
                url: fields.text("url")?.ok_or_else(|| need("url"))?.to_string(),
                detail,
            })
        }
        Some("image-resource") => {
            fields.only(&["detail", "resource", "transport", "type"])?;
            if let Some(transport) = fields.name("transport")?
                && &*transport != "data-url"
            {
                return Err(StepError::config(
                    "E0809",
                    format!("an image cannot be sent by `:transport :{transport}`"),
                )
                .hint("there is `:data-url`"));
            }
            let (bytes, content_type) =
                crate::http::load(cx, fields.get("resource").ok_or_else(|| need("resource"))?)
                    .await?;
            let encoded = base64::engine::general_purpose::STANDARD.encode(bytes);
            Ok(Part::Image {
                url: format!("data:{content_type};base64,{encoded}"),
                detail,
            })
        }
        other => {
            let said = other.map_or_else(
                || "no type".to_string(),
                |name| format!("the type `:{name}`"),
            );
            Err(
                StepError::config("E0809", format!("a part of `:content` has {said}"))
                    .hint("there are `:text`, `:image` and `:image-resource`"),
            )
        }
    }
}

/// Returns the tools that the model may ask for. They are not run here.
pub(super) fn tools(fields: Fields<'_>) -> Result<Vec<Tool>, StepError> {
    let Some(value) = fields.get("tools") else {
        return Ok(Vec::new());
    };
    let definitions = match value {
        Value::Map(_) => {
            let tools = Fields::inside(":tools", value)?;
            let runs = [
                "agents",
                "allowed",
                "breyta",
                "max-iterations",
                "max-repeated-tool-calls",
                "max-tool-calls",
                "mcp",
                "mode",
                "require",
                "steps",
                "workspace",
            ];
            let given: Vec<&str> = runs.into_iter().filter(|key| tools.has(key)).collect();
            if !given.is_empty() {
                return Err(StepError::config(
                    "E0809",
                    format!("`:tools` cannot do {} yet", listed(&given)),
                )
                .hint(
                    "give `:definitions`: the calls are returned to the flow under `:tool-calls`",
                ));
            }
            tools.only(&["definitions"])?;
            tools.get("definitions").and_then(convert::items)
        }
        list => convert::items(list),
    };
    let definitions = definitions.ok_or_else(|| {
        StepError::config(
            "E0809",
            "`:tools` takes a vector, or a map with `:definitions`",
        )
    })?;
    definitions.iter().map(tool).collect()
}

fn tool(definition: &Value) -> Result<Tool, StepError> {
    let fields = Fields::inside("a definition of :tools", definition)?;
    fields.only(&[
        "description",
        "input-schema",
        "name",
        "parameters",
        "params",
    ])?;
    let name = fields
        .name("name")?
        .ok_or_else(|| StepError::config("E0809", "a definition of `:tools` needs a `:name`"))?;
    let fits = !name.is_empty()
        && name.len() <= 64
        && name
            .bytes()
            .all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it));
    if !fits {
        return Err(
            StepError::config("E0809", format!("`{name}` cannot be the name of a tool"))
                .hint("use up to 64 letters, digits, `_` and `-`"),
        );
    }
    let form = ["input-schema", "parameters", "params"]
        .iter()
        .find_map(|key| fields.get(key));
    let parameters = match form {
        None => json!({"type": "object", "properties": {}}),
        Some(form @ Value::Map(_)) => as_json(":parameters", form)?,
        Some(form) => {
            let parsed = schema::parse(form).map_err(|error| {
                StepError::config("E0815", format!("the schema of the tool `{name}`: {error}"))
            })?;
            schema::to_json_schema(&parsed)
        }
    };
    Ok(Tool {
        name: name.to_string(),
        description: fields.text("description")?.map(str::to_string),
        parameters,
    })
}

pub(super) fn options(fields: Fields<'_>) -> Result<Options, StepError> {
    Ok(Options {
        temperature: fields.number("temperature")?,
        top_p: fields.number("top-p")?,
        stop: fields.texts("stop")?,
        max_tokens: fields.int("max-tokens", 1, i64::MAX)?,
        seed: fields.int("seed", i64::MIN, i64::MAX)?,
        presence_penalty: fields.number("presence-penalty")?,
        frequency_penalty: fields.number("frequency-penalty")?,
        reasoning_effort: fields.name("reasoning-effort")?.map(|it| it.to_string()),
        prompt_cache_key: fields.text("prompt-cache-key")?.map(str::to_string),
        cache_system: fields.bool("cache-system?")?.unwrap_or(false),
        previous_response_id: fields.text("previous-response-id")?.map(str::to_string),
    })
}

/// Returns what `:provider-opts` adds to the body for this provider: `{:openrouter {:provider {...}}}`.
pub(super) fn extra(
    fields: Fields<'_>,
    provider: &str,
    dialect: &Dialect,
) -> Result<Vec<(String, Json)>, StepError> {
    let mut extra = Vec::new();
    // Only a provider with that interface gets this far with it.
    if let Some(options) = fields.map("openai")? {
        Fields::inside(":openai", options)?.only(&["responses"])?;
        if let Json::Object(options) = as_json(":openai", options)? {
            extra.extend(options);
        }
    }
    let options = fields.map("provider-opts")?.and_then(Value::as_map);
    for (key, value) in options.into_iter().flat_map(|map| map.iter()) {
        let name = name_of(key).unwrap_or_else(|| "?".into());
        if &*name != provider {
            return Err(StepError::config("E0809", format!("`:provider-opts` is for `:{name}`, and the provider is `:{provider}`"))
                .hint(format!("what it adds to the request stands under the provider: {{:{provider} {{:some_field 1}}}}")));
        }
        match as_json(":provider-opts", value)? {
            Json::Object(body) => extra.extend(body),
            _ => {
                return Err(StepError::config(
                    "E0809",
                    format!("`:provider-opts :{name}` takes a map"),
                ));
            }
        }
    }
    let responses = extra.iter().find(|(key, _)| key == "responses");
    if responses.is_some() && !dialect.can(Capability::Responses) {
        return Err(StepError::config(
            "E0809",
            format!("`:{provider}` has no Responses interface to give `:responses` to"),
        )
        .hint("leave them out, or say `:family :openai` in its connection"));
    }
    let ours = ["contents", "input", "messages", "stream", "stream_options"];
    let inner = responses.and_then(|(_, options)| options.as_object());
    let keys = extra.iter().map(|(key, _)| key);
    let keys = keys.chain(inner.into_iter().flat_map(|it| it.keys()));
    match keys.map(String::as_str).find(|key| ours.contains(key)) {
        Some(key) => Err(StepError::config(
            "E0809",
            format!("`:provider-opts` cannot replace `{key}`"),
        )),
        None => Ok(extra),
    }
}
