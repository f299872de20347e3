//! The reference to a stored blob: every key that flows look for.

use std::rc::Rc;

use flowstone_flow::blob::BlobRow;
use flowstone_flow::resource::sign::LOCAL;
use flowstone_flow::resource::{PREFIX, Tier};
use flowstone_flow::server_file;
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::{Object, Value};

use crate::resource;

/// Returns the keys of a reference other than the name.
pub(super) fn facts(blob: &BlobRow) -> Vec<(&'static str, Value)> {
    let text = |text: &Option<String>| text.as_deref().map(Value::from);
    let size = i64::try_from(blob.size).unwrap_or(i64::MAX);
    let facts = [
        ("content-type", text(&blob.content_type)),
        ("size-bytes", Some(Value::Int(size))),
        ("filename", text(&blob.filename)),
        ("bucket", text(&blob.bucket)),
    ];
    let mut facts: Vec<(&str, Value)> = facts
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect();
    let reference = resource::reference(&blob.uri, &facts);
    facts.extend([
        ("blob-ref", reference.clone()),
        ("path", Value::from(path(blob))),
        ("ref", reference),
        ("resource-uri", Value::from(blob.uri.as_str())),
        ("sha256", Value::from(blob.hash.0.as_str())),
    ]);
    if let (Tier::Ephemeral, Some(expires_ms)) = (blob.tier, blob.expires_ms) {
        let expires = Value::Object(Rc::new(Object::Inst(expires_ms)));
        facts.extend([
            ("tier", Value::keyword(blob.tier.name())),
            ("expires-at", expires),
        ]);
    }
    facts
}

/// Returns the path of a blob: the bucket, and the name without the workspace.
fn path(blob: &BlobRow) -> String {
    let rest = blob.uri.strip_prefix(PREFIX).unwrap_or(&blob.uri);
    match &blob.bucket {
        Some(bucket) => format!("{bucket}/{rest}"),
        None => rest.to_owned(),
    }
}

/// Makes a signed link to a resource.
pub(super) fn link(cx: &StepContext, uri: &str, ttl_seconds: i64) -> Result<String, StepError> {
    let signer = resource::signer(cx)?;
    let base = server_file::base(cx.settings(), cx.home());
    let base = base.as_deref().unwrap_or(LOCAL);
    let expires_ms = cx.now_ms().saturating_add(ttl_seconds * 1_000);
    Ok(signer.link(base, uri, expires_ms))
}
