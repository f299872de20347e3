//! `/api/v1/agents`, `/api/v1/tools` and the other nouns of the agents API, in its own envelopes.
//!
//! What a request means is decided in `flowstone_fronts::agents`. Errors are `{"error": {"code", "message", "meta"}}` on every
//! address below these nouns, also for what the layers around the routes refuse.

mod client;
mod delayed;
mod documents;
mod generations;
mod keys;
mod knowledge;
mod nouns;
mod openapi;
mod records;
mod sent;
mod sessions;
mod stream;
mod tags;
mod traces;

pub(crate) use delayed::answer_delayed;
pub(super) use keys::limit_keys;
pub(crate) use openapi::document;

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode};
use flowstone_engine::json::large_integer;
use flowstone_fronts::agents::error::{ApiError, Refusal, Status};
use serde_json::{Value as Json, json};

use super::problem::Problem;
use super::request::{JSON_MAX, bytes, json as read_json, refuse_other_types};
use super::server::Shared;

/// Nouns below `/api/v1` that belong to this front; the last ones have no routes.
const NOUNS: &[&str] = &[
    "actors",
    "agents",
    "ai-providers",
    "api-keys",
    "documents",
    "knowledge",
    "memories",
    "policies",
    "projects",
    "secrets",
    "tools",
    "traces",
    "chats",
    "conversations",
    "files",
    "formations",
    "orchestrations",
    "users",
    "webhooks",
];
/// The member of a problem that holds the name of an error for clients of this API.
const NAME: &str = "agentsError";
const META: &str = "agentsMeta";
/// Maximum number of digits of a number in an error.
const DIGITS: usize = 60;

pub(super) fn routes() -> Router<Shared> {
    documents::routes()
        .merge(generations::routes())
        .merge(knowledge::routes())
        .merge(keys::routes())
        .merge(nouns::routes())
        .merge(openapi::routes())
        .merge(sessions::routes())
        .merge(tags::routes())
        .merge(traces::routes())
}

/// Returns the body of an error for an address of this front; nothing for others.
pub(super) fn envelope(path: &str, problem: &Problem, request: &str) -> Option<Json> {
    let noun = path.strip_prefix("/api/v1/")?.split('/').next()?;
    if !NOUNS.contains(&noun) {
        return None;
    }
    let name = problem.more.get(NAME).and_then(Json::as_str);
    let mut error = json!({
        "code": name.unwrap_or_else(|| usual(problem.status)),
        "message": problem.detail,
    });
    if let Some(meta) = problem.more.get(META) {
        error["meta"] = meta.clone();
    }
    Some(json!({
        "error": error,
        "docs": format!("/docs/errors/{}", problem.code),
        "request_id": request,
    }))
}

/// Returns the name of an error that another layer made.
fn usual(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "VALIDATION_FAILED",
        StatusCode::UNAUTHORIZED => "UNAUTHORIZED",
        StatusCode::FORBIDDEN => "FORBIDDEN",
        StatusCode::NOT_FOUND => "RESOURCE_NOT_FOUND",
        StatusCode::METHOD_NOT_ALLOWED => "METHOD_NOT_ALLOWED",
        StatusCode::REQUEST_TIMEOUT => "REQUEST_TIMEOUT",
        StatusCode::CONFLICT => "CONFLICT",
        StatusCode::PAYLOAD_TOO_LARGE => "PAYLOAD_TOO_LARGE",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "UNSUPPORTED_MEDIA_TYPE",
        StatusCode::UNPROCESSABLE_ENTITY => "UNPROCESSABLE",
        StatusCode::TOO_MANY_REQUESTS => "TOO_MANY_REQUESTS",
        StatusCode::SERVICE_UNAVAILABLE => "UNAVAILABLE",
        _ => "INTERNAL_ERROR",
    }
}

/// Reads a JSON body; an empty one is an empty object.
async fn read(headers: &HeaderMap, body: Body) -> Result<Json, Problem> {
    let bytes = bytes(body, JSON_MAX).await?;
    if bytes.is_empty() {
        return Ok(json!({}));
    }
    refuse_other_types(headers)?;
    let json = read_json(&bytes)?;
    // Records, runs and tools have numbers of 64 bits, so a larger integer would become another number.
    match std::str::from_utf8(&bytes).ok().and_then(large_integer) {
        None => Ok(json),
        Some(digits) => Err(Problem::malformed(format!(
            "the body has the integer {}, which 64 bits cannot hold; send it as a string",
            shortened(digits)
        ))),
    }
}

/// Returns the first digits of a number.
fn shortened(digits: &str) -> String {
    match digits.get(..DIGITS) {
        Some(first) if digits.len() > DIGITS => format!("{first}..."),
        _ => digits.to_owned(),
    }
}

impl From<ApiError> for Problem {
    fn from(error: ApiError) -> Problem {
        match error {
            ApiError::Engine(error) => error.into(),
            ApiError::Refused(refusal) => of_refusal(*refusal),
        }
    }
}

fn of_refusal(refusal: Refusal) -> Problem {
    let status = match refusal.status {
        Status::BadRequest => StatusCode::BAD_REQUEST,
        Status::Forbidden => StatusCode::FORBIDDEN,
        Status::NotFound => StatusCode::NOT_FOUND,
        Status::Conflict => StatusCode::CONFLICT,
        Status::Gone => StatusCode::GONE,
        Status::Unprocessable => StatusCode::UNPROCESSABLE_ENTITY,
        Status::BadGateway => StatusCode::BAD_GATEWAY,
    };
    let problem =
        Problem::new(status, refusal.code, refusal.message).with(NAME, json!(refusal.name));
    match refusal.meta {
        Some(meta) => problem.with(META, meta),
        None => problem,
    }
}
