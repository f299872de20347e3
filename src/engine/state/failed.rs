//! An attempt failed: it is tried again, or the step ends according to its `:on-error`.

use std::time::Duration;

use flowstone_lang::value::Value;

use super::{Action, Asking, Decision, Note, OnError, Policy, Progress};
use crate::duration;
use crate::step::StepError;

/// The first pause before another attempt to get a file handle; it doubles up to a maximum.
const LACK: Duration = Duration::from_millis(250);
const LONGEST_LACK: Duration = Duration::from_secs(15);
/// Number of waits after which the pause no longer grows.
const MOST_LACKS: u32 = 8;

pub(super) fn decide(
    progress: &Progress,
    error: Box<StepError>,
    (now_ms, random): (i64, u64),
    policy: &Policy<'_>,
) -> Decision {
    let round = progress.attempts.saturating_sub(progress.base);
    let delay = policy.retry.delay(round, &error, random);
    let due_ms = delay.map(|delay| now_ms.saturating_add(duration::millis(delay)));
    match due_ms.filter(|due_ms| policy.deadline_ms.is_none_or(|end_ms| *due_ms < end_ms)) {
        Some(due_ms) => retry(progress, &error, due_ms, false),
        None => for_good(error, policy),
    }
}

/// The step waits for a file handle for as long as necessary, which does not count as an attempt of the retry policy.
pub(super) fn no_handle(progress: &Progress, error: &StepError, now_ms: i64) -> Decision {
    let doublings = progress.lacks.min(MOST_LACKS);
    let delay = LACK.saturating_mul(1 << doublings).min(LONGEST_LACK);
    let due_ms = now_ms.saturating_add(duration::millis(delay));
    retry(progress, error, due_ms, true)
}

fn retry(progress: &Progress, error: &StepError, due_ms: i64, lack: bool) -> Decision {
    Decision::note(Note::Retry {
        attempt: progress.attempts,
        due_ms,
        message: error.message.clone(),
        code: error.code,
        status: error.data.get("status").and_then(Value::as_int),
        lack,
    })
}

/// Ends a step that failed permanently.
pub(super) fn for_good(error: Box<StepError>, policy: &Policy<'_>) -> Decision {
    match policy.on_error {
        OnError::Checkpoint => Decision::then(Action::Ask(Box::new(Asking::Failure(error)))),
        OnError::Fail => Decision::note(Note::Failed(error)),
        OnError::Skip => Decision {
            notes: vec![Note::Skip, Note::Failed(error)],
            then: None,
        },
    }
}
