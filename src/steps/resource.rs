//! References to what is stored: their names, and what is behind them.

use flowstone_engine::codec;
use flowstone_engine::ports::BlobRow;
pub use flowstone_engine::resource::PREFIX;
use flowstone_engine::step::{StepContext, StepError};
use flowstone_lang::value::{Object, Value};

use crate::json::from_json;
use crate::words::shown;

/// Values as the codec writes them.
pub const EDN: &str = "application/edn";

/// Returns the `res://` name in a reference: a string, or a map that has it under `:uri`, `:resource-uri`,
/// `:ref` or `:blob-ref`.
pub fn uri(reference: &Value) -> Option<String> {
    match reference {
        Value::Text(text) => text.starts_with("res://").then(|| text.as_str().to_owned()),
        Value::Map(_) => ["uri", "resource-uri", "ref", "blob-ref"]
            .into_iter()
            .filter_map(|key| reference.get(key))
            .find_map(uri),
        _ => None,
    }
}

/// Makes the reference that stands for a resource.
pub fn reference(uri: &str, facts: &[(&str, Value)]) -> Value {
    let fact = |key: &str, value: Value| (Value::keyword(key), value);
    let head = [
        fact("type", Value::keyword("resource-ref")),
        fact("uri", Value::from(uri)),
    ];
    Value::map(
        head.into_iter()
            .chain(facts.iter().map(|(key, value)| fact(key, value.clone()))),
    )
}

/// Returns the bytes of a blob that a reference names.
///
/// # Errors
/// When it is no reference to a blob, or the blob is gone.
pub async fn bytes(cx: &StepContext, reference: &Value) -> Result<(BlobRow, Vec<u8>), StepError> {
    let Some(uri) = uri(reference) else {
        return Err(StepError::config(
            "E0761",
            format!("this is no reference: {}", shown(reference)),
        )
        .hint("give the value of a step that has `:persist {:type :blob}`, or its `:uri`"));
    };
    let Some(row) = cx.stores().blobs.find(&uri).await? else {
        return Err(StepError::new("E0761", "not-found", format!("there is no blob `{uri}`"))
            .hint("it was deleted, belongs to another project, or is a table or key, which their own steps read"));
    };
    let bytes = cx.stores().blobs.get(&row.hash).await?;
    Ok((row, bytes))
}

/// Returns the value behind a reference, by its content type: data, parsed JSON, text, or bytes.
///
/// # Errors
/// As [`bytes`], and when the contents are not of their type.
pub async fn load(cx: &StepContext, reference: &Value) -> Result<Value, StepError> {
    let (row, bytes) = bytes(cx, reference).await?;
    let content_type = row.content_type.as_deref().unwrap_or_default();
    let kind = content_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let unreadable = |why: String| {
        StepError::new(
            "E0761",
            "invalid",
            format!("the blob `{}` is not {kind}: {why}", row.uri),
        )
    };
    let is_json = kind == "application/json" || kind.ends_with("+json");
    let is_text = kind.starts_with("text/")
        || kind.ends_with("xml")
        || kind.ends_with("javascript")
        || kind == "application/yaml";
    if kind == EDN {
        let text = String::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
        return codec::decode(&text).map_err(|error| unreadable(error.to_string()));
    }
    if is_json {
        return serde_json::from_slice(&bytes)
            .map(|json| from_json(&json))
            .map_err(|error| unreadable(error.to_string()));
    }
    if is_text {
        return String::from_utf8(bytes)
            .map(Value::from)
            .map_err(|error| unreadable(error.to_string()));
    }
    Ok(Object::Bytes(bytes.into_boxed_slice()).into())
}
