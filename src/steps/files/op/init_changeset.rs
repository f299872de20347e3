//! `:init-changeset`: creates a changeset without changes over a tree.

use flowstone_flow::changeset::{ChangesetOp, NewChangeset};
use flowstone_flow::codec;
use flowstone_flow::ports::StoreOp;
use flowstone_flow::step::{Effect, Operation, Outcome, StepContext, StepError};
use flowstone_lang::value::Value;

use super::super::Call;
use super::super::source::{self, Source};
use super::super::tree::CHANGESET_TYPE;
use super::super::value::{answer, reference};

pub(in super::super) const OPERATION: Operation = Operation {
    name: "init-changeset",
    doc: "Creates a changeset over a tree; its changes leave the tree unchanged.",
    needs: &["source"],
    takes: &[],
    gives: r#"[:map [:type [:= :resource-ref]] [:uri :string] [:source :string] [:files :int]]"#,
    effect: Effect::OwnStore,
    for_agents: true,
};

pub(in super::super) async fn run(call: Call<'_>) -> Result<Outcome, StepError> {
    let source = source::read(call.cx, call.fields)?;
    if let Source::Changeset { id } = &source {
        let message = format!("`{id}` is a changeset, but a changeset is based on a source tree");
        return Err(
            StepError::config("E0782", message).hint("to continue it, give it as `:changeset`")
        );
    }
    let tree = call.files.tree(call.cx, &source).await?;
    let id = free_id(call.cx).await?;
    let facts = vec![
        ("source", Value::from(tree.uri.as_str())),
        ("files", Value::from(tree.manifest.count())),
    ];
    let reference = reference(&source::changeset_uri(&id), CHANGESET_TYPE, facts);
    let answer = answer(&reference)?;
    Ok(Outcome::Commit(StoreOp::Changeset(ChangesetOp::Open(
        NewChangeset {
            id,
            base: tree.id,
            source: tree.uri,
            answer,
        },
    ))))
}

/// Makes an id from the path of the step in its run, so that a step that is performed again after a crash makes the
/// same id. A later pass of the run makes another.
async fn free_id(cx: &StepContext) -> Result<String, StepError> {
    let mut pass = 0;
    loop {
        let place = format!("changeset\0{}\0{}\0{pass}", cx.run_id(), cx.path());
        let digest = codec::digest_bytes(place.as_bytes());
        let id = format!("cs-{}", &digest[..24]);
        if cx.own_stores().changesets.overlay(&id).await?.is_none() {
            return Ok(id);
        }
        pass += 1;
    }
}
