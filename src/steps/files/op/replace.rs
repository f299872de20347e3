//! `:replace`: replaces a text in a file.

use flowstone_flow::changeset::OnRace;
use flowstone_flow::step::{Effect, Operation, Outcome, StepError};
use flowstone_lang::value::Value;

use super::super::edit::{self, Which};
use super::super::value::int;
use super::super::{Call, blocking};

pub(in super::super) const OPERATION: Operation = Operation {
    name: "replace",
    doc: "Replaces a text in a file: the only occurrence, or all occurrences.",
    needs: &["changeset", "path", "old", "new"],
    takes: &["all?"],
    gives: r#"[:map [:path :string] [:size :int] [:replaced :int] [:changeset :string]]"#,
    effect: Effect::OwnStore,
    for_agents: true,
};

pub(in super::super) async fn run(call: Call<'_>) -> Result<Outcome, StepError> {
    let fields = call.fields;
    let text = |key| Ok::<_, StepError>(fields.text(key)?.unwrap_or_default().to_string());
    let (path, old, new) = (text("path")?, text("old")?, text("new")?);
    if old.is_empty() {
        return Err(
            StepError::config(StepError::OPTION_BOUNDS, "`:old` is empty")
                .hint("give the text to replace; `:op :replace-lines` inserts lines"),
        );
    }
    let which = match fields.bool("all?")? {
        Some(true) => Which::All,
        Some(false) | None => Which::Only,
    };
    let mut draft = call.draft().await?;
    let (draft, path, size, replaced) = blocking(move |_| {
        let (path, text) = draft.text(&path)?;
        let (text, replaced) = edit::replace(&path, &text, (&old, &new), which)?;
        draft.write(&path, text.as_bytes(), None)?;
        Ok((draft, path, text.len() as u64, replaced))
    })
    .await?;
    draft.commit(
        OnRace::Repeat,
        vec![
            ("path", Value::from(path)),
            ("size", int(size)),
            ("replaced", Value::from(replaced)),
        ],
    )
}
