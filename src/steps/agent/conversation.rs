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

/// Where a message of a conversation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The system prompt that the agent writes.
    System,
    /// A summary that replaces earlier messages.
    Summary,
    /// A part of the thread from earlier runs.
    Earlier,
    /// The request of this step.
    Asked,
    /// A turn of the model.
    Reply,
    /// The results of a turn's calls.
    Results,
    /// An instruction of the loop, or a reply that the loop refused. It is not part of the conversation that is kept.
    Aside,
}

/// A message of a conversation.
pub(super) struct Said {
    pub message: Value,
    pub source: Source,
}

/// A conversation.
pub(super) struct Conversation {
    said: Vec<Said>,
    /// The index of the last turn's first result.
    last_results: usize,
    /// The model's last reply, until it is added.
    pending: Option<Value>,
}

impl Conversation {
    pub(super) fn new(said: Vec<Said>) -> Conversation {
        Conversation {
            last_results: said.len(),
            said,
            pending: None,
        }
    }

    pub(super) fn messages(&self) -> Value {
        Value::vector(self.said.iter().map(|said| said.message.clone()))
    }

    /// Notes a reply of the model, which may be added later.
    pub(super) fn replied(&mut self, reply: &Value) {
        self.pending = Some(reply.clone());
    }

    /// Adds the model's message, with its calls.
    pub(super) fn add_reply(&mut self, reply: &Value, calls: &[Call]) {
        self.pending = None;
        self.push(Source::Reply, of_reply(reply, calls));
    }

    /// Adds the last reply if it was not added yet, with its calls if `with_calls`.
    pub(super) fn finish(&mut self, with_calls: bool) {
        let Some(reply) = self.pending.take() else {
            return;
        };
        let calls = match with_calls {
            true => super::calls::of_reply(&reply),
            false => Vec::new(),
        };
        let text = reply.get("content").map(super::notes::plain);
        let is_blank = text.unwrap_or_default().trim().is_empty();
        if !is_blank || !calls.is_empty() {
            self.push(Source::Reply, of_reply(&reply, &calls));
        }
    }

    /// Adds a reply that is not accepted, and the reason for the model.
    pub(super) fn refuse(&mut self, reply: &Value, instruction: &str) {
        self.pending = None;
        self.push(Source::Aside, of_reply(reply, &[]));
        self.tell(instruction);
    }

    fn push(&mut self, source: Source, message: Value) {
        self.said.push(Said { message, source });
    }

    /// Adds the results of tools, with their images.
    pub(super) fn results(&mut self, answered: &[Answered]) {
        self.last_results = self.said.len();
        for answered in answered {
            self.push(Source::Results, answered.message());
        }
        let images: Vec<Value> = answered
            .iter()
            .filter(|answered| answered.success)
            .flat_map(|answered| inputs::images(&answered.result))
            .collect();
        if !images.is_empty() {
            let text = text_part("The images that the tools gave:");
            let optional = images.into_iter().map(|part| optional(&part));
            let parts = Value::vector([text].into_iter().chain(optional));
            self.push(Source::Results, message("user", parts));
        }
        if self.images() > MOST_IMAGES {
            self.drop_images(LEFT_IMAGES);
        }
    }

    /// Returns all messages.
    pub(super) fn all(&self) -> &[Said] {
        &self.said
    }

    /// Replaces messages at these places by a summary, which comes first after the system prompt.
    pub(super) fn fold(&mut self, places: &[usize], summary: Said) {
        let mut at = 0;
        self.said.retain(|_| {
            at += 1;
            !places.contains(&(at - 1))
        });
        let first = self.said.iter();
        let first = first.take_while(|said| said.source == Source::System);
        self.said.insert(first.count(), summary);
        let mut replies = self.said.iter();
        let last = replies.rposition(|said| said.source == Source::Reply);
        self.last_results = last.map_or(self.said.len(), |at| at + 1);
    }

    /// Returns the messages of the conversation proper: without the system prompt, and without what the loop added.
    pub(super) fn kept(&self) -> impl Iterator<Item = &Said> {
        let is_kept = |said: &&Said| !matches!(said.source, Source::System | Source::Aside);
        self.said.iter().filter(is_kept)
    }

    /// Counts the images from tools.
    fn images(&self) -> usize {
        let parts = self.said.iter().filter_map(|said| parts(&said.message));
        let parts = parts.flat_map(|parts| items(parts).unwrap_or_default());
        parts.filter(is_optional_image).count()
    }

    /// Removes all but the newest images from tools. Tells whether any were removed.
    fn drop_images(&mut self, left: usize) -> bool {
        let mut dropped = self.images().saturating_sub(left);
        let any = dropped > 0;
        for message in self.said.iter_mut().map(|said| &mut said.message) {
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
        self.push(Source::Aside, message("user", Value::from(text)));
    }

    /// Shortens results of tools: those before the last turn, or all if there are no earlier ones. Tells whether any
    /// became shorter.
    pub(super) fn shorten(&mut self) -> bool {
        let old = self.last_results;
        let dropped = self.drop_images(1);
        let any = self.shorten_until(old) || dropped;
        let all = self.said.len();
        any || self.shorten_until(all) || self.drop_images(0)
    }

    fn shorten_until(&mut self, end: usize) -> bool {
        let mut any = false;
        let old = self.said.iter_mut().take(end);
        for message in old.map(|said| &mut said.message) {
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

/// Returns the message of a reply.
fn of_reply(reply: &Value, calls: &[Call]) -> Value {
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
    facts(message)
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
