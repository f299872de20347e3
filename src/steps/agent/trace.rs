//! `:trace` of an agent: all turns and calls as one document, stored as a blob at the end.
//!
//! It is built from the state of the loop, which is that of the journal: a resumed agent writes the same. Long texts
//! are truncated, so that a trace stays readable.

use flowstone_flow::step::{Field, FieldType, NestedRequest, Persist as _, StepContext, StepError};
use flowstone_lang::value::{Object, Value};

use super::notes::{facts, plain, shortened, with};
use super::output::{blob, stored_as};
use crate::fields::Fields;
use crate::json::items;
use crate::persist::PersistResult;

pub(super) const CONTENT_TYPE: &str = "application/vnd.breyta.agent-trace+json";
/// The keys of `:trace`.
pub(super) const FIELD: FieldType = FieldType::Either(&[
    FieldType::Bool,
    FieldType::Keys(&[Field::optional(
        "name",
        FieldType::Text,
        "The file name. Default: that of the step.",
    )
    .or_nil()]),
]);
/// Maximum number of characters of a text, and of data as JSON, per call.
const MOST_TEXT: usize = 20_000;
/// Keys of the agent's config that a trace repeats.
const CONFIG: &[&str] = &[
    "connection",
    "provider",
    "model",
    "max-iterations",
    "max-tool-calls",
    "max-repeated-tool-calls",
    "max-tokens-budget",
    "workspace-id",
];

/// A trace under construction.
#[derive(Debug)]
pub(super) struct Trace {
    name: String,
    turns: Vec<Turn>,
    /// Calls of memory tools, and reads and writes around the loop.
    memory: Vec<Value>,
}

/// One turn of the model, with its calls.
#[derive(Debug)]
struct Turn {
    reply: Value,
    began_ms: i64,
    ended_ms: i64,
    calls: Vec<Value>,
}

/// A finished tool call.
pub(super) struct Called<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub arguments: &'a Value,
    pub result: &'a Value,
    pub success: bool,
    pub millis: i64,
}

impl Trace {
    /// Reads `:trace`; `None` if it is off.
    pub(super) fn read(cx: &StepContext, given: &Value) -> Result<Option<Trace>, StepError> {
        let nothing = Value::map([]);
        let given = match given {
            Value::Bool(false) => return Ok(None),
            Value::Bool(true) => &nothing,
            given => given,
        };
        let fields = Fields::nested(":trace", given)?;
        let name = match fields.text("name")? {
            Some(name) => name.to_owned(),
            None => format!("{}-trace.json", cx.step_id()),
        };
        PersistResult.check("function", &blob(&name, CONTENT_TYPE))?;
        Ok(Some(Trace {
            name,
            turns: Vec::new(),
            memory: Vec::new(),
        }))
    }

    /// Records a turn of the model.
    pub(super) fn turn(&mut self, reply: &Value, began_ms: i64, ended_ms: i64) {
        self.turns.push(Turn {
            reply: reply.clone(),
            began_ms,
            ended_ms,
            calls: Vec::new(),
        });
    }

    /// Records a call of the latest turn.
    pub(super) fn called(&mut self, called: &Called<'_>) {
        let entry = facts([
            ("tool-call-id", Value::from(called.id)),
            ("name", Value::from(called.name)),
            ("arguments", bounded(called.arguments)),
            ("result", bounded(called.result)),
            ("success", Value::Bool(called.success)),
            ("duration-ms", Value::Int(called.millis)),
        ]);
        if super::memory::TOOLS.contains(&called.name) {
            let at = facts([("iteration", Value::from(self.turns.len()))]);
            self.memory.push(with(
                &at,
                [
                    ("op", Value::from(called.name)),
                    ("arguments", bounded(called.arguments)),
                    ("success", Value::Bool(called.success)),
                ],
            ));
        }
        if let Some(turn) = self.turns.last_mut() {
            turn.calls.push(entry);
        }
    }

    /// Records a memory operation outside of the turns.
    pub(super) fn remembered(&mut self, op: &str) {
        self.memory.push(facts([("op", Value::from(op))]));
    }

    /// Returns the step that stores the trace.
    pub(super) fn step(
        &self,
        cx: &StepContext,
        config: &Value,
        result: &Value,
        beside: &Beside,
    ) -> NestedRequest {
        stored_as(
            "trace",
            self.document(cx, config, result, beside),
            blob(&self.name, CONTENT_TYPE),
        )
    }

    fn document(&self, cx: &StepContext, config: &Value, result: &Value, beside: &Beside) -> Value {
        let recorded = CONFIG.iter().filter_map(|key| {
            let value = config.get(key).filter(|value| !value.is_nil())?;
            Some((Value::keyword(key), value.clone()))
        });
        let turns = self.turns.iter().enumerate();
        let turns = turns.map(|(idx, turn)| turn.to_value(idx + 1));
        let of = |key: &str| result.get(key).cloned().unwrap_or(Value::Nil);
        let objective = config.get("objective").map_or(Value::Nil, bounded);
        let memory = match &beside.memory {
            Value::Nil => Value::Nil,
            memory => with(memory, [("operations", Value::vector(self.memory.clone()))]),
        };
        facts([
            ("format", Value::Int(1)),
            ("flow", Value::from(&*cx.flow().slug)),
            ("run", Value::from(cx.run_id().as_str())),
            ("step", Value::from(cx.path().to_string())),
            ("objective", objective),
            ("config", Value::map(recorded)),
            ("iterations", Value::vector(turns)),
            ("memory", memory),
            ("plan", beside.plan.clone()),
            ("result", summary(result)),
            ("evaluation", of("evaluation")),
            ("cost", beside.cost.clone()),
            ("warnings", of("warnings")),
        ])
    }
}

/// The contributions of other parts to a trace.
pub(super) struct Beside {
    pub memory: Value,
    pub plan: Value,
    pub cost: Value,
}

impl Turn {
    fn to_value(&self, number: usize) -> Value {
        let of = |key: &str| self.reply.get(key).cloned().unwrap_or(Value::Nil);
        let asked = self.reply.get("tool-calls").and_then(items);
        let millis = match self.began_ms {
            0 => Value::Nil,
            began => Value::Int((self.ended_ms - began).max(0)),
        };
        facts([
            ("iteration", Value::from(number)),
            ("model", of("model")),
            ("provider", of("provider")),
            ("usage", of("usage")),
            ("tokens", of("tokens-used")),
            ("finish-reason", of("finish-reason")),
            ("ended-at", Object::Inst(self.ended_ms).into()),
            ("duration-ms", millis),
            ("content", bounded(&of("content"))),
            (
                "tool-calls-asked",
                Value::from(asked.map_or(0, |asked| asked.len())),
            ),
            ("tool-calls", Value::vector(self.calls.clone())),
        ])
    }
}

/// Returns the result without what the turns contain already.
fn summary(result: &Value) -> Value {
    const KEYS: &[&str] = &[
        "finish-reason",
        "iterations",
        "tool-call-stats",
        "usage",
        "tokens-used",
        "model",
        "provider",
        "abort?",
        "abort-reason",
        "approval-request",
        "persisted-ref",
    ];
    let kept = KEYS.iter().filter_map(|key| {
        let value = result.get(key).filter(|value| !value.is_nil())?;
        Some((Value::keyword(key), value.clone()))
    });
    let content = result.get("content").map_or(Value::Nil, bounded);
    Value::map(kept.chain([(Value::keyword("content"), content)]))
}

/// Returns a small value unchanged, and otherwise the beginning of its text.
fn bounded(value: &Value) -> Value {
    match value {
        Value::Nil | Value::Bool(_) | Value::Int(_) | Value::Float(_) => value.clone(),
        value => {
            let text = plain(value);
            match text.len() <= MOST_TEXT {
                true => value.clone(),
                false => Value::from(shortened(&text, MOST_TEXT)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_data_stays_data_and_long_data_becomes_a_cut_text() {
        let small = facts([("a", Value::Int(1))]);
        assert_eq!(bounded(&small), small);
        let long = Value::vector([Value::from("x".repeat(MOST_TEXT))]);
        let Value::Text(text) = bounded(&long) else {
            panic!("it is a text");
        };
        assert!(text.as_str().ends_with("... (4 more characters)"));
    }
}
