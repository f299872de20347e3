//! Projects of the API: names under which records are kept apart. One is called `default`, and is made at first use.

use flowstone_engine::Engine;
use serde_json::{Value as Json, json};

use super::body::{Body, Kind, Member};
use super::error::ApiError;
use super::ids;
use super::records::{self, Record, Records};
use crate::rows::Rows;

/// The name of the project of requests that name none.
const DEFAULT: &str = "default";
/// The key of the project that is made at first use.
const KEYS: Rows = Rows("flowstone_api_default_project");

/// The body of a new project.
pub const CREATE: &[Member] = &[Member::required("name", Kind::Name, "The name.")];

/// Adds a project.
///
/// # Errors
/// When the body is not valid.
pub async fn create(engine: &Engine, body: Json) -> Result<Record, ApiError> {
    let body = Body::read(body, CREATE)?;
    Records::Projects.create(engine, body.0).await
}

/// Returns the id of the project that a body names, or of the default one.
///
/// # Errors
/// When no project has the id.
pub async fn of(engine: &Engine, id: Option<&str>) -> Result<String, ApiError> {
    if let Some(id) = id {
        let project = Records::Projects.get(engine, id).await?;
        return Ok(project.id().to_owned());
    }
    let all = Records::Projects.list(engine).await?;
    let known = all.iter().find(|it| it.text("name") == Some(DEFAULT));
    if let Some(known) = known {
        return Ok(known.id().to_owned());
    }
    // Requests at the same time make one.
    let mut key = ids::key(engine);
    if !KEYS.insert(engine, DEFAULT, &json!({"key": key})).await?
        && let Some(row) = KEYS.get(engine, DEFAULT).await?
    {
        key = row["key"].as_str().unwrap_or_default().to_owned();
    }
    let members = [("name".to_owned(), json!(DEFAULT))];
    let made = Records::Projects
        .create_as(engine, &key, members.into_iter().collect())
        .await?;
    Ok(made.id().to_owned())
}

/// Deletes a project that has no records.
///
/// # Errors
/// When no record has that id, or it is in use.
pub async fn delete(engine: &Engine, id: &str) -> Result<(), ApiError> {
    let _references = records::hold_references().await;
    let project = Records::Projects.get(engine, id).await?;
    for kind in [
        Records::Actors,
        Records::Agents,
        Records::Documents,
        Records::Memories,
        Records::Providers,
        Records::Secrets,
        Records::Tools,
    ] {
        let inside = kind.list_in(engine, Some(project.id())).await?;
        if let Some(first) = inside.first() {
            return Err(ApiError::conflict(format!(
                "the project has the {} `{}`: delete it first",
                kind.noun(),
                first.id()
            )));
        }
    }
    Records::Projects.delete(engine, id).await
}
