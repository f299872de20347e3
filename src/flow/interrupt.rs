//! Requests to suspend a run: by Ctrl-C, or by a server that shuts down.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a waiting run checks the flag that a signal handler sets.
const POLL_INTERVAL: Duration = Duration::from_millis(40);

/// A request to suspend a run. It may be made from any thread, or from a signal handler.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
    /// Set when the store has news for the run, such as a cancellation.
    news: Arc<AtomicBool>,
    /// The flags of the parent runs, which suspend this run too.
    above: Vec<Arc<AtomicBool>>,
}

impl Interrupt {
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// Returns an interrupt with a flag that is set elsewhere.
    pub fn from_flag(flag: Arc<AtomicBool>) -> Interrupt {
        Interrupt {
            flag,
            ..Interrupt::default()
        }
    }

    /// Returns an interrupt for a child run: it can be triggered alone, and is set whenever this one is.
    pub fn below(&self) -> Interrupt {
        let mut above = self.above.clone();
        above.push(self.flag.clone());
        Interrupt {
            above,
            ..Interrupt::default()
        }
    }

    /// Requests that the run is suspended at the next safe point.
    pub fn trigger(&self) {
        self.flag.store(true, Ordering::SeqCst);
    }

    pub fn is_set(&self) -> bool {
        let mut flags = self.above.iter().chain([&self.flag]);
        flags.any(|flag| flag.load(Ordering::SeqCst))
    }

    /// Makes the run check whether it is cancelled.
    pub fn notify(&self) {
        self.news.store(true, Ordering::SeqCst);
    }

    /// Tells whether there is news, and clears the mark.
    pub fn take_notification(&self) -> bool {
        self.news.swap(false, Ordering::SeqCst)
    }

    /// Waits until there is news, at most for the time of `patience`.
    pub async fn notified(&self, patience: Duration) {
        let mut left = patience;
        while !self.news.load(Ordering::SeqCst) && !left.is_zero() {
            let slice = left.min(POLL_INTERVAL);
            tokio::time::sleep(slice).await;
            left -= slice;
        }
    }

    /// Waits until the run is asked to suspend. Polls the flag, because a signal handler can only set a flag.
    pub async fn wait(&self) {
        while !self.is_set() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}
