//! The thread that writes: takes what is handed over into one transaction, and answers when that is durable.
//!
//! Who only needs to know that a change has happened is answered at once. Such changes wait a moment for company,
//! until somebody needs them durable or the moment is over; all that is handed over later comes after them.

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
/// How long changes that nobody needs durable wait for company.
const MOMENT: Duration = Duration::from_millis(10);
/// How often it is looked whether another process has written.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Number of transactions after which truncating the log is worthwhile.
const ROOM_AFTER: u32 = 24;
/// How long the log is made, once: writing over blocks that are there syncs faster than making the file longer.
const ROOM_BYTES: u64 = 16 << 20;

/// What is done with the connection when nothing is left to be written.
pub(super) type Leave = Box<dyn FnOnce(&Connection) + Send>;

/// Tells somebody how it went.
type Tell = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// What a job did.
struct Applied {
    /// What was wrong, where it is not to be kept.
    kept: Result<(), StoreError>,
    /// Called when the job has been done.
    now: Option<Tell>,
    /// Called when the job is durable, or has failed.
    end: Option<Tell>,
    /// The entries that it added, where it added nothing else.
    span: Option<Span>,
}

fn kept<T>(result: &Result<T, StoreError>) -> Result<(), StoreError> {
    result.as_ref().map(drop).map_err(Clone::clone)
}

/// Does a job, or has it refused with what went wrong before it.
type Apply = Box<dyn FnOnce(Result<&Connection, StoreError>) -> Applied + Send>;

struct Job {
    durability: Durability,
    ack: Ack,
    /// It may change what others read: not only a run's own journal.
    is_public: bool,
    news: News,
    /// It adds entries to one journal, and nothing else. Any other job may add events.
    is_plain: bool,
    apply: Apply,
}

/// What the thread is sent.
enum Message {
    Do(Job),
    /// Somebody wants to know of commits from now on, also of those of other processes.
    Look,
}

impl Message {
    fn job(self) -> Option<Job> {
        match self {
            Message::Do(job) => Some(job),
            Message::Look => None,
        }
    }
}

/// Runs of which something failed after it was said to have happened: what comes after it must fail too.
#[derive(Clone, Default)]
pub(super) struct Failures(Arc<Mutex<HashMap<RunId, StoreError>>>);

impl Failures {
    /// Allows writes to runs again, after they were read again by their executor.
    pub(super) fn forget<'a>(&self, runs: impl Iterator<Item = &'a RunId>) {
        let mut failures = lock(self);
        for run in runs {
            failures.remove(run);
        }
    }
}

/// Whether a change may mean that a run can go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    None,
    Some,
}

/// The way to the thread. Dropping it lets the thread finish what was handed over.
pub(super) struct Writer {
    jobs: Option<Sender<Message>>,
    failures: Failures,
    /// How many changes were said to have happened and are not in the file yet.
    unsettled: Arc<AtomicUsize>,
    news: Arc<watch::Sender<u64>>,
    /// Changes with each commit.
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
            looked: Instant::now(),
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

    /// Has something done in a transaction, durably.
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
                        // Who asked may have gone; the change stays.
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

    /// Has something arranged between processes, which is worth nothing after a loss of power: in the file, but not
    /// synced for its own sake.
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
                let tell: Tell = Box::new(move |happened| {
                    let _ = answer.send(happened.and(result));
                });
                match ack {
                    Ack::Durable => Applied {
                        span,
                        kept,
                        now: None,
                        end: Some(tell),
                    },
                    Ack::Applied => Applied {
                        span,
                        kept,
                        now: Some(tell),
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
                    // At once: what comes next for the run may be in the same transaction.
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

    /// Returns what is known of failed runs.
    pub(super) fn failures(&self) -> Failures {
        self.failures.clone()
    }

    /// Returns what changes with each commit that may let a run go on; from now on, of other processes as well.
    pub(super) fn news(&self) -> watch::Receiver<u64> {
        let news = self.news.subscribe();
        self.look();
        news
    }

    /// Returns what changes with each commit; from now on, of other processes as well.
    pub(super) fn commits(&self) -> watch::Receiver<u64> {
        let commits = self.commits.subscribe();
        self.look();
        commits
    }

    /// Returns what changes with each commit that adds rows to the journal of a run; from now on, of other processes as
    /// well.
    pub(super) fn watch(&self, run: i64) -> watch::Receiver<u64> {
        let commits = self.watched.watch(run);
        self.look();
        commits
    }

    /// Wakes the thread, which may wait for a job and for nothing else.
    fn look(&self) {
        if let Some(jobs) = &self.jobs {
            // Where the thread is gone, there are no more commits.
            let _ = jobs.send(Message::Look);
        }
    }

    /// Returns what was counted of commits.
    pub(super) fn tally(&self) -> CommitCounts {
        self.tally.snapshot()
    }

    /// Tells whether changes were said to have happened that a reader does not see yet.
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

/// An executing run is not news while it is executed.
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

/// Notes for a run that something did not become durable.
fn remember(failures: Failures, run: RunId) -> Tell {
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
    probe: Option<Arc<dyn Probe>>,
    queue: Receiver<Message>,
    unsettled: Arc<AtomicUsize>,
    news: Arc<watch::Sender<u64>>,
    commits: Arc<watch::Sender<u64>>,
    watched: Arc<Watched>,
    /// Changes whenever another process has written.
    version: Option<i64>,
    looked: Instant,
    /// What a commit is worth at the moment.
    mode: Durability,
    /// Jobs that were looked at and not done yet.
    ahead: VecDeque<Job>,
    transactions: u32,
    traced: Traced,
    tally: Tally,
}

/// A transaction under way.
struct Open {
    begun: Instant,
    state: Result<(), StoreError>,
    jobs: usize,
    /// Somebody waits for the end.
    is_awaited: bool,
    /// How many of the jobs were said to have happened.
    unsettled: usize,
    ends: Vec<Tell>,
    news: News,
    spans: Spans,
    /// Some of the runs whose entries it adds, where commits are traced.
    runs: Vec<i64>,
}

impl Loop {
    /// Returns the connection when there will be no more jobs.
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
                // Where it cannot be had, commits are only slower.
                let _ = make_room(&self.path.with_extension("db-wal"));
            }
        }
    }

    /// Waits for a job. Returns none when there will be no more.
    fn next_job(&mut self) -> Option<Job> {
        if let Some(job) = self.ahead.pop_front() {
            return Some(job);
        }
        loop {
            // Only who executes runs wants to know what other processes do.
            let readers = self.news.receiver_count() + self.commits.receiver_count();
            if readers == 0 && self.watched.is_empty() {
                self.version = None;
                match self.queue.recv().ok()? {
                    Message::Do(job) => return Some(job),
                    Message::Look => continue,
                }
            }
            if self.looked.elapsed() >= LOOK_EVERY {
                self.look_at_others();
            }
            match self.queue.recv_timeout(LOOK_EVERY) {
                Ok(Message::Do(job)) => return Some(job),
                Ok(Message::Look) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Tells of changes by other processes. Costs a look into shared memory.
    fn look_at_others(&mut self) {
        self.looked = Instant::now();
        let version = self
            .db
            .prepare_cached("PRAGMA data_version")
            .and_then(|mut sql| sql.query_row([], |row| row.get::<_, i64>(0)));
        // Where it cannot be had, the next look may have it.
        let Ok(version) = version else {
            return;
        };
        if self.version.replace(version) != Some(version) {
            count_up(&self.news);
            self.committed();
        }
    }

    /// Wakes those who read feeds.
    fn committed(&self) {
        count_up(&self.commits);
        self.watched.committed(&self.db);
    }

    /// Performs a job and the jobs that follow it in one transaction; a job that fails is rolled back alone. If the
    /// transaction itself fails, all jobs fail. Returns a job that must go into the next transaction.
    fn transact(&mut self, first: Job) -> Option<Job> {
        let worth = self.worth(&first);
        self.set_mode(worth);
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
        while let Some(job) = self.company(&open) {
            // What a commit is worth cannot be changed in a transaction.
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
            // Fails where nothing was begun, which is as well.
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
        for tell in open.ends {
            tell(outcome.clone());
        }
        if open.news == News::Some {
            count_up(&self.news);
        }
        self.committed();
        left
    }

    /// Returns what the next transaction is to be worth: the most that anything needs that waits already, so that
    /// all of it is done together.
    fn worth(&mut self, first: &Job) -> Durability {
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

    /// Returns another job for a transaction, if it is worth waiting for one.
    fn company(&mut self, open: &Open) -> Option<Job> {
        if open.jobs >= GROUP_MAX || open.state.is_err() || self.probe.is_some() {
            return None;
        }
        if let Some(job) = self.ahead.pop_front() {
            return Some(job);
        }
        if open.is_awaited {
            return self.queue.try_recv().ok().and_then(Message::job);
        }
        let left = MOMENT.saturating_sub(open.begun.elapsed());
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
        let begun = open.state.clone().and_then(|()| {
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
                self.execute("RELEASE job")
            }
            // SQLite has rolled the whole transaction back by itself, as it does where a disk fills up in the middle.
            (Ok(()), Err(error)) if self.db.is_autocommit() => Err(error),
            (Ok(()), Err(_)) => self
                .execute("ROLLBACK TO job")
                .and_then(|()| self.execute("RELEASE job")),
        };
        if let Some(tell) = applied.now {
            tell(open.state.clone());
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
        // More than was asked for does no harm.
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
