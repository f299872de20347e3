//! Ctrl-C as a flag that loops check. A second Ctrl-C ends the process at once, and so does the first one while a finished
//! result is printed: nothing is left to suspend then, and printing checks no flag.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use super::exit::Exit;

/// Set while a finished result is printed.
static IS_PRINTING: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Until it is dropped, Ctrl-C and SIGTERM end the process at once.
#[must_use = "the process handles Ctrl-C as before once this is dropped"]
pub struct Printing(());

impl Printing {
    /// Marks that from here on a finished result is printed.
    pub fn begin() -> Printing {
        IS_PRINTING.store(true, Ordering::Relaxed);
        Printing(())
    }
}

impl Drop for Printing {
    fn drop(&mut self) {
        IS_PRINTING.store(false, Ordering::Relaxed);
    }
}

/// A handle that tells whether Ctrl-C was pressed.
#[derive(Debug, Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts listening. All handles of a process share one flag.
    pub fn listen() -> Interrupt {
        static FLAG: OnceLock<Interrupt> = OnceLock::new();
        FLAG.get_or_init(Interrupt::install).clone()
    }

    /// Returns a handle to a flag that something other than a signal sets.
    pub fn of_flag(flag: Arc<AtomicBool>) -> Interrupt {
        Interrupt(flag)
    }

    fn install() -> Interrupt {
        let flag = Arc::new(AtomicBool::new(false));
        let code = i32::from(Exit::Interrupted.code());
        // The order matters: the first press only sets the flag, the second finds it set. If a signal cannot be caught,
        // Ctrl-C ends the process as usual.
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            for ends in [&flag, &*IS_PRINTING] {
                let ends = Arc::clone(ends);
                let _ = signal_hook::flag::register_conditional_shutdown(signal, code, ends);
            }
            let _ = signal_hook::flag::register(signal, Arc::clone(&flag));
        }
        Interrupt(flag)
    }

    /// Tells whether Ctrl-C was pressed.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the flag as the engine takes it.
    pub fn for_engine(&self) -> flowstone_flow::Interrupt {
        flowstone_flow::Interrupt::from_flag(Arc::clone(&self.0))
    }

    /// Clears the flag, for the next line of a prompt.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
