//! Output of a resource, as JSON or as lines.

use flowstone_engine::ports::{Gone, ResourceRow};
use serde_json::{Value, json};

use crate::json::instant;

/// Returns a resource as JSON. The names of the fields are stable.
pub(super) fn in_json(row: &ResourceRow) -> Value {
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
        "state": state(row),
        "goneAt": row.gone.map(|(_, at_ms)| instant(at_ms)),
    })
}

/// Describes whether the resource exists.
pub(super) fn state(row: &ResourceRow) -> &'static str {
    match row.gone {
        None => "there",
        Some((Gone::Deleted, _)) => "deleted",
        Some((Gone::Expired, _)) => "expired",
    }
}

/// Describes the size of the resource.
pub(super) fn size(row: &ResourceRow) -> String {
    row.size
        .map_or_else(|| "-".to_owned(), crate::cli::runs::size)
}

/// Returns the metadata for a person, one item per line.
pub(super) fn facts(row: &ResourceRow) -> String {
    let words = flowstone_engine::codec::instant;
    let search = row.search.as_ref();
    let facts = [
        ("name", row.name.clone()),
        ("type", Some(row.kind.name().to_owned())),
        ("content", row.content_type.clone()),
        ("size", row.size.map(crate::cli::runs::size)),
        ("sha256", row.hash.as_ref().map(|hash| hash.0.clone())),
        ("tier", Some(row.tier.name().to_owned())),
        ("made", Some(words(row.created_ms))),
        ("expires", row.expires_ms.map(words)),
        ("run", row.run.clone()),
        ("step", row.path.clone()),
        ("bucket", row.bucket.clone()),
        ("folder", row.folder.clone()),
        ("label", search.and_then(|it| it.source_label.clone())),
        ("tags", search.map(|it| it.tags.join(", "))),
        (
            "gone",
            row.gone
                .map(|(_, at_ms)| format!("{} {}", state(row), words(at_ms))),
        ),
    ];
    let lines = facts
        .into_iter()
        .filter_map(|(name, fact)| Some(format!("  {name:<9} {}\n", fact?)));
    format!("{}\n{}", row.uri, lines.collect::<String>())
}
