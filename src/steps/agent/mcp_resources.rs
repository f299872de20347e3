//! `:resources true` of an MCP server: two tools with which a model lists and reads the resources of the server.
//!
//! Both only read. Their nested steps are the operations `:list-resources` and `:read-resource` of `:mcp`.

use std::rc::Rc;

use flowstone_flow::flow::McpAdapter;
use flowstone_flow::step::StepError;
use flowstone_lang::value::Value;
use serde_json::{Value as Json, json};

use super::notes::facts;
use super::tool::{Tool, ToolKind, ToolStep};
use super::tools::{Shape, within};
use crate::json::items;
use crate::mcp::SPEC;

/// The names of the tools after the prefix of their server.
const LIST: &str = "list_resources";
const READ: &str = "read_resource";

/// The server of the tools.
pub(super) struct Server<'a> {
    pub adapter: &'a Rc<McpAdapter>,
    /// Headers of the requests.
    pub headers: &'a [(Value, Value)],
    /// Returns the name of a tool for the model.
    pub name: &'a dyn Fn(&str) -> String,
    /// Maximum length of a result, in characters.
    pub most: usize,
}

/// Returns the tools for the resources of a server. `taken` tells whether a tool of the server has a name already.
///
/// # Errors
/// E0836 when a schema cannot be made.
pub(super) fn of(
    server: &Server<'_>,
    taken: impl Fn(&str) -> bool,
) -> Result<Vec<Tool>, StepError> {
    let id = &server.adapter.connection;
    let list = Described {
        own: LIST,
        operation: "list-resources",
        description: format!(
            "Lists the resources of `{id}`: their URIs, names, descriptions and types."
        ),
        parameters: json!({"type": "object", "properties": {}, "additionalProperties": false}),
    };
    let read = Described {
        own: READ,
        operation: "read-resource",
        description: format!("Reads a resource of `{id}`."),
        parameters: json!({
            "type": "object",
            "properties": {"uri": {"type": "string", "minLength": 1, "description": "The URI of the resource, as it is listed."}},
            "required": ["uri"],
            "additionalProperties": false,
        }),
    };
    let free = [list, read].into_iter();
    let free = free.filter(|it| !taken(&(server.name)(it.own)));
    free.map(|it| tool(server, it)).collect()
}

struct Described {
    own: &'static str,
    operation: &'static str,
    description: String,
    parameters: Json,
}

fn tool(server: &Server<'_>, described: Described) -> Result<Tool, StepError> {
    let name = (server.name)(described.own);
    let shape = Shape::new(&name, &described.parameters)
        .map_err(|error| StepError::config("E0836", error))?;
    let (adapter, most) = (server.adapter.id.clone(), server.most);
    let headers = server.headers.to_vec();
    let operation = described.operation;
    Ok(Tool {
        step: format!("{}/{}", server.adapter.namespace(), described.own).into(),
        kind: ToolKind::Mcp,
        description: described.description,
        parameters: described.parameters,
        ops: Vec::new(),
        call: Rc::new(move |given| {
            let given = shape.read(given)?;
            let mut config = vec![
                ("op", Value::keyword(operation)),
                ("adapter", Value::keyword(&adapter)),
            ];
            config.extend(given.get("uri").map(|uri| ("uri", uri.clone())));
            if !headers.is_empty() {
                config.push(("headers", Value::map(headers.clone())));
            }
            Ok(ToolStep {
                kind: SPEC.kind.into(),
                config: facts(config),
            })
        }),
        mutates: Rc::new(|_| false),
        needs_approval: Rc::new(|_| false),
        answer: Rc::new(move |_, value| within(shown(value), most)),
        name: name.into(),
    })
}

/// Returns the contents of a resource as text; a list of resources stays data.
fn shown(value: Value) -> Value {
    let Some(contents) = value.get("contents").and_then(items) else {
        return value;
    };
    let texts = contents.iter().map(|content| {
        let text = |key: &str| content.get(key).and_then(Value::as_str);
        let own = text("text").unwrap_or_default();
        match (text("uri"), contents.len()) {
            (Some(uri), 2..) => format!("{uri}:\n{own}"),
            _ => own.to_owned(),
        }
    });
    Value::from(texts.collect::<Vec<String>>().join("\n\n"))
}
