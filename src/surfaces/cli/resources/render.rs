//! Output of a resource as lines.

use flowstone_engine::ports::ResourceRow;

use crate::json::resource_state as state;

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
