//! Results of table steps.

use flowstone_engine::json::to_exact_json;
use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;
use serde_json::Map;

/// Keys whose values belong to the user: the names of columns keep their spelling.
const ROWS: [&str; 6] = ["groups", "preview", "row", "rows", "previous", "value"];

/// Returns a step's result with the names of the JSON API.
pub fn table_json(value: &Value) -> serde_json::Value {
    match spelled(value) {
        serde_json::Value::Object(fields) => fields.into(),
        _ => Map::new().into(),
    }
}

fn spelled(value: &Value) -> serde_json::Value {
    if let Some(map) = value.as_map() {
        let fields = map.iter().map(|(key, value)| {
            let key = name_of(key).unwrap_or_else(|| "?".into());
            let value = match ROWS.contains(&&*key) {
                true => plain_json(value),
                false => spelled(value),
            };
            (camel(&key), value)
        });
        return serde_json::Value::Object(fields.collect());
    }
    match value.as_vector() {
        Some(items) => items.iter().map(spelled).collect(),
        None => plain_json(value),
    }
}

/// Returns a value of a cell as JSON.
pub fn plain_json(value: &Value) -> serde_json::Value {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn envelopes_are_spelled_for_programs_and_rows_are_not() {
        let value = flowstone_engine::codec::decode(
            "{:rows [{:order-id 1 :at #inst \"2026-01-01T00:00:00.000Z\"}] :page {:has-more true} :created? false}",
        );
        assert_eq!(
            table_json(&value.expect("it is EDN")).to_string(),
            r#"{"rows":[{"order-id":1,"at":"2026-01-01T00:00:00.000Z"}],"page":{"hasMore":true},"created":false}"#
        );
    }
}
