//! What a search found.

use flowstone_engine::json::to_json;
use flowstone_project::search::Found;
use serde_json::Value as Json;

/// Returns what was found as JSON. The names of the fields are stable.
pub fn found_json(found: &Found) -> Json {
    camel(to_json(&found.to_value()).unwrap_or(Json::Null))
}

/// Writes the keys of objects as `camelCase`.
fn camel(json: Json) -> Json {
    match json {
        Json::Object(entries) => {
            let entries = entries.into_iter();
            Json::Object(
                entries
                    .map(|(key, value)| (camel_name(&key), camel(value)))
                    .collect(),
            )
        }
        Json::Array(items) => Json::Array(items.into_iter().map(camel).collect()),
        other => other,
    }
}

fn camel_name(name: &str) -> String {
    let mut out = String::new();
    let mut is_start = false;
    for char in name.chars() {
        match char {
            '-' => is_start = true,
            '?' => {}
            char if is_start => {
                out.extend(char.to_uppercase());
                is_start = false;
            }
            char => out.push(char),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::camel_name;

    #[test]
    fn names_are_those_of_json() {
        for (name, expected) in [
            ("uri", "uri"),
            ("by-target", "byTarget"),
            ("content-truncated?", "contentTruncated"),
        ] {
            assert_eq!(camel_name(name), expected);
        }
    }
}
