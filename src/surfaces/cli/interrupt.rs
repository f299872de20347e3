//! Ctrl-C as a flag that loops check. A second Ctrl-C ends the process at once.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::exit::Exit;

/// A handle that tells whether Ctrl-C was pressed.
#[derive(Debug, Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts listening. All handles of a process share one flag.
    pub fn listen() -> Interrupt {
        static FLAG: OnceLock<Interrupt> = OnceLock::new();
        FLAG.get_or_init(Interrupt::install).clone()
    }

    fn install() -> Interrupt {
        let flag = Arc::new(AtomicBool::new(false));
        let code = i32::from(Exit::Interrupted.code());
        // The order matters: the first press only sets the flag, the second finds it set. If a signal cannot be caught,
        // Ctrl-C ends the process as usual.
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            let _ =
                signal_hook::flag::register_conditional_shutdown(signal, code, Arc::clone(&flag));
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
