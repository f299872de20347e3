//! The ports of time and randomness.

use std::future::Future;
use std::pin::Pin;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

/// Wall-clock time.
pub trait Clock: Send + Sync {
    /// Returns milliseconds since 1970.
    fn now_ms(&self) -> i64;

    /// Waits until the time has come, in milliseconds since 1970.
    fn sleep_until(&self, due_ms: i64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

/// Returns the time of the machine's clock, in milliseconds since 1970.
pub fn wall_clock_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

/// Random bits that cannot be predicted.
pub trait Random: Send + Sync {
    fn next(&self) -> u64;
}

/// The randomness of the operating system.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemRandom;

impl Random for SystemRandom {
    fn next(&self) -> u64 {
        getrandom::u64().expect("the operating system gives random bytes")
    }
}

/// Deterministic randomness for tests: the mutex holds the state of the generator.
impl Random for Mutex<u64> {
    fn next(&self) -> u64 {
        let mut state = self
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(*state)
    }
}

/// The finishing function of SplitMix64.
pub fn mix(state: u64) -> u64 {
    let mut bits = state;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
