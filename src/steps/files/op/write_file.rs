//! `:write-file`: writes a new or existing file.

use flowstone_flow::changeset::OnRace;
use flowstone_flow::step::{Effect, Operation, Outcome, StepError};
use flowstone_lang::value::Value;

use super::super::value::int;
use super::super::{Call, blocking};
use crate::resource;

pub(in super::super) const OPERATION: Operation = Operation {
    name: "write-file",
    doc: "Creates a file, or replaces its content.",
    needs: &["changeset", "path", "content"],
    takes: &[],
    gives: r#"[:map [:path :string] [:size :int] [:created? :boolean] [:changeset :string]]"#,
    effect: Effect::OwnStore,
    for_agents: true,
};

pub(in super::super) async fn run(call: Call<'_>) -> Result<Outcome, StepError> {
    let path = call.fields.text("path")?.unwrap_or_default().to_string();
    let bytes = content(call).await?;
    let mut draft = call.draft().await?;
    let size = bytes.len() as u64;
    let (draft, path, created) = blocking(move |_| {
        let path = draft.place_for_file(&path)?;
        let created = draft.write(&path, &bytes, None)?;
        Ok((draft, path, created))
    })
    .await?;
    draft.commit(
        OnRace::Fail,
        vec![
            ("path", Value::from(path)),
            ("size", int(size)),
            ("created?", Value::Bool(created)),
        ],
    )
}

/// Reads `:content`: text, bytes, or the bytes behind a reference.
pub(super) async fn content(call: Call<'_>) -> Result<Vec<u8>, StepError> {
    let content = call.fields.get("content").unwrap_or(&Value::Nil);
    match content {
        Value::Text(text) => Ok(text.as_str().as_bytes().to_vec()),
        value if let Some(bytes) = value.as_bytes() => Ok(bytes.into_owned()),
        Value::Map(_) if resource::uri(content).is_some() => {
            Ok(resource::bytes(call.cx, content).await?.1)
        }
        other => Err(StepError::config(
            StepError::OPTION_KIND,
            format!("`:content` takes text or bytes, not {}", other.kind()),
        )
        .hint("turn data into text first, such as with `(pr-str data)`")),
    }
}
