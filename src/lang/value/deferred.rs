//! Functions that a var held and that a frame may still run.
//!
//! A call through a var does not count a reference to the function. So replacing the root leaves the old function here
//! until no machine of this thread runs, or until the running machine reports which functions it needs.

use std::cell::{Cell, RefCell};

use super::Value;

/// Number of deferred functions after which a machine checks which of them it needs.
const MANY: usize = 256;

thread_local! {
    static DEFERRED: RefCell<Vec<Value>> = const { RefCell::new(Vec::new()) };
    static RUNNING: Cell<usize> = const { Cell::new(0) };
    /// Number of deferred functions at which the next sweep is due.
    static LIMIT: Cell<usize> = const { Cell::new(MANY) };
}

/// A running machine; created when the machine is entered from outside.
pub(crate) struct Running;

impl Running {
    pub(crate) fn begin() -> Running {
        RUNNING.set(RUNNING.get() + 1);
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let left = RUNNING.get().saturating_sub(1);
        RUNNING.set(left);
        if left == 0 {
            // Taken out before dropping: the drop of a function may run code that replaces another one.
            let free = DEFERRED.try_with(|deferred| std::mem::take(&mut *deferred.borrow_mut()));
            drop(free);
        }
    }
}

/// Keeps the previous root of a var for as long as a frame may run it.
pub(super) fn defer(old: Value) {
    if RUNNING.get() == 0 || !matches!(old, Value::Fn(_)) {
        return;
    }
    // If the list is gone, the thread is ending, and no code runs any more.
    let _ = DEFERRED.try_with(|deferred| deferred.borrow_mut().push(old));
}

/// Tells whether [`sweep`] is due. Only the one machine that runs may sweep.
pub(crate) fn is_sweep_due() -> bool {
    RUNNING.get() == 1 && DEFERRED.with_borrow(Vec::len) >= LIMIT.get()
}

/// Drops the deferred functions for which `is_needed` is false.
pub(crate) fn sweep(is_needed: impl Fn(&Value) -> bool) {
    let all = DEFERRED.take();
    let (kept, free): (Vec<Value>, Vec<Value>) = all.into_iter().partition(is_needed);
    LIMIT.set(MANY.max(kept.len() * 2));
    DEFERRED.with_borrow_mut(|deferred| deferred.extend(kept));
    drop(free);
}
