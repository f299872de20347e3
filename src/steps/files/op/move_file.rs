//! `:move-file`: moves a file to another path.

use flowstone_flow::changeset::OnRace;
use flowstone_flow::step::{Effect, Operation, Outcome, StepError};
use flowstone_lang::value::Value;

use super::super::Call;

pub(in super::super) const OPERATION: Operation = Operation {
    name: "move-file",
    doc: "Moves or renames a file; the new path must be free.",
    needs: &["changeset", "from", "to"],
    takes: &[],
    gives: r#"[:map [:from :string] [:to :string] [:changeset :string]]"#,
    effect: Effect::OwnStore,
    for_agents: true,
};

pub(in super::super) async fn run(call: Call<'_>) -> Result<Outcome, StepError> {
    let fields = call.fields;
    let path = |key| Ok::<_, StepError>(fields.text(key)?.unwrap_or_default());
    let mut draft = call.draft().await?;
    let (from, to) = draft.rename(path("from")?, path("to")?)?;
    draft.commit(
        OnRace::Fail,
        vec![("from", Value::from(from)), ("to", Value::from(to))],
    )
}
