//! Values and instants.

use flowstone_engine::codec;
use flowstone_engine::json::to_exact_json;
use flowstone_lang::value::{Object, Value};
use serde_json::json;

/// How an answer writes the values of flows: inputs, requests, results and payloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Values {
    /// As JSON, in which keywords are strings.
    #[default]
    Json,
    /// As strings of EDN, which lose nothing. The command line prints these.
    Edn,
}

impl Values {
    /// The names in an address.
    pub const NAMES: &[&str] = &["json", "edn"];

    /// Returns the form with a name.
    pub fn from_name(name: &str) -> Option<Values> {
        match name {
            "json" => Some(Values::Json),
            "edn" => Some(Values::Edn),
            _ => None,
        }
    }

    /// Returns the name in an address.
    pub fn name(self) -> &'static str {
        match self {
            Values::Json => "json",
            Values::Edn => "edn",
        }
    }

    /// Returns a stored EDN text in this form.
    pub fn shown(self, text: &str) -> serde_json::Value {
        match self {
            Values::Json => stored_json(text),
            Values::Edn => json!(text),
        }
    }
}

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
