//! Probing a step that was in progress when the process ended: it may or may not have been done.

use std::pin::pin;
use std::rc::Rc;

use flowstone_lang::value::Value;

use super::call::StepCall;
use super::requests::{Performed, Request};
use super::{Executor, Halt};
use crate::codec;
use crate::diagnostic::nearest;
use crate::doubt::{OnDoubt, Probe};
use crate::error::EngineError;
use crate::expect;
use crate::flow::name_of;
use crate::state::{Event, Probed};
use crate::step::{Effect, Outcome, Progress, StepError};

/// Options that have no meaning for a probe, which only reads.
const NOT_FOR_PROBES: &[&str] = &[
    "confirm",
    "idempotency-key",
    "metering",
    "on-doubt",
    "on-error",
    "persist",
    "review",
];

/// The finding of a probe.
enum Found {
    Done(Value),
    NotDone,
}

impl Executor<'_> {
    /// Checks whether an attempt in doubt was done.
    pub(super) async fn probe(&self, request: &Request<'_, '_>) -> Result<Performed, Halt> {
        let call = request.call;
        let OnDoubt::Probe(probe) = &call.on_doubt else {
            let message = "a step without a probe was to be probed".to_owned();
            return Err(EngineError::Internal(message).into());
        };
        let probed = match self.probe_effect(call, probe).await? {
            Ok(Found::Done(value)) => {
                let text = codec::encode(&value).map_err(EngineError::from)?;
                Probed::Done(self.scope.redact_edn(text))
            }
            Ok(Found::NotDone) => Probed::NotDone,
            Err(error) => Probed::Failed {
                settle: probe.otherwise,
                error: Box::new(in_doubt(call, Some(&error))),
            },
        };
        Ok(Performed::Event(Event::Probed(probed)))
    }

    async fn probe_effect(
        &self,
        call: &StepCall<'_>,
        probe: &Probe,
    ) -> Result<Result<Found, StepError>, Halt> {
        (self.scope.progress)(
            &call.path,
            Progress::Status("checking whether it was done".to_owned()),
        );
        let cx = call.context(self, call.attempts.get());
        let check = match &probe.check {
            Value::Map(_) => Ok(probe.check.clone()),
            code => match cx.function(code) {
                Ok(code) => cx.call(&code, &[self.doubted(call)]).await,
                Err(error) => Err(error),
            },
        };
        let check = match check {
            Ok(check) => check,
            Err(error) => return Ok(Err(error)),
        };
        let seen = match check.get("type") {
            Some(kind) if check.as_map().is_some() => {
                match self.perform_probe(call, kind, &check).await? {
                    Ok(seen) => seen,
                    // A missing object was not created.
                    Err(error) if error.kind == "not-found" => return Ok(Ok(Found::NotDone)),
                    Err(error) => return Ok(Err(error)),
                }
            }
            _ => check,
        };
        let verdict = match &probe.done {
            None => Ok(seen),
            Some(code) => match cx.function(code) {
                Ok(code) => cx.call(&code, std::slice::from_ref(&seen)).await,
                Err(error) => Err(error),
            },
        };
        Ok(verdict.map(found))
    }

    /// Returns the input of a probe's code.
    fn doubted(&self, call: &StepCall<'_>) -> Value {
        Value::map([
            (
                Value::keyword("run-id"),
                Value::from(self.scope.run.as_str()),
            ),
            (Value::keyword("path"), Value::from(call.at.as_str())),
            (
                Value::keyword("step-id"),
                Value::from(call.path.step.as_str()),
            ),
            (
                Value::keyword("attempts"),
                Value::Int(i64::from(call.attempts.get())),
            ),
            (
                Value::keyword("idempotency-key"),
                Value::from(call.idempotency_key.as_str()),
            ),
            (Value::keyword("config"), call.config.clone()),
        ])
    }

    /// Performs the step of a probe, which must be a read, with its own retries. Only its result is journaled, because
    /// repeating a read is harmless.
    async fn perform_probe(
        &self,
        doubted: &StepCall<'_>,
        kind: &Value,
        config: &Value,
    ) -> Result<Result<Value, StepError>, Halt> {
        let call = match self.probing(doubted, kind, config) {
            Ok(call) => call,
            Err(error) => return Ok(Err(error)),
        };
        let mut attempt = 0;
        loop {
            attempt += 1;
            call.attempts.set(attempt);
            let cx = call.context(self, attempt);
            let performing = pin!(async {
                match call.step.run(&cx, call.config.clone()).await? {
                    Outcome::Value(value) => {
                        if let Some(expectation) = call.config.get("expect")
                            && let Some(judged) = call.step.judged(&value)
                        {
                            expect::check(&cx, expectation, &judged).await?;
                        }
                        Ok(Outcome::Value(value))
                    }
                    Outcome::Child(_)
                    | Outcome::Commit(_)
                    | Outcome::Suspend(_)
                    | Outcome::Sleep { .. } => Err(only_reads(call.spec.kind)),
                }
            });
            let error = match self.guarded(&call, performing).await? {
                Ok(Outcome::Value(value)) => return Ok(Ok(value)),
                Ok(_) => only_reads(call.spec.kind),
                Err(error) => error,
            };
            let random = self.engine.services.random.next();
            let Some(delay) = call.retry.delay(attempt, &error, random) else {
                return Ok(Err(error));
            };
            let due_ms = self.now_ms().saturating_add(crate::duration::millis(delay));
            let clock = self.engine.services.clock.clone();
            tokio::select! {
                biased;
                () = clock.sleep_until(due_ms) => {}
                halt = self.halted() => return Err(halt),
            }
        }
    }

    /// Checks the config of a probe.
    fn probing<'s>(
        &'s self,
        doubted: &StepCall<'_>,
        kind: &Value,
        config: &Value,
    ) -> Result<StepCall<'s>, StepError> {
        let name = name_of(kind).unwrap_or_else(|| Rc::from(""));
        let step = self.engine.services.steps.iter().find(|step| {
            let spec = step.spec();
            spec.kind == &*name || spec.aliases.contains(&&*name)
        });
        let Some(step) = step else {
            let message = format!("there is no step type `:{name}` for a probe");
            let kinds = self
                .engine
                .services
                .steps
                .iter()
                .map(|step| step.spec().kind);
            let error = StepError::config("E0454", message);
            return Err(match nearest(&name, kinds) {
                Some(near) => error.hint(format!("did you mean `:{near}`?")),
                None => error,
            });
        };
        if let Some(option) = NOT_FOR_PROBES
            .iter()
            .find(|option| config.get(option).is_some_and(|given| !given.is_nil()))
        {
            let message = format!("`:{option}` means nothing for a probe");
            return Err(StepError::config("E0454", message));
        }
        let mut call = self.call(
            &doubted.branch,
            (&**step, step.spec()),
            doubted.path.clone(),
            config,
        )?;
        if !matches!(call.effect, Effect::Read | Effect::Pure) {
            return Err(only_reads(call.spec.kind));
        }
        call.idempotency_key.clone_from(&doubted.idempotency_key);
        Ok(call)
    }
}

/// Parses the finding of a probe: `{:done? ... :value ...}`, or any value as true or false.
fn found(verdict: Value) -> Found {
    let done = match verdict.as_map() {
        Some(_) => verdict.get("done?"),
        None => None,
    };
    match done {
        Some(done) if done.is_truthy() => {
            Found::Done(verdict.get("value").cloned().unwrap_or(Value::Nil))
        }
        Some(_) => Found::NotDone,
        None if verdict.is_truthy() => Found::Done(verdict),
        None => Found::NotDone,
    }
}

fn only_reads(kind: &str) -> StepError {
    let message = format!("a probe only reads, and this `:{kind}` step may change something");
    StepError::config("E0534", message).hint("probe with a step that reads")
}

pub(super) fn in_doubt(call: &StepCall<'_>, failure: Option<&StepError>) -> StepError {
    let mut message = format!(
        "the process ended while the `:{}` step was under way, so that it may or may not have been done",
        call.spec.kind
    );
    if let Some(failure) = failure {
        message.push_str("; its probe failed: ");
        message.push_str(&failure.message);
    }
    StepError::new("E0522", "in-doubt", message)
        .hint("look at the other side; `:on-doubt :retry` says that doing it twice is harmless")
}
