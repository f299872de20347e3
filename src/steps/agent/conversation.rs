//! The messages between the agent and the model.

use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;

use super::calls::{Answered, Call};
use super::inputs;
use super::notes::{facts, shortened, with};
use super::prompt::message;
use crate::json::items;

/// How many characters of an old result remain when the conversation is too long.
const LEFT: usize = 400;
/// Maximum number of images from tools in a request, and how many of the newest remain when there are more: trimming
/// rarely lets providers reuse their prompt caches.
const MOST_IMAGES: usize = 20;
const LEFT_IMAGES: usize = 10;
/// Replaces an image that is no longer sent.
const DROPPED: &str = "[an earlier image, which is no longer shown]";

/// A conversation.
pub(super) struct Conversation {
    messages: Vec<Value>,
    /// The index of the last turn's first result.
    last_results: usize,
}

impl Conversation {
    pub(super) fn new(messages: Vec<Value>) -> Conversation {
        Conversation {
            last_results: messages.len(),
            messages,
        }
    }

    pub(super) fn messages(&self) -> Value {
        Value::vector(self.messages.iter().cloned())
    }

    /// Adds the model's message, with its calls.
    pub(super) fn add_reply(&mut self, reply: &Value, calls: &[Call]) {
        let mut message = vec![("role", Value::keyword("assistant"))];
        let content = reply.get("content").filter(|content| !content.is_nil());
        if let Some(content) = content {
            message.push((
                "content",
                Value::from(super::calls::within(content, usize::MAX)),
            ));
        }
        if !calls.is_empty() {
            message.push((
                "tool-calls",
                Value::vector(calls.iter().map(Call::proposed)),
            ));
        }
        if let Some(opaque) = reply.get("opaque").filter(|opaque| !opaque.is_nil()) {
            message.push(("opaque", opaque.clone()));
        }
        self.messages.push(facts(message));
    }

    /// Adds the results of tools, with their images.
    pub(super) fn results(&mut self, answered: &[Answered]) {
        self.last_results = self.messages.len();
        self.messages.extend(answered.iter().map(Answered::message));
        let images: Vec<Value> = answered
            .iter()
            .filter(|answered| answered.success)
            .flat_map(|answered| inputs::images(&answered.result))
            .collect();
        if !images.is_empty() {
            let text = text_part("The images that the tools gave:");
            let optional = images.into_iter().map(|part| optional(&part));
            let parts = Value::vector([text].into_iter().chain(optional));
            self.messages.push(message("user", parts));
        }
        if self.images() > MOST_IMAGES {
            self.drop_images(LEFT_IMAGES);
        }
    }

    /// Counts the images from tools.
    fn images(&self) -> usize {
        let parts = self.messages.iter().filter_map(parts);
        let parts = parts.flat_map(|parts| items(parts).unwrap_or_default());
        parts.filter(is_optional_image).count()
    }

    /// Removes all but the newest images from tools. Tells whether any were removed.
    fn drop_images(&mut self, left: usize) -> bool {
        let mut dropped = self.images().saturating_sub(left);
        let any = dropped > 0;
        for message in &mut self.messages {
            let Some(content) = parts(message).filter(|_| dropped > 0) else {
                continue;
            };
            let kept = items(content).unwrap_or_default().into_iter().map(|part| {
                match is_optional_image(&part) && dropped > 0 {
                    true => {
                        dropped -= 1;
                        text_part(DROPPED)
                    }
                    false => part,
                }
            });
            let kept = Value::vector(kept.collect::<Vec<_>>());
            *message = with(message, [("content", kept)]);
        }
        any
    }

    /// Adds a message to the model.
    pub(super) fn tell(&mut self, text: &str) {
        self.messages.push(message("user", Value::from(text)));
    }

    /// Shortens results of tools: those before the last turn, or all if there are no earlier ones. Tells whether any
    /// became shorter.
    pub(super) fn shorten(&mut self) -> bool {
        let old = self.last_results;
        let dropped = self.drop_images(1);
        let any = self.shorten_until(old) || dropped;
        let all = self.messages.len();
        any || self.shorten_until(all) || self.drop_images(0)
    }

    fn shorten_until(&mut self, end: usize) -> bool {
        let mut any = false;
        for message in self.messages.iter_mut().take(end) {
            let role = message.get("role").and_then(name_of);
            if role.as_deref() != Some("tool") {
                continue;
            }
            let is_long = |text: &str| text.chars().count() > LEFT;
            let content = message.get("content").cloned().unwrap_or(Value::Nil);
            let shorter = match &content {
                Value::Text(text) if is_long(text.as_str()) => {
                    Value::from(shortened(text.as_str(), LEFT))
                }
                Value::Vector(parts) => {
                    let long = |part: &Value| {
                        part.get("text")?
                            .as_str()
                            .filter(|it| is_long(it))
                            .map(str::to_owned)
                    };
                    if !parts.iter().any(|part| long(part).is_some()) {
                        continue;
                    }
                    Value::vector(parts.iter().map(|part| match long(part) {
                        Some(text) => text_part(&shortened(&text, LEFT)),
                        None => part.clone(),
                    }))
                }
                _ => continue,
            };
            *message = with(message, [("content", shorter)]);
            any = true;
        }
        any
    }
}

fn is_optional_image(part: &Value) -> bool {
    is_image(part) && part.get("optional?").is_some()
}

/// Returns a part as a line of text if it cannot be shown.
pub(super) fn optional(part: &Value) -> Value {
    with(part, [("optional?", Value::Bool(true))])
}

/// Returns the parts of a message's content, if it has any.
fn parts(message: &Value) -> Option<&Value> {
    let content = message.get("content")?;
    content.as_vector().is_some().then_some(content)
}

fn is_image(part: &Value) -> bool {
    let kind = part.get("type").and_then(name_of);
    kind.is_some_and(|kind| matches!(&*kind, "image" | "image-resource"))
}

fn text_part(text: &str) -> Value {
    facts([
        ("type", Value::keyword("text")),
        ("text", Value::from(text)),
    ])
}
