//! The messages between the agent and the model.

use flowstone_engine::flow::name_of;
use flowstone_lang::value::Value;

use super::calls::{Answered, Call};
use super::inputs;
use super::notes::{facts, shortened, with};
use super::prompt::message;

/// Characters that are left of an old result when the conversation is too long.
const LEFT: usize = 400;

/// A conversation.
pub(super) struct Conversation {
    messages: Vec<Value>,
    /// Where the results of the last turn begin.
    last_results: usize,
}

impl Conversation {
    pub fn new(messages: Vec<Value>) -> Conversation {
        Conversation {
            last_results: messages.len(),
            messages,
        }
    }

    pub fn messages(&self) -> Value {
        Value::vector(self.messages.iter().cloned())
    }

    /// Adds what the model said, with the calls that it asked for.
    pub fn said(&mut self, reply: &Value, calls: &[Call]) {
        let mut said = vec![("role", Value::keyword("assistant"))];
        let content = reply.get("content").filter(|content| !content.is_nil());
        if let Some(content) = content {
            said.push((
                "content",
                Value::from(super::calls::within(content, usize::MAX)),
            ));
        }
        if !calls.is_empty() {
            said.push((
                "tool-calls",
                Value::vector(calls.iter().map(Call::proposed)),
            ));
        }
        if let Some(opaque) = reply.get("opaque").filter(|opaque| !opaque.is_nil()) {
            said.push(("opaque", opaque.clone()));
        }
        self.messages.push(facts(said));
    }

    /// Adds what tools gave, and shows the images among it.
    pub fn results(&mut self, answered: &[Answered]) {
        self.last_results = self.messages.len();
        self.messages.extend(answered.iter().map(Answered::message));
        let images: Vec<Value> = answered
            .iter()
            .filter(|answered| answered.success)
            .flat_map(|answered| inputs::images(&answered.result))
            .collect();
        if !images.is_empty() {
            let text = facts([
                ("type", Value::keyword("text")),
                ("text", Value::from("The images that the tools gave:")),
            ]);
            // A model of text has the references in the results.
            let optional = images.into_iter().map(|part| optional(&part));
            let parts = Value::vector([text].into_iter().chain(optional));
            self.messages.push(message("user", parts));
        }
    }

    /// Adds what the model is to be told.
    pub fn tell(&mut self, text: &str) {
        self.messages.push(message("user", Value::from(text)));
    }

    /// Shortens results of tools: those before the last turn, or all where there are none. Tells whether any became
    /// shorter.
    pub fn shorten(&mut self) -> bool {
        let old = self.last_results;
        let any = self.shorten_until(old);
        let all = self.messages.len();
        any || self.shorten_until(all)
    }

    fn shorten_until(&mut self, end: usize) -> bool {
        let mut any = false;
        for message in self.messages.iter_mut().take(end) {
            let role = message.get("role").and_then(name_of);
            let Some(text) = message.get("content").and_then(Value::as_str) else {
                continue;
            };
            if role.as_deref() == Some("tool") && text.chars().count() > LEFT {
                let text = shortened(text, LEFT);
                *message = with(message, [("content", Value::from(text))]);
                any = true;
            }
        }
        any
    }
}

fn optional(part: &Value) -> Value {
    with(part, [("optional?", Value::Bool(true))])
}
