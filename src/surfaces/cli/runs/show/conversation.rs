//! The conversation of an agent, as `flowstone runs show` prints it.

use flowstone_engine::StepStatus;
use serde_json::Value as Json;

use crate::cli::progress::seconds;
use crate::cli::rows::{list, maybe, text};

/// How many characters are shown of a message, and of a tool's arguments or result.
const TEXT_CHARS: usize = 600;
const ASKED: usize = 100;
const GAVE: usize = 160;

/// Returns the conversation as lines. With `full`, nothing is shortened.
pub(super) fn describe(conversation: &Json, full: bool) -> String {
    let cut = |text: &str, most: usize| match text.char_indices().nth(most) {
        Some((end, _)) if !full => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    };
    let title = maybe(conversation, "title").unwrap_or_else(|| text(conversation, "path"));
    let mut out = format!("\n{title}\n");
    if let Some(objective) = maybe(conversation, "objective") {
        out.push_str(&indented(&cut(&objective, TEXT_CHARS), 2));
    }
    for (number, turn) in (1..).zip(list(conversation, "turns")) {
        out.push_str(&format!("  turn {number}{}\n", facts(turn)));
        if let Some(reasoning) = maybe(turn, "reasoning").filter(|_| full) {
            out.push_str(&indented(&format!("(thinks) {reasoning}"), 4));
        }
        out.push_str(&indented(&cut(&text(turn, "said"), TEXT_CHARS), 4));
        for call in list(turn, "toolCalls") {
            out.push_str(&format!("    → {}\n", call_line(call, &cut)));
            if let Some(gave) = maybe(call, "result") {
                out.push_str(&indented(&cut(&gave, GAVE), 6));
            }
        }
    }
    out
}

fn facts(turn: &Json) -> String {
    let status = text(turn, "status");
    let facts = [
        maybe(turn, "model"),
        turn["tokens"]
            .as_i64()
            .map(|tokens| format!("{tokens} tokens")),
        turn["millis"].as_i64().map(seconds),
        (status != StepStatus::Done.name()).then_some(status),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    match facts.is_empty() {
        true => String::new(),
        false => format!("  {}", facts.join(" · ")),
    }
}

fn call_line(call: &Json, cut: &impl Fn(&str, usize) -> String) -> String {
    let outcome = match maybe(call, "status") {
        None => "not performed".to_owned(),
        Some(status) if status == StepStatus::Done.name() => {
            call["millis"].as_i64().map(seconds).unwrap_or_default()
        }
        Some(status) => status,
    };
    let arguments = cut(&text(call, "arguments"), ASKED);
    format!("{} {arguments}  {outcome}", text(call, "name"))
}

fn indented(text: &str, by: usize) -> String {
    let lines = text.trim().lines();
    lines.map(|line| format!("{:by$}{line}\n", "")).collect()
}
