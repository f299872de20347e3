//! Why a request to the agents API is refused.

use flowstone_engine::EngineError;
use serde_json::Value as Json;

use super::codes;

/// What kind of refusal an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    BadRequest,
    Forbidden,
    NotFound,
    Conflict,
    Gone,
    Unprocessable,
    BadGateway,
}

/// A refusal: `name` is what clients of this API read, `code` is the page in `docs/errors`.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub status: Status,
    pub name: &'static str,
    pub code: &'static str,
    pub message: String,
    pub meta: Option<Json>,
}

/// Why a request fails.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    #[error("{}", .0.message)]
    Refused(Box<Refusal>),
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<flowstone_engine::ports::StoreError> for ApiError {
    fn from(error: flowstone_engine::ports::StoreError) -> ApiError {
        ApiError::Engine(error.into())
    }
}

impl ApiError {
    pub fn new(
        status: Status,
        (name, code): (&'static str, &'static str),
        message: impl Into<String>,
    ) -> ApiError {
        ApiError::Refused(Box::new(Refusal {
            status,
            name,
            code,
            message: message.into(),
            meta: None,
        }))
    }

    /// Says what a refusal is about.
    #[must_use]
    pub fn about(mut self, what: &str) -> ApiError {
        if let ApiError::Refused(refusal) = &mut self {
            refusal.message = format!("{} for {what}", refusal.message);
        }
        self
    }

    /// Adds `meta` to the answer.
    #[must_use]
    pub fn with(mut self, meta: Json) -> ApiError {
        if let ApiError::Refused(refusal) = &mut self {
            refusal.meta = Some(meta);
        }
        self
    }

    /// A body or a parameter that is not valid.
    pub fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(
            Status::BadRequest,
            ("VALIDATION_FAILED", codes::INVALID),
            message,
        )
    }

    /// A record that does not exist, or that the caller may not know of.
    pub fn missing(what: &str, id: &str) -> ApiError {
        ApiError::new(
            Status::NotFound,
            ("RESOURCE_NOT_FOUND", codes::MISSING),
            format!("there is no {what} `{id}`"),
        )
    }

    pub fn conflict(message: impl Into<String>) -> ApiError {
        ApiError::new(Status::Conflict, ("CONFLICT", codes::CONFLICT), message)
    }
}
