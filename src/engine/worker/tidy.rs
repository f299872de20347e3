//! Collects garbage without delaying runs.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::lane::Load;
use crate::Interrupt;
use crate::engine::Engine;

/// Delay before a worker's first collection.
const FIRST: Duration = Duration::from_secs(60);
/// How often the worker checks whether a collection is due.
const EVERY: Duration = Duration::from_secs(3600);
/// How often the worker checks for an idle period once a collection is due.
const LOOK: Duration = Duration::from_secs(1);

/// Collects garbage at most once a day, when no run is unfinished. Never returns: it is dropped with its owner, and
/// completed removals remain.
pub(super) async fn tidy(
    engine: &Engine,
    loads: &[Arc<Load>],
    interrupt: &Interrupt,
) -> std::convert::Infallible {
    let mut wait = FIRST;
    loop {
        tokio::time::sleep(wait).await;
        wait = match is_quiet(loads) {
            true => {
                engine.collect_garbage_daily(interrupt).await;
                EVERY
            }
            false => LOOK,
        };
    }
}

/// Cancels tests whose callers are gone. Never returns.
pub(super) async fn left_tests(engine: &Engine) -> std::convert::Infallible {
    loop {
        // A store that fails is reported by the dispatcher; the next round tries again.
        let _ = engine.interrupt_left_tests().await;
        tokio::time::sleep(FIRST).await;
    }
}

fn is_quiet(loads: &[Arc<Load>]) -> bool {
    loads
        .iter()
        .all(|load| load.held.load(Ordering::SeqCst) == 0)
}
