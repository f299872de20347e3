//! Why a request to a graph agent is refused.

use flowstone_engine::EngineError;
use serde_json::{Value as Json, json};

use super::shape::Issue;

/// What an answer says about a refusal.
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

/// A refusal, with its code as in `docs/errors`.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub status: Status,
    pub code: &'static str,
    pub error: String,
    /// Further members of the answer: `issues`, `existing_run_id`, `limit` and so on.
    pub more: Vec<(&'static str, Json)>,
    /// After how many seconds a request may succeed.
    pub retry_after: Option<i64>,
}

/// Why a request fails.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    #[error("{}", .0.error)]
    Refused(Box<Refusal>),
    #[error(transparent)]
    Engine(#[from] EngineError),
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

    /// Adds a member to the answer.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: Json) -> GraphError {
        if let GraphError::Refused(refusal) = &mut self {
            refusal.more.push((name, value));
        }
        self
    }

    /// Sets after how many seconds a request may succeed.
    #[must_use]
    pub fn after(mut self, seconds: i64) -> GraphError {
        if let GraphError::Refused(refusal) = &mut self {
            refusal.retry_after = Some(seconds.max(1));
        }
        self
    }

    /// A body, or a spec in it, that is not valid.
    pub fn invalid(code: &'static str, error: impl Into<String>, issues: &[Issue]) -> GraphError {
        let list: Vec<Json> = issues.iter().map(Issue::to_json).collect();
        GraphError::new(Status::BadRequest, code, error).with("issues", json!(list))
    }
}
