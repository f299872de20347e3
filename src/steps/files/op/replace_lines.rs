//! `:replace-lines`: replaces a range of lines.

use flowstone_flow::changeset::OnRace;
use flowstone_flow::step::{Effect, Operation, Outcome, StepError};
use flowstone_lang::value::Value;

use super::super::snapshot::count_lines;
use super::super::value::int;
use super::super::{Call, blocking, edit};

pub(in super::super) const OPERATION: Operation = Operation {
    name: "replace-lines",
    doc: "Replaces the lines from :start-line to :end-line; with an end one before the start, inserts lines.",
    needs: &["changeset", "path", "start-line", "end-line", "content"],
    takes: &[],
    gives: r#"[:map [:path :string] [:size :int] [:lines :int] [:changeset :string]]"#,
    effect: Effect::OwnStore,
    for_agents: true,
};

pub(in super::super) async fn run(call: Call<'_>) -> Result<Outcome, StepError> {
    let fields = call.fields;
    let path = fields.text("path")?.unwrap_or_default().to_string();
    let content = fields.text("content")?.unwrap_or_default().to_string();
    let line = |key, least| Ok::<_, StepError>(fields.count(key, least, usize::MAX)?.unwrap_or(1));
    let range = (line("start-line", 1)?, line("end-line", 0)?);
    let mut draft = call.draft().await?;
    let (draft, path, text) = blocking(move |_| {
        let (path, text) = draft.text(&path)?;
        let text = edit::replace_lines(&path, &text, range, &content)?;
        draft.write(&path, text.as_bytes(), None)?;
        Ok((draft, path, text))
    })
    .await?;
    draft.commit(
        // The line numbers refer to the text that was read before.
        OnRace::Fail,
        vec![
            ("path", Value::from(path)),
            ("size", int(text.len() as u64)),
            ("lines", int(count_lines(text.as_bytes()))),
        ],
    )
}
