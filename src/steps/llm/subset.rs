//! A JSON Schema without what a provider refuses in one.
//!
//! What is left out is written into the description, so the model still knows it; the answer is held
//! against the whole schema afterwards anyway.

use serde_json::{Map, Value as Json};

/// Where a schema holds others by name.
const NAMED: &[&str] = &[
    "$defs",
    "definitions",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// Where it holds others, one or several.
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
    // Where a schema comes from says nothing about the answer.
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
