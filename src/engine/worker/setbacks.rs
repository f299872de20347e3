//! Backoff for runs that cannot be executed, and for runs that are woken repeatedly without progress.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::EngineError;
use crate::ids::RunId;
use crate::ports::StoreError;

/// The first pause; each one is twice the one before it.
const FIRST_MS: i64 = 1_000;
const LONGEST_MS: i64 = 5 * 60_000;
/// Number of internal errors in a row after which a run is not retried soon: it would fail in the same way.
const INTERNAL: u32 = 3;
/// Pause after an error that lasts. An operation that this build does not support will not succeed later; a worker that starts retries at
/// once.
const LASTING_ERROR_MS: i64 = 24 * 3_600_000;
/// A run that returns within this time, this many times in a row, is looping.
const SOON_MS: i64 = 100;
const LOOPS: u32 = 50;
/// Maximum number of runs that are tracked.
const KEPT: usize = 4096;

/// The failures of runs that make no progress.
#[derive(Debug, Default)]
pub(super) struct Setbacks(Mutex<HashMap<RunId, Known>>);

#[derive(Debug, Default)]
struct Known {
    failures: u32,
    loops: u32,
    /// The run was found looping, and has made no progress since.
    was_looping: bool,
    /// When it was left, or the end of its pause.
    left_ms: i64,
    /// The wait that it was left at.
    wait: Option<String>,
}

impl Setbacks {
    /// Returns when to retry after an error; `None` if another process has the run now.
    pub(super) fn after(&self, run: &RunId, error: &EngineError, now_ms: i64) -> Option<i64> {
        let pause = match error {
            EngineError::Store(StoreError::LeaseLost { .. }) | EngineError::Held { .. } => {
                return None;
            }
            EngineError::BadProgram { .. }
            | EngineError::Diverged { .. }
            | EngineError::Interactive { .. }
            | EngineError::OtherAbi { .. } => LASTING_ERROR_MS,
            _ => {
                let mut all = self.lock();
                let known = all.entry(run.clone()).or_default();
                let pause = FIRST_MS.saturating_mul(1 << known.failures.min(16));
                known.failures += 1;
                let pause = match error {
                    EngineError::Internal(_) if known.failures >= INTERNAL => LASTING_ERROR_MS,
                    _ => pause.min(LONGEST_MS),
                };
                if known.was_looping {
                    known.left_ms = now_ms.saturating_add(pause);
                }
                pause
            }
        };
        Some(now_ms.saturating_add(pause))
    }

    /// Records that a run was left waiting; tells whether it returns repeatedly without progress. Another wait than before
    /// is progress. Progress ends a row of failures; a run that loops again right after its pause continues the row.
    pub(super) fn is_looping(&self, run: &RunId, wait: Option<&str>, now_ms: i64) -> bool {
        let mut all = self.lock();
        if all.len() > KEPT {
            all.retain(|_, known| known.failures > 0 || now_ms - known.left_ms < SOON_MS);
        }
        let known = all.entry(run.clone()).or_default();
        let is_same = wait.is_none() || known.wait.as_deref() == wait;
        let soon_ms = if known.was_looping { FIRST_MS } else { SOON_MS };
        let is_soon = is_same && now_ms - known.left_ms < soon_ms;
        known.was_looping &= is_soon;
        if !known.was_looping {
            known.failures = 0;
        }
        known.wait = wait.map(str::to_owned);
        known.left_ms = now_ms;
        known.loops = if is_soon { known.loops + 1 } else { 0 };
        let is_looping = known.loops > LOOPS;
        if is_looping {
            known.was_looping = true;
            known.loops = 0;
        }
        is_looping
    }

    pub(super) fn forget(&self, run: &RunId) {
        self.lock().remove(run);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_fails_again_and_again_by_an_internal_error_is_left_aside() {
        let (setbacks, run) = (Setbacks::default(), RunId::from_text("r"));
        let error = EngineError::Internal("wrong".to_owned());
        let pauses: Vec<Option<i64>> = (0..4).map(|_| setbacks.after(&run, &error, 0)).collect();
        let expected = [FIRST_MS, 2 * FIRST_MS, LASTING_ERROR_MS, LASTING_ERROR_MS];
        assert_eq!(pauses, expected.map(Some));
        let other = RunId::from_text("s");
        let busy = EngineError::Store(StoreError::Busy);
        for _ in 0..20 {
            assert!(setbacks.after(&other, &busy, 0) <= Some(LONGEST_MS));
        }
    }

    #[test]
    fn a_run_that_loops_again_after_each_pause_is_left_aside_for_a_day() {
        let (setbacks, run) = (Setbacks::default(), RunId::from_text("r"));
        let error = EngineError::Internal("it loops".to_owned());
        let mut now_ms = 1_000_000;
        let mut pauses = Vec::new();
        while pauses.len() < 3 {
            now_ms += 1;
            if setbacks.is_looping(&run, None, now_ms) {
                let again_ms = setbacks.after(&run, &error, now_ms).expect("a pause");
                pauses.push(again_ms - now_ms);
                now_ms = again_ms;
            }
        }
        assert_eq!(pauses, [FIRST_MS, 2 * FIRST_MS, LASTING_ERROR_MS]);
        // A run that returns late has made progress: the row begins again.
        let later_ms = now_ms + 10 * FIRST_MS;
        assert!(!setbacks.is_looping(&run, None, later_ms));
        let again_ms = setbacks.after(&run, &error, later_ms);
        assert_eq!(again_ms, Some(later_ms + FIRST_MS));
    }

    #[test]
    fn a_run_that_comes_to_another_wait_each_time_is_not_circling() {
        let setbacks = Setbacks::default();
        let run = RunId::from_text("a");
        let waits = (0..200).map(|number| format!("w{number}"));
        for wait in waits {
            assert!(!setbacks.is_looping(&run, Some(&wait), 0), "{wait}");
        }
        let mut loops = (0..200).map(|_| setbacks.is_looping(&run, Some("w"), 0));
        assert!(loops.any(|is_looping| is_looping));
        let other = RunId::from_text("b");
        let mut loops = (0..200).map(|_| setbacks.is_looping(&other, None, 0));
        assert!(loops.any(|is_looping| is_looping));
    }
}
