//! How many requests may be under way at once, in the whole process: connections share the limit of open files with
//! the database, programs and files. What is too much waits for its turn.

use std::io;
use std::sync::{Arc, OnceLock};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Files that a process needs beside its connections.
const RESERVED: usize = 32;
/// One request is let in however low the limit is.
const FEWEST: usize = 1;
/// More are of no use, and a semaphore has a limit of its own.
const MOST: usize = 100_000;

static SOCKETS: OnceLock<Arc<Semaphore>> = OnceLock::new();

/// Sets how many files the process may have open. Later calls change nothing.
pub fn limit_by_files(files: usize) {
    // Connections that are kept for later requests count as well.
    let most = files.saturating_sub(RESERVED) / 2;
    let most = most.clamp(FEWEST, MOST);
    let _ = SOCKETS.set(Arc::new(Semaphore::new(most)));
}

/// Returns when a connection may be made, with what has to be kept for as long as it is used.
pub(super) async fn connection() -> Option<OwnedSemaphorePermit> {
    let sockets = SOCKETS.get()?.clone();
    // It is never closed.
    sockets.acquire_owned().await.ok()
}

/// Tells whether the process lacks file handles at the moment. Resolvers and libraries do not hand on why they failed.
pub(super) fn are_used_up() -> bool {
    let tried = std::fs::File::open(".");
    tried.is_err_and(|error: io::Error| flowstone_flow::ports::is_lack_of_handles(&error))
}
