//! References to resources: their names, and their contents.
//!
//! A reference is looked up in the registry each time, so that a resource which was deleted, has expired or has changed
//! its type is reported at once.

use flowstone_flow::codec;
use flowstone_flow::ports::{Gone, ResourceRow};
pub use flowstone_flow::resource::PREFIX;
use flowstone_flow::resource::media::{self, Format};
use flowstone_flow::resource::sign::Signer;
use flowstone_flow::resource::{ResourceKind, ResourceName};
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::{Object, Value};
use flowstone_model::resource_value::value_text;

use crate::json::{read_all, read_bytes};
use crate::text::brief;

/// Values in the codec's format.
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

/// Creates the reference to a resource.
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

/// Finds the resource that a reference names.
///
/// # Errors
/// When it is not a reference, or the resource does not exist, was deleted or has expired.
pub async fn find(cx: &StepContext, reference: &Value) -> Result<ResourceRow, StepError> {
    let Some(uri) = uri(reference) else {
        return Err(
            StepError::config("E0761", format!("not a reference: {}", brief(reference)))
                .hint("give the value of a step that has `:persist {:type :blob}`, or its `:uri`"),
        );
    };
    let found = cx.resource(&uri).await?;
    let Some(row) = found else {
        let what = match ResourceName::read(&uri) {
            Some(ResourceName::Kv(_)) => "key",
            Some(ResourceName::Table(_)) => "table",
            Some(ResourceName::StepOutput(..) | ResourceName::FlowOutput(_)) => "result",
            _ => "blob",
        };
        return Err(
            StepError::new("E0761", "not-found", format!("there is no {what} `{uri}`"))
                .hint("it belongs to another project, or was removed when nothing mentioned it any more: `flowstone resources list` shows what there is"),
        );
    };
    match row.gone {
        None => Ok(row),
        Some((Gone::Expired, at_ms)) => {
            let message = format!(
                "`{uri}` has expired: it was kept until {}",
                codec::instant(at_ms)
            );
            Err(StepError::new("E0703", "expired", message)
                .hint("store it with `:tier :retained`, or use it earlier"))
        }
        Some((Gone::Deleted, at_ms)) => {
            let message = format!("`{uri}` was deleted at {}", codec::instant(at_ms));
            Err(StepError::new("E0703", "deleted", message)
                .hint("upload or store it again, and use the new reference"))
        }
    }
}

/// Rejects resources without contents.
fn unloadable(row: &ResourceRow) -> StepError {
    let hint = match row.kind {
        ResourceKind::Table => "a `:table` step reads it: `{:op :query :table ref}`",
        ResourceKind::Tree | ResourceKind::Changeset => {
            "a `:files` step reads it: `{:op :read :source ref}`"
        }
        _ => "give the reference to a blob",
    };
    let message = format!(
        "`{}` is a {}, and the contents of a blob are wanted",
        row.uri,
        row.kind.name()
    );
    StepError::new("E0704", "wrong-type", message).hint(hint)
}

/// Returns the bytes of a resource: a blob's, or the stored form of the value of a key, step or run.
///
/// # Errors
/// As for [`find`], and when the resource has no contents of its own, such as a table.
pub async fn bytes(
    cx: &StepContext,
    reference: &Value,
) -> Result<(ResourceRow, Vec<u8>), StepError> {
    let row = find(cx, reference).await?;
    contents(cx, row).await
}

async fn contents(
    cx: &StepContext,
    mut row: ResourceRow,
) -> Result<(ResourceRow, Vec<u8>), StepError> {
    if let (Some(hash), ResourceKind::Blob | ResourceKind::File) = (&row.hash, row.kind) {
        let bytes = cx.own_stores().blobs.get(hash).await?;
        return Ok((row, bytes));
    }
    let value = elsewhere(cx, &row).await?;
    let (bytes, content_type) = match &value {
        Value::Text(text) => (text.as_bytes().to_vec(), "text/plain; charset=utf-8"),
        value if let Some(bytes) = value.as_bytes() => {
            (bytes.into_owned(), "application/octet-stream")
        }
        value => {
            let text = codec::encode(value)
                .map_err(|error| StepError::new(error.code(), "store", error.to_string()))?;
            (text.into_bytes(), EDN)
        }
    };
    row.content_type = Some(content_type.to_owned());
    row.size = Some(bytes.len() as u64);
    Ok((row, bytes))
}

/// Returns the value of a key, a step or a run.
async fn elsewhere(cx: &StepContext, row: &ResourceRow) -> Result<Value, StepError> {
    match value_text(cx.own_stores(), row, cx.now_ms()).await? {
        Some(text) => codec::decode(&text)
            .map_err(|error| StepError::new(error.code(), "store", error.to_string())),
        None => Err(unloadable(row)),
    }
}

/// Returns the value behind a reference, by its content type: data, parsed JSON, text, or bytes.
///
/// # Errors
/// As for [`bytes`], and when the contents do not match their type.
pub async fn load(cx: &StepContext, reference: &Value) -> Result<Value, StepError> {
    let row = find(cx, reference).await?;
    if row.hash.is_none() {
        return elsewhere(cx, &row).await;
    }
    let (row, bytes) = contents(cx, row).await?;
    decoded(&row, bytes)
}

/// Parses a blob's bytes according to its content type.
fn decoded(row: &ResourceRow, bytes: Vec<u8>) -> Result<Value, StepError> {
    let kind = media::essence(row.content_type.as_deref().unwrap_or_default());
    let format = Format::of(&kind);
    let unreadable = |why: String| {
        StepError::new(
            "E0761",
            "invalid",
            format!("the blob `{}` is not {kind}: {why}", row.uri),
        )
    };
    let is_text = kind.starts_with("text/")
        || kind.ends_with("xml")
        || kind.ends_with("javascript")
        || format == Some(Format::Yaml);
    if format == Some(Format::Edn) {
        let text = String::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
        return codec::decode(&text).map_err(|error| unreadable(error.to_string()));
    }
    if format == Some(Format::Json) {
        return read_bytes(&bytes).map_err(|error| unreadable(error.to_string()));
    }
    if format == Some(Format::JsonLines) {
        let text = String::from_utf8(bytes).map_err(|error| unreadable(error.to_string()))?;
        return read_all(&text)
            .map(Value::vector)
            .map_err(|error| unreadable(error.to_string()));
    }
    if is_text {
        return String::from_utf8(bytes)
            .map(Value::from)
            .map_err(|error| unreadable(error.to_string()));
    }
    Ok(Object::Bytes(bytes.into_boxed_slice()).into())
}

/// Returns the signer of the project's links.
pub(crate) fn signer(cx: &StepContext) -> Result<Signer, StepError> {
    Signer::open(cx.home()).map_err(|error| {
        let message = format!("the key of links cannot be read: {error}");
        StepError::new("E0769", "store", message)
            .hint("it is the file `links.key` in the project's `.flowstone`")
    })
}
