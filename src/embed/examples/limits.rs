//! Limits: instructions, memory by a counting allocator, an interrupt from another thread.

#![expect(
    clippy::disallowed_methods,
    reason = "the language has no threads and no clock; the program around it has"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::error::Error;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use flowstone_embed::{Interrupt, Sandbox, Session};

/// Counts the bytes that are in use.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        USED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let session = Session::new();

    let endless = "(try (loop [] (recur)) (catch Throwable _ :caught))";
    let host = Sandbox::new().fuel(1_000_000);
    report(&mut out, session.evaluate_in(host, "fuel", endless))?;

    let before = USED.load(Ordering::Relaxed);
    let host = Sandbox::new().memory(16 << 20, move || {
        USED.load(Ordering::Relaxed).saturating_sub(before)
    });
    let hungry = "(loop [all []] (recur (conj all (range 10))))";
    report(&mut out, session.evaluate_in(host, "memory", hungry))?;

    let interrupt = Interrupt::new();
    let trigger = interrupt.clone();
    let timer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        trigger.trigger();
    });
    let host = Sandbox::new().interrupt(&interrupt);
    report(&mut out, session.evaluate_in(host, "interrupt", endless))?;
    timer.join().map_err(|_| "the timer panicked")?;

    // The session remains usable.
    report(&mut out, session.evaluate("(+ 1 2)"))
}

fn report(
    out: &mut impl Write,
    result: Result<flowstone_embed::Value, flowstone_embed::Failure>,
) -> Result<(), Box<dyn Error>> {
    match result {
        Ok(value) => writeln!(out, "=> {value}")?,
        Err(failure) => writeln!(out, "{failure}")?,
    }
    Ok(())
}
