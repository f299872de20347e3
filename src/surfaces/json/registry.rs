//! Flows of the registry, their versions and releases.

use flowstone_engine::diagnostic::Severity;
use flowstone_project::flow_files::TextFinding;
use flowstone_project::registry::{
    Added, FlowRegistry, FlowRow, Moved, RegistryError, ReleaseKind, ReleaseRow, VersionDiff,
    VersionFiles, VersionRef, VersionRow,
};
use serde::Serialize;
use serde_json::{Value as Json, json};
use utoipa::ToSchema;

use super::values::{instant, object};

/// A flow of the registry.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegisteredFlow {
    slug: String,
    /// The number of the newest version.
    draft: i64,
    /// The number of the released version.
    live: Option<i64>,
    /// Since when the flow does not start.
    archived_at: Option<Json>,
    created_at: Json,
    /// When a version was added or a pointer moved.
    updated_at: Json,
}

/// Returns a flow of the registry as JSON. The names of the fields are stable.
pub fn registered_json(row: &FlowRow) -> Json {
    object(&RegisteredFlow {
        slug: row.name.slug.clone(),
        draft: row.head,
        live: row.live,
        archived_at: row.archived_ms.map(instant),
        created_at: instant(row.created_ms),
        updated_at: instant(row.updated_ms),
    })
}

/// A version of a flow in the registry. It never changes, but for its targets.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryVersion {
    slug: String,
    /// Its number, counted from 1.
    version: i64,
    /// Its id: `rev_` and 32 digits.
    revision: String,
    /// The digest of its files.
    content: String,
    /// The number of the version that it was made from.
    parent: Option<i64>,
    author: String,
    message: String,
    created_at: Json,
    /// The pointers to it: `draft`, `live`.
    targets: Vec<&'static str>,
}

/// Returns a version as JSON. The names of the fields are stable.
pub fn registry_version_json(version: &VersionRow, flow: &FlowRow) -> Json {
    let draft = (flow.head == version.number).then_some("draft");
    let live = (flow.live == Some(version.number)).then_some("live");
    object(&RegistryVersion {
        slug: version.flow.slug.clone(),
        version: version.number,
        revision: version.revision.clone(),
        content: version.content.clone(),
        parent: version.parent,
        author: version.author.clone(),
        message: version.message.clone(),
        created_at: instant(version.created_ms),
        targets: draft.into_iter().chain(live).collect(),
    })
}

/// Returns the texts of a version by their paths.
fn version_files_json(files: &VersionFiles) -> Json {
    let files = files.iter();
    let texts = files.map(|(path, bytes)| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        (path.clone(), Json::String(text))
    });
    Json::Object(texts.collect())
}

/// A line of the log of releases.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlowRelease {
    /// Counted from 1 for each flow.
    number: i64,
    /// `release` or `rollback`.
    kind: &'static str,
    /// The version that is live since then.
    version: i64,
    /// The version that was live before.
    before: Option<i64>,
    author: String,
    message: String,
    at: Json,
}

/// Returns a line of the log of releases as JSON. The names of the fields are stable.
pub fn release_json(row: &ReleaseRow) -> Json {
    object(&FlowRelease {
        number: row.seq,
        kind: row.kind.name(),
        version: row.version,
        before: row.before,
        author: row.author.clone(),
        message: row.note.clone(),
        at: instant(row.at_ms),
    })
}

/// The outcome of a push.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PushedFlow {
    /// `committed`, or `no_change` if the newest version has the same files.
    status: &'static str,
    /// The version with the files.
    #[schema(value_type = RegistryVersion)]
    version: Json,
    /// What `check` warns about.
    #[schema(value_type = Vec<TextProblem>)]
    warnings: Vec<Json>,
}

/// Returns the outcome of a push as JSON. The names of the fields are stable.
pub fn pushed_json(added: &Added, flow: &FlowRow, warnings: &[TextFinding]) -> Json {
    object(&PushedFlow {
        status: match added {
            Added::New(_) => "committed",
            Added::Unchanged(_) => "no_change",
        },
        version: registry_version_json(added.version(), flow),
        warnings: warnings.iter().map(text_finding_json).collect(),
    })
}

/// The outcome of a release or a rollback.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReleasedFlow {
    slug: String,
    /// The version that is live.
    live: i64,
    /// `released`, `rolled_back`, or `no_change` if the version was live already.
    status: &'static str,
    /// The line in the log; null if nothing was changed.
    #[schema(value_type = Option<FlowRelease>)]
    release: Option<Json>,
}

/// Returns the outcome of a release or a rollback as JSON. The names of the fields are stable.
pub fn moved_json(slug: &str, moved: &Moved) -> Json {
    let (live, status, release) = match moved {
        Moved::Already(version) => (*version, "no_change", None),
        Moved::Done(row) => {
            let status = match row.kind {
                ReleaseKind::Release => "released",
                ReleaseKind::Rollback => "rolled_back",
            };
            (row.version, status, Some(release_json(row)))
        }
    };
    object(&ReleasedFlow {
        slug: slug.to_owned(),
        live,
        status,
        release,
    })
}

/// A problem or warning in the text of a flow.
#[derive(Debug, Serialize, ToSchema)]
pub struct TextProblem {
    /// `error` or `warning`.
    severity: &'static str,
    code: &'static str,
    message: String,
    file: Option<String>,
    /// Counted from 1; null where there is no place.
    line: Option<usize>,
    column: Option<usize>,
    hints: Vec<String>,
}

/// Returns a finding as JSON. The names of the fields are stable.
pub fn text_finding_json(finding: &TextFinding) -> Json {
    object(&TextProblem {
        severity: match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Portability => "portability",
        },
        code: finding.code,
        message: finding.message.clone(),
        file: finding.file.clone(),
        line: (finding.line > 0).then_some(finding.line),
        column: (finding.line > 0).then_some(finding.column),
        hints: finding.hints.clone(),
    })
}

/// The difference between two versions of a flow.
#[derive(Debug, Serialize, ToSchema)]
pub struct VersionDifference {
    slug: String,
    /// The number of the earlier version.
    from: i64,
    /// The number of the later version.
    to: i64,
    files: Vec<FileDifference>,
    /// The forms of the main file that differ.
    forms: Vec<FormDifference>,
}

/// A file that differs between two versions.
#[derive(Debug, Serialize, ToSchema)]
pub struct FileDifference {
    path: String,
    /// `added`, `changed` or `removed`.
    change: &'static str,
    /// Number of added lines.
    added: usize,
    /// Number of removed lines.
    removed: usize,
    /// In the format of `diff -u`.
    diff: String,
}

/// A form that differs between two versions, such as `:functions :total` or `step :summarize`.
#[derive(Debug, Serialize, ToSchema)]
pub struct FormDifference {
    form: String,
    /// `added`, `changed` or `removed`.
    change: &'static str,
}

/// Returns the difference between two versions as JSON. The names of the fields are stable.
pub fn version_diff_json((old, new): (&VersionRow, &VersionRow), diff: &VersionDiff) -> Json {
    let files = diff.files.iter().map(|file| FileDifference {
        path: file.path.clone(),
        change: file.change.name(),
        added: file.added,
        removed: file.removed,
        diff: file.diff.clone(),
    });
    let forms = diff.forms.iter().map(|form| FormDifference {
        form: form.form.clone(),
        change: form.change.name(),
    });
    object(&VersionDifference {
        slug: new.flow.slug.clone(),
        from: old.number,
        to: new.number,
        files: files.collect(),
        forms: forms.collect(),
    })
}

/// Returns what an error of the registry tells beside its message; `None` if that is nothing.
pub fn registry_details(error: &RegistryError) -> Option<Json> {
    match error {
        RegistryError::Conflict(conflict) => {
            let revision = |row: &Option<VersionRow>| row.as_ref().map(|row| row.revision.clone());
            Some(json!({
                "base_revision_id": revision(&conflict.base),
                "base_version": conflict.base_number,
                "current_revision_id": revision(&conflict.head),
                "current_version": conflict.head.as_ref().map(|head| head.number),
                "changed": conflict.changed,
                "diff": conflict.diff,
            }))
        }
        RegistryError::CheckFailed { problems, .. } => {
            let problems = problems.iter().map(text_finding_json);
            Some(json!({"problems": problems.collect::<Vec<_>>()}))
        }
        _ => None,
    }
}

/// Number of releases that are shown with a flow.
const RELEASES: usize = 20;

/// Returns a flow of the registry with the versions that its pointers name, and its last releases.
///
/// # Errors
/// When it was never pushed, or the store cannot be read.
pub async fn registry_flow_json(
    registry: &FlowRegistry,
    slug: &str,
) -> Result<Json, RegistryError> {
    let flow = registry.pointers(slug).await?;
    let releases = registry.releases(slug, RELEASES).await?;
    let releases: Vec<Json> = releases.iter().map(release_json).collect();
    let live = flow.live.as_ref();
    Ok(json!({
        "flow": registered_json(&flow.row),
        "draft": registry_version_json(&flow.head, &flow.row),
        "live": live.map(|live| registry_version_json(live, &flow.row)),
        "releases": releases,
    }))
}

/// Returns a version with the texts of its files.
///
/// # Errors
/// When there is no such version, or the store cannot be read.
pub async fn version_with_files_json(
    registry: &FlowRegistry,
    slug: &str,
    wanted: &VersionRef,
) -> Result<Json, RegistryError> {
    let flow = registry.flow(slug).await?;
    let version = registry.version(slug, wanted).await?;
    let files = registry.files(&version).await?;
    Ok(json!({
        "version": registry_version_json(&version, &flow),
        "files": version_files_json(&files),
    }))
}
