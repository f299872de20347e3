//! Waiting for a child run: executes it here, or suspends until its end is reported.
//!
//! The state of a child is in its own row. The wait that its end completes only wakes this run, so a signal that
//! arrives twice, or without an open wait, changes nothing.

use std::time::Duration;

use flowstone_lang::value::{Exception, Value};

use super::branch::{Branch, Waiting};
use super::call::StepCall;
use super::deadline::out_of_time;
use super::requests::{Performed, Request};
use super::{Executor, Halt, Stay};
use crate::error::EngineError;
use crate::ids::RunId;
use crate::outcome::{RunOutcome, decode_failure};
use crate::ports::{CHILD_KEY, Change, EntryKind, ParentClose, RunRow, RunStatus, WaitState};
use crate::state::Note;
use crate::step::{Outcome, Retry, StepError};

/// Interval at which a process that stays checks whether the child run ended.
const POLL_EVERY_MS: i64 = 250;
/// The error code of a step whose child did not complete.
const FAILED: &str = "E0548";

impl Executor<'_> {
    /// Journals that a step waits for its child.
    pub(super) fn start_child(
        &self,
        request: &mut Request<'_, '_>,
        child: RunId,
    ) -> Result<Performed, Halt> {
        let call = request.call;
        let attempt = request.progress.attempts;
        let key = format!("{CHILD_KEY}{child}");
        let details = format!("{{:kind :child :run \"{child}\"}}");
        let note = Note::Child {
            attempt,
            run: child,
        };
        let text = note.into_payload(|error| self.error_text(call, error));
        let entry = call.entry(self, EntryKind::Timer, text.clone());
        let wait = self.new_wait(wait_path(call, attempt), key, None, details);
        self.shared.journal.append(entry);
        self.shared.journal.push(Change::OpenWait(Box::new(wait)));
        self.shared.journal.post()?;
        request.progress.fold(EntryKind::Timer, text);
        Ok(Performed::Moved)
    }

    /// Waits until a child has ended, and returns the consequence for the step.
    pub(super) async fn await_child(
        &self,
        request: &mut Request<'_, '_>,
        child: RunId,
    ) -> Result<Performed, Halt> {
        let call = request.call;
        call.branch
            .set_child(child.clone(), crate::call_flow::close(&call.config));
        let mut blocked_on = None;
        loop {
            let row = self.engine.run_row(&child).await?;
            let check_ms = self.set_deadline(call).await?;
            let end_ms = match row.status.is_final() {
                true => row.ended_ms.unwrap_or(row.updated_ms),
                false => self.now_ms(),
            };
            if self.is_late(call, end_ms) {
                return self.child_is_late(request, &row).await;
            }
            request.policy.deadline_ms = call.deadline_ms.get();
            if row.status.is_final() {
                return self.child_ended(request, &row).await;
            }
            let is_new = blocked_on.is_none();
            // The child of a test is held for this process from its start.
            let is_held_here = self.options.is_test && !row.begun;
            let executes = !self.options.leave_children && (!row.executing || is_held_here);
            if executes && (is_new || self.engine.can_go_on(&row).await?) {
                blocked_on = self.execute_child(call, &row).await?;
                if blocked_on.is_none() {
                    continue;
                }
            }
            let reason = match blocked_on.as_ref().or(row.wait_reason.as_ref()) {
                Some(reason) => format!("`{}` waits for run {child}: {reason}", call.title),
                None => format!("`{}` waits for run {child}", call.title),
            };
            blocked_on.get_or_insert_default();
            self.wait_for_child(call, reason, check_ms).await?;
        }
    }

    /// Executes a child as far as possible. Returns what it waits for, if it has not ended.
    async fn execute_child(
        &self,
        call: &StepCall<'_>,
        row: &RunRow,
    ) -> Result<Option<String>, Halt> {
        let executed = self.tree.execute(
            row,
            call.branch.clone(),
            self.observer.clone(),
            &self.options,
        );
        let halt = loop {
            let check_ms = self.set_deadline(call).await?;
            if self.is_late(call, self.now_ms()) {
                self.leave_child(&call.branch);
                executed.leave();
                let _ = executed.outcome().await;
                return Ok(None);
            }
            // Like the timeout of an attempt, not a sleeper of a simulated clock: that would skip the work of the child.
            let checked = async {
                match check_ms.map(|check_ms| check_ms.saturating_sub(self.now_ms())) {
                    Some(left) => {
                        let left = u64::try_from(left).unwrap_or(0);
                        tokio::time::sleep(Duration::from_millis(left)).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                outcome = executed.outcome() => return self.child_outcome(outcome),
                halt = self.halted() => break halt,
                () = checked => {}
            }
        };
        if matches!(halt, Halt::Cancelled { .. }) {
            self.leave_child(&call.branch);
        }
        // The child's work in progress is allowed to finish.
        executed.leave();
        let _ = executed.outcome().await;
        Err(halt)
    }

    fn child_outcome(
        &self,
        outcome: Result<RunOutcome, EngineError>,
    ) -> Result<Option<String>, Halt> {
        match outcome {
            Ok(RunOutcome::Waiting { reason, .. } | RunOutcome::Stuck { reason }) => {
                Ok(Some(reason))
            }
            Ok(RunOutcome::Queued { place }) => {
                let behind: Vec<&str> = place.behind.iter().map(RunId::as_str).collect();
                Ok(Some(format!("it is queued behind {}", behind.join(", "))))
            }
            Ok(RunOutcome::Interrupted) => match self.options.interrupt.is_set() {
                true => Err(Halt::Interrupted),
                false => Ok(Some("it was interrupted".to_owned())),
            },
            Ok(RunOutcome::Completed(_) | RunOutcome::Failed(_) | RunOutcome::Cancelled { .. }) => {
                Ok(None)
            }
            Err(EngineError::Held { owner, .. }) => Ok(Some(format!("{owner} executes it"))),
            Err(error) => Err(Halt::Engine(error)),
        }
    }

    /// Ends the child of an abandoned branch according to its policy.
    pub(super) fn leave_child(&self, branch: &Branch) {
        let Some((child, close)) = branch.take_child() else {
            return;
        };
        if self.replay_only || self.dry_run.is_some() {
            return;
        }
        let only = Some(child.clone());
        self.shared.journal.push(Change::CloseChildren { only });
        // If this fails, the next commit fails as well.
        let _ = self.shared.journal.post();
        if close == ParentClose::RequestCancel && !self.options.leave_children {
            let observer = self.observer.clone();
            self.tree.tidy_up(child, observer, &self.options);
        }
    }

    /// Suspends, or waits briefly. `check_ms`: when the deadline of the step is to be checked.
    async fn wait_for_child(
        &self,
        call: &StepCall<'_>,
        reason: String,
        check_ms: Option<i64>,
    ) -> Result<(), Halt> {
        self.mark_waiting(call, &reason, check_ms, Vec::new())
            .await?;
        let waiting = Waiting {
            reason,
            due_ms: check_ms,
            stays: self.options.stay == Stay::Always,
        };
        if !waiting.stays {
            return self.poll_again(call, &waiting).await;
        }
        let _waiting = call.branch.wait(waiting);
        let clock = self.engine.services.clock.clone();
        tokio::select! {
            biased;
            () = clock.sleep_until(self.now_ms() + POLL_EVERY_MS) => Ok(()),
            halt = self.halted() => Err(halt),
        }
    }

    /// Returns the changes that the end of this run causes for others: its parent is notified, and its children end
    /// according to their policies.
    pub(super) fn part(&self, status: RunStatus) -> Vec<Change> {
        let run = &self.scope.run;
        let signal = self.facts.has_parent.then(|| Change::Signal {
            key: format!("{CHILD_KEY}{run}"),
            dedup: run.to_string(),
            payload: format!("{{:status :{}}}", status.name()),
        });
        signal
            .into_iter()
            .chain([Change::CloseChildren { only: None }])
            .collect()
    }

    /// Ends the step because its `:total-timeout` is over. A child that has not ended is left.
    async fn child_is_late(
        &self,
        request: &mut Request<'_, '_>,
        row: &RunRow,
    ) -> Result<Performed, Halt> {
        let call = request.call;
        if !row.status.is_final() {
            self.leave_child(&call.branch);
        }
        self.close_wait_for_child(request).await?;
        let error = out_of_time(call)
            .with("run", row.id.as_str())
            .with("flow", row.flow.as_str());
        Ok(Performed::failed(error))
    }

    /// Closes the wait for a child that the step no longer waits for.
    async fn close_wait_for_child(&self, request: &Request<'_, '_>) -> Result<(), Halt> {
        let call = request.call;
        call.branch.take_child();
        let path = wait_path(call, request.progress.attempts);
        let wait = self.find_wait(&path).await?;
        if wait.state != WaitState::Closed {
            self.shared.journal.push(Change::CloseWait {
                path: wait.path,
                seen: wait.state,
            });
        }
        self.awake();
        Ok(())
    }

    /// Handles the end of a child.
    async fn child_ended(
        &self,
        request: &mut Request<'_, '_>,
        row: &RunRow,
    ) -> Result<Performed, Halt> {
        let call = request.call;
        let attempt = request.progress.attempts;
        self.close_wait_for_child(request).await?;
        if row.status != RunStatus::Completed {
            return Ok(self.failed_attempt(failed(row)));
        }
        let text = row.result.as_deref().unwrap_or("nil");
        let value = self.decode(text)?;
        let ended_ms = row.ended_ms.unwrap_or_else(|| self.now_ms());
        let lasted_ms = (ended_ms - row.created_ms).max(0);
        request.since_ms = Some(self.now_ms().saturating_sub(lasted_ms));
        let cx = call.context(self, attempt);
        match self.accept(call, &cx, Outcome::Value(value)).await {
            Ok(outcome) => self.settle(request, outcome).await,
            Err(error) => Ok(self.failed_attempt(error)),
        }
    }
}

/// Returns the key of the wait for a child; each attempt has its own.
fn wait_path(call: &StepCall<'_>, attempt: u32) -> String {
    match attempt {
        1 => call.at.clone(),
        attempt => format!("{}?~{attempt}", call.at),
    }
}

/// Returns the error of a step whose child did not complete.
fn failed(row: &RunRow) -> StepError {
    let (run, flow) = (row.id.as_str(), row.flow.as_str());
    let reason = row.cancel_requested.as_deref().unwrap_or("");
    let error = match row.status {
        RunStatus::TimedOut => StepError::new(
            "E0548",
            "timeout",
            format!("the run {run} of `{flow}` did not finish in time, and was cancelled"),
        ),
        RunStatus::Failed => of_failure(row),
        status => StepError::new(
            "E0548",
            "child-failed",
            format!("the run {run} of `{flow}` was {}: {reason}", status.name()),
        ),
    };
    error
        .retry(Retry::Backoff)
        .with("run", run)
        .with("flow", flow)
        .with("status", Value::keyword(row.status.name()))
        .hint(format!("look at it with `flowstone runs show {run}`"))
}

fn of_failure(row: &RunRow) -> StepError {
    let failure = row.error.as_deref().and_then(decode_failure);
    let what = failure
        .as_ref()
        .map(|failure| innermost(&failure.exception));
    let message = format!(
        "the run {} of `{}` failed: {}",
        row.id,
        row.flow,
        what.as_deref().unwrap_or("its error cannot be read")
    );
    let error = StepError::new("E0548", "child-failed", message);
    let Some(failure) = failure else {
        return error;
    };
    let error = error.with("error", facts(&failure.exception));
    match failure.place {
        Some(place) => error.with(
            "place",
            format!("{}:{}:{}", place.file, place.line, place.column),
        ),
        None => error,
    }
}

/// Returns the root cause in the error: a run that failed because its own child did adds no information.
fn innermost(exception: &Exception) -> String {
    let mut message = exception.display_text();
    let mut at = (exception.code, &exception.data);
    while at.0 == FAILED
        && let Some(error) = at.1.get("error")
        && let Some(text) = error.get("message").and_then(Value::as_str)
    {
        message = text;
        let code = error.get("code").and_then(Value::as_str).unwrap_or("");
        let Some(data) = error.get("data").filter(|_| code == FAILED) else {
            break;
        };
        at = (FAILED, data);
    }
    message.to_owned()
}

/// Returns a child's error as data, because the data of an exception must not contain another exception.
fn facts(exception: &Exception) -> Value {
    Value::map([
        (
            Value::keyword("message"),
            Value::from(exception.display_text()),
        ),
        (Value::keyword("code"), Value::from(exception.code)),
        (Value::keyword("data"), exception.data.clone()),
    ])
}
