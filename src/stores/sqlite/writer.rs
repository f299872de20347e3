//! The writer thread: groups submitted jobs into transactions, and answers when a transaction is durable.
//!
//! A caller that needs only the effect of a change is answered as soon as the change is applied. Such changes wait
//! briefly to be committed together, until a job needs durability or the time is over; later jobs are always committed
//! after them.

use std::collections::{HashMap, VecDeque};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    Ack, Batch, Change, CommitCounts, CommitPhase, Durability, PortFuture, Probe, Receipt,
    RunStatus, StoreError, StoreOp,
};
use rusqlite::Connection;
use tokio::sync::{oneshot, watch};

use super::Options;
use super::counts::Tally;
use super::failure::{failed, located};
use super::feed::{Span, Spans};
use super::journal;
use super::traced::{Committed, Traced};
use super::watched::Watched;

/// Maximum number of jobs in one transaction.
const GROUP_MAX: usize = 4096;
/// Maximum time that acknowledged but unsynced changes wait before their transaction is committed.
const MAX_DELAY: Duration = Duration::from_millis(10);
/// Interval at which the thread checks whether another process has written.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Number of transactions after which the log is extended once.
const ROOM_AFTER: u32 = 24;
/// Size to which the log is extended once: overwriting existing blocks syncs faster than extending the file.
const ROOM_BYTES: u64 = 16 << 20;

/// Called with the connection when all jobs are written.
pub(super) type Leave = Box<dyn FnOnce(&Connection) + Send>;

/// Reports the outcome of a job.
type Notify = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// The outcome of a job before the commit.
struct Applied {
    /// An error if the changes of the job are to be rolled back.
    kept: Result<(), StoreError>,
    /// Called when the job is applied.
    now: Option<Notify>,
    /// Called when the job is durable, or has failed.
    end: Option<Notify>,
    /// The entries that the job added, if it added nothing else.
    span: Option<Span>,
}

fn kept<T>(result: &Result<T, StoreError>) -> Result<(), StoreError> {
    result.as_ref().map(drop).map_err(Clone::clone)
}

/// Applies a job, or refuses it with an earlier error.
type Apply = Box<dyn FnOnce(Result<&Connection, StoreError>) -> Applied + Send>;

struct Job {
    durability: Durability,
    ack: Ack,
    /// The job may change what others read: more than the run's own journal.
    is_public: bool,
    news: News,
    /// The job adds entries to one journal, and nothing else. Any other job may add events.
    is_plain: bool,
    apply: Apply,
}

/// A message to the thread.
enum Message {
    Do(Job),
    /// A caller subscribes to commits, also to those of other processes.
    Poll,
}

impl Message {
    fn job(self) -> Option<Job> {
        match self {
            Message::Do(job) => Some(job),
            Message::Poll => None,
        }
    }
}

/// Runs with a change that failed after it was acknowledged: their later changes must fail too.
#[derive(Clone, Default)]
pub(super) struct Failures(Arc<Mutex<HashMap<RunId, StoreError>>>);

impl Failures {
    /// Allows changes of runs again, after their executor has reloaded them.
    pub(super) fn forget<'a>(&self, runs: impl Iterator<Item = &'a RunId>) {
        let mut failures = lock(self);
        for run in runs {
            failures.remove(run);
        }
    }
}

/// Whether a change may allow a run to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    None,
    Some,
}

/// The handle of the thread. Dropping it lets the thread finish the submitted jobs.
pub(super) struct Writer {
    jobs: Option<Sender<Message>>,
    failures: Failures,
    /// Number of changes that were acknowledged and are not in the file yet.
    unsettled: Arc<AtomicUsize>,
    news: Arc<watch::Sender<u64>>,
    /// Counts commits.
    commits: Arc<watch::Sender<u64>>,
    watched: Arc<Watched>,
    tally: Tally,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    pub(super) fn start(
        db: Connection,
        path: PathBuf,
        leave: Leave,
        options: &Options,
    ) -> Result<Writer, StoreError> {
        let (jobs, queue) = channel();
        let unreachable = path.display().to_string();
        let unsettled = Arc::new(AtomicUsize::new(0));
        let news = Arc::new(watch::Sender::new(0));
        let commits = Arc::new(watch::Sender::new(0));
        let watched = Arc::<Watched>::default();
        let tally = Tally::default();
        let writing = Loop {
            watched: watched.clone(),
            news: news.clone(),
            commits: commits.clone(),
            version: None,
            polled: Instant::now(),
            db,
            path,
            probe: options.probe.clone(),
            queue,
            unsettled: unsettled.clone(),
            mode: Durability::Full,
            ahead: VecDeque::new(),
            transactions: 0,
            traced: Traced::new(&options.telemetry),
            tally: tally.clone(),
        };
        let thread = std::thread::Builder::new()
            .name("writer".to_owned())
            .spawn(move || leave(&writing.run()))
            .map_err(|error| StoreError::NoThread {
                detail: format!("for {unreachable}: {error}"),
            })?;
        Ok(Writer {
            jobs: Some(jobs),
            failures: Failures::default(),
            unsettled,
            news,
            commits,
            watched,
            tally,
            thread: Some(thread),
        })
    }

    /// Runs work in a transaction, durably.
    pub(super) fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> PortFuture<'static, T> {
        self.submit_as(Durability::Full, News::Some, work)
    }

    pub(super) fn submit_as<T: Send + 'static>(
        &self,
        durability: Durability,
        news: News,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> PortFuture<'static, T> {
        let (answer, answered) = oneshot::channel();
        let sent = self.send(Job {
            durability,
            ack: Ack::Durable,
            is_public: true,
            news,
            is_plain: false,
            apply: Box::new(move |db| {
                let result = db.and_then(work);
                Applied {
                    span: None,
                    kept: kept(&result),
                    now: None,
                    end: Some(Box::new(move |committed| {
                        // The caller may be gone; the change stays.
                        let _ = answer.send(committed.and(result));
                    })),
                }
            }),
        });
        Box::pin(async move {
            sent?;
            answered.await.unwrap_or_else(|_| Err(gone()))
        })
    }

    /// Runs work that matters only between live processes, and may be lost in a power failure: it is written to the
    /// file, but not synced on its own.
    pub(super) fn arrange<T: Send + 'static>(
        &self,
        news: News,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> PortFuture<'static, T> {
        self.submit_as(Durability::Relaxed, news, work)
    }

    pub(super) fn commit(&self, batch: Batch) -> PortFuture<'static, Receipt> {
        let (answer, answered) = oneshot::channel();
        let failures = self.failures.clone();
        let (durability, ack) = (batch.durability, batch.ack);
        let sent = self.send(Job {
            durability,
            ack,
            is_public: true,
            news: news_in(&batch),
            is_plain: journal::is_plain(&batch),
            apply: Box::new(move |db| {
                let (result, span) = parted(apply(db, &batch, &failures));
                let kept = kept(&result);
                let notify: Notify = Box::new(move |happened| {
                    let _ = answer.send(happened.and(result));
                });
                match ack {
                    Ack::Durable => Applied {
                        span,
                        kept,
                        now: None,
                        end: Some(notify),
                    },
                    Ack::Applied => Applied {
                        span,
                        kept,
                        now: Some(notify),
                        end: Some(remember(failures, batch.run)),
                    },
                }
            }),
        });
        Box::pin(async move {
            sent?;
            answered.await.unwrap_or_else(|_| Err(gone()))
        })
    }

    pub(super) fn post(&self, batch: Batch) -> Result<(), StoreError> {
        if let Some(error) = lock(&self.failures).get(&batch.run) {
            return Err(error.clone());
        }
        let failures = self.failures.clone();
        self.send(Job {
            durability: batch.durability,
            ack: Ack::Applied,
            is_public: false,
            news: news_in(&batch),
            is_plain: journal::is_plain(&batch),
            apply: Box::new(move |db| {
                let (result, span) = parted(apply(db, &batch, &failures));
                if let Err(error) = &result {
                    // Recorded at once: the next change of the run may be in the same transaction.
                    note_failure(&failures, &batch.run, error);
                }
                Applied {
                    span,
                    kept: kept(&result),
                    now: None,
                    end: Some(remember(failures, batch.run)),
                }
            }),
        })
    }

    /// Returns the failures of runs.
    pub(super) fn failures(&self) -> Failures {
        self.failures.clone()
    }

    /// Returns a counter of commits that may let a run continue; from now on, other processes are included.
    pub(super) fn news(&self) -> watch::Receiver<u64> {
        let news = self.news.subscribe();
        self.wake();
        news
    }

    /// Returns a counter of commits; from now on, other processes are included.
    pub(super) fn commits(&self) -> watch::Receiver<u64> {
        let commits = self.commits.subscribe();
        self.wake();
        commits
    }

    /// Returns a counter of commits that add rows to the journal of a run; from now on, other processes are included.
    pub(super) fn watch(&self, run: i64) -> watch::Receiver<u64> {
        let commits = self.watched.watch(run);
        self.wake();
        commits
    }

    /// Wakes the thread, which may be waiting for a job without polling.
    fn wake(&self) {
        if let Some(jobs) = &self.jobs {
            // If the thread has ended, there are no more commits.
            let _ = jobs.send(Message::Poll);
        }
    }

    /// Returns what was counted of commits.
    pub(super) fn tally(&self) -> CommitCounts {
        self.tally.snapshot()
    }

    /// Tells whether there are acknowledged changes that a reader does not see yet.
    pub(super) fn is_unsettled(&self) -> bool {
        self.unsettled.load(Ordering::SeqCst) > 0
    }

    fn send(&self, job: Job) -> Result<(), StoreError> {
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        if job.ack == Ack::Applied && job.is_public {
            self.unsettled.fetch_add(1, Ordering::SeqCst);
        }
        self.tally.queue();
        jobs.send(Message::Do(job)).map_err(|_| gone())
    }
}

/// An update of a run that stays running is not news.
fn news_in(batch: &Batch) -> News {
    let is_news = |change: &Change| match change {
        Change::Update(update) => update.status != RunStatus::Running,
        Change::OpenWait(_) | Change::Signal { .. } | Change::CloseChildren { .. } => true,
        Change::Perform { op, .. } => matches!(**op, StoreOp::Job(_)),
        _ => false,
    };
    match batch.changes.iter().any(is_news) {
        true => News::Some,
        false => News::None,
    }
}

fn apply(
    db: Result<&Connection, StoreError>,
    batch: &Batch,
    failures: &Failures,
) -> Result<(Receipt, Option<Span>), StoreError> {
    if let Some(error) = lock(failures).get(&batch.run) {
        return Err(error.clone());
    }
    journal::apply(db?, batch)
}

fn parted(
    applied: Result<(Receipt, Option<Span>), StoreError>,
) -> (Result<Receipt, StoreError>, Option<Span>) {
    match applied {
        Ok((receipt, span)) => (Ok(receipt), span),
        Err(error) => (Err(error), None),
    }
}

/// Returns a callback that records the failure of a run's change.
fn remember(failures: Failures, run: RunId) -> Notify {
    Box::new(move |committed| {
        if let Err(error) = committed {
            note_failure(&failures, &run, &error);
        }
    })
}

fn note_failure(failures: &Failures, run: &RunId, error: &StoreError) {
    let mut failures = lock(failures);
    failures.entry(run.clone()).or_insert_with(|| error.clone());
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn count_up(commits: &watch::Sender<u64>) {
    commits.send_modify(|count| *count = count.wrapping_add(1));
}

fn gone() -> StoreError {
    StoreError::Internal("the writer has ended".to_owned())
}

fn lock(failures: &Failures) -> std::sync::MutexGuard<'_, HashMap<RunId, StoreError>> {
    failures.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Appends zeros to the log. SQLite takes them for remains of an earlier log, because they are not a valid frame.
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
    probe: Option<Arc<dyn Probe>>,
    queue: Receiver<Message>,
    unsettled: Arc<AtomicUsize>,
    news: Arc<watch::Sender<u64>>,
    commits: Arc<watch::Sender<u64>>,
    watched: Arc<Watched>,
    /// The data version of the file, which changes when another process writes.
    version: Option<i64>,
    polled: Instant,
    /// The current durability of commits.
    mode: Durability,
    /// Jobs that were received and not performed yet.
    ahead: VecDeque<Job>,
    transactions: u32,
    traced: Traced,
    tally: Tally,
}

/// A transaction in progress.
struct Open {
    begun: Instant,
    state: Result<(), StoreError>,
    jobs: usize,
    /// A caller waits for the commit.
    is_awaited: bool,
    /// Number of jobs that were acknowledged before the commit.
    unsettled: usize,
    ends: Vec<Notify>,
    news: News,
    spans: Spans,
    /// Some of the runs to which the transaction adds entries, if commits are traced.
    runs: Vec<i64>,
}

impl Loop {
    /// Performs jobs until there are no more, and returns the connection.
    fn run(mut self) -> Connection {
        let mut next = None;
        loop {
            let first = match next.take() {
                Some(job) => job,
                None => match self.next_job() {
                    Some(job) => job,
                    None => return self.db,
                },
            };
            next = self.transact(first);
            self.transactions += 1;
            if self.transactions == ROOM_AFTER {
                // If the log cannot be extended, commits are only slower.
                let _ = make_room(&self.path.with_extension("db-wal"));
            }
        }
    }

    /// Waits for a job. Returns `None` when there will be no more.
    fn next_job(&mut self) -> Option<Job> {
        if let Some(job) = self.ahead.pop_front() {
            return Some(job);
        }
        loop {
            // Other processes are polled only if there are readers.
            let readers = self.news.receiver_count() + self.commits.receiver_count();
            if readers == 0 && self.watched.is_empty() {
                self.version = None;
                match self.queue.recv().ok()? {
                    Message::Do(job) => return Some(job),
                    Message::Poll => continue,
                }
            }
            if self.polled.elapsed() >= POLL_INTERVAL {
                self.poll_others();
            }
            match self.queue.recv_timeout(POLL_INTERVAL) {
                Ok(Message::Do(job)) => return Some(job),
                Ok(Message::Poll) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Notifies readers of changes by other processes. Costs a read of shared memory.
    fn poll_others(&mut self) {
        self.polled = Instant::now();
        let version = self
            .db
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut sql| sql.query_row([], |row| row.get::<_, i64>(0)));
        // If the version cannot be read, the next poll may succeed.
        let Ok(version) = version else {
            return;
        };
        if self.version.replace(version) != Some(version) {
            count_up(&self.news);
            self.committed();
        }
    }

    /// Wakes the readers of feeds.
    fn committed(&self) {
        count_up(&self.commits);
        self.watched.committed(&self.db);
    }

    /// Performs a job and the jobs that follow it in one transaction; a job that fails is rolled back alone. If the
    /// transaction itself fails, all jobs fail. Returns a job that must go into the next transaction.
    fn transact(&mut self, first: Job) -> Option<Job> {
        let durability = self.required_durability(&first);
        self.set_mode(durability);
        let mut open = Open {
            begun: Instant::now(),
            state: self.execute("BEGIN IMMEDIATE"),
            jobs: 0,
            is_awaited: false,
            unsettled: 0,
            ends: Vec::new(),
            news: News::None,
            spans: Spans::default(),
            runs: Vec::new(),
        };
        let rows = self.db.total_changes();
        self.perform(&mut open, first);
        let mut left = None;
        while let Some(job) = self.next_in_transaction(&open) {
            // The durability cannot be changed in a transaction.
            if job.durability == Durability::Full && self.mode == Durability::Relaxed {
                left = Some(job);
                break;
            }
            self.perform(&mut open, job);
        }
        let spans = &mut open.spans;
        let outcome = open.state.and_then(|()| {
            let written = spans.write(&self.db);
            written.map_err(|error| located(error, &self.path))?;
            self.commit()
        });
        if outcome.is_err() {
            // Fails harmlessly if no transaction was begun.
            let _ = self.execute("ROLLBACK");
        }
        self.unsettled.fetch_sub(open.unsettled, Ordering::SeqCst);
        let committed = Committed {
            jobs: open.jobs,
            rows: self.db.total_changes().saturating_sub(rows),
            begun: open.begun,
            runs: &open.runs,
        };
        match &outcome {
            Ok(()) => {
                self.tally.committed(committed.begun.elapsed());
                self.traced.committed(&self.db, &committed);
            }
            Err(error) => tracing::debug!(target: "flowstone::store", %error, "not committed"),
        }
        for notify in open.ends {
            notify(outcome.clone());
        }
        if open.news == News::Some {
            count_up(&self.news);
        }
        // A transaction without changes adds no rows that a reader could wait for.
        if committed.rows > 0 || outcome.is_err() {
            self.committed();
        }
        left
    }

    /// Returns the durability of the next transaction: the highest that any waiting job needs, so that all are
    /// committed together.
    fn required_durability(&mut self, first: &Job) -> Durability {
        if first.durability == Durability::Relaxed && self.probe.is_none() {
            let room = GROUP_MAX.saturating_sub(self.ahead.len() + 1);
            let messages = self.queue.try_iter().take(room);
            self.ahead.extend(messages.filter_map(Message::job));
            if self
                .ahead
                .iter()
                .any(|job| job.durability == Durability::Full)
            {
                return Durability::Full;
            }
        }
        first.durability
    }

    fn commit(&self) -> Result<(), StoreError> {
        let Some(probe) = &self.probe else {
            return self.execute("COMMIT");
        };
        probe.reach(CommitPhase::BeforeCommit)?;
        self.execute("COMMIT")?;
        probe.reach(CommitPhase::AfterCommit)
    }

    /// Returns another job for the transaction, if there is one or it is worth waiting for one.
    fn next_in_transaction(&mut self, open: &Open) -> Option<Job> {
        if open.jobs >= GROUP_MAX || open.state.is_err() || self.probe.is_some() {
            return None;
        }
        if let Some(job) = self.ahead.pop_front() {
            return Some(job);
        }
        if open.is_awaited {
            return self.queue.try_recv().ok().and_then(Message::job);
        }
        let left = MAX_DELAY.saturating_sub(open.begun.elapsed());
        let message = self.queue.recv_timeout(left).ok();
        message.and_then(Message::job)
    }

    fn perform(&self, open: &mut Open, job: Job) {
        open.jobs += 1;
        self.tally.take();
        if job.news == News::Some {
            open.news = News::Some;
        }
        match job.ack {
            Ack::Durable => open.is_awaited = true,
            Ack::Applied => open.unsettled += usize::from(job.is_public),
        }
        // The first job of a transaction needs no savepoint: the whole transaction is rolled back and begun again.
        let is_first = open.jobs == 1;
        let begun = open.state.clone().and_then(|()| {
            if is_first {
                return Ok(());
            }
            if !job.is_plain {
                let written = open.spans.write(&self.db);
                written.map_err(|error| located(error, &self.path))?;
            }
            self.execute("SAVEPOINT job")
        });
        let applied = (job.apply)(begun.clone().map(|()| &self.db));
        open.state = match (begun, applied.kept) {
            (Err(error), _) => Err(error),
            (Ok(()), Ok(())) => {
                if let Some(span) = applied.span {
                    self.traced.note(&mut open.runs, span.run());
                    open.spans.add(span);
                }
                match is_first {
                    true => Ok(()),
                    false => self.execute("RELEASE job"),
                }
            }
            // SQLite has rolled back the whole transaction itself, for example because the disk became full.
            (Ok(()), Err(error)) if self.db.is_autocommit() => Err(error),
            (Ok(()), Err(_)) if is_first => self
                .execute("ROLLBACK")
                .and_then(|()| self.execute("BEGIN IMMEDIATE")),
            (Ok(()), Err(_)) => self
                .execute("ROLLBACK TO job")
                .and_then(|()| self.execute("RELEASE job")),
        };
        if let Some(notify) = applied.now {
            notify(open.state.clone());
        }
        open.ends.extend(applied.end);
    }

    fn set_mode(&mut self, durability: Durability) {
        if self.mode == durability {
            return;
        }
        let level = match durability {
            Durability::Full => "FULL",
            Durability::Relaxed => "NORMAL",
        };
        let set = self.db.pragma_update(None, "synchronous", level);
        // A higher durability than requested does no harm.
        if set.is_ok() {
            self.mode = durability;
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
