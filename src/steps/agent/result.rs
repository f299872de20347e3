//! The result of a loop for the flow.

use flowstone_flow::flow::name_of;
use flowstone_lang::value::Value;

use super::calls::Answered;
use super::notes::{facts, plain, with};
use super::usage::Usage;

/// The events of a loop.
#[derive(Default)]
pub(super) struct Record {
    pub turns: i64,
    pub usage: Usage,
    /// Entries of `:tool-calls`.
    pub calls: Vec<Value>,
    succeeded: i64,
    failed: i64,
    millis: i64,
    /// Calls that the flow must perform.
    handed_over: Option<Value>,
    /// The result of the last turn.
    last: Vec<(&'static str, Value)>,
    /// Why connections did not answer, in all turns.
    failed_connections: Vec<Value>,
}

/// Why the model ended its last turn, where the loop ended for another reason.
const TURN_REASON: &str = "turn-finish-reason";
const FAILED_CONNECTIONS: &str = "failed-connections";

/// Keys of the last turn that the result includes.
const OF_TURN: &[&str] = &["connection", "model", "provider", "response-id"];

impl Record {
    /// Records a turn, and returns its number of requests: more than one if its answer was repaired.
    pub(super) fn turn(&mut self, reply: &Value) -> i64 {
        let requests = reply.get("iterations").and_then(Value::as_int);
        let requests = requests.unwrap_or(1).max(1);
        self.turns += requests;
        if let Some(usage) = reply.get("usage") {
            self.usage.add(usage);
        }
        self.usage.pay(reply.get("cost-usd"));
        let of_turn = OF_TURN.iter().filter_map(|key| {
            let value = reply.get(key).filter(|value| !value.is_nil())?;
            Some((*key, value.clone()))
        });
        self.last = of_turn.collect();
        let failed = reply.get(FAILED_CONNECTIONS).and_then(crate::json::items);
        self.failed_connections.extend(failed.into_iter().flatten());
        requests
    }

    /// Records the usage of a model call that is not a turn.
    pub(super) fn aside(&mut self, reply: &Value) {
        if let Some(usage) = reply.get("usage") {
            self.usage.add(usage);
        }
        self.usage.pay(reply.get("cost-usd"));
    }

    /// Returns the name of the model of the last turn.
    pub(super) fn model(&self) -> Option<&str> {
        let mut last = self.last.iter();
        last.find(|(key, _)| *key == "model")?.1.as_str()
    }

    /// Returns the connection that answered last, if there are several.
    pub(super) fn connection(&self) -> Option<&Value> {
        let last = self.last.iter().find(|(key, _)| *key == "connection");
        last.map(|(_, name)| name)
    }

    /// Records a tool call.
    pub(super) fn call(&mut self, answered: &Answered) {
        self.calls.push(answered.record());
        match answered.success {
            true => self.succeeded += 1,
            false => self.failed += 1,
        }
        self.millis += answered.millis;
        if let Some(usage) = &answered.usage {
            self.usage.add(usage);
        }
        self.usage.pay(answered.cost.as_ref());
    }

    /// Records calls that the flow must perform.
    pub(super) fn hand_over(&mut self, calls: Value) {
        self.handed_over = Some(calls);
    }

    /// Tells whether calls are left to the flow.
    pub(super) fn has_handed_over(&self) -> bool {
        self.handed_over.is_some()
    }

    /// Returns the result of a loop with this ending.
    pub(super) fn result(&self, ending: Ending) -> Value {
        let calls = match &self.handed_over {
            Some(calls) => calls.clone(),
            None => Value::vector(self.calls.iter().cloned()),
        };
        let stats = facts([
            ("call-count", Value::Int(self.succeeded + self.failed)),
            ("success-count", Value::Int(self.succeeded)),
            ("error-count", Value::Int(self.failed)),
            ("total-duration-ms", Value::Int(self.millis)),
        ]);
        let mut result = vec![
            ("content", ending.content),
            ("tool-calls", calls),
            ("tool-call-stats", stats),
            ("usage", self.usage.value()),
            ("tokens-used", Value::Int(self.usage.total())),
        ];
        result.extend(self.last.iter().cloned());
        if !self.failed_connections.is_empty() {
            let failed = self.failed_connections.iter().cloned();
            result.push((FAILED_CONNECTIONS, Value::vector(failed)));
        }
        result.push(("finish-reason", Value::from(ending.reason)));
        result.push(("iterations", Value::Int(self.turns)));
        if let Some(cost) = self.usage.cost() {
            result.push(("cost-usd", Value::Float(cost)));
        }
        with(&facts(result), ending.more)
    }
}

/// How a loop ended.
pub(super) struct Ending {
    content: Value,
    reason: String,
    more: Vec<(&'static str, Value)>,
}

impl Ending {
    /// The model answered.
    pub(super) fn answer(reply: &Value) -> Ending {
        let reason = reply.get("finish-reason").and_then(name_of);
        Ending::new(content_of(reply), reason.as_deref().unwrap_or("stop"))
    }

    /// A limit ended it. The model's own reason for its last turn is kept.
    pub(super) fn cut(reply: &Value, reason: &str) -> Ending {
        let own = reply.get("finish-reason").and_then(name_of);
        let own = own.map(|own| (TURN_REASON, Value::from(&*own)));
        Ending {
            more: own.into_iter().collect(),
            ..Ending::new(content_of(reply), reason)
        }
    }

    /// It ended with an error.
    pub(super) fn failed() -> Ending {
        Ending::new(Value::Nil, "error")
    }

    /// A hook ended it.
    pub(super) fn abort(content: Value, reason: &str) -> Ending {
        Ending {
            more: aborted(reason),
            ..Ending::new(content, reason)
        }
    }

    /// It needs an approval to continue.
    pub(super) fn approval(reply: &Value, request: Value) -> Ending {
        let mut ending = Ending::abort(content_of(reply), "approval-required");
        ending.more.push(("approval-request", request));
        ending
    }

    /// Tells whether the calls of the last turn wait for something outside the loop.
    pub(super) fn leaves_calls(&self) -> bool {
        self.more.iter().any(|(key, _)| *key == "approval-request")
    }

    /// It was stopped, with these facts, including `:abort?` and `:abort-reason`.
    pub(super) fn stopped(reply: &Value, facts: &Value) -> Ending {
        let reason = facts.get("abort-reason").and_then(Value::as_str);
        Ending::abort(content_of(reply), reason.unwrap_or("stopped"))
    }

    fn new(content: Value, reason: &str) -> Ending {
        Ending {
            content,
            reason: reason.to_owned(),
            more: Vec::new(),
        }
    }

    #[must_use]
    pub(super) fn content(self, content: Value) -> Ending {
        Ending { content, ..self }
    }

    #[must_use]
    pub(super) fn because(mut self, reason: &str) -> Ending {
        self.more
            .push((TURN_REASON, Value::from(self.reason.as_str())));
        self.reason = reason.to_owned();
        self
    }

    /// Returns a warning if a limit ended the loop before the model had answered.
    pub(super) fn without_answer(&self) -> Option<String> {
        let is_empty = match &self.content {
            Value::Text(text) => text.trim().is_empty(),
            content => content.is_nil(),
        };
        let why = match self.reason.as_str() {
            "max-iterations" | "max-tool-calls" | "max-repeated-tool-calls" => {
                "the model still called tools in its last turn"
            }
            "token-budget" | "cost-budget" => "its budget of tokens was used up",
            _ => return None,
        };
        is_empty.then(|| {
            let reason = &self.reason;
            format!("the agent ended without an answer ({reason}): {why}")
        })
    }

    /// Names the tools in `:require` that were not called.
    #[must_use]
    pub(super) fn missing(mut self, names: &[String]) -> Ending {
        let names = names.iter().map(|name| Value::from(name.as_str()));
        self.more.push(("missing-tools", Value::vector(names)));
        self
    }

    /// Uses the model's own text unless there is another.
    #[must_use]
    pub(super) fn or_said(self, reply: &Value) -> Ending {
        match self.content.is_nil() {
            true => Ending {
                content: content_of(reply),
                ..self
            },
            false => self,
        }
    }
}

/// Tells whether a loop ended with an answer.
pub(super) fn is_answered(result: &Value) -> bool {
    let content = result.get("content").map(plain).unwrap_or_default();
    result.get("abort?") != Some(&Value::Bool(true)) && !content.trim().is_empty()
}

fn aborted(reason: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("abort?", Value::Bool(true)),
        ("abort-reason", Value::from(reason)),
    ]
}

fn content_of(reply: &Value) -> Value {
    let content = reply.get("content").filter(|content| !content.is_nil());
    content.cloned().unwrap_or_else(|| Value::from(""))
}
