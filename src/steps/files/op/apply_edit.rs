//! `:apply-edit`: applies a unified diff or replacements to several files, all or nothing.

use flowstone_flow::changeset::OnRace;
use flowstone_flow::step::{Effect, Field, FieldType, Operation, Outcome, StepError};
use flowstone_lang::value::Value;

use super::super::apply::{self, Applied, Edit, Status};
use super::super::edit::Which;
use super::super::error::FilesError;
use super::super::patch;
use super::super::value::map;
use super::super::{Call, blocking};
use crate::fields::Fields;
use crate::json::items;

pub(in super::super) const OPERATION: Operation = Operation {
    name: "apply-edit",
    doc: "Applies a unified diff over several files (:patch), or replacements (:edits), all or nothing.",
    needs: &["changeset"],
    takes: &["edits", "patch"],
    gives: r#"[:map [:files [:vector [:map [:path :string] [:status :keyword] [:added :int] [:removed :int]]]] [:changeset :string]]"#,
    effect: Effect::OwnStore,
    for_agents: true,
};

/// An entry of `:edits`.
pub(in super::super) const EDIT: FieldType = FieldType::Keys(&[
    Field::optional(
        "all?",
        FieldType::Bool,
        "Whether every occurrence is replaced.",
    ),
    Field::required("new", FieldType::Text, "The replacement."),
    Field::optional(
        "old",
        FieldType::Text,
        "The text to replace; without it, the file is new.",
    ),
    Field::required("path", FieldType::Text, "The file."),
]);

enum Wanted {
    Patch(String),
    Edits(Vec<Edit>),
}

pub(in super::super) async fn run(call: Call<'_>) -> Result<Outcome, StepError> {
    let wanted = wanted(call.fields)?;
    let mut draft = call.draft().await?;
    let (draft, applied) = blocking(move |_| {
        let applied = match wanted {
            Wanted::Patch(text) => {
                let patches = patch::parse(&text).map_err(|bad| FilesError::BadPatch {
                    line: bad.line,
                    why: bad.why,
                })?;
                apply::diff(&mut draft, &patches)?
            }
            Wanted::Edits(edits) => apply::edits(&mut draft, &edits)?,
        };
        Ok((draft, applied))
    })
    .await?;
    let files = Value::vector(applied.into_iter().map(file));
    draft.commit(OnRace::Repeat, vec![("files", files)])
}

fn file(applied: Applied) -> Value {
    let mut facts = vec![
        ("path", Value::from(applied.path)),
        ("status", Value::keyword(applied.status.name())),
        ("added", Value::from(applied.added)),
        ("removed", Value::from(applied.removed)),
    ];
    if let (Status::Renamed, Some(from)) = (applied.status, applied.from) {
        facts.push(("from", Value::from(from)));
    }
    map(facts)
}

fn wanted(fields: Fields<'_>) -> Result<Wanted, StepError> {
    match (fields.text("patch")?, fields.get("edits")) {
        (Some(patch), None) => Ok(Wanted::Patch(patch.to_string())),
        (None, Some(given)) => {
            let given = items(given).unwrap_or_default();
            if given.is_empty() {
                return Err(StepError::config(
                    StepError::OPTION_BOUNDS,
                    "`:edits` is empty",
                ));
            }
            let edits = given.iter().map(edit).collect::<Result<_, _>>()?;
            Ok(Wanted::Edits(edits))
        }
        _ => Err(StepError::config(
            StepError::OPTION_FIT,
            "`:apply-edit` needs either `:patch` or `:edits`",
        )
        .hint("`:patch` is a unified diff, `:edits` a vector of {:path :old :new}")),
    }
}

fn edit(given: &Value) -> Result<Edit, StepError> {
    let fields = Fields::nested(":edits", given)?;
    fields.only(&["all?", "new", "old", "path"])?;
    let text = |key| Ok::<_, StepError>(fields.text(key)?.map(str::to_string));
    let needed = |key: &str, text: Option<String>| {
        text.ok_or_else(|| {
            StepError::config(
                StepError::OPTION_KEYS,
                format!("each of `:edits` needs `:{key}`"),
            )
        })
    };
    Ok(Edit {
        path: needed("path", text("path")?)?,
        old: text("old")?.unwrap_or_default(),
        new: needed("new", text("new")?)?,
        which: match fields.bool("all?")? {
            Some(true) => Which::All,
            Some(false) | None => Which::Only,
        },
    })
}
