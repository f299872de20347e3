//! `:persist` of any step: stores its value in a blob, a key or a table, and returns a reference.
//!
//! The store does it in the transaction of the step's journal row, so a result is never stored twice and never lost in
//! between. One file per type.

mod blob;
mod code;
mod kv;
mod table;

use flowstone_flow::kv::KvSet;
use flowstone_flow::ports::StoreOp;
use flowstone_flow::step::{LocalFuture, Persist, StepContext, StepError};
use flowstone_lang::value::Value;

use crate::fields::Fields;
use crate::text::nearest;

/// The target of `:persist`.
pub struct PersistResult;

const TYPES: &[(&str, &[&str])] = &[
    ("blob", blob::KEYS),
    ("kv", kv::KEYS),
    ("table", table::KEYS),
];
impl Persist for PersistResult {
    fn check(&self, kind: &str, config: &Value) -> Result<(), StepError> {
        plan(kind, config).map(drop)
    }

    fn persist<'a>(
        &'a self,
        cx: &'a StepContext,
        config: &'a Value,
        value: Value,
    ) -> LocalFuture<'a, Result<StoreOp, StepError>> {
        Box::pin(async move {
            match plan(cx.kind(), config)? {
                Plan::Blob(blob) => blob.store(cx, value).await,
                Plan::Key(set) => kv::put(cx, set, &value),
                Plan::Table(write) => table::put(write, &value),
            }
        })
    }
}

/// A parsed config.
enum Plan {
    Blob(blob::Blob),
    Key(KvSet),
    Table(table::Plan),
}

fn plan(kind: &str, config: &Value) -> Result<Plan, StepError> {
    let fields = Fields::nested(":persist", config)?;
    let type_ = fields.name("type")?.unwrap_or_default();
    let Some((_, known)) = TYPES.iter().find(|(name, _)| *name == &*type_) else {
        let error = match fields.has("type") {
            true => StepError::config("E0763", format!("`:persist` has no type `:{type_}`")),
            false => StepError::config("E0763", "`:persist` needs `:type`"),
        };
        return Err(match nearest(&type_, TYPES.iter().map(|(name, _)| *name)) {
            Some(near) => error.hint(format!("did you mean `:{near}`?")),
            None => error.hint("there are `:blob`, `:kv` and `:table`"),
        });
    };
    fields.only(&[*known, &["type"]].concat())?;
    match &*type_ {
        "blob" => blob::plan(kind, fields).map(Plan::Blob),
        "kv" => kv::plan(fields).map(Plan::Key),
        _ => table::plan(fields).map(Plan::Table),
    }
}
