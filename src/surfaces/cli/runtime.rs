//! The asynchronous runtime, made only where a command needs one.

use std::future::Future;

use super::report::Report;

/// Runs a future to its end on this thread.
pub fn block_on<T>(future: impl Future<Output = Result<T, Report>>) -> Result<T, Report> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Report::error("E0911", format!("the runtime cannot start: {error}")))?;
    tokio::task::LocalSet::new().block_on(&runtime, future)
}
