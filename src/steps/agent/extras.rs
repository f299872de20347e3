//! The parts around the loop of an agent: memory and plan, budget and ledger, evaluation, trace, the stored answer.
//!
//! The loop calls this before its first turn, at each turn, and with its result. All steps are nested in the agent's. A
//! failure after the answer never loses the answer: the result gets a warning.

use std::rc::Rc;

use flowstone_flow::step::{NestedRequest, Progress, StepContext, StepError};
use flowstone_lang::value::Value;

use super::cost::Cost;
use super::evaluate::{self, Evaluate};
use super::limits::Budget;
use super::memory::Memory;
use super::memory::plan::Gate;
use super::notes::{facts, with};
use super::output::OutputPersist;
use super::result::is_answered;
use super::tool::Tool;
use super::trace::{Beside, Called, Trace};
use crate::fields::Fields;

/// The parsed options of a config other than those of the loop.
pub(super) struct LoopExtras {
    memory: Option<Rc<Memory>>,
    cost: Option<Cost>,
    evaluate: Option<Evaluate>,
    output: Option<OutputPersist>,
    trace: Option<Trace>,
    warnings: Vec<String>,
}

/// The state before the first turn.
pub(super) struct Before {
    /// The text about the memory for the system prompt.
    pub memory: Option<String>,
    /// The rest of the ledger's budget.
    pub budget: Option<Budget>,
}

impl LoopExtras {
    /// Reads `:memory`, `:cost`, `:evaluate`, `:output-persist` and `:trace`.
    pub(super) fn read(cx: &StepContext, config: &Value) -> Result<LoopExtras, StepError> {
        let fields = Fields::new(config);
        let given = |key: &str| fields.get(key);
        let mut extras = LoopExtras {
            memory: given("memory")
                .map(|given| Memory::read(cx, given).map(Rc::new))
                .transpose()?,
            cost: given("cost")
                .map(|given| Cost::read(cx, given))
                .transpose()?
                .flatten(),
            evaluate: given("evaluate").map(Evaluate::read).transpose()?.flatten(),
            output: given("output-persist")
                .map(|given| OutputPersist::read(cx, given))
                .transpose()?
                .flatten(),
            trace: given("trace")
                .map(|given| Trace::read(cx, given))
                .transpose()?
                .flatten(),
            warnings: Vec::new(),
        };
        let persists = extras
            .evaluate
            .as_ref()
            .is_some_and(|it| it.persist_to_memory);
        if persists && extras.memory.is_none() {
            extras.warn(
                cx,
                "`:evaluate :persist-to-memory` keeps nothing: the agent has no `:memory`"
                    .to_owned(),
            );
        }
        Ok(extras)
    }

    /// Performs what precedes the first turn.
    ///
    /// # Errors
    /// When the budget is used up, or the memory's table is not a table.
    pub(super) async fn before(&mut self, cx: &StepContext) -> Result<Before, StepError> {
        let left = match &self.cost {
            Some(cost) => cost.check(cx).await?,
            None => None,
        };
        let budget = left.map(Budget::of_ledger);
        let Some(memory) = &self.memory else {
            let memory = None;
            return Ok(Before { memory, budget });
        };
        memory.open(cx).await?;
        let memory = Some(memory.prompt(cx).await?);
        if let Some(trace) = &mut self.trace {
            trace.remembered("recall-prior");
        }
        Ok(Before { memory, budget })
    }

    /// Returns the tools that memory and plan add.
    pub(super) fn tools(&self) -> Vec<Tool> {
        self.memory.as_ref().map(Memory::tools).unwrap_or_default()
    }

    /// Checks the calls of a turn before any is performed. A returned value becomes part of the result, and ends the
    /// loop.
    pub(super) fn gate(&mut self, cx: &StepContext, names: &[&str]) -> Option<Value> {
        let plan = self.memory.as_ref()?.plan.as_ref()?;
        let gate = plan.borrow_mut().gate(names);
        match gate {
            Gate::Go => None,
            Gate::Warn(warning) => {
                self.warn(cx, warning);
                None
            }
            Gate::Stop => Some(facts([
                ("abort?", Value::Bool(true)),
                ("abort-reason", Value::from("plan-required")),
            ])),
        }
    }

    /// Returns the name of the current step of the plan.
    pub(super) fn plan_step(&self) -> Option<String> {
        let plan = self.memory.as_ref()?.plan.as_ref()?.borrow();
        plan.current().map(str::to_owned)
    }

    /// Records a turn of the model, before its calls are checked.
    pub(super) fn turn(&mut self, reply: &Value, began_ms: i64, ended_ms: i64) {
        if let Some(memory) = &self.memory {
            memory.at(ended_ms);
        }
        if let Some(trace) = &mut self.trace {
            trace.turn(reply, began_ms, ended_ms);
        }
    }

    /// Records a tool call for the trace.
    pub(super) fn called(&mut self, called: &Called<'_>) {
        if let Some(trace) = &mut self.trace {
            trace.called(called);
        }
    }

    /// Reports a failure that does not end the agent to the run's observers, and adds it to the result.
    pub(super) fn warn(&mut self, cx: &StepContext, warning: String) {
        cx.emit(Progress::Status(format!("warning: {warning}")));
        self.warnings.push(warning);
    }

    /// Performs what follows the last turn, and returns the result with its outcome.
    pub(super) async fn after(&mut self, cx: &StepContext, config: &Value, result: Value) -> Value {
        let is_over = is_answered(&result);
        let mut result = result;
        if is_over {
            result = self.evaluated(cx, config, result).await;
        }
        let cost = self.ledger(cx, &result).await;
        self.summarized(cx, &result).await;
        if is_over {
            result = self.persisted(cx, result).await;
        }
        result = self.warned(result);
        self.traced(cx, config, result, cost).await
    }

    /// Finishes a loop that ended with an error: records usage and trace.
    pub(super) async fn failed(
        &mut self,
        cx: &StepContext,
        config: &Value,
        so_far: Value,
        error: StepError,
    ) -> StepError {
        let cost = self.ledger(cx, &so_far).await;
        let failure = facts([
            ("code", Value::from(error.code)),
            ("message", Value::from(error.message.as_str())),
        ]);
        let so_far = self.warned(with(&so_far, [("error", failure)]));
        let traced = self.traced(cx, config, so_far, cost).await;
        match traced.get("trace-ref") {
            Some(reference) => error.with("trace-ref", reference.clone()),
            None => error,
        }
    }

    async fn evaluated(&mut self, cx: &StepContext, config: &Value, result: Value) -> Value {
        let Some(evaluate) = &self.evaluate else {
            return result;
        };
        let keeps = evaluate.persist_to_memory;
        let answered = cx.perform(evaluate.step(config, &result)).await;
        let evaluation = match answered {
            Ok(answer) => evaluate::evaluation(&answer),
            Err(error) => {
                self.warn(
                    cx,
                    format!("the answer was not evaluated: {}", error.message),
                );
                let failure = facts([("error", Value::from(error.message))]);
                return with(&result, [("evaluation", failure)]);
            }
        };
        if let Some(memory) = self.memory.clone().filter(|_| keeps) {
            let sentence = evaluate::sentence(&evaluation);
            let step = memory.evaluation(&sentence, &evaluation, cx.latest_ms());
            self.kept(cx, step, "the evaluation was not remembered")
                .await;
        }
        with(&result, [("evaluation", evaluation)])
    }

    /// Adds the run to the ledger, and returns the ledger's summary.
    async fn ledger(&mut self, cx: &StepContext, result: &Value) -> Value {
        let Some(cost) = &self.cost else {
            return Value::Nil;
        };
        let step = cost.entry(cx, result, cx.latest_ms());
        let entry = step.config.get("item").cloned().unwrap_or(Value::Nil);
        self.kept(cx, step, "what the run used was not recorded")
            .await;
        entry
    }

    async fn summarized(&mut self, cx: &StepContext, result: &Value) {
        let memory = self.memory.clone();
        if let Some(memory) = memory.filter(|memory| memory.auto_summarize) {
            let step = memory.summary(result, cx.latest_ms());
            self.kept(cx, step, "the run's summary was not remembered")
                .await;
            if let Some(trace) = &mut self.trace {
                trace.remembered("summarize");
            }
        }
    }

    async fn persisted(&mut self, cx: &StepContext, result: Value) -> Value {
        let Some(output) = &self.output else {
            return result;
        };
        let content = result.get("content").cloned().unwrap_or(Value::Nil);
        let step = output.step(&content);
        match self.kept(cx, step, "the answer was not kept").await {
            Some(reference) => with(&result, [("persisted-ref", reference)]),
            None => result,
        }
    }

    async fn traced(
        &mut self,
        cx: &StepContext,
        config: &Value,
        result: Value,
        cost: Value,
    ) -> Value {
        let Some(trace) = &self.trace else {
            return result;
        };
        let memory = self.memory.as_ref();
        let plan = memory.and_then(|memory| memory.plan.as_ref());
        let beside = Beside {
            memory: memory.map_or(Value::Nil, |memory| memory.facts()),
            plan: plan.map_or(Value::Nil, |plan| plan.borrow().to_value()),
            cost,
        };
        let step = trace.step(cx, config, &result, &beside);
        let kept = self.kept(cx, step, "the trace was not kept").await;
        let uri = kept.as_ref().and_then(crate::resource::uri);
        match uri {
            Some(uri) => with(&result, [("trace-ref", Value::from(uri))]),
            None => self.warned(result),
        }
    }

    /// Performs a step that the answer does not depend on.
    async fn kept(
        &mut self,
        cx: &StepContext,
        step: NestedRequest,
        otherwise: &str,
    ) -> Option<Value> {
        match cx.perform(step).await {
            Ok(value) => Some(value),
            Err(error) => {
                self.warn(cx, format!("{otherwise}: {}", error.message));
                None
            }
        }
    }

    fn warned(&self, result: Value) -> Value {
        match self.warnings.is_empty() {
            true => result,
            false => {
                let warnings = self.warnings.iter().map(|it| Value::from(it.as_str()));
                with(&result, [("warnings", Value::vector(warnings))])
            }
        }
    }
}
