//! The conversations of agents.

use flowstone_engine::{Conversation, ToolCall, Turn};
use serde_json::json;

use super::values::stored_json;

/// Returns the conversation of an agent as JSON. The names of the fields are stable.
pub fn conversation_json(conversation: &Conversation) -> serde_json::Value {
    let turns: Vec<_> = conversation.turns.iter().map(turn_json).collect();
    json!({
        "path": conversation.path,
        "title": conversation.title,
        "objective": conversation.objective,
        "turns": turns,
    })
}

fn turn_json(turn: &Turn) -> serde_json::Value {
    let calls: Vec<_> = turn.calls.iter().map(call_json).collect();
    json!({
        "path": turn.path,
        "status": turn.status.name(),
        "said": turn.text,
        "reasoning": turn.reasoning,
        "model": turn.model,
        "tokens": turn.tokens,
        "millis": turn.millis,
        "toolCalls": calls,
    })
}

fn call_json(call: &ToolCall) -> serde_json::Value {
    let step = call.step.as_ref();
    json!({
        "name": call.name,
        "arguments": stored_json(&call.arguments),
        "path": step.map(|step| &step.path),
        "status": step.map(|step| step.status.name()),
        "millis": step.and_then(|step| step.millis),
        "result": step.and_then(|step| step.gave.as_deref()).map(stored_json),
    })
}
