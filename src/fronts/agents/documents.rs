//! Documents: stored texts that messages can refer to.

use flowstone_engine::Engine;
use serde_json::{Value as Json, json};

use super::body::{Body, Kind, Member};
use super::error::ApiError;
use super::generations::Who;
use super::records::{self, Record, Records};
use super::{admission, projects, reach};

/// The body of a new document.
pub const CREATE: &[Member] = &[
    Member::required("content", Kind::Text, "The text."),
    Member::optional("filename", Kind::Name, "The name of its file."),
    Member::optional("metadata", Kind::Object, "Further facts."),
    Member::optional(
        "path",
        Kind::Name,
        "Its path, such as `/reports/q1.txt`; `/` and the file name if it is left out.",
    ),
    Member::optional(
        "project_id",
        Kind::Text,
        "The project; `default` if it is left out.",
    ),
    Member::optional("tags", Kind::Tags, "Tags."),
    Member::optional("title", Kind::Text, "The title."),
];

/// The body of changes of a document.
pub const UPDATE: &[Member] = &[
    Member::kept("content", Kind::Text, "The text."),
    Member::optional("metadata", Kind::Object, "Further facts."),
    Member::optional("path", Kind::Name, "Its path; null removes it."),
    Member::optional("tags", Kind::Tags, "Tags."),
    Member::optional("title", Kind::Text, "The title."),
];

const SHOWN: &[&str] = &["filename", "metadata", "path", "title"];

/// Adds a document.
///
/// # Errors
/// When the body is not valid.
pub async fn create(engine: &Engine, body: Json) -> Result<Json, ApiError> {
    let _references = records::hold_references().await;
    let mut body = Body::read(body, CREATE)?;
    let project = projects::of(engine, body.text("project_id")).await?;
    body.0.insert("project_id".to_owned(), json!(project));
    if let Some(path) = admission::path_of(&body.0) {
        body.0.insert("path".to_owned(), json!(path));
    }
    body.0.entry("tags").or_insert(json!({}));
    Ok(shown(&Records::Documents.create(engine, body.0).await?))
}

/// Changes a document. Generations and messages that have its text keep it.
///
/// # Errors
/// When the body is not valid, or no record has that id.
pub async fn update(engine: &Engine, id: &str, body: Json) -> Result<Json, ApiError> {
    let body = Body::read_changes(body, UPDATE, CREATE)?;
    let changing = async |mut record: Record| {
        body.clone().change(&mut record.members);
        record.members.entry("tags").or_insert(json!({}));
        Ok(record)
    };
    Ok(shown(
        &Records::Documents.change(engine, id, changing).await?,
    ))
}

/// Returns a document as answers show it.
pub fn shown(record: &Record) -> Json {
    let mut shown = record.to_json(SHOWN);
    shown["size"] = json!(record.text("content").map_or(0, str::len));
    shown
}

/// Returns a document as lists show it: without its text.
pub fn listed(record: &Record) -> Json {
    let mut shown = shown(record);
    if let Some(members) = shown.as_object_mut() {
        members.remove("content");
    }
    shown
}

/// Returns the text of a document for a message.
///
/// # Errors
/// When the project has no document with that id, or the caller may not read it.
pub async fn text(engine: &Engine, who: &Who, of: (&str, &str)) -> Result<String, ApiError> {
    let record = reach::document(engine, who, of).await?;
    Ok(record.text("content").unwrap_or_default().to_owned())
}
