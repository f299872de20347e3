//! `:write-out`: writes one file of the project, whole or not at all.

use flowstone_flow::step::{Effect, Operation, Outcome, StepError};
use flowstone_lang::value::Value;

use super::super::value::{int, map};
use super::super::{Call, blocking, place};
use super::write_file::content;

pub(in super::super) const OPERATION: Operation = Operation {
    name: "write-out",
    doc: "Writes one file into the project's folder; missing folders are created.",
    needs: &["path", "content"],
    takes: &["overwrite?"],
    gives: r#"[:map [:path :string] [:size :int]]"#,
    effect: Effect::External,
    for_agents: false,
};

pub(in super::super) async fn run(call: Call<'_>) -> Result<Outcome, StepError> {
    let cx = call.cx;
    let shown = call.fields.text("path")?.unwrap_or_default().to_string();
    let overwrite = call.fields.bool("overwrite?")?.unwrap_or(false);
    let place = cx.gate().place(cx.project_root(), &shown)?;
    place::file(&place.root, cx.home(), &place.path)?;
    let (root, inside) = (place.root.clone(), place.path.clone());
    let bytes = content(call).await?;
    let size = bytes.len() as u64;
    let path = shown.clone();
    blocking(move |_| place::replace(&root, (&inside, &shown), &bytes, overwrite)).await?;
    Ok(Outcome::Value(map([
        ("path", Value::from(path)),
        ("size", int(size)),
    ])))
}
