//! Concurrent futures, each polled only when it was woken.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::step::LocalFuture;

/// Futures in progress, each under the id of its waiter.
pub(super) struct Underway<'f, T> {
    futures: BTreeMap<u64, Future<'f, T>>,
    woken: Arc<Woken>,
}

struct Future<'f, T> {
    future: LocalFuture<'f, T>,
    waker: Waker,
    is_polled: bool,
}

/// The futures that are ready to be polled, and the waker of the task that polls them.
#[derive(Default)]
struct Woken(Mutex<(Vec<u64>, Option<Waker>)>);

impl Woken {
    fn add(&self, id: u64) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.0.push(id);
        let poller = inner.1.take();
        drop(inner);
        if let Some(poller) = poller {
            poller.wake();
        }
    }
}

/// Wakes one of the futures.
struct Nudge {
    id: u64,
    woken: Arc<Woken>,
}

impl Wake for Nudge {
    fn wake(self: Arc<Self>) {
        self.woken.add(self.id);
    }
}

impl<'f, T> Underway<'f, T> {
    pub(super) fn new() -> Underway<'f, T> {
        Underway {
            futures: BTreeMap::new(),
            woken: Arc::default(),
        }
    }

    /// Adds a future; it is first polled by the next [`Underway::poll`].
    pub(super) fn add(&mut self, id: u64, future: LocalFuture<'f, T>) {
        let woken = self.woken.clone();
        let waker = Waker::from(Arc::new(Nudge { id, woken }));
        self.futures.insert(
            id,
            Future {
                future,
                waker,
                is_polled: false,
            },
        );
        self.woken.add(id);
    }

    /// Drops a future.
    pub(super) fn remove(&mut self, id: u64) {
        self.futures.remove(&id);
    }

    /// Drops the futures that have not been polled yet.
    pub(super) fn drop_unpolled(&mut self) {
        self.futures.retain(|_, entry| entry.is_polled);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.futures.is_empty()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = u64> {
        self.futures.keys().copied()
    }

    /// Polls all woken futures; ready with those that have completed.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Vec<(u64, T)>> {
        let woken = {
            let mut inner = self.woken.0.lock().unwrap_or_else(PoisonError::into_inner);
            inner.1 = Some(cx.waker().clone());
            std::mem::take(&mut inner.0)
        };
        let mut done = Vec::new();
        for id in woken {
            // Woken twice, or dropped meanwhile.
            let Some(entry) = self.futures.get_mut(&id) else {
                continue;
            };
            entry.is_polled = true;
            let mut inner = Context::from_waker(&entry.waker);
            if let Poll::Ready(value) = entry.future.as_mut().poll(&mut inner) {
                self.futures.remove(&id);
                done.push((id, value));
            }
        }
        if done.is_empty() {
            Poll::Pending
        } else {
            Poll::Ready(done)
        }
    }
}
