//! Estimates of token counts that no provider reports: four bytes each.

use super::call::{Call, Message, Part, Reply, ToolCall, Usage};

/// The number of bytes per token.
const BYTES: usize = 4;

/// The estimate for an image, in bytes.
const IMAGE: usize = BYTES * 800;

/// The number of Base64 characters of a file that are estimated as one byte of text.
const FILE: usize = 4;

/// The key of `:usage` for the number of estimated tokens.
pub(crate) const ESTIMATED: &str = "estimated-tokens";

/// Returns the approximate number of tokens in a number of bytes.
pub(super) fn of_bytes(bytes: usize) -> i64 {
    i64::try_from(bytes.div_ceil(BYTES)).unwrap_or(i64::MAX)
}

/// Returns the estimated number of tokens of a request.
pub(super) fn of_call(call: &Call) -> i64 {
    let of_message = |message: &Message| {
        let parts = message.content.iter().map(|part| match part {
            Part::Text(text) => text.len(),
            Part::Image { .. } => IMAGE,
            Part::File { data, .. } => data.len() / FILE,
        });
        // A role, with its markup.
        16 + parts.sum::<usize>() + of_calls(&message.tool_calls)
    };
    let messages: usize = call.messages.iter().map(of_message).sum();
    let tools = call.tools.iter().map(|tool| {
        let description = tool.description.as_ref().map_or(0, String::len);
        tool.name.len() + description + tool.parameters.to_string().len()
    });
    of_bytes(messages + tools.sum::<usize>())
}

/// Returns the number of bytes of tool calls.
pub(super) fn of_calls(calls: &[ToolCall]) -> usize {
    let bytes = calls.iter().map(|it| it.name.len() + it.arguments.len());
    bytes.sum()
}

/// Returns the usage of a call: as the provider reports it, or estimated.
pub(super) fn usage(call: &Call, reply: &Reply) -> Usage {
    if let Some(usage) = reply.usage {
        return usage;
    }
    let bytes = reply.content.len() + reply.reasoning.len() + of_calls(&reply.tool_calls);
    let (prompt, completion) = (of_call(call), of_bytes(bytes));
    let total = prompt.saturating_add(completion);
    Usage {
        prompt,
        completion,
        total,
        estimated: Some(total),
        ..Usage::default()
    }
}
