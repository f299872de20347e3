//! Output of tables and of changes to them.

use flowstone_engine::json::to_exact_json;
use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;
use serde_json::{Map, json};

use crate::cli::output;
use crate::cli::table::{Column, table};

/// Keys whose values belong to the user: the names of columns keep their spelling.
const ROWS: [&str; 6] = ["groups", "preview", "row", "rows", "previous", "value"];

/// Prints a result: as one JSON object, or as lines.
pub(super) fn show(asked: bool, value: &Value, lines: impl FnOnce() -> String) {
    if asked {
        output::json(&envelope(value));
    } else {
        output::data(&lines());
    }
}

/// Returns a step's result with the names of the JSON API.
fn envelope(value: &Value) -> serde_json::Value {
    let mut fields = Map::new();
    fields.insert("ok".to_owned(), json!(true));
    if let serde_json::Value::Object(inner) = spelled(value) {
        fields.extend(inner);
    }
    fields.into()
}

fn spelled(value: &Value) -> serde_json::Value {
    if let Some(map) = value.as_map() {
        let fields = map.iter().map(|(key, value)| {
            let key = name_of(key).unwrap_or_else(|| "?".into());
            let value = match ROWS.contains(&&*key) {
                true => plain(value),
                false => spelled(value),
            };
            (camel(&key), value)
        });
        return serde_json::Value::Object(fields.collect());
    }
    match value.as_vector() {
        Some(items) => items.iter().map(spelled).collect(),
        None => plain(value),
    }
}

fn plain(value: &Value) -> serde_json::Value {
    to_exact_json(value).unwrap_or(serde_json::Value::Null)
}

/// Converts a key: `has-more` becomes `hasMore`, `created?` becomes `created`.
fn camel(key: &str) -> String {
    let mut out = String::new();
    let mut is_next = false;
    for char in key.trim_end_matches('?').chars() {
        match char {
            '-' => is_next = true,
            char if is_next => {
                out.extend(char.to_uppercase());
                is_next = false;
            }
            char => out.push(char),
        }
    }
    out
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
    match plain(value) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_are_spelled_for_programs_and_rows_are_not() {
        let value = flowstone_engine::codec::decode(
            "{:rows [{:order-id 1 :at #inst \"2026-01-01T00:00:00.000Z\"}] :page {:has-more true} :created? false}",
        );
        assert_eq!(
            envelope(&value.expect("it is EDN")).to_string(),
            r#"{"ok":true,"rows":[{"order-id":1,"at":"2026-01-01T00:00:00.000Z"}],"page":{"hasMore":true},"created":false}"#
        );
    }
}
