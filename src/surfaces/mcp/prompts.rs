//! `prompts/list` and `prompts/get`: the pages of the guide, a prompt to write a flow, and prompts of flows.

use flowstone_flow::mcp_interfaces::McpKind;
use flowstone_project::workspace::pages;
use serde_json::{Map, Value as Json, json};

use super::call::{arguments_of, offered, result_of};
use super::content;
use super::offered::Offered;
use super::peer::Request;
use super::protocol::RpcError;

/// The folder of the guide's pages.
const GUIDE: &str = "guide/";
/// The prefix of the names of their prompts.
const PREFIX: &str = "guide_";
pub(super) const CREATE: &str = "create_flow_from_goal";

/// Returns all prompts, by name.
///
/// # Errors
/// When the server is too busy, or is stopping.
pub(super) async fn list(rq: &Request) -> Result<Json, RpcError> {
    let mut prompts: Vec<Json> = guides()
        .map(|(name, title, _)| {
            json!({"name": name, "title": title, "description": format!("The guide's page: {title}.")})
        })
        .collect();
    prompts.push(json!({
        "name": CREATE,
        "title": "Create a flow from a goal",
        "description": "How to write, check and try a flow that reaches a goal.",
        "arguments": [
            {"name": "goal", "description": "What the flow is to do.", "required": true},
        ],
    }));
    prompts.extend(offered(rq, McpKind::Prompt).await?.iter().map(described));
    prompts.sort_by(|a, b| a["name"].as_str().cmp(&b["name"].as_str()));
    Ok(json!({"prompts": prompts}))
}

/// Returns the name, the title and the text of each page of the guide, without those of its folders.
fn guides() -> impl Iterator<Item = (String, &'static str, &'static str)> {
    pages().iter().filter_map(|(page, text)| {
        let stem = page.strip_prefix(GUIDE).filter(|it| !it.contains('/'))?;
        let title = text.lines().next()?.trim_start_matches('#').trim();
        Some((format!("{PREFIX}{}", stem.replace('-', "_")), title, *text))
    })
}

fn described(offered: &Offered) -> Json {
    let required = offered.schema["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|it| it == name));
    let properties = offered.schema["properties"].as_object();
    let arguments: Vec<Json> = properties
        .into_iter()
        .flatten()
        .map(|(name, schema)| {
            let mut argument = json!({"name": name, "required": is_required(name)});
            for key in ["title", "description"] {
                if let Some(text) = schema.get(key) {
                    argument[key] = text.clone();
                }
            }
            argument
        })
        .collect();
    let mut prompt = json!({
        "name": offered.interface.name,
        "description": offered.description,
        "arguments": arguments,
    });
    if let Some(title) = &offered.interface.title {
        prompt["title"] = json!(title);
    }
    prompt
}

/// Returns a prompt.
///
/// # Errors
/// When the prompt does not exist, an argument is missing, or its run fails.
pub(super) async fn get(rq: &Request, params: &Map<String, Json>) -> Result<Json, RpcError> {
    let name = params.get("name").and_then(Json::as_str);
    let name = name.ok_or_else(|| RpcError::params("`name` must be the name of a prompt"))?;
    let arguments = arguments_of(params)?;
    if name == CREATE {
        let goal = arguments.get("goal").and_then(Json::as_str);
        let goal = goal.filter(|goal| !goal.trim().is_empty());
        let goal = goal.ok_or_else(|| RpcError::params("the prompt needs the argument `goal`"))?;
        return Ok(message("Create a flow from a goal", &create(goal)));
    }
    if let Some((_, title, text)) = guides().find(|(known, ..)| known == name) {
        return Ok(message(title, text));
    }
    let all = offered(rq, McpKind::Prompt).await?;
    let Some(found) = all.iter().find(|it| it.interface.name == name) else {
        return Err(RpcError::params(format!("there is no prompt `{name}`")));
    };
    match result_of(rq, found, (&arguments, params)).await? {
        Ok(result) => content::prompt_messages(rq, &result).await,
        Err(input) => Ok(input),
    }
}

fn message(description: &str, text: &str) -> Json {
    json!({
        "description": description,
        "messages": [{"role": "user", "content": content::text(text)}],
    })
}

fn create(goal: &str) -> String {
    format!(
        "Write a Flowstone flow that reaches this goal:\n\n{goal}\n\n\
         1. Find out what already exists: `workspace_flows_list`, and `workspace_search` for similar flows.\n\
         2. Read how flows are written: `workspace_docs_show` with the pages `guide/language`, `guide/steps` and \
         `guide/inputs`; `workspace_docs_find` finds the others. `workspace_steps_list` and `workspace_steps_schema` \
         describe each step and its fields.\n\
         3. `workspace_connections_list` lists the existing connections. If one is missing, stop and say which one the \
         project needs; never put a secret into a flow.\n\
         4. Write one EDN map with `:slug`, `:invocations` with its inputs, `:interfaces` and `:flow`. Name steps after \
         their outcome. Ask a person before anything that cannot be undone, with a `:wait` step.\n\
         5. Check it with `workspace_flows_check` and correct every finding, until none is left.\n\
         6. Show the text and say where it belongs: a file in `flows/`. When it is there, try it with \
         `workspace_flows_run` and read the run with `workspace_runs_show`.\n"
    )
}
