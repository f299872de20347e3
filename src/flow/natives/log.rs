//! The levels of `flow/log`.

use flowstone_lang::value::{Class, Exception, Signal, Value};
use flowstone_model::names::name_of;

use crate::diagnostic::nearest;

const LEVELS: &[&str] = &["trace", "debug", "info", "warn", "error"];

/// Rejects values that are not a level, with the levels in the hint.
pub fn check_level(level: &Value) -> Result<(), Signal> {
    let name = match level {
        Value::Keyword(_) | Value::Text(_) => name_of(level).unwrap_or_default(),
        other => return Err(unknown(&crate::text::printed(other), None)),
    };
    match LEVELS.contains(&&*name) {
        true => Ok(()),
        false => Err(unknown(
            &format!(":{name}"),
            nearest(&name, LEVELS.iter().copied()),
        )),
    }
}

fn unknown(found: &str, near: Option<&str>) -> Signal {
    let message = format!("`flow/log` has no level `{found}`");
    let levels: Vec<String> = LEVELS.iter().map(|it| format!("`:{it}`")).collect();
    let exception = Exception::new(Class::ILLEGAL_ARGUMENT, "E0710", message);
    let exception = match near {
        Some(near) => exception.hint(format!("did you mean `:{near}`?")),
        None => exception,
    };
    exception
        .hint(format!("the levels are {}", levels.join(", ")))
        .into()
}
