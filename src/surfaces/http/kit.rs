//! `/api/tools` and `/api/spans/query`: the build kit over HTTP. Answers and errors are bare objects of the kit.
//!
//! The header `X-Flowstone-Flow` names the flow that the caller works on; a token that is for one flow needs none. Approvals and
//! requests for connections have pages, too, for people who open a link.

mod approval;
mod connection;
mod link;
mod logins;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use flowstone_flow::definition::is_identifier;
use flowstone_fronts::kit::CancelOnDrop;
use flowstone_fronts::kit::link::CALLBACK;
use flowstone_fronts::kit::{Called, KitError, Origin};
use serde_json::{Map, Value as Json, json};

pub(super) use logins::Logins;

use super::access::Caller;
use super::answer::Answer;
use super::problem::Problem;
use super::request::{JSON_MAX, bytes, json as read_json, refuse_other_types};
use super::server::{EngineContext, Shared};
use crate::kit::{self, Agreed, KitDoor, Wanted};

const FLOW: HeaderName = HeaderName::from_static("x-flowstone-flow");
/// Headers that say which kind of run makes the request.
const RUN_KINDS: &[&str] = &["x-flowstone-run-kind", "x-agenta-run-kind"];
/// The kind of runs that change nothing through the kit.
const TEST: &str = "test";
/// The beginnings of the addresses of this front.
const PREFIXES: &[&str] = &["/api/spans", "/api/tools", "/mcp/kit"];
/// The member of a problem that holds the error of the kit.
const ERROR: &str = "kitError";

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/api/tools", get(list))
        .route("/api/tools/", get(list))
        .route("/api/tools/approvals", get(approval::list))
        .route("/api/tools/approvals/", get(approval::list))
        .route(
            "/api/tools/approvals/{id}",
            get(approval::show).post(approval::decide),
        )
        .route(
            "/api/tools/approvals/{id}/",
            get(approval::show).post(approval::decide),
        )
        .route("/api/tools/approvals/{id}/done", get(approval::done))
        .route(
            "/api/tools/connections/{id}",
            get(connection::show).post(connection::complete),
        )
        .route("/api/tools/connections/{id}/done", get(connection::done))
        .route("/api/tools/{name}", post(call))
        .route("/api/tools/{name}/", post(call))
        .route("/api/spans/query", post(query_spans))
        .route("/api/spans/query/", post(query_spans))
        .route(CALLBACK, get(connection::come_back))
}

/// Returns the body of an error for an address of this front, with its status; nothing for others.
pub(super) fn envelope(path: &str, problem: &Problem, request: &str) -> Option<Json> {
    let is_own = |prefix: &&str| {
        let rest = path.strip_prefix(*prefix);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if !PREFIXES.iter().any(is_own) {
        return None;
    }
    let mut error = match problem.more.get(ERROR) {
        Some(error) => error.clone(),
        None => of_problem(problem),
    };
    if error["code"] == json!("internal") {
        error["details"] = json!({"request_id": request});
    }
    Some(error)
}

/// Returns an error that another layer made in the shape of the kit.
fn of_problem(problem: &Problem) -> Json {
    let code = match problem.status {
        StatusCode::UNAUTHORIZED => "unauthorized",
        StatusCode::FORBIDDEN => "permission_denied",
        StatusCode::NOT_FOUND | StatusCode::GONE => "not_found",
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => "limit_exceeded",
        status if status.is_server_error() => "internal",
        _ => "invalid_arguments",
    };
    let message = match code {
        "internal" => "internal error",
        _ => &problem.detail,
    };
    let is_retryable = code == "limit_exceeded";
    let mut error = json!({"code": code, "message": message, "retryable": is_retryable});
    match &problem.hint {
        Some(hint) if code != "internal" => error["next_step"] = json!(hint),
        _ if is_retryable => error["next_step"] = json!("repeat the request after a while"),
        _ => {}
    }
    if code == "invalid_arguments" {
        error["details"] = json!({"path": "", "expected": "a request that the page describes"});
    }
    error
}

impl From<KitError> for Problem {
    fn from(error: KitError) -> Problem {
        let status = StatusCode::from_u16(error.code.status());
        let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let wait = error.details.as_ref();
        let wait = wait.and_then(|details| details["retry_after_s"].as_u64());
        let problem = Problem::new(status, error.code.name(), error.message.clone())
            .with(ERROR, error.to_json());
        match wait {
            Some(seconds) => problem.header(header::RETRY_AFTER, &seconds.to_string()),
            None => problem,
        }
    }
}

/// Returns what the request says about where it comes from.
fn door(server: &Shared, caller: &Caller, headers: &HeaderMap) -> Result<KitDoor, Problem> {
    let named = headers.get(FLOW).map(|value| value.to_str());
    let named = match named {
        Some(Ok(slug)) if is_identifier(slug.trim()) => Some(slug.trim().to_owned()),
        Some(_) => {
            return Err(KitError::invalid(
                "",
                "the slug of a flow",
                "the header `X-Flowstone-Flow` is not the slug of a flow",
            )
            .into());
        }
        None => kit::flow_of(&caller.token),
    };
    Ok(KitDoor {
        slug: named,
        origin: Origin {
            is_test: is_test(headers),
            base: Some(base(server, headers)),
            ..Origin::default()
        },
        ..KitDoor::default()
    })
}

/// Returns the base of links for the sender of a request.
pub(super) fn base(server: &Shared, headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok());
    server.settings.base_for(host)
}

/// Tells whether a run of kind `test` makes a request.
pub(super) fn is_test(headers: &HeaderMap) -> bool {
    let mut kinds = RUN_KINDS.iter().filter_map(|name| headers.get(*name));
    kinds.any(|kind| kind.as_bytes().eq_ignore_ascii_case(TEST.as_bytes()))
}

async fn list(
    State(server): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Answer, Problem> {
    let door = door(&server, &caller, &headers)?;
    let tools = server.ask(async move |cx: &EngineContext| {
        let tools = kit::tools(&cx.engine, (&caller.token, &door))?.into_iter();
        let tools = tools.map(|offered| offered.described());
        Ok::<_, KitError>(tools.collect::<Vec<Json>>())
    });
    let tools = tools.await?;
    Ok(Answer::ok(json!({"count": tools.len(), "tools": tools})))
}

async fn call(
    State(server): State<Shared>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let door = KitDoor {
        is_for_model: true,
        ..door(&server, &caller, &headers)?
    };
    perform((server, caller, door), name, (headers, body)).await
}

async fn query_spans(
    State(server): State<Shared>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    let door = door(&server, &caller, &headers)?;
    let name = "query_spans".to_owned();
    perform((server, caller, door), name, (headers, body)).await
}

async fn perform(
    (server, caller, door): (Shared, Caller, KitDoor),
    name: String,
    (headers, body): (HeaderMap, Body),
) -> Result<Response, Problem> {
    let arguments = read(&headers, body).await?;
    let wanted = Wanted {
        name,
        arguments,
        agreed: Agreed::CannotAsk,
    };
    // A closed request drops this future, and with it the guard.
    let (_guard, cancelled) = CancelOnDrop::new();
    let called = server.ask(async move |cx: &EngineContext| {
        kit::call(cx, (&caller.token, &door), wanted, cancelled).await
    });
    match called.await? {
        Called::Done(answer) => Ok(Answer::ok(answer).into_response()),
        Called::Ask(question) => Err(KitError::approval_required(question.tool, Json::Null).into()),
    }
}

/// Reads the arguments; an empty body is an empty object.
async fn read(headers: &HeaderMap, body: Body) -> Result<Json, Problem> {
    let bytes = bytes(body, JSON_MAX).await?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Ok(Json::Object(Map::new()));
    }
    refuse_other_types(headers)?;
    read_json(&bytes)
}
