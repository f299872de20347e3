//! Revisions of flows as the kit shows them. A revision is a version of the registry.

use flowstone_engine::feed_event::instant;
use flowstone_model::diagnostic::Severity;
use flowstone_model::registry::MAIN_FILE;
use flowstone_project::flow_files::TextFinding;
use flowstone_project::registry::{FlowRegistry, RegistryError, VersionRef, VersionRow};
use serde_json::{Value as Json, json};

/// Returns a revision: `{id, version, parent, content, author, message, created_at, released}`.
///
/// # Errors
/// When the store cannot be read.
pub async fn revision(registry: &FlowRegistry, row: &VersionRow) -> Result<Json, RegistryError> {
    let slug = &row.flow.slug;
    let parent = match row.parent {
        Some(number) => {
            let parent = registry.version(slug, &VersionRef::Number(number)).await?;
            Some(parent.revision)
        }
        None => None,
    };
    Ok(json!({
        "id": row.revision,
        "version": row.number,
        "parent": parent,
        "content": row.content,
        "author": row.author,
        "message": row.message,
        "created_at": instant(row.created_ms),
        "released": is_released(registry, row).await?,
    }))
}

/// Tells whether a version is live, or was.
///
/// # Errors
/// When the store cannot be read.
pub async fn is_released(registry: &FlowRegistry, row: &VersionRow) -> Result<bool, RegistryError> {
    let slug = &row.flow.slug;
    let releases = registry.releases(slug, usize::MAX >> 1).await?;
    Ok(releases.iter().any(|release| release.version == row.number))
}

/// Returns the JSON Schema of a revision.
pub fn schema() -> Json {
    json!({
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "version": {"type": "integer"},
            "parent": {"type": ["string", "null"]},
            "content": {"type": "string"},
            "author": {"type": "string"},
            "message": {"type": "string"},
            "created_at": {"type": "string"},
            "released": {"type": "boolean"},
        },
        "required": ["id", "version", "parent", "content", "author", "message", "created_at", "released"],
        "additionalProperties": false,
    })
}

/// Returns a problem or warning of a check of a flow, as `flowstone check --json` prints it. The text of the flow has the name
/// that it has in a delta.
pub fn finding(slug: &str, finding: &TextFinding) -> Json {
    let file = finding.file.as_deref();
    let is_main = file.and_then(|file| file.strip_suffix(".edn")) == Some(slug);
    let place = |number: usize| (finding.line > 0).then_some(number);
    json!({
        "severity": match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Portability => "portability",
        },
        "code": finding.code,
        "message": finding.message,
        "file": match is_main {
            true => Some(MAIN_FILE),
            false => file,
        },
        "line": place(finding.line),
        "column": place(finding.column),
        "hints": finding.hints,
    })
}
