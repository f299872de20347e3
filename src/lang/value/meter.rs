//! Pays for native work: equality, hashing, printing, numbers and regexes report their work in units of fuel.
//!
//! An evaluation installs a [`Watch`] while it runs. Every [`RATION`] units, the watch decides whether the evaluation
//! may continue. Without a watch, the machine pays after each native function. A stop is remembered until the machine
//! takes it, so that an operation that cannot fail, such as a look-up in a map, may return any value at once.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{Result, Stop, drops};

/// Set when the machine must call [`take_due`].
const DUE: u8 = 1;
/// Set when a program of this thread has replaced native functions.
const REPLACED: u8 = 2;

fn set_due(is_due: bool) {
    let others = SPECIAL.get() & !DUE;
    SPECIAL.set(if is_due { others | DUE } else { others });
}

/// Number of units spent between two checks by the watch: less than a millisecond of work.
const RATION: u32 = 1 << 14;

/// The limits of an evaluation, as checked by native work.
pub trait Watch {
    /// Takes units from the fuel of the evaluation, and checks deadline, cancellation and memory.
    ///
    /// # Errors
    /// The reason why the evaluation must stop.
    fn spend(&self, units: u64) -> std::result::Result<(), Stop>;

    /// Checks deadline and cancellation, and takes no fuel. Called while values are dropped; their number may differ in
    /// a replay, which must find the same place, so the result must not depend on it.
    ///
    /// # Errors
    /// The reason why the evaluation must stop.
    fn check_interrupt(&self) -> std::result::Result<(), Stop> {
        Ok(())
    }

    /// Yields to other evaluations of the thread. Called only when no borrow is alive.
    ///
    /// # Errors
    /// The reason why the evaluation must stop.
    fn yield_now(&self) -> std::result::Result<(), Stop> {
        Ok(())
    }
}

thread_local! {
    /// Units that remain in the ration.
    static CREDIT: Cell<u32> = const { Cell::new(RATION) };
    /// What the machine has to check before a native function: [`DUE`], [`REPLACED`]. Combined in one flag, because
    /// nearly all calls check it.
    static SPECIAL: Cell<u8> = const { Cell::new(0) };
    /// Whether a ration was used up since the machine last checked.
    static YIELD_IS_DUE: Cell<bool> = const { Cell::new(false) };
    /// Units that were spent while no watch was installed: a machine whose host has none pays for them.
    static UNPAID: Cell<u64> = const { Cell::new(0) };
    /// Number of active operations during which other evaluations must not run.
    static HELD: Cell<u32> = const { Cell::new(0) };
    static METER: RefCell<Meter> = const { RefCell::new(Meter::NONE) };
}

/// A watch, and the reason why the evaluation under it must stop.
#[derive(Default)]
pub(crate) struct Meter {
    watch: Option<Rc<dyn Watch>>,
    stop: Option<Stop>,
}

impl Meter {
    const NONE: Meter = Meter {
        watch: None,
        stop: None,
    };

    /// Returns a meter for a watch.
    pub(crate) fn new(watch: Option<Rc<dyn Watch>>) -> Meter {
        Meter { watch, stop: None }
    }

    /// Sets the reason why the evaluation must stop, while it does not run.
    pub(crate) fn stop(&mut self, stop: Stop) {
        self.stop = Some(stop);
    }
}

/// Installs a meter and returns the previous one.
pub(crate) fn replace(meter: Meter) -> Meter {
    CREDIT.set(if meter.stop.is_some() { 0 } else { RATION });
    set_due(meter.stop.is_some());
    match meter.stop.is_some() {
        true => drops::begin(),
        false => drops::end(),
    }
    // Nothing is evaluated while a thread ends.
    METER
        .try_with(|current| current.replace(meter))
        .unwrap_or_default()
}

/// Installs a watch for as long as the guard lives.
pub fn watched(watch: Option<Rc<dyn Watch>>) -> Watched {
    Watched(replace(Meter::new(watch)))
}

/// Guard that restores the previous watch. See [`watched`].
#[must_use = "the watch is taken away with the guard"]
pub struct Watched(Meter);

impl Drop for Watched {
    fn drop(&mut self) {
        replace(std::mem::take(&mut self.0));
    }
}

/// Tells whether this watch is installed.
pub(crate) fn is_installed(watch: &Rc<dyn Watch>) -> bool {
    METER.with_borrow(|meter| {
        let installed = meter.watch.as_ref();
        installed
            .is_some_and(|installed| std::ptr::addr_eq(Rc::as_ptr(installed), Rc::as_ptr(watch)))
    })
}

/// Pays for work that was done or is about to be done.
///
/// # Errors
/// The stop, if a limit of the evaluation is reached.
#[inline]
pub fn spend(units: u32) -> Result<()> {
    match CREDIT.get().checked_sub(units) {
        Some(left) => {
            CREDIT.set(left);
            Ok(())
        }
        None => pay(units, false),
    }
}

/// Like [`spend`], and yields to other evaluations of the thread. No borrow, lock or span guard may be alive here.
///
/// # Errors
/// As [`spend`].
#[inline]
pub fn spend_and_yield(units: u32) -> Result<()> {
    match CREDIT.get().checked_sub(units) {
        Some(left) => {
            CREDIT.set(left);
            Ok(())
        }
        None => pay(units, true),
    }
}

/// Like [`spend`], for work that is also done outside evaluations, such as parsing the response of a server: there it
/// is free.
///
/// # Errors
/// As [`spend`].
#[inline]
pub fn spend_watched(units: u32) -> Result<()> {
    match CREDIT.get().checked_sub(units) {
        Some(left) => {
            CREDIT.set(left);
            Ok(())
        }
        None if METER.with_borrow(|meter| meter.watch.is_none()) => {
            CREDIT.set(RATION);
            Ok(())
        }
        None => pay(units, false),
    }
}

#[cold]
fn pay(units: u32, may_yield: bool) -> Result<()> {
    let spent = u64::from(RATION.saturating_sub(CREDIT.get())) + u64::from(units);
    CREDIT.set(RATION);
    let (watch, stop) = METER.with_borrow(|meter| (meter.watch.clone(), meter.stop.clone()));
    let result = match (watch, stop) {
        (_, Some(stop)) => Err(stop),
        (None, None) => {
            UNPAID.set(UNPAID.get().saturating_add(spent));
            set_due(true);
            return Ok(());
        }
        (Some(watch), None) => {
            let paid = watch.spend(spent);
            match may_yield && HELD.get() == 0 {
                true => paid.and_then(|()| watch.yield_now()),
                false => paid.inspect(|()| {
                    YIELD_IS_DUE.set(true);
                    set_due(true);
                }),
            }
        }
    };
    result.map_err(|stop| {
        remember(&stop);
        stop.into()
    })
}

/// Does work that is not interrupted by other evaluations, such as a look-up in a map.
pub(crate) fn without_yielding<T>(work: impl FnOnce() -> T) -> T {
    HELD.set(HELD.get() + 1);
    let _held = Held;
    work()
}

struct Held;

impl Drop for Held {
    fn drop(&mut self) {
        HELD.set(HELD.get() - 1);
    }
}

/// Takes the units that were not paid for yet.
pub(crate) fn take_unpaid() -> u64 {
    UNPAID.take()
}

/// Tells whether the machine must call [`take_due`].
#[inline]
pub(crate) fn is_due() -> bool {
    SPECIAL.get() & DUE != 0
}

/// Requests a check of the limits after the current native function: the memory of the thread has grown.
#[inline]
pub(super) fn note_growth() {
    // A thread that is ending evaluates nothing.
    let _ = SPECIAL.try_with(|special| special.set(special.get() | DUE));
}

/// Checks the limits, and returns whether to yield to other evaluations. A stop is permanent: all further work fails as
/// well.
///
/// # Errors
/// The stop of the evaluation, if a limit is reached.
#[cold]
pub(crate) fn take_due() -> Result<bool> {
    let turn_is_due = YIELD_IS_DUE.replace(false);
    pay(0, false)?;
    YIELD_IS_DUE.set(false);
    set_due(false);
    Ok(turn_is_due)
}

/// Clears the stop while a `finally` runs, if the stop allows it, because the `finally` needs native work.
pub(crate) fn begin_finally() {
    CREDIT.set(RATION);
    set_due(false);
    METER.with_borrow_mut(|meter| meter.stop = None);
    // Values that unwinding has dropped so far count towards the run's memory, which the `finally` needs.
    drops::end();
    drops::free_all();
}

/// Remembers why the evaluation must stop: all further native work fails, and its values are freed later.
#[cold]
pub(crate) fn remember(stop: &Stop) {
    METER.with_borrow_mut(|meter| {
        if meter.watch.is_some() {
            meter.stop = Some(stop.clone());
            CREDIT.set(0);
            set_due(true);
            drops::begin();
        }
    });
}

/// Checks, in the middle of a drop, whether the evaluation must stop.
pub(super) fn is_stopped_now() -> bool {
    let found = METER.try_with(|meter| {
        let meter = meter.try_borrow().ok()?;
        Some((meter.watch.clone()?, meter.stop.is_some()))
    });
    let Ok(Some((watch, is_stopped))) = found else {
        return false;
    };
    if is_stopped {
        return true;
    }
    watch.check_interrupt().inspect_err(remember).is_err()
}

/// Tells whether the machine must check anything before a native function.
#[inline(always)]
pub(crate) fn is_special() -> bool {
    SPECIAL.get() != 0
}

/// Records that a program of this thread has replaced native functions.
pub(crate) fn note_replaced() {
    SPECIAL.set(SPECIAL.get() | REPLACED);
}

/// Returns the stop of the evaluation, for callers whose work cannot fail part-way.
///
/// # Errors
/// The stop.
pub fn stopped() -> Result<()> {
    if CREDIT.get() > 0 {
        return Ok(());
    }
    match METER.with_borrow(|meter| meter.stop.clone()) {
        Some(stop) => Err(stop.into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number of units that may be spent.
    struct Allowance(Cell<u64>);

    impl Watch for Allowance {
        fn spend(&self, units: u64) -> std::result::Result<(), Stop> {
            let left = self.0.get().checked_sub(units).ok_or(Stop::OutOfFuel)?;
            self.0.set(left);
            Ok(())
        }
    }

    #[test]
    fn work_without_a_watch_is_free() {
        for _ in 0..100 {
            assert!(spend(RATION).is_ok());
        }
    }

    #[test]
    fn a_stop_remains_until_the_watch_is_removed() {
        {
            let _watched = watched(Some(Rc::new(Allowance(Cell::new(100_000)))));
            let rations = (0..100).take_while(|_| spend(RATION).is_ok()).count();
            assert!((5..=7).contains(&rations), "{rations}");
            assert!(is_due());
            assert!(spend(1).is_err());
            assert!(take_due().is_err());
            assert!(stopped().is_err());
        }
        assert!(!is_due());
        assert!(stopped().is_ok());
        assert!(spend(RATION + 1).is_ok());
    }
}
