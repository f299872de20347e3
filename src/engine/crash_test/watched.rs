//! A step type under test: its effects are recorded, answered from the case, and surrounded by crash points.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flowstone_lang::value::Value;

use super::case::Case;
use super::effects::{Doubt, EffectLine, Log};
use super::points::Points;
use crate::diagnostic::Diagnostic;
use crate::flow::{Flow, name_of};
use crate::step::{Effect, LocalFuture, Outcome, Retry, Step, StepContext, StepError, StepSpec};

/// Step types that only read, but at a price.
const COSTLY: &[&str] = &["agent", "llm"];
/// Step types whose effects are requests: a recording answers all of them.
const OVER_HTTP: &[&str] = &["agent", "http", "llm", "notify"];

pub(super) struct Watched {
    pub step: Box<dyn Step>,
    pub case: Rc<Case>,
    pub points: Arc<Points>,
    pub log: Rc<Log>,
}

impl Step for Watched {
    fn spec(&self) -> &'static StepSpec {
        self.step.spec()
    }

    fn effect(&self, config: &Value) -> Effect {
        self.step.effect(config)
    }

    fn repeats_safely(&self, config: &Value) -> bool {
        self.step.repeats_safely(config)
    }

    fn remarks(&self, flow: &Flow, config: &Value) -> Vec<(&'static str, Diagnostic)> {
        self.step.remarks(flow, config)
    }

    fn settings_remarks(
        &self,
        flow: &Flow,
        settings: &Value,
        config: &Value,
    ) -> Vec<(&'static str, Diagnostic)> {
        self.step.settings_remarks(flow, settings, config)
    }

    fn judged(&self, value: &Value) -> Option<Value> {
        self.step.judged(value)
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let mock = self.case.mock(cx.path(), cx.kind(), cx.attempt());
            let doubt = match self.step.effect(&config) {
                // The steps that it performs are watched separately.
                Effect::Pure | Effect::OwnStore | Effect::Steps => {
                    return match mock {
                        Some(mock) => given(mock),
                        None => self.step.run(cx, config).await,
                    };
                }
                Effect::Read => Doubt::Look,
                Effect::External => doubt(&config, self.step.repeats_safely(&config)),
            };
            let is_replayed = OVER_HTTP.contains(&cx.kind())
                && cx
                    .exchanges()
                    .is_some_and(|exchanges| exchanges.is_replay());
            let is_dear = doubt != Doubt::Look || is_costly(cx.kind());
            if mock.is_none() && !self.case.live && !is_replayed && is_dear {
                return Err(not_performed(cx));
            }
            self.points.pass();
            let outcome = match mock {
                Some(mock) => given(mock),
                None => self.step.run(cx, config).await,
            };
            let line = EffectLine {
                path: format!("{}/{}", cx.flow().slug, cx.path()),
                attempt: cx.attempt(),
                doubt,
            };
            self.log.add(&line).map_err(|error| {
                let message = format!("the list of effects cannot be written: {error}");
                StepError::new("E0582", "unavailable", message)
            })?;
            self.points.pass();
            outcome
        })
    }
}

fn is_costly(kind: &str) -> bool {
    COSTLY.contains(&kind)
}

/// The engine's decision for a step that changes something outside.
fn doubt(config: &Value, repeats_safely: bool) -> Doubt {
    let says = config.get("on-doubt").and_then(name_of);
    let has_key = config
        .get("idempotency-key")
        .is_some_and(|key| !key.is_nil());
    match says.as_deref() {
        Some("ask" | "fail") => Doubt::Ask,
        None if !has_key && !repeats_safely => Doubt::Ask,
        _ => Doubt::Repeat,
    }
}

/// Converts a mock to the result of the step. `{:mock/error {:kind :timeout :message "..." :retry? true}}` fails.
fn given(mock: Value) -> Result<Outcome, StepError> {
    let key = Value::keyword("mock/error");
    let error = mock
        .as_map()
        .and_then(|map| map.entries().get(&key).cloned());
    let Some(error) = error else {
        return Ok(Outcome::Value(mock));
    };
    let message = error.get("message").and_then(Value::as_str);
    let message = message.unwrap_or("the mock says so").to_owned();
    let kind = error.get("kind").and_then(name_of);
    let retry = match error.get("retry?") {
        Some(Value::Bool(true)) => Retry::Backoff,
        _ => Retry::Never,
    };
    let after = error.get("retry-after-ms").and_then(Value::as_int);
    let retry = match after.and_then(|millis| u64::try_from(millis).ok()) {
        Some(millis) => Retry::After(Duration::from_millis(millis)),
        None => retry,
    };
    let mut failure = StepError::new("E0584", "mocked", message).retry(retry);
    if let Some(kind) = kind {
        failure = failure.with("kind", Value::keyword(&kind));
    }
    Err(failure)
}

fn not_performed(cx: &StepContext) -> StepError {
    let id = cx.step_id();
    let message = format!(
        "a test does not perform `:{}` steps, and there is no mock for `:{id}`",
        cx.kind()
    );
    StepError::new("E0583", "no-mock", message).hint(format!(
        "say what it gives with `:mock {{:{id} ...}}` in the case, or let it be performed with `--live`"
    ))
}
