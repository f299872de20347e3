//! Access tokens, without their secrets.

use flowstone_engine::token::Token;
use serde_json::json;

use super::values::instant;

/// Returns a token as JSON, without its secret. The names of the fields are stable.
pub fn token_json(token: &Token) -> serde_json::Value {
    let scopes: Vec<&str> = token.scopes.iter().map(|scope| scope.name()).collect();
    json!({
        "id": token.id,
        "name": token.name,
        "kind": token.kind.name(),
        "scopes": scopes,
        "flows": token.limits.flows,
        "labels": token.limits.labels,
        "resources": token.limits.resources,
        "jobTypes": token.limits.job_types,
        "roles": token.roles,
        "subject": token.subject,
        "createdAt": instant(token.created_ms),
        "expiresAt": token.expires_ms.map(instant),
        "usedAt": token.used_ms.map(instant),
        "revokedAt": token.revoked_ms.map(instant),
    })
}
