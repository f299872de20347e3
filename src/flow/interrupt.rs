//! Asking a run to leave memory: Ctrl-C, a server that shuts down.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How soon a flag that a signal handler set is seen while the run waits for something.
const GLANCE: Duration = Duration::from_millis(40);

/// A request to suspend that may be made from any thread, or from a signal handler.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    flag: Arc<AtomicBool>,
    /// There are news in the store for the run.
    news: Arc<AtomicBool>,
    /// The flags of the runs above, which suspend this one with them.
    above: Vec<Arc<AtomicBool>>,
}

impl Interrupt {
    pub fn new() -> Interrupt {
        Interrupt::default()
    }

    /// Takes a flag that somebody else sets.
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

    /// Asks the run to suspend at the next safe moment.
    pub fn trigger(&self) {
        self.flag.store(true, Ordering::SeqCst);
    }

    pub fn is_set(&self) -> bool {
        let mut flags = self.above.iter().chain([&self.flag]);
        flags.any(|flag| flag.load(Ordering::SeqCst))
    }

    /// Lets the run know that it is to look whether it is cancelled.
    pub fn tell_news(&self) {
        self.news.store(true, Ordering::SeqCst);
    }

    /// Tells whether there are news, once.
    pub fn take_news(&self) -> bool {
        self.news.swap(false, Ordering::SeqCst)
    }

    /// Returns when there may be news, at the latest after a while.
    pub async fn news(&self, patience: Duration) {
        let mut left = patience;
        while !self.news.load(Ordering::SeqCst) && !left.is_zero() {
            let slice = left.min(GLANCE);
            tokio::time::sleep(slice).await;
            left -= slice;
        }
    }

    /// Returns when it is asked for. A signal handler can only set a flag, so the flag is looked at.
    pub async fn wait(&self) {
        while !self.is_set() {
            tokio::time::sleep(GLANCE).await;
        }
    }
}
