//! Decides whether waiting for a file handle helps.
//!
//! A step that finds no file handle tries again later, because other steps of the process release theirs. If no step is
//! in progress and each attempt of the last seconds failed for the same reason, no handle will be released: the run
//! stops, and resumes in a process that has more of them.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::step::Effect;

/// Time during which every attempt must have lacked a handle.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time during which no attempt begins after the decision to stop a run: one that began before the run has stopped
/// would be in doubt.
const STOPPING: Duration = Duration::from_secs(5);

/// Shared by the whole process, like file handles.
static ATTEMPTS: Mutex<Attempts> = Mutex::new(Attempts {
    under_way: 0,
    lacking_since: None,
    stopping_until: None,
});

struct Attempts {
    under_way: usize,
    lacking_since: Option<Instant>,
    /// The time until which no attempt begins, because a run stops for lack of a handle.
    stopping_until: Option<Instant>,
}

/// An attempt in progress: from before its intent is journaled until its outcome is, so that no run stops with another
/// attempt in doubt.
pub(super) struct Attempt {
    /// Whether it counts; an attempt that performs nested steps does not, because those count.
    counts: bool,
}

impl Attempt {
    /// Begins an attempt as soon as no run is being stopped.
    pub(super) async fn begin(effect: Effect) -> Attempt {
        let counts = effect != Effect::Steps;
        while let Some(wait) = with(|attempts| attempts.enter(counts)) {
            tokio::time::sleep(wait).await;
        }
        Attempt { counts }
    }

    /// Records its outcome. Returns whether it lacked a handle and no later attempt will find one.
    pub(super) fn note(&self, has_lacked: bool) -> bool {
        with(|attempts| match has_lacked {
            true => {
                let since = *attempts.lacking_since.get_or_insert_with(Instant::now);
                let others = attempts.under_way - usize::from(self.counts);
                let is_hopeless = others == 0 && since.elapsed() >= PATIENCE;
                if is_hopeless {
                    attempts.stopping_until = Some(Instant::now() + STOPPING);
                }
                is_hopeless
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

impl Attempts {
    /// Counts an attempt that begins. While a run is being stopped, returns how long it has to wait instead.
    fn enter(&mut self, counts: bool) -> Option<Duration> {
        let left = self
            .stopping_until
            .map(|until| until.saturating_duration_since(Instant::now()))
            .filter(|left| counts && !left.is_zero());
        if left.is_none() {
            self.under_way += usize::from(counts);
        }
        left
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
