//! `/api/v1/tokens`.

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get};
use flowstone_engine::token::{Scope, TokenKind, TokenLimits};
use flowstone_engine::tokens::{DEFAULT_TTL, NewToken};
use serde_json::json;

use super::access::Caller;
use super::answer::Answer;
use super::problem::Problem;
use super::request::{Members, Query};
use super::server::{Desk, Shared};
use crate::json::{new_token_json, token_json};

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/v1/tokens", get(list).post(create))
        .route("/api/v1/tokens/{id}", delete(revoke))
}

async fn list(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Admin)?;
    Query::read(query.as_deref(), &[])?;
    let tokens = server
        .ask(async |desk: &Desk| desk.engine.tokens().await)
        .await?;
    let tokens: Vec<_> = tokens.iter().map(token_json).collect();
    Ok(Answer::ok(json!({"tokens": tokens})))
}

const MEMBERS: &[&str] = &[
    "expires",
    "flows",
    "jobTypes",
    "kind",
    "labels",
    "name",
    "resources",
    "roles",
    "scopes",
    "subject",
];

async fn create(
    State(server): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Admin)?;
    let given = Members::read(&headers, body, MEMBERS).await?;
    let new = new_token(&given)?;
    let (token, text) = server
        .ask(async move |desk: &Desk| desk.engine.create_token(new, Some(&caller.token)).await)
        .await?;
    let created = new_token_json(&token, Some(&text.reveal()));
    Ok(Answer::with(StatusCode::CREATED, created))
}

fn new_token(given: &Members) -> Result<NewToken, Problem> {
    let kind = given.text("kind")?.unwrap_or_else(|| "service".to_owned());
    let kind = TokenKind::named(&kind).ok_or_else(|| {
        let names: Vec<&str> = TokenKind::NAMES.iter().map(|(_, name)| *name).collect();
        Problem::malformed(format!(
            "`kind` must be one of {}, got `{kind}`",
            names.join(", ")
        ))
    })?;
    let mut scopes = Vec::new();
    for name in given.texts("scopes")? {
        scopes.push(Scope::named(&name).ok_or_else(|| {
            let names: Vec<&str> = Scope::NAMES.iter().map(|(_, name)| *name).collect();
            Problem::malformed(format!(
                "`{name}` is not a scope; there are {}",
                names.join(", ")
            ))
        })?);
    }
    let ttl = match given.text("expires")?.as_deref() {
        None => Some(DEFAULT_TTL),
        Some("never") => None,
        Some(_) => given.duration("expires")?,
    };
    Ok(NewToken {
        name: given.text("name")?.unwrap_or_default(),
        kind,
        scopes,
        limits: TokenLimits {
            flows: given.texts("flows")?,
            labels: given.texts("labels")?,
            resources: given.texts("resources")?,
            job_types: given.texts("jobTypes")?,
        },
        roles: given.texts("roles")?,
        subject: given.text("subject")?,
        ttl,
    })
}

async fn revoke(
    State(server): State<Shared>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    caller.need(Scope::Admin)?;
    server
        .ask(async move |desk: &Desk| desk.engine.revoke_token(&id).await)
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
