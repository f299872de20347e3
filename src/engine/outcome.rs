//! The outcome of executing a run.

use std::rc::Rc;

use flowstone_lang::session::Session;
use flowstone_lang::value::{Exception, Sources, Span, Value};

use crate::codec;
use crate::ports::{QueuePlace, RunStatus, WaitRow};

/// Why an execution returned.
#[derive(Debug)]
pub enum RunOutcome {
    Completed(Value),
    Failed(Box<Failure>),
    /// Nothing can be done before somebody answers or a timer is due.
    Waiting {
        reason: String,
        due_ms: Option<i64>,
        waits: Vec<WaitRow>,
    },
    /// It was unwound, or ended at once: the status tells which, and whether its time was over.
    Cancelled {
        reason: String,
        status: RunStatus,
    },
    /// A compensation failed: the run waits for a person to act.
    Stuck {
        reason: String,
    },
    /// It has not begun, and its turn is not soon.
    Queued {
        place: QueuePlace,
    },
    /// The run left memory and can be resumed.
    Interrupted,
}

/// Why a run failed.
pub struct Failure {
    pub exception: Rc<Exception>,
    /// Where its places lie; `None` for a run that failed in an earlier process.
    pub session: Option<Rc<Session>>,
    /// The place in words, for a run that failed in an earlier process.
    pub place: Option<FailurePlace>,
}

impl std::fmt::Debug for Failure {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Failure")
            .field("exception", &self.exception)
            .field("place", &self.place)
            .finish_non_exhaustive()
    }
}

/// A place that outlives the texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailurePlace {
    pub file: String,
    pub line: u32,
    pub column: u32,
    /// How many columns of the line are at fault.
    pub width: u32,
    /// The line itself.
    pub text: String,
}

/// Writes down why a run failed.
pub(crate) fn encode_failure(exception: &Rc<Exception>, sources: &Sources) -> String {
    let place = place_of(exception, sources).map_or(Value::Nil, |place| {
        Value::map([
            (Value::keyword("file"), Value::from(place.file)),
            (Value::keyword("line"), Value::Int(i64::from(place.line))),
            (
                Value::keyword("column"),
                Value::Int(i64::from(place.column)),
            ),
            (Value::keyword("width"), Value::Int(i64::from(place.width))),
            (Value::keyword("text"), Value::from(place.text)),
        ])
    });
    let whole = |error: Value| {
        Value::map([
            (Value::keyword("error"), error),
            (Value::keyword("place"), place.clone()),
        ])
    };
    codec::encode(&whole(Value::Exception(exception.clone()))).unwrap_or_else(|_| {
        // Its data is not data: a function, or nested too deep. The words are kept.
        let mut plain = Exception::new(exception.class, exception.code, exception.text());
        plain.hints.clone_from(&exception.hints);
        codec::encode(&whole(plain.into())).expect("words can be written down")
    })
}

/// Returns the code of an error as a run's row has it, such as `E0322`. What a flow throws itself has no code.
pub fn code_of(error: &str) -> Option<String> {
    let code = decode_failure(error)?.exception.code.to_string();
    Some(code).filter(|code| !code.is_empty())
}

/// Returns why a run failed, as its row has it, without the line of the flow's text: for those who may not read the flow.
pub fn without_source(error: &str) -> String {
    let place = Value::keyword("place");
    let is_source = |key: &Value| *key == Value::keyword("text");
    let without = |key: &Value, value: &Value| match value.as_map().filter(|_| *key == place) {
        Some(map) => {
            let kept = map.iter().filter(|(key, _)| !is_source(key));
            Value::map(kept.map(|(key, value)| (key.clone(), value.clone())))
        }
        None => value.clone(),
    };
    let whole = codec::decode(error).unwrap_or(Value::Nil);
    let entries = whole.as_map().into_iter().flat_map(|map| map.iter());
    let entries = entries.map(|(key, value)| (key.clone(), without(key, value)));
    // What was read can be written.
    codec::encode(&Value::map(entries)).unwrap_or_else(|_| "{}".to_owned())
}

/// Reads what [`encode_failure`] wrote.
pub(crate) fn decode_failure(text: &str) -> Option<Failure> {
    let whole = codec::decode(text).ok()?;
    let Some(Value::Exception(exception)) = whole.get("error") else {
        return None;
    };
    let place = whole.get("place").and_then(|place| {
        let text = |key: &str| place.get(key).and_then(Value::as_str).map(str::to_owned);
        let number = |key: &str| {
            let number = place.get(key).and_then(Value::as_int)?;
            u32::try_from(number).ok()
        };
        Some(FailurePlace {
            file: text("file")?,
            line: number("line")?,
            column: number("column")?,
            // Older builds did not store it.
            width: number("width").unwrap_or(1),
            text: text("text")?,
        })
    });
    Some(Failure {
        exception: exception.clone(),
        session: None,
        place,
    })
}

fn place_of(exception: &Exception, sources: &Sources) -> Option<FailurePlace> {
    place_at(exception.span(), sources)
}

/// Returns a place that outlives the texts.
pub(crate) fn place_at(span: Span, sources: &Sources) -> Option<FailurePlace> {
    let source = sources.get(span.source)?;
    let at = source.line_column(span.start);
    let text = source.line(at.line).to_owned();
    // Of a form on several lines, the first.
    let rest = text.chars().count().saturating_sub(at.column as usize - 1);
    let from = span.start as usize;
    let form = source.text.get(from..(span.end as usize).max(from));
    let width = form
        .map_or(1, |form| form.chars().count())
        .clamp(1, rest.max(1));
    Some(FailurePlace {
        file: source.name.to_string(),
        line: at.line,
        column: at.column,
        width: u32::try_from(width).unwrap_or(1),
        text,
    })
}
