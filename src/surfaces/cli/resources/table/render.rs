//! Output of tables and of changes to them.

use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;

use crate::cli::output;
use crate::cli::table::{Column, table};
use crate::json::{ok, plain_json, table_json};

/// Prints a result: as one JSON object, or as lines.
pub(super) fn show(asked: bool, value: &Value, lines: impl FnOnce() -> String) {
    if asked {
        output::json(&ok(table_json(value)));
    } else {
        output::data(&lines());
    }
}

/// Returns the items of a vector under a key.
pub(super) fn items(value: &Value, key: &str) -> Vec<Value> {
    let found = value.get(key).and_then(Value::as_vector);
    found.map_or_else(Vec::new, |items| items.iter().cloned().collect())
}

/// Lays out rows with these columns, or with those of the first row.
pub(super) fn rows(columns: &[String], rows: &[Value]) -> String {
    let columns: Vec<String> = match (columns, rows.first().and_then(Value::as_map)) {
        ([], Some(first)) => first
            .iter()
            .map(|(key, _)| name_of(key).map_or_else(String::new, |name| name.to_string()))
            .collect(),
        (columns, _) => columns.to_vec(),
    };
    let heading: Vec<Column<'_>> = columns.iter().map(|name| Column::Cut(name)).collect();
    let cells = rows
        .iter()
        .map(|row| columns.iter().map(|name| cell(row, name)).collect());
    table(&heading, cells)
}

/// Formats a cell for a person; nil is empty.
pub(super) fn cell(row: &Value, name: &str) -> String {
    row.get(name).map_or_else(String::new, text)
}

pub(super) fn text(value: &Value) -> String {
    match plain_json(value) {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    }
}

/// Prints some keys of a result, one per line.
pub(super) fn facts(value: &Value, keys: &[&str]) -> String {
    let known = keys.iter().filter_map(|key| {
        let found = value.get(key).filter(|value| !value.is_nil())?;
        Some(format!(
            "{}: {}\n",
            key.trim_end_matches('?').replace('-', " "),
            text(found)
        ))
    });
    known.collect()
}
