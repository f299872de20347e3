//! `:list`: lists the entries of a tree.

use flowstone_flow::step::{Effect, Operation, Outcome, StepError};
use flowstone_lang::value::Value;

use super::super::Call;
use super::super::value::{entry, map};
use super::super::view::{Selection, View};
use crate::fields::Fields;

pub(in super::super) const OPERATION: Operation = Operation {
    name: "list",
    doc: "Lists the entries of a tree or a changeset.",
    needs: &[],
    takes: &["changeset", "cursor", "glob", "limit", "prefix", "source"],
    gives: r#"[:map [:entries [:vector [:map [:path :string] [:size :int] [:kind :keyword]]]] [:next-cursor [:maybe :string]]]"#,
    effect: Effect::Read,
    for_agents: true,
};

pub(in super::super) async fn run(call: Call<'_>) -> Result<Outcome, StepError> {
    let fields = call.fields;
    let tree = call.tree().await?;
    let selection = selection(fields)?;
    let cursor = fields.text("cursor")?;
    let limit = fields.count("limit", 1, 100_000)?.unwrap_or(1000);
    let view = View {
        manifest: &tree.manifest,
        objects: &tree.objects,
    };
    let page = view.list(&selection, cursor, limit)?;
    let entries = Value::vector(page.entries.into_iter().map(entry));
    Ok(Outcome::Value(map([
        ("entries", entries),
        ("next-cursor", page.next.map_or(Value::Nil, Value::from)),
    ])))
}

/// Reads `:prefix` and `:glob`.
pub(super) fn selection(fields: Fields<'_>) -> Result<Selection, StepError> {
    Ok(Selection {
        prefix: fields.text("prefix")?.map(str::to_string),
        glob: fields.texts("glob")?,
    })
}
