//! The conversations of agents.

use flowstone_engine::{Conversation as AgentConversation, ToolCall, Turn};
use serde::Serialize;
use serde_json::Value as Json;
use utoipa::ToSchema;

use super::values::stored_json;

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

/// Returns the conversation of an agent. The names of the fields are stable.
pub fn conversation(conversation: &AgentConversation) -> Conversation {
    Conversation {
        path: conversation.path.clone(),
        title: conversation.title.clone(),
        objective: conversation.objective.clone(),
        turns: conversation.turns.iter().map(turn).collect(),
    }
}

fn turn(turn: &Turn) -> AgentTurn {
    AgentTurn {
        path: turn.path.clone(),
        status: turn.status.name(),
        said: turn.text.clone(),
        reasoning: turn.reasoning.clone(),
        model: turn.model.clone(),
        tokens: turn.tokens,
        millis: turn.millis,
        tool_calls: turn.calls.iter().map(call).collect(),
    }
}

fn call(call: &ToolCall) -> AgentToolCall {
    let step = call.step.as_ref();
    AgentToolCall {
        name: call.name.clone(),
        arguments: stored_json(&call.arguments),
        path: step.map(|step| step.path.clone()),
        status: step.map(|step| step.status.name()),
        millis: step.and_then(|step| step.millis),
        result: step.and_then(|step| step.gave.as_deref()).map(stored_json),
    }
}
