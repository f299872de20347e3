//! Messages of requests, as the `:agent` step takes them.

use flowstone_engine::Engine;
use serde_json::{Map, Value as Json, json};

use super::body::{Body, Kind, Member};
use super::error::ApiError;
use super::generations::Who;
use super::records::Record;
use super::sources;
use super::{context, documents};

const MESSAGE: &[Member] = &[
    Member::required(
        "content",
        Kind::TextOrObject,
        "The text, or `{type: \"tool_output\"}` or `{type: \"document\"}`.",
    ),
    Member::required(
        "role",
        Kind::OneOf(&["assistant", "system", "user"]),
        "Who says it.",
    ),
];

const DOCUMENT: &[Member] = &[
    Member::required("document_id", Kind::Text, "The document."),
    Member::required(
        "type",
        Kind::OneOf(&["document"]),
        "The kind of the content.",
    ),
];

/// Replaces contents that are documents by their texts, and those that are outputs of tools by the calls that give them. Returns the
/// servers of these calls.
///
/// # Errors
/// When the project of the agent has no such document or tool, the caller may not use it, or a call is not valid.
pub async fn resolve(
    engine: &Engine,
    who: &Who,
    (project, body): (&str, &mut Body),
) -> Result<Vec<Record>, ApiError> {
    let context = body.get("tool_context").and_then(Json::as_object);
    let headers = match context {
        Some(given) => {
            context::check(given)?;
            context::headers(given)
        }
        None => Map::new(),
    };
    let mut servers = Vec::new();
    let messages = body.0.get_mut("messages").and_then(Json::as_array_mut);
    for message in messages.into_iter().flatten() {
        let Some(content) = message.get_mut("content") else {
            continue;
        };
        if content.get("type") == Some(&json!("document")) {
            let document = Body::read(content.clone(), DOCUMENT)?;
            let id = document.text("document_id").unwrap_or_default();
            *content = json!(documents::text(engine, who, (project, id)).await?);
        } else if content.get("type") == Some(&json!("tool_output")) {
            let source = sources::read(engine, who, (project, content, &headers)).await?;
            *content = source.content;
            servers.extend(source.server);
        }
    }
    Ok(servers)
}

/// The messages of a generation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Messages {
    /// Instead of the instructions of the agent.
    pub system: Option<String>,
    pub rest: Vec<Json>,
}

impl Messages {
    /// Reads `messages` and `prompt` of a body: messages first, the prompt last.
    ///
    /// # Errors
    /// When no message is given, or one is malformed.
    pub fn read(body: &Body) -> Result<Messages, ApiError> {
        let mut messages = Messages::default();
        let mut system: Vec<String> = Vec::new();
        for (idx, given) in body.items("messages").iter().enumerate() {
            let given = Body::read(given.clone(), MESSAGE)?;
            let role = given.text("role").unwrap_or_default();
            let content = match given.get("content") {
                Some(Json::String(text)) => text.clone(),
                Some(source) if sources::is_source(source) && role != "system" => {
                    messages.rest.push(json!({"role": role, "source": source}));
                    continue;
                }
                Some(content) => return Err(wrong(idx, content, role)),
                None => String::new(),
            };
            match role {
                "system" => system.push(content),
                role => messages
                    .rest
                    .push(json!({"role": role, "content": content})),
            }
        }
        // An empty prompt says nothing, like none.
        if let Some(prompt) = body.text("prompt").filter(|it| !it.is_empty()) {
            messages
                .rest
                .push(json!({"role": "user", "content": prompt}));
        }
        if !messages.rest.iter().any(|it| it["role"] == "user") {
            return Err(ApiError::invalid(
                "`prompt` or `messages` with a message of the role `user` is missing",
            ));
        }
        messages.system = (!system.is_empty()).then(|| system.join("\n\n"));
        Ok(messages)
    }

    /// Keeps the last messages only.
    pub fn cut(&mut self, most: Option<i64>) {
        let most = most.and_then(|most| usize::try_from(most).ok());
        if let Some(most) = most {
            let surplus = self.rest.len().saturating_sub(most);
            self.rest.drain(..surplus);
        }
    }
}

fn wrong(idx: usize, content: &Json, role: &str) -> ApiError {
    ApiError::invalid(match sources::is_source(content) {
        true => {
            format!("`messages[{idx}].content` of the role `{role}` must be a string or a document")
        }
        false => format!(
            "`messages[{idx}].content` must be a string, or an object of type `tool_output` or `document`"
        ),
    })
}
