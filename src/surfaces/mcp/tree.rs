//! The tools for driving behaviour trees: each is one call of `flowstone_fronts::tree`.

use std::sync::OnceLock;

use flowstone_engine::Engine;
use flowstone_engine::ports::RunRow;
use flowstone_engine::token::Scope;
use flowstone_fronts::tree::{
    Reach, TOOLS_OF_COMMANDS, TreeError, Trees, Written, cancel_abandoned, has_trees, tools,
};
use serde_json::{Map, Value as Json, json};

use super::peer::Request;
use super::protocol::RpcError;
use super::sets::ToolSet;
use super::{content, peer};
use crate::hints;
use crate::http::{Caller, EngineContext, Problem, Shared, runs};

/// Distinguishes this process: `memory://` handles end with it.
static PROCESS: OnceLock<String> = OnceLock::new();

/// Cancels the runs of `memory://` handles of ended processes.
pub(crate) async fn sweep(server: Shared) {
    let swept = server.ask(async |cx: &EngineContext| cancel_abandoned(&cx.engine).await);
    if let Err(problem) = swept.await {
        tracing::warn!(error = %problem.detail, "the runs of earlier memory:// handles are not cancelled");
    }
}

/// The documents that this process wrote last.
static WRITTEN: Written = Written::new();

fn process(engine: &Engine) -> &'static str {
    PROCESS.get_or_init(|| engine.stores().upkeep.process().to_owned())
}

/// Returns the tools, in the form of the protocol; none if the client has not chosen them and the project has no tree
/// files.
///
/// # Errors
/// When the server is too busy, or is stopping.
pub(super) async fn list(rq: &Request) -> Result<Vec<Json>, RpcError> {
    if !rq.sets.has(ToolSet::Tree) {
        return Ok(Vec::new());
    }
    if !rq.sets.is_chosen() {
        let found = rq
            .server
            .ask(async |cx: &EngineContext| Ok::<_, Problem>(has_trees(cx.engine.project_root())));
        if !found.await.map_err(|problem| peer::refused(&problem))? {
            return Ok(Vec::new());
        }
    }
    let offered = tools::TOOLS.iter().filter(|tool| is_for(tool, &rq.caller));
    Ok(offered
        .map(|tool| {
            json!({
                "name": tool.name,
                "title": tool.title,
                "description": tool.doc,
                "inputSchema": tool.schema(),
                "annotations": {"readOnlyHint": tool.reads, "openWorldHint": false},
            })
        })
        .collect())
}

/// Tells whether a caller may use a tool: who drives a tree may also read its stores and its trace. The trees of a project
/// do not belong to a flow, so a token that is limited to some flows has no access to them.
fn is_for(tool: &tools::Tool, caller: &Caller) -> bool {
    let token = &caller.token;
    let is_allowed = token.has(Scope::Run) || (tool.reads && token.has(Scope::Read));
    is_allowed && !token.is_limited_to_flows()
}

/// Finds a tool that the caller may use.
pub(super) fn find(rq: &Request, name: &str) -> Option<&'static tools::Tool> {
    let tool = tools::find(name).filter(|_| rq.sets.has(ToolSet::Tree))?;
    is_for(tool, &rq.caller).then_some(tool)
}

/// Calls a tool. A refusal is the tool's result, with its code.
///
/// # Errors
/// When the server is too busy, or is stopping.
pub(super) async fn call(
    rq: &Request,
    tool: &'static tools::Tool,
    arguments: Map<String, Json>,
) -> Result<Json, RpcError> {
    let caller = rq.caller.clone();
    let asked = rq.server.ask(async move |cx: &EngineContext| {
        let by = caller.token.attributed_to().to_owned();
        // Each driving tool also shows something of its run.
        let reaches = |run: &RunRow| {
            runs::is_reached(cx, &caller, (&run.flow, &run.started_by)) && caller.may_read(run)
        };
        let reach = Reach {
            started_by: caller.started_by(),
            runs: Some(&reaches),
            files: caller.may_name_files(),
        };
        let trees = Trees::new(&cx.engine, process(&cx.engine), Some(by)).within(reach);
        let trees = trees.beside_worker().remembering(&WRITTEN);
        let trees = match tool.reads {
            true => trees.reading(),
            false => trees,
        };
        let called = tools::call(&trees, tool, &arguments).await;
        Ok::<_, Problem>(called.map_err(|error| described(&error)))
    });
    Ok(match asked.await {
        Ok(Ok(answer)) => {
            let text = content::text(content::as_text(&answer));
            let mut result = json!({"content": [text], "isError": false});
            if answer.is_object() {
                result["structuredContent"] = answer;
            }
            result
        }
        Ok(Err((message, meta))) => content::failed(&message, meta),
        Err(problem) => return Err(peer::refused(&problem)),
    })
}

/// Returns the text of an error, with its code and its hint for programs.
fn described(error: &TreeError) -> (String, Json) {
    let mut meta = json!({"code": error.code()});
    if let Some(hint) = error.hint() {
        let tools = TOOLS_OF_COMMANDS.iter().copied();
        meta["hint"] = json!(hints::for_names(&hint, tools));
    }
    (error.to_string(), meta)
}
