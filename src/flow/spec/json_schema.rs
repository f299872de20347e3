//! JSON Schemas (2020-12) of the configs of step types, for other programs and for models.
//!
//! Configs keep the spelling of flows (`max-chars`). Tools have names that every provider accepts (`max_chars`), and
//! only the step's own fields. [`respelled`] converts both spellings, and camelCase, to that of flows.

use flowstone_lang::value::Value;
use flowstone_model::names::name_of;
use serde_json::{Map as JsonMap, Value as Json, json};

use super::{COMMON, Field, FieldType, Operation, StepSpec};
use crate::codec;
use crate::json::{items, to_json};
use crate::schema;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The spelling of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// The spelling of flows.
    Kebab,
    /// The spelling for models.
    Snake,
}

impl Spelling {
    fn of(self, name: &str) -> String {
        match self {
            Spelling::Kebab => name.to_owned(),
            Spelling::Snake => name.trim_end_matches(['?', '!']).replace(['-', '/'], "_"),
        }
    }
}

/// Returns the schema of a step type's config.
pub fn config_schema(spec: &StepSpec) -> Json {
    let mut out = head(spec.kind, spec.doc);
    let common: Vec<&Field> = COMMON
        .iter()
        .filter(|common| spec.fields.iter().all(|own| own.name != common.name))
        .collect();
    match &spec.operations {
        None => {
            let own = spec.fields.iter();
            let fields: Vec<(&Field, bool)> = own
                .map(|field| (field, field.required))
                .chain(common.iter().map(|field| (*field, false)))
                .collect();
            merge(&mut out, object(&fields, Spelling::Kebab));
        }
        Some(operations) => {
            // The default operation.
            let key = spec.fields.iter().find(|it| it.name == operations.key);
            let usual = key.and_then(|key| key.default);
            let usual = usual.map(|name| name.trim_start_matches(':'));
            let each = operations.all.iter();
            let cases: Vec<Json> = each
                .map(|operation| {
                    let mut case = json!({"title": operation.name, "description": operation.doc});
                    let fields = fields_of(spec, operation);
                    merge(&mut case, object(&fields, Spelling::Kebab));
                    put_operation(&mut case, spec, operation, usual == Some(operation.name));
                    // The common options appear once, outside of the cases.
                    if let Some(case) = case.as_object_mut() {
                        case.remove("additionalProperties");
                    }
                    case
                })
                .collect();
            let common: Vec<(&Field, bool)> = common.iter().map(|field| (*field, false)).collect();
            let shared = object(&common, Spelling::Kebab);
            out["type"] = json!("object");
            out["properties"] = shared["properties"].clone();
            if usual.is_none() && key.is_none_or(|key| key.aliases.is_empty()) {
                out["required"] = json!([operations.key]);
            }
            out["oneOf"] = Json::Array(cases);
            out["unevaluatedProperties"] = json!(false);
        }
    }
    out
}

/// Returns the schema of the config of one operation of a step type.
pub fn operation_schema(spec: &StepSpec, operation: &Operation) -> Json {
    let mut out = head(&format!("{} {}", spec.kind, operation.name), operation.doc);
    let mut fields = fields_of(spec, operation);
    let own = |name: &str| spec.fields.iter().any(|own| own.name == name);
    let common = COMMON.iter().filter(|common| !own(common.name));
    fields.extend(common.map(|field| (field, false)));
    merge(&mut out, object(&fields, Spelling::Kebab));
    put_operation(&mut out, spec, operation, false);
    out
}

/// Returns the schema of a model's arguments if a step, or one of its operations, is a tool: only the step's own
/// fields, in names that providers accept.
pub fn tool_schema(spec: &StepSpec, operation: Option<&Operation>) -> Json {
    let fields: Vec<(&Field, bool)> = match operation {
        Some(operation) => fields_of(spec, operation),
        None => {
            let own = spec.fields.iter();
            own.map(|field| (field, field.required)).collect()
        }
    };
    object(&fields, Spelling::Snake)
}

/// Returns the schema of the result of an operation, from its Malli schema.
pub fn result_schema(operation: &Operation) -> Option<Json> {
    let form = codec::decode(operation.gives).ok()?;
    let parsed = schema::parse(&form).ok()?;
    Some(schema::to_json_schema(&parsed))
}

fn head(title: &str, doc: &str) -> Json {
    json!({"$schema": DIALECT, "title": title, "description": doc})
}

fn merge(out: &mut Json, more: Json) {
    if let (Json::Object(out), Json::Object(more)) = (out, more) {
        out.extend(more);
    }
}

/// Returns the fields of an operation, each with whether it is required. The field that names the operation is left
/// out.
fn fields_of(spec: &StepSpec, operation: &Operation) -> Vec<(&'static Field, bool)> {
    let needed = operation.needs.iter().map(|name| (*name, true));
    let taken = operation.takes.iter().map(|name| (*name, false));
    let named = needed.chain(taken);
    named
        .filter_map(|(name, is_needed)| Some((spec.field(name)?, is_needed)))
        .collect()
}

/// Adds the key that names the operation. With `is_usual`, the operation is the default one.
fn put_operation(out: &mut Json, spec: &StepSpec, operation: &Operation, is_usual: bool) {
    let Some(operations) = &spec.operations else {
        return;
    };
    let key = operations.key;
    let aliases = spec.field(key).map_or(&[][..], |field| field.aliases);
    for name in [key].iter().chain(aliases) {
        out["properties"][*name] = json!({"const": operation.name});
    }
    if is_usual {
        return;
    }
    if !aliases.is_empty() {
        let names = [key].into_iter().chain(aliases.iter().copied());
        let each = names.map(|name| json!({"required": [name]}));
        out["oneOf"] = each.collect();
    } else if let Some(required) = out["required"].as_array_mut() {
        required.insert(0, json!(key));
    }
}

fn object(fields: &[(&Field, bool)], spelling: Spelling) -> Json {
    let mut properties = JsonMap::new();
    let mut required = Vec::new();
    for (field, is_needed) in fields {
        let name = spelling.of(field.name);
        let mut property = of_type(field.type_, spelling);
        property["description"] = json!(field.doc);
        let default = field.default.and_then(|text| codec::decode(text).ok());
        if let Some(default) = default.and_then(|value| to_json(&value).ok()) {
            property["default"] = default;
        }
        if *is_needed {
            required.push(json!(name));
        }
        properties.insert(name, property);
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn of_type(type_: FieldType, spelling: Spelling) -> Json {
    match type_ {
        FieldType::Any => json!({}),
        FieldType::Text | FieldType::Name => json!({"type": "string"}),
        FieldType::Int => json!({"type": "integer"}),
        FieldType::Number => json!({"type": "number"}),
        FieldType::Bool => json!({"type": "boolean"}),
        FieldType::Map => json!({"type": "object"}),
        FieldType::Items => json!({"type": "array"}),
        FieldType::Duration => json!({
            "anyOf": [
                {"type": "number", "minimum": 0},
                {"type": "string", "pattern": "^\\s*[0-9.]+\\s*([a-z]+\\s*([0-9.]+\\s*[a-z]+\\s*)*)?$"},
            ],
        }),
        // Code as text, the id of a function, or a map or vector that is called as a function.
        FieldType::Function => json!({"type": ["string", "object", "array"]}),
        FieldType::OneOf(names) => json!({"type": "string", "enum": names}),
        FieldType::Keys(fields) => {
            let fields: Vec<(&Field, bool)> =
                fields.iter().map(|field| (field, field.required)).collect();
            object(&fields, spelling)
        }
        FieldType::List(item) => json!({"type": "array", "items": of_type(*item, spelling)}),
        FieldType::IntIn(least, most) => {
            json!({"type": "integer", "minimum": least, "maximum": most})
        }
        FieldType::Either(types) => {
            let each = types.iter().map(|type_| of_type(*type_, spelling));
            json!({"anyOf": each.collect::<Vec<_>>()})
        }
    }
}

/// Returns a config in the spelling of flows. Keys of the step type, at any depth that its spec describes, may be given
/// in snake_case or camelCase. Keys of maps with arbitrary keys (headers, rows ...) are unchanged.
pub fn respelled(spec: &StepSpec, config: &Value) -> Value {
    let own = spec.fields.iter();
    let common = COMMON
        .iter()
        .filter(|common| spec.fields.iter().all(|own| own.name != common.name));
    let fields: Vec<&Field> = own.chain(common).collect();
    respelled_map(&fields, config)
}

fn respelled_map(fields: &[&Field], value: &Value) -> Value {
    let Some(map) = value.as_map() else {
        return value.clone();
    };
    Value::map(map.iter().map(|(key, inner)| {
        let name = name_of(key).unwrap_or_default();
        let field = fields
            .iter()
            .find(|field| field.is_called(&name))
            .or_else(|| fields.iter().find(|field| is_spelling(field.name, &name)));
        match field {
            Some(field) => (
                Value::keyword(field.name),
                respelled_value(field.type_, inner),
            ),
            None => (key.clone(), inner.clone()),
        }
    }))
}

fn respelled_value(type_: FieldType, value: &Value) -> Value {
    match type_ {
        FieldType::Keys(fields) => {
            let fields: Vec<&Field> = fields.iter().collect();
            respelled_map(&fields, value)
        }
        FieldType::List(item) => match items(value) {
            Some(items) => Value::vector(items.iter().map(|inner| respelled_value(*item, inner))),
            None => value.clone(),
        },
        FieldType::Either(types) => types
            .iter()
            .map(|type_| respelled_value(*type_, value))
            .find(|respelled| respelled != value)
            .unwrap_or_else(|| value.clone()),
        _ => value.clone(),
    }
}

/// Tells whether a name is another spelling of a field.
fn is_spelling(field: &str, given: &str) -> bool {
    let plain = |name: &str| -> String {
        let name = name.trim_end_matches(['?', '!']);
        let letters = name.chars().filter(|char| !matches!(char, '-' | '_'));
        letters.flat_map(char::to_lowercase).collect()
    };
    plain(field) == plain(given)
}
