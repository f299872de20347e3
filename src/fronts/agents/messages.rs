//! Messages of requests, as the `:agent` step takes them.

use flowstone_engine::Engine;
use serde_json::{Map, Value as Json, json};

use super::body::{Body, Kind, Member};
use super::documents;
use super::error::ApiError;

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

/// Replaces contents that are documents by their texts.
///
/// # Errors
/// When the project of the agent has no such document.
pub async fn resolve(engine: &Engine, project: &str, body: &mut Body) -> Result<(), ApiError> {
    let messages = body.0.get_mut("messages").and_then(Json::as_array_mut);
    for message in messages.into_iter().flatten() {
        let Some(content) = message.get_mut("content") else {
            continue;
        };
        if content.get("type") == Some(&json!("document")) {
            let document = Body::read(content.clone(), DOCUMENT)?;
            let id = document.text("document_id").unwrap_or_default();
            *content = json!(documents::text(engine, project, id).await?);
        }
    }
    Ok(())
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
                Some(content) => return Err(not_built(idx, content)),
                None => String::new(),
            };
            match role {
                "system" => system.push(content),
                role => messages
                    .rest
                    .push(json!({"role": role, "content": content})),
            }
        }
        if let Some(prompt) = body.text("prompt") {
            messages
                .rest
                .push(json!({"role": "user", "content": prompt}));
        }
        if messages.rest.is_empty() {
            return Err(ApiError::invalid(
                "`prompt` or `messages` with a message of a user is missing",
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

fn not_built(idx: usize, content: &Json) -> ApiError {
    let members: &Map<String, Json> = &content.as_object().cloned().unwrap_or_default();
    match members.get("type").and_then(Json::as_str) {
        Some(kind @ "tool_output") => ApiError::not_built(format!(
            "`messages[{idx}].content` of type `{kind}` is not built"
        )),
        Some(_) | None => ApiError::invalid(format!(
            "`messages[{idx}].content` must be a string, or an object of type `tool_output` or `document`"
        )),
    }
}
