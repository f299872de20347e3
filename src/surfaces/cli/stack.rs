//! A native stack of known size: printing and comparing deep values needs more than some systems provide.

use std::cell::Cell;
use std::io;
use std::thread;

const SIZE: usize = 64 * 1024 * 1024;
/// Reserve for the code that runs between two checks of the limit.
const MARGIN: usize = 512 * 1024;

thread_local! {
    static TOP: Cell<usize> = const { Cell::new(0) };
}

/// Runs `body` with a stack of this size. A panic in it continues in the caller.
///
/// # Errors
/// When the system cannot start a thread.
pub fn with_room<T: Send>(body: impl FnOnce() -> T + Send) -> io::Result<T> {
    let result = thread::scope(|scope| {
        let thread = thread::Builder::new()
            .name("main".to_owned())
            .stack_size(SIZE)
            .spawn_scoped(scope, || {
                let here = 0_u8;
                TOP.set(std::ptr::from_ref(&here).addr());
                body()
            });
        thread.map(thread::ScopedJoinHandle::join)
    });
    result.map(|ended| ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
}

/// Returns the lowest address that the stack may use; 0 if it is not known.
pub fn limit() -> usize {
    TOP.get().saturating_sub(SIZE - MARGIN)
}
