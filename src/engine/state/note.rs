//! The journal entries that transitions add.

use flowstone_lang::value::Value;

use super::About;
use crate::codec;
use crate::ids::RunId;
use crate::ports::EntryKind;
use crate::step::StepError;

/// An entry of the journal about a request.
#[derive(Debug, Clone)]
pub(crate) enum Note {
    /// An attempt is about to begin.
    Intent { attempt: u32 },
    /// EDN text of a value to be checked or reviewed.
    Draft(String),
    /// EDN text of the result.
    Result(String),
    /// The error with which the step ends.
    Failed(Box<StepError>),
    /// The error as EDN text.
    Error(String),
    /// A failed attempt is tried again later. `lack`: the process had no file handle for it.
    Retry {
        attempt: u32,
        due_ms: i64,
        message: String,
        code: &'static str,
        /// The status with which a server responded.
        status: Option<i64>,
        lack: bool,
    },
    /// The step sleeps, after which the value is its answer.
    Sleep {
        attempt: u32,
        due_ms: i64,
        value: Value,
    },
    /// The step waits for an answer.
    Wait { attempt: u32 },
    /// The step waits for the end of a run.
    Child { attempt: u32, run: RunId },
    /// A question to a person.
    Question { about: About, attempt: u32 },
    /// The step's error is replaced by nil.
    Skip,
    /// A probe found whether an attempt was done.
    Probe { done: bool },
}

impl Note {
    pub(crate) fn kind(&self) -> EntryKind {
        match self {
            Note::Intent { .. } => EntryKind::Intent,
            Note::Draft(_) => EntryKind::Draft,
            Note::Result(_) => EntryKind::Result,
            Note::Failed(_) | Note::Error(_) => EntryKind::Error,
            Note::Retry { .. }
            | Note::Sleep { .. }
            | Note::Wait { .. }
            | Note::Child { .. }
            | Note::Question { .. } => EntryKind::Timer,
            Note::Skip | Note::Probe { .. } => EntryKind::Signal,
        }
    }

    /// Returns the entry's payload. `error_text` converts an error to EDN text.
    pub(crate) fn into_payload(self, error_text: impl FnOnce(&StepError) -> String) -> String {
        match self {
            Note::Intent { attempt } => format!("{{:attempt {attempt}}}"),
            Note::Draft(text) | Note::Result(text) | Note::Error(text) => text,
            Note::Failed(error) => error_text(&error),
            Note::Retry {
                attempt,
                due_ms,
                message,
                code,
                status,
                lack,
            } => timer(&[
                ("kind", Value::keyword("retry")),
                ("attempt", Value::Int(i64::from(attempt))),
                ("due", Value::Int(due_ms)),
                ("message", Value::from(message.as_str())),
                ("code", Value::from(code)),
                ("status", status.map_or(Value::Nil, Value::Int)),
                ("lack", if lack { Value::Bool(true) } else { Value::Nil }),
            ]),
            Note::Sleep {
                attempt,
                due_ms,
                value,
            } => timer(&[
                ("kind", Value::keyword("sleep")),
                ("attempt", Value::Int(i64::from(attempt))),
                ("due", Value::Int(due_ms)),
                ("value", value),
            ]),
            Note::Wait { attempt } => format!("{{:kind :wait :attempt {attempt}}}"),
            Note::Child { attempt, run } => {
                format!("{{:kind :child :attempt {attempt} :run \"{run}\"}}")
            }
            Note::Question { about, attempt } => {
                format!("{{:kind :{} :attempt {attempt}}}", about.timer())
            }
            Note::Skip => "{:kind :skip}".to_owned(),
            Note::Probe { done } => format!("{{:kind :probe :done? {done}}}"),
        }
    }
}

fn timer(facts: &[(&str, Value)]) -> String {
    let given = facts
        .iter()
        .filter(|(key, value)| !matches!(*key, "lack" | "status") || !value.is_nil());
    let facts = given.map(|(key, value)| (Value::keyword(key), value.clone()));
    codec::encode(&Value::map(facts)).unwrap_or_else(|_| "{}".to_owned())
}
