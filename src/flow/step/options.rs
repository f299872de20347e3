//! Common options that are maps of their own: `:confirm`, `:expect`, `:metering`, `:on-doubt`, `:retry`, `:review`.
//!
//! Each option is read in its own module. This module contains the common part: the allowed keys, and their checks both
//! in a flow's text, where only constants are known, and in a computed config.

use flowstone_lang::value::{Map, Value};

use super::{Field, StepError};
use crate::diagnostic::nearest;
use crate::flow::{is_known, name_of};
use crate::{approval, doubt, expect, metering, retry};

/// An error in an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    pub code: &'static str,
    /// The name of the option.
    pub key: &'static str,
    /// The key inside the option that is wrong.
    pub inner: Option<String>,
    pub message: String,
    pub hint: Option<String>,
}

impl Wrong {
    pub fn new(code: &'static str, key: &'static str, message: String) -> Wrong {
        Wrong {
            code,
            key,
            inner: None,
            message,
            hint: None,
        }
    }

    /// Returns the error for a wrong value of a key inside the option.
    pub fn value(code: &'static str, key: &'static str, inner: &str, expected: &str) -> Wrong {
        Wrong {
            inner: Some(inner.to_owned()),
            ..Wrong::new(
                code,
                key,
                format!("`:{inner}` of `:{key}` must be {expected}"),
            )
        }
    }

    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Wrong {
        Wrong {
            hint: Some(hint.into()),
            ..self
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

/// Checks the shape of an option's value.
type Shape = fn(&Value) -> Result<(), Wrong>;

/// Returns the function that checks the shape of a common option's value.
fn shape(name: &str) -> Option<Shape> {
    Some(match name {
        "confirm" => |value| approval::Approval::of("confirm", value).map(|_| ()),
        "expect" => expect::check_shape,
        "metering" => |value| metering::Metering::of(value).map(|_| ()),
        "on-doubt" => |value| doubt::OnDoubt::of(value).map(|_| ()),
        "retry" => retry::check_shape,
        "review" => |value| approval::Approval::of("review", value).map(|_| ()),
        _ => return None,
    })
}

/// Tells whether a common option checks its own contents.
pub fn has_check(name: &str) -> bool {
    shape(name).is_some()
}

/// Checks a common option. In a literal, computed values are treated as absent.
pub fn check(field: &Field, value: &Value, literal: bool) -> Result<(), Wrong> {
    let Some(shape) = shape(field.name) else {
        return Ok(());
    };
    match value {
        Value::Map(map) if literal => {
            let known = map.iter().map(|(key, value)| match is_known(value) {
                true => (key.clone(), value.clone()),
                false => (key.clone(), Value::Nil),
            });
            shape(&Value::map(known))
        }
        _ => shape(value),
    }
}

/// Returns an option as a map that has only these keys.
pub fn keys<'v>(
    code: &'static str,
    key: &'static str,
    value: &'v Value,
    known: &[&str],
) -> Result<&'v Map, Wrong> {
    let Some(map) = value.as_map() else {
        return Err(Wrong::new(code, key, format!("`:{key}` must be a map")));
    };
    for (found, _) in map.iter() {
        let name = name_of(found).unwrap_or_default();
        if known.contains(&&*name) {
            continue;
        }
        let mut wrong = Wrong::new(code, key, format!("`:{key}` has no option `:{name}`"));
        wrong.inner = Some(name.to_string());
        return Err(match nearest(&name, known.iter().copied()) {
            Some(near) => wrong.hint(format!("did you mean `:{near}`?")),
            None => {
                let names: Vec<String> = known.iter().map(|name| format!("`:{name}`")).collect();
                wrong.hint(format!("its options are {}", names.join(", ")))
            }
        });
    }
    Ok(map)
}
