//! `/v1/{app_id}`: graph agents in the addresses and envelopes of their own API.
//!
//! `{app_id}` is the project: `default`, or its name in addresses. What a request means and who may make it is decided in
//! `flowstone_fronts::graph`.

mod agents;
mod events;
mod functions;
mod public;
mod runs;
mod servers;
mod visitor;
pub(super) mod webhooks;

pub(crate) use visitor::{CallerAddress, Visitor};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse as _, Response};
use flowstone_fronts::graph::error::{GraphError, Refusal, Status};
use flowstone_fronts::json_text::{self, JsonTextError};
use serde_json::{Value as Json, json};

use super::problem::Problem;
use super::request::{JSON_MAX, Query, bytes, json, refuse_other_types};
use super::server::Shared;

/// The beginning of the addresses of this front.
const PREFIX: &str = "/v1/";

pub(super) fn routes() -> Router<Shared> {
    let without_query = agents::routes()
        .merge(functions::routes())
        .merge(public::routes())
        .merge(runs::routes())
        .merge(servers::routes())
        .route_layer(from_fn(refuse_parameters));
    without_query
        .merge(events::routes())
        .merge(runs::list_routes())
}

/// Refuses a query: the addresses behind this layer take none.
async fn refuse_parameters(request: Request, next: Next) -> Response {
    match Query::read(request.uri().query(), &[]) {
        Ok(_) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// Adds `error`, which clients of this API read, to a problem that lacks it.
pub(super) fn add_error(path: &str, problem: &Problem, members: &mut Json) {
    if path.starts_with(PREFIX) && members.get("error").is_none() {
        members["error"] = json!(problem.detail);
    }
}

/// The text of a JSON body.
enum Text {
    Empty,
    Json(Json),
    /// JSON that readers change silently: a member that is there twice, or an integer that would be rounded.
    Refused(JsonTextError),
}

/// Reads a JSON body; `None` if it is empty.
async fn read(headers: &HeaderMap, body: Body) -> Result<Option<Json>, Problem> {
    match read_text(headers, body).await? {
        Text::Empty => Ok(None),
        Text::Json(body) => Ok(Some(body)),
        Text::Refused(error) => Err(of_refusal(Refusal::malformed(&error))),
    }
}

/// Reads the text of a JSON body.
async fn read_text(headers: &HeaderMap, body: Body) -> Result<Text, Problem> {
    let bytes = bytes(body, JSON_MAX).await?;
    if bytes.is_empty() {
        return Ok(Text::Empty);
    }
    refuse_other_types(headers)?;
    match json_text::read(&String::from_utf8_lossy(&bytes)) {
        Err(error @ (JsonTextError::Digits { .. } | JsonTextError::Twice { .. })) => {
            Ok(Text::Refused(error))
        }
        Ok(_) | Err(JsonTextError::Syntax(_)) => Ok(Text::Json(json(&bytes)?)),
    }
}

/// Reads a JSON body; an empty one is an empty object.
async fn read_object(headers: &HeaderMap, body: Body) -> Result<Json, Problem> {
    Ok(read(headers, body).await?.unwrap_or_else(|| json!({})))
}

impl From<GraphError> for Problem {
    fn from(error: GraphError) -> Problem {
        match error {
            GraphError::Engine(error) => error.into(),
            GraphError::Refused(refusal) => of_refusal(*refusal),
        }
    }
}

fn of_refusal(refusal: Refusal) -> Problem {
    let status = match refusal.status {
        Status::BadRequest => StatusCode::BAD_REQUEST,
        Status::Unauthorized => StatusCode::UNAUTHORIZED,
        Status::Forbidden => StatusCode::FORBIDDEN,
        Status::NotFound => StatusCode::NOT_FOUND,
        Status::Conflict => StatusCode::CONFLICT,
        Status::TooMany => StatusCode::TOO_MANY_REQUESTS,
        Status::BadGateway => StatusCode::BAD_GATEWAY,
    };
    let error = json!(refusal.error);
    let mut problem = Problem::new(status, refusal.code, refusal.error).with("error", error);
    for (name, value) in refusal.more {
        problem = problem.with(name, value);
    }
    match refusal.retry_after {
        Some(seconds) => problem.header(header::RETRY_AFTER, &seconds.to_string()),
        None => problem,
    }
}
