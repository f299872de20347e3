//! JSON Schemas of arguments of which some are preset: what the model sees has none of their names and values.
//!
//! Only what describes the arguments themselves is changed; an object inside an argument may have members of the same names. The schema
//! that remains may admit more than the whole one, which still checks the arguments together with the preset ones.

use std::cell::Cell;

use serde_json::{Map, Value as Json};

/// How deep references and combinations of schemas are followed.
const DEEPEST: usize = 16;

/// How many parts of a schema are looked at. References can make a short one very large.
const MOST: usize = 5_000;

/// Keywords with a list of schemas for the same value.
const LISTS: &[&str] = &["allOf", "anyOf", "oneOf"];

/// Keywords that are left out where they name a preset argument: without it they would mean something else.
const DEPENDENT: &[&str] = &["else", "if", "not", "then"];

/// Keywords with schemas by name, for references.
const DEFINITIONS: &[&str] = &["$defs", "definitions"];

/// Returns a schema without the preset arguments.
pub fn without(schema: &Json, preset: &Map<String, Json>) -> Json {
    if preset.is_empty() {
        return schema.clone();
    }
    let left = Cell::new(MOST);
    let mut shown = cleaned((schema, schema), preset, (0, &left));
    prune(&mut shown);
    shown
}

/// Returns a schema that takes any value of the preset arguments, also where it takes no other arguments than those that it lists.
pub(super) fn admitting(schema: &Json, preset: &Map<String, Json>) -> Json {
    let mut schema = schema.clone();
    let Some(members) = schema.as_object_mut() else {
        return schema;
    };
    let properties = members
        .entry("properties")
        .or_insert_with(|| Json::Object(Map::new()));
    if let Some(properties) = properties.as_object_mut() {
        properties.extend(preset.keys().map(|name| (name.clone(), Json::Bool(true))));
    }
    schema
}

/// Returns a reference of a schema of arguments that leads to no part of the schema itself.
pub fn unresolved(schema: &Json) -> Option<String> {
    unresolved_in(schema, schema, (0, &Cell::new(MOST)))
}

fn unresolved_in(
    root: &Json,
    schema: &Json,
    (depth, left): (usize, &Cell<usize>),
) -> Option<String> {
    let is_looked_at = depth < DEEPEST && spend(left);
    let members = schema.as_object().filter(|_| is_looked_at)?;
    let deeper = (depth + 1, left);
    for key in ["$dynamicRef", "$recursiveRef"] {
        if let Some(reference) = members.get(key) {
            return Some(reference.as_str().unwrap_or(key).to_owned());
        }
    }
    if let Some(reference) = members.get("$ref").and_then(Json::as_str) {
        match target(root, reference) {
            None => return Some(reference.to_owned()),
            Some(found) => {
                if let Some(outside) = unresolved_in(root, found, deeper) {
                    return Some(outside);
                }
            }
        }
    }
    let lists = LISTS.iter().filter_map(|key| members.get(*key)?.as_array());
    lists
        .flatten()
        .find_map(|part| unresolved_in(root, part, deeper))
}

/// Returns the part of a schema that a reference such as `#/$defs/a` means.
fn target<'a>(root: &'a Json, reference: &str) -> Option<&'a Json> {
    root.pointer(reference.strip_prefix('#')?)
}

/// Counts a part that is looked at. Returns whether it may be.
fn spend(left: &Cell<usize>) -> bool {
    let is_some = left.get() > 0;
    left.set(left.get().saturating_sub(1));
    is_some
}

/// Returns names without those of presets.
fn own_names(names: &[Json], preset: &Map<String, Json>) -> Json {
    let is_preset = |name: &&Json| name.as_str().is_some_and(|name| preset.contains_key(name));
    let kept = names.iter().filter(|name| !is_preset(name));
    Json::Array(kept.cloned().collect())
}

/// Returns what the presence of an argument demands, for arguments that are no presets.
fn dependent(
    parts: &Map<String, Json>,
    preset: &Map<String, Json>,
    inner: &dyn Fn(&Json) -> Json,
) -> Json {
    let own = parts.iter().filter(|(name, _)| !preset.contains_key(*name));
    let own = own.map(|(name, part)| {
        let part = match part {
            Json::Array(names) => own_names(names, preset),
            part => inner(part),
        };
        (name.clone(), part)
    });
    Json::Object(own.collect())
}

fn cleaned(
    (root, schema): (&Json, &Json),
    preset: &Map<String, Json>,
    (depth, left): (usize, &Cell<usize>),
) -> Json {
    let Some(members) = schema.as_object() else {
        return schema.clone();
    };
    if depth >= DEEPEST || !spend(left) {
        // What is not looked at is not shown.
        return Json::Object(Map::new());
    }
    let is_preset = |name: &str| preset.contains_key(name);
    let inner = |part: &Json| cleaned((root, part), preset, (depth + 1, left));
    let names_one = |part: &Json| inner(part) != *part;
    let mut shown = Map::new();
    let mut more = Vec::new();
    for (key, value) in members {
        match (key.as_str(), value) {
            ("properties", Json::Object(parts)) => {
                let mut parts = parts.clone();
                parts.retain(|name, _| !is_preset(name));
                shown.insert(key.clone(), Json::Object(parts));
            }
            ("required", Json::Array(names)) => {
                shown.insert(key.clone(), own_names(names, preset));
            }
            ("$ref", Json::String(reference)) => match target(root, reference) {
                Some(part) => match inner(part) {
                    same if same == *part => drop(shown.insert(key.clone(), value.clone())),
                    other => more.push(other),
                },
                None => drop(shown.insert(key.clone(), value.clone())),
            },
            ("oneOf", Json::Array(parts)) if parts.iter().any(names_one) => {
                // Without the preset argument, more than one may fit.
                let any = Json::Array(parts.iter().map(inner).collect());
                if !members.contains_key("anyOf") {
                    shown.insert("anyOf".to_owned(), any);
                }
            }
            (name, Json::Array(parts)) if LISTS.contains(&name) => {
                shown.insert(key.clone(), Json::Array(parts.iter().map(inner).collect()));
            }
            (name, _) if DEPENDENT.contains(&name) => {
                let is_one = DEPENDENT
                    .iter()
                    .filter(|other| name != "not" || **other == "not")
                    .filter_map(|other| members.get(*other))
                    .any(names_one);
                if !is_one {
                    shown.insert(key.clone(), value.clone());
                }
            }
            ("dependentRequired" | "dependentSchemas" | "dependencies", Json::Object(parts)) => {
                shown.insert(key.clone(), dependent(parts, preset, &inner));
            }
            ("propertyNames", part) => {
                let text = part.to_string();
                if !preset.keys().any(|name| text.contains(name.as_str())) {
                    shown.insert(key.clone(), part.clone());
                }
            }
            ("minProperties" | "maxProperties", Json::Number(count)) => {
                let own = count.as_u64().unwrap_or(0);
                let others = u64::try_from(preset.len()).unwrap_or(u64::MAX);
                let left = own.saturating_sub(others);
                if left > 0 || key == "maxProperties" {
                    shown.insert(key.clone(), left.into());
                }
            }
            ("default" | "const", value) => drop(shown.insert(key.clone(), data(value, preset))),
            ("examples" | "enum", Json::Array(values)) => {
                let values = values.iter().map(|value| data(value, preset));
                shown.insert(key.clone(), Json::Array(values.collect()));
            }
            _ => drop(shown.insert(key.clone(), value.clone())),
        }
    }
    if !more.is_empty()
        && let Json::Array(all) = shown
            .entry("allOf")
            .or_insert_with(|| Json::Array(Vec::new()))
    {
        all.extend(more);
    }
    Json::Object(shown)
}

/// Returns arguments without the preset ones.
fn data(value: &Json, preset: &Map<String, Json>) -> Json {
    let mut value = value.clone();
    if let Json::Object(members) = &mut value {
        members.retain(|name, _| !preset.contains_key(name));
    }
    value
}

/// Removes the definitions to which nothing refers any more.
fn prune(schema: &mut Json) {
    let mut references = Vec::new();
    for (key, part) in schema.as_object().into_iter().flatten() {
        if !DEFINITIONS.contains(&key.as_str()) {
            collect(
                &Json::Object(Map::from_iter([(key.clone(), part.clone())])),
                &mut references,
            );
        }
    }
    let place = |key: &str, name: &str| {
        let name = name.replace('~', "~0").replace('/', "~1");
        format!("#/{key}/{name}")
    };
    let is_at = |reference: &str, place: &str| {
        let rest = reference.strip_prefix(place);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    // A definition counts if something that counts refers to it.
    let mut kept: Vec<String> = Vec::new();
    while let Some(reference) = references.pop() {
        for key in DEFINITIONS {
            for (name, part) in schema[*key].as_object().into_iter().flatten() {
                let place = place(key, name);
                if is_at(&reference, &place) && !kept.contains(&place) {
                    kept.push(place);
                    collect(part, &mut references);
                }
            }
        }
    }
    let Some(members) = schema.as_object_mut() else {
        return;
    };
    for key in DEFINITIONS {
        let Some(Json::Object(parts)) = members.get_mut(*key) else {
            continue;
        };
        parts.retain(|name, _| kept.contains(&place(key, name)));
        if parts.is_empty() {
            members.shift_remove(*key);
        }
    }
}

fn collect(part: &Json, references: &mut Vec<String>) {
    match part {
        Json::Object(members) => {
            for (key, value) in members {
                match value {
                    Json::String(reference) if key == "$ref" => references.push(reference.clone()),
                    value => collect(value, references),
                }
            }
        }
        Json::Array(items) => items.iter().for_each(|item| collect(item, references)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: Json, expected: Json) {
        let preset = json!({"tenant": "acme"});
        let preset = preset.as_object().expect("an object");
        assert_eq!(without(&schema, preset), expected);
    }

    #[test]
    fn a_preset_argument_is_in_no_keyword() {
        check(
            json!({"$ref": "#/$defs/all", "$defs": {
                "all": {"properties": {"q": {"$ref": "#/$defs/q"}, "tenant": {"const": "acme"}}, "required": ["q", "tenant"]},
                "q": {"type": "string"}}}),
            json!({"$defs": {"q": {"type": "string"}},
                   "allOf": [{"properties": {"q": {"$ref": "#/$defs/q"}}, "required": ["q"]}]}),
        );
        check(
            json!({"anyOf": [{"required": ["tenant"]}, {"required": ["q"]}]}),
            json!({"anyOf": [{"required": []}, {"required": ["q"]}]}),
        );
        check(
            json!({"dependentRequired": {"q": ["tenant", "r"], "tenant": ["q"]}, "minProperties": 1,
                   "if": {"properties": {"tenant": {"const": "acme"}}}, "then": {"required": ["q"]},
                   "default": {"tenant": "acme", "q": 1}, "examples": [{"tenant": "acme"}]}),
            json!({"dependentRequired": {"q": ["r"]}, "default": {"q": 1}, "examples": [{}]}),
        );
        check(
            json!({"oneOf": [{"required": ["tenant"]}, {"required": ["r"]}], "not": {"required": ["tenant"]}}),
            json!({"anyOf": [{"required": []}, {"required": ["r"]}]}),
        );
    }

    #[test]
    fn members_of_an_argument_keep_their_names() {
        let schema = json!({"properties": {"a": {"properties": {"tenant": {}}, "required": ["tenant"]}},
            "if": {"required": ["a"]}, "then": {"required": ["b"]}});
        check(schema.clone(), schema);
    }

    #[test]
    fn a_schema_that_refers_to_itself_has_an_end() {
        check(
            json!({"properties": {"tenant": {}}, "allOf": [{"properties": {"q": {"$ref": "#"}}}]}),
            json!({"properties": {}, "allOf": [{"properties": {"q": {"$ref": "#"}}}]}),
        );
        let part = json!({"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "properties": {"tenant": {}}});
        let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": part}});
        assert_eq!(unresolved(&circle), None);
        let preset = json!({"tenant": "acme"});
        let shown = without(&circle, preset.as_object().expect("an object"));
        assert!(!shown.to_string().contains("tenant"), "{shown}");
    }

    #[test]
    fn a_reference_outside_is_named() {
        let outside = json!({"allOf": [{"$ref": "other.json"}]});
        assert_eq!(unresolved(&outside).as_deref(), Some("other.json"));
    }
}
