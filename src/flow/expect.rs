//! `:expect` of a step: what its value must satisfy.

use flowstone_lang::value::{Object, Value, compile_regex};
use flowstone_model::names::name_of;

use crate::codec;
use crate::option_problem::{Wrong, keys};
use crate::schema;
use crate::step::{Retry, StepContext, StepError};

const CODE: &str = "E0715";
const KEYS: &[&str] = &["contains", "equals", "fn", "matches", "schema"];

/// Checks a value.
///
/// # Errors
/// Kind `expectation-failed` if the value does not satisfy the expectation, `bad-config` if the expectation is
/// malformed.
pub async fn check(cx: &StepContext, expectation: &Value, value: &Value) -> Result<(), StepError> {
    check_data(cx, expectation, value)?;
    match expectation.get("fn") {
        Some(code) => {
            let function = cx.function(code)?;
            let held = cx.call(&function, std::slice::from_ref(value)).await?;
            satisfied(&held, value)
        }
        None => Ok(()),
    }
}

/// As [`check`], for callers that cannot wait.
///
/// # Errors
/// As [`check`].
pub fn check_at_once(
    cx: &StepContext,
    expectation: &Value,
    value: &Value,
) -> Result<(), StepError> {
    check_data(cx, expectation, value)?;
    match expectation.get("fn") {
        Some(code) => {
            let function = cx.function(code)?;
            let held = cx.call_at_once(&function, std::slice::from_ref(value))?;
            satisfied(&held, value)
        }
        None => Ok(()),
    }
}

fn satisfied(held: &Value, value: &Value) -> Result<(), StepError> {
    match held.is_truthy() {
        true => Ok(()),
        false => Err(failed("should satisfy the function".to_owned(), value)),
    }
}

/// Checks everything but the function, which is checked last.
fn check_data(cx: &StepContext, expectation: &Value, value: &Value) -> Result<(), StepError> {
    if expectation.is_nil() {
        return Ok(());
    }
    let map = keys(CODE, "expect", expectation, KEYS)?;
    for (key, wanted) in map.iter() {
        let name = name_of(key).unwrap_or_default();
        match &*name {
            "contains" => contains(wanted, value)?,
            "equals" if wanted == value => {}
            "equals" => return Err(failed(format!("should be {}", shown(wanted)), value)),
            "matches" => matches(wanted, value)?,
            "schema" => {
                let parsed = schema::parse_with_functions(wanted)
                    .map_err(|error| StepError::config(CODE, error.to_string()))?;
                let problems = schema::validate_with(&parsed, value, &mut |function, value| {
                    let function = cx.function(function).map_err(|error| error.message)?;
                    let held = cx.call_at_once(&function, std::slice::from_ref(value));
                    held.map(|held| held.is_truthy())
                        .map_err(|error| error.message)
                });
                if !problems.is_empty() {
                    let error = failed(schema::explain(&problems), value);
                    return Err(error.with("errors", schema::errors(&problems)));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Checks the parts of `:expect` that are known.
pub fn check_shape(given: &Value) -> Result<(), Wrong> {
    if given.is_nil() {
        return Ok(());
    }
    let map = keys(CODE, "expect", given, KEYS)?;
    let get = |name: &str| map.get(&Value::keyword(name)).filter(|it| !it.is_nil());
    if let Some(wanted) = get("matches") {
        let source = regex_source(wanted).ok_or_else(|| {
            let expected = "a regex such as #\"ok\"";
            Wrong::value(CODE, "expect", "matches", expected)
        })?;
        if let Err(error) = compile_regex(&source) {
            let mut wrong = Wrong::value(CODE, "expect", "matches", "a regex");
            wrong.hint = Some(error.message.to_string());
            return Err(wrong);
        }
    }
    if let Some(wanted) = get("schema")
        && let Err(error) = schema::parse_with_functions(wanted)
    {
        let mut wrong = Wrong::value(CODE, "expect", "schema", "a Malli schema");
        wrong.hint = Some(error.to_string());
        return Err(wrong);
    }
    Ok(())
}

fn contains(wanted: &Value, value: &Value) -> Result<(), StepError> {
    let wanted: Vec<Value> = match wanted {
        Value::Vector(items) => items.iter().cloned().collect(),
        Value::Set(items) => items.iter().cloned().collect(),
        Value::List(items) => items.iter().cloned().collect(),
        one => vec![one.clone()],
    };
    let missing: Vec<String> = wanted
        .iter()
        .filter(|item| !holds(item, value))
        .map(shown)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(failed(
        format!("should contain {}", missing.join(", ")),
        value,
    ))
}

/// A map holds keys, under either spelling; a string holds parts; other collections hold items.
fn holds(item: &Value, value: &Value) -> bool {
    match value {
        Value::Map(map) => {
            let name = name_of(item);
            map.iter()
                .any(|(key, _)| key == item || (name.is_some() && name_of(key) == name))
        }
        Value::Text(text) => name_of(item).is_some_and(|part| text.contains(&*part)),
        Value::Vector(items) => items.iter().any(|other| other == item),
        Value::Set(items) => items.contains(item),
        Value::List(items) => items.iter().any(|other| other == item),
        _ => false,
    }
}

fn matches(wanted: &Value, value: &Value) -> Result<(), StepError> {
    let source = regex_source(wanted)
        .ok_or_else(|| StepError::config(CODE, "`:matches` must be a regex"))?;
    let regex = compile_regex(&source).map_err(|error| {
        StepError::config(
            CODE,
            format!("`:matches` is not a valid regex: {}", error.message),
        )
    })?;
    let text = match value {
        Value::Text(text) => text.to_string(),
        other => shown(other),
    };
    if matches!(regex.find_from(&text, 0), Ok(Some(_))) {
        return Ok(());
    }
    Err(failed(format!("should match {source}"), value))
}

fn regex_source(wanted: &Value) -> Option<String> {
    match wanted {
        Value::Text(source) => Some(source.to_string()),
        Value::Object(object) => match &**object {
            Object::Regex { source, .. } => Some(source.to_string()),
            _ => None,
        },
        _ => None,
    }
}

fn failed(requirement: String, value: &Value) -> StepError {
    StepError::new(
        "E0521",
        "expectation-failed",
        format!("the result is not what `:expect` says: {requirement}"),
    )
    .retry(Retry::Backoff)
    .with("result", shown(value))
}

fn shown(value: &Value) -> String {
    match codec::encode(value) {
        Ok(text) => match text.char_indices().nth(200) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text,
        },
        Err(_) => value.kind().to_owned(),
    }
}
