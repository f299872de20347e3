//! Schemas as JSON Schema, for models and for other programs.

use serde_json::{Map as JsonMap, Value as Json, json};

use super::{Entry, Kind, ListForm, Notes, Range, Registry, Schema, Size};
use crate::json::{name_text, to_json};
use crate::text::brief;

/// Returns a schema as JSON Schema (2020-12). Named schemas go to `$defs`. A `:map` is closed only if the schema closes
/// it; see [`closed`] for the form that models receive.
pub fn to_json_schema(schema: &Schema) -> Json {
    let mut writer = Writer::default();
    let mut json = writer.schema(schema);
    if let (Some(object), false) = (json.as_object_mut(), writer.definitions.is_empty()) {
        object.insert("$defs".to_owned(), Json::Object(writer.definitions));
    }
    json
}

#[derive(Default)]
struct Writer {
    definitions: JsonMap<String, Json>,
}

impl Writer {
    fn schema(&mut self, schema: &Schema) -> Json {
        with_notes(self.kind(&schema.kind), &schema.notes)
    }

    fn kind(&mut self, kind: &Kind) -> Json {
        match kind {
            Kind::Any | Kind::Predicate(_) => json!({}),
            Kind::Some => json!({"not": {"type": "null"}}),
            Kind::Nil => json!({"type": "null"}),
            Kind::String { size } => {
                sized(json!({"type": "string"}), *size, ("minLength", "maxLength"))
            }
            Kind::Int { range } => ranged(json!({"type": "integer"}), *range),
            Kind::Double { range } | Kind::Number { range } => {
                ranged(json!({"type": "number"}), *range)
            }
            Kind::Boolean => json!({"type": "boolean"}),
            Kind::Keyword | Kind::Symbol => json!({"type": "string"}),
            Kind::Uuid => json!({"type": "string", "format": "uuid"}),
            Kind::Inst => json!({"type": "string", "format": "date-time"}),
            Kind::Regex { source, .. } => json!({"type": "string", "pattern": &**source}),
            Kind::AnyMap => json!({"type": "object"}),
            Kind::Map { entries, closed } => self.map(entries, *closed),
            Kind::MapOf { value, size, .. } => {
                let inner = self.schema(value);
                let map = json!({"type": "object", "additionalProperties": inner});
                sized(map, *size, ("minProperties", "maxProperties"))
            }
            Kind::List { item, size, form } => {
                let mut list = json!({"type": "array", "items": self.schema(item)});
                if *form == ListForm::Set {
                    list["uniqueItems"] = Json::Bool(true);
                }
                sized(list, *size, ("minItems", "maxItems"))
            }
            Kind::Tuple(schemas) => {
                let items: Vec<Json> = schemas.iter().map(|schema| self.schema(schema)).collect();
                let count = items.len();
                json!({"type": "array", "prefixItems": items, "items": false, "minItems": count, "maxItems": count})
            }
            Kind::Enum(values) => {
                let values: Vec<Json> = values.iter().map(constant).collect();
                match values.iter().all(Json::is_string) {
                    true => json!({"type": "string", "enum": values}),
                    false => json!({"enum": values}),
                }
            }
            Kind::Equals(value) => json!({"const": constant(value)}),
            Kind::Maybe(inner) => json!({"anyOf": [self.schema(inner), {"type": "null"}]}),
            Kind::Or(schemas) => json!({"anyOf": self.all(schemas)}),
            Kind::And(schemas) => json!({"allOf": self.all(schemas)}),
            Kind::Not(inner) => json!({"not": self.schema(inner)}),
            Kind::Multi { cases, .. } => {
                let cases: Vec<Json> = cases.iter().map(|case| self.schema(&case.1)).collect();
                json!({"anyOf": cases})
            }
            Kind::Reference { name, registry } => self.reference(name, registry),
        }
    }

    fn map(&mut self, entries: &[Entry], closed: bool) -> Json {
        let mut properties = JsonMap::new();
        let mut required = Vec::new();
        for entry in entries {
            let name = name_text(&entry.key).unwrap_or_else(|| brief(&entry.key));
            let schema = with_notes(self.schema(&entry.schema), &entry.notes);
            if !entry.optional {
                required.push(Json::from(name.as_str()));
            }
            properties.insert(name, schema);
        }
        let mut map = json!({"type": "object", "properties": properties, "required": required});
        if closed {
            map["additionalProperties"] = Json::Bool(false);
        }
        map
    }

    fn reference(&mut self, name: &str, registry: &Registry) -> Json {
        let key: String = name
            .chars()
            .map(|char| {
                if char.is_ascii_alphanumeric() || char == '-' {
                    char
                } else {
                    '_'
                }
            })
            .collect();
        if !self.definitions.contains_key(&key) {
            // Reserved before the definition is written, since it may refer to itself.
            self.definitions.insert(key.clone(), Json::Null);
            let target = registry.borrow().get(name).cloned();
            let definition = target.map_or(json!({}), |target| self.schema(&target));
            self.definitions.insert(key.clone(), definition);
        }
        json!({"$ref": format!("#/$defs/{key}")})
    }

    fn all(&mut self, schemas: &[Schema]) -> Vec<Json> {
        schemas.iter().map(|schema| self.schema(schema)).collect()
    }
}

/// Closes every object of a JSON Schema that lists its properties, as the strict modes of model providers require.
pub fn closed(schema: &mut Json) {
    match schema {
        Json::Object(object) => {
            let is_map = object.get("type").is_some_and(|kind| kind == "object");
            if is_map
                && object.contains_key("properties")
                && !object.contains_key("additionalProperties")
            {
                object.insert("additionalProperties".to_owned(), Json::Bool(false));
            }
            object.values_mut().for_each(closed);
        }
        Json::Array(items) => items.iter_mut().for_each(closed),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

fn constant(value: &flowstone_lang::value::Value) -> Json {
    to_json(value).unwrap_or_else(|_| Json::from(brief(value)))
}

fn sized(mut schema: Json, size: Size, (min, max): (&str, &str)) -> Json {
    if let Some(count) = size.min {
        schema[min] = Json::from(count);
    }
    if let Some(count) = size.max {
        schema[max] = Json::from(count);
    }
    schema
}

fn ranged(mut schema: Json, range: Range) -> Json {
    let (min, max) = match range.exclusive {
        true => ("exclusiveMinimum", "exclusiveMaximum"),
        false => ("minimum", "maximum"),
    };
    if let Some(bound) = range.min {
        schema[min] = bound_json(bound);
    }
    if let Some(bound) = range.max {
        schema[max] = bound_json(bound);
    }
    schema
}

fn bound_json(bound: f64) -> Json {
    match bound.fract() == 0.0 && bound.abs() < 9e15 {
        true => Json::from(bound as i64),
        false => Json::from(bound),
    }
}

fn with_notes(mut schema: Json, notes: &Notes) -> Json {
    let Some(object) = schema.as_object_mut() else {
        return schema;
    };
    if let Some(title) = &notes.title {
        object.insert("title".to_owned(), Json::from(title.as_str()));
    }
    if let Some(description) = &notes.description {
        object.insert("description".to_owned(), Json::from(description.as_str()));
    }
    if let Some(default) = notes
        .default
        .as_ref()
        .and_then(|default| to_json(default).ok())
    {
        object.insert("default".to_owned(), default);
    }
    let fragment = notes
        .json_schema
        .as_ref()
        .and_then(|fragment| to_json(fragment).ok());
    if let Some(Json::Object(fragment)) = fragment {
        object.extend(fragment);
    }
    schema
}
