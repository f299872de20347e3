//! Access tokens, without their secrets.

use flowstone_engine::token::Token;
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::values::{instant, object};

/// An access token, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AccessToken {
    id: String,
    name: String,
    /// `service`, `user`, `anon` or `owner`.
    kind: &'static str,
    scopes: Vec<&'static str>,
    flows: Vec<String>,
    labels: Vec<String>,
    resources: Vec<String>,
    job_types: Vec<String>,
    /// The workspace that it belongs to.
    workspace: String,
    roles: Vec<String>,
    subject: Option<String>,
    created_at: Json,
    expires_at: Option<Json>,
    used_at: Option<Json>,
    revoked_at: Option<Json>,
    /// The token itself. Only the answer to its creation contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

/// Returns a token as JSON, without its secret. The names of the fields are stable.
pub fn token_json(token: &Token) -> Json {
    new_token_json(token, None)
}

/// Returns a token that was just created as JSON, with its text.
pub fn new_token_json(token: &Token, text: Option<&str>) -> Json {
    object(&AccessToken {
        id: token.id.clone(),
        name: token.name.clone(),
        kind: token.kind.name(),
        scopes: token.scopes.iter().map(|scope| scope.name()).collect(),
        flows: token.limits.flows.clone(),
        labels: token.limits.labels.clone(),
        resources: token.limits.resources.clone(),
        job_types: token.limits.job_types.clone(),
        workspace: token.workspace().to_owned(),
        roles: token.roles.clone(),
        subject: token.subject.clone(),
        created_at: instant(token.created_ms),
        expires_at: token.expires_ms.map(instant),
        used_at: token.used_ms.map(instant),
        revoked_at: token.revoked_ms.map(instant),
        token: text.map(str::to_owned),
    })
}
