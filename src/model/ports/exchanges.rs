//! Exchanges: what stands between steps and the servers that they ask, when a run is recorded or replayed.
//!
//! A step that is about to send a request shows it here first. The answer is either that it is to be sent, with
//! somebody who takes down what comes of it, or what was taken down before. Plain data: what an HTTP client makes of
//! it is the client's business.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Clock, Secret};
use crate::redact::{Redactor, Redactors};

/// Observes or answers requests before they are sent.
pub trait Exchanges: Send + Sync {
    /// Decides about a request.
    ///
    /// # Errors
    /// When it cannot be recorded, or nothing that was recorded answers it.
    fn ask(&self, request: AskedRequest) -> Result<Exchanged, ExchangeError>;

    /// Tells whether all answers come from a recording: then nothing is sent, and no secret is needed.
    fn is_replay(&self) -> bool;
}

/// A request as it would be sent.
#[derive(Debug, Clone)]
pub struct AskedRequest {
    /// The path of the step that sends it.
    pub step: String,
    pub now_ms: i64,
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    /// Headers that prove who we are.
    pub secret_headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// The secrets that the run has looked up; more may come while the answer does.
    pub secrets: Revealed,
    /// Texts that are others in every run, and what to write for them.
    pub passing: Vec<(String, &'static str)>,
}

/// What becomes of a request.
pub enum Exchanged {
    /// It is to be sent.
    Live(Box<dyn Tape>),
    Recorded(RecordedAnswer),
}

/// Takes down what comes of a request, in the order in which it comes. Dropped without an end, nobody wanted the rest.
pub trait Tape: Send {
    fn head(&mut self, head: AnswerHead);
    fn chunk(&mut self, bytes: &[u8]);
    fn end(&mut self, end: AnswerEnd);
}

/// The start of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerHead {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    /// Where it came from, after redirects.
    pub url: String,
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerEnd {
    Complete,
    /// Nobody read further.
    Unread,
    Failed(AnswerFault),
}

/// Why there is no answer, or no more of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerFault {
    /// What flows can match on: `cut-off`, `timeout`, `unavailable` ...
    pub kind: String,
    pub message: String,
    /// Asking again may help.
    pub passing: bool,
}

/// An answer from a recording.
#[derive(Debug, Clone)]
pub struct RecordedAnswer {
    /// Nothing where the request failed before there was one.
    pub head: Option<AnswerHead>,
    pub chunks: Vec<Vec<u8>>,
    pub end: AnswerEnd,
}

/// Why a request is neither sent nor answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExchangeError {
    pub code: &'static str,
    pub kind: &'static str,
    pub message: String,
    pub hint: String,
}

/// The secrets that a run knows: those that its steps have looked up, and those of its input. They are taken out of
/// whatever is written down or shown.
#[derive(Clone, Default)]
pub struct Revealed {
    known: Arc<Mutex<Known>>,
    redactors: Redactors,
}

#[derive(Default)]
struct Known {
    secrets: Vec<Secret>,
    /// Of these secrets; `None`: one was added since.
    redactor: Option<Arc<Redactor>>,
}

impl Revealed {
    /// Knows none yet. Redactors are shared with others that know the same.
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

    /// Returns those that are known by now.
    pub fn all(&self) -> Vec<Secret> {
        self.lock().secrets.clone()
    }

    /// Returns what finds and replaces those that are known by now.
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

/// Shows the requests of one step.
#[derive(Clone)]
pub struct Witness {
    pub exchanges: Arc<dyn Exchanges>,
    pub clock: Arc<dyn Clock>,
    pub step: String,
    pub secrets: Revealed,
    pub passing: Vec<(String, &'static str)>,
}

impl Witness {
    /// Shows a request; the step's part of it is filled in.
    ///
    /// # Errors
    /// As [`Exchanges::ask`].
    pub fn ask(&self, request: ShownRequest) -> Result<Exchanged, ExchangeError> {
        self.exchanges.ask(AskedRequest {
            step: self.step.clone(),
            now_ms: self.clock.now_ms(),
            method: request.method,
            url: request.url,
            headers: request.headers,
            secret_headers: request.secret_headers,
            body: request.body,
            secrets: self.secrets.clone(),
            passing: self.passing.clone(),
        })
    }

    /// As [`Exchanges::is_replay`].
    pub fn is_replay(&self) -> bool {
        self.exchanges.is_replay()
    }
}

/// What a client knows of a request.
#[derive(Debug, Clone, Default)]
pub struct ShownRequest {
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub secret_headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl fmt::Debug for Witness {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Witness")
            .field("step", &self.step)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Witness {
    fn eq(&self, other: &Witness) -> bool {
        Arc::ptr_eq(&self.exchanges, &other.exchanges) && self.step == other.step
    }
}

impl Eq for Witness {}
