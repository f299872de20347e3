//! The crash points of a test, counted as they are passed.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::ports::{CommitPhase, Probe, StoreError};

/// Counts crash points, and ends the process at one of them.
#[derive(Debug)]
pub struct Points {
    passed: AtomicU64,
    commits: AtomicU64,
    crash_at: Option<u64>,
}

impl Points {
    pub(super) fn new(crash_at: Option<u64>) -> Points {
        Points {
            passed: AtomicU64::new(0),
            commits: AtomicU64::new(0),
            crash_at,
        }
    }

    /// Returns how many points were passed.
    pub fn passed(&self) -> u64 {
        self.passed.load(Ordering::SeqCst)
    }

    /// Returns how many commits there were.
    pub fn commits(&self) -> u64 {
        self.commits.load(Ordering::SeqCst)
    }

    /// Passes a point, or dies there: nothing is unwound, flushed or reported.
    pub(super) fn pass(&self) {
        let number = self.passed.fetch_add(1, Ordering::SeqCst) + 1;
        if self.crash_at == Some(number) {
            std::process::abort();
        }
    }
}

impl Probe for Points {
    fn reach(&self, phase: CommitPhase) -> Result<(), StoreError> {
        if phase == CommitPhase::AfterCommit {
            self.commits.fetch_add(1, Ordering::SeqCst);
        }
        self.pass();
        Ok(())
    }
}
