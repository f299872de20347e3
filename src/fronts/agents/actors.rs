//! Actors: the people or programs that sessions are with.

use flowstone_engine::Engine;
use serde_json::{Value as Json, json};

use super::body::{Body, Kind, Member};
use super::error::ApiError;
use super::projects;
use super::records::{Record, Records};

/// The body of a new actor.
pub const CREATE: &[Member] = &[
    Member::optional("auto_create_memory", Kind::Flag, "Not built."),
    Member::optional("external_id", Kind::Text, "The id of the actor elsewhere."),
    Member::optional("instructions", Kind::Text, "Not built."),
    Member::optional("memory_id", Kind::Text, "Not built."),
    Member::required("name", Kind::Text, "The name."),
    Member::optional(
        "project_id",
        Kind::Text,
        "The project; `default` if it is left out.",
    ),
    Member::optional("tags", Kind::Object, "Tags."),
];

/// The body of changes of an actor.
pub const UPDATE: &[Member] = &[
    Member::optional("instructions", Kind::Text, "Not built."),
    Member::optional("memory_id", Kind::Text, "Not built."),
    Member::optional("name", Kind::Text, "The name."),
    Member::optional("tags", Kind::Object, "Tags."),
];

const NOT_BUILT: &[&str] = &["auto_create_memory", "instructions", "memory_id"];
const SHOWN: &[&str] = &["external_id", "instructions", "memory_id"];

/// Adds an actor.
///
/// # Errors
/// When the body is not valid.
pub async fn create(engine: &Engine, body: Json) -> Result<Json, ApiError> {
    let mut body = Body::read(body, CREATE)?;
    NOT_BUILT.iter().try_for_each(|name| body.refuse(name))?;
    let project = projects::of(engine, body.text("project_id")).await?;
    body.0.insert("project_id".to_owned(), json!(project));
    body.0.entry("tags").or_insert(json!({}));
    Ok(shown(&Records::Actors.create(engine, body.0).await?))
}

/// Changes an actor.
///
/// # Errors
/// When the body is not valid, or no record has that id.
pub async fn update(engine: &Engine, id: &str, body: Json) -> Result<Json, ApiError> {
    let body = Body::read_some(body, UPDATE)?;
    NOT_BUILT.iter().try_for_each(|name| body.refuse(name))?;
    let mut record = Records::Actors.get(engine, id).await?;
    record.members.extend(body.0);
    Ok(shown(&Records::Actors.update(engine, record).await?))
}

/// Returns an actor as answers show it.
pub fn shown(record: &Record) -> Json {
    record.to_json(SHOWN)
}
