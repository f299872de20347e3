//! What a search found.

use flowstone_engine::json::to_json;
use flowstone_project::search::Found;
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::values::object;

/// What a search found.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchResults {
    /// The best first. Each has `target`, `id` or `uri`, `title`, `score`, `snippet`, and what is known of its kind.
    results: Json,
    /// The number of results by kind.
    by_target: Json,
    count: Json,
    /// How it was searched: `hybrid`, `keyword` or `semantic`.
    mode: Json,
    #[serde(skip_serializing_if = "Option::is_none")]
    warnings: Option<Json>,
}

/// Returns what was found as JSON. The names of the fields are stable.
pub fn found_json(found: &Found) -> Json {
    let mut shown = camel(to_json(&found.to_value()).unwrap_or(Json::Null));
    let mut take = |name: &str| shown.get_mut(name).map(Json::take);
    object(&SearchResults {
        results: take("results").unwrap_or_default(),
        by_target: take("byTarget").unwrap_or_default(),
        count: take("count").unwrap_or_default(),
        mode: take("mode").unwrap_or_default(),
        warnings: take("warnings"),
    })
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
