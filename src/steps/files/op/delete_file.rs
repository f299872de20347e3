//! `:delete-file`: deletes a file.

use flowstone_flow::changeset::OnRace;
use flowstone_flow::step::{Effect, Operation, Outcome, StepError};
use flowstone_lang::value::Value;

use super::super::Call;

pub(in super::super) const OPERATION: Operation = Operation {
    name: "delete-file",
    doc: "Deletes a file or a link.",
    needs: &["changeset", "path"],
    takes: &[],
    gives: r#"[:map [:path :string] [:deleted? :boolean] [:changeset :string]]"#,
    effect: Effect::OwnStore,
    for_agents: true,
};

pub(in super::super) async fn run(call: Call<'_>) -> Result<Outcome, StepError> {
    let mut draft = call.draft().await?;
    let path = draft.delete(call.fields.text("path")?.unwrap_or_default())?;
    draft.commit(
        OnRace::Fail,
        vec![("path", Value::from(path)), ("deleted?", Value::Bool(true))],
    )
}
