//! Warnings for the author of a spec in a project, in addition to what the project lacks: tools that the model does not see,
//! models that another connection answers for, and literal arguments that a tool does not take.

use serde_json::{Value as Json, json};

use super::compile::Target;
use super::known::{Missing, Origin};
use super::models::Models;
use super::shape::{Issue, below, shown};
use super::spec::{GraphSpec, LlmNode, Node, ToolNode};
use super::template;

/// Returns a warning for each model that another connection answers for, only because it has the usual name.
pub fn assumed_models(spec: &GraphSpec, models: &Models) -> Vec<Issue> {
    let mut found = Vec::new();
    for id in spec.chain() {
        if let Some(Node::Llm(node)) = spec.nodes.get(id)
            && let Some(connection) = models.assumed(&node.model)
        {
            let path = [json!("nodes"), json!(id), json!("model")];
            let message = format!(
                "no connection of the project lists the model `{}`, so runs use the connection `{connection}` with its own model",
                node.model
            );
            found.push(Issue::at(&path, message));
        }
    }
    found
}

/// Returns all warnings.
pub fn remarks(spec: &GraphSpec, target: &Target<'_>) -> Vec<Issue> {
    let mut remarks = assumed_models(spec, target.models);
    for id in spec.chain() {
        let path = [json!("nodes"), json!(id)];
        match spec.nodes.get(id) {
            Some(Node::Llm(node)) => of_llm(spec, target, node, &path, &mut remarks),
            Some(Node::Tool(node)) => of_tool(spec, target, node, &path, &mut remarks),
            Some(Node::End(_)) | None => {}
        }
    }
    remarks
}

fn of_llm(
    spec: &GraphSpec,
    target: &Target<'_>,
    node: &LlmNode,
    path: &[Json],
    remarks: &mut Vec<Issue>,
) {
    let path = below(path, "tools");
    for (idx, tool) in node.tools.iter().enumerate() {
        if target.known.tool(spec, tool).err() == Some(Missing::Unmarked) {
            let message = format!(
                "the function `{}` is not marked as a tool (`agent_tool` is false), so the model does not see it",
                tool.name
            );
            remarks.push(Issue::at(&below(&path, idx), message));
        }
    }
}

/// Compares the arguments of a tool node with the schema of its tool. The tools of MCP servers are known only in a run.
fn of_tool(
    spec: &GraphSpec,
    target: &Target<'_>,
    node: &ToolNode,
    path: &[Json],
    remarks: &mut Vec<Issue>,
) {
    let Ok(tool) = target.known.tool(spec, &node.tool_ref) else {
        return;
    };
    let (schema, is_closed) = match &tool.origin {
        Origin::Builtin(builtin) => (builtin.schema(), true),
        Origin::Function(function) => (function.input_schema.clone(), false),
        Origin::Mcp(_) => return,
    };
    let is_closed = is_closed || schema["additionalProperties"] == json!(false);
    let path = below(path, "args_template");
    let required: Vec<Vec<&str>> = match &tool.origin {
        Origin::Builtin(builtin) => builtin.required(),
        Origin::Function(_) | Origin::Mcp(_) => {
            let names = schema["required"].as_array().into_iter().flatten();
            names
                .filter_map(Json::as_str)
                .map(|name| vec![name])
                .collect()
        }
    };
    for names in required {
        let is_given = names.iter().any(|it| node.args_template.contains_key(*it));
        if let Some(name) = names.first().filter(|_| !is_given) {
            let message = format!("the tool `{}` needs the argument `{name}`", tool.name);
            remarks.push(Issue::at(&path, message));
        }
    }
    for (name, given) in &node.args_template {
        let at = below(&path, name.as_str());
        match schema["properties"].get(name) {
            None if is_closed => {
                let message = format!("the tool `{}` has no argument `{name}`", tool.name);
                remarks.push(Issue::at(&at, message));
            }
            None => {}
            Some(property) => remarks.extend(misfit(property, given).map(|it| Issue::at(&at, it))),
        }
    }
}

/// Returns why a literal does not fit the schema of an argument. What a template inserts is known only in a run.
fn misfit(property: &Json, given: &Json) -> Option<String> {
    if given
        .as_str()
        .is_some_and(|text| !template::tags(text).0.is_empty())
    {
        return None;
    }
    if let Some(known) = property["enum"].as_array().filter(|it| !it.contains(given)) {
        let known: Vec<String> = known.iter().map(Json::to_string).collect();
        return Some(format!(
            "expected one of {}, got {}",
            known.join(", "),
            shown(given)
        ));
    }
    let types: Vec<&str> = match &property["type"] {
        Json::String(one) => vec![one],
        Json::Array(several) => several.iter().filter_map(Json::as_str).collect(),
        _ => return None,
    };
    let fits = types.iter().any(|kind| is_of(kind, given));
    (!fits).then(|| format!("expected {}, got {}", types.join(" or "), shown(given)))
}

fn is_of(kind: &str, given: &Json) -> bool {
    match kind {
        "array" => given.is_array(),
        "boolean" => given.is_boolean(),
        "integer" => given.as_f64().is_some_and(|number| number.fract() == 0.0),
        "null" => given.is_null(),
        "number" => given.is_number(),
        "object" => given.is_object(),
        "string" => given.is_string(),
        // A kind of another version of JSON Schema.
        _ => true,
    }
}
