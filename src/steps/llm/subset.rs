//! Removes the keywords of a JSON Schema that a provider rejects.
//!
//! Removed keywords are added to the description, so the model still sees them. The answer is checked against the whole
//! schema afterwards anyway.

use serde_json::{Map, Value as Json};

/// Keywords that contain other schemas by name.
const NAMED: &[&str] = &[
    "$defs",
    "definitions",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// Keywords that contain one or several other schemas.
const WITHIN: &[&str] = &[
    "additionalProperties",
    "allOf",
    "anyOf",
    "items",
    "not",
    "oneOf",
    "prefixItems",
];

/// Returns a schema without these keywords.
pub fn without(schema: &Json, keywords: &[&str]) -> Json {
    let Json::Object(object) = schema else {
        return schema.clone();
    };
    let mut kept = Map::new();
    let mut left_out = Vec::new();
    for (key, value) in object {
        let key_text = key.as_str();
        if keywords.contains(&key_text) {
            left_out.push(format!("{key}: {value}"));
        } else if NAMED.contains(&key_text) {
            kept.insert(key.clone(), each(value, keywords));
        } else if WITHIN.contains(&key_text) {
            let value = match value {
                Json::Array(items) => items.iter().map(|it| without(it, keywords)).collect(),
                other => without(other, keywords),
            };
            kept.insert(key.clone(), value);
        } else {
            kept.insert(key.clone(), value.clone());
        }
    }
    // The origin of a schema has no meaning for the answer.
    left_out.retain(|it| !it.starts_with('$'));
    if !left_out.is_empty() {
        let description = kept
            .get("description")
            .and_then(Json::as_str)
            .map_or(String::new(), |it| format!("{it} "));
        kept.insert(
            "description".into(),
            Json::from(format!("{description}({})", left_out.join(", "))),
        );
    }
    Json::Object(kept)
}

fn each(schemas: &Json, keywords: &[&str]) -> Json {
    match schemas {
        Json::Object(object) => object
            .iter()
            .map(|(key, value)| (key.clone(), without(value, keywords)))
            .collect(),
        other => other.clone(),
    }
}
