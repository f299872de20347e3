//! `:persist {:type :table}`: the rows in a step's value.

use flowstone_flow::ports::StoreOp;
use flowstone_flow::step::StepError;
use flowstone_flow::table::{Partitions, TableOp, WriteMode, WriteRows};
use flowstone_lang::value::Value;

use crate::fields::Fields;
use crate::json::{items, name_text};
use crate::persist::code::UNFIT;
use crate::table::{names, partitions, rows, target};
use crate::text::brief;

/// The keys of the config.
pub(super) const KEYS: &[&str] = &[
    "index-fields",
    "key-fields",
    "name",
    "partitions",
    "rows-path",
    "table",
    "write-mode",
];

/// The rows to write, and the table.
pub(super) struct Plan {
    write: WriteRows,
    /// The path to the rows, if it is set.
    path: Option<Value>,
}

/// Reads the config.
pub(super) fn plan(fields: Fields<'_>) -> Result<Plan, StepError> {
    let (named, also) = (fields.get("table"), fields.get("name"));
    if let (Some(table), Some(name)) = (named, also)
        && (name_text(table).is_none() || name_text(table) != name_text(name))
    {
        return Err(
            StepError::config("E0763", "`:table` and `:name` say different things")
                .hint("they are two names for the same key: remove one of them"),
        );
    }
    let Some(table) = named.or(also) else {
        return Err(
            StepError::config("E0763", "`:persist {:type :table}` needs `:table`")
                .hint("as in `:table \"orders\"`"),
        );
    };
    let key_fields = names(fields, "key-fields")?;
    let mode = match fields.name("write-mode")?.as_deref() {
        None if key_fields.is_empty() => WriteMode::Insert,
        None | Some("upsert") => WriteMode::Upsert,
        Some("append" | "insert") => WriteMode::Insert,
        Some("replace") => WriteMode::Replace,
        Some(other) => {
            return Err(StepError::config(
                "E0763",
                format!("`:write-mode` is `:append`, `:upsert` or `:replace`, not `:{other}`"),
            ));
        }
    };
    let path = fields.get("rows-path").cloned();
    if let Some(path) = path.as_ref().filter(|path| items(path).is_none()) {
        return Err(StepError::config(
            "E0763",
            format!("`:rows-path` is a vector of keys, not {}", path.kind()),
        )
        .hint("as in `:rows-path [:body :items]`"));
    }
    let mut table = target(table)?;
    if let Some(given) = fields.get("partitions") {
        table.partitions = partitions(given)?;
    }
    if let Partitions::All = table.partitions {
        let error = StepError::config("E0720", "rows can only be written to one partition");
        return Err(error.hint("as in `:partitions {:key \"2026-03\"}`"));
    }
    let write = WriteRows {
        table,
        rows: Vec::new(),
        mode,
        key_fields,
        index_fields: names(fields, "index-fields")?,
    };
    Ok(Plan { write, path })
}

/// Writes the rows of a value.
pub(super) fn put(plan: Plan, value: &Value) -> Result<StoreOp, StepError> {
    Ok(StoreOp::Table(Box::new(TableOp::Write(WriteRows {
        rows: rows(&found(value, plan.path.as_ref())?, "the result")?,
        ..plan.write
    }))))
}

/// Finds the rows in a step's value: at a path, or without one if they are unambiguous.
fn found(value: &Value, path: Option<&Value>) -> Result<Value, StepError> {
    let Some(path) = path else {
        let rows = value.get("rows").filter(|rows| items(rows).is_some());
        return match (value, rows) {
            (_, Some(rows)) => Ok(rows.clone()),
            (Value::Map(map), None) => {
                let keys: Vec<String> = map.iter().take(12).map(|(key, _)| brief(key)).collect();
                Err(StepError::new(
                    UNFIT,
                    "invalid",
                    "the result is a map, but the place of its rows is not set",
                )
                .hint(format!(
                    "add `:rows-path [...]`; the result has {}",
                    keys.join(" ")
                )))
            }
            (value, None) => Ok(value.clone()),
        };
    };
    let mut at = value.clone();
    for (depth, key) in items(path).unwrap_or_default().into_iter().enumerate() {
        let next = match &at {
            Value::Map(map) => map
                .get(&key)
                .or_else(|| map.get(&Value::keyword(key.as_str()?)))
                .cloned(),
            Value::Vector(vector) => key
                .as_int()
                .and_then(|idx| vector.get(usize::try_from(idx).ok()?))
                .cloned(),
            _ => None,
        };
        at = next.ok_or_else(|| {
            let error = StepError::new(
                UNFIT,
                "invalid",
                format!(
                    "`:rows-path` leads nowhere: the result has no {} at step {}",
                    brief(&key),
                    depth + 1
                ),
            );
            match at.as_map() {
                Some(map) => error.hint(format!(
                    "there it has {}",
                    map.iter()
                        .take(12)
                        .map(|(key, _)| brief(key))
                        .collect::<Vec<_>>()
                        .join(" ")
                )),
                None => error.hint(format!("there is {}", at.kind())),
            }
        })?;
    }
    Ok(at)
}
