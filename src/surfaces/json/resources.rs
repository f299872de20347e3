//! Resources, and references to them.

use flowstone_engine::ports::{Gone, ResourceRow};
use serde_json::{Value, json};

use super::values::instant;

/// Returns a resource as JSON. The names of the fields are stable.
pub fn resource_json(row: &ResourceRow) -> Value {
    let search = row.search.as_ref().map(|entry| {
        json!({
            "text": entry.text,
            "tags": entry.tags,
            "sourceLabel": entry.source_label,
        })
    });
    json!({
        "uri": row.uri,
        "type": row.kind.name(),
        "name": row.name,
        "contentType": row.content_type,
        "sizeBytes": row.size,
        "sha256": row.hash.as_ref().map(|hash| &hash.0),
        "tier": row.tier.name(),
        "createdAt": instant(row.created_ms),
        "expiresAt": row.expires_ms.map(instant),
        "run": row.run,
        "step": row.path,
        "bucket": row.bucket,
        "folder": row.folder,
        "searchIndex": search,
        "state": resource_state(row),
        "goneAt": row.gone.map(|(_, at_ms)| instant(at_ms)),
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

/// Returns the reference to a file as JSON.
pub fn reference_json(row: &ResourceRow) -> Value {
    json!({
        "type": "resource-ref",
        "uri": row.uri,
        "contentType": row.content_type,
        "filename": row.name,
        "sizeBytes": row.size,
    })
}
