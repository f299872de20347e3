//! `commit_revision`: a new version of the bound flow, made of the newest one and a delta.

use flowstone_model::registry::Manifest;
use flowstone_model::token::Scope;
use flowstone_project::registry::{
    Added, Base, FlowRegistry, NewCommit, RegistryError, VersionFiles, VersionRef, VersionRow,
    check_version, diff,
};
use serde_json::{Value as Json, json};

use crate::kit::context::KitCall;
use crate::kit::error::KitError;
use crate::kit::schema::{object, text};
use crate::kit::tool::{Answer, Arguments, Bound, InTest, Permission, Tool};
use crate::kit::{delta, revision, unconfirmed};

pub const TOOL: Tool = Tool {
    name: "commit_revision",
    description: "Commits a new revision of the flow that you build. `delta.set` is merged into the newest revision, \
                  `delta.remove` takes parts away; nothing else of the flow changes. The flow is checked first: errors refuse \
                  the commit. `base_revision_id` is the revision that you read; a newer one refuses the commit. The first \
                  commit creates the flow and needs `parameters.files[\"flow.edn\"]`. Committing does not release: runs of \
                  the released version stay as they are.",
    input,
    output,
    bound: &[Bound::Flow, Bound::Workspace],
    wrapper: Some("workflow_revision"),
    read_only: false,
    permission: Permission::Ask,
    scope: Scope::Edit,
    timeout_ms: 30_000,
    timeout_of: None,
    default_on: true,
    in_test: InTest::Refused,
    check: Some(|cx, arguments| Box::pin(check(cx, arguments))),
    call: |cx, arguments| Box::pin(commit(cx, arguments)),
};

fn input() -> Json {
    object(
        json!({
            "message": {"type": "string", "description": "What changed and why; derived if it is left out."},
            "base_revision_id": text("The `id` of the revision that the delta was made for. Needed once the flow exists."),
            "delta": delta::schema(),
        }),
        &["delta"],
    )
}

fn output() -> Json {
    object(
        json!({
            "status": {"enum": ["committed", "no_change"]},
            "revision": revision::schema(),
            "changed": {"type": "array", "items": {"type": "string"}},
            "warnings": {"type": "array", "items": {"type": "object"}},
        }),
        &["status", "revision", "changed", "warnings"],
    )
}

async fn check(cx: &KitCall<'_>, arguments: &Arguments) -> Result<(), KitError> {
    changed(cx, arguments).await.map(drop)
}

/// What a call commits.
struct Change {
    head: Option<VersionRow>,
    before: VersionFiles,
    files: VersionFiles,
    warnings: Vec<Json>,
}

/// Returns the files that a delta makes of the newest revision, and what a check of them says.
async fn changed(cx: &KitCall<'_>, arguments: &Arguments) -> Result<Change, KitError> {
    let slug = cx.flow()?;
    let registry = cx.registry();
    let head = match registry.find(slug).await? {
        Some(row) if row.archived_ms.is_some() => return Err(KitError::flow_archived(slug)),
        Some(row) => Some(
            registry
                .version(slug, &VersionRef::Number(row.head))
                .await?,
        ),
        None => None,
    };
    let base = arguments.get("base_revision_id").and_then(Json::as_str);
    let given = &arguments["delta"];
    let before = match &head {
        Some(head) => registry.files(head).await?,
        None => VersionFiles::new(),
    };
    let fresh = check_base(&registry, slug, (base, head.as_ref()), &before).await;
    fresh?;
    let files = delta::apply(&before, given, "/delta")?;
    if head.is_some() && files == before {
        return Ok(Change {
            head,
            before,
            files,
            warnings: Vec::new(),
        });
    }
    if files.is_empty() {
        return Err(KitError::invalid(
            "/delta/set/parameters/files/flow.edn",
            "the text of the flow",
            "the flow does not exist yet: its first revision needs `flow.edn`",
        ));
    }
    Manifest::of(&files).map_err(RegistryError::Files)?;
    cx.engine.read_registered().await?;
    let warnings = check_version(slug, &files, |session, texts| {
        cx.engine.check_version(session, slug, texts)
    })?;
    Ok(Change {
        warnings: warnings
            .iter()
            .map(|it| revision::finding(slug, it))
            .collect(),
        head,
        before,
        files,
    })
}

async fn commit(cx: &KitCall<'_>, arguments: Arguments) -> Answer {
    let slug = cx.flow()?;
    let registry = cx.registry();
    let Change {
        head,
        before,
        files,
        mut warnings,
    } = changed(cx, &arguments).await?;
    if let Some(head) = head.as_ref().filter(|_| files == before) {
        return Ok(json!({
            "status": "no_change",
            "revision": revision::revision(&registry, head).await?,
            "changed": [],
            "warnings": [],
        }));
    }
    warnings.extend(unconfirmed::note(cx, &before, &files).await?);
    let message = arguments.get("message").and_then(Json::as_str);
    let new = NewCommit {
        base: match &head {
            Some(head) => Base::Version(head.number),
            None => Base::Nothing,
        },
        author: cx.token.attributed_to().to_owned(),
        message: message.unwrap_or_default().to_owned(),
        ..NewCommit::of(slug, files.clone())
    };
    let added = registry.commit(new).await?;
    let status = match &added {
        Added::New(_) => "committed",
        Added::Unchanged(_) => "no_change",
    };
    Ok(json!({
        "status": status,
        "revision": revision::revision(&registry, added.version()).await?,
        "changed": diff(&before, &files, ("a", "b")).paths(),
        "warnings": warnings,
    }))
}

/// Refuses a base that is not the newest revision.
async fn check_base(
    registry: &FlowRegistry,
    slug: &str,
    (base, head): (Option<&str>, Option<&VersionRow>),
    newest: &VersionFiles,
) -> Result<(), KitError> {
    let conflict = |message: String, changed: Vec<String>| {
        let details = json!({
            "base_revision_id": base,
            "current_revision_id": head.map(|head| &head.revision),
            "current_version": head.map(|head| head.number),
            "changed": changed,
        });
        KitError::revision_conflict(message, details)
    };
    match (base, head) {
        (None, None) => Ok(()),
        (Some(base), Some(head)) if base == head.revision => Ok(()),
        (None, Some(head)) => Err(KitError::invalid(
            "/base_revision_id",
            "the id of the newest revision",
            "the flow exists, so `base_revision_id` is needed",
        )
        .with(json!({
            "path": "/base_revision_id",
            "expected": "the id of the newest revision",
            "current_revision_id": head.revision,
            "current_version": head.number,
        }))),
        (Some(base), None) => {
            let message = format!(
                "the flow does not exist yet, so it has no revision `{base}` to start from"
            );
            Err(conflict(message, Vec::new()))
        }
        (Some(base), Some(head)) => {
            let named = VersionRef::Revision(base.to_owned());
            let changed = match registry.version(slug, &named).await {
                Ok(row) => {
                    let files = registry.files(&row).await?;
                    diff(&files, newest, ("a", "b")).paths()
                }
                Err(RegistryError::NoVersion { .. }) => Vec::new(),
                Err(error) => return Err(error.into()),
            };
            let message = format!(
                "revision `{base}` is not the newest: {} by {} is",
                head.revision, head.author
            );
            Err(conflict(message, changed))
        }
    }
}
