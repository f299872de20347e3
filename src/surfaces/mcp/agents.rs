//! Stored graph agents as tools: one with `mcp_tool` is offered to every caller who may start its runs.
//!
//! Who may start runs, how many, and what a run is, are decided by `flowstone_fronts::graph`, as for its routes. A call has
//! no dedupe window: each call is a run of its own.

use flowstone_engine::ids::RunId;
use flowstone_engine::token::Scope;
use flowstone_flow::mcp_interfaces::{McpInterface, McpKind, TaskMoment};
use flowstone_fronts::graph::access::{Kind, may_use};
use flowstone_fronts::graph::agents::{self, Agent};
use flowstone_fronts::graph::compile::slug;
use flowstone_fronts::graph::error::GraphError;
use flowstone_fronts::graph::inputs::input_schema;
use flowstone_fronts::graph::runs::{self, Start};
use serde_json::{Map, Value as Json, json};

use super::offered::Offered;
use super::peer::{Request, refused};
use super::protocol::RpcError;
use super::sets::ToolSet;
use crate::http::{EngineContext, GraphVisitor};

/// Returns the agents that the caller may call as tools.
///
/// # Errors
/// When nobody can be asked.
pub(super) async fn offered(rq: &Request) -> Result<Vec<Offered>, RpcError> {
    if !rq.sets.has(ToolSet::Agents) || !rq.caller.token.has(Scope::Run) {
        return Ok(Vec::new());
    }
    let visitor = visitor(rq);
    let found = rq.server.ask(async move |cx: &EngineContext| {
        let all = agents::list(&cx.engine).await?;
        let mine = all.iter().filter(|agent| may_call(&visitor, agent));
        Ok::<_, GraphError>(mine.filter_map(of_agent).collect::<Vec<_>>())
    });
    found.await.map_err(|problem| refused(&problem))
}

fn visitor(rq: &Request) -> GraphVisitor {
    GraphVisitor::new(rq.caller.clone(), rq.address.clone())
}

/// Tells whether a caller may call an agent as a tool.
fn may_call(visitor: &GraphVisitor, agent: &Agent) -> bool {
    let is_offered = agent.is_mcp_tool() && !agent.is_disabled();
    is_offered
        && match visitor.who.kind {
            Kind::Owner => visitor.reaches(&agent.name),
            Kind::User | Kind::Anonymous => may_use(agent, &visitor.who).is_ok(),
        }
}

/// Returns an agent as a tool; `None` if this build cannot read its spec.
fn of_agent(agent: &Agent) -> Option<Offered> {
    let spec = agent.spec().ok()?;
    let title = agent.display_name().filter(|title| *title != agent.name);
    let description = agent
        .description()
        .or(spec.description.as_deref())
        .map_or_else(
            || format!("Runs the agent `{}`.", title.unwrap_or(&agent.name)),
            str::to_owned,
        );
    let schema = input_schema(&spec);
    Some(Offered {
        installation: None,
        slug: slug(&agent.name),
        agent: Some(agent.name.clone()),
        interface: McpInterface {
            kind: McpKind::Tool,
            name: agent.name.clone(),
            title: title.map(str::to_owned),
            description: Some(description.clone()),
            invocation: "default".to_owned(),
            uri: None,
            media: None,
            input_schema: Some(schema.clone()),
            output_schema: None,
            task: TaskMoment::Late,
            needs_task: false,
        },
        schema,
        description,
        is_reading: false,
    })
}

/// Starts a run of an agent. Returns why it did not start as a text for the client.
///
/// # Errors
/// When nobody can be asked.
pub(super) async fn start(
    rq: &Request,
    (agent, schema): (&str, &Json),
    arguments: &Map<String, Json>,
) -> Result<Result<RunId, String>, RpcError> {
    let required = schema["required"].as_array().into_iter().flatten();
    let missing = required
        .filter_map(Json::as_str)
        .find(|name| !arguments.contains_key(*name));
    if let Some(missing) = missing {
        return Ok(Err(format!("E1234: the argument `{missing}` is missing")));
    }
    let (visitor, name) = (visitor(rq), agent.to_owned());
    let start = Start::of_call(json!(arguments));
    let started = rq.server.ask(async move |cx: &EngineContext| {
        let agent = agents::get(&cx.engine, &name).await?;
        if !may_call(&visitor, &agent) {
            return Err(agents::no_agent(&name));
        }
        let started = runs::start(&cx.engine, &agent, &visitor.who, &start).await?;
        Ok::<_, GraphError>(started.run)
    });
    match started.await {
        Ok(run) => Ok(Ok(run)),
        Err(problem) if problem.status.is_server_error() => Err(refused(&problem)),
        Err(problem) => Ok(Err(format!("{}: {}", problem.code, problem.detail))),
    }
}
