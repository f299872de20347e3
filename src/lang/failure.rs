//! The result of an evaluation that did not return a value.

use std::fmt;

use crate::diagnostic::Diagnostic;
use crate::value::{Exception, Signal, Sources, Stop};

/// The reason why an evaluation returned no value: for programs as a [`Signal`], for people as a [`Diagnostic`]. Its
/// `Display` text is the whole message with place, hint and calls.
#[derive(Debug)]
pub struct Failure {
    signal: Signal,
    diagnostic: Box<Diagnostic>,
}

impl Failure {
    pub(crate) fn new(sources: &Sources, signal: Signal) -> Failure {
        let diagnostic = Box::new(Diagnostic::of_signal(sources, &signal));
        Failure { signal, diagnostic }
    }

    /// Returns the signal that ended the evaluation.
    pub fn signal(&self) -> &Signal {
        &self.signal
    }

    /// Returns the uncaught exception; `None` if the evaluation was stopped from outside.
    pub fn exception(&self) -> Option<&Exception> {
        match &self.signal {
            Signal::Throw(exception) => Some(exception),
            Signal::Stop(_) => None,
        }
    }

    /// Returns the reason why the evaluation was stopped from outside: fuel, memory, an interrupt.
    pub fn stop(&self) -> Option<&Stop> {
        match &self.signal {
            Signal::Throw(_) => None,
            Signal::Stop(stop) => Some(stop),
        }
    }

    /// Returns the stable code, such as `E0301`; empty for exceptions thrown by a program, and for a stop.
    pub fn code(&self) -> &str {
        &self.diagnostic.code
    }

    /// Returns place, message and hints as data.
    pub fn diagnostic(&self) -> &Diagnostic {
        &self.diagnostic
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.diagnostic.render().trim_end())
    }
}

impl std::error::Error for Failure {}
