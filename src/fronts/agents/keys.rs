//! API keys: tokens of the project that are for this API only, with policies and a project that limit them.
//!
//! A key is a service token that reaches no flow by its name, so no other API of the project is open to it. What it may do here
//! is decided by [`super::rights`].

use flowstone_engine::Engine;
use flowstone_engine::token::{Scope, Token, TokenKind, TokenLimits};
use flowstone_engine::tokens::NewToken;
use serde_json::{Value as Json, json};

use super::body::{Body, Kind, Member, texts};
use super::error::ApiError;
use super::records::{self, Record, Records};

/// The name of a flow that no file can have.
const NO_FLOW: &str = "(agents API only)";
/// What the texts of keys begin with.
pub const PREFIX: &str = "sk_";
/// What the texts of tokens begin with.
const TOKEN: &str = "fst_";
/// Number of characters of a key that are kept to tell keys apart.
const SHOWN_CHARS: usize = 8;
/// The scopes of a key. Its policies limit them further.
const SCOPES: &[Scope] = &[Scope::Edit, Scope::Read, Scope::Run];

/// The body of a new key.
pub const CREATE: &[Member] = &[
    Member::required("name", Kind::Name, "The name."),
    Member::optional(
        "policy_ids",
        Kind::Texts,
        "The policies that limit the key; without any it may do all that its owner may.",
    ),
    Member::optional(
        "project_id",
        Kind::Text,
        "The only project that the key reaches.",
    ),
];

/// The body of changes of a key.
pub const UPDATE: &[Member] = &[
    Member::kept("name", Kind::Name, "The name."),
    Member::optional(
        "policy_ids",
        Kind::Texts,
        "The policies; an empty list removes all.",
    ),
    Member::optional(
        "project_id",
        Kind::Text,
        "The only project that the key reaches; null removes the limit.",
    ),
];

const SHOWN: &[&str] = &["policy_ids", "project_id"];

/// Adds a key for the holder of a token. The answer has its text, once.
///
/// # Errors
/// When the body is not valid, names a policy or a project that does not exist, or the holder may create no tokens.
pub async fn create(engine: &Engine, by: &Token, body: Json) -> Result<Json, ApiError> {
    let _references = records::hold_references().await;
    let mut body = Body::read(body, CREATE)?;
    check(engine, &mut body).await?;
    let new = NewToken {
        name: body.text("name").unwrap_or_default().to_owned(),
        kind: TokenKind::Service,
        scopes: SCOPES.to_vec(),
        limits: TokenLimits {
            flows: vec![NO_FLOW.to_owned()],
            ..TokenLimits::default()
        },
        roles: Vec::new(),
        subject: None,
        ttl: None,
    };
    let (token, text) = engine.create_token(new, Some(by)).await?;
    let text = text.reveal().replacen(TOKEN, PREFIX, 1);
    body.0.insert("user_id".to_owned(), json!(by.id));
    let prefix: String = text.chars().take(SHOWN_CHARS).collect();
    body.0.insert("key_prefix".to_owned(), json!(prefix));
    let record = Records::Keys.create_as(engine, &token.id, body.0).await?;
    let mut created = shown(&record);
    created["key"] = json!(text);
    Ok(created)
}

/// Changes a key. It holds for the next request or action.
///
/// # Errors
/// When the body is not valid, or no record has that id.
pub async fn update(engine: &Engine, id: &str, body: Json) -> Result<Json, ApiError> {
    let _references = records::hold_references().await;
    let mut body = Body::read_changes(body, UPDATE, CREATE)?;
    check(engine, &mut body).await?;
    let changing = async |mut record: Record| {
        body.clone().change(&mut record.members);
        Ok(record)
    };
    Ok(shown(&Records::Keys.change(engine, id, changing).await?))
}

/// Deletes a key: from now on it is not accepted.
///
/// # Errors
/// When no record has that id.
pub async fn delete(engine: &Engine, id: &str) -> Result<(), ApiError> {
    let record = Records::Keys.get(engine, id).await?;
    // A key that was revoked as a token keeps its record until now.
    match engine.revoke_token(record.key(), None).await {
        Ok(()) | Err(flowstone_engine::EngineError::Token(_)) => {}
        Err(error) => return Err(error.into()),
    }
    Records::Keys.delete(engine, id).await
}

/// Returns a key as answers show it: without its text.
pub fn shown(record: &Record) -> Json {
    let mut shown = record.to_json(SHOWN);
    if record.get("policy_ids").is_none() {
        shown["policy_ids"] = json!([]);
    }
    shown
}

async fn check(engine: &Engine, body: &mut Body) -> Result<(), ApiError> {
    for id in texts(body.get("policy_ids")) {
        Records::Policies.get(engine, &id).await?;
    }
    if let Some(project) = body.text("project_id") {
        let project = Records::Projects.get(engine, project).await?;
        let id = project.id().to_owned();
        body.0.insert("project_id".to_owned(), json!(id));
    }
    Ok(())
}
