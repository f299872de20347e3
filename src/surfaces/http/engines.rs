//! Threads with engines. A request runs on one of them, because an engine and its values stay on their thread.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use flowstone_engine::Engine;
use flowstone_lang::value::free_deferred;
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;

/// Stack for parsing and printing deeply nested values. Unused stack takes no memory.
const STACK: usize = 64 << 20;
/// Requests that may wait for a thread.
const BACKLOG: usize = 4_096;

type Job<T> = Box<dyn FnOnce(Rc<T>) -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// What a thread keeps beside its engine lives in `T`.
pub(super) struct Engines<T: 'static = Engine> {
    threads: Vec<mpsc::Sender<Job<T>>>,
    next: AtomicUsize,
}

/// The thread of a request ended, or too many requests wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unavailable {
    /// Too many requests wait.
    Busy,
    /// The thread ended.
    Gone,
}

impl<T: 'static> Engines<T> {
    /// Starts threads; `open` makes what each of them works with. The threads end when this is dropped.
    pub(super) fn start<'scope, 'env, E: Send + 'scope>(
        scope: &'scope thread::Scope<'scope, 'env>,
        count: usize,
        open: &'env (dyn Fn() -> Result<T, E> + Sync),
    ) -> Result<Engines<T>, StartError<E>> {
        let mut threads = Vec::new();
        for number in 0..count {
            let (jobs, queue) = mpsc::channel(BACKLOG);
            let (opened, opening) = std::sync::mpsc::sync_channel(1);
            thread::Builder::new()
                .name(format!("api-{number}"))
                .stack_size(STACK)
                .spawn_scoped(scope, move || {
                    let made = open().map_err(StartError::Open);
                    let runtime = made.and_then(|made| {
                        let runtime = tokio::runtime::Builder::new_current_thread()
                            .enable_all()
                            .build();
                        Ok((made, runtime.map_err(StartError::System)?))
                    });
                    match runtime {
                        Ok((made, runtime)) => {
                            // The starter waits for this.
                            let _ = opened.send(Ok(()));
                            let local = LocalSet::new();
                            local.block_on(&runtime, work(Rc::new(made), queue));
                        }
                        Err(error) => drop(opened.send(Err(error))),
                    }
                })
                .map_err(StartError::System)?;
            match opening.recv() {
                Ok(Ok(())) => threads.push(jobs),
                Ok(Err(error)) => return Err(error),
                Err(_) => return Err(StartError::Ended),
            }
        }
        Ok(Engines {
            threads,
            next: AtomicUsize::new(0),
        })
    }

    /// Runs a question on the next thread and returns its answer. If the caller goes away, the question still runs to
    /// its end.
    ///
    /// # Errors
    /// When too many requests wait, or the thread has ended.
    pub(super) async fn ask<A: Send + 'static>(
        &self,
        question: impl AsyncFnOnce(&T) -> A + Send + 'static,
    ) -> Result<A, Unavailable> {
        let (answer, answered) = oneshot::channel();
        let job: Job<T> = Box::new(move |made| {
            Box::pin(async move {
                // The caller may have gone.
                let _ = answer.send(question(&made).await);
                // What a stopped evaluation held would stay on this thread until its next one.
                while free_deferred() {
                    tokio::task::yield_now().await;
                }
            })
        });
        let number = self.next.fetch_add(1, Ordering::Relaxed) % self.threads.len().max(1);
        let thread = self.threads.get(number).ok_or(Unavailable::Gone)?;
        thread.try_send(job).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Unavailable::Busy,
            mpsc::error::TrySendError::Closed(_) => Unavailable::Gone,
        })?;
        answered.await.map_err(|_| Unavailable::Gone)
    }
}

/// Why the threads cannot start.
#[derive(Debug)]
pub(super) enum StartError<E> {
    /// The engine of a thread could not be opened.
    Open(E),
    /// The system provides no thread, or no file handles for its runtime.
    System(std::io::Error),
    /// A thread ended at its start.
    Ended,
}

/// Runs questions side by side until the other end is dropped, and then those that are under way.
async fn work<T: 'static>(made: Rc<T>, mut queue: mpsc::Receiver<Job<T>>) {
    let mut active = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            job = queue.recv() => match job {
                Some(job) => drop(active.spawn_local(job(made.clone()))),
                None => break,
            },
            // Takes ended ones out; a panic in one is reported by the hook and answers its caller with `Gone`.
            Some(_) = active.join_next() => {}
        }
    }
    while active.join_next().await.is_some() {}
}
