//! The asynchronous runtime, made only where a command needs one.

use std::future::Future;

use tokio::task::LocalSet;

use super::report::Report;

/// A runtime on this thread.
pub struct Runtime {
    runtime: tokio::runtime::Runtime,
    local: LocalSet,
}

impl Runtime {
    /// Makes one.
    ///
    /// # Errors
    /// When the operating system does not give what it needs.
    pub fn start() -> Result<Runtime, Report> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| {
                Report::error("E0911", format!("the runtime cannot start: {error}"))
            })?;
        Ok(Runtime {
            runtime,
            local: LocalSet::new(),
        })
    }

    /// Runs a future to its end.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.local.block_on(&self.runtime, future)
    }
}
