//! `:diff`: shows the changes of a changeset.

use flowstone_flow::step::{Effect, Operation, Outcome, StepError};
use flowstone_lang::value::Value;

use super::super::difference::{self, FileDifference, Wanted};
use super::super::error::FilesError;
use super::super::value::map;
use super::super::{Call, blocking, path};

pub(in super::super) const OPERATION: Operation = Operation {
    name: "diff",
    doc: "Compares a changeset with its tree, as a unified diff that git apply and patch understand.",
    needs: &["changeset"],
    takes: &["context", "paths"],
    gives: r#"[:map [:diff :string] [:files [:vector [:map [:path :string] [:status :keyword] [:added :int] [:removed :int]]]]]"#,
    effect: Effect::Read,
    for_agents: true,
};

const CONTEXT: usize = 3;

pub(in super::super) async fn run(call: Call<'_>) -> Result<Outcome, StepError> {
    let paths = call.fields.texts("paths")?;
    let paths = paths
        .iter()
        .map(|it| path::normal(it))
        .collect::<Result<_, FilesError>>()?;
    let wanted = Wanted {
        paths,
        context: call
            .fields
            .count("context", 0, 1_000_000)?
            .unwrap_or(CONTEXT),
    };
    let tree = call.tree().await?;
    let found =
        blocking(move |_| difference::differences(&tree.manifest, &tree.objects, &wanted)).await?;
    let diff: String = found.iter().map(|file| file.text.as_str()).collect();
    let files = Value::vector(found.into_iter().map(file));
    Ok(Outcome::Value(map([
        ("diff", Value::from(diff)),
        ("files", files),
    ])))
}

fn file(found: FileDifference) -> Value {
    let mut facts = vec![
        ("path", Value::from(found.path)),
        ("status", Value::keyword(found.status.name())),
        ("added", Value::from(found.added)),
        ("removed", Value::from(found.removed)),
    ];
    if let Some(from) = found.from {
        facts.push(("from", Value::from(from)));
    }
    if found.binary {
        facts.push(("binary?", Value::Bool(true)));
    }
    map(facts)
}
