//! `/api/v1/tokens`.

use axum::body::Body;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use flowstone_engine::token::{Scope, TokenKind, TokenLimits};
use flowstone_engine::tokens::{DEFAULT_TTL, NewToken};
use serde_json::json;

use super::access::Caller;
use super::answer::Answer;
use super::operation::{self as shape, Content, Kind, Operation, Operations, Param, names};
use super::problem::Problem;
use super::request::{Members, Query};
use super::server::{EngineContext, Shared};
use crate::json::{AccessToken, new_token_json, token_json};

pub(super) fn operations() -> Operations {
    Operations::default()
        .with(
            Operation::get(
                "/api/v1/tokens",
                "listTokens",
                "Lists access tokens, without their secrets.",
            )
            .scope(Scope::Admin)
            .ok(shape::list::<AccessToken>("tokens")),
            list,
        )
        .with(
            Operation::post(
                "/api/v1/tokens",
                "createToken",
                "Creates an access token. Only this answer contains it.",
            )
            .scope(Scope::Admin)
            .members(MEMBERS)
            .json(
                StatusCode::CREATED,
                "The token.",
                shape::of::<AccessToken>(),
            )
            .refuses(&[422]),
            create,
        )
        .with(
            Operation::delete(
                "/api/v1/tokens/{id}",
                "revokeToken",
                "Revokes an access token.",
            )
            .scope(Scope::Admin)
            .reply(StatusCode::NO_CONTENT, "It is revoked.", Content::Nothing),
            revoke,
        )
}

async fn list(
    State(server): State<Shared>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Answer, Problem> {
    caller.need(Scope::Admin)?;
    Query::read(query.as_deref(), &[])?;
    let tokens = server
        .ask(async move |cx: &EngineContext| cx.engine.tokens(Some(&caller.token)).await)
        .await?;
    let tokens: Vec<_> = tokens.iter().map(token_json).collect();
    Ok(Answer::ok(json!({"tokens": tokens})))
}

const MEMBERS: &[Param] = &[
    Param::text(
        "expires",
        "A duration such as `30d`, or `never`; 90 days if it is left out.",
    ),
    Param::new(
        "flows",
        Kind::Texts,
        "Only flows with these slugs; `*` stands for any text.",
    ),
    Param::new("jobTypes", Kind::Texts, "Only jobs of these types."),
    Param::new(
        "kind",
        Kind::OneOf(&["anon", "owner", "service", "user"]),
        "Who uses it; `service` if it is left out.",
    ),
    Param::new("labels", Kind::Texts, "Only flows with one of these tags."),
    Param::text(
        "name",
        "Its name, to which decisions and starts are attributed.",
    ),
    Param::new(
        "resources",
        Kind::Texts,
        "Only resources, tables and keys whose names begin like this.",
    ),
    Param::new("roles", Kind::Texts, "Roles with which it decides waits."),
    Param::new(
        "scopes",
        Kind::Texts,
        "Rights: `admin`, `approve`, `edit`, `read`, `run`, `work`.",
    ),
    Param::text(
        "subject",
        "The person it stands for, for tokens of kind `user`.",
    ),
    Param::text(
        "workspace",
        "The workspace it belongs to; that of the caller if it is left out.",
    ),
];

async fn create(
    State(server): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Answer, Problem> {
    caller.need(Scope::Admin)?;
    let given = Members::read(&headers, body, &names(MEMBERS)).await?;
    let mut new = new_token(&given)?;
    let own = &caller.token.limits.workspace;
    new.limits.workspace = new.limits.workspace.or_else(|| own.clone());
    let (token, text) = server
        .ask(async move |cx: &EngineContext| cx.engine.create_token(new, Some(&caller.token)).await)
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
            workspace: given.text("workspace")?,
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
        .ask(async move |cx: &EngineContext| cx.engine.revoke_token(&id, Some(&caller.token)).await)
        .await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
