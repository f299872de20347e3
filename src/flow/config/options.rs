//! Common options that are maps of their own: `:confirm`, `:expect`, `:metering`, `:on-doubt`, `:retry`, `:review`, `:total-timeout`.
//!
//! Each option is read in its own module. This module contains the common part: the allowed keys, and their checks both
//! in a flow's text, where only constants are known, and in a computed config.

use flowstone_lang::value::Value;

use crate::forms::is_known;
use crate::option_problem::Wrong;
use crate::spec::Field;
use crate::{approval, doubt, expect, metering, retry, total_timeout};

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
        "total-timeout" => total_timeout::check_shape,
        _ => return None,
    })
}

/// Tells whether a common option checks its own contents.
pub(super) fn has_check(name: &str) -> bool {
    shape(name).is_some()
}

/// Checks a common option. In a literal, computed values are treated as absent.
pub(super) fn check(field: &Field, value: &Value, literal: bool) -> Result<(), Wrong> {
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
