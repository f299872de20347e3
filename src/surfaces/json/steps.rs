//! Step types, and what they take.

use flowstone_flow::step::{COMMON, Effect, Field, FieldType, Operation, StepSpec};
use serde_json::{Value as Json, json};

/// Returns a step type of a list as JSON. The names of the fields are stable.
pub fn step_summary_json(spec: &StepSpec) -> Json {
    json!({
        "type": spec.kind,
        "aliases": spec.aliases,
        "doc": spec.doc,
        "effect": effect_name(spec.effect),
        "operations": operation_names(spec),
    })
}

pub fn operation_names(spec: &StepSpec) -> Vec<&'static str> {
    let operations = spec.operations.iter();
    operations
        .flat_map(|operations| operations.all.iter().map(|operation| operation.name))
        .collect()
}

pub fn spec_json(spec: &StepSpec) -> Json {
    let operations = spec.operations.iter();
    let operations: Vec<Json> = operations
        .flat_map(|operations| operations.all.iter().map(operation_json))
        .collect();
    json!({
        "type": spec.kind,
        "aliases": spec.aliases,
        "doc": spec.doc,
        "effect": effect_name(spec.effect),
        "operationKey": spec.operations.map(|operations| operations.key),
        "operations": operations,
        "fields": spec.fields.iter().map(field_json).collect::<Vec<_>>(),
        "common": COMMON.iter().map(field_json).collect::<Vec<_>>(),
        "examples": spec.examples,
    })
}

pub fn operation_json(operation: &Operation) -> Json {
    json!({
        "name": operation.name,
        "doc": operation.doc,
        "needs": operation.needs,
        "takes": operation.takes,
        "gives": operation.gives,
        "effect": effect_name(operation.effect),
        "forAgents": operation.for_agents,
    })
}

pub fn field_json(field: &Field) -> Json {
    json!({
        "name": field.name,
        "aliases": field.aliases,
        "type": type_name(&field.type_),
        "doc": field.doc,
        "required": field.required,
        "default": field.default,
    })
}

pub fn effect_name(effect: Effect) -> &'static str {
    match effect {
        Effect::Pure => "pure",
        Effect::Read => "read",
        Effect::OwnStore => "own-store",
        Effect::External => "external",
        Effect::Steps => "steps",
    }
}

/// Describes the type of a value under a key.
pub fn type_name(field: &FieldType) -> String {
    match field {
        FieldType::Any => "any".to_owned(),
        FieldType::Text => "string".to_owned(),
        FieldType::Name => "keyword or string".to_owned(),
        FieldType::Int => "integer".to_owned(),
        FieldType::Number => "number".to_owned(),
        FieldType::Bool => "boolean".to_owned(),
        FieldType::Map => "map".to_owned(),
        FieldType::Items => "vector, list or set".to_owned(),
        FieldType::Duration => "duration".to_owned(),
        FieldType::Function => "function".to_owned(),
        FieldType::OneOf(names) => {
            let names: Vec<String> = names.iter().map(|name| format!("`:{name}`")).collect();
            names.join(", ")
        }
        FieldType::Keys(fields) => {
            let names: Vec<String> = fields
                .iter()
                .map(|field| format!("`:{}`", field.name))
                .collect();
            format!("map of {}", names.join(", "))
        }
        FieldType::List(type_) => format!("vector of {}", type_name(type_)),
        FieldType::IntIn(least, most) => format!("integer, {least} to {most}"),
        FieldType::Either(types) => {
            let names: Vec<String> = types.iter().map(type_name).collect();
            names.join(" or ")
        }
    }
}
