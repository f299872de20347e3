//! The end of an execution: the outcome of the flow, its compensation, and the final status of the row.

use std::rc::Rc;

use flowstone_lang::value::{Class, Exception, Signal, Stop, Value, meter};

use super::compensate::Compensated;
use super::{Ended, Executor, unstorable};
use crate::codec::{self, CodecError};
use crate::error::EngineError;
use crate::limits;
use crate::outcome::{Failure, RunOutcome, decode_failure, encode_failure};
use crate::ports::{Change, RunRow, RunStatus, RunUpdate, mix};
use crate::step::StepError;

/// The outcome of an execution.
pub(crate) enum Executed {
    Over(RunOutcome),
    /// The run begins its next pass.
    Again,
}

/// The reason for which a run is unwound at its deadline.
pub(super) const TOO_LONG: &str = "it took longer than it was given";

/// Returns the stored outcome of a run.
pub(super) fn stored_outcome(row: &RunRow) -> Result<RunOutcome, EngineError> {
    Ok(match row.status {
        RunStatus::Completed => {
            let text = row.result.as_deref().unwrap_or("nil");
            RunOutcome::Completed(codec::decode(text)?)
        }
        RunStatus::Failed => {
            let failure = row.error.as_deref().and_then(decode_failure);
            RunOutcome::Failed(Box::new(failure.ok_or_else(|| {
                EngineError::Internal("the stored error cannot be read".to_owned())
            })?))
        }
        RunStatus::Cancelled | RunStatus::Terminated => RunOutcome::Cancelled {
            reason: row.cancel_requested.clone().unwrap_or_default(),
            status: row.status,
        },
        RunStatus::TimedOut => RunOutcome::Cancelled {
            reason: TOO_LONG.to_owned(),
            status: row.status,
        },
        RunStatus::Queued
        | RunStatus::Running
        | RunStatus::Waiting
        | RunStatus::FailedCompensating => {
            return Err(EngineError::Internal("the run is not over".to_owned()));
        }
    })
}

/// The outcome of the flow.
enum Verdict {
    /// The text of the result, and its decoded value.
    Completed(String, Result<Value, CodecError>),
    Failed(Rc<Exception>),
    Cancelled(String),
    /// EDN text of the next pass's input.
    Again(String),
    Left(Ended),
}

impl Executor<'_> {
    /// Concludes the execution.
    pub(super) async fn conclude(&self, ended: Ended) -> Result<Executed, EngineError> {
        let verdict = self.verdict(ended);
        if matches!(verdict, Verdict::Failed(_) | Verdict::Cancelled(_)) {
            match self.compensate().await? {
                Compensated::All => {}
                Compensated::Left(left) => return self.leave(left).await.map(Executed::Over),
                Compensated::Stuck { path, why } => {
                    return self.stuck(&verdict, &path, &why).await.map(Executed::Over);
                }
            }
        }
        match verdict {
            Verdict::Completed(text, value) => self.complete(text, value?).await,
            Verdict::Failed(exception) => self.fail(exception).await,
            Verdict::Cancelled(reason) => self.cancelled(reason).await,
            Verdict::Left(left) => self.leave(left).await,
            Verdict::Again(input) => {
                let forked = self.shared.history.borrow().last_seed();
                let seed = self.facts.seed ^ forked.unwrap_or(0);
                let seed = mix(seed.wrapping_add(1));
                let changes = vec![
                    Change::CloseChildren { only: None },
                    Change::Restart { input, seed },
                ];
                self.shared.journal.commit(changes).await?;
                return Ok(Executed::Again);
            }
        }
        .map(Executed::Over)
    }

    fn verdict(&self, ended: Ended) -> Verdict {
        let cancelling = self.cancelling.borrow().clone();
        let stop = match ended {
            Ended::Value(_) if cancelling.is_some() => {
                return Verdict::Cancelled(cancelling.unwrap_or_default());
            }
            Ended::Value(value) => match self.watched(|| self.completed(&value)) {
                Ok(verdict) => return verdict,
                Err(stop) => stop,
            },
            Ended::Threw(exception) => return Verdict::Failed(exception),
            Ended::Stopped(stop) => stop,
            left @ (Ended::Interrupted | Ended::Suspended { .. }) => return Verdict::Left(left),
        };
        let usage = self.shared.journal.usage();
        let (code, hint) = match &stop {
            Stop::Cancelled => {
                let cancelling = self.cancelling.borrow().clone();
                return match (cancelling, self.again.take()) {
                    (None, Some(input)) => Verdict::Again(input),
                    (reason, _) => Verdict::Cancelled(reason.unwrap_or_default()),
                };
            }
            Stop::Evicted => return Verdict::Left(Ended::Interrupted),
            Stop::OutOfFuel | Stop::Deadline => {
                let raise = usage.how_to_raise(&limits::INSTRUCTIONS);
                (
                    "E0530",
                    format!("look for a loop that does not end, or {raise}"),
                )
            }
            Stop::OutOfMemory(_) => {
                let raise = usage.how_to_raise(&limits::MEMORY);
                let hint =
                    format!("work on one item at a time instead of keeping them all, or {raise}");
                (StepError::OUT_OF_MEMORY, hint)
            }
            Stop::Interrupted(_) | Stop::Exit(_) => ("E0532", "start the flow again".to_owned()),
        };
        let exception =
            Exception::new(Class::ERROR, code, format!("the run was stopped: {stop}")).hint(hint);
        Verdict::Failed(Rc::new(exception))
    }

    /// Processes the flow's result under the limits of the run.
    fn watched<T>(&self, work: impl FnOnce() -> T) -> Result<T, Stop> {
        let watch = meter::watched(Some(self.shared.clone()));
        let done = work();
        let stopped = meter::stopped();
        drop(watch);
        if let Some(reason) = self.take_cancel() {
            self.unwind(reason);
        }
        match stopped {
            Ok(()) => Ok(done),
            Err(Signal::Stop(stop)) => Err((*stop).clone()),
            Err(Signal::Throw(exception)) => Err(Stop::Interrupted(exception.text().to_owned())),
        }
    }

    fn completed(&self, value: &Value) -> Verdict {
        match codec::encode(value) {
            Ok(text) if text.len() > self.limits().result => {
                let most = limits::RESULT.shown(self.limits().result as u64);
                let message = format!(
                    "the result of the flow has {} bytes, and at most {most} are allowed",
                    text.len()
                );
                let raise = self.shared.journal.usage().how_to_raise(&limits::RESULT);
                let exception = Exception::new(Class::ERROR, limits::RESULT.code, message)
                    .hint(format!("return a reference to a file or blob, or {raise}"));
                Verdict::Failed(Rc::new(exception))
            }
            Ok(text) => {
                let text = self.scope.redact_edn(text);
                let value = codec::decode(&text);
                Verdict::Completed(text, value)
            }
            Err(error) => {
                let message = unstorable(&error);
                let exception = Exception::new(Class::ILLEGAL_ARGUMENT, error.code(), message);
                let exception = match error.hint() {
                    Some(hint) => exception.hint(hint),
                    None => exception,
                };
                Verdict::Failed(Rc::new(exception))
            }
        }
    }

    async fn complete(&self, text: String, value: Value) -> Result<RunOutcome, EngineError> {
        self.end(RunStatus::Completed, Some(text), None).await?;
        Ok(RunOutcome::Completed(value))
    }

    fn failure_text(&self, exception: &Rc<Exception>) -> String {
        self.scope.redact_edn(self.plain_failure_text(exception))
    }

    fn plain_failure_text(&self, exception: &Rc<Exception>) -> String {
        let sources = self.scope.session.world().sources.borrow();
        encode_failure(exception, &sources)
    }

    async fn fail(&self, exception: Rc<Exception>) -> Result<RunOutcome, EngineError> {
        let plain = self.plain_failure_text(&exception);
        let text = self.scope.redact_edn(plain.clone());
        let clean = (text != plain).then(|| decode_failure(&text)).flatten();
        self.end(RunStatus::Failed, None, Some(text)).await?;
        if let Some(failure) = clean {
            return Ok(RunOutcome::Failed(Box::new(failure)));
        }
        Ok(RunOutcome::Failed(Box::new(Failure {
            exception,
            session: Some(self.scope.session.clone()),
            place: None,
        })))
    }

    async fn cancelled(&self, reason: String) -> Result<RunOutcome, EngineError> {
        let row = self.engine.run_row(&self.scope.run).await?;
        let status = match row.cancel_requested {
            None if row.deadline_ms.is_some() => RunStatus::TimedOut,
            _ => RunStatus::Cancelled,
        };
        self.end(status, None, None).await?;
        Ok(RunOutcome::Cancelled { reason, status })
    }

    pub(crate) async fn end(
        &self,
        status: RunStatus,
        result: Option<String>,
        error: Option<String>,
    ) -> Result<(), EngineError> {
        let update = RunUpdate {
            status,
            wait_reason: None,
            due_ms: None,
            result,
            error,
        };
        let mut changes = vec![Change::CloseWaits, Change::Update(update)];
        changes.extend(self.part(status));
        self.shared.journal.commit(changes).await?;
        self.engine.send_ends_below(&self.scope.run).await
    }

    /// Suspends the run because a compensation failed.
    async fn stuck(
        &self,
        verdict: &Verdict,
        path: &str,
        why: &str,
    ) -> Result<RunOutcome, EngineError> {
        let reason = self.scope.redact(format!("`{path}` failed: {why}"));
        let error = match verdict {
            Verdict::Failed(exception) => Some(self.failure_text(exception)),
            _ => None,
        };
        let update = RunUpdate {
            status: RunStatus::FailedCompensating,
            wait_reason: Some(reason.clone()),
            due_ms: None,
            result: None,
            error,
        };
        let changes = vec![Change::Update(update)];
        self.shared.journal.commit(changes).await?;
        Ok(RunOutcome::Stuck { reason })
    }

    async fn leave(&self, left: Ended) -> Result<RunOutcome, EngineError> {
        self.settle_now().await?;
        let Ended::Suspended { reason, due_ms } = left else {
            return Ok(RunOutcome::Interrupted);
        };
        let is_executed = !self.replay_only && self.dry_run.is_none();
        if is_executed && self.is_unwinding() && !self.facts.is_unwinding {
            // Otherwise a delivered cancel request would make the waiting run due again at once.
            self.shared.journal.commit(vec![Change::Unwind]).await?;
        }
        let waits = self.engine.waits_below(&self.scope.run).await?;
        Ok(RunOutcome::Waiting {
            reason,
            due_ms,
            waits,
        })
    }
}
