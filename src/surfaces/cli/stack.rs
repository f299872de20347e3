//! A native stack of known size: printing and comparing deep values needs more than some systems provide.

use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::sync::mpsc;
use std::thread;

const SIZE: usize = 64 * 1024 * 1024;
/// Reserve for the code that runs between two checks of the limit.
const MARGIN: usize = 512 * 1024;

thread_local! {
    static TOP: Cell<usize> = const { Cell::new(0) };
}

/// Runs `body` with a stack of this size, and ends the process with the exit code that it returns. A panic in it continues in
/// the caller.
///
/// # Errors
/// When the system cannot start a thread.
pub fn end_after(body: impl FnOnce() -> i32 + Send + 'static) -> io::Result<Infallible> {
    let (ending, ended) = mpsc::channel();
    let thread = thread::Builder::new()
        .name("main".to_owned())
        .stack_size(SIZE)
        .spawn(move || {
            let here = 0_u8;
            TOP.set(std::ptr::from_ref(&here).addr());
            // The caller waits as long as the channel exists.
            let _ = ending.send(body());
            // What the thread holds is freed faster with the process than by its destructors.
            loop {
                thread::park();
            }
        })?;
    if let Ok(code) = ended.recv() {
        std::process::exit(code)
    }
    match thread.join() {
        Ok(never) => Ok(never),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Starts a thread with a stack of this size in a scope.
///
/// # Errors
/// When the system cannot start a thread.
pub fn spawn_scoped<'scope, 'env>(
    scope: &'scope thread::Scope<'scope, 'env>,
    body: impl FnOnce() + Send + 'scope,
) -> io::Result<()> {
    let thread = thread::Builder::new().stack_size(SIZE);
    let spawned = thread.spawn_scoped(scope, move || {
        let here = 0_u8;
        TOP.set(std::ptr::from_ref(&here).addr());
        body();
    });
    spawned.map(drop)
}

/// Returns the lowest address that the stack may use; 0 if it is not known.
pub fn limit() -> usize {
    TOP.get().saturating_sub(SIZE - MARGIN)
}
