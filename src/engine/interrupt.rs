//! Asking a run to leave memory: Ctrl-C, a server that shuts down.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How soon a flag that a signal handler set is seen while the run waits for something.
const GLANCE: Duration = Duration::from_millis(40);

/// A request to suspend that may be made from any thread, or from a signal handler.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// Takes a flag that somebody else sets.
    pub fn from_flag(flag: Arc<AtomicBool>) -> Interrupt {
        Interrupt(flag)
    }

    /// Asks the run to suspend at the next safe moment.
    pub fn trigger(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Returns when it is asked for. A signal handler can only set a flag, so the flag is looked at.
    pub async fn wait(&self) {
        while !self.is_set() {
            tokio::time::sleep(GLANCE).await;
        }
    }
}
