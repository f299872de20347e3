//! Exchanges: the port between steps and the servers that they send requests to, while a run is recorded or replayed.
//!
//! A step passes each request to this port before it sends it. The port either lets it be sent, and provides a recorder
//! that records the response, or returns a recorded response. It is plain data: the HTTP client decides how to use it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Clock, Secret};
use crate::redact::{Redactor, Redactors};

/// Observes or answers requests before they are sent.
pub trait Exchanges: Send + Sync {
    /// Decides whether a request is sent or answered from a recording.
    ///
    /// # Errors
    /// When the request cannot be recorded, or no recorded response matches it.
    fn ask(&self, request: OutgoingRequest) -> Result<Exchanged, ExchangeError>;

    /// Tells whether all responses come from a recording: then nothing is sent, and no secret is needed.
    fn is_replay(&self) -> bool;
}

/// A request in the form in which it would be sent.
#[derive(Debug, Clone)]
pub struct OutgoingRequest {
    /// The path of the step that sends it.
    pub step: String,
    pub now_ms: i64,
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    /// Headers that authenticate the sender.
    pub secret_headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The secrets that the run has looked up; it may look up more while the response arrives.
    pub secrets: Revealed,
    /// Texts that differ in every run, each with its replacement in the recording.
    pub varying: Vec<(String, &'static str)>,
}

/// The decision about a request.
pub enum Exchanged {
    /// The request is to be sent.
    Live(Box<dyn ResponseRecorder>),
    Recorded(RecordedResponse),
}

/// Records the response to a request, in the order in which it arrives. If dropped before `end`, the recording is
/// marked as unread from there.
pub trait ResponseRecorder: Send {
    fn head(&mut self, head: ResponseHead);
    fn chunk(&mut self, bytes: &[u8]);
    fn end(&mut self, end: ResponseEnd);
}

/// The head of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseHead {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// The address that responded, after redirects.
    pub url: String,
}

/// How a response ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResponseEnd {
    Complete,
    /// The step stopped reading.
    Unread,
    Failed(ResponseFault),
}

/// Why there is no response, or only a part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResponseFault {
    /// The kind that flows can match on, such as `cut-off`, `timeout` or `unavailable`.
    pub kind: String,
    pub message: String,
    /// Another attempt may succeed.
    pub is_transient: bool,
}

/// A response from a recording.
#[derive(Debug, Clone)]
pub struct RecordedResponse {
    /// `None` if the request failed before a response began.
    pub head: Option<ResponseHead>,
    pub chunks: Vec<Vec<u8>>,
    pub end: ResponseEnd,
}

/// Why a request is neither sent nor answered from a recording.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExchangeError {
    pub code: &'static str,
    pub kind: &'static str,
    pub message: String,
    pub hint: String,
}

/// The secrets that a run knows: those that its steps have looked up, and those of its input. They are removed from
/// everything that is stored or shown.
#[derive(Clone, Default)]
pub struct Revealed {
    known: Arc<Mutex<Known>>,
    redactors: Redactors,
}

#[derive(Default)]
struct Known {
    secrets: Vec<Secret>,
    /// The redactor of these secrets; `None` after one was added.
    redactor: Option<Arc<Redactor>>,
}

impl Revealed {
    /// Creates an empty set. Runs that know the same secrets share redactors.
    pub fn new(redactors: Redactors) -> Revealed {
        Revealed {
            known: Arc::default(),
            redactors,
        }
    }

    pub fn add(&self, secret: &Secret) {
        let mut known = self.lock();
        if !known.secrets.contains(secret) {
            known.secrets.push(secret.clone());
            known.redactor = None;
        }
    }

    /// Returns the secrets that are known so far.
    pub fn all(&self) -> Vec<Secret> {
        self.lock().secrets.clone()
    }

    /// Returns the redactor of the secrets that are known so far.
    pub fn redactor(&self) -> Arc<Redactor> {
        let known = &mut *self.lock();
        let make = || self.redactors.of(&known.secrets);
        known.redactor.get_or_insert_with(make).clone()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Revealed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Revealed(…)")
    }
}

/// Passes the requests of one step to [`Exchanges`].
#[derive(Clone)]
pub struct StepExchanges {
    pub exchanges: Arc<dyn Exchanges>,
    pub clock: Arc<dyn Clock>,
    pub step: String,
    pub secrets: Revealed,
    pub varying: Vec<(String, &'static str)>,
}

impl StepExchanges {
    /// Passes a request, completed by the facts about the step.
    ///
    /// # Errors
    /// As [`Exchanges::ask`].
    pub fn ask(&self, request: ClientRequest) -> Result<Exchanged, ExchangeError> {
        self.exchanges.ask(OutgoingRequest {
            step: self.step.clone(),
            now_ms: self.clock.now_ms(),
            method: request.method,
            url: request.url,
            headers: request.headers,
            secret_headers: request.secret_headers,
            body: request.body,
            secrets: self.secrets.clone(),
            varying: self.varying.clone(),
        })
    }

    /// Returns the same as [`Exchanges::is_replay`].
    pub fn is_replay(&self) -> bool {
        self.exchanges.is_replay()
    }
}

/// The part of a request that the client knows.
#[derive(Debug, Clone, Default)]
pub struct ClientRequest {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub secret_headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl fmt::Debug for StepExchanges {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("StepExchanges")
            .field("step", &self.step)
            .finish_non_exhaustive()
    }
}

impl PartialEq for StepExchanges {
    fn eq(&self, other: &StepExchanges) -> bool {
        Arc::ptr_eq(&self.exchanges, &other.exchanges) && self.step == other.step
    }
}

impl Eq for StepExchanges {}
