//! `:persist {:type :kv}`: a step's value under a key.

use flowstone_flow::kv::{KvOp, KvSet};
use flowstone_flow::ports::StoreOp;
use flowstone_flow::step::{StepContext, StepError};
use flowstone_lang::value::Value;

use crate::fields::Fields;
use crate::json::name_text;
use crate::kv::{check_key, encoded, max_value, ttl};
use crate::resource;

/// The keys of the config, besides `:type`.
pub(super) const KEYS: &[&str] = &["key", "metadata", "ttl"];

/// Reads the config of `:persist`, except for the value to store.
pub(super) fn plan(fields: Fields<'_>) -> Result<KvSet, StepError> {
    let Some(key) = fields.get("key").and_then(name_text) else {
        return Err(
            StepError::config("E0763", "`:persist {:type :kv}` needs `:key`")
                .hint("as in `:key \"report:latest\"`"),
        );
    };
    check_key("persist :key", &key)?;
    Ok(KvSet {
        key,
        value: String::new(),
        ttl_seconds: ttl(fields)?,
        metadata: fields.map("metadata")?.map(encoded).transpose()?,
        if_not_exists: false,
        answer: None,
        max_value: 0,
    })
}

/// Returns the operation that stores a value according to the config.
pub(super) fn put(cx: &StepContext, set: KvSet, value: &Value) -> Result<StoreOp, StepError> {
    let uri = format!("{}result/kv/{}", resource::PREFIX, set.key);
    let answer = resource::reference(
        &uri,
        &[
            ("resource-uri", Value::from(uri.as_str())),
            ("ref", resource::reference(&uri, &[])),
            ("key", Value::from(set.key.as_str())),
        ],
    );
    Ok(StoreOp::Kv(KvOp::Set(KvSet {
        value: encoded(value)?,
        answer: Some(encoded(&answer)?),
        max_value: max_value(cx),
        ..set
    })))
}
