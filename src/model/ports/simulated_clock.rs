//! A clock for tests that moves only as the test needs.
//!
//! A flowing clock moves to the earliest time that a task sleeps until, as soon as no other task has anything to do;
//! sleepers wake in the order of these times. A standing clock moves only with [`SimulatedClock::advance`]. Both can be
//! set back, like the clock of a machine.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use super::Clock;

/// Number of times that other tasks run before the clock moves: they may be about to sleep for less.
const MAX_YIELDS: u32 = 4;

/// A clock for tests; see the module.
#[derive(Debug)]
pub struct SimulatedClock {
    flows: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    now_ms: i64,
    /// Wakers by the time that a task sleeps until, and the order in which they began to sleep.
    sleepers: BTreeMap<(i64, u64), Waker>,
    slept: u64,
}

impl SimulatedClock {
    /// Returns a flowing clock, which moves to the earliest time that a task sleeps until.
    pub fn starting_at(now_ms: i64) -> SimulatedClock {
        SimulatedClock::new(now_ms, true)
    }

    /// Returns a standing clock, which moves only when it is advanced.
    pub fn standing_at(now_ms: i64) -> SimulatedClock {
        SimulatedClock::new(now_ms, false)
    }

    fn new(now_ms: i64, flows: bool) -> SimulatedClock {
        let state = State {
            now_ms,
            ..State::default()
        };
        SimulatedClock {
            flows,
            state: Mutex::new(state),
        }
    }

    /// Moves the clock, back with a negative number, and wakes the tasks that are due, in the order of their times.
    pub fn advance(&self, by_ms: i64) {
        let now_ms = self.now_ms().saturating_add(by_ms);
        self.set(now_ms);
    }

    /// Sets the clock to a time, which may be an earlier one, and wakes the tasks that are due.
    pub fn set(&self, now_ms: i64) {
        let mut state = self.lock();
        state.now_ms = now_ms;
        state.wake_due();
    }

    /// Returns the earliest time that a task sleeps until.
    pub fn next_due_ms(&self) -> Option<i64> {
        self.lock().sleepers.keys().next().map(|(due, _)| *due)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for SimulatedClock {
    fn default() -> SimulatedClock {
        SimulatedClock::starting_at(0)
    }
}

impl State {
    fn wake_due(&self) {
        let due = self.sleepers.range(..=(self.now_ms, u64::MAX));
        due.for_each(|(_, waker)| waker.wake_by_ref());
    }

    /// Wakes the sleeper that is first now, so that it checks the time again.
    fn wake_first(&self) {
        if let Some((_, waker)) = self.sleepers.first_key_value() {
            waker.wake_by_ref();
        }
    }
}

impl Clock for SimulatedClock {
    fn now_ms(&self) -> i64 {
        self.lock().now_ms
    }

    fn sleep_until(&self, due_ms: i64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(Sleep {
            clock: self,
            due_ms,
            place: None,
            yields: 0,
        })
    }
}

struct Sleep<'a> {
    clock: &'a SimulatedClock,
    due_ms: i64,
    /// The key in the map of sleepers, once it is there.
    place: Option<(i64, u64)>,
    yields: u32,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let (clock, due_ms) = (self.clock, self.due_ms);
        let mut state = clock.lock();
        if state.now_ms >= due_ms {
            return Poll::Ready(());
        }
        let place = *self.place.get_or_insert_with(|| {
            state.slept += 1;
            (due_ms, state.slept)
        });
        state.sleepers.insert(place, cx.waker().clone());
        let is_first = state.sleepers.keys().next() == Some(&place);
        if !clock.flows || !is_first {
            return Poll::Pending;
        }
        if self.yields < MAX_YIELDS {
            self.yields += 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        state.now_ms = due_ms;
        Poll::Ready(())
    }
}

impl Drop for Sleep<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            let mut state = self.clock.lock();
            state.sleepers.remove(&place);
            state.wake_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        tokio::task::LocalSet::new().block_on(&runtime, future)
    }

    /// Yields until every task that can run has run.
    async fn settle() {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    type Woken = Rc<RefCell<Vec<(i64, i64)>>>;

    fn sleepers(clock: &std::sync::Arc<SimulatedClock>, dues: &[i64]) -> Woken {
        let woken = Woken::default();
        for due in dues.iter().copied() {
            let (clock, woken) = (clock.clone(), woken.clone());
            tokio::task::spawn_local(async move {
                clock.sleep_until(due).await;
                woken.borrow_mut().push((due, clock.now_ms()));
            });
        }
        woken
    }

    #[test]
    fn sleepers_wake_in_the_order_of_their_due_times() {
        block_on(async {
            let clock = std::sync::Arc::new(SimulatedClock::starting_at(10));
            let woken = sleepers(&clock, &[40, 20, 5, 30]);
            for _ in 0..10 {
                settle().await;
            }
            assert_eq!(*woken.borrow(), [(5, 10), (20, 20), (30, 30), (40, 40)]);
        });
    }

    #[test]
    fn a_standing_clock_moves_only_when_it_is_advanced() {
        block_on(async {
            let clock = std::sync::Arc::new(SimulatedClock::standing_at(0));
            let woken = sleepers(&clock, &[30, 10, 20]);
            settle().await;
            assert_eq!(clock.next_due_ms(), Some(10));
            clock.advance(25);
            settle().await;
            assert_eq!(*woken.borrow(), [(10, 25), (20, 25)]);
            assert_eq!(clock.next_due_ms(), Some(30));
        });
    }

    #[test]
    fn a_clock_that_was_set_back_wakes_each_sleeper_once() {
        block_on(async {
            let clock = std::sync::Arc::new(SimulatedClock::standing_at(100));
            let woken = sleepers(&clock, &[110]);
            settle().await;
            clock.advance(-50);
            clock.advance(20);
            settle().await;
            assert!(woken.borrow().is_empty());
            clock.set(115);
            settle().await;
            clock.advance(-100);
            clock.advance(200);
            settle().await;
            assert_eq!(*woken.borrow(), [(110, 115)]);
        });
    }

    #[test]
    fn a_cancelled_sleep_does_not_move_the_clock() {
        block_on(async {
            let clock = std::sync::Arc::new(SimulatedClock::starting_at(0));
            let short = async {
                tokio::select! {
                    biased;
                    () = clock.sleep_until(5) => {}
                    () = tokio::task::yield_now() => {}
                }
            };
            short.await;
            clock.sleep_until(9).await;
            assert_eq!((clock.now_ms(), clock.next_due_ms()), (9, None));
        });
    }
}
