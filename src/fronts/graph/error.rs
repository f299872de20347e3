//! Errors of requests to graph agents.

use flowstone_engine::EngineError;
use serde_json::{Value as Json, json};

use super::shape::Issue;

/// The members of an error response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    BadRequest,
    Unauthorized,
    Forbidden,
    NotFound,
    Conflict,
    TooMany,
    BadGateway,
}

/// A refused request, with its code as in `docs/errors`.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub status: Status,
    pub code: &'static str,
    pub error: String,
    /// Further members of the response: `issues`, `existing_run_id`, `limit` and so on.
    pub more: Vec<(&'static str, Json)>,
    /// The number of seconds after which a request may succeed.
    pub retry_after: Option<i64>,
}

/// The reason why a request fails.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    #[error("{}", .0.error)]
    Refused(Box<Refusal>),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl Refusal {
    /// Returns the refusal of a body whose text is wrong.
    pub fn malformed(why: &dyn std::fmt::Display) -> Refusal {
        Refusal {
            status: Status::BadRequest,
            code: super::codes::MALFORMED,
            error: format!("the body is not valid: {why}"),
            more: Vec::new(),
            retry_after: None,
        }
    }
}

impl From<flowstone_engine::ports::StoreError> for GraphError {
    fn from(error: flowstone_engine::ports::StoreError) -> GraphError {
        GraphError::Engine(error.into())
    }
}

impl GraphError {
    pub fn new(status: Status, code: &'static str, error: impl Into<String>) -> GraphError {
        GraphError::Refused(Box::new(Refusal {
            status,
            code,
            error: error.into(),
            more: Vec::new(),
            retry_after: None,
        }))
    }

    /// Adds a member to the response.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: Json) -> GraphError {
        if let GraphError::Refused(refusal) = &mut self {
            refusal.more.push((name, value));
        }
        self
    }

    /// Sets the number of seconds after which a request may succeed.
    #[must_use]
    pub fn after(mut self, seconds: i64) -> GraphError {
        if let GraphError::Refused(refusal) = &mut self {
            refusal.retry_after = Some(seconds.max(1));
        }
        self
    }

    /// Returns the error for an invalid body, or an invalid spec in it.
    pub fn invalid(code: &'static str, error: impl Into<String>, issues: &[Issue]) -> GraphError {
        let list: Vec<Json> = issues.iter().map(Issue::to_json).collect();
        GraphError::new(Status::BadRequest, code, error).with("issues", json!(list))
    }
}
