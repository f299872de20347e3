//! The asynchronous runtime, created only by commands that need one.

use std::future::Future;

use tokio::task::LocalSet;

use super::report::Report;

/// A runtime on the current thread.
pub struct Runtime {
    runtime: tokio::runtime::Runtime,
    local: LocalSet,
}

impl Runtime {
    /// Creates the runtime.
    ///
    /// # Errors
    /// When the operating system lacks a resource for it.
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
