//! The thread that writes: drains its queue into one transaction, and answers when that is durable.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{Batch, Durability, PortFuture, Receipt, StoreError};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::failure::{failed, located};
use super::journal;

/// At most so many jobs share a transaction.
const GROUP_MAX: usize = 4096;
/// After so many transactions it is worth while to make room for the log.
const ROOM_AFTER: u32 = 24;
/// How long the log is made, once: writing over blocks that are there syncs faster than making the file longer.
const ROOM_BYTES: u64 = 16 << 20;

/// Tells who waits how the transaction ended.
type Tell = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// What a job did: whether it is to be kept, and who is told.
struct Applied {
    keep: bool,
    tell: Tell,
}

/// Does a job, or has it refused with what went wrong before it.
type Apply = Box<dyn FnOnce(Result<&Connection, StoreError>) -> Applied + Send>;

struct Job {
    durability: Durability,
    apply: Apply,
}

/// Runs whose posted batch failed: what comes after it must fail too.
type Failures = Arc<Mutex<HashMap<RunId, StoreError>>>;

/// The way to the thread. Dropping it lets the thread finish what was handed over.
pub(super) struct Writer {
    jobs: Option<Sender<Job>>,
    failures: Failures,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(db: Connection, path: PathBuf) -> Result<Writer, StoreError> {
        let (jobs, queue) = channel();
        let unreachable = path.display().to_string();
        let thread = std::thread::Builder::new()
            .name("writer".to_owned())
            .spawn(move || Loop { db, path, queue }.run())
            .map_err(|error| StoreError::Unreachable {
                path: unreachable,
                detail: error.to_string(),
            })?;
        Ok(Writer {
            jobs: Some(jobs),
            failures: Failures::default(),
            thread: Some(thread),
        })
    }

    /// Has something done in a transaction, durably.
    pub(super) fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> PortFuture<'static, T> {
        self.enqueue(Durability::Full, work)
    }

    pub(super) fn commit(&self, batch: Batch) -> PortFuture<'static, Receipt> {
        let failures = self.failures.clone();
        self.enqueue(batch.durability, move |db| {
            if let Some(error) = lock(&failures).get(&batch.run) {
                return Err(error.clone());
            }
            journal::apply(db, &batch)
        })
    }

    pub(super) fn post(&self, batch: Batch) -> Result<(), StoreError> {
        if let Some(error) = lock(&self.failures).get(&batch.run) {
            return Err(error.clone());
        }
        let failures = self.failures.clone();
        let run = batch.run.clone();
        self.send(Job {
            // Whoever needs it durable commits after it.
            durability: Durability::Relaxed,
            apply: Box::new(move |db| {
                let earlier = lock(&failures).get(&batch.run).cloned();
                let result = match earlier {
                    Some(error) => Err(error),
                    None => db.and_then(|db| journal::apply(db, &batch)).map(|_| ()),
                };
                Applied {
                    keep: result.is_ok(),
                    tell: Box::new(move |committed| {
                        if let Err(error) = result.and(committed) {
                            lock(&failures).entry(run).or_insert(error);
                        }
                    }),
                }
            }),
        })
    }

    /// Lets a run be written again: whoever drives it has read it anew.
    pub(super) fn forget_failure(&self, run: &RunId) {
        lock(&self.failures).remove(run);
    }

    fn enqueue<T: Send + 'static>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> PortFuture<'static, T> {
        let (answer, answered) = oneshot::channel();
        let sent = self.send(Job {
            durability,
            apply: Box::new(move |db| {
                let result = db.and_then(work);
                Applied {
                    keep: result.is_ok(),
                    tell: Box::new(move |committed| {
                        // Who asked may have gone; the change stays.
                        let _ = answer.send(committed.and(result));
                    }),
                }
            }),
        });
        Box::pin(async move {
            sent?;
            answered.await.unwrap_or_else(|_| Err(gone()))
        })
    }

    fn send(&self, job: Job) -> Result<(), StoreError> {
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        jobs.send(job).map_err(|_| gone())
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn gone() -> StoreError {
    StoreError::Internal("the writer has ended".to_owned())
}

fn lock(failures: &Failures) -> std::sync::MutexGuard<'_, HashMap<RunId, StoreError>> {
    failures.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes zeros behind the end of the log. To SQLite they are what is left of an earlier log: no valid frame.
fn make_room(log: &Path) -> std::io::Result<()> {
    let mut file = OpenOptions::new().append(true).open(log)?;
    let length = file.metadata()?.len();
    let zeros = vec![0; 1 << 20];
    let mut left = ROOM_BYTES.saturating_sub(length);
    while left > 0 {
        let part = usize::try_from(left).unwrap_or(usize::MAX).min(zeros.len());
        file.write_all(&zeros[..part])?;
        left -= part as u64;
    }
    file.sync_all()
}

struct Loop {
    db: Connection,
    path: PathBuf,
    queue: Receiver<Job>,
}

impl Loop {
    fn run(self) {
        let mut synchronous = Durability::Full;
        let mut transactions = 0;
        while let Ok(first) = self.queue.recv() {
            let mut jobs = vec![first];
            while jobs.len() < GROUP_MAX
                && let Ok(job) = self.queue.try_recv()
            {
                jobs.push(job);
            }
            let wanted = match jobs.iter().any(|job| job.durability == Durability::Full) {
                true => Durability::Full,
                false => Durability::Relaxed,
            };
            if wanted != synchronous && self.set_synchronous(wanted).is_ok() {
                synchronous = wanted;
            }
            self.transact(jobs);
            transactions += 1;
            if transactions == ROOM_AFTER {
                // Where it cannot be had, commits are only slower.
                let _ = make_room(&self.path.with_extension("db-wal"));
            }
        }
    }

    fn set_synchronous(&self, durability: Durability) -> rusqlite::Result<()> {
        let level = match durability {
            Durability::Full => "FULL",
            Durability::Relaxed => "NORMAL",
        };
        self.db.pragma_update(None, "synchronous", level)
    }

    /// Does all jobs in one transaction; one that fails is undone alone. When the transaction itself fails,
    /// everybody is told.
    fn transact(&self, jobs: Vec<Job>) {
        let mut tells = Vec::with_capacity(jobs.len());
        let mut state = self.execute("BEGIN IMMEDIATE");
        for job in jobs {
            let begun = state.clone().and_then(|()| self.execute("SAVEPOINT job"));
            let applied = (job.apply)(begun.clone().map(|()| &self.db));
            tells.push(applied.tell);
            state = match (begun, applied.keep) {
                (Err(error), _) => Err(error),
                (Ok(()), true) => self.execute("RELEASE job"),
                (Ok(()), false) => self
                    .execute("ROLLBACK TO job")
                    .and_then(|()| self.execute("RELEASE job")),
            };
        }
        let outcome = state.and_then(|()| self.execute("COMMIT"));
        if outcome.is_err() {
            // Fails where nothing was begun, which is as well.
            let _ = self.execute("ROLLBACK");
        }
        for tell in tells {
            tell(outcome.clone());
        }
    }

    fn execute(&self, sql: &str) -> Result<(), StoreError> {
        self.db
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([]))
            .map(|_| ())
            .map_err(|error| located(failed(error), &self.path))
    }
}
