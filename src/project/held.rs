//! One change at a time: a change that reads a row, decides and writes it holds the name of the row meanwhile, so that changes at once
//! wait for each other instead of being repeated.
//!
//! This is for the changes of one process. What keeps those of several processes apart is the write itself: it succeeds if the row is
//! still what was read (`Rows::replace_exact`, `Rows::insert`).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// Number of names above which those that nobody holds are forgotten.
const NAMES_MAX: usize = 1024;

type Names = HashMap<String, Weak<AsyncMutex<()>>>;

static NAMES: LazyLock<Mutex<Names>> = LazyLock::new(Mutex::default);

/// A held name. Dropping it lets the next change begin.
#[derive(Debug)]
pub struct Held(#[expect(dead_code, reason = "held until it is dropped")] OwnedMutexGuard<()>);

/// Waits until nobody holds a name, and holds it. A change that holds a name must not ask for it again.
pub async fn hold(name: String) -> Held {
    let lock = lock_of(name);
    Held(lock.lock_owned().await)
}

fn lock_of(name: String) -> Arc<AsyncMutex<()>> {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(lock) = names.get(&name).and_then(Weak::upgrade) {
        return lock;
    }
    if names.len() >= NAMES_MAX {
        names.retain(|_, lock| lock.strong_count() > 0);
    }
    let lock = Arc::<AsyncMutex<()>>::default();
    names.insert(name, Arc::downgrade(&lock));
    lock
}
