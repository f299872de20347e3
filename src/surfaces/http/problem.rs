//! Errors as answers: `application/problem+json` of RFC 9457, with our code, hint and the id of the request.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use flowstone_engine::EngineError;
use flowstone_engine::jobs::JobError;
use flowstone_engine::json::compact;
use flowstone_engine::links::LinkError;
use flowstone_engine::ports::StoreError;
use flowstone_engine::resource::sign::BadLink;
use flowstone_engine::resources::ResourceError;
use flowstone_engine::tokens::TokenError;
use flowstone_engine::waits::WaitError;
use flowstone_flow::step::StepError;
use flowstone_lang::diagnostic::Diagnostic as Report;
use flowstone_project::search::SearchError;
use serde::Serialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::engines::Unavailable;
use crate::hints;
use crate::json::object;

/// The codes of the pages in `docs/errors` for what only a server can say.
pub(super) mod codes {
    pub const UNAUTHORIZED: &str = "E1010";
    pub const MISSING_SCOPE: &str = "E1011";
    pub const HOST: &str = "E1012";
    pub const ORIGIN: &str = "E1013";
    pub const NOT_FOUND: &str = "E1014";
    pub const METHOD: &str = "E1015";
    pub const MALFORMED: &str = "E1016";
    pub const MEDIA_TYPE: &str = "E1017";
    pub const TOO_LARGE: &str = "E1018";
    pub const SLOW: &str = "E1019";
    pub const TOO_MANY: &str = "E1020";
    pub const BUSY: &str = "E1021";
    pub const KEY_REUSED: &str = "E1022";
    pub const VERSION: &str = "E1023";
    pub const SECRET_UNSET: &str = "E1043";
    pub const UNPROVEN: &str = "E1044";
    pub const UNKNOWN_INPUT: &str = "E1045";
    pub const RUN_FAILED: &str = "E1046";
    pub const AMBIGUOUS: &str = "E1047";
    pub const MCP_SESSION: &str = "E1083";
    pub const ID_TAKEN: &str = "E1090";
    pub const INTERNAL: &str = "E0500";
}

/// The kind of a store's refusal of a name that does not exist.
const NOT_FOUND: &str = "not-found";

/// An error of the API.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Problem)]
pub(super) struct ProblemDocument<'a> {
    /// The address of the page about the error.
    r#type: String,
    title: &'a str,
    status: u16,
    /// What is wrong.
    detail: &'a str,
    /// The code of the error, such as `E1016`.
    code: &'a str,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
}

/// An error as the answer to a request.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub status: StatusCode,
    pub code: String,
    pub detail: String,
    pub hint: Option<String>,
    /// Further members, such as `errors` and `required`.
    pub more: Map<String, Value>,
    /// Further headers, such as `Retry-After`.
    pub headers: Vec<(header::HeaderName, HeaderValue)>,
}

impl Problem {
    pub(super) fn new(
        status: StatusCode,
        code: impl Into<String>,
        detail: impl Into<String>,
    ) -> Problem {
        Problem {
            status,
            code: code.into(),
            detail: detail.into(),
            hint: None,
            more: Map::new(),
            headers: Vec::new(),
        }
    }

    /// Adds what to try. Actions that it names by their commands are put in the words of the API.
    pub(super) fn hint(mut self, hint: impl AsRef<str>) -> Problem {
        self.hint = Some(hints::for_api(hint.as_ref()));
        self
    }

    pub(super) fn with(mut self, name: &str, value: Value) -> Problem {
        self.more.insert(name.to_owned(), value);
        self
    }

    pub(super) fn header(mut self, name: header::HeaderName, value: &str) -> Problem {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.push((name, value));
        }
        self
    }

    /// Something malformed in a request.
    pub(super) fn malformed(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, codes::MALFORMED, detail)
    }

    /// Something that does not exist, or that the caller cannot reach.
    pub(crate) fn not_found(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, codes::NOT_FOUND, detail)
    }

    /// The members of the JSON object, but for the id of the request.
    pub(super) fn to_json(&self) -> Value {
        let mut members = object(&ProblemDocument {
            r#type: format!("/docs/errors/{}", self.code),
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: &self.detail,
            code: &self.code,
            hint: self.hint.as_deref(),
        });
        if let Value::Object(members) = &mut members {
            members.extend(self.more.clone());
        }
        members
    }
}

impl Problem {
    /// The members of an entry in `errors` of another problem, about one thing of many.
    pub(super) fn to_entry(&self, index: usize) -> Value {
        let mut entry = json!({"index": index, "code": self.code, "detail": self.detail});
        if let Some(hint) = &self.hint {
            entry["hint"] = json!(hint);
        }
        entry
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = Response::new(axum::body::Body::from(compact(&self.to_json())));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/problem+json"),
        );
        headers.extend(self.headers.iter().cloned());
        // The layer around all routes adds the id of the request.
        response.extensions_mut().insert(self);
        response
    }
}

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Problem {
        let mut problem = Problem::new(status_of(&error), error.code(), error.to_string());
        let hint = error.hint();
        if let EngineError::BadStarts { errors } = error {
            let entries = errors.into_iter();
            let entries = entries.map(|(index, error)| Problem::from(error).to_entry(index));
            problem = problem.with("errors", entries.collect());
        }
        match hint {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        EngineError::from(error).into()
    }
}

impl From<StepError> for Problem {
    fn from(error: StepError) -> Problem {
        let status = match error.kind {
            NOT_FOUND => StatusCode::NOT_FOUND,
            "conflict" => StatusCode::CONFLICT,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        let problem = Problem::new(status, error.code, error.message);
        error.hints.into_iter().take(1).fold(problem, Problem::hint)
    }
}

impl From<SearchError> for Problem {
    fn from(error: SearchError) -> Problem {
        if let SearchError::Store(error) = error {
            return error.into();
        }
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        let problem = Problem::new(status, error.code(), error.to_string());
        match error.hint() {
            Some(hint) => problem.hint(hint),
            None => problem,
        }
    }
}

impl From<Report> for Problem {
    fn from(report: Report) -> Problem {
        let status = StatusCode::UNPROCESSABLE_ENTITY;
        let problem = Problem::new(status, report.code, report.message);
        report
            .hints
            .iter()
            .take(1)
            .fold(problem, |problem, hint| problem.hint(hint))
    }
}

impl From<Unavailable> for Problem {
    fn from(unavailable: Unavailable) -> Problem {
        match unavailable {
            Unavailable::Busy => Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                codes::BUSY,
                "too many requests are waiting",
            )
            .header(header::RETRY_AFTER, "1"),
            Unavailable::Gone => Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                codes::INTERNAL,
                "the request failed with an internal error, which the server's log describes",
            ),
        }
    }
}

/// Returns the status for an error of the engine.
fn status_of(error: &EngineError) -> StatusCode {
    match error {
        EngineError::NoSuchRun { .. }
        | EngineError::AmbiguousRun { .. }
        | EngineError::NoSuchWait { .. }
        | EngineError::NoSuchStep { .. }
        | EngineError::NoSuchSchedule { .. } => StatusCode::NOT_FOUND,
        EngineError::Held { .. }
        | EngineError::Installation { .. }
        | EngineError::Quarantined { .. }
        | EngineError::Over { .. }
        | EngineError::OtherAbi { .. }
        | EngineError::BadProgram { .. }
        | EngineError::Interactive { .. }
        | EngineError::AlreadyDecided(_)
        | EngineError::SlotTaken { .. }
        | EngineError::WaitsForCaller { .. }
        | EngineError::Diverged { .. }
        | EngineError::Incompatible { .. }
        | EngineError::OtherFlow { .. }
        | EngineError::Unstartable { .. } => StatusCode::CONFLICT,
        EngineError::Pruned { .. } => StatusCode::GONE,
        EngineError::Sealed(_)
        | EngineError::Bindings(_)
        | EngineError::BadSetting { .. }
        | EngineError::BadAnswer { .. }
        | EngineError::Archive(_)
        | EngineError::NoKey { .. }
        | EngineError::BadStarts { .. }
        | EngineError::Input(_)
        | EngineError::Codec(_) => StatusCode::UNPROCESSABLE_ENTITY,
        EngineError::ReservedInput { .. } => StatusCode::BAD_REQUEST,
        EngineError::TooManyStarts { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        EngineError::Resource(error) => match error {
            ResourceError::Missing { .. } => StatusCode::NOT_FOUND,
            ResourceError::Gone { .. } => StatusCode::GONE,
            ResourceError::Needed { .. } | ResourceError::Taken { .. } => StatusCode::CONFLICT,
            ResourceError::BadLink(BadLink::Expired) => StatusCode::GONE,
            ResourceError::BadLink(BadLink::Forged | BadLink::Malformed) => StatusCode::FORBIDDEN,
            ResourceError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            ResourceError::NoServer
            | ResourceError::Unstorable(_)
            | ResourceError::Unsuitable { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        },
        EngineError::Token(error) => match error {
            TokenError::Missing { .. } => StatusCode::NOT_FOUND,
            TokenError::NoScope
            | TokenError::BadText { .. }
            | TokenError::NoSubject
            | TokenError::Wider => StatusCode::UNPROCESSABLE_ENTITY,
            TokenError::Open { .. } | TokenError::Owner { .. } | TokenError::NoRandom(_) => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
        },
        EngineError::Wait(error) => match error {
            WaitError::Expired { .. } => StatusCode::GONE,
            WaitError::Role { .. } | WaitError::Unattended { .. } => StatusCode::FORBIDDEN,
            WaitError::Stale { .. } => StatusCode::CONFLICT,
            WaitError::Ambiguous { .. } => StatusCode::NOT_FOUND,
            WaitError::NotOffered { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        },
        EngineError::Link(error) => match error {
            LinkError::Wait => StatusCode::NOT_FOUND,
            LinkError::Run(BadLink::Expired) => StatusCode::GONE,
            LinkError::Run(BadLink::Forged | BadLink::Malformed) => StatusCode::FORBIDDEN,
        },
        EngineError::Job(error) => match error {
            JobError::Missing { .. } | JobError::Ambiguous { .. } => StatusCode::NOT_FOUND,
            JobError::LeaseLost { .. } => StatusCode::CONFLICT,
            JobError::BadClaim { .. } | JobError::TooMany { .. } => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            JobError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        },
        EngineError::Store(error) => of_store(error),
        EngineError::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn of_store(error: &StoreError) -> StatusCode {
    match error {
        StoreError::Rejected { kind, .. } if *kind == NOT_FOUND => StatusCode::NOT_FOUND,
        StoreError::Rejected { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        StoreError::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        StoreError::NotADatabase { .. }
        | StoreError::Damaged { .. }
        | StoreError::TooNew { .. }
        | StoreError::Lost { .. }
        | StoreError::Unreachable { .. }
        | StoreError::NoHandle { .. }
        | StoreError::NoHandleForStep { .. }
        | StoreError::NoThread { .. }
        | StoreError::BackupPlace { .. }
        | StoreError::Busy
        | StoreError::Full { .. }
        | StoreError::FullForStep { .. }
        | StoreError::Disk { .. }
        | StoreError::ReadOnly { .. }
        | StoreError::LeaseLost { .. } => StatusCode::SERVICE_UNAVAILABLE,
    }
}
