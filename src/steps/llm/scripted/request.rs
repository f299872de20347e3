//! A request in the view of a script: its texts, its length, and its form for people.

use std::fmt::Write as _;

use super::super::call::{Call, Message, Part};

/// Maximum number of characters of a message that are shown.
const SHOWN_CHARS: usize = 300;

/// Returns the text of a message.
pub(super) fn text(message: &Message) -> String {
    let texts = message.content.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        Part::File { .. } | Part::Image { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Formats a request in a few lines.
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
