//! `:resolve-source`: makes an immutable tree of a folder or a commit.

use flowstone_flow::blob::{BlobHash, BlobOp, BlobRow};
use flowstone_flow::ports::StoreOp;
use flowstone_flow::resource::ResourceKind;
use flowstone_flow::step::{Effect, Operation, Outcome, StepError};
use flowstone_lang::value::Value;

use super::super::Call;
use super::super::manifest::Origin;
use super::super::source::{self, Source};
use super::super::tree::TREE_TYPE;
use super::super::value::{answer, int, reference};

pub(in super::super) const OPERATION: Operation = Operation {
    name: "resolve-source",
    doc: "Makes an immutable tree of a folder or a git repository.",
    needs: &["source"],
    takes: &[],
    gives: r#"[:map [:type [:= :resource-ref]] [:uri :string] [:files :int] [:bytes :int]]"#,
    effect: Effect::OwnStore,
    for_agents: false,
};

/// Returns the reference to a tree, which the store registers together with the step's journal row.
pub(in super::super) async fn run(call: Call<'_>) -> Result<Outcome, StepError> {
    let source = source::read(call.cx, call.fields)?;
    if let Source::Tree { .. } | Source::Changeset { .. } = source {
        return Err(
            StepError::config("E0782", "this source is resolved already")
                .hint("give it to `:list`, `:read` or `:search` as `:source`"),
        );
    }
    let tree = call.files.tree(call.cx, &source).await?;
    let total: u64 = tree.manifest.entries().map(|entry| entry.size).sum();
    let mut facts = vec![
        ("size-bytes", int(tree.bytes)),
        ("files", Value::from(tree.manifest.count())),
        ("bytes", int(total)),
    ];
    if let Some(Origin::Git { commit, .. }) = tree.manifest.origin() {
        facts.push(("commit", Value::from(commit.as_str())));
    }
    let value = answer(&reference(&tree.uri, TREE_TYPE, facts))?;
    tracing::debug!(step = %call.cx.path(), uri = %tree.uri, "source resolved");
    let blob = BlobRow {
        content_type: Some(TREE_TYPE.to_string()),
        kind: ResourceKind::Tree,
        run: Some(call.cx.run_id().to_string()),
        path: Some(call.cx.path().to_string()),
        ..BlobRow::new(tree.uri, BlobHash(tree.id), tree.bytes)
    };
    Ok(Outcome::Commit(StoreOp::Blob(BlobOp::Register {
        blob: Box::new(blob),
        value,
    })))
}
