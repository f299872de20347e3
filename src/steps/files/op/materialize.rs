//! `:materialize`: writes a tree or changeset to a folder on disk.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use flowstone_flow::codec;
use flowstone_flow::permission::is_write_protected;
use flowstone_flow::rooted::Root;
use flowstone_flow::step::{Effect, Operation, Outcome, Progress, StepContext, StepError};
use flowstone_lang::value::Value;

use super::super::folder::{self, Earlier, Record, Records, Rendering, Skipped, Target};
use super::super::manifest::Manifest;
use super::super::objects;
use super::super::value::map;
use super::super::{Call, blocking, place, temporary};

pub(in super::super) const OPERATION: Operation = Operation {
    name: "materialize",
    doc: "Writes a tree or a changeset into a folder of the project (:to), or into a temporary one. Only files of the tree are written and removed.",
    needs: &[],
    takes: &["changeset", "overwrite?", "source", "to"],
    gives: r#"[:map [:path :string] [:files :int] [:skipped [:vector [:map [:path :string] [:why :string]]]] [:written :int] [:removed :int]]"#,
    // If it is performed again, it writes the same files and may replace its own folder.
    effect: Effect::Read,
    for_agents: false,
};

pub(in super::super) async fn run(call: Call<'_>) -> Result<Outcome, StepError> {
    let target = target(call)?;
    let tree = call.tree().await?;
    if !target.is_temporary {
        ask_for_protected(call.cx, &tree.manifest, &target.path)?;
    }
    call.cx
        .emit(Progress::Status(format!("writing {}", target.shown)));
    let earlier = earlier(call, &target).await;
    let shown = target.shown.clone();
    let done = blocking(move |cancelled| {
        folder::render(&Rendering {
            manifest: &tree.manifest,
            objects: &tree.objects,
            base: &tree.id,
            target: &target,
            earlier: earlier.as_ref(),
            cancelled: &cancelled,
        })
    })
    .await?;
    Ok(Outcome::Value(map([
        ("path", Value::from(shown)),
        ("files", Value::from(done.files)),
        ("skipped", listed(done.skipped)),
        ("written", Value::from(done.written)),
        ("removed", Value::from(done.removed)),
    ])))
}

/// Asks for permission for changed files that a permission for the enclosing folder does not cover.
fn ask_for_protected(cx: &StepContext, tree: &Manifest, folder: &Path) -> Result<(), StepError> {
    let is_kept = |path: &str| path.split('/').any(is_write_protected);
    let there = Root::open(folder).ok();
    let content = |path: &str| {
        let mut bytes = Vec::new();
        let mut file = there.as_ref()?.file(path).ok()?;
        file.read_to_end(&mut bytes).ok()?;
        Some(bytes)
    };
    let removed = tree
        .over()
        .into_iter()
        .filter(|(path, now)| now.is_none() && is_kept(path))
        .map(|(path, _)| (path, None));
    let written = tree
        .entries()
        .filter(|entry| is_kept(&entry.path))
        .map(|entry| (entry.path.clone(), Some(entry.hash.clone())));
    for (path, hash) in written.chain(removed) {
        if content(&path).map(|bytes| objects::hash(&bytes)) != hash {
            cx.gate().write(&folder.join(&path))?;
        }
    }
    Ok(())
}

/// Returns the tree that was written to the folder before; without a stored tree, it is not known.
async fn earlier(call: Call<'_>, target: &Target) -> Option<Earlier> {
    let folder = folder::canonical(&target.path).ok()?;
    let record = Record::load(&target.records, &folder)?;
    let base = call.files.manifest(call.cx, &record.base).await.ok();
    Some(Earlier {
        tree: base.map(|base| base.with_over(record.over.clone())),
        record,
    })
}

/// Returns the files that were left out, as a value.
pub(super) fn listed(skipped: Vec<Skipped>) -> Value {
    Value::vector(
        skipped
            .into_iter()
            .map(|it| map([("path", Value::from(it.path)), ("why", Value::from(it.why))])),
    )
}

fn target(call: Call<'_>) -> Result<Target, StepError> {
    let cx = call.cx;
    let place = format!("{}\0{}", cx.run_id(), cx.path());
    let to = call.fields.text("to")?;
    let path = match to {
        Some(to) => {
            let place = cx.gate().place(cx.project_root(), to)?;
            place::folder(&place.root, cx.home(), &place.path)?
        }
        None => {
            let name = codec::digest_bytes(cx.path().to_string().as_bytes());
            folders(cx).join(cx.run_id().as_str()).join(&name[..12])
        }
    };
    Ok(Target {
        shown: shown(cx, &path),
        path,
        by: place,
        is_temporary: to.is_none(),
        without: match to {
            Some(_) => std::fs::canonicalize(cx.home()).unwrap_or_else(|_| cx.home().to_path_buf()),
            None => PathBuf::new(),
        },
        overwrite: call.fields.bool("overwrite?")?.unwrap_or(false),
        records: records(cx),
    })
}

/// Returns the folder that contains the temporary folders, one for each run.
pub(super) fn folders(cx: &StepContext) -> PathBuf {
    temporary::folders(cx.files_home())
}

/// Returns the records of which tree was written to which folder.
pub(super) fn records(cx: &StepContext) -> Records {
    temporary::records(cx.files_home(), cx.project_root())
}

/// Returns a path for use in a flow: relative to the project, if it is inside.
fn shown(cx: &StepContext, path: &Path) -> String {
    let inside = path.strip_prefix(cx.project_root()).unwrap_or(path);
    match inside.as_os_str().is_empty() {
        true => ".".to_owned(),
        false => inside.display().to_string().replace('\\', "/"),
    }
}
