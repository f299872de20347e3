//! The heap in use: counted where memory is allocated, and bounded by a budget for each run.
//!
//! [`CountingAllocator`] counts live bytes for each thread and for the process; a program that needs memory limits
//! installs it as its global allocator. A [`HeapBudget`] adds up what the thread allocates while the code of one run
//! executes. Values never leave their thread, so the count of a run is exact, except for values that are dropped while
//! its code does not execute: they remain in the count until it reaches the limit, and are then corrected by the count
//! of the process, which includes every drop.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::{Stop, meter};

/// Maximum difference in bytes between the count of a thread and what it has reported to the process.
const MAX_UNREPORTED: usize = 64 * 1024;
/// A megabyte, the unit used in messages.
const MB: usize = 1_000_000;
/// Size in bytes from which a refused allocation is left to its caller; smaller ones are needed for everything.
const LARGE: usize = 1 << 20;

/// The program's reaction when the system has no memory left.
struct Exhausted {
    end: fn(usize) -> !,
    was_refused: Arc<AtomicBool>,
    is_ending: AtomicBool,
}

static EXHAUSTED: OnceLock<Exhausted> = OnceLock::new();

/// Live bytes of all threads, except those that they have not reported yet.
static PROCESS: AtomicIsize = AtomicIsize::new(0);

thread_local! {
    /// Bytes that this thread allocated, less those that it freed, since its last report.
    static UNREPORTED: Cell<isize> = const { Cell::new(0) };
    /// Bytes of this thread that are included in [`PROCESS`].
    static REPORTED: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, with a count of live bytes.
///
/// ```
/// use flowstone_lang::value::heap::{self, CountingAllocator};
///
/// #[global_allocator]
/// static HEAP: CountingAllocator = CountingAllocator;
///
/// let before = heap::thread_bytes();
/// let text = "x".repeat(1000);
/// assert!(heap::thread_bytes() >= before + 1000);
/// # drop(text);
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct CountingAllocator;

#[inline]
fn count(delta: isize) {
    // A thread that is ending no longer has a count: what it still frees is not counted.
    let _ = UNREPORTED.try_with(|unreported| {
        let now = unreported.get().wrapping_add(delta);
        unreported.set(now);
        if now.unsigned_abs() >= MAX_UNREPORTED {
            report(unreported.replace(0));
        }
    });
}

/// Adds bytes allocated by a thread to the count of the process.
#[cold]
#[inline(never)]
fn report(grown: isize) {
    let _ = REPORTED.try_with(|reported| reported.set(reported.get().wrapping_add(grown)));
    PROCESS.fetch_add(grown, Ordering::Relaxed);
    if grown > 0 {
        meter::note_growth();
    }
}

/// Registers `end`, to be called with the number of bytes when the system refuses an allocation. It must not allocate.
/// After a large allocation was refused, only the returned flag is set: if the caller cannot do without the memory, it
/// aborts the process.
pub fn when_exhausted(end: fn(usize) -> !) -> Arc<AtomicBool> {
    let exhausted = EXHAUSTED.get_or_init(|| Exhausted {
        end,
        was_refused: Arc::default(),
        is_ending: AtomicBool::new(false),
    });
    exhausted.was_refused.clone()
}

#[cold]
#[inline(never)]
fn refused(size: usize) {
    let Some(exhausted) = EXHAUSTED.get() else {
        return;
    };
    exhausted.was_refused.store(true, Ordering::Relaxed);
    if size < LARGE && !exhausted.is_ending.swap(true, Ordering::Relaxed) {
        (exhausted.end)(size);
    }
}

#[inline]
fn signed(size: usize) -> isize {
    // No allocation is larger than `isize::MAX`.
    size.cast_signed()
}

// SAFETY: every call is passed on to the system's allocator unchanged; counting neither allocates nor panics.
unsafe impl GlobalAlloc for CountingAllocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises about the layout are passed on.
        let made = unsafe { System.alloc(layout) };
        match made.is_null() {
            false => count(signed(layout.size())),
            true => refused(layout.size()),
        }
        made
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        let made = unsafe { System.alloc_zeroed(layout) };
        match made.is_null() {
            false => count(signed(layout.size())),
            true => refused(layout.size()),
        }
        made
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block came from the system's allocator, with this layout.
        unsafe { System.dealloc(block, layout) };
        count(-signed(layout.size()));
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the block came from the system's allocator, with this layout.
        let made = unsafe { System.realloc(block, layout, size) };
        match made.is_null() {
            false => count(signed(size) - signed(layout.size())),
            true => refused(size),
        }
        made
    }
}

/// Returns the bytes that this thread has allocated, less those that it has freed; 0 without the counting allocator.
pub fn thread_bytes() -> isize {
    REPORTED.try_with(Cell::get).unwrap_or(0) + unreported()
}

fn unreported() -> isize {
    UNREPORTED.try_with(Cell::get).unwrap_or(0)
}

/// Returns the live bytes of the process, accurate to 64 KB for each thread; 0 without the counting allocator.
pub fn process_bytes() -> usize {
    let all = PROCESS.load(Ordering::Relaxed) + unreported();
    usize::try_from(all).unwrap_or(0)
}

/// Returns free memory to the system if its allocator has kept it, such as after work that used much of it. Takes some
/// milliseconds.
pub fn release_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn malloc_trim(keep: usize) -> i32;
        }
        // SAFETY: the function may be called at any time, by any thread; it moves nothing that is in use.
        unsafe { malloc_trim(0) };
    }
}

/// How much of the heap the code of one run may hold.
///
/// ```
/// use flowstone_lang::value::heap::HeapBudget;
///
/// let budget = HeapBudget::new(64 * 1024 * 1024);
/// assert!(budget.room_for(1000).is_ok());
/// assert!(budget.room_for(usize::MAX).is_err());
/// ```
#[derive(Debug)]
pub struct HeapBudget {
    limit: usize,
    /// Bytes held by the run when its code last stopped executing.
    used: Cell<isize>,
    /// The thread's count when the run's code began to execute; `None` while it does not execute.
    entered: Cell<Option<isize>>,
}

impl HeapBudget {
    /// Returns an unused budget of `limit` bytes.
    pub fn new(limit: usize) -> HeapBudget {
        HeapBudget {
            limit,
            used: Cell::new(0),
            entered: Cell::new(None),
        }
    }

    /// Returns the budget in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the bytes that count against the budget now.
    pub fn used(&self) -> usize {
        let inside = self.entered.get().map_or(0, |at| thread_bytes() - at);
        usize::try_from(self.used.get() + inside).unwrap_or(0)
    }

    /// Does some work of the run: what it allocates and frees is counted. Calls may be nested.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.entered.get().is_some() {
            return work();
        }
        self.entered.set(Some(thread_bytes()));
        let _leaving = Leaving(self);
        work()
    }

    /// Counts everything that the thread allocates from now on: for a program that has the thread to itself.
    pub fn enter(&self) {
        if self.entered.get().is_none() {
            self.entered.set(Some(thread_bytes()));
        }
    }

    /// Checks that the run does not exceed its budget.
    ///
    /// # Errors
    /// [`Stop::OutOfMemory`] if it does.
    pub fn check(&self) -> Result<(), Stop> {
        self.room_for(0)
    }

    /// Checks that the run may allocate `bytes` more. Called before any allocation whose size comes from data.
    ///
    /// # Errors
    /// [`Stop::OutOfMemory`] if that exceeds the budget.
    pub fn room_for(&self, bytes: usize) -> Result<(), Stop> {
        if self.used().saturating_add(bytes) <= self.limit {
            return Ok(());
        }
        self.correct();
        let used = self.used();
        if used.saturating_add(bytes) <= self.limit {
            return Ok(());
        }
        Err(Stop::OutOfMemory(format!(
            "its values need {} MB, and the limit is {} MB",
            used.saturating_add(bytes).div_ceil(MB),
            self.limit.div_ceil(MB)
        )))
    }

    /// Reduces the count of the run to that of the whole process, which it cannot exceed.
    fn correct(&self) {
        let excess = self.used().saturating_sub(process_bytes());
        self.used.set(self.used.get() - signed(excess));
    }
}

/// Ends the work of a run, even after a panic.
struct Leaving<'b>(&'b HeapBudget);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if let Some(at) = self.0.entered.take() {
            // The freed memory may have been allocated before the budget existed.
            let used = (self.0.used.get() + thread_bytes() - at).max(0);
            self.0.used.set(used);
        }
    }
}
