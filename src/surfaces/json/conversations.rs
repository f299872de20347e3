//! The conversations of agents.

use flowstone_engine::{Conversation as AgentConversation, ToolCall, Turn};
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::values::Values;

/// The conversation of an agent.
#[derive(Debug, Serialize, ToSchema)]
pub struct Conversation {
    path: String,
    title: Option<String>,
    objective: Option<String>,
    turns: Vec<AgentTurn>,
}

/// A turn of a conversation.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentTurn {
    path: String,
    status: &'static str,
    said: String,
    reasoning: Option<String>,
    model: Option<String>,
    tokens: Option<i64>,
    millis: Option<i64>,
    tool_calls: Vec<AgentToolCall>,
}

/// A call of a tool, and what it returned.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentToolCall {
    name: String,
    arguments: Json,
    /// The path of its step; null if it was refused, or not performed yet.
    path: Option<String>,
    status: Option<&'static str>,
    millis: Option<i64>,
    result: Option<Json>,
}

/// Returns the conversation of an agent, with values in a form. The names of the fields are stable.
pub fn conversation(conversation: &AgentConversation, values: Values) -> Conversation {
    let turns = conversation.turns.iter();
    Conversation {
        path: conversation.path.clone(),
        title: conversation.title.clone(),
        objective: conversation.objective.clone(),
        turns: turns.map(|it| turn(it, values)).collect(),
    }
}

fn turn(turn: &Turn, values: Values) -> AgentTurn {
    AgentTurn {
        path: turn.path.clone(),
        status: turn.status.name(),
        said: turn.text.clone(),
        reasoning: turn.reasoning.clone(),
        model: turn.model.clone(),
        tokens: turn.tokens,
        millis: turn.millis,
        tool_calls: turn.calls.iter().map(|it| call(it, values)).collect(),
    }
}

fn call(call: &ToolCall, values: Values) -> AgentToolCall {
    let step = call.step.as_ref();
    let gave = step.and_then(|step| step.gave.as_deref());
    AgentToolCall {
        name: call.name.clone(),
        arguments: values.shown(&call.arguments),
        path: step.map(|step| step.path.clone()),
        status: step.map(|step| step.status.name()),
        millis: step.and_then(|step| step.millis),
        result: gave.map(|text| values.shown(text)),
    }
}
