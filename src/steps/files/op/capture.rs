//! `:capture`: captures the changes in a folder as changes of a changeset.

use std::path::PathBuf;

use flowstone_flow::changeset::OnRace;
use flowstone_flow::permission::is_environment;
use flowstone_flow::step::{Effect, Operation, Outcome, Progress, StepError};
use flowstone_lang::value::Value;

use super::super::apply::Status;
use super::super::capture::{self, Before, Captured};
use super::super::folder::Record;
use super::super::snapshot::{self, Folder, Limits};
use super::super::value::map;
use super::super::{Call, blocking};
use super::materialize::{folders, listed, records};

pub(in super::super) const OPERATION: Operation = Operation {
    name: "capture",
    doc: "Captures the changes in a folder that :materialize has written, or in any folder of the project.",
    needs: &["changeset", "path"],
    takes: &[],
    gives: r#"[:map [:files [:vector [:map [:path :string] [:status :keyword]]]] [:skipped [:vector [:map [:path :string] [:why :string]]]] [:changeset :string]]"#,
    effect: Effect::OwnStore,
    for_agents: false,
};

pub(in super::super) async fn run(call: Call<'_>) -> Result<Outcome, StepError> {
    let cx = call.cx;
    let shown = call.fields.text("path")?.unwrap_or_default().to_string();
    if shown.contains('\0') {
        return Err(StepError::config(
            StepError::OPTION_BOUNDS,
            "`:path` holds a NUL character",
        ));
    }
    let root = cx.project_root().join(&shown);
    // A temporary folder belongs to the run.
    if capture::check_root(&root, &[&folders(cx)], &shown).is_err() {
        cx.gate().read(&root)?;
        capture::check_root(&root, &[&root], &shown)?;
    }
    let mut draft = call.draft().await?;
    let root = std::fs::canonicalize(&root).unwrap_or(root);
    let records = records(cx);
    let record = Record::load(&records, &root);
    let base = match &record {
        Some(record) => Some(call.files.manifest(cx, &record.base).await?),
        None => None,
    };
    cx.emit(Progress::Status(format!("reading {shown}")));
    let (ignored, hidden) = draft.manifest.rules();
    let environment = draft
        .manifest
        .entries()
        .any(|entry| entry.path.rsplit('/').next().is_some_and(is_environment));
    let folder = Folder {
        environment,
        path: root.clone(),
        shown,
        ignored,
        hidden,
        // Ignore rules above the folder are not those of the source.
        parents: false,
        // A temporary folder is inside the home folder.
        without: match root.starts_with(std::fs::canonicalize(cx.home()).unwrap_or_default()) {
            true => PathBuf::new(),
            false => cx.home().to_path_buf(),
        },
        limits: Limits::default(),
    };
    let cache = cx.files_home().join("trees");
    let (draft, found) = blocking(move |_| {
        let mut record = record;
        if let Some(record) = &mut record {
            record.settle(&draft.manifest);
        }
        // Without a record of the written tree, the folder is compared with the changeset itself.
        let before = match (&record, base) {
            (Some(record), Some(base)) => base.with_over(record.over.clone()),
            _ => draft.manifest.clone(),
        };
        let now = snapshot::snapshot(&folder, &cache, &draft.objects)?;
        let objects = draft.objects.clone();
        let take = |path: &str| snapshot::one(&root, path, &objects);
        let beside = record.as_ref().map_or(&[][..], |record| &record.beside);
        let before = Before {
            tree: &before,
            beside,
        };
        let mut found = capture::capture(&mut draft, before, &now, &root, &take)?;
        if let Some(mut record) = record {
            record.taken = std::mem::take(&mut found.taken);
            record.save(&records, &root)?;
        }
        Ok((draft, found))
    })
    .await?;
    let files = Value::vector(found.captured.into_iter().map(file));
    draft.commit(
        OnRace::Repeat,
        vec![("files", files), ("skipped", listed(found.skipped))],
    )
}

fn file(captured: Captured) -> Value {
    let mut facts = vec![
        ("path", Value::from(captured.path)),
        ("status", Value::keyword(captured.status.name())),
    ];
    if let (Status::Renamed, Some(from)) = (captured.status, captured.from) {
        facts.push(("from", Value::from(from)));
    }
    map(facts)
}
