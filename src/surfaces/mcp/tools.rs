//! `tools/list` and `tools/call`: flows and graph agents, the tools of the workspace, and those that drive trees.

use flowstone_flow::mcp_interfaces::McpKind;
use serde_json::{Map, Value as Json, json};

use super::call::{arguments_of, offered, tool};
use super::offered::Offered;
use super::peer::Request;
use super::protocol::RpcError;
use super::sets::ToolSet;
use super::{agents, content, headers, tree, workspace};

/// The code of arguments that would not arrive as they were sent.
const ROUNDED: &str = "E1216";

/// Returns all tools that the caller may use, by name.
///
/// # Errors
/// When the server is too busy, or is stopping.
pub(super) async fn list(rq: &Request) -> Result<Json, RpcError> {
    let mut tools = Vec::new();
    if rq.sets.has(ToolSet::Flows) {
        let flows = offered(rq, McpKind::Tool).await?;
        tools.extend(flows.iter().map(|it| described(rq, it)));
    }
    if rq.sets.has(ToolSet::Workspace) {
        tools.extend(workspace::list(&rq.caller));
    }
    tools.extend(tree::list(rq).await?);
    let is_new = |tools: &[Json], name: &str| tools.iter().all(|it| it["name"] != name);
    for agent in agents::offered(rq).await? {
        // A flow, or a tool of the server, keeps its name.
        if is_new(&tools, &agent.interface.name) {
            tools.push(described(rq, &agent));
        }
    }
    tools.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    Ok(json!({"tools": tools}))
}

fn described(rq: &Request, offered: &Offered) -> Json {
    let interface = &offered.interface;
    let mut tool = json!({
        "name": interface.name,
        "description": offered.description,
        "inputSchema": offered.schema,
        "_meta": {"flow": offered.flow()},
    });
    if let Some(agent) = &offered.agent {
        tool["_meta"] = json!({"agent": agent});
    }
    if let Some(title) = &interface.title {
        tool["title"] = json!(title);
    }
    if let Some(schema) = &interface.output_schema {
        tool["outputSchema"] = schema.clone();
    }
    if offered.is_reading {
        tool["annotations"] = json!({"readOnlyHint": true});
    }
    if rq.era.has_task_calls() {
        let support = match interface.needs_task {
            true => "required",
            false => "optional",
        };
        tool["execution"] = json!({"taskSupport": support});
    }
    tool
}

/// Calls a tool.
///
/// # Errors
/// When the tool does not exist, or the request is malformed.
pub(super) async fn call(rq: &Request, params: &Map<String, Json>) -> Result<Json, RpcError> {
    let name = params.get("name").and_then(Json::as_str);
    let name = name.ok_or_else(|| RpcError::params("`name` must be the name of a tool"))?;
    if let Some(digits) = &rq.rounded {
        let message = format!(
            "the arguments have the integer {digits} of more than 64 bits, which would be rounded: send it as a text"
        );
        return Ok(content::failed(&message, json!({"code": ROUNDED})));
    }
    if let Some(tool) = tree::find(rq, name) {
        return tree::call(rq, tool, arguments_of(params)?).await;
    }
    let has_workspace = rq.sets.has(ToolSet::Workspace);
    if let Some(operation) = workspace::find(&rq.caller, name).filter(|_| has_workspace) {
        return workspace::call(rq, operation, &arguments_of(params)?).await;
    }
    let all = match rq.sets.has(ToolSet::Flows) {
        true => offered(rq, McpKind::Tool).await?,
        false => Vec::new(),
    };
    let is_named = |it: &Offered| it.interface.name == name;
    let found = match all.into_iter().find(is_named) {
        Some(found) => Some(found),
        None => agents::offered(rq).await?.into_iter().find(is_named),
    };
    match &found {
        Some(found) => {
            if let Some(repeated) = &rq.repeated {
                headers::check(&found.schema, &arguments_of(params)?, repeated)?;
            }
            tool(rq, found, params).await
        }
        None => Err(RpcError::params(format!("there is no tool `{name}`"))),
    }
}
