//! The table of memories: its columns, making it, and seeing that it is one.

use flowstone_flow::step::{Inside, StepContext, StepError};
use flowstone_lang::value::Value;

use super::super::notes::facts;
use crate::json::{items, name_text};
use crate::resource;

/// What a row holds, with the types of the columns.
pub(super) const COLUMNS: &[(&str, &str)] = &[
    // Names the row: run, step and number; for a step of a plan its name.
    ("entry", "string"),
    ("type", "string"),
    // What the row is about, as the model calls it.
    ("key", "string"),
    ("content", "string"),
    // 1 to 5, where the model said so.
    ("importance", "long"),
    // Figures of a run, state of a step of a plan.
    ("data", "json"),
    ("scope", "string"),
    ("scope-key", "string"),
    ("flow", "string"),
    ("run", "string"),
    ("step", "string"),
    ("created-at", "timestamp"),
];
/// What makes a row the same row.
const KEY: &str = "entry";
const INDEXED: &[&str] = &["created-at", "flow", "scope-key"];

/// Makes the table where a name is given and nothing has it; else looks at its columns.
pub(super) async fn ensure(cx: &StepContext, table: &Value) -> Result<(), StepError> {
    let is_name = resource::uri(table).is_none();
    let config = match is_name {
        true => create(table),
        false => facts([("op", Value::keyword("schema")), ("table", table.clone())]),
    };
    let answer = cx
        .perform(Inside::new("table", "memory-table", config))
        .await
        .map_err(|error| match error.code {
            "E0626" => misfit(table, &error.message),
            _ => error,
        })?;
    if is_name {
        return Ok(());
    }
    match missing(&answer) {
        None => Ok(()),
        Some(problem) => Err(misfit(table, &problem)),
    }
}

fn create(table: &Value) -> Value {
    let column = |(name, type_): &(&str, &str)| {
        facts([
            ("name", Value::keyword(name)),
            ("type", Value::keyword(type_)),
        ])
    };
    let indexed = INDEXED.iter().map(|name| Value::keyword(name));
    facts([
        ("op", Value::keyword("create")),
        ("table", table.clone()),
        ("columns", Value::vector(COLUMNS.iter().map(column))),
        ("key-fields", Value::vector([Value::keyword(KEY)])),
        ("index-fields", Value::vector(indexed)),
    ])
}

/// Says which column a table does not have, or has with another type.
fn missing(schema: &Value) -> Option<String> {
    let columns = schema.get("columns").and_then(items).unwrap_or_default();
    for (name, type_) in COLUMNS {
        let named =
            |column: &&Value| column.get("name").and_then(name_text).as_deref() == Some(*name);
        let Some(column) = columns.iter().find(named) else {
            return Some(format!("it has no column `{name}`"));
        };
        let found = ["type", "type-hint"]
            .iter()
            .find_map(|key| column.get(key).and_then(name_text));
        if let Some(found) = found.filter(|found| found != type_) {
            return Some(format!("its column `{name}` is {found}, not {type_}"));
        }
        if *name == KEY && column.get("key?") != Some(&Value::Bool(true)) {
            return Some(format!("its key is not `{KEY}`"));
        }
    }
    None
}

fn misfit(table: &Value, problem: &str) -> StepError {
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    StepError::new(
        "E0851",
        "conflict",
        format!(
            "the table {} cannot hold an agent's memory: {problem}",
            crate::words::shown(table)
        ),
    )
    .hint("give `:memory` a name that no table has: the table is made then")
    .hint(format!("its columns are {}", names.join(", ")))
}
