//! What the system lets this process have, raised as far as it goes.

/// Raises the limit of open files, and has writes fail where a file may not grow instead of ending the process.
pub fn raise() {
    #[cfg(unix)]
    unix::raise();
}

#[cfg(unix)]
mod unix {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use flowstone_steps::limit_by_files;
    use nix::sys::resource::{Resource, getrlimit, setrlimit};

    /// More is not asked for: some systems take long over tables of millions.
    const ENOUGH: u64 = 65_536;

    pub(super) fn raise() {
        // With a handler, the signal does not end the process; writing returns an error instead.
        let noticed = Arc::new(AtomicBool::new(false));
        let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, noticed);
        let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
            return;
        };
        let wanted = hard.min(ENOUGH).max(soft);
        let files = match setrlimit(Resource::RLIMIT_NOFILE, wanted, hard) {
            Ok(()) => wanted,
            Err(_) => soft,
        };
        limit_by_files(usize::try_from(files).unwrap_or(usize::MAX));
    }
}
