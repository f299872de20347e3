//! Objects of the API as data of the language: keywords instead of names, values instead of their texts.

use flowstone_engine::codec;
use flowstone_engine::json::from_json;
use flowstone_lang::value::Value;
use serde_json::Value as Json;

/// The members whose texts are EDN in answers with `values=edn`.
const TEXTS: &[&str] = &[
    "input",
    "result",
    "error",
    "errorData",
    "request",
    "details",
    "payload",
    "line",
    "notification",
    "value",
];
/// The members whose texts are names.
const NAMES: &[&str] = &[
    "flow",
    "status",
    "type",
    "state",
    "difference",
    "kind",
    "durability",
];

/// Returns an object of the API as data.
pub fn data(json: &Json) -> Value {
    member("", json)
}

fn member(name: &str, json: &Json) -> Value {
    match json {
        Json::Object(members) => Value::map(
            members
                .iter()
                .map(|(name, json)| (Value::keyword(&kebab(name)), member(name, json))),
        ),
        Json::Array(items) => Value::vector(items.iter().map(|item| member(name, item))),
        Json::String(text) if TEXTS.contains(&name) => {
            // The beginning of a long text is no value.
            codec::decode(text).unwrap_or_else(|_| Value::from(text.as_str()))
        }
        Json::String(text) if NAMES.contains(&name) && !text.contains([' ', ':']) => {
            Value::keyword(text)
        }
        other => from_json(other),
    }
}

/// Returns `createdAt` as `created-at`.
fn kebab(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for char in name.chars() {
        if char.is_ascii_uppercase() {
            out.push('-');
        }
        out.push(char.to_ascii_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn objects_become_maps_with_keywords() {
        let value = data(&json!({
            "createdAt": "2026-01-01T00:00:00Z",
            "status": "completed",
            "result": "{:n 3}",
            "steps": [{"type": "llm", "request": "{:prompt \"a beginn", "millis": 3}],
        }));
        assert_eq!(
            codec::encode(&value).expect("data"),
            "{:created-at \"2026-01-01T00:00:00Z\" :status :completed :result {:n 3} :steps [{:type :llm \
             :request \"{:prompt \\\"a beginn\" :millis 3}]}"
        );
    }
}
