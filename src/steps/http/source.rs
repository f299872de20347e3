//! The source of an answer: a server, or a recording.
//!
//! Requests are passed to the recorder or replayer of the run. Errors are converted to the form that a recording
//! stores, and back.

use std::collections::VecDeque;
use std::time::Duration;

use flowstone_flow::ports::{
    ClientRequest, ExchangeError, Exchanged, RecordedResponse, ResponseEnd, ResponseFault,
    ResponseHead, ResponseRecorder,
};
use reqwest::header::HeaderValue;

use super::client::{Request, host};
use super::error::{Again, HttpError};

/// The source of a body's chunks.
pub(super) enum Source {
    Server {
        response: reqwest::Response,
        recorder: Option<Box<dyn ResponseRecorder>>,
    },
    Recording {
        chunks: VecDeque<Vec<u8>>,
        end: ResponseEnd,
    },
}

/// The handling of a request.
pub(super) enum Delivery {
    Send(Option<Box<dyn ResponseRecorder>>),
    Replay(RecordedResponse),
}

/// Passes a request to the recorder or replayer.
pub(super) fn way(request: &Request) -> Result<Delivery, HttpError> {
    let Some(exchanges) = &request.route.exchanges else {
        return Ok(Delivery::Send(None));
    };
    let sent = ClientRequest {
        method: request.method.to_string(),
        url: request.url.to_string(),
        headers: request.headers.clone(),
        secret_headers: request.secret_headers.clone(),
        body: request.body.clone().unwrap_or_default(),
    };
    match exchanges.ask(sent) {
        Ok(Exchanged::Live(recorder)) => Ok(Delivery::Send(Some(recorder))),
        Ok(Exchanged::Recorded(answer)) => Ok(Delivery::Replay(answer)),
        Err(error) => Err(error.into()),
    }
}

impl From<ExchangeError> for HttpError {
    fn from(error: ExchangeError) -> HttpError {
        HttpError::Exchange(Box::new(error))
    }
}

/// Returns the recorded form of the beginning of an answer.
pub(super) fn head(url: &reqwest::Url, response: &reqwest::Response) -> ResponseHead {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = response.headers().iter();
    ResponseHead {
        status: response.status().as_u16(),
        headers: headers
            .map(|(name, value)| (name.to_string(), text(value)))
            .collect(),
        url: url.to_string(),
    }
}

/// Returns the recorded form of an error.
pub(super) fn fault(error: &HttpError) -> ResponseFault {
    let message = match error {
        HttpError::Unreachable { cause, .. } | HttpError::CutOff { cause, .. } => cause.clone(),
        HttpError::TimedOut { limit, .. } => limit.as_millis().to_string(),
        error => error.to_string(),
    };
    ResponseFault {
        kind: error.code().1.to_owned(),
        message,
        is_transient: error.again() != Again::Never,
    }
}

/// Restores a recorded error for the current request.
pub(super) fn of_fault(request: &Request, fault: ResponseFault) -> HttpError {
    let host = host(&request.url);
    match fault.kind.as_str() {
        "unavailable" => HttpError::Unreachable {
            host,
            cause: fault.message,
            is_transient: fault.is_transient,
        },
        "timeout" => HttpError::TimedOut {
            host,
            limit: millis(&fault.message),
            status: None,
            preview: String::new(),
        },
        "cut-off" => HttpError::CutOff {
            host,
            status: None,
            got: 0,
            preview: String::new(),
            cause: fault.message,
        },
        kind => {
            let known = KINDS.iter().find(|(known, _)| *known == kind);
            let (kind, code) = known.copied().unwrap_or(("bad-request", "E0738"));
            HttpError::Exchange(Box::new(ExchangeError {
                code,
                kind,
                message: fault.message,
                hint: "it went so when this was recorded".to_owned(),
            }))
        }
    }
}

/// Errors before an answer, with their codes.
const KINDS: &[(&str, &str)] = &[
    ("bad-redirect", "E0739"),
    ("bad-request", "E0738"),
    ("bad-url", "E0730"),
    ("denied", "E0731"),
    ("untrusted", "E0744"),
];

pub(super) fn millis(text: &str) -> Duration {
    Duration::from_millis(text.parse().unwrap_or_default())
}
