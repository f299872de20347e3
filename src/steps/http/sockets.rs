//! Limits the number of concurrent requests of the process: connections share the limit of open files with the
//! database, programs and files. Further requests wait.

use std::io;
use std::sync::{Arc, OnceLock};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Number of files that a process needs beside its connections.
const RESERVED: usize = 32;
/// Minimum number of requests, however low the limit is.
const FEWEST: usize = 1;
/// Maximum number of requests: more are useless, and a semaphore has its own limit.
const MOST: usize = 100_000;

static SOCKETS: OnceLock<Arc<Semaphore>> = OnceLock::new();

/// Sets the number of files that the process may open. Later calls change nothing.
pub fn limit_by_files(files: usize) {
    // Pooled connections count as well.
    let most = files.saturating_sub(RESERVED) / 2;
    let most = most.clamp(FEWEST, MOST);
    let _ = SOCKETS.set(Arc::new(Semaphore::new(most)));
}

/// Waits until a connection may be made. The returned permit must be held as long as the connection is used.
pub(crate) async fn connection() -> Option<OwnedSemaphorePermit> {
    let sockets = SOCKETS.get()?.clone();
    // The semaphore is never closed.
    sockets.acquire_owned().await.ok()
}

/// Tells whether the process lacks file handles now. Resolvers and libraries do not report why they failed.
pub(super) fn are_used_up() -> bool {
    let tried = std::fs::File::open(".");
    tried.is_err_and(|error: io::Error| flowstone_flow::ports::is_lack_of_handles(&error))
}
