//! `GET /api/v1/openapi.json`: the API's document, in the format of OpenAPI 3.1.
//!
//! It is made from the operations with which the routes are declared, and from the types of the answers.

use std::sync::LazyLock;

use axum::extract::RawQuery;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use hyper::body::Bytes;
use serde_json::{Map, Value as Json, json};

use super::access::Caller;
use super::operation::{
    Content, Kind, Operation, Operations, Param, Payload, Reply, Shape, Type, of,
};
use super::problem::{Problem, ProblemDocument};
use super::request::Query;

/// Statuses of errors that every operation may answer with.
const REFUSALS: [u16; 10] = [400, 401, 403, 404, 408, 413, 415, 429, 500, 503];
const PROBLEM: &str = "application/problem+json";

pub(super) fn operations() -> Operations {
    Operations::default().with(
        Operation::get(
            "/api/v1/openapi.json",
            "getOpenapi",
            "Returns this document.",
        )
        .ok(Shape::Map(Box::new(Shape::Any))),
        show,
    )
}

async fn show(_caller: Caller, RawQuery(query): RawQuery) -> Result<Response, Problem> {
    // It is large, so it is written once.
    static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| document().to_string().into());
    Query::read(query.as_deref(), &[])?;
    let kind = [(header::CONTENT_TYPE, "application/json")];
    Ok((kind, DOCUMENT.clone()).into_response())
}

/// Returns the API's document.
pub fn document() -> Json {
    let mut schemas = Schemas::default();
    let problem = schemas.shape(&of::<ProblemDocument<'static>>());
    // Some errors have members of their own, such as `errors` and `required`.
    if let Some(problem) = schemas.all.get_mut("Problem") {
        problem["additionalProperties"] = json!(true);
    }
    let mut paths = Map::new();
    for operation in super::operations().all {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.verb.name()] = described(&operation, &mut schemas);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Flowstone",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Starts, follows and answers durable runs of flows.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas.all,
            "responses": {
                "Error": {
                    "description": "An error.",
                    "content": {PROBLEM: {"schema": problem}},
                },
            },
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of `flowstone tokens create`.",
                },
            },
        },
    })
}

fn described(operation: &Operation, schemas: &mut Schemas) -> Json {
    let in_path = operation.path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        Some(json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
    });
    let mut parameters: Vec<Json> = in_path.collect();
    parameters.extend(operation.query.iter().map(|it| parameter(it, "query")));
    parameters.extend(operation.headers.iter().map(|it| parameter(it, "header")));
    let mut responses = Map::new();
    for reply in &operation.replies {
        responses.insert(reply.status.as_str().to_owned(), response(reply, schemas));
    }
    let refusals = REFUSALS.iter().chain(operation.refusals);
    for status in refusals {
        let refusal = json!({"$ref": "#/components/responses/Error"});
        responses.insert(status.to_string(), refusal);
    }
    responses.sort_keys();
    let noun = operation.path.split('/').nth(3).unwrap_or_default();
    let mut shown = json!({
        "operationId": operation.id,
        "summary": operation.doc,
        "tags": [noun.trim_end_matches(".json")],
        "parameters": parameters,
        "responses": responses,
    });
    match operation.payload {
        Payload::Nothing => {}
        Payload::Members(members) => {
            let is_needed = members.iter().any(|member| member.is_needed);
            shown["requestBody"] = json!({
                "required": is_needed,
                "content": {"application/json": {"schema": object(members)}},
            });
        }
        Payload::File => {
            let form = json!({
                "type": "object",
                "properties": {"file": {"type": "string", "format": "binary"}},
                "required": ["file"],
            });
            shown["requestBody"] = json!({
                "required": true,
                "content": {
                    "*/*": {"schema": {"type": "string", "format": "binary"}},
                    "multipart/form-data": {"schema": form},
                },
            });
        }
    }
    if let Some(scope) = operation.scope {
        shown["x-scope"] = json!(scope.name());
    }
    shown
}

fn parameter(param: &Param, place: &str) -> Json {
    json!({
        "name": param.name,
        "in": place,
        "required": param.is_needed,
        "description": param.doc,
        "schema": kind(&param.kind, true),
    })
}

/// Returns the schema of an object with these members.
fn object(members: &[Param]) -> Json {
    let properties: Map<String, Json> = members
        .iter()
        .map(|member| {
            let mut schema = kind(&member.kind, false);
            schema["description"] = json!(member.doc);
            (member.name.to_owned(), schema)
        })
        .collect();
    let needed = members.iter().filter(|member| member.is_needed);
    let needed: Vec<&str> = needed.map(|member| member.name).collect();
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    if !needed.is_empty() {
        schema["required"] = json!(needed);
    }
    schema
}

fn kind(kind: &Kind, is_query: bool) -> Json {
    match kind {
        Kind::Any => json!({}),
        Kind::Duration => json!({"type": "string", "examples": ["30s"]}),
        Kind::Flag => json!({"type": "boolean"}),
        Kind::List => json!({"type": "array"}),
        Kind::Name => json!({"type": ["string", "integer"]}),
        Kind::Number => json!({"type": "integer"}),
        Kind::Object => json!({"type": "object"}),
        Kind::Inner(members) => object(members),
        Kind::Entries(members) => json!({"type": "array", "items": object(members)}),
        Kind::OneOf(names) => json!({"type": "string", "enum": names}),
        // In an address, a list is one text with commas.
        Kind::Texts if is_query => json!({"type": "string", "examples": ["one,other"]}),
        Kind::Text => json!({"type": "string"}),
        Kind::Texts => json!({"type": "array", "items": {"type": "string"}}),
    }
}

fn response(reply: &Reply, schemas: &mut Schemas) -> Json {
    let mut shown = json!({"description": reply.doc});
    match &reply.content {
        Content::Nothing => {}
        Content::Json(shape) => {
            let schema = schemas.shape(shape);
            shown["content"] = json!({"application/json": {"schema": schema}});
        }
        Content::Bytes(media) => {
            shown["content"] = json!({*media: {"schema": {"type": "string"}}});
        }
    }
    shown
}

/// Writes null beside another type as `anyOf`: where the other one may be anything, `oneOf` would refuse null.
fn with_nulls(mut schema: Json) -> Json {
    match &mut schema {
        Json::Object(members) => {
            for member in members.values_mut() {
                *member = with_nulls(member.take());
            }
            if let Some(Json::Array(shapes)) = members.remove("oneOf") {
                let is_any = |shape: &Json| {
                    let members = shape.as_object();
                    members.is_some_and(|it| it.keys().all(|name| name == "description"))
                };
                if !shapes.iter().any(is_any) {
                    members.insert("anyOf".to_owned(), Json::Array(shapes));
                }
            }
        }
        Json::Array(items) => {
            for item in items {
                *item = with_nulls(item.take());
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
    schema
}

/// The schemas of the types that answers consist of.
#[derive(Default)]
struct Schemas {
    all: std::collections::BTreeMap<String, Json>,
}

impl Schemas {
    fn shape(&mut self, shape: &Shape) -> Json {
        match shape {
            Shape::Any => json!({}),
            Shape::Text => json!({"type": "string"}),
            Shape::Flag => json!({"type": "boolean"}),
            Shape::Number => json!({"type": "integer"}),
            Shape::Of(named) => self.named(*named),
            Shape::All(name, all) => self.merged(name, all),
            Shape::ListOf(item) => json!({"type": "array", "items": self.shape(item)}),
            Shape::Maybe(inner) => json!({"anyOf": [self.shape(inner), {"type": "null"}]}),
            Shape::Members(members) => {
                let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
                json!({"type": "object", "properties": self.members(members), "required": names})
            }
            Shape::Some(members) => {
                json!({"type": "object", "properties": self.members(members)})
            }
            Shape::Open(members) => {
                let mut schema = self.shape(&Shape::Members(members.clone()));
                schema["additionalProperties"] = json!(true);
                schema
            }
            Shape::Map(inner) => {
                json!({"type": "object", "additionalProperties": self.shape(inner)})
            }
            Shape::OneOf(shapes) => {
                let shapes: Vec<Json> = shapes.iter().map(|shape| self.shape(shape)).collect();
                json!({ "anyOf": shapes })
            }
        }
    }

    fn members(&mut self, members: &[(&'static str, Shape)]) -> Map<String, Json> {
        let members = members.iter();
        members
            .map(|(name, shape)| ((*name).to_owned(), self.shape(shape)))
            .collect()
    }

    /// Returns a reference to a schema with the members of several types. Later ones take precedence.
    fn merged(&mut self, name: &str, all: &[Type]) -> Json {
        let (mut properties, mut required) = (Map::new(), std::collections::BTreeSet::new());
        for part in all {
            self.add_parts(*part);
            let schema = with_nulls(serde_json::to_value((part.schema)()).unwrap_or_default());
            let members = schema["properties"].as_object().cloned();
            properties.extend(members.unwrap_or_default());
            let needed = schema["required"].as_array().cloned().unwrap_or_default();
            required.extend(needed.iter().filter_map(Json::as_str).map(str::to_owned));
        }
        let schema = json!({"type": "object", "properties": properties, "required": required});
        self.all.insert(name.to_owned(), schema);
        json!({"$ref": format!("#/components/schemas/{name}")})
    }

    fn add_parts(&mut self, named: Type) {
        let mut parts = Vec::new();
        (named.parts)(&mut parts);
        for (name, schema) in parts {
            let schema = || with_nulls(serde_json::to_value(&schema).unwrap_or_default());
            self.all.entry(name).or_insert_with(schema);
        }
    }

    /// Returns a reference to the schema of a type.
    fn named(&mut self, named: Type) -> Json {
        let name = (named.name)().into_owned();
        self.add_parts(named);
        let schema = || with_nulls(serde_json::to_value((named.schema)()).unwrap_or_default());
        self.all.entry(name.clone()).or_insert_with(schema);
        json!({"$ref": format!("#/components/schemas/{name}")})
    }
}
