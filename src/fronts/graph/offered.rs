//! Asks the MCP servers of a spec which tools they have, before a run is made.
//!
//! A server that does not answer in time is left to the run, which tries again and reports why it cannot be reached.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use flowstone_engine::{Direct, Engine};
use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;
use flowstone_model::json::items;
use serde_json::{Value as Json, json};

use super::compile::{adapter, probe_flow};
use super::known::{Known, Origin, Server};
use super::shape::Issue;
use super::spec::{GraphSpec, Node, Source, ToolRef};

/// How long a server may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns an issue for each tool that a visited node names and its MCP server does not have.
///
/// A server is asked as in the first step of a run. It may be slow to answer, so a caller asks only for a run that begins.
pub async fn missing_at_servers(engine: &Engine, spec: &GraphSpec, known: &Known) -> Vec<Issue> {
    let mut lists: BTreeMap<&str, Option<BTreeSet<String>>> = BTreeMap::new();
    let mut issues = Vec::new();
    for (path, tool) in named(spec) {
        let Ok(found) = known.tool(spec, tool) else {
            continue;
        };
        let Origin::Mcp(server) = found.origin else {
            continue;
        };
        if !lists.contains_key(&*server.id) {
            lists.insert(&server.id, tools_of(engine, server).await);
        }
        let list = lists.get(&*server.id).and_then(Option::as_ref);
        if list.is_some_and(|list| !list.contains(&tool.name)) {
            let message = format!(
                "the tool `{}` does not exist: the MCP server `{}` has no tool of that name",
                tool.name, server.name
            );
            issues.push(Issue::at(&path, message));
        }
    }
    issues
}

/// Returns the references to tools of MCP servers in visited nodes, with their places.
fn named(spec: &GraphSpec) -> Vec<(Vec<Json>, &ToolRef)> {
    let mut found = Vec::new();
    for id in spec.chain() {
        let at = |rest: &[Json]| [&[json!("nodes"), json!(id)], rest].concat();
        match spec.nodes.get(id) {
            Some(Node::Llm(node)) => {
                let tools = node.tools.iter().enumerate();
                found.extend(tools.map(|(idx, tool)| (at(&[json!("tools"), json!(idx)]), tool)));
            }
            Some(Node::Tool(node)) => found.push((at(&[json!("tool_ref")]), &node.tool_ref)),
            Some(Node::End(_)) | None => {}
        }
    }
    found.retain(|(_, tool)| tool.source == Source::Mcp);
    found
}

/// Requests the names of a server's tools; `None` if it does not return them in time.
async fn tools_of(engine: &Engine, server: &Server) -> Option<BTreeSet<String>> {
    let session = Rc::new(engine.session());
    let checked = engine.check_made(&session, &probe_flow(server), "mcp-probe.edn");
    let flow = checked.loaded?.flow;
    let config = Value::map([
        (Value::keyword("op"), Value::keyword("list-tools")),
        (
            Value::keyword("adapter"),
            Value::keyword(adapter(0).trim_start_matches(':')),
        ),
    ]);
    let asking = engine.perform_for(
        flow,
        Direct {
            kind: "mcp",
            config,
            folder: None,
        },
    );
    let listed = tokio::time::timeout(PATIENCE, asking).await.ok()?.ok()?;
    let names = items(listed.get("tools")?)?;
    let names = names.iter().filter_map(|tool| name_of(tool.get("name")?));
    Some(names.map(|name| name.to_string()).collect())
}
