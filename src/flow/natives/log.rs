//! The levels of `flow/log`.

use flowstone_lang::suggest::{Respelling, respelling};
use flowstone_lang::value::{Change, Class, Exception, Signal, Value};
use flowstone_model::names::name_of;

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
            respelling(&name, LEVELS.iter().copied()),
        )),
    }
}

fn unknown(found: &str, near: Option<Respelling<'_>>) -> Signal {
    let message = format!("`flow/log` has no level `{found}`");
    let levels: Vec<String> = LEVELS.iter().map(|it| format!("`:{it}`")).collect();
    let exception = Exception::new(Class::ILLEGAL_ARGUMENT, "E0710", message);
    let exception = match near {
        Some(near) => exception
            .hint(format!("did you mean `:{}`?", near.name))
            .change(Change::respell(found.trim_start_matches(':'), near)),
        None => exception,
    };
    exception
        .hint(format!("the levels are {}", levels.join(", ")))
        .into()
}
