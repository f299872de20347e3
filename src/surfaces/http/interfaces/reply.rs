//! Answers of interfaces: the result of the run if it ends in time, else where it can be looked at.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use flowstone_engine::ids::RunId;
use flowstone_engine::json::{compact, is_exact};
use flowstone_engine::outcome::code_of;
use flowstone_engine::token::Scope;
use flowstone_flow::interfaces::InterfaceKind;
use serde_json::{Map, Value as Json, json};

use super::super::access::Caller;
use super::super::answer::Answer;
use super::super::problem::{Problem, codes};
use super::super::resources::whole;
use super::super::rights::Right;
use super::super::runs::ended_within;
use super::super::server::{EngineContext, Shared};

/// The outcome of a request to an interface.
#[derive(Debug)]
pub(in super::super) enum Outcome {
    Started(Started),
    /// It came before; the run that it started then, and its status.
    Duplicate {
        run: Option<(String, &'static str)>,
    },
    /// The answer to a sender that asks whether the address is right.
    Challenge(String),
    /// Waits were answered, or several runs started.
    Published(Json),
    /// It answered waits before.
    Repeated(Json),
}

/// A run that was just started.
#[derive(Debug)]
pub(in super::super) struct Started {
    pub kind: InterfaceKind,
    pub run: Json,
    pub timeout: Duration,
}

/// What is known about the caller of an interface.
#[derive(Debug, Clone)]
pub(in super::super) struct Who {
    /// Whether the caller may see what went wrong in a run.
    may_read: bool,
    /// Of a caller with a token.
    right: Option<Right>,
}

impl Who {
    pub(in super::super) fn of(server: &Shared, caller: Option<&Caller>) -> Who {
        Who {
            may_read: caller.is_some_and(|caller| caller.token.has(Scope::Read)),
            right: caller.map(|caller| server.rights.open(caller)),
        }
    }
}

/// Headers that a flow cannot set: they are the connection's, or about all pages of this server.
const OURS: &[&str] = &[
    "connection",
    "content-length",
    "content-security-policy",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "set-cookie",
    "strict-transport-security",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-content-type-options",
];

/// Waits for the end of a run that was started, and makes the answer.
pub(super) async fn respond(
    server: &Shared,
    outcome: Outcome,
    who: Who,
) -> Result<Response, Problem> {
    let started = match outcome {
        Outcome::Started(started) => started,
        Outcome::Duplicate { run } => {
            let (id, status) = run.unzip();
            let body = json!({"deduped": true, "runId": id, "status": status});
            return Ok(Answer::ok(body).into_response());
        }
        Outcome::Challenge(challenge) => {
            return Ok(Answer::ok(json!({"challenge": challenge})).into_response());
        }
        Outcome::Published(body) | Outcome::Repeated(body) => {
            return Ok(Answer::with(StatusCode::ACCEPTED, body).into_response());
        }
    };
    let decision = started.run["concurrencyDecision"].clone();
    let run = match started.timeout.is_zero() {
        true => started.run,
        false => {
            let id = RunId::from_text(started.run["id"].as_str().unwrap_or_default());
            {
                // The caller is on the side of the installer, if it is a run of an installation.
                let by = (None, who.right.clone());
                ended_within(server, by, (id, started.timeout)).await?
            }
        }
    };
    let mut short = json!({"runId": run["id"], "status": run["status"]});
    let is_http = started.kind == InterfaceKind::Http;
    let status = run["status"].as_str().unwrap_or_default();
    if !run["endedAt"].is_string() {
        short["concurrencyDecision"] = decision;
        let location = format!("/api/v1/runs/{}", run["id"].as_str().unwrap_or_default());
        return Ok(Answer::with(StatusCode::ACCEPTED, short)
            .header(header::LOCATION, &location)
            .header(header::RETRY_AFTER, "1")
            .into_response());
    }
    match (status, is_http) {
        ("completed", _) => match own_status(&run["result"]) {
            Some(status) => own_response(server, status, &run["result"]).await,
            None if is_http => Ok(Answer::ok(run["result"].clone()).into_response()),
            None => Ok(Answer::ok(short).into_response()),
        },
        (_, false) => Ok(Answer::with(StatusCode::ACCEPTED, short).into_response()),
        (_, true) => Err(failed(server, status, &run, who).await),
    }
}

/// Returns the answer of a run that did not complete, with the code of its error for those who may read runs.
async fn failed(server: &Shared, status: &str, run: &Json, who: Who) -> Problem {
    let (code, words) = match status {
        "timed-out" => (StatusCode::GATEWAY_TIMEOUT, "did not end in time"),
        "cancelled" | "terminated" => (StatusCode::CONFLICT, "was cancelled"),
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "failed"),
    };
    let problem = Problem::new(code, codes::RUN_FAILED, format!("the run {words}"))
        .with("runId", run["id"].clone());
    if !who.may_read {
        return problem;
    }
    let id = RunId::from_text(run["id"].as_str().unwrap_or_default());
    let code = server.ask(async move |cx: &EngineContext| {
        let row = cx.engine.run(&id).await?;
        Ok::<_, Problem>(row.error.as_deref().and_then(code_of))
    });
    match code.await {
        Ok(Some(code)) => problem.with("error", code.into()),
        Ok(None) => problem,
        Err(error) => error,
    }
}

/// Returns the status of a result that is a response of its own.
fn own_status(result: &Json) -> Option<StatusCode> {
    let status = result.get("status")?.as_u64()?;
    let status = u16::try_from(status).ok()?;
    let status = StatusCode::from_u16(status).ok()?;
    (200..=599).contains(&status.as_u16()).then_some(status)
}

/// Makes the response that a flow describes.
async fn own_response(
    server: &Shared,
    status: StatusCode,
    result: &Json,
) -> Result<Response, Problem> {
    let (body, media) = match result.get("body") {
        None | Some(Json::Null) => (Body::empty(), None),
        Some(Json::String(text)) => (
            Body::from(text.clone()),
            Some("text/plain; charset=utf-8".to_owned()),
        ),
        Some(other) => match reference(other) {
            Some(uri) => whole(server, uri).await?,
            None => (
                Body::from(compact(other)),
                Some("application/json".to_owned()),
            ),
        },
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if let Some(media) = media.and_then(|media| media.parse().ok()) {
        headers.insert(header::CONTENT_TYPE, media);
    }
    // A page of a flow shares its origin with pages on which people decide.
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("sandbox; default-src 'none'"),
    );
    let empty = Map::new();
    let given = result.get("headers").and_then(Json::as_object);
    for (name, value) in given.unwrap_or(&empty) {
        match own_header(name, value) {
            Some((name, value)) => drop(headers.insert(name, value)),
            None => tracing::warn!(header = %name, "a header of a flow's response is left out"),
        }
    }
    Ok(response)
}

/// Returns a header that a flow may set.
fn own_header(name: &str, value: &Json) -> Option<(HeaderName, HeaderValue)> {
    let name: HeaderName = name.to_ascii_lowercase().parse().ok()?;
    if OURS.contains(&name.as_str()) || name.as_str().starts_with("access-control-") {
        return None;
    }
    let text = match value {
        Json::String(text) => text.clone(),
        Json::Number(number) => number.to_string(),
        Json::Bool(flag) => flag.to_string(),
        Json::Object(_) if is_exact(value) => compact(value),
        Json::Null | Json::Array(_) | Json::Object(_) => return None,
    };
    if name == header::LOCATION && !is_web_address(&text) {
        return None;
    }
    Some((name, text.parse().ok()?))
}

/// Tells whether a link leads to this server, or to another one by http or https.
fn is_web_address(text: &str) -> bool {
    let head = text.split(['/', '?', '#']).next().unwrap_or_default();
    match head.split_once(':') {
        None => true,
        Some((scheme, _)) => {
            scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
        }
    }
}

/// Returns the name of something stored that a value refers to.
fn reference(value: &Json) -> Option<&str> {
    let members = value.as_object()?;
    let keys = ["uri", "resource-uri", "ref", "blob-ref"];
    let found = keys.into_iter().find_map(|key| members.get(key)?.as_str());
    found.filter(|uri| uri.starts_with("res://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_sets_harmless_headers_only() {
        let set = |name: &str, value: &str| own_header(name, &json!(value)).is_some();
        for (name, value) in [
            ("X-Order", "7"),
            ("Content-Type", "text/html"),
            ("Location", "/orders/7"),
            ("Location", "https://example.com/a?b=c:d"),
            ("Cache-Control", "max-age=60"),
        ] {
            assert!(set(name, value), "{name}: {value}");
        }
        for (name, value) in [
            ("Set-Cookie", "a=b"),
            ("Content-Length", "7"),
            ("Transfer-Encoding", "chunked"),
            ("Access-Control-Allow-Origin", "*"),
            ("Content-Security-Policy", "none"),
            ("Strict-Transport-Security", "max-age=1"),
            ("Location", "javascript:alert(1)"),
            ("Location", "data:text/html,x"),
            ("X-Order", "7\r\nSet-Cookie: a=b"),
            ("X Order", "7"),
        ] {
            assert!(!set(name, value), "{name}: {value}");
        }
    }

    #[test]
    fn a_response_has_a_status() {
        assert_eq!(
            own_status(&json!({"status": 201})),
            Some(StatusCode::CREATED)
        );
        for result in [
            json!({"status": 199}),
            json!({"status": 600}),
            json!({"status": "200"}),
            json!({"status": 200.5}),
            json!([200]),
            json!(null),
        ] {
            assert_eq!(own_status(&result), None, "{result}");
        }
    }
}
