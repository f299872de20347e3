//! A native stack of known size: printing and comparing deep values takes more of it than some systems give.

use std::cell::Cell;
use std::io;
use std::thread;

const SIZE: usize = 64 * 1024 * 1024;
/// Left for what runs between two looks at the limit.
const MARGIN: usize = 512 * 1024;

thread_local! {
    static TOP: Cell<usize> = const { Cell::new(0) };
}

/// Runs `body` with that much stack. A panic in it goes on in the caller.
///
/// # Errors
/// When the system starts no thread.
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

/// Returns the address that the stack must not grow below; 0 where it is not known.
pub fn limit() -> usize {
    TOP.get().saturating_sub(SIZE - MARGIN)
}
