//! The table of memories: its columns, its creation, and the check of an existing table.

use flowstone_flow::ports::StoreError;
use flowstone_flow::step::{NestedRequest, StepContext, StepError};
use flowstone_lang::value::Value;

use super::super::notes::facts;
use crate::json::{items, name_text};
use crate::resource;

/// The columns of a row, with their types.
pub(super) const COLUMNS: &[(&str, &str)] = &[
    // The row's name: run, step and number; for a step of a plan, the step's name.
    ("entry", "string"),
    ("type", "string"),
    // The subject of the row, in the model's terms.
    ("key", "string"),
    ("content", "string"),
    // 1 to 5, if the model set it.
    ("importance", "long"),
    // Counts of a run, or state of a step of a plan.
    ("data", "json"),
    ("scope", "string"),
    ("scope-key", "string"),
    ("flow", "string"),
    ("run", "string"),
    ("step", "string"),
    ("created-at", "timestamp"),
];
/// The key columns.
const KEY: &str = "entry";
const INDEXED: &[&str] = &["created-at", "flow", "scope-key"];

/// Creates the table if it has a name and does not exist; otherwise checks its columns.
pub(super) async fn ensure(cx: &StepContext, table: &Value) -> Result<(), StepError> {
    let is_name = resource::uri(table).is_none();
    let config = match is_name {
        true => create(table),
        false => facts([("op", Value::keyword("schema")), ("table", table.clone())]),
    };
    let answer = cx
        .perform(NestedRequest::new("table", "memory-table", config).of_author())
        .await
        .map_err(|error| match error.code {
            StoreError::OTHER_TABLE => misfit(table, &error.message),
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

/// Returns the error for a column that is missing or has another type.
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
            crate::text::brief(table)
        ),
    )
    .hint("give `:memory` a name that no table has: the table is made then")
    .hint(format!("its columns are {}", names.join(", ")))
}
