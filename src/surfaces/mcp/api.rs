//! Calls routes of the API within the process, so that a tool of the workspace returns the same as the API.

use axum::body::Body;
use axum::http::{Method, Request as HttpRequest, StatusCode, header};
use flowstone_engine::json::{compact, read_exact};
use serde_json::{Value as Json, json};
use tower::ServiceExt as _;

use super::peer::Request;
use super::protocol::{RpcError, codes};
use crate::http;

/// Maximum size of a response that is read into memory, in bytes.
pub(super) const ANSWER_MAX: usize = 20 << 20;

/// A response of the API.
pub(super) struct Answer {
    pub status: StatusCode,
    pub media: String,
    pub bytes: Vec<u8>,
}

impl Answer {
    /// Returns the JSON of the response; null if it has none.
    pub(super) fn json(&self) -> Json {
        read_exact(&self.bytes).unwrap_or(Json::Null)
    }

    /// Returns the error as one text; `None` if the call succeeded.
    pub(super) fn problem(&self) -> Option<String> {
        if self.status.is_success() {
            return None;
        }
        let problem = self.json();
        let text = |key: &str| problem[key].as_str().map(str::to_owned);
        let detail = text("detail").unwrap_or_else(|| self.status.to_string());
        let code = text("code")
            .map(|code| format!("{code}: "))
            .unwrap_or_default();
        let hint = text("hint")
            .map(|hint| format!("\nhint: {hint}"))
            .unwrap_or_default();
        let errors = match &problem["errors"] {
            Json::Null => String::new(),
            errors => format!("\n{}", compact(errors)),
        };
        Some(format!("{code}{detail}{hint}{errors}"))
    }
}

/// Calls a route of the API as the caller of a request.
///
/// # Errors
/// When the response cannot be read.
pub(super) async fn call(
    rq: &Request,
    method: Method,
    path_and_query: &str,
    body: Option<&Json>,
) -> Result<Answer, RpcError> {
    let internal = |message: String| RpcError::new(codes::INTERNAL, message);
    let body_text = body.map(compact);
    let mut request = HttpRequest::builder().method(method).uri(path_and_query);
    if body.is_some() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    if let Some(trace) = rq.trace() {
        request = request.header(http::TRACE_HEADER, trace.to_string());
    }
    let body = body_text.map_or_else(Body::empty, Body::from);
    let mut request = request
        .body(body)
        .map_err(|_| RpcError::params("an argument cannot be part of an address"))?;
    request.extensions_mut().insert(rq.caller.clone());
    let response = http::in_process(&rq.server).oneshot(request).await;
    let response = response.unwrap_or_else(|never| match never {});
    let status = response.status();
    let media = response.headers().get(header::CONTENT_TYPE);
    let media = media.and_then(|media| media.to_str().ok());
    let media = media.unwrap_or("application/octet-stream").to_owned();
    let bytes = axum::body::to_bytes(response.into_body(), ANSWER_MAX).await;
    let bytes = bytes.map_err(|_| {
        internal(format!("the answer has more than {ANSWER_MAX} bytes"))
            .with(json!({"code": "E1082"}))
    })?;
    Ok(Answer {
        status,
        media,
        bytes: bytes.to_vec(),
    })
}

/// Escapes a text for a part of a path or a query.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                escaped.push(char::from(byte));
            }
            byte => escaped += &format!("%{byte:02X}"),
        }
    }
    escaped
}
