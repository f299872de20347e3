//! Checks arguments against the schema of a tool, and schemas against the rules of the kit.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::{Value as Json, json};

use flowstone_model::diagnostic::nearest;

use super::error::KitError;
use super::tool::{Arguments, Permission, Tool};

/// As much of a wrong value is shown.
const SHOWN: usize = 80;

/// Returns a closed schema of an object. `required` names the members that must be there.
pub fn object(properties: Json, required: &[&str]) -> Json {
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Returns the schema of a text with what a model reads about it.
pub fn text(description: &str) -> Json {
    json!({"type": "string", "minLength": 1, "description": description})
}

/// Checks arguments.
///
/// # Errors
/// `invalid_arguments` with the path and what is expected there; the field is named.
pub fn check(tool: &Tool, arguments: &Arguments) -> Result<(), KitError> {
    let bound = tool.bound.iter().flat_map(|bound| bound.fields());
    let schema = (tool.input)();
    let is_own = |field: &str| schema["properties"].get(field).is_some();
    let named = bound
        .filter(|field| !is_own(field))
        .find(|field| arguments.contains_key(**field));
    if let Some(field) = named {
        return Err(KitError::invalid(
            format!("/{field}"),
            "nothing: the server sets it",
            format!("`{field}` cannot be given: the server sets it"),
        ));
    }
    let validator = match jsonschema::validator_for(&schema) {
        Ok(validator) => validator,
        Err(error) => return Err(KitError::internal(&error)),
    };
    let arguments = Json::Object(arguments.clone());
    let first = validator.iter_errors(&arguments).next();
    first.map_or(Ok(()), |error| Err(refused(&schema, &error)))
}

fn refused(schema: &Json, error: &ValidationError<'_>) -> KitError {
    let path = error.instance_path().to_string();
    let at = match path.is_empty() {
        true => "the arguments".to_owned(),
        false => format!("`{path}`"),
    };
    let found = shown(error.instance());
    let (path, expected, message) = match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            let field = unexpected.first().map(String::as_str).unwrap_or_default();
            let known = members(schema, &path);
            let near = nearest(field, known.iter().map(String::as_str));
            let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            let expected = match known.is_empty() {
                true => "no members".to_owned(),
                false => format!("one of {}", known.join(", ")),
            };
            let message = format!("{at} cannot have `{field}`{near}");
            (format!("{path}/{field}"), expected, message)
        }
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default().to_owned();
            let message = format!("{at} must have `{name}`");
            (format!("{path}/{name}"), "a value".to_owned(), message)
        }
        Kind::Type { .. } => {
            let wanted = schema_at(schema, &error.schema_path().to_string());
            let wanted = wanted.map_or_else(String::new, types);
            let message = format!("{at} must be {wanted}, got {found}");
            (path, wanted, message)
        }
        Kind::Enum { options } => {
            let options = options.as_array().cloned().unwrap_or_default();
            let options: Vec<String> = options.iter().map(Json::to_string).collect();
            let expected = format!("one of {}", options.join(", "));
            let message = format!("{at} must be {expected}, got {found}");
            (path, expected, message)
        }
        kind => {
            let expected = limit(kind);
            let message = match &expected {
                Some(expected) => format!("{at} must be {expected}, got {found}"),
                None => format!("{at}: {error}"),
            };
            let expected = expected.unwrap_or_else(|| "a value that the schema allows".to_owned());
            (path, expected, message)
        }
    };
    KitError::invalid(path, expected, message)
}

/// Returns what a limit of a schema allows.
fn limit(kind: &Kind) -> Option<String> {
    let many = |count: &u64, one: &str| match count {
        1 => format!("1 {one}"),
        count => format!("{count} {one}s"),
    };
    Some(match kind {
        Kind::MinLength { limit } => format!("a text of at least {}", many(limit, "character")),
        Kind::MaxLength { limit } => format!("a text of at most {}", many(limit, "character")),
        Kind::MinItems { limit } => format!("a list of at least {}", many(limit, "item")),
        Kind::MaxItems { limit } => format!("a list of at most {}", many(limit, "item")),
        Kind::MinProperties { limit } => {
            format!("an object with at least {}", many(limit, "member"))
        }
        Kind::MaxProperties { limit } => {
            format!("an object with at most {}", many(limit, "member"))
        }
        Kind::Minimum { limit } => format!("a number of at least {limit}"),
        Kind::Maximum { limit } => format!("a number of at most {limit}"),
        Kind::Pattern { pattern } => format!("a text that matches `{pattern}`"),
        Kind::Constant { expected_value } => expected_value.to_string(),
        Kind::UniqueItems => "a list without repeated items".to_owned(),
        _ => return None,
    })
}

/// Returns the names of the members that the schema has at a place of the arguments.
fn members(schema: &Json, path: &str) -> Vec<String> {
    let mut at = schema;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let inner = match at["properties"].get(part) {
            Some(inner) => inner,
            None => &at["items"],
        };
        at = followed(schema, inner);
    }
    let members = at["properties"].as_object();
    members.map_or_else(Vec::new, |members| members.keys().cloned().collect())
}

fn schema_at<'a>(schema: &'a Json, path: &str) -> Option<&'a Json> {
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    parts.try_fold(schema, |at, part| match part {
        "$ref" => Some(followed(schema, at)),
        part => match at {
            Json::Array(items) => items.get(part.parse::<usize>().ok()?),
            at => at.get(part.replace("~1", "/").replace("~0", "~")),
        },
    })
}

/// Returns the definition that a schema refers to; a schema that refers to none is itself.
fn followed<'a>(schema: &'a Json, at: &'a Json) -> &'a Json {
    let place = at["$ref"]
        .as_str()
        .and_then(|place| place.strip_prefix('#'));
    place.and_then(|place| schema.pointer(place)).unwrap_or(at)
}

/// Returns the names of types in words.
fn types(wanted: &Json) -> String {
    let word = |name: &Json| match name.as_str().unwrap_or_default() {
        "array" => "a list",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "null" => "null",
        "number" => "a number",
        "object" => "an object",
        _ => "a string",
    };
    match wanted {
        Json::Array(names) => names.iter().map(word).collect::<Vec<_>>().join(" or "),
        name => word(name).to_owned(),
    }
}

fn shown(value: &Json) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Arguments that share a name with what the server binds and are something else: the slug of a connection.
const OWN: &[(&str, &str)] = &[("request_connection", "slug")];

/// Returns what is wrong with a row of the catalogue: every schema of an object is closed, nothing that the server binds is in
/// it, and what only reads asks nobody.
pub fn problems(tool: &Tool) -> Vec<String> {
    let mut problems = Vec::new();
    let input = (tool.input)();
    open_places(&input, "", &mut problems);
    for field in tool.bound.iter().flat_map(|bound| bound.fields()) {
        let is_own = OWN.contains(&(tool.name, *field));
        if !is_own && input["properties"].get(field).is_some() {
            problems.push(format!("the bound field `{field}` is in the schema"));
        }
    }
    if tool.read_only && tool.permission != Permission::Allow {
        problems.push("it only reads, and asks".to_owned());
    }
    for (name, schema) in [("input", &input), ("output", &(tool.output)())] {
        if let Err(error) = jsonschema::validator_for(schema) {
            problems.push(format!("the {name} schema is not valid: {error}"));
        }
        if schema["type"] != json!("object") {
            problems.push(format!("the {name} schema is not of an object"));
        }
    }
    let named = problems.into_iter();
    named
        .map(|problem| format!("{}: {problem}", tool.name))
        .collect()
}

/// Finds schemas of objects that take members which they do not name. A schema says so by `additionalProperties` being
/// true or a schema.
fn open_places(schema: &Json, path: &str, problems: &mut Vec<String>) {
    let Some(members) = schema.as_object() else {
        return;
    };
    if members.contains_key("properties") && !members.contains_key("additionalProperties") {
        problems.push(format!("the schema at `{path}` is not closed"));
    }
    for (name, inner) in members {
        match inner {
            Json::Object(_) => open_places(inner, &format!("{path}/{name}"), problems),
            Json::Array(items) => {
                let items = items.iter().enumerate();
                items
                    .for_each(|(at, it)| open_places(it, &format!("{path}/{name}/{at}"), problems));
            }
            _ => {}
        }
    }
}
