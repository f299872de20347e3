//! The error of a failed step, and whether the engine may try again.

use std::time::Duration;

use flowstone_lang::value::{Exception, Map, Signal, Span, Stop, Value};

use crate::option_problem::Wrong;
use crate::permission::Missing;
use crate::ports::StoreError;

/// A failed attempt.
#[derive(Debug, Clone)]
pub struct StepError {
    /// A stable code with a page in `docs/errors`.
    pub code: &'static str,
    /// The `:kind` that the flow sees and `:retry-on` matches: `timeout`, `rate-limited`, `unavailable`, `bad-config`,
    /// `not-found`, `denied`, `conflict`, `invalid` ...
    pub kind: &'static str,
    pub message: String,
    pub hints: Vec<String>,
    /// A map of facts for the flow, or nil.
    pub data: Value,
    pub retry: Retry,
    /// The place of the error in the flow's code, if it is not the step itself. Boxed, to keep errors small.
    pub place: Option<Box<Span>>,
    /// The missing permission.
    pub missing: Option<Box<Missing>>,
}

/// Whether another attempt may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    Never,
    /// Yes, after the interval of the policy.
    Backoff,
    /// Yes, after at least this time.
    After(Duration),
}

impl StepError {
    /// The code of an error that ends the run: its memory is used up.
    pub const OUT_OF_MEMORY: &'static str = "E0903";
    /// The code of a denied permission.
    pub const NOT_ALLOWED: &'static str = "E0960";
    /// The code of function code that was stopped, for example by its deadline.
    pub const STOPPED: &'static str = "E0702";
    /// The code of a conversation that is too long for a model.
    pub const TOO_LONG: &'static str = "E0803";
    /// The code of an option whose value has a wrong type.
    pub const OPTION_KIND: &'static str = "E0780";
    /// The code of an option whose value is out of bounds, or empty.
    pub const OPTION_BOUNDS: &'static str = "E0725";
    /// The code of a map in a config with a key that it does not take, or without one that it needs.
    pub const OPTION_KEYS: &'static str = "E0726";
    /// The code of options that cannot be combined, or do not apply to the operation.
    pub const OPTION_FIT: &'static str = "E0727";

    pub fn new(code: &'static str, kind: &'static str, message: impl Into<String>) -> StepError {
        StepError {
            code,
            kind,
            message: message.into(),
            hints: Vec::new(),
            data: Value::Nil,
            retry: Retry::Never,
            place: None,
            missing: None,
        }
    }

    /// Returns an error in a config that the spec cannot express.
    pub fn config(code: &'static str, message: impl Into<String>) -> StepError {
        StepError::new(code, "bad-config", message)
    }

    /// Returns the error for a denied permission.
    pub fn not_allowed(missing: &Missing) -> StepError {
        let message = format!("the flow may not {}", missing.action());
        let error = StepError {
            missing: Some(Box::new(missing.clone())),
            ..StepError::new(StepError::NOT_ALLOWED, "denied", message)
        };
        let error = missing.hints().into_iter().fold(error, StepError::hint);
        error
            .with("access", Value::keyword(missing.access.key()))
            .with("item", missing.item.as_str())
            .with("allow", missing.edn())
    }

    /// Adds a hint, as a sentence.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> StepError {
        self.hints.push(hint.into());
        self
    }

    /// Adds a fact for the flow.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> StepError {
        let mut data = self
            .data
            .as_map()
            .map_or_else(Default::default, |map| map.entries().clone());
        data.insert(Value::keyword(key), value.into());
        self.data = Value::Map(std::rc::Rc::new(Map::new(data)));
        self
    }

    /// Sets whether another attempt may succeed.
    #[must_use]
    pub fn retry(mut self, retry: Retry) -> StepError {
        self.retry = retry;
        self
    }
}

impl From<StoreError> for StepError {
    fn from(error: StoreError) -> Self {
        let kind = match &error {
            StoreError::Rejected { kind, .. } => kind,
            StoreError::Busy | StoreError::Full { .. } | StoreError::FullForStep { .. } => {
                "unavailable"
            }
            _ => "store",
        };
        let step = StepError::new(error.code(), kind, error.to_string());
        match error.hint() {
            Some(hint) => step.hint(hint),
            None => step,
        }
    }
}

/// Converts an exception that function code throws.
impl From<&Exception> for StepError {
    fn from(exception: &Exception) -> Self {
        let code = if exception.code.is_empty() {
            "E0701"
        } else {
            exception.code
        };
        StepError {
            hints: exception.hints.clone(),
            data: exception.data.clone(),
            place: Some(exception.span())
                .filter(|span| span.is_some())
                .map(Box::new),
            ..StepError::new(code, "threw", exception.display_text())
        }
    }
}

impl From<Signal> for StepError {
    fn from(signal: Signal) -> Self {
        match signal {
            Signal::Throw(exception) => StepError::from(&*exception),
            Signal::Stop(stop) => match &*stop {
                Stop::OutOfMemory(what) => {
                    StepError::new(StepError::OUT_OF_MEMORY, "out-of-memory", what.as_str())
                }
                stop => StepError::new(StepError::STOPPED, "stopped", stop.to_string()),
            },
        }
    }
}

impl From<Wrong> for StepError {
    fn from(wrong: Wrong) -> StepError {
        let error = StepError::config(wrong.code, wrong.message);
        match wrong.hint {
            Some(hint) => error.hint(hint),
            None => error,
        }
    }
}
