//! Resources, and references to them.

use flowstone_engine::ports::{Gone, ResourceRow};
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::values::{instant, object};

/// A file or another thing with a `res://` name.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    uri: String,
    r#type: &'static str,
    name: Option<String>,
    content_type: Option<String>,
    size_bytes: Option<u64>,
    sha256: Option<String>,
    tier: &'static str,
    created_at: Json,
    expires_at: Option<Json>,
    /// The run and the step that made it.
    run: Option<String>,
    step: Option<String>,
    bucket: Option<String>,
    folder: Option<String>,
    search_index: Option<SearchIndex>,
    /// `there`, `deleted` or `expired`.
    state: &'static str,
    gone_at: Option<Json>,
}

/// What a search finds a resource by.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchIndex {
    text: Option<String>,
    tags: Vec<String>,
    source_label: Option<String>,
}

/// Returns a resource as JSON. The names of the fields are stable.
pub fn resource_json(row: &ResourceRow) -> Json {
    let search = row.search.as_ref().map(|entry| SearchIndex {
        text: entry.text.clone(),
        tags: entry.tags.clone(),
        source_label: entry.source_label.clone(),
    });
    object(&Resource {
        uri: row.uri.clone(),
        r#type: row.kind.name(),
        name: row.name.clone(),
        content_type: row.content_type.clone(),
        size_bytes: row.size,
        sha256: row.hash.as_ref().map(|hash| hash.0.clone()),
        tier: row.tier.name(),
        created_at: instant(row.created_ms),
        expires_at: row.expires_ms.map(instant),
        run: row.run.clone(),
        step: row.path.clone(),
        bucket: row.bucket.clone(),
        folder: row.folder.clone(),
        search_index: search,
        state: resource_state(row),
        gone_at: row.gone.map(|(_, at_ms)| instant(at_ms)),
    })
}

/// Describes whether the resource exists.
pub fn resource_state(row: &ResourceRow) -> &'static str {
    match row.gone {
        None => "there",
        Some((Gone::Deleted, _)) => "deleted",
        Some((Gone::Expired, _)) => "expired",
    }
}

/// A reference to a file, which can be part of a run's input.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reference {
    /// `resource-ref`.
    r#type: &'static str,
    uri: String,
    content_type: Option<String>,
    filename: Option<String>,
    size_bytes: Option<u64>,
}

/// Returns the reference to a file as JSON.
pub fn reference_json(row: &ResourceRow) -> Json {
    object(&Reference {
        r#type: "resource-ref",
        uri: row.uri.clone(),
        content_type: row.content_type.clone(),
        filename: row.name.clone(),
        size_bytes: row.size,
    })
}
