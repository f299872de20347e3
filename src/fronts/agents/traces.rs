//! Traces: what a generation did, read from the journal of its run.

use flowstone_engine::Engine;
use flowstone_engine::codec;
use flowstone_engine::feed_event::instant;
use flowstone_engine::ids::RunId;
use flowstone_engine::json::items;
use flowstone_engine::ports::RunRow;
use flowstone_engine::token::Scope;
use flowstone_engine::{CallStep, StepReport, StepStatus, ToolCall, Turn, child_id};
use flowstone_flow::step::LocalFuture;
use flowstone_lang::value::Value;
use flowstone_model::json::to_exact_json;
use flowstone_steps::agent::{GENERATE, LEFT_OUT, LISTING, nested_answer, written};
use serde_json::{Value as Json, json};

use super::admission::about_run;
use super::compile::{Origin, STEP};
use super::error::ApiError;
use super::generations::{self, Filter, Page, Who};
use super::lineage::{self, Lineage};
use super::sight::Sight;
use super::{ids, knowledge, servers, wording};

/// The most attempts of a call whose nested generation is looked for.
const ATTEMPTS: u32 = 10;
/// The type of traces in names of resources.
const TRACE: &str = "trace";
const LIST: &str = "traces:ListTraces";
const TREE: &str = "traces:GetTraceTree";
/// The type of the step that writes facts.
const MEMORY_STEP: &str = "knowledge";
/// The type of the step that performs a platform action.
const PLATFORM_STEP: &str = "platform";
/// The id of the step that waits for the outputs of client tools.
const CLIENT: &str = "client";

/// Returns a trace with its steps.
///
/// # Errors
/// When no record has that id.
pub async fn show(engine: &Engine, id: &str) -> Result<Json, ApiError> {
    let (row, origin) = generations::find(engine, "trace", id).await?;
    let report = engine.show_run(&row.id).await?;
    let conversations = report.conversations();
    let own = conversations.iter().find(|it| it.path == STEP);
    let turns = own.map_or(&[][..], |it| &it.turns);
    let children = lineage::children(engine, &row.id).await?;
    let below: Vec<&RunId> = children.iter().map(|child| &child.id).collect();
    let steps: Vec<Json> = turns
        .iter()
        .enumerate()
        .map(|turn| step(&row.id, &below, turn))
        .collect();
    let above = lineage::of(engine, &row).await?;
    let mut trace = head((&row, &origin), &above, steps.len());
    trace["steps"] = Json::Array(steps);
    let mut problems = Vec::new();
    for step in &report.steps {
        problems.extend(unlisted(engine, step).await?);
        problems.extend(left_out(step));
    }
    trace["problems"] = Json::Array(problems);
    Ok(trace)
}

/// Returns the problem of a server that did not list its tools.
async fn unlisted(engine: &Engine, step: &StepReport) -> Result<Option<Json>, ApiError> {
    let path = step.path.strip_prefix(STEP);
    let name = path.and_then(|path| path.strip_prefix('/')?.strip_prefix(LISTING));
    let name = name.filter(|_| step.kind == "mcp" && step.status == StepStatus::Failed);
    let Some(name) = name else {
        return Ok(None);
    };
    let request = step.request.as_deref().map(data);
    let adapter = request.as_ref().and_then(|it| it.get("adapter")?.as_str());
    let server = match adapter.and_then(servers::tool_of) {
        Some(tool) => servers::address(engine, tool).await?,
        None => None,
    };
    Ok(Some(json!({
        "type": "mcp_tools_unlisted",
        "tool_name": name,
        "server": server,
        "message": step.error.as_deref().map(wording::of_message),
    })))
}

/// Returns the problems of tools of servers whose names other tools have.
fn left_out(step: &StepReport) -> Vec<Json> {
    let result = step.result.as_deref().filter(|_| step.path == STEP);
    let result = result.map(data).unwrap_or_default();
    let warnings = super::body::texts(result.get("warnings"));
    let left_out = warnings.iter().filter(|it| it.starts_with(LEFT_OUT));
    let problem = |message: &String| {
        let name = message.split('`').nth(1);
        json!({"type": "mcp_tool_left_out", "tool_name": name.unwrap_or_default(), "server": null, "message": message})
    };
    left_out.map(problem).collect()
}

/// The text of a turn that is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnText {
    pub path: String,
    pub text: String,
}

/// Returns the texts of the turns of a generation that are over, in their order.
///
/// # Errors
/// When the store cannot be read.
pub async fn texts(engine: &Engine, id: &str) -> Result<Vec<TurnText>, ApiError> {
    let (row, _) = generations::find(engine, "generation", id).await?;
    let report = engine.show_run(&row.id).await?;
    let conversations = report.conversations();
    let own = conversations.iter().find(|it| it.path == STEP);
    let turns = own.map_or(&[][..], |it| &it.turns);
    let over = turns.iter().filter(|turn| turn.status == StepStatus::Done);
    let texts = over.map(|turn| TurnText {
        path: turn.path.clone(),
        text: turn.text.clone(),
    });
    Ok(texts.collect())
}

fn head((row, origin): (&RunRow, &Origin), above: &Lineage, steps: usize) -> Json {
    let run = &row.id;
    json!({
        "id": ids::trace(run),
        "project_id": origin.project,
        "agent_id": origin.agent,
        "generation_id": ids::generation(run),
        "parent_trace_id": above.initiator.as_ref().map(ids::trace),
        "root_trace_id": above.root.as_ref().map(ids::trace),
        "step_count": steps,
        "created_at": instant(row.created_ms),
    })
}

/// Returns a trace without its steps, but with their number.
async fn counted(
    engine: &Engine,
    (row, origin): (&RunRow, &Origin),
    above: &Lineage,
) -> Result<Json, ApiError> {
    let result = row.result.as_deref();
    let result = result.and_then(|text| codec::decode(text).ok());
    let known = result.and_then(|it| it.get("iterations")?.as_int());
    let steps = match known.and_then(|count| usize::try_from(count).ok()) {
        Some(count) => count,
        // It is not over, or has failed: its journal has the turns.
        None => {
            let conversations = engine.show_run(&row.id).await?.conversations();
            let own = conversations.iter().find(|it| it.path == STEP);
            own.map_or(0, |it| it.turns.len())
        }
    };
    Ok(head((row, origin), above, steps))
}

fn step(run: &RunId, below: &[&RunId], (idx, turn): (usize, &Turn)) -> Json {
    let waits = turn.calls.iter().filter(|call| call.name == CLIENT);
    let mut outputs: Vec<Value> = waits.flat_map(submitted).collect();
    outputs.reverse();
    let own = turn.calls.iter().filter(|call| call.name != CLIENT);
    let calls = own.map(|call| {
        let mut shown = call_json(call, &mut outputs);
        if let Some(child) = child_of(run, below, call) {
            shown["generation_id"] = json!(ids::generation(child));
            shown["trace_id"] = json!(ids::trace(child));
        }
        shown
    });
    let calls: Vec<Json> = calls.collect();
    json!({
        "step": idx + 1,
        "status": turn.status.name(),
        "text": turn.text,
        "model": turn.model,
        "total_tokens": turn.tokens,
        "duration_ms": turn.millis,
        "tool_calls": calls,
    })
}

/// Returns the run that a call started, of those below a run.
fn child_of<'a>(run: &RunId, below: &[&'a RunId], call: &ToolCall) -> Option<&'a RunId> {
    let path = &call.step.as_ref()?.path;
    let key = format!("{run}/{path}");
    (1..=ATTEMPTS).find_map(|attempt| {
        let id = child_id(&key, attempt);
        below.iter().copied().find(|child| **child == id)
    })
}

/// Returns the outputs that a wait got.
fn submitted(wait: &ToolCall) -> Vec<Value> {
    let gave = wait.step.as_ref().and_then(|step| step.gave.as_deref());
    let answer = gave.and_then(|text| codec::decode(text).ok());
    let outputs = answer.as_ref().and_then(|it| it.get("outputs"));
    outputs.and_then(items).unwrap_or_default()
}

fn call_json(call: &ToolCall, outputs: &mut Vec<Value>) -> Json {
    let (status, mut result) = match &call.step {
        Some(step) => (step.status.name(), result(call, step)),
        None => match outputs.pop() {
            Some(output) => ("done", output.get("output").map(as_json)),
            None => ("none", None),
        },
    };
    if let Some(error) = result.as_mut().and_then(|it| it.get_mut("error"))
        && let Some(message) = error.as_str()
    {
        *error = json!(wording::of_message(message));
    }
    json!({
        "tool_name": call.name,
        "args": data(&call.arguments),
        "status": status,
        "result": result,
    })
}

/// Returns what the model got of a call. The step that writes a fact gives what the store did, and a nested generation what its flow
/// returned: neither is part of the API.
fn result(call: &ToolCall, step: &CallStep) -> Option<Json> {
    let gave = step.gave.as_deref()?;
    let is_fact = call.name == knowledge::WRITE && step.kind == MEMORY_STEP;
    let is_nested = step.kind == PLATFORM_STEP && call.name.ends_with(GENERATE);
    let value = codec::decode(gave).ok();
    Some(match value.filter(|_| step.status == StepStatus::Done) {
        Some(value) if is_fact => as_json(&written(&value)),
        Some(value) if is_nested => as_json(&nested_answer(&value)),
        _ => data(gave),
    })
}

/// Returns EDN text as JSON; text that is not EDN as it is.
fn data(text: &str) -> Json {
    match codec::decode(text) {
        Ok(value) => as_json(&value),
        Err(_) => json!(text),
    }
}

fn as_json(value: &Value) -> Json {
    to_exact_json(value).unwrap_or_else(|_| codec::encode(value).map_or(Json::Null, Json::String))
}

/// Returns traces without their steps, newest first.
///
/// # Errors
/// When the store cannot be read.
pub async fn list(engine: &Engine, who: &Who, filter: &Filter) -> Result<Page<Json>, ApiError> {
    let sight = Sight::of(engine, who, LIST).await?;
    let found = generations::runs(engine, (&sight, TRACE), filter).await?;
    let mut data = Vec::new();
    for run in &found.data {
        let (row, origin) = generations::find(engine, "trace", run.id.as_str()).await?;
        let above = lineage::of(engine, &row).await?;
        data.push(counted(engine, (&row, &origin), &above).await?);
    }
    Ok(Page {
        data,
        total: found.total,
    })
}

/// Returns the tree of a trace, from its root. A trace that the caller may not see is left out with those below it.
///
/// # Errors
/// When no record has that id, or the caller may not see the root.
pub async fn tree(engine: &Engine, who: &Who, id: &str) -> Result<Json, ApiError> {
    let (row, _) = generations::find(engine, TRACE, id).await?;
    let above = lineage::of(engine, &row).await?;
    let top = above.root.unwrap_or(row.id);
    let (top, origin) = generations::find(engine, TRACE, top.as_str()).await?;
    let place = (origin.project.as_str(), &top.id);
    let request = about_run(engine, place, (TREE, TRACE)).await?;
    who.rights(engine).await?.check(Scope::Read, &request)?;
    let sight = Sight::of(engine, who, TREE).await?;
    let own = Lineage::default();
    let head = counted(engine, (&top, &origin), &own).await?;
    branch((engine, &sight), (top.id.clone(), head), top.id).await
}

/// Adds the traces below one to it.
fn branch<'a>(
    (engine, sight): (&'a Engine, &'a Sight),
    (run, mut shown): (RunId, Json),
    root: RunId,
) -> LocalFuture<'a, Result<Json, ApiError>> {
    Box::pin(async move {
        let mut nested = Vec::new();
        for child in lineage::children(engine, &run).await? {
            let Some(origin) = super::compile::origin(&child.flow) else {
                continue;
            };
            let place = (origin.project.as_str(), &child.id);
            if !sight.shows_run(engine, place, TRACE).await? {
                continue;
            }
            let above = Lineage {
                initiator: Some(run.clone()),
                root: Some(root.clone()),
                started_by: String::new(),
            };
            let row = engine.run(&child.id).await?;
            let head = counted(engine, (&row, &origin), &above).await?;
            nested.push(branch((engine, sight), (child.id, head), root.clone()).await?);
        }
        shown["children"] = Json::Array(nested);
        Ok(shown)
    })
}

/// Returns the generations of a trace that the caller may see.
///
/// # Errors
/// When no record has that id.
pub async fn generations(engine: &Engine, who: &Who, id: &str) -> Result<Json, ApiError> {
    let (row, origin) = generations::find(engine, TRACE, id).await?;
    let generation = ids::generation(&row.id);
    let place = (origin.project.as_str(), &row.id);
    let get = ("agents:GetAgentGeneration", "generation");
    let request = about_run(engine, place, get).await?;
    let (mut ids, mut data) = (Vec::new(), Vec::new());
    if who.rights(engine).await?.check_not_denied(&request).is_ok() {
        data.push(generations::show(engine, &generation).await?);
        ids.push(generation);
    }
    Ok(json!({
        "trace_id": ids::trace(&row.id),
        "generation_ids": ids,
        "data": data,
    }))
}
