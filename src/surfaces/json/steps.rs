//! Step types, and what they take.

use flowstone_flow::step::{COMMON, Effect, Field, FieldType, Operation, StepSpec};
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::values::object;

/// A step type of a list.
#[derive(Debug, Serialize, ToSchema)]
pub struct StepTypeSummary {
    r#type: &'static str,
    aliases: Vec<&'static str>,
    doc: &'static str,
    /// `pure`, `read`, `own-store`, `external` or `steps`.
    effect: &'static str,
    operations: Vec<&'static str>,
}

/// A step type with its fields.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepType {
    r#type: &'static str,
    aliases: Vec<&'static str>,
    doc: &'static str,
    effect: &'static str,
    /// The key of a config that names the operation.
    operation_key: Option<&'static str>,
    operations: Vec<StepOperation>,
    fields: Vec<StepField>,
    /// Fields that all step types have.
    common: Vec<StepField>,
    examples: Vec<&'static str>,
}

/// An operation of a step type.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepOperation {
    name: &'static str,
    doc: &'static str,
    needs: Vec<&'static str>,
    takes: Vec<&'static str>,
    gives: Json,
    effect: &'static str,
    for_agents: bool,
}

/// A field of a config.
#[derive(Debug, Serialize, ToSchema)]
pub struct StepField {
    name: &'static str,
    aliases: Vec<&'static str>,
    /// The type in words.
    r#type: String,
    doc: &'static str,
    required: bool,
    default: Option<&'static str>,
}

/// Returns a step type of a list as JSON. The names of the fields are stable.
pub fn step_summary_json(spec: &StepSpec) -> Json {
    object(&StepTypeSummary {
        r#type: spec.kind,
        aliases: spec.aliases.to_vec(),
        doc: spec.doc,
        effect: effect_name(spec.effect),
        operations: operation_names(spec),
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
    let operations = operations.flat_map(|operations| operations.all.iter().map(shown_operation));
    object(&StepType {
        r#type: spec.kind,
        aliases: spec.aliases.to_vec(),
        doc: spec.doc,
        effect: effect_name(spec.effect),
        operation_key: spec.operations.map(|operations| operations.key),
        operations: operations.collect(),
        fields: spec.fields.iter().map(shown_field).collect(),
        common: COMMON.iter().map(shown_field).collect(),
        examples: spec.examples.to_vec(),
    })
}

pub fn operation_json(operation: &Operation) -> Json {
    object(&shown_operation(operation))
}

fn shown_operation(operation: &Operation) -> StepOperation {
    StepOperation {
        name: operation.name,
        doc: operation.doc,
        needs: operation.needs.to_vec(),
        takes: operation.takes.to_vec(),
        gives: object(&operation.gives),
        effect: effect_name(operation.effect),
        for_agents: operation.for_agents,
    }
}

pub fn field_json(field: &Field) -> Json {
    object(&shown_field(field))
}

fn shown_field(field: &Field) -> StepField {
    StepField {
        name: field.name,
        aliases: field.aliases.to_vec(),
        r#type: type_name(&field.type_),
        doc: field.doc,
        required: field.required,
        default: field.default,
    }
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
