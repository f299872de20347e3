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

/// Returns milliseconds since 1970 as an ISO 8601 string.
pub fn instant(millis: i64) -> serde_json::Value {
    to_exact_json(&Value::Object(std::rc::Rc::new(Object::Inst(millis))))
        .unwrap_or(serde_json::Value::Null)
}
