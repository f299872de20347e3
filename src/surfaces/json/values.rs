//! Values and instants.

use flowstone_engine::codec;
use flowstone_engine::json::to_exact_json;
use flowstone_lang::value::{Object, Value};
use serde_json::json;

/// Returns stored EDN text as JSON, or as text if that fails.
pub fn stored_json(text: &str) -> serde_json::Value {
    codec::decode(text)
        .ok()
        .and_then(|value| to_exact_json(&value).ok())
        .unwrap_or_else(|| json!(text))
}

/// Returns an object of the API as JSON. Its type is in the API's document, too.
pub fn object(object: &impl serde::Serialize) -> serde_json::Value {
    // The names of all fields are texts, and no field refuses to be written.
    serde_json::to_value(object).unwrap_or(serde_json::Value::Null)
}

/// Returns what a command prints for an answer of the API: the same object, marked as a success.
pub fn ok(answer: serde_json::Value) -> serde_json::Value {
    let mut marked = serde_json::Map::new();
    marked.insert("ok".to_owned(), json!(true));
    if let serde_json::Value::Object(fields) = answer {
        marked.extend(fields);
    }
    marked.into()
}

/// Returns milliseconds since 1970 as an ISO 8601 string.
pub fn instant(millis: i64) -> serde_json::Value {
    to_exact_json(&Value::Object(std::rc::Rc::new(Object::Inst(millis))))
        .unwrap_or(serde_json::Value::Null)
}
