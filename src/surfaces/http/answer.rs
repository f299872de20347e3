//! Answers of the API: JSON with a status.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flowstone_engine::json::compact;
use serde_json::Value;

/// A JSON object with a status and further headers.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    status: StatusCode,
    body: Value,
    headers: Vec<(header::HeaderName, HeaderValue)>,
}

impl Answer {
    pub(super) fn ok(body: Value) -> Answer {
        Answer::with(StatusCode::OK, body)
    }

    pub(super) fn with(status: StatusCode, body: Value) -> Answer {
        Answer {
            status,
            body,
            headers: Vec::new(),
        }
    }

    pub(super) fn header(mut self, name: header::HeaderName, value: &str) -> Answer {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(compact(&self.body)));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/json"),
        );
        headers.extend(self.headers);
        response
    }
}
