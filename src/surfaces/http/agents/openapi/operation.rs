//! An operation in the document of the agents API: its parameters, its body and its answers.

use flowstone_fronts::agents::body::{Member, Purpose, schema};
use serde_json::{Map, Value as Json, json};

use super::{answers, queries};

pub(super) fn parameters(path: &str) -> Json {
    let names = path.split('/').filter_map(|part| {
        let name = part.strip_prefix('{')?.strip_suffix('}')?;
        let doc = format!(
            "The id of the {}.",
            name.trim_end_matches("_id").replace('_', " ")
        );
        Some(
            json!({"name": name, "in": "path", "required": true, "description": doc,
                    "schema": {"type": "string"}}),
        )
    });
    names.collect()
}

pub(super) fn described(doc: &str, schema: &Json) -> Json {
    json!({"description": doc, "content": {"application/json": {"schema": schema}}})
}

pub(super) fn refused() -> Json {
    described("An error.", &json!({"$ref": "#/components/schemas/Error"}))
}

/// The operations that answer with 201 if they add something, and with 200 if it was there.
const MAY_BE_NEW: &[&str] = &[
    "addSessionMessage",
    "createActor",
    "createAgentActor",
    "createMemoryEntry",
];

/// Returns the successful answers of an operation, by status.
fn answers_of(method: &str, id: &str) -> Map<String, Json> {
    let mut found = Map::new();
    if method == "delete" {
        found.insert("204".to_owned(), json!({"description": "It is deleted."}));
        return found;
    }
    let is_new =
        id.starts_with("create") && !MAY_BE_NEW.contains(&id) && id != "createAgentGeneration";
    let may_be_new = MAY_BE_NEW.contains(&id);
    let may_be_left = ["addSessionMessage", "generateSessionResponse"].contains(&id);
    let schema = answers::of(id);
    let accepted = json!({"$ref": "#/components/schemas/Accepted"});
    for (is_so, status, doc, schema) in [
        (!is_new, "200", "The answer.", &schema),
        (is_new || may_be_new, "201", "It is added.", &schema),
        (may_be_left, "202", "The generation has started.", &accepted),
    ] {
        if is_so {
            found.insert(status.to_owned(), described(doc, schema));
        }
    }
    if id == "createAgentGeneration" {
        let stream = json!({"schema": {"type": "string"}});
        found["200"]["content"]["text/event-stream"] = stream;
    }
    found
}

pub(super) fn operation(method: &str, id: &str, doc: &str, members: Option<&[Member]>) -> Json {
    let mut responses = answers_of(method, id);
    responses.insert("default".to_owned(), refused());
    let mut operation = json!({"operationId": id, "summary": doc, "responses": responses});
    let queries = queries::of(id);
    if !queries.is_empty() {
        operation["parameters"] = Json::Array(queries);
    }
    let is_change = method == "put" || method == "patch";
    let body = match members {
        Some(members) if is_change => Some(schema(members, Purpose::Change)),
        Some(members) => Some(schema(members, Purpose::New)),
        None if is_change => Some(json!({"$ref": "#/components/schemas/Tags"})),
        None => None,
    };
    if let Some(body) = body {
        let is_needed = is_change || body["required"].as_array().is_some_and(|it| !it.is_empty());
        operation["requestBody"] =
            json!({"required": is_needed, "content": {"application/json": {"schema": body}}});
    }
    operation
}

pub(super) fn error() -> Json {
    json!({
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": {
                    "code": {"type": "string"},
                    "message": {"type": "string"},
                    "meta": {"type": "object"},
                },
                "required": ["code", "message"],
            },
            "docs": {"type": "string", "description": "The address of the page about the error."},
            "request_id": {"type": "string"},
        },
        "required": ["error"],
    })
}
