//! The clock of the machine.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use crate::ports::{Clock, wall_clock_ms};

/// The clock of the machine.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        wall_clock_ms()
    }

    fn sleep_until(&self, due_ms: i64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            // In pieces, so that a clock that is set, or a machine that slept, is noticed.
            loop {
                let left = due_ms - self.now_ms();
                let Ok(left) = u64::try_from(left) else {
                    return;
                };
                if left == 0 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(left.min(60_000))).await;
            }
        })
    }
}
