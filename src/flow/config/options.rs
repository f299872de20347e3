//! Common options that are maps of their own: `:confirm`, `:expect`, `:metering`, `:on-doubt`, `:retry`, `:review`.
//!
//! Each reads itself where it lives; here is what they have in common: which keys there are, and checking them both
//! in a flow's text, where only constants are known, and in a config that is computed.

use flowstone_lang::value::Value;

use crate::forms::is_known;
use crate::option_problem::Wrong;
use crate::spec::Field;
use crate::{approval, doubt, expect, metering, retry};

/// Checks the shape of an option's value.
type Shape = fn(&Value) -> Result<(), Wrong>;

/// Returns what checks the shape of a common option's value.
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

/// Tells whether an option of every step checks its inside itself.
pub fn has_check(name: &str) -> bool {
    shape(name).is_some()
}

/// Checks a common option. In a literal, values that are computed are taken as absent.
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
