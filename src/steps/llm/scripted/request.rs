//! A request as a script sees it: its texts, how long it is, and how it is shown to a person.

use std::fmt::Write as _;

use super::super::call::{Call, Message, Part};

/// The most of a message that is shown.
const SHOWN_CHARS: usize = 300;

/// Returns the text of a message.
pub(super) fn text(message: &Message) -> String {
    let texts = message.content.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::Image { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns a request in a few lines.
pub(super) fn shown(call: &Call) -> String {
    let mut out = format!("model {}", call.model);
    if !call.tools.is_empty() {
        let names: Vec<&str> = call.tools.iter().map(|tool| tool.name.as_str()).collect();
        let _ = write!(out, ", tools {}", names.join(" "));
    }
    for message in &call.messages {
        let _ = write!(out, "\n{}: {}", message.role.name(), cut(&text(message)));
        let images = message.content.iter().filter(|part| part.is_image());
        for _ in images {
            out.push_str(" [image]");
        }
        for call in &message.tool_calls {
            let _ = write!(out, " [{} {}]", call.name, cut(&call.arguments));
        }
    }
    out
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_string(),
    }
}

/// Returns about how many tokens a request has: four characters each.
pub(super) fn tokens(call: &Call) -> i64 {
    /// What an image counts as.
    const IMAGE: usize = 4 * 800;
    let of_message = |message: &Message| {
        let parts = message.content.iter().map(|part| match part {
            Part::Text(text) => text.chars().count(),
            Part::Image { .. } => IMAGE,
        });
        let calls = message.tool_calls.iter();
        let calls = calls.map(|call| call.name.len() + call.arguments.len());
        // A role and its marks.
        16 + parts.chain(calls).sum::<usize>()
    };
    let messages: usize = call.messages.iter().map(of_message).sum();
    let tools = call.tools.iter().map(|tool| {
        let description = tool.description.as_ref().map_or(0, String::len);
        tool.name.len() + description + tool.parameters.to_string().len()
    });
    count(messages + tools.sum::<usize>())
}

/// Returns about how many tokens so many characters have.
pub(super) fn count(chars: usize) -> i64 {
    i64::try_from(chars.div_ceil(4)).unwrap_or(i64::MAX)
}
