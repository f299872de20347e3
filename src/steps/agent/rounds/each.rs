//! `:before-each-call` and `:after-each-call`: functions of the flow that decide about single calls.
//!
//! Each is a nested `:function` step whose result is journaled. A function that fails or returns something else stops
//! its call or withholds its result: a check that cannot be made does not pass.

use flowstone_flow::step::NestedRequest;
use flowstone_lang::value::Value;

use super::super::calls::{AT_ONCE, Answered, Refusal};
use super::super::hooks::{Each, Ruling, ruling};
use super::super::notes::facts;
use super::Rounds;
use super::approved::Judged;

impl Rounds<'_> {
    /// Lets the flow change or refuse each call.
    pub(super) async fn before_each(&mut self, judged: &mut [Judged]) {
        let Some(function) = self.config.hooks.each(Each::Before) else {
            return;
        };
        let iteration = self.record.turns;
        let steps = judged.iter().map(|it| {
            let call = &it.call;
            let tool = self.tools.find(&call.name);
            let changes = tool.is_some_and(|tool| (tool.mutates)(&call.arguments));
            let sees = facts([
                ("tool", Value::from(call.name.as_str())),
                ("tool-call-id", Value::from(call.id.as_str())),
                ("arguments", call.arguments.clone()),
                ("changes?", Value::Bool(changes)),
                ("iteration", Value::Int(iteration)),
            ]);
            step(Each::Before, function, sees)
        });
        let ruled = self.cx.perform_all(steps.collect(), AT_ONCE).await;
        for (judged, ruled) in judged.iter_mut().zip(ruled) {
            let ruling = ruled.result.and_then(|value| ruling(Each::Before, &value));
            match ruling {
                Ok(Ruling::Pass) => {}
                Ok(Ruling::Arguments(arguments)) => judged.call = judged.call.changed(arguments),
                Ok(Ruling::Refuse(reason)) => {
                    judged.refusal = Some(Refusal::Guarded { reason });
                }
                Ok(Ruling::Result(_)) => {}
                Err(error) => {
                    self.warn_of(Each::Before, &error.message);
                    let reason = "the check of this call failed".to_owned();
                    judged.refusal = Some(Refusal::Guarded { reason });
                }
            }
        }
    }

    /// Lets the flow change the result of each call that was made.
    pub(super) async fn after_each(&mut self, answered: &mut [Answered]) {
        let Some(function) = self.config.hooks.each(Each::After) else {
            return;
        };
        let iteration = self.record.turns;
        let mut made: Vec<&mut Answered> =
            answered.iter_mut().filter(|it| !it.is_refused).collect();
        let steps = made.iter().map(|it| {
            let sees = facts([
                ("tool", Value::from(it.call.name.as_str())),
                ("tool-call-id", Value::from(it.call.id.as_str())),
                ("arguments", it.call.arguments.clone()),
                ("result", it.result.clone()),
                ("success", Value::Bool(it.success)),
                ("iteration", Value::Int(iteration)),
            ]);
            step(Each::After, function, sees)
        });
        let ruled = self.cx.perform_all(steps.collect(), AT_ONCE).await;
        for (answered, ruled) in made.iter_mut().zip(ruled) {
            let ruling = ruled.result.and_then(|value| ruling(Each::After, &value));
            match ruling {
                Ok(Ruling::Pass | Ruling::Arguments(_)) => {}
                Ok(Ruling::Result(result)) => answered.replace(result, true),
                Ok(Ruling::Refuse(reason)) => answered.replace(withheld(&reason), false),
                Err(error) => {
                    self.warn_of(Each::After, &error.message);
                    answered.replace(withheld("its check failed"), false);
                }
            }
        }
    }

    fn warn_of(&mut self, when: Each, message: &str) {
        let warning = format!("`:{}` failed: {message}", when.name());
        let warning = self.cx.redactor().text(warning);
        self.extras.warn(self.cx, warning);
    }
}

fn withheld(reason: &str) -> Value {
    let text = format!("the result is withheld: {reason}");
    facts([("error", Value::from(text))])
}

/// Returns the step that calls a function of the flow. `:load` lets its result be journaled.
fn step(when: Each, function: &Value, sees: Value) -> NestedRequest {
    let key = match function {
        Value::Keyword(_) => "ref",
        _ => "code",
    };
    let config = facts([
        (key, function.clone()),
        ("input", sees),
        ("load", Value::vector([])),
    ]);
    NestedRequest::new("function", when.name(), config)
}
