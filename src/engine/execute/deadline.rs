//! The time limits of a step: `:timeout` of an attempt, and `:total-timeout` of all of them.
//!
//! Time in which a person is asked does not count for `:total-timeout`, whether the run or a run that it calls asks. It is
//! read from the stored waits, so a restart changes nothing about it.

use std::time::{Duration, Instant};

use super::call::StepCall;
use super::requests::Performed;
use super::{Executor, Halt};
use crate::duration;
use crate::step::{Retry, StepError};

/// The deadline of code is in milliseconds, so code can be stopped this much before the step's timeout.
const ROUNDING: Duration = Duration::from_millis(2);
/// How much earlier than its attempt a step may end by itself because its time is over: clients report what they know.
const EARLIER: Duration = Duration::from_millis(250);
/// While a person is asked, a run checks the deadline of a step that calls another run at most this often. The answer makes
/// it check, too.
const CHECK_EVERY_MS: i64 = 600_000;

/// The time limit of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TimeLimit {
    pub duration: Duration,
    /// The limit is the rest of the step's `:total-timeout`.
    is_total: bool,
}

impl StepCall<'_> {
    /// Returns the time limit of an attempt that begins now.
    pub(super) fn time_limit(&self, now_ms: i64) -> Option<TimeLimit> {
        let rest = self.deadline_ms.get().map(|deadline_ms| TimeLimit {
            duration: Duration::from_millis(
                u64::try_from(deadline_ms.saturating_sub(now_ms)).unwrap_or(0),
            ),
            is_total: true,
        });
        let own = self.timeout.map(|duration| TimeLimit {
            duration,
            is_total: false,
        });
        match (rest, own) {
            (Some(rest), Some(own)) if own.duration < rest.duration => Some(own),
            (rest, own) => rest.or(own),
        }
    }
}

impl TimeLimit {
    /// Returns the error of an attempt that reached its limit.
    pub(super) fn reached(self, call: &StepCall<'_>) -> StepError {
        match self.is_total {
            true => out_of_time(call),
            false => timed_out(call),
        }
    }

    /// Returns the error of the limit for an attempt that ended by itself because of it, and other errors as they are.
    pub(super) fn or_reached(
        self,
        call: &StepCall<'_>,
        began: Instant,
        error: StepError,
    ) -> StepError {
        let lasted = began.elapsed();
        let is_stopped = error.code == StepError::STOPPED && lasted + ROUNDING >= self.duration;
        let is_late = self.is_total && error.kind == "timeout" && lasted + EARLIER >= self.duration;
        match is_stopped || is_late {
            true => self.reached(call),
            false => error,
        }
    }
}

impl Executor<'_> {
    /// Determines when a step with `:total-timeout` has to end. Returns the time at which a run that waits for a called run
    /// checks it again.
    pub(super) async fn set_deadline(&self, call: &StepCall<'_>) -> Result<Option<i64>, Halt> {
        let Some(total) = call.total else {
            return Ok(None);
        };
        let now_ms = self.now_ms();
        let from_ms = total.from_ms.unwrap_or_else(|| {
            let since = call.since_ms.get().unwrap_or(now_ms);
            call.since_ms.set(Some(since));
            since
        });
        let asked = self
            .engine
            .asked_since(&self.scope.run, from_ms, now_ms)
            .await?;
        let deadline_ms = from_ms
            .saturating_add(duration::millis(total.limit))
            .saturating_add(asked.millis);
        call.deadline_ms.set(Some(deadline_ms));
        Ok(Some(match asked.is_open {
            true => deadline_ms.max(now_ms.saturating_add(CHECK_EVERY_MS)),
            false => deadline_ms,
        }))
    }

    /// Determines when the step has to end, and returns its end if that time has passed.
    pub(super) async fn check_deadline(
        &self,
        call: &StepCall<'_>,
    ) -> Result<Option<Performed>, Halt> {
        self.set_deadline(call).await?;
        Ok(self
            .is_late(call, self.now_ms())
            .then(|| Performed::failed(out_of_time(call))))
    }

    /// Tells whether something that ended at a time came after the deadline of its step.
    pub(super) fn is_late(&self, call: &StepCall<'_>, ended_ms: i64) -> bool {
        call.deadline_ms
            .get()
            .is_some_and(|deadline_ms| deadline_ms <= ended_ms)
    }
}

/// Returns the error of an attempt that reached the step's `:timeout`.
fn timed_out(call: &StepCall<'_>) -> StepError {
    let seconds = call.timeout.unwrap_or_default().as_secs_f64();
    StepError::new(
        "E0520",
        "timeout",
        format!("the step did not finish within its timeout of {seconds} s"),
    )
    .retry(Retry::Backoff)
    .hint("give it more time with `:timeout`, or another try with `:retry`")
}

/// Returns the error of a step that reached its `:total-timeout`.
pub(super) fn out_of_time(call: &StepCall<'_>) -> StepError {
    let limit = call.total.map(|total| total.limit).unwrap_or_default();
    let since = match call.total.and_then(|total| total.from_ms) {
        Some(_) => " since the time in `:from`",
        None => "",
    };
    let message = format!(
        "the step did not finish within its total timeout of {} s{since}",
        limit.as_secs_f64()
    );
    StepError::new("E0531", "timeout", message)
        .hint("`:total-timeout` bounds all attempts and the pauses between them: give it more time, or retry less")
}
