//! The conversation of an agent, as `flowstone runs show` prints it.

use flowstone_engine::{CallStep, Conversation, StepStatus, ToolCall, Turn};

use crate::cli::progress::seconds;

/// How many characters are shown of a message, and of a tool's arguments or result.
const TEXT_CHARS: usize = 600;
const ASKED: usize = 100;
const GAVE: usize = 160;

/// Returns the conversation as lines. With `full`, nothing is shortened.
pub(super) fn in_words(conversation: &Conversation, full: bool) -> String {
    let cut = |text: &str, most: usize| match text.char_indices().nth(most) {
        Some((end, _)) if !full => format!("{}…", &text[..end]),
        _ => text.to_owned(),
    };
    let title = conversation.title.as_ref().unwrap_or(&conversation.path);
    let mut out = format!("\n{title}\n");
    if let Some(objective) = &conversation.objective {
        out.push_str(&indented(&cut(objective, TEXT_CHARS), 2));
    }
    for (number, turn) in (1..).zip(&conversation.turns) {
        out.push_str(&format!("  turn {number}{}\n", facts(turn)));
        if let Some(reasoning) = turn.reasoning.as_ref().filter(|_| full) {
            out.push_str(&indented(&format!("(thinks) {reasoning}"), 4));
        }
        out.push_str(&indented(&cut(&turn.text, TEXT_CHARS), 4));
        for call in &turn.calls {
            out.push_str(&format!("    → {}\n", call_line(call, &cut)));
            if let Some(gave) = call.step.as_ref().and_then(|step| step.gave.as_ref()) {
                out.push_str(&indented(&cut(gave, GAVE), 6));
            }
        }
    }
    out
}

fn facts(turn: &Turn) -> String {
    let facts = [
        turn.model.clone(),
        turn.tokens.map(|tokens| format!("{tokens} tokens")),
        turn.millis.map(seconds),
        (turn.status != StepStatus::Done).then(|| turn.status.name().to_owned()),
    ];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    match facts.is_empty() {
        true => String::new(),
        false => format!("  {}", facts.join(" · ")),
    }
}

fn call_line(call: &ToolCall, cut: &impl Fn(&str, usize) -> String) -> String {
    let outcome = match &call.step {
        None => "not performed".to_owned(),
        Some(CallStep {
            status: StepStatus::Done,
            millis,
            ..
        }) => millis.map(seconds).unwrap_or_default(),
        Some(step) => step.status.name().to_owned(),
    };
    format!("{} {}  {outcome}", call.name, cut(&call.arguments, ASKED))
}

fn indented(text: &str, by: usize) -> String {
    let lines = text.trim().lines();
    lines.map(|line| format!("{:by$}{line}\n", "")).collect()
}
