//! What callers from outside may not give a run: the keys of its input that the engine sets itself.
//!
//! The command line is not outside: who runs it owns the project, and may pass `activation`.

use flowstone_lang::value::Value;

use crate::engine::StartOptions;
use crate::error::EngineError;
use crate::flow::{ACTIVATION, name_of};

/// Namespaces of keys that the engine sets.
const RESERVED: &[&str] = &["flow", "step"];
/// The place of the input in the paths of [`crate::Setting`].
const INPUT: &str = "input";

/// Tells whether a key of an input is set by the engine. The name is that of a keyword or a string, with or without a
/// colon.
pub fn is_reserved(name: &str) -> bool {
    let name = name.trim_start_matches(':');
    let head = name.split_once('/').map(|(head, _)| head);
    name == ACTIVATION || head.is_some_and(|head| RESERVED.contains(&head))
}

/// Refuses an input with a key that the engine sets. A value that is not a map passes.
///
/// # Errors
/// [`EngineError::ReservedInput`] with the first such key.
pub fn refuse_reserved(input: &Value) -> Result<(), EngineError> {
    let keys = input.as_map().into_iter().flat_map(|map| map.iter());
    let mut names = keys.filter_map(|(key, _)| name_of(key));
    match names.find(|name| is_reserved(name)) {
        Some(name) => Err(reserved(&name)),
        None => Ok(()),
    }
}

/// Refuses a change of an input, at a path such as `input.order.id`, that sets a key that the engine sets.
///
/// # Errors
/// [`EngineError::ReservedInput`].
pub fn refuse_reserved_setting(path: &str, value: &Value) -> Result<(), EngineError> {
    let (head, rest) = path.split_once('.').unwrap_or((path, ""));
    if head != INPUT {
        return Ok(());
    }
    match rest.split('.').next().unwrap_or_default() {
        "" => refuse_reserved(value),
        key if is_reserved(key) => Err(reserved(key)),
        _ => Ok(()),
    }
}

fn reserved(name: &str) -> EngineError {
    EngineError::ReservedInput {
        name: name.trim_start_matches(':').to_owned(),
    }
}

impl StartOptions {
    /// Starts with the input of a caller from outside, by the default contract. A worker executes the run.
    ///
    /// # Errors
    /// [`EngineError::ReservedInput`] if the input has a key that the engine sets.
    pub fn from_outside(input: Value) -> Result<StartOptions, EngineError> {
        refuse_reserved(&input)?;
        Ok(StartOptions {
            is_left: true,
            ..StartOptions::with_input(input)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_engine_are_reserved_in_each_spelling() {
        for name in [
            "activation",
            ":activation",
            "flow/request",
            ":flow/ctx",
            "step/x",
        ] {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["activations", "flow", "step", "flows/x", "my/flow", "order"] {
            assert!(!is_reserved(name), "{name}");
        }
    }

    #[test]
    fn an_input_with_a_reserved_key_is_refused() {
        let with = |key: Value| Value::map([(key, Value::Int(1))]);
        for key in ["activation", "flow/request", "step/ctx"] {
            assert!(refuse_reserved(&with(Value::keyword(key))).is_err());
            assert!(refuse_reserved(&with(Value::from(key))).is_err());
        }
        assert!(refuse_reserved(&with(Value::keyword("order"))).is_ok());
        assert!(refuse_reserved(&Value::Nil).is_ok());
        assert!(StartOptions::from_outside(with(Value::keyword("flow/ctx"))).is_err());
    }

    #[test]
    fn a_setting_cannot_reach_a_reserved_key_either() {
        let refused = |path: &str, value: Value| refuse_reserved_setting(path, &value).is_err();
        let whole = Value::map([(Value::keyword("activation"), Value::Nil)]);
        assert!(refused("input.activation.token", Value::Nil));
        assert!(refused("input.flow/request", Value::Nil));
        assert!(refused("input", whole.clone()));
        assert!(!refused("input.order", whole.clone()));
        assert!(!refused("ask", whole));
    }
}
