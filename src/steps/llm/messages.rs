//! The conversation of a call: `:prompt`, `:messages`, `:system`, `:input`.
//!
//! A message is data of a flow, an agent or a journal, and is read back unchanged: tool calls, their results, and
//! blocks that a provider requires back.

use flowstone_flow::step::{Retry, StepContext, StepError};
use flowstone_lang::value::Value;
use serde_json::Value as Json;

use super::attachments;
use super::call::{Message, Opaque, Part, Role, ToolCall};
use super::images::{self, Sight};
use crate::connections::scalar_text;
use crate::fields::Fields;
use crate::json as convert;

/// Returns the conversation: system prompt first.
pub(super) async fn read(
    cx: &StepContext,
    fields: Fields<'_>,
    sight: &Sight<'_>,
) -> Result<Vec<Message>, StepError> {
    let nothing = Value::map([]);
    let input = Fields::nested(":input", fields.map("input")?.unwrap_or(&nothing))?;
    input.only(&["messages", "prompt", "system"])?;
    for key in ["messages", "prompt", "system"] {
        if fields.has(key) && input.has(key) {
            let twice = format!("`:{key}` is set in the step and in its `:input`");
            return Err(unfit(twice).hint("set it only once"));
        }
    }
    let pick = |key: &str| fields.get(key).or_else(|| input.get(key));
    let mut messages = Vec::new();
    if let Some(system) = pick("system") {
        messages.push(Message::text(Role::System, text_of(":system", system)?));
    }
    match (pick("messages"), pick("prompt")) {
        (Some(_), Some(_)) => {
            return Err(unfit("`:prompt` and `:messages` cannot both be given"));
        }
        (None, Some(prompt)) => {
            messages.push(Message::text(Role::User, text_of(":prompt", prompt)?));
        }
        (Some(list), None) => {
            let entries = convert::items(list)
                .ok_or_else(|| unfit("`:messages` takes a vector of messages"))?;
            for entry in entries {
                messages.push(message(cx, &entry, sight).await?);
            }
        }
        (None, None) => {}
    }
    if !messages.iter().any(|message| message.role != Role::System) {
        return Err(nothing_to_ask());
    }
    Ok(messages)
}

/// Returns the error for a call without a question.
pub(super) fn nothing_to_ask() -> StepError {
    unfit("there is nothing to ask").hint("give it a `:prompt` or `:messages`")
}

fn unfit(message: impl Into<String>) -> StepError {
    StepError::config("E0809", message)
}

/// Returns text unchanged, and data as JSON.
pub(super) fn text_of(key: &str, value: &Value) -> Result<String, StepError> {
    match value {
        Value::Text(text) => Ok(text.to_string()),
        Value::Map(_)
        | Value::Vector(_)
        | Value::List(_)
        | Value::Set(_)
        | Value::Seq(_)
        | Value::Lazy(_) => Ok(as_json(key, value)?.to_string()),
        other => scalar_text(other).ok_or_else(|| {
            StepError::config(
                StepError::OPTION_KIND,
                format!("`{key}` takes text, not {}", other.kind()),
            )
        }),
    }
}

pub(super) fn as_json(key: &str, value: &Value) -> Result<Json, StepError> {
    convert::to_json(value).map_err(|error| unfit(format!("`{key}`: {error}")))
}

const KEYS: &[&str] = &[
    "content",
    "error?",
    "name",
    "opaque",
    "role",
    "tool-call-id",
    "tool-calls",
];

async fn message(cx: &StepContext, entry: &Value, sight: &Sight<'_>) -> Result<Message, StepError> {
    let fields = Fields::nested("a message of :messages", entry)?;
    fields.only(KEYS)?;
    let role = role(fields)?;
    only_of(role, fields)?;
    let calls = match fields.get("tool-calls") {
        None => Vec::new(),
        Some(list) => convert::items(list).ok_or_else(|| unfit("`:tool-calls` takes a vector"))?,
    };
    let tool_calls = calls.iter().map(tool_call).collect::<Result<Vec<_>, _>>()?;
    let content = content(cx, role, fields, sight).await?;
    let opaque = fields.map("opaque")?.map(opaque).transpose()?;
    if content.is_empty() && tool_calls.is_empty() && opaque.is_none() {
        let message = format!("a message of `:{}` has no `:content`", role.name());
        return Err(unfit(message));
    }
    let tool_call_id = fields.text("tool-call-id")?.map(str::to_string);
    if role == Role::Tool && tool_call_id.is_none() {
        return Err(unfit(
            "a message of `:tool` needs the `:tool-call-id` that it answers",
        ));
    }
    Ok(Message {
        role,
        content,
        tool_calls,
        tool_call_id,
        tool_name: fields.name("name")?.map(|name| name.to_string()),
        is_error: fields.bool("error?")?.unwrap_or(false),
        opaque,
    })
}

fn role(fields: Fields<'_>) -> Result<Role, StepError> {
    match fields.name("role")?.as_deref() {
        Some("system" | "developer") => Ok(Role::System),
        Some("user") => Ok(Role::User),
        Some("assistant") => Ok(Role::Assistant),
        Some("tool") => Ok(Role::Tool),
        other => {
            let found = other.map_or_else(
                || "no role".to_string(),
                |role| format!("the role `:{role}`"),
            );
            Err(unfit(format!("a message has {found}"))
                .hint("there are `:system`, `:user`, `:assistant` and `:tool`"))
        }
    }
}

/// Rejects keys that belong to messages of another role.
fn only_of(role: Role, fields: Fields<'_>) -> Result<(), StepError> {
    let others: &[&str] = match role {
        Role::Assistant => &["error?", "name", "tool-call-id"],
        Role::Tool => &["opaque", "tool-calls"],
        Role::System | Role::User => &["error?", "name", "opaque", "tool-call-id", "tool-calls"],
    };
    match others.iter().find(|key| fields.has(key)) {
        None => Ok(()),
        Some(key) => Err(unfit(format!(
            "a message of `:{}` has no `:{key}`",
            role.name()
        ))),
    }
}

async fn content(
    cx: &StepContext,
    role: Role,
    fields: Fields<'_>,
    sight: &Sight<'_>,
) -> Result<Vec<Part>, StepError> {
    let parts = match (role, fields.given("content")) {
        (_, None) => return Ok(Vec::new()),
        // A tool may return nothing, which the model must be told.
        (Role::Tool, Some(Value::Nil)) => return Ok(vec![Part::Text("null".into())]),
        (_, Some(Value::Nil)) => return Ok(Vec::new()),
        (_, Some(Value::Text(text))) => return Ok(vec![Part::Text(text.to_string())]),
        (Role::Tool, Some(data)) => match convert::items(data).filter(|it| are_parts(it)) {
            Some(parts) => parts,
            None => return Ok(vec![Part::Text(text_of(":content", data)?)]),
        },
        (_, Some(Value::Vector(parts))) => parts.iter().cloned().collect(),
        (_, Some(data)) => return Ok(vec![Part::Text(text_of(":content", data)?)]),
    };
    let mut content = Vec::new();
    for entry in &parts {
        content.push(part_or_line(cx, entry, sight).await?);
    }
    if role != Role::User && role != Role::Tool && content.iter().any(Part::is_image) {
        let message = format!("a message of `:{}` cannot have images", role.name());
        return Err(unfit(message).hint("they belong into messages of `:user`"));
    }
    if role != Role::User && content.iter().any(Part::is_file) {
        let message = format!("a message of `:{}` cannot have files", role.name());
        return Err(unfit(message).hint("they belong into messages of `:user`"));
    }
    Ok(content)
}

/// Distinguishes the parts of a message from a tool's plain data.
fn are_parts(items: &[Value]) -> bool {
    let is_part = |item: &Value| {
        let kind = item.get("type").and_then(flowstone_flow::flow::name_of);
        kind.is_some_and(|kind| PARTS.contains(&&*kind))
    };
    !items.is_empty() && items.iter().all(is_part)
}

const PARTS: &[&str] = &["image", "image-resource", "image-url", "text"];

/// Reads a part. An image with `:optional? true` is reduced if necessary, and replaced by a line of text if it cannot
/// be shown.
async fn part_or_line(
    cx: &StepContext,
    entry: &Value,
    sight: &Sight<'_>,
) -> Result<Part, StepError> {
    let Some(map) = entry.as_map().filter(|_| entry.get("optional?").is_some()) else {
        return part(cx, entry, sight).await;
    };
    let sight = Sight {
        is_fitting: true,
        ..*sight
    };
    let key = Value::keyword("optional?");
    let rest = map.iter().filter(|(it, _)| **it != key);
    let rest = Value::map(rest.map(|(key, value)| (key.clone(), value.clone())));
    match part(cx, &rest, &sight).await {
        Err(error) if error.retry == Retry::Never => Ok(Part::Text(format!(
            "\n[an image is not shown: {}]",
            error.message
        ))),
        read => read,
    }
}

async fn part(cx: &StepContext, entry: &Value, sight: &Sight<'_>) -> Result<Part, StepError> {
    if let Some(text) = entry.as_str() {
        return Ok(Part::Text(text.to_string()));
    }
    let fields = Fields::nested("a part of :content", entry)?;
    let need = |what: &str| unfit(format!("a part of `:content` needs `:{what}`"));
    match fields.name("type")?.as_deref() {
        Some("text") => {
            fields.only(&["text", "type"])?;
            let text = fields.text("text")?.ok_or_else(|| need("text"))?;
            Ok(Part::Text(text.to_string()))
        }
        Some("image" | "image-url") => images::by_address(fields, sight).await,
        Some("image-resource") => images::of_resource(cx, fields, sight).await,
        Some("file") => attachments::read(cx, fields, sight).await,
        other => {
            let found = other.map_or_else(
                || "no type".to_string(),
                |name| format!("the type `:{name}`"),
            );
            Err(unfit(format!("a part of `:content` has {found}"))
                .hint("there are `:text`, `:image`, `:image-resource` and `:file`"))
        }
    }
}

fn tool_call(call: &Value) -> Result<ToolCall, StepError> {
    let fields = Fields::nested("a call of :tool-calls", call)?;
    let need = |what: &str| unfit(format!("a call of `:tool-calls` needs `:{what}`"));
    // The model's own text, if it was not JSON.
    let arguments = match (fields.text("arguments-text")?, fields.get("arguments")) {
        (Some(text), _) => text.to_string(),
        (None, None) => "{}".to_string(),
        (None, Some(Value::Text(text))) => text.to_string(),
        (None, Some(data)) => {
            convert::write(data).map_err(|error| unfit(format!("`:arguments`: {error}")))?
        }
    };
    let id = fields.text("tool-call-id")?.or(fields.text("id")?);
    Ok(ToolCall {
        id: id.ok_or_else(|| need("tool-call-id"))?.to_string(),
        name: fields
            .name("name")?
            .ok_or_else(|| need("name"))?
            .to_string(),
        arguments,
    })
}

/// Reads the form that the envelope writes: the blocks are JSON text, so that they are sent back unchanged.
fn opaque(value: &Value) -> Result<Opaque, StepError> {
    let fields = Fields::nested(":opaque", value)?;
    fields.only(&["blocks", "family"])?;
    let need = |what: &str| unfit(format!("`:opaque` of a message needs `:{what}`"));
    let blocks = match fields.get("blocks").ok_or_else(|| need("blocks"))? {
        Value::Text(text) => convert::read_integers(text.as_str().as_bytes())
            .map_err(|error| unfit(format!("`:opaque :blocks` is not JSON ({error})")))?,
        data => as_json(":opaque :blocks", data)?,
    };
    Ok(Opaque {
        family: fields
            .name("family")?
            .ok_or_else(|| need("family"))?
            .to_string(),
        blocks,
    })
}
