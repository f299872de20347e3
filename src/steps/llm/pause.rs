//! Answers that a provider interrupts to work with its own tools, and continues on request.

use super::call::{Call, Message, Part, Reply, Role, Usage};

/// Maximum number of continuations of an answer.
pub(super) const MOST: usize = 10;

/// Returns the call that continues a reply, if the reply was interrupted.
pub(super) fn further(call: &Call, reply: &Reply) -> Option<Call> {
    if reply.finish_reason != "pause_turn" {
        return None;
    }
    let mut call = call.clone();
    call.messages.push(Message {
        content: vec![Part::Text(reply.content.clone())],
        tool_calls: reply.tool_calls.clone(),
        opaque: reply.opaque.clone(),
        ..Message::empty(Role::Assistant)
    });
    Some(call)
}

/// Joins both parts into one reply.
pub(super) fn joined(before: Reply, now: Reply) -> Reply {
    let usage = match (before.usage, now.usage) {
        (Some(before), Some(now)) => Some(Usage::plus(before, now)),
        (before, now) => before.or(now),
    };
    let opaque = match (before.opaque, now.opaque) {
        (Some(mut before), Some(now)) => {
            if let (Some(blocks), Some(more)) =
                (before.blocks.as_array_mut(), now.blocks.as_array())
            {
                blocks.extend(more.iter().cloned());
            }
            Some(before)
        }
        (Some(mut before), None) => {
            // The later blocks come after it.
            if let Some(blocks) = before.blocks.as_array_mut() {
                let length = now.content.chars().count();
                blocks.push(serde_json::json!({"type": "text", "length": length}));
            }
            Some(before)
        }
        (None, now) => now,
    };
    let mut citations = before.citations;
    citations.extend(now.citations);
    let mut tool_calls = before.tool_calls;
    tool_calls.extend(now.tool_calls);
    Reply {
        content: before.content + &now.content,
        reasoning: before.reasoning + &now.reasoning,
        tool_calls,
        citations,
        usage,
        opaque,
        ..now
    }
}
