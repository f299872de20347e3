//! Which turn of an agent a nested step belongs to, and which call of a tool.

use std::collections::HashMap;

use flowstone_lang::value::Value;
use serde_json::{Map, Value as Json, json};

use super::fold::json_of;
use crate::flow::name_of;
use crate::report::conversation::{TURN, occurrence, step_id};

/// The agents whose result is not journaled yet, by the path above their nested steps.
#[derive(Debug, Default)]
pub(crate) struct Agents(HashMap<String, Agent>);

#[derive(Debug, Default)]
struct Agent {
    turn: u32,
    /// The calls that the model asked for in the turn and that have no step yet.
    calls: Vec<Call>,
    /// The steps that calls have led to, by path.
    steps: HashMap<String, Call>,
}

#[derive(Debug, Clone)]
struct Call {
    turn: u32,
    id: Option<String>,
    name: String,
    arguments: Json,
}

/// What a nested step of an agent is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Nested {
    /// A turn of the model, with its number.
    Turn(u32),
    /// A tool call, with its fields.
    Tool(Map<String, Json>),
}

impl Agents {
    /// Tells what the step at a path is. Returns nothing for a step that no agent performs.
    pub(crate) fn nested(&mut self, path: &str, kind: &str) -> Option<Nested> {
        let (above, _) = path.rsplit_once('/')?;
        if kind == "llm" && step_id(path) == TURN {
            let number = occurrence(path);
            self.0.entry(above.to_owned()).or_default().turn = number;
            return Some(Nested::Turn(number));
        }
        let agent = self.0.get_mut(above)?;
        Some(Nested::Tool(agent.call(path).fields()))
    }

    /// Takes in the reply of a model: the calls that it asks for.
    pub(crate) fn replied(&mut self, path: &str, reply: &Value) {
        let Some(agent) = path
            .rsplit_once('/')
            .and_then(|(above, _)| self.0.get_mut(above))
        else {
            return;
        };
        let turn = agent.turn;
        let calls = reply.get("tool-calls").and_then(Value::as_vector);
        let calls = calls.into_iter().flat_map(|calls| calls.iter());
        agent.calls = calls.map(|call| Call::read(turn, call)).collect();
    }

    /// Forgets the nested steps of an agent that ended.
    pub(crate) fn ended(&mut self, path: &str) {
        if self.0.is_empty() {
            return;
        }
        self.0.remove(path);
        let later = format!("{path}~");
        self.0.retain(|above, _| !above.starts_with(&later));
    }

    /// Forgets a step that ended.
    pub(crate) fn step_ended(&mut self, path: &str) {
        if let Some((above, _)) = path.rsplit_once('/')
            && let Some(agent) = self.0.get_mut(above)
        {
            agent.steps.remove(path);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

impl Agent {
    /// Returns the call that led to the step at a path: the first one of its name that has no step yet.
    fn call(&mut self, path: &str) -> &Call {
        if !self.steps.contains_key(path) {
            let name = step_id(path);
            let found = self.calls.iter().position(|call| call.name == name);
            let call = match found {
                Some(at) => self.calls.remove(at),
                // What the agent does of its own accord.
                None => Call {
                    turn: self.turn,
                    id: None,
                    name: name.to_owned(),
                    arguments: Json::Null,
                },
            };
            self.steps.insert(path.to_owned(), call);
        }
        &self.steps[path]
    }
}

impl Call {
    fn read(turn: u32, call: &Value) -> Call {
        let name = call.get("name").and_then(name_of);
        let arguments = match (call.get("arguments"), call.get("arguments-text")) {
            (Some(data), _) => json_of(data),
            (None, Some(text)) => json_of(text),
            (None, None) => Json::Null,
        };
        Call {
            turn,
            id: call
                .get("tool-call-id")
                .or(call.get("id"))
                .and_then(Value::as_str)
                .map(str::to_owned),
            name: name.unwrap_or_default().to_string(),
            arguments,
        }
    }

    fn fields(&self) -> Map<String, Json> {
        let mut fields = Map::new();
        fields.insert("turn".to_owned(), json!(self.turn));
        if let Some(id) = &self.id {
            fields.insert("callId".to_owned(), json!(id));
        }
        fields.insert("name".to_owned(), json!(self.name));
        if !self.arguments.is_null() {
            fields.insert("arguments".to_owned(), self.arguments.clone());
        }
        fields
    }
}
