//! A step that ends when a script opens its gate, so that concurrent steps finish in a given order.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use flowstone_engine::codec;
use flowstone_engine::kv::KvOp;
use flowstone_engine::ports::StoreOp;
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, Outcome, Step, StepContext, StepError, StepSpec,
};
use flowstone_lang::value::Value;

use crate::bench::Effects;

/// The order in which gates open; a gate that is not named is open.
#[derive(Clone, Default)]
pub struct Script(Rc<RefCell<Gates>>);

#[derive(Default)]
struct Gates {
    order: VecDeque<String>,
    waiting: Vec<Waker>,
    open: usize,
    most: usize,
}

impl Script {
    pub fn set<'n>(&self, order: impl IntoIterator<Item = &'n str>) {
        self.0.borrow_mut().order = order.into_iter().map(str::to_owned).collect();
    }

    /// Returns the maximum number of steps that were in progress at the same time.
    pub fn most(&self) -> usize {
        self.0.borrow().most
    }

    async fn pass(&self, name: &str, turns: i64) {
        let _under_way = UnderWay::begin(self, name);
        // Other steps begin before this one ends.
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
        poll_fn(|cx| {
            let mut gates = self.0.borrow_mut();
            let is_closed = gates.order.iter().any(|other| other == name)
                && gates.order.front().is_none_or(|first| first != name);
            if is_closed {
                gates.waiting.push(cx.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
    }
}

/// Counts a step in progress, and opens the next gate when it is over or given up.
struct UnderWay<'s>(&'s Script, &'s str);

impl UnderWay<'_> {
    fn begin<'s>(script: &'s Script, name: &'s str) -> UnderWay<'s> {
        let mut gates = script.0.borrow_mut();
        gates.open += 1;
        gates.most = gates.most.max(gates.open);
        UnderWay(script, name)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut gates = self.0.0.borrow_mut();
        gates.open -= 1;
        gates.order.retain(|other| other != self.1);
        gates.waiting.drain(..).for_each(Waker::wake);
    }
}

pub struct Gate {
    pub script: Script,
    pub effects: Effects,
}

static SPEC: StepSpec = StepSpec {
    kind: "gate",
    operations: None,
    aliases: &[],
    doc: "Ends when the script says so.",
    fields: &[
        Field::optional("name", FieldType::Text, "Which gate; the path of the step."),
        Field::optional("as", FieldType::Any, "The kind of effect."),
        Field::optional("value", FieldType::Any, "What it gives."),
        Field::optional("fails", FieldType::Bool, "It fails."),
        Field::optional("turns", FieldType::Int, "How often others go on first."),
        Field::optional(
            "note",
            FieldType::Any,
            "Whatever the digest is to depend on.",
        ),
    ],
    examples: &[],
    effect: Effect::Read,
};

impl Step for Gate {
    fn spec(&self) -> &'static StepSpec {
        &SPEC
    }

    fn effect(&self, config: &Value) -> Effect {
        match config.get("as") {
            Some(kind) if *kind == Value::keyword("write") => Effect::External,
            Some(kind) if *kind == Value::keyword("put") => Effect::OwnStore,
            Some(kind) if *kind == Value::keyword("pure") => Effect::Pure,
            _ => Effect::Read,
        }
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let path = cx.path().to_string();
            let name = config.get("name").and_then(Value::as_str).unwrap_or(&path);
            let turns = config.get("turns").and_then(Value::as_int).unwrap_or(1);
            self.script.pass(name, turns).await;
            let value = config.get("value").cloned().unwrap_or(Value::from(name));
            if config.get("fails").is_some() {
                return Err(StepError::new("E0799", "refused", format!("{name} fails")));
            }
            match self.effect(&config) {
                Effect::OwnStore => Ok(Outcome::Commit(StoreOp::Kv(KvOp::Append {
                    key: "all".to_owned(),
                    items: vec![codec::encode(&value).expect("data")],
                    max_length: 1000,
                    max_value: flowstone_engine::kv::MAX_VALUE,
                }))),
                Effect::External => {
                    let mut effects = self.effects.borrow_mut();
                    *effects.entry(cx.idempotency_key().to_owned()).or_default() += 1;
                    Ok(Outcome::Value(value))
                }
                Effect::Read | Effect::Pure | Effect::Steps => Ok(Outcome::Value(value)),
            }
        })
    }
}
