//! The SQLite database of a project: one file, written by one thread.
//!
//! All changes of all runs use one connection, many in one transaction. Readers have a connection of their own, which
//! never holds a transaction open.

mod agenda;
mod backup;
pub mod blob;
pub(crate) mod changeset;
mod copied;
mod counts;
mod delivery;
mod failure;
mod feed;
mod import;
mod installation;
mod jobs;
mod journal;
pub mod kv;
mod lease;
mod listing;
mod marker;
mod open;
mod owner;
mod payload;
mod queue;
mod registry;
pub mod resource;
mod run_tree;
mod runs;
mod schedule;
mod scratch;
pub(crate) mod search;
mod snapshot;
pub mod table;
mod token;
mod traced;
mod triggers;
mod upkeep;
mod verify;
mod waits;
mod watched;
mod writer;

pub use traced::Spans;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use flowstone_model::blob::BlobHash;
use flowstone_model::ids::RunId;
use flowstone_model::kv::KvEntry;
use flowstone_model::limits::Limits;
use flowstone_model::ports::{
    Admission, Adoption, Agenda, BackedUp, Batch, BlobRow, BlobWriter, Blobs, BulkAdmission, Claim,
    ClaimBy, Completion, Counts, Delivered, Delivery, Entry, Feed, FeedDetail, FeedPage,
    FlowVersion, Import, Journal, Kv, NewRun, PastDelivery, PlanChange, PortFuture, Probe, Program,
    ProjectFeedPage, Queue, QueuePlace, Receipt, Removed, ResourcePage, ResourceQuery, ResourceRow,
    Resources, RunFilter, RunQuery, RunRow, RunStatus, RunSummary, Runs, ScheduleRow, Setback,
    SignalFilter, SignalRow, StartRules, StoreError, StoredInput, Stores, Sweep, Tables, Taken,
    Upkeep, Usage, Verified, WaitFilter, WaitRow, Waits, WaitsAnswer, wall_clock_ms,
};
use flowstone_model::resource::SearchEntry;
use flowstone_model::rules::{self, rows::ReceiptRows as _};
use flowstone_model::table::csv::{ExportCsv, ExportedCsv, StageCsv, StagedCsv};
use flowstone_model::table::{TableOp, TableQuery};
use rusqlite::{Connection, InterruptHandle};

use crate::failure::rolled_back;
use marker::{Marker, MarkerState};
pub(crate) use open::in_memory;
use owner::Owner;
use queue::Sql as Rows;
pub(crate) use scratch::{Base, Layers};
use snapshot::Snapshot;
use writer::{Leave, News, Writer};

/// The folder of blobs, beside the database.
const BLOBS: &str = "blobs";
/// The folder of the processes that use the database.
const OWNERS: &str = "owners";

/// The options for opening a database.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Reports an error if the database does not exist, instead of creating it.
    pub must_exist: bool,
    /// The SQLite file layer (VFS) to use, by its registered name.
    pub vfs: Option<String>,
    /// Observes each transaction.
    pub probe: Option<Arc<dyn Probe>>,
    /// Opens the database without changing anything, not even the list of its readers; each change is refused.
    pub read_only: bool,
    /// Number of processes that may end while they execute a run, without progress of the run, before it is put in
    /// quarantine. `None`: the default of [`Limits`].
    pub crashes: Option<u32>,
    /// Receives the spans of commits.
    pub telemetry: Spans,
}

/// Opens the database of a project, and creates its folder and file if necessary.
///
/// # Errors
/// When the file is not a database, belongs to another program, is damaged, or is newer than this build; it is left
/// unchanged.
pub fn open(home: &Path, options: &Options) -> Result<Stores, StoreError> {
    if options.read_only {
        return open_read_only(home, options);
    }
    match open_to_write(home, options) {
        // A database that cannot be written can still be read.
        Err(StoreError::ReadOnly { .. }) if options.must_exist => {
            let options = Options {
                read_only: true,
                ..options.clone()
            };
            open_read_only(home, &options)
        }
        opened => opened,
    }
}

fn open_to_write(home: &Path, options: &Options) -> Result<Stores, StoreError> {
    let path = open::prepare_home(home, options)?;
    // With another file layer, the files may not be at their usual paths.
    let marker = match &options.vfs {
        None => Some(Marker::lock(home)?),
        Some(_) => None,
    };
    let state = marker
        .as_ref()
        .map_or(MarkerState::Nothing, |marker| marker.state);
    marker::check(state, &path)?;
    let writing = open::connect(&path, options, state)?;
    let reading = open::connect_reader(&path, options)?;
    let owner = Arc::new(Owner::register(&home.join(OWNERS))?);
    let leave: Leave = match marker {
        None => Box::new(|_| {}),
        Some(marker) => {
            marker.opened(&path);
            let (home, owner) = (home.to_owned(), owner.clone());
            Box::new(move |db| marker::leave(&home, db, &owner))
        }
    };
    let writer = Writer::start(writing, path.clone(), leave, options)?;
    Ok(stores(home, (path, reading), (writer, owner), options))
}

/// Opens a database for reading only: the folder cannot be written, or must not change.
fn open_read_only(home: &Path, options: &Options) -> Result<Stores, StoreError> {
    let path = home.join(open::FILE);
    marker::check(marker::read(home), &path)?;
    let writing = open::connect_read_only(&path)?;
    let reading = open::connect_read_only(&path)?;
    let owner = Arc::new(Owner::reader(&home.join(OWNERS)));
    let writer = Writer::start(writing, path.clone(), Box::new(|_| {}), &Options::default())?;
    Ok(stores(home, (path, reading), (writer, owner), options))
}

fn stores(
    home: &Path,
    (path, reading): (PathBuf, Connection),
    (writer, owner): (Writer, Arc<Owner>),
    options: &Options,
) -> Stores {
    let sqlite = Arc::new(Sqlite {
        path,
        blobs: home.join(BLOBS),
        reader: Mutex::new(reading),
        aside: Arc::default(),
        writer,
        owner,
        options: options.clone(),
    });
    Stores {
        agenda: sqlite.clone(),
        journal: sqlite.clone(),
        feed: sqlite.clone(),
        live: Arc::<crate::live::LiveTexts>::default(),
        runs: sqlite.clone(),
        queue: sqlite.clone(),
        waits: sqlite.clone(),
        jobs: sqlite.clone(),
        kv: sqlite.clone(),
        tables: sqlite.clone(),
        blobs: sqlite.clone(),
        resources: sqlite.clone(),
        changesets: sqlite.clone(),
        search: sqlite.clone(),
        tokens: sqlite.clone(),
        registry: sqlite.clone(),
        triggers: sqlite.clone(),
        installations: sqlite.clone(),
        scratch: Arc::new(Layers(sqlite.clone())),
        upkeep: sqlite,
    }
}

/// The open database.
struct Sqlite {
    path: PathBuf,
    /// The folder of blobs.
    blobs: PathBuf,
    reader: Mutex<Connection>,
    /// An idle connection for [`Sqlite::read_aside`].
    aside: Arc<Mutex<Option<Connection>>>,
    writer: Writer,
    owner: Arc<Owner>,
    options: Options,
}

impl Sqlite {
    fn crashes(&self) -> u32 {
        self.options
            .crashes
            .unwrap_or_else(|| Limits::default().crashes)
    }

    /// Runs a query on the reading connection, immediately.
    fn read<'a, T: Send + 'a>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> PortFuture<'a, T> {
        let db = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = query(&db).map_err(|error| failure::located(error, &self.path));
        Box::pin(std::future::ready(answer))
    }

    /// As [`Sqlite::read`], for several statements: together they lock the file once, and read the same pages once.
    fn read_at_once<'a, T: Send + 'a>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> PortFuture<'a, T> {
        self.read(|db| {
            let snapshot = Snapshot::begin(db)?;
            let answer = query(db);
            drop(snapshot);
            answer
        })
    }

    /// Runs a query on the reading connection, after all acknowledged changes have been written to the file.
    fn read_settled<'a, T: Send + 'a>(
        &'a self,
        query: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'a,
    ) -> PortFuture<'a, T> {
        if !self.writer.is_unsettled() {
            return self.read(query);
        }
        Box::pin(async move {
            self.writer.submit(|_| Ok(())).await?;
            self.read(query).await
        })
    }

    /// Runs a query that may take long, on a connection and a thread of its own.
    fn read_aside<'a, T: Send + 'static>(
        &'a self,
        query: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> PortFuture<'a, T> {
        Box::pin(async move {
            if self.writer.is_unsettled() {
                self.writer.submit(|_| Ok(())).await?;
            }
            let (path, options) = (self.path.clone(), self.options.clone());
            let aside = self.aside.clone();
            let pending = PendingQuery::default();
            let state = pending.0.clone();
            let answering = tokio::task::spawn_blocking(move || {
                let kept = aside.lock().unwrap_or_else(PoisonError::into_inner).take();
                let db = match kept {
                    Some(db) => db,
                    None if options.read_only => open::connect_read_only(&path)?,
                    None => open::connect_reader(&path, &options)?,
                };
                let note = |now| {
                    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                    !matches!(std::mem::replace(&mut *state, now), QueryState::Abandoned)
                };
                let answer = match note(QueryState::Running(db.get_interrupt_handle())) {
                    true => query(&db).map_err(|error| failure::located(error, &path)),
                    false => Err(StoreError::Internal(
                        "the caller no longer waits".to_owned(),
                    )),
                };
                note(QueryState::Over);
                *aside.lock().unwrap_or_else(PoisonError::into_inner) = Some(db);
                answer
            });
            let answer = answering.await.map_err(stopped)?;
            drop(pending);
            answer
        })
    }
}

/// Represents the caller that waits for a query. Dropping it interrupts the query's statement: the run was cancelled,
/// or the process ends and would have to wait for it.
#[derive(Default)]
struct PendingQuery(Arc<Mutex<QueryState>>);

/// The state of a query.
#[derive(Default)]
enum QueryState {
    #[default]
    Queued,
    Running(InterruptHandle),
    Over,
    Abandoned,
}

impl Drop for PendingQuery {
    fn drop(&mut self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let QueryState::Running(statement) =
            std::mem::replace(&mut *state, QueryState::Abandoned)
        {
            statement.interrupt();
        }
    }
}

fn stopped(error: tokio::task::JoinError) -> StoreError {
    StoreError::Internal(format!("the reading thread stopped: {error}"))
}

impl Journal for Sqlite {
    fn commit(&self, batch: Batch) -> PortFuture<'static, Receipt> {
        self.writer.commit(batch)
    }

    fn post(&self, batch: Batch) -> Result<(), StoreError> {
        self.writer.post(batch)
    }

    fn load(&self, run: &RunId) -> PortFuture<'_, Vec<Entry>> {
        self.read(|db| journal::load(db, run))
    }

    fn load_after(
        &self,
        run: &RunId,
        place: i64,
        limit: usize,
    ) -> PortFuture<'_, Vec<(i64, Entry)>> {
        self.read(|db| journal::load_after(db, run, place, limit))
    }
}

impl Feed for Sqlite {
    fn read(&self, run: &RunId, after: i64, limit: usize) -> PortFuture<'_, Option<FeedPage>> {
        Sqlite::read(self, |db| feed::read(db, run, after, limit))
    }

    fn project(
        &self,
        after: i64,
        limit: usize,
        detail: FeedDetail,
    ) -> PortFuture<'_, ProjectFeedPage> {
        Sqlite::read(self, |db| feed::project(db, after, limit, detail))
    }

    fn last_position(&self) -> PortFuture<'_, i64> {
        Sqlite::read(self, feed::last_position)
    }

    fn news(&self) -> Box<dyn flowstone_model::ports::News> {
        Box::new(crate::news::Commits(self.writer.commits()))
    }

    fn watch(&self, run: &RunId) -> Box<dyn flowstone_model::ports::News> {
        let db = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        match runs::number(&db, run) {
            Ok(Some(num)) => Box::new(crate::news::Commits(self.writer.watch(num))),
            // A read of the feed reports the error.
            Ok(None) | Err(_) => Feed::news(self),
        }
    }
}

impl Runs for Sqlite {
    fn create(&self, run: NewRun) -> PortFuture<'_, RunId> {
        let owner = self.owner.clone();
        self.writer.submit(move |db| runs::create(db, &owner, &run))
    }

    fn find(&self, run: &RunId) -> PortFuture<'_, Option<RunRow>> {
        self.read(|db| runs::find(db, &self.owner, run))
    }

    fn list(&self, filter: RunFilter) -> PortFuture<'_, Vec<RunRow>> {
        self.read(|db| runs::list(db, &self.owner, &filter))
    }

    fn summaries(&self, query: RunQuery) -> PortFuture<'_, Vec<RunSummary>> {
        self.read(|db| listing::list(db, &self.owner, &query))
    }

    fn program(&self, hash: &str) -> PortFuture<'_, Option<Program>> {
        self.read(|db| runs::program(db, hash))
    }

    fn versions(&self, flow: &str) -> PortFuture<'_, Vec<FlowVersion>> {
        self.read(|db| runs::versions(db, flow))
    }

    fn claim(&self, run: &RunId, by: ClaimBy, now_ms: i64) -> PortFuture<'_, Claim> {
        let (run, owner, crashes) = (run.clone(), self.owner.clone(), self.crashes());
        self.writer.failures().forget(std::iter::once(&run));
        self.writer.arrange(News::None, move |db| {
            runs::claim(db, (&owner, crashes), (&run, by), now_ms)
        })
    }

    fn executes(&self, run: &RunId, is_executing: bool) {
        self.owner.mark(run, is_executing);
    }

    fn adopt(&self, adoption: Adoption) -> PortFuture<'_, ()> {
        let owner = self.owner.clone();
        self.writer
            .submit(move |db| runs::adopt(db, &owner, &adoption))
    }

    fn release(&self, run: &RunId, epoch: i64) -> PortFuture<'_, ()> {
        let run = run.clone();
        self.writer
            .arrange(News::Some, move |db| runs::release(db, &run, epoch))
    }

    fn import(&self, import: Import) -> PortFuture<'_, ()> {
        self.writer.submit(move |db| import::import(db, &import))
    }

    fn sealed(&self, after: Option<&RunId>, limit: usize) -> PortFuture<'_, Vec<StoredInput>> {
        let after = after.cloned();
        self.read(move |db| runs::sealed(db, after.as_ref(), limit))
    }

    fn reseal(&self, changes: Vec<(StoredInput, StoredInput)>) -> PortFuture<'_, ()> {
        self.writer.submit(move |db| runs::reseal(db, &changes))
    }

    fn request_cancel(&self, run: &RunId, reason: &str, now_ms: i64) -> PortFuture<'_, ()> {
        let (run, reason) = (run.clone(), reason.to_owned());
        self.writer.submit(move |db| {
            rules::run_tree::request_cancel(&mut Rows::new(db), &run, &reason, now_ms)
        })
    }

    fn terminate(
        &self,
        run: &RunId,
        reason: &str,
        now_ms: i64,
    ) -> PortFuture<'_, Option<RunStatus>> {
        let (run, reason) = (run.clone(), reason.to_owned());
        self.writer
            .submit(move |db| rules::run_tree::terminate(&mut Rows::new(db), &run, &reason, now_ms))
    }
}

impl Agenda for Sqlite {
    fn news(&self) -> Box<dyn flowstone_model::ports::News> {
        Box::new(crate::news::Commits(self.writer.news()))
    }

    fn take(&self, now_ms: i64, limit: usize) -> PortFuture<'_, Vec<Taken>> {
        let (owner, failures) = (self.owner.clone(), self.writer.failures());
        Box::pin(async move {
            // Most notifications are about runs that a process has already. A change that is missed here notifies later.
            if !self.writer.is_unsettled()
                && !self.read_at_once(|db| agenda::is_due(db, now_ms)).await?
            {
                return Ok(Vec::new());
            }
            let take = move |db: &Connection| {
                let taken = agenda::take(db, &owner, now_ms, limit)?;
                failures.forget(taken.iter().map(|taken| &taken.row.id));
                Ok(taken)
            };
            self.writer.arrange(News::None, take).await
        })
    }

    fn next_ms(&self) -> PortFuture<'_, Option<i64>> {
        self.read_at_once(agenda::next_ms)
    }

    fn sweep(&self) -> PortFuture<'_, usize> {
        let owner = self.owner.clone();
        Box::pin(async move {
            let gone = self.read(|db| agenda::gone(db, &owner)).await?;
            if gone.is_empty() {
                return Ok(0);
            }
            let (crashes, now_ms) = (self.crashes(), wall_clock_ms());
            let free = move |db: &Connection| agenda::free(db, (&owner, crashes), &gone, now_ms);
            self.writer.arrange(News::Some, free).await
        })
    }

    fn set_aside(&self, run: &RunId, epoch: i64, setback: Setback) -> PortFuture<'_, ()> {
        let run = run.clone();
        self.writer.arrange(News::Some, move |db| {
            agenda::set_aside(db, &run, epoch, &setback)
        })
    }

    fn forget_setbacks(&self) -> PortFuture<'_, usize> {
        self.writer.arrange(News::Some, agenda::forget_setbacks)
    }

    fn schedules(&self) -> PortFuture<'_, Vec<ScheduleRow>> {
        self.read(schedule::list)
    }

    fn plan(&self, change: PlanChange) -> PortFuture<'_, bool> {
        self.writer.submit(move |db| schedule::plan(db, &change))
    }
}

impl Queue for Sqlite {
    fn admit(&self, run: NewRun, rules: StartRules) -> PortFuture<'_, Admission> {
        let owner = self.owner.clone();
        self.writer
            .submit(move |db| queue::admit(db, &owner, &run, &rules, &[]))
    }

    fn admit_with(
        &self,
        run: NewRun,
        rules: StartRules,
        journal: Vec<Entry>,
    ) -> PortFuture<'_, Admission> {
        let owner = self.owner.clone();
        self.writer
            .submit(move |db| queue::admit(db, &owner, &run, &rules, &journal))
    }

    fn admit_all(&self, delivery: Delivery) -> PortFuture<'_, BulkAdmission> {
        let owner = self.owner.clone();
        let refused = Arc::new(Mutex::new(None));
        let note = refused.clone();
        let admitted =
            self.writer.submit(
                move |db| match delivery::deliver_all(db, &owner, &delivery)? {
                    refused @ BulkAdmission::Refused { .. } => {
                        *note.lock().unwrap_or_else(PoisonError::into_inner) = Some(refused);
                        Err(rolled_back())
                    }
                    taken @ (BulkAdmission::Admitted(_) | BulkAdmission::Known(_)) => Ok(taken),
                },
            );
        Box::pin(async move {
            let admitted = admitted.await;
            let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
            refused.take().map_or(admitted, Ok)
        })
    }

    fn deliver(&self, delivery: Delivery) -> PortFuture<'_, Delivered> {
        let owner = self.owner.clone();
        self.writer
            .submit(move |db| delivery::deliver(db, &owner, &delivery))
    }

    fn receipt(&self, scope: &str, key: &str, now_ms: i64) -> PortFuture<'_, Option<PastDelivery>> {
        let (scope, key) = (scope.to_owned(), key.to_owned());
        self.read(move |db| {
            let found = Rows::new(db).receipt(&scope, &key)?;
            Ok(found.filter(|past| past.until_ms > now_ms))
        })
    }

    fn promote(&self, now_ms: i64) -> PortFuture<'_, Vec<RunId>> {
        Box::pin(async move {
            // Usually nothing is due, and checking costs no commit.
            let next_ms = self.read(queue::next_ms).await?;
            if next_ms.is_none_or(|next_ms| next_ms > now_ms) {
                return Ok(Vec::new());
            }
            self.writer
                .arrange(News::Some, move |db| {
                    rules::queue::promote(&mut Rows::new(db), now_ms)
                })
                .await
        })
    }

    fn place(&self, run: &RunId) -> PortFuture<'_, Option<QueuePlace>> {
        self.read(|db| queue::place(db, run))
    }
}

impl Waits for Sqlite {
    fn list(&self, filter: WaitFilter) -> PortFuture<'_, Vec<WaitRow>> {
        self.read(|db| waits::list(db, &filter))
    }

    fn at(&self, run: &RunId, path: &str) -> PortFuture<'_, Option<WaitRow>> {
        self.read(|db| waits::at(db, run, path))
    }

    fn token(&self, id: &str) -> PortFuture<'_, Option<String>> {
        self.read(|db| waits::token(db, id))
    }

    fn complete(&self, completion: Completion) -> PortFuture<'_, WaitsAnswer> {
        let durability = completion.durability;
        let work = move |db: &_| rules::answers::complete(&mut Rows::new(db), &completion);
        self.writer.submit_as(durability, News::Some, work)
    }

    fn signals(&self, filter: SignalFilter) -> PortFuture<'_, Vec<SignalRow>> {
        self.read(|db| waits::signals(db, &filter))
    }
}

impl Kv for Sqlite {
    fn get(&self, key: &str, now_ms: i64) -> PortFuture<'_, Option<String>> {
        let key = key.to_owned();
        self.read_settled(move |db| kv::get(db, &key, now_ms))
    }

    fn entry(&self, key: &str, now_ms: i64) -> PortFuture<'_, Option<KvEntry>> {
        let key = key.to_owned();
        self.read_settled(move |db| kv::entry(db, &key, now_ms))
    }

    fn list_keys(&self, prefix: &str, limit: usize, now_ms: i64) -> PortFuture<'_, Vec<String>> {
        let prefix = prefix.to_owned();
        self.read_settled(move |db| kv::list_keys(db, &prefix, limit, now_ms))
    }
}

impl Tables for Sqlite {
    fn names(&self) -> PortFuture<'_, Vec<String>> {
        self.read_settled(table::names)
    }

    fn query(&self, query: TableQuery) -> PortFuture<'_, String> {
        match query {
            TableQuery::Aggregate(_) => self.read_aside(move |db| table::query(db, &query)),
            query => self.read_settled(move |db| table::query(db, &query)),
        }
    }

    fn apply(&self, op: TableOp, now_ms: i64) -> PortFuture<'_, String> {
        self.writer.submit(move |db| table::apply(db, &op, now_ms))
    }

    fn stage(&self, ask: StageCsv) -> PortFuture<'_, StagedCsv> {
        let folder = self.blobs.clone();
        Box::pin(async move {
            let staged = tokio::task::spawn_blocking(move || table::csv::stage(&folder, &ask));
            staged.await.map_err(stopped)?
        })
    }

    fn export(&self, ask: ExportCsv) -> PortFuture<'_, ExportedCsv> {
        let folder = self.blobs.clone();
        self.read_aside(move |db| table::csv::export(db, &folder, &ask))
    }
}

impl Blobs for Sqlite {
    fn put(&self, bytes: Vec<u8>) -> PortFuture<'_, BlobHash> {
        Box::pin(async move { blob::put(&self.blobs, &bytes) })
    }

    fn begin(&self) -> PortFuture<'_, Box<dyn BlobWriter>> {
        let begun = blob::incoming::begin(&self.blobs);
        let begun = begun.map(|begun| Box::new(begun) as Box<dyn BlobWriter>);
        Box::pin(std::future::ready(begun))
    }

    fn get(&self, hash: &BlobHash) -> PortFuture<'_, Vec<u8>> {
        let answer = blob::get(&self.blobs, hash);
        Box::pin(std::future::ready(answer))
    }

    fn part(&self, hash: &BlobHash, start: u64, length: usize) -> PortFuture<'_, Vec<u8>> {
        let answer = blob::part(&self.blobs, hash, start, length);
        Box::pin(std::future::ready(answer))
    }

    fn find(&self, uri: &str) -> PortFuture<'_, Option<BlobRow>> {
        let uri = uri.to_owned();
        self.read_settled(move |db| blob::find(db, &uri))
    }
}

impl Resources for Sqlite {
    fn find(&self, uri: &str, now_ms: i64) -> PortFuture<'_, Option<ResourceRow>> {
        let uri = uri.to_owned();
        self.read_settled(move |db| resource::find(db, &uri, now_ms))
    }

    fn list(&self, query: ResourceQuery) -> PortFuture<'_, ResourcePage> {
        self.read_settled(move |db| resource::list(db, &query))
    }

    fn register(&self, blob: BlobRow, now_ms: i64) -> PortFuture<'_, ()> {
        self.writer
            .submit(move |db| resource::register(db, &blob, now_ms))
    }

    fn delete(&self, uri: &str, now_ms: i64) -> PortFuture<'_, bool> {
        let uri = uri.to_owned();
        self.writer
            .submit(move |db| resource::delete(db, &uri, now_ms))
    }

    fn describe(&self, uri: &str, search: Option<SearchEntry>) -> PortFuture<'_, bool> {
        let uri = uri.to_owned();
        self.writer
            .submit(move |db| resource::describe(db, &uri, search.as_ref()))
    }

    fn needed_by(&self, uri: &str) -> PortFuture<'_, Vec<RunId>> {
        let uri = uri.to_owned();
        self.read_settled(move |db| resource::needed_by(db, &uri))
    }
}

impl Upkeep for Sqlite {
    fn process(&self) -> &str {
        self.owner.id()
    }

    fn is_alive(&self, process: &str) -> bool {
        self.owner.is_alive(process)
    }

    fn usage(&self) -> PortFuture<'_, Usage> {
        self.read(upkeep::usage)
    }

    fn counts(&self) -> PortFuture<'_, Counts> {
        let commits = self.writer.tally();
        self.read_aside(move |db| counts::counts(db, commits))
    }

    fn journal_usage(&self, run: &RunId) -> PortFuture<'_, Removed> {
        self.read(|db| upkeep::journal_usage(db, run))
    }

    fn prune(&self, run: &RunId, now_ms: i64) -> PortFuture<'_, Removed> {
        Box::pin(upkeep::prune(&self.writer, run.clone(), now_ms))
    }

    fn forget(&self, run: &RunId) -> PortFuture<'_, bool> {
        let run = run.clone();
        self.writer.submit(move |db| upkeep::forget(db, &run))
    }

    fn half_pruned(&self) -> PortFuture<'_, Vec<RunId>> {
        self.read(upkeep::half_pruned)
    }

    fn sweep(&self, sweep: Sweep, now_ms: i64) -> PortFuture<'_, Removed> {
        match sweep.dry_run {
            true => self.read_settled(move |db| upkeep::count(db, &self.blobs, &sweep)),
            false => Box::pin(upkeep::sweep(&self.writer, &self.blobs, sweep, now_ms)),
        }
    }

    fn compact(&self) -> PortFuture<'_, ()> {
        Box::pin(async move {
            // All batches that were posted before are in the file.
            self.writer.submit(|_| Ok(())).await?;
            upkeep::compact(&self.path, &self.options)
        })
    }

    fn backup(&self, place: &Path) -> PortFuture<'_, BackedUp> {
        let place = place.to_owned();
        Box::pin(async move {
            let home = self.path.parent().unwrap_or(Path::new("")).to_owned();
            let options = self.options.clone();
            let copying =
                tokio::task::spawn_blocking(move || backup::write(&home, &options, &place));
            copying.await.map_err(stopped)?
        })
    }

    fn verify(&self) -> PortFuture<'_, Verified> {
        let blobs = self.blobs.clone();
        self.read_aside(move |db| verify::verify(db, &blobs))
    }
}
