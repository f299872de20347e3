//! A case's expectation of the end of its flow: the result, or the failure.

use flowstone_lang::value::{Exception, Value};

use super::{Case, TestError, TestOutcome, observed};
use crate::codec;
use crate::flow::name_of;
use crate::ports::RunStatus;

/// The keys of an expectation of an end.
const END: &[&str] = &["error", "result", "status"];
/// The keys of an expected error.
const ERROR: &[&str] = &["code", "data", "kind", "message"];

/// Compares the end of a test with its case; without an expectation, the flow must complete. Returns the differences.
///
/// # Errors
/// When the expectation is malformed.
pub fn unexpected(outcome: &TestOutcome, case: &Case) -> Result<Vec<String>, TestError> {
    let mut problems = end(outcome, case)?;
    problems.extend(observed::unexpected(outcome, case)?);
    Ok(problems)
}

pub(super) fn end(outcome: &TestOutcome, case: &Case) -> Result<Vec<String>, TestError> {
    if case.expect.is_nil() {
        return Ok(match outcome.status.as_str() {
            "completed" => Vec::new(),
            status => vec![format!("the run is {status}: {}", message(outcome))],
        });
    }
    if is_end(&case.expect) {
        return of_end(outcome, &case.expect);
    }
    let wanted = encoded(&case.expect)?;
    if outcome.status == "completed" && outcome.end == wanted {
        return Ok(Vec::new());
    }
    Ok(vec![format!(
        "the run is {} with {}, expected {wanted}",
        outcome.status,
        message(outcome)
    )])
}

/// Returns the status that a case expects.
pub(super) fn status(case: &Case) -> String {
    let status = Some(&case.expect).filter(|expect| is_end(expect));
    let status = status.and_then(|expect| expect.get("status").and_then(name_of));
    status.map_or_else(|| "completed".to_owned(), |name| name.to_string())
}

/// Tells whether an expectation describes the end, and is not the result itself: a map of `:status`, with the name of a
/// status, and at most `:error` and `:result` beside it.
pub(super) fn is_end(expect: &Value) -> bool {
    let Some(map) = expect.as_map() else {
        return false;
    };
    let status = expect.get("status").and_then(name_of);
    let is_status = status.is_some_and(|status| {
        RunStatus::NAMES
            .iter()
            .any(|(known, name)| known.is_final() && *name == &*status)
    });
    is_status
        && map
            .iter()
            .all(|(key, _)| name_of(key).is_some_and(|name| END.contains(&&*name)))
}

fn of_end(outcome: &TestOutcome, expect: &Value) -> Result<Vec<String>, TestError> {
    let mut problems = Vec::new();
    let status = expect.get("status").and_then(name_of).unwrap_or_default();
    if *outcome.status != *status {
        problems.push(format!(
            "the run is {} with {}, expected it to be {status}",
            outcome.status,
            message(outcome)
        ));
        return Ok(problems);
    }
    if let Some(wanted) = expect.get("result") {
        let wanted = encoded(wanted)?;
        if outcome.end != wanted {
            problems.push(format!("the result is {}, expected {wanted}", outcome.end));
        }
    }
    if let Some(wanted) = expect.get("error").filter(|wanted| !wanted.is_nil()) {
        let end = codec::decode(&outcome.end).unwrap_or(Value::Nil);
        match error_of(&end) {
            None => problems.push("the run has no error".to_owned()),
            Some(error) => problems.extend(of_error(error, wanted)?),
        }
    }
    Ok(problems)
}

/// Compares an error with its expectation: part of its message, or a map of the fields it must have.
fn of_error(error: &Exception, wanted: &Value) -> Result<Vec<String>, TestError> {
    let bad = |message: String| Err(TestError::BadCase(message));
    let text = error.text();
    if let Some(part) = wanted.as_str() {
        return Ok(match text.contains(part) {
            true => Vec::new(),
            false => vec![format!("the error is {text:?}, expected {part:?} in it")],
        });
    }
    let Some(map) = wanted.as_map() else {
        return bad(format!(
            "`:error` of `:expect` is a part of the message or a map, not {}",
            wanted.kind()
        ));
    };
    let mut problems = Vec::new();
    for (key, value) in map.iter() {
        let name = name_of(key).unwrap_or_default();
        let found = match &*name {
            "code" => Value::from(error.code),
            "kind" => error.data.get("kind").cloned().unwrap_or(Value::Nil),
            "message" => {
                let part = value.as_str().unwrap_or_default();
                if !text.contains(part) {
                    problems.push(format!("the error is {text:?}, expected {part:?} in it"));
                }
                continue;
            }
            "data" => {
                problems.extend(missing_data(&error.data, value));
                continue;
            }
            other => {
                return bad(format!(
                    "`:error` of `:expect` has no `:{other}`; it takes {}",
                    ERROR
                        .iter()
                        .map(|key| format!("`:{key}`"))
                        .collect::<Vec<_>>()
                        .join(", ")
                ));
            }
        };
        let is_same =
            found == *value || name_of(&found).is_some_and(|it| Some(it) == name_of(value));
        if !is_same {
            problems.push(format!(
                "`:{name}` of the error is {}, expected {}",
                crate::text::brief(&found),
                crate::text::brief(value)
            ));
        }
    }
    Ok(problems)
}

/// Returns which of the expected entries the data of an error lacks.
fn missing_data(data: &Value, wanted: &Value) -> Vec<String> {
    let entries = wanted.as_map().into_iter().flat_map(|map| map.iter());
    let mut problems = Vec::new();
    for (key, value) in entries {
        let found = data
            .as_map()
            .and_then(|map| map.get(key).cloned())
            .unwrap_or(Value::Nil);
        if found != *value {
            problems.push(format!(
                "{} in the error's data is {}, expected {}",
                crate::text::brief(key),
                crate::text::brief(&found),
                crate::text::brief(value)
            ));
        }
    }
    problems
}

fn encoded(value: &Value) -> Result<String, TestError> {
    codec::encode(value)
        .map_err(|error| TestError::BadCase(format!("`:expect` is not data: {error}")))
}

pub(super) fn error_of(end: &Value) -> Option<&Exception> {
    match end.get("error") {
        Some(Value::Exception(exception)) => Some(exception),
        _ => None,
    }
}

/// The result, or the message of the error.
fn message(outcome: &TestOutcome) -> String {
    let value = codec::decode(&outcome.end).unwrap_or(Value::Nil);
    match error_of(&value) {
        Some(exception) => format!("{} {}", exception.code, exception.text()),
        None => outcome.end.clone(),
    }
}

/// Returns the end without what a crash may change: the number of attempts before a step failed.
pub(super) fn settled(end: &str) -> String {
    const ATTEMPTS: &str = ":attempts ";
    let is_failure = codec::decode(end).is_ok_and(|value| error_of(&value).is_some());
    if !is_failure {
        return end.to_owned();
    }
    let mut parts = end.split(ATTEMPTS);
    let mut settled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        settled += ATTEMPTS;
        settled += part.trim_start_matches(|char: char| char.is_ascii_digit());
    }
    settled
}
