//! Removing what is kept no longer, beside the runs and never in their way.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::lane::Load;
use crate::Interrupt;
use crate::engine::Engine;

/// A worker that has just begun has better things to do.
const FIRST: Duration = Duration::from_secs(60);
/// How often it is asked whether it is time.
const EVERY: Duration = Duration::from_secs(3600);
/// How often a quiet moment is looked for, once it is time.
const LOOK: Duration = Duration::from_secs(1);

/// Collects garbage at most once a day, when no run is unfinished. Never returns: it is dropped with its owner, and
/// what was removed until then stays removed.
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

fn is_quiet(loads: &[Arc<Load>]) -> bool {
    loads
        .iter()
        .all(|load| load.held.load(Ordering::SeqCst) == 0)
}
