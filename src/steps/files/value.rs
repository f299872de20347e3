//! The results of operations, as values.

use flowstone_flow::codec;
use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;

use super::manifest::{Entry, Kind};

/// Returns a map with keywords as keys.
pub(super) fn map<'a>(facts: impl IntoIterator<Item = (&'a str, Value)>) -> Value {
    Value::map(
        facts
            .into_iter()
            .map(|(key, value)| (Value::keyword(key), value)),
    )
}

pub(super) fn int(count: u64) -> Value {
    Value::Int(i64::try_from(count).unwrap_or(i64::MAX))
}

/// Returns a reference to a tree or a changeset.
pub(super) fn reference(uri: &str, content_type: &str, facts: Vec<(&str, Value)>) -> Value {
    let head = [
        ("type", Value::keyword("resource-ref")),
        ("uri", Value::from(uri)),
        ("content-type", Value::from(content_type)),
    ];
    map(head.into_iter().chain(facts))
}

/// Encodes the value that the store returns once it has committed.
pub(super) fn answer(value: &Value) -> Result<String, StepError> {
    codec::encode(value).map_err(|error| {
        StepError::new(
            error.code(),
            "internal",
            format!("the result cannot be written: {error}"),
        )
    })
}

/// Returns the description of one entry of a listing.
pub(super) fn entry(entry: &Entry) -> Value {
    let mut facts = vec![
        ("path", Value::from(entry.path.as_str())),
        ("size", int(entry.size)),
        ("kind", Value::keyword(entry.kind.name())),
    ];
    match entry.kind {
        Kind::File => facts.push(("lines", int(entry.lines))),
        Kind::Link => facts.push((
            "target",
            Value::from(entry.target.as_deref().unwrap_or_default()),
        )),
        Kind::Binary | Kind::Large | Kind::Submodule | Kind::Unreadable | Kind::Folder => {}
    }
    map(facts)
}
