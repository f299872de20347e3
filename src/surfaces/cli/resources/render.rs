//! Output of a resource as lines.

use serde_json::Value as Json;

use crate::cli::rows::{list, maybe, text};
use crate::cli::runs::size;

/// Returns the metadata of a resource, in the form of the API, for a person: one item per line.
pub fn facts(row: &Json) -> String {
    let search = &row["searchIndex"];
    let tags = search.is_object().then(|| {
        let tags: Vec<&str> = list(search, "tags").filter_map(Json::as_str).collect();
        tags.join(", ")
    });
    let facts = [
        ("name", maybe(row, "name")),
        ("type", maybe(row, "type")),
        ("content", maybe(row, "contentType")),
        ("size", row["sizeBytes"].as_u64().map(size)),
        ("sha256", maybe(row, "sha256")),
        ("tier", maybe(row, "tier")),
        ("made", maybe(row, "createdAt")),
        ("expires", maybe(row, "expiresAt")),
        ("run", maybe(row, "run")),
        ("step", maybe(row, "step")),
        ("bucket", maybe(row, "bucket")),
        ("folder", maybe(row, "folder")),
        ("label", maybe(search, "sourceLabel")),
        ("tags", tags),
        (
            "gone",
            maybe(row, "goneAt").map(|at| format!("{} {at}", text(row, "state"))),
        ),
    ];
    let lines = facts
        .into_iter()
        .filter_map(|(name, fact)| Some(format!("  {name:<9} {}\n", fact?)));
    format!("{}\n{}", text(row, "uri"), lines.collect::<String>())
}
