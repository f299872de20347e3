//! Results of runs as contents: text, pictures, sounds, and stored resources.
//!
//! A result is data. If it describes how to display it (`:breyta.viewer/kind`), it becomes contents of that kind;
//! references to stored resources become links.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flowstone_engine::json::{compact, from_exact_json, pretty, to_exact_json};
use flowstone_engine::outcome::code_of;
use flowstone_engine::ports::RunRow;
use flowstone_engine::resource::PREFIX;
use flowstone_engine::viewer;
use serde_json::{Map, Value as Json, json};

use super::api;
use super::peer::Request;
use super::protocol::{RpcError, codes};
use crate::json::stored_json;

/// Maximum size of a file that is sent; larger ones are linked.
const SENT_MAX: u64 = 8 << 20;
/// Maximum number of references of a result that are linked.
const LINKS_MAX: usize = 50;

/// Returns the result of a tool for a run that has ended.
///
/// # Errors
/// When a stored resource in the result cannot be read.
pub(super) async fn tool_result(rq: &Request, row: &RunRow) -> Result<Json, RpcError> {
    let meta = json!({"runId": row.id.as_str()});
    let Some(result) = row.result.as_deref().map(stored_json) else {
        return Ok(failure(row));
    };
    if row.status.name() != "completed" {
        return Ok(failure(row));
    }
    if let Some(parts) = parts_of(&result) {
        let content = as_contents(rq, &parts).await?;
        return Ok(json!({"content": content, "isError": false, "_meta": meta}));
    }
    let structured = match &result {
        Json::Object(_) => result.clone(),
        other => json!({"result": other}),
    };
    let mut content = vec![text(as_text(&result))];
    let mut found = Vec::new();
    references(&result, &mut found);
    for reference in found {
        content.push(linked(reference));
    }
    Ok(json!({
        "content": content, "structuredContent": structured, "isError": false, "_meta": meta,
    }))
}

/// Returns the result of a tool whose run did not complete.
fn failure(row: &RunRow) -> Json {
    failed(&failure_text(row), facts(row))
}

/// Returns the error of a prompt or a resource whose run did not complete.
pub(super) fn error_of(row: &RunRow) -> RpcError {
    RpcError::new(codes::INTERNAL, failure_text(row)).with(facts(row))
}

/// Returns why a run did not complete: the message, the code and the run, each on its line.
pub(super) fn failure_text(row: &RunRow) -> String {
    let error = row.error.as_deref().map(stored_json).unwrap_or(Json::Null);
    // A failure has its error inside, with the place.
    let error = match &error["error"] {
        Json::Null => &error,
        inner => inner,
    };
    let message = match error["message"].as_str() {
        Some(message) => message.to_owned(),
        None => match (row.status.name(), &row.cancel_requested) {
            ("cancelled" | "terminated", Some(reason)) => {
                format!("the run was cancelled: {reason}")
            }
            (status, _) => format!("the run ended as {status}"),
        },
    };
    let code = code(row).map(|code| format!("\ncode: {code}"));
    format!("{message}{}\nrun: {}", code.unwrap_or_default(), row.id)
}

fn code(row: &RunRow) -> Option<String> {
    row.error.as_deref().and_then(code_of)
}

/// Returns what programs read of a run that did not complete: its id, its status, and the code of its error.
fn facts(row: &RunRow) -> Json {
    json!({"runId": row.id.as_str(), "status": row.status.name(), "code": code(row)})
}

/// Returns the result of a tool that failed.
pub(super) fn failed(message: &str, meta: Json) -> Json {
    json!({"content": [text(message)], "isError": true, "_meta": meta})
}

/// Returns contents with one text.
pub(super) fn text(text: impl Into<String>) -> Json {
    json!({"type": "text", "text": text.into()})
}

/// Returns a text unchanged, and other data as JSON.
pub(super) fn as_text(result: &Json) -> String {
    match result {
        Json::String(text) => text.clone(),
        other => pretty(other),
    }
}

/// Returns a member of a map, under any of its spellings.
fn member<'a>(value: &'a Json, names: &[&str]) -> Option<&'a Json> {
    names
        .iter()
        .find_map(|name| value.get(name))
        .filter(|it| !it.is_null())
}

/// The parts of a result, each with the kind that its envelope names.
type Parts = Vec<(Option<String>, Json)>;

/// Returns the parts of a result that describes how to display it; `None` if it does not.
pub(super) fn parts_of(value: &Json) -> Option<Parts> {
    let parts = viewer::parts(&from_exact_json(value))?.into_iter();
    let parts = parts.map(|part| {
        let value = to_exact_json(&part.value).unwrap_or_default();
        (part.kind, value)
    });
    Some(parts.collect())
}

/// Returns the parts of a result as contents, in order.
///
/// # Errors
/// When a stored resource cannot be read.
async fn as_contents(rq: &Request, parts: &Parts) -> Result<Vec<Json>, RpcError> {
    let mut contents = Vec::new();
    for (kind, value) in parts {
        contents.push(match kind {
            Some(kind) => one(rq, kind, value).await?,
            None => text(as_text(value)),
        });
    }
    Ok(contents)
}

async fn one(rq: &Request, kind: &str, value: &Json) -> Result<Json, RpcError> {
    let media = match kind {
        "image" => Some("image"),
        "audio" => Some("audio"),
        _ => None,
    };
    if let Some(media) = media {
        return Ok(match bytes_of(rq, value).await? {
            Some((found, data)) if found.starts_with(media) => {
                json!({"type": media, "data": data, "mimeType": found})
            }
            _ => reference_or_text(value),
        });
    }
    match kind {
        "download" => Ok(match embedded(value) {
            Some(resource) => json!({"type": "resource", "resource": resource}),
            None => reference_or_text(value),
        }),
        "video" => Ok(reference_or_text(value)),
        _ => Ok(text(as_text(value))),
    }
}

fn reference_or_text(value: &Json) -> Json {
    let mut found = Vec::new();
    references(value, &mut found);
    match found.first() {
        Some(reference) => linked(reference.clone()),
        None => text(as_text(value)),
    }
}

/// Returns a resource with inline contents: a map with `:uri`, and `:text` or `:data`.
fn embedded(value: &Json) -> Option<Json> {
    let uri = value.get("uri")?.as_str()?;
    let mut resource = json!({"uri": uri});
    if let Some(media) = media_of(value) {
        resource["mimeType"] = json!(media);
    }
    match (value.get("text"), value.get("data")) {
        (Some(content), _) => resource["text"] = json!(as_text(content)),
        (None, Some(Json::String(data))) => resource["blob"] = json!(data),
        _ => return None,
    }
    Some(resource)
}

fn media_of(value: &Json) -> Option<&str> {
    member(
        value,
        &["content-type", "contentType", "mime-type", "mimeType"],
    )?
    .as_str()
}

/// Returns bytes as Base64 with their type: of a `data:` address, of a map with `:data`, or of a stored resource.
async fn bytes_of(rq: &Request, value: &Json) -> Result<Option<(String, String)>, RpcError> {
    let address = match value {
        Json::String(text) => Some(text.as_str()),
        other => member(other, &["url", "uri"]).and_then(Json::as_str),
    };
    if let Some(rest) = address.and_then(|address| address.strip_prefix("data:")) {
        let found = rest.split_once(";base64,");
        return Ok(found.map(|(media, data)| (media.to_owned(), data.to_owned())));
    }
    if let (Some(Json::String(data)), Some(media)) = (value.get("data"), media_of(value)) {
        return Ok(Some((media.to_owned(), data.clone())));
    }
    let Some(uri) = address.filter(|address| address.starts_with(PREFIX)) else {
        return Ok(None);
    };
    let size = value.get("size-bytes").and_then(Json::as_u64);
    if size.is_some_and(|size| size > SENT_MAX) {
        return Ok(None);
    }
    Ok(stored(rq, uri)
        .await?
        .map(|(media, bytes)| (media, STANDARD.encode(bytes))))
}

/// Reads a stored resource that the caller has access to; `None` if it does not exist.
///
/// # Errors
/// When it is too large.
pub(super) async fn stored(rq: &Request, uri: &str) -> Result<Option<(String, Vec<u8>)>, RpcError> {
    let path = format!("/api/v1/resources/content?uri={}", api::escaped(uri));
    let answer = api::call(rq, axum::http::Method::GET, &path, None).await?;
    Ok(match answer.status.is_success() {
        true => Some((answer.media, answer.bytes)),
        false => None,
    })
}

/// Collects the references to stored resources.
fn references(value: &Json, found: &mut Vec<Json>) {
    if found.len() >= LINKS_MAX {
        return;
    }
    match value {
        Json::Object(members) => {
            let uri = members.get("uri").and_then(Json::as_str);
            match uri.filter(|uri| uri.starts_with(PREFIX)) {
                Some(_) if !found.contains(value) => found.push(value.clone()),
                Some(_) => {}
                None => members.values().for_each(|value| references(value, found)),
            }
        }
        Json::Array(items) => items.iter().for_each(|value| references(value, found)),
        Json::String(text) if text.starts_with(PREFIX) => {
            let reference = json!({"uri": text});
            if !found.contains(&reference) {
                found.push(reference);
            }
        }
        _ => {}
    }
}

/// Returns the link to a stored resource.
fn linked(reference: Json) -> Json {
    let uri = reference["uri"].as_str().unwrap_or_default();
    let name = member(&reference, &["filename", "name"]).and_then(Json::as_str);
    let name = name.or_else(|| uri.rsplit('/').find(|part| !part.is_empty()));
    let mut link = json!({"type": "resource_link", "uri": uri, "name": name.unwrap_or(uri)});
    if let Some(media) = media_of(&reference) {
        link["mimeType"] = json!(media);
    }
    if let Some(size) = reference.get("size-bytes").and_then(Json::as_u64) {
        link["size"] = json!(size);
    }
    link
}

/// Returns the result of a prompt: messages that the result of a run describes.
///
/// # Errors
/// When a stored resource cannot be read.
pub(super) async fn prompt_messages(rq: &Request, result: &Json) -> Result<Json, RpcError> {
    let given = match result {
        Json::Array(items) => items.clone(),
        Json::Object(members) if members.contains_key("messages") => {
            let items = members.get("messages").and_then(Json::as_array);
            items.cloned().unwrap_or_default()
        }
        other => vec![other.clone()],
    };
    let mut messages = Vec::new();
    for message in &given {
        let role = message.get("role").and_then(Json::as_str);
        let role = role.map_or("user", |role| role.trim_start_matches(':'));
        let content = member(message, &["content"]).filter(|_| parts_of(message).is_none());
        let content = content.unwrap_or(message);
        let contents = match parts_of(content) {
            Some(parts) => as_contents(rq, &parts).await?,
            None => vec![text(as_text(content))],
        };
        messages.extend(
            contents
                .into_iter()
                .map(|content| json!({"role": role, "content": content})),
        );
    }
    let mut prompt = json!({"messages": messages});
    if let Some(description) = result.get("description").and_then(Json::as_str) {
        prompt["description"] = json!(description);
    }
    Ok(prompt)
}

/// Returns the contents of a resource that the result of a run describes.
///
/// # Errors
/// When a stored resource cannot be read.
pub(super) async fn resource_contents(
    rq: &Request,
    (uri, media): (&str, Option<&str>),
    result: &Json,
) -> Result<Json, RpcError> {
    let parts = parts_of(result).unwrap_or_default();
    let value = parts.first().map_or(result, |(_, value)| value);
    let mut content = Map::new();
    content.insert("uri".to_owned(), json!(uri));
    if let Some((found, data)) = bytes_of(rq, value).await? {
        content.insert("mimeType".to_owned(), json!(media.unwrap_or(&found)));
        content.insert("blob".to_owned(), json!(data));
        return Ok(json!({"contents": [content]}));
    }
    let usual = match value {
        Json::String(_) => "text/plain",
        _ => "application/json",
    };
    content.insert("mimeType".to_owned(), json!(media.unwrap_or(usual)));
    let body = match value {
        Json::String(text) => text.clone(),
        other => compact(other),
    };
    content.insert("text".to_owned(), json!(body));
    Ok(json!({"contents": [content]}))
}
