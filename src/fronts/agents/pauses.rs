//! What a generation waits for from outside: outputs of client tools, or answers to questions of MCP servers.

use flowstone_engine::ids::RunId;
use flowstone_engine::json::items;
use flowstone_engine::ports::{WaitFilter, WaitRow, WaitState};
use flowstone_engine::{Engine, EngineError, codec};
use flowstone_lang::value::Value;
use flowstone_model::json::to_json;
use serde_json::Value as Json;

use super::{lineage, questions};

/// A pause of a generation.
#[derive(Debug, Clone)]
pub struct Pause {
    /// The run that waits.
    pub run: RunId,
    /// The open waits: one for client tools, or one for each question.
    pub waits: Vec<WaitRow>,
    pub kind: Kind,
    /// The calls whose outputs are missing, with the keys of the step.
    pub calls: Vec<Json>,
}

/// What the calls of a pause are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Client,
    Questions,
}

impl Kind {
    /// Returns the type of the required action.
    pub fn action(self) -> &'static str {
        match self {
            Kind::Client => "submit_tool_outputs",
            Kind::Questions => questions::TYPE,
        }
    }
}

/// Tells whether a wait is a pause of a generation.
pub fn is_open(wait: &WaitRow) -> bool {
    is_for_outputs(wait) || questions::is_question(wait)
}

/// Returns the pause of a run; nothing if it waits for nothing from outside.
///
/// # Errors
/// When the store cannot be read.
pub async fn of_run(engine: &Engine, run: &RunId) -> Result<Option<Pause>, EngineError> {
    let filter = WaitFilter {
        run: Some(run.clone()),
        ..WaitFilter::default()
    };
    let waits = engine.list_waits(filter).await?;
    let pause = |kind: Kind, waits: Vec<WaitRow>, calls: Vec<Json>| Pause {
        run: run.clone(),
        waits,
        kind,
        calls,
    };
    if let Some(wait) = waits.iter().find(|wait| is_for_outputs(wait)) {
        let calls = calls_of(wait).iter().map(as_json).collect();
        return Ok(Some(pause(Kind::Client, vec![wait.clone()], calls)));
    }
    let mut asked: Vec<WaitRow> = waits.into_iter().filter(questions::is_question).collect();
    asked.sort_by(|one, other| (one.opened_ms, &one.id).cmp(&(other.opened_ms, &other.id)));
    let calls = asked.iter().map(questions::call).collect();
    Ok((!asked.is_empty()).then(|| pause(Kind::Questions, asked, calls)))
}

/// Returns the pause of a run, or of one below it.
///
/// # Errors
/// When the store cannot be read.
pub async fn of_tree(engine: &Engine, run: &RunId) -> Result<Option<Pause>, EngineError> {
    if let Some(pause) = of_run(engine, run).await? {
        return Ok(Some(pause));
    }
    for below in lineage::waiting_below(engine, run).await? {
        if let Some(pause) = of_run(engine, &below).await? {
            return Ok(Some(pause));
        }
    }
    Ok(None)
}

fn is_for_outputs(wait: &WaitRow) -> bool {
    wait.state == WaitState::Open && !calls_of(wait).is_empty()
}

/// Returns the calls of client tools that a wait is for.
fn calls_of(wait: &WaitRow) -> Vec<Value> {
    let details = codec::decode(&wait.details).unwrap_or(Value::Nil);
    let shown = details.get("show").and_then(|shown| shown.get("data"));
    let calls = shown.and_then(|data| data.get("client-calls"));
    calls.and_then(items).unwrap_or_default()
}

fn as_json(value: &Value) -> Json {
    to_json(value).unwrap_or_else(|_| codec::encode(value).map_or(Json::Null, Json::String))
}
