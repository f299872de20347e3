//! Pays for native work: equality, hashing, printing, numbers, regexes report what they do in units of fuel.
//!
//! An evaluation installs a [`Watch`] while it runs. Every [`RATION`] units, the watch is asked whether the evaluation
//! may continue. Without a watch, the machine pays after each native function. A stop is remembered until the machine
//! takes it, so that an operation which cannot fail, such as a look-up in a map, may return anything at once.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{Result, Stop, drops};

/// The machine is to call [`take_due`].
const DUE: u8 = 1;
/// A program of this thread has replaced native functions.
const REPLACED: u8 = 2;

fn set_due(is_due: bool) {
    let others = SPECIAL.get() & !DUE;
    SPECIAL.set(if is_due { others | DUE } else { others });
}

/// How many units are spent between two questions to the watch: less than a millisecond of work.
const RATION: u32 = 1 << 14;

/// The limits of an evaluation, as native work sees them.
pub trait Watch {
    /// Takes units from the fuel of the evaluation, and checks deadline, cancellation and memory.
    ///
    /// # Errors
    /// Why the evaluation must stop.
    fn spend(&self, units: u64) -> std::result::Result<(), Stop>;

    /// Checks deadline and cancellation, and takes no fuel. Called while values are dropped, so it must not depend on how
    /// many they are where a replay has to find the same place.
    ///
    /// # Errors
    /// Why the evaluation must stop.
    fn glance(&self) -> std::result::Result<(), Stop> {
        Ok(())
    }

    /// Gives other evaluations of the thread a turn. Called only where no borrow is alive.
    ///
    /// # Errors
    /// Why the evaluation must stop.
    fn turn(&self) -> std::result::Result<(), Stop> {
        Ok(())
    }
}

thread_local! {
    /// Units that are left of the ration.
    static CREDIT: Cell<u32> = const { Cell::new(RATION) };
    /// What the machine has to look at before a native function: [`DUE`], [`REPLACED`]. One flag, because nearly all calls ask.
    static SPECIAL: Cell<u8> = const { Cell::new(0) };
    /// Whether a ration was used up since the machine asked.
    static TURN_IS_DUE: Cell<bool> = const { Cell::new(false) };
    /// Units that were spent while no watch was installed: a machine whose host has none pays for them.
    static UNPAID: Cell<u64> = const { Cell::new(0) };
    /// How many pieces of work hold what other evaluations must not find held.
    static HELD: Cell<u32> = const { Cell::new(0) };
    static METER: RefCell<Meter> = const { RefCell::new(Meter::NONE) };
}

/// A watch, and why the evaluation under it must stop.
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

    /// Notes why the evaluation must stop, while it does not run.
    pub(crate) fn stop(&mut self, stop: Stop) {
        self.stop = Some(stop);
    }
}

/// Installs a meter and returns the one before.
pub(crate) fn replace(meter: Meter) -> Meter {
    CREDIT.set(if meter.stop.is_some() { 0 } else { RATION });
    set_due(meter.stop.is_some());
    match meter.stop.is_some() {
        true => drops::begin(),
        false => drops::end(),
    }
    // While a thread ends nothing is evaluated any more.
    METER
        .try_with(|current| current.replace(meter))
        .unwrap_or_default()
}

/// Installs a watch for as long as the guard lives.
pub fn watched(watch: Option<Rc<dyn Watch>>) -> Watched {
    Watched(replace(Meter::new(watch)))
}

/// See [`watched`].
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
/// The stop, when a limit of the evaluation is met.
#[inline]
pub fn spend(units: u32) -> Result<()> {
    match CREDIT.get().checked_sub(units) {
        Some(left) => {
            CREDIT.set(left);
            Ok(())
        }
        None => settle(units, false),
    }
}

/// As [`spend`], and gives other evaluations of the thread a turn. No borrow, lock or span guard may be alive here.
///
/// # Errors
/// As [`spend`].
#[inline]
pub fn spend_in_turns(units: u32) -> Result<()> {
    match CREDIT.get().checked_sub(units) {
        Some(left) => {
            CREDIT.set(left);
            Ok(())
        }
        None => settle(units, true),
    }
}

/// As [`spend`], for work that is also done where nothing is evaluated, such as reading the answer of a server: there it is
/// free.
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
        None => settle(units, false),
    }
}

#[cold]
fn settle(units: u32, in_turns: bool) -> Result<()> {
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
            match in_turns && HELD.get() == 0 {
                true => paid.and_then(|()| watch.turn()),
                false => paid.inspect(|()| {
                    TURN_IS_DUE.set(true);
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

/// Does work in whose middle other evaluations get no turn: a look-up in a map, for example.
pub(crate) fn without_turns<T>(work: impl FnOnce() -> T) -> T {
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

/// Returns the units that nothing has paid for.
pub(crate) fn take_unpaid() -> u64 {
    UNPAID.take()
}

/// Tells whether the machine is to call [`take_due`].
#[inline]
pub(crate) fn is_due() -> bool {
    SPECIAL.get() & DUE != 0
}

/// Has the limits checked after the native function that runs: the memory of the thread has grown.
#[inline]
pub(super) fn note_growth() {
    // A thread that is ending evaluates nothing.
    let _ = SPECIAL.try_with(|special| special.set(special.get() | DUE));
}

/// Checks the limits, and tells whether other evaluations are to get a turn. A stop stays: all further work fails as well.
///
/// # Errors
/// The stop of the evaluation, if a limit is met.
#[cold]
pub(crate) fn take_due() -> Result<bool> {
    let turn_is_due = TURN_IS_DUE.replace(false);
    settle(0, false)?;
    TURN_IS_DUE.set(false);
    set_due(false);
    Ok(turn_is_due)
}

/// Forgets the stop while a `finally` runs, which the stop allows: it has native work of its own to do.
pub(crate) fn begin_finally() {
    CREDIT.set(RATION);
    set_due(false);
    METER.with_borrow_mut(|meter| meter.stop = None);
    // What unwinding has dropped so far counts for the run's memory, which the `finally` needs.
    drops::end();
    drops::free_all();
}

/// Remembers why the evaluation must stop: all further native work fails, and what it held is freed later.
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
    watch.glance().inspect_err(remember).is_err()
}

/// Tells whether the machine has to look at anything before a native function.
#[inline(always)]
pub(crate) fn is_special() -> bool {
    SPECIAL.get() != 0
}

/// Notes that a program of this thread has replaced native functions.
pub(crate) fn note_replaced() {
    SPECIAL.set(SPECIAL.get() | REPLACED);
}

/// Returns the stop of the evaluation, for those whose work cannot fail in the middle.
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
    fn a_stop_stays_until_the_watch_is_taken_away() {
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
