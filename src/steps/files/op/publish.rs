//! `:publish`: commits a changeset to a branch of the repository of its source.

use std::time::Duration;

use flowstone_flow::flow::name_of;
use flowstone_flow::step::{Effect, Operation, Outcome, Progress, StepContext, StepError};
use flowstone_lang::value::Value;

use super::super::manifest::{Manifest, Origin};
use super::super::publish::{Change, From, Person, Publication, publish};
use super::super::source;
use super::super::value::map;
use super::super::{Call, Limit, blocking, git};

pub(in super::super) const OPERATION: Operation = Operation {
    name: "publish",
    doc: "Commits a changeset on a branch and pushes it to the repository of its source.",
    needs: &["changeset", "branch", "message"],
    takes: &["author", "base", "connection"],
    gives: r#"[:map [:branch :string] [:commit :string] [:base :string] [:url :string]]"#,
    effect: Effect::External,
    for_agents: false,
};

/// Maximum time of one git command; `:timeout` limits the whole step.
const PATIENCE: Duration = Duration::from_secs(300);

pub(in super::super) async fn run(call: Call<'_>) -> Result<Outcome, StepError> {
    let (cx, fields) = (call.cx, call.fields);
    let id = source::changeset(fields)?;
    let (tree, overlay) = call.files.under_changeset(cx, &id).await?;
    let message = fields.text("message")?.unwrap_or_default();
    if message.trim().is_empty() || message.contains('\0') {
        return Err(StepError::config(
            StepError::OPTION_BOUNDS,
            "`:message` must describe the commit, without NUL characters",
        ));
    }
    let publication = Publication {
        from: from(call, &tree.manifest)?,
        branch: fields.text("branch")?.unwrap_or_default().to_string(),
        base: fields.name("base")?.map(|base| base.to_string()),
        message: message.to_string(),
        author: author(call)?,
        key: format!("{} {id} {}", cx.idempotency_key(), overlay.revision),
        started_ms: started(cx),
        changes: changes(&tree.manifest),
    };
    cx.emit(Progress::Status(format!(
        "publishing {}",
        publication.branch
    )));
    let home = cx.home().join("trees");
    let connection = connection(call, &tree.manifest).as_ref().and_then(name_of);
    let guard = source::guard(cx, connection.as_deref())?;
    let published = blocking(move |cancelled| {
        let limit = Limit {
            timeout: PATIENCE,
            cancelled,
            guard,
        };
        publish(&publication, &home, &tree.objects, &limit)
    })
    .await?;
    tracing::debug!(step = %cx.path(), commit = %published.commit, url = %published.url, "changeset published");
    Ok(Outcome::Value(map([
        ("branch", Value::from(published.branch)),
        ("commit", Value::from(published.commit)),
        ("base", Value::from(published.base)),
        ("url", Value::from(published.url)),
    ])))
}

fn changes(manifest: &Manifest) -> Vec<Change> {
    manifest
        .changed()
        .map(|changed| Change {
            path: changed.path.to_string(),
            before: changed.before.cloned(),
            now: changed.now.cloned(),
        })
        .collect()
}

fn from(call: Call<'_>, manifest: &Manifest) -> Result<From, StepError> {
    let cx = call.cx;
    match manifest.origin() {
        Some(Origin::Dir { path, .. }) => {
            if call.fields.has("connection") {
                return Err(StepError::config(
                    StepError::OPTION_FIT,
                    "`:connection` does not apply to a source of `:type :dir`",
                )
                .hint("the commit goes into the repository of that folder, on this machine"));
            }
            let folder = cx.project_root().join(path);
            cx.gate().write(&folder)?;
            cx.gate().program("git")?;
            Ok(From::Folder(folder))
        }
        Some(Origin::Git { repo, commit, .. }) => {
            source::reach(cx, repo)?;
            if let Some(folder) = git::local_folder(cx.project_root(), repo) {
                cx.gate().write(&folder)?;
            }
            cx.gate().program("git")?;
            let header = self::connection(call, manifest)
                .as_ref()
                .map(|connection| source::authorization(cx, connection, repo))
                .transpose()?;
            Ok(From::Git {
                repo: repo.clone(),
                commit: commit.clone(),
                root: cx.project_root().to_path_buf(),
                header,
            })
        }
        None => Err(StepError::new(
            "E0790",
            "bad-source",
            "the repository of the source is not known",
        )
        .hint("resolve the source again, and make the changes on the new tree")),
    }
}

/// Returns the name of the connection: that of the step, or else the one that the source was read with.
fn connection(call: Call<'_>, manifest: &Manifest) -> Option<Value> {
    let kept = match manifest.origin() {
        Some(Origin::Git { connection, .. }) => connection.as_deref().map(Value::from),
        Some(Origin::Dir { .. }) | None => None,
    };
    call.fields.get("connection").cloned().or(kept)
}

/// Reads `:author`: `"Name <email>"`, or a map.
fn author(call: Call<'_>) -> Result<Option<Person>, StepError> {
    let bad = || {
        StepError::config(
            StepError::OPTION_KIND,
            "`:author` takes `\"Name <email>\"` or `{:name \"...\" :email \"...\"}`",
        )
    };
    let Some(given) = call.fields.get("author") else {
        return Ok(None);
    };
    let (name, email) = match given.as_str() {
        Some(text) => {
            let (name, rest) = text.split_once('<').ok_or_else(bad)?;
            (name, rest.trim().strip_suffix('>').ok_or_else(bad)?)
        }
        None => {
            let text = |key: &str| given.get(key).and_then(Value::as_str).ok_or_else(bad);
            (text("name")?, text("email")?)
        }
    };
    let (name, email) = (name.trim(), email.trim());
    let is_odd = |text: &str| {
        text.is_empty() || text.contains(|it: char| it.is_control() || it == '<' || it == '>')
    };
    if is_odd(name) || is_odd(email) {
        return Err(bad());
    }
    Ok(Some(Person {
        name: name.to_string(),
        email: email.to_string(),
    }))
}

/// Returns the start time of the run from its id: the same for every attempt. Ids of other forms contain no time.
fn started(cx: &StepContext) -> Option<i64> {
    const DAY: i64 = 86_400_000;
    let started = cx.run_id().started_ms()?;
    let is_likely = started > 365 * DAY * 40 && started <= cx.now_ms() + DAY;
    is_likely.then_some(started)
}
