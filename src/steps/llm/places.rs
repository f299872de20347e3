//! An assistant's message in the form that its provider requires back: its blocks unchanged at their places, with the
//! current text and calls.
//!
//! The kept blocks of an answer are a list. Text and tool calls only leave marks there, because hooks, stop sequences
//! and renamed ids may change them.

use serde_json::Value as Json;

use super::call::{Message, ToolCall};

/// The meaning of a kept block.
pub(super) enum Mark<'a> {
    /// A number of characters of text.
    Text(usize),
    /// A call of a tool, by its id.
    Call(&'a str),
    /// A block that is sent back unchanged.
    Block,
}

/// The contents of a place in the message.
pub(super) enum Place<'a> {
    /// Text, with its mark if there is one.
    Text(&'a str, Option<&'a Json>),
    Call(&'a ToolCall),
    Block(&'a Json),
}

/// Returns the places of a message of this family: those of the kept blocks, followed by text and calls without a mark.
pub(super) fn places<'a>(
    message: &'a Message,
    text: &'a str,
    family: &str,
    mark: impl Fn(&'a Json) -> Mark<'a>,
) -> Vec<Place<'a>> {
    let mut left = text;
    let mut calls: Vec<&ToolCall> = message.tool_calls.iter().collect();
    let kept = message.opaque.as_ref().filter(|it| it.family == family);
    let kept = kept.and_then(|it| it.blocks.as_array());
    let kept: Vec<&Json> = kept.into_iter().flatten().collect();
    let length = |block: &&'a Json| match mark(block) {
        Mark::Text(length) => length,
        Mark::Call(_) | Mark::Block => 0,
    };
    let is_same = kept.iter().map(length).sum::<usize>() == text.chars().count();
    let mut places = Vec::new();
    for block in kept {
        match mark(block) {
            Mark::Text(length) => {
                let length = if is_same { length } else { usize::MAX };
                let end = left.char_indices().nth(length);
                let (now, later) = left.split_at(end.map_or(left.len(), |it| it.0));
                places.push(Place::Text(now, Some(block)));
                left = later;
            }
            Mark::Call(id) => {
                let at = calls.iter().position(|call| call.id == id);
                places.extend(at.map(|at| Place::Call(calls.remove(at))));
            }
            Mark::Block => places.push(Place::Block(block)),
        }
    }
    places.push(Place::Text(left, None));
    places.retain(|place| !matches!(place, Place::Text("", _)));
    places.extend(calls.into_iter().map(Place::Call));
    places
}
