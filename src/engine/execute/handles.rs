//! Whether it helps to wait for a file handle.
//!
//! A step that finds no file handle tries again later, because other steps of the process give theirs back. Where none
//! is under way and each attempt of the last seconds failed for the same reason, nothing will be given back: the run
//! stops, and resumes in a process that has more of them.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::step::Effect;

/// How long every attempt must have lacked a handle.
const PATIENCE: Duration = Duration::from_secs(10);

/// Of the whole process, as file handles are.
static ATTEMPTS: Mutex<Attempts> = Mutex::new(Attempts {
    under_way: 0,
    lacking_since: None,
});

struct Attempts {
    under_way: usize,
    lacking_since: Option<Instant>,
}

/// An attempt that is under way: from before its intent is journaled until its outcome is, so that no run stops with
/// another attempt in doubt.
pub(super) struct Attempt {
    /// One that performs other steps says nothing: those inside count.
    counts: bool,
}

impl Attempt {
    pub(super) fn begin(effect: Effect) -> Attempt {
        let counts = effect != Effect::Steps;
        with(|attempts| attempts.under_way += usize::from(counts));
        Attempt { counts }
    }

    /// Notes its outcome. Returns whether it lacked a handle and no later attempt will find one.
    pub(super) fn note(&self, has_lacked: bool) -> bool {
        with(|attempts| match has_lacked {
            true => {
                let since = *attempts.lacking_since.get_or_insert_with(Instant::now);
                let others = attempts.under_way - usize::from(self.counts);
                others == 0 && since.elapsed() >= PATIENCE
            }
            false => {
                if self.counts {
                    attempts.lacking_since = None;
                }
                false
            }
        })
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        with(|attempts| attempts.under_way -= usize::from(self.counts));
    }
}

fn with<T>(change: impl FnOnce(&mut Attempts) -> T) -> T {
    change(&mut ATTEMPTS.lock().unwrap_or_else(PoisonError::into_inner))
}
