//! What a generation waits for from outside: outputs of client tools, or answers to questions of MCP servers.

use flowstone_engine::ids::RunId;
use flowstone_engine::json::items;
use flowstone_engine::ports::{WaitFilter, WaitRow, WaitState};
use flowstone_engine::{Engine, EngineError, codec};
use flowstone_lang::value::Value;
use flowstone_model::json::to_exact_json;
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
    /// The number of steps that the generation has made, where it waits for client tools.
    pub steps: Option<i64>,
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
        steps: None,
    };
    if let Some(wait) = waits.iter().find(|wait| is_for_outputs(wait)) {
        let calls = calls_of(wait).iter().map(as_json).collect();
        return Ok(Some(Pause {
            steps: steps_of(wait),
            ..pause(Kind::Client, vec![wait.clone()], calls)
        }));
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
    let data = shown(wait);
    let calls = data.as_ref().and_then(|data| data.get("client-calls"));
    calls.and_then(items).unwrap_or_default()
}

/// Returns the number of steps that a generation had made when it began to wait.
fn steps_of(wait: &WaitRow) -> Option<i64> {
    match shown(wait)?.get("turn") {
        Some(Value::Int(turn)) => Some(*turn),
        Some(_) | None => None,
    }
}

/// Returns the data that a wait shows.
fn shown(wait: &WaitRow) -> Option<Value> {
    let details = codec::decode(&wait.details).ok()?;
    details.get("show")?.get("data").cloned()
}

fn as_json(value: &Value) -> Json {
    to_exact_json(value).unwrap_or_else(|_| codec::encode(value).map_or(Json::Null, Json::String))
}
