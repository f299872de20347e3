//! A store in memory: the twin of the database, for tests and simulations.
//!
//! A [`Memory`] holds a project's data; each [`Memory::open`] is a process that uses it. Rows are in ordered maps
//! behind one mutex. A transaction that fails is rolled back row by row, so all ports give the same guarantees as the
//! database, except that nothing survives the process. Tables and the search index depend on SQL queries: they are in a
//! SQLite database in memory, and are committed with the rows. The decisions about runs are in
//! [`flowstone_model::rules`].

mod agenda;
mod blobs;
mod changesets;
mod deliveries;
mod feed;
mod installations;
mod jobs;
mod journal;
mod kv;
mod lease;
mod listing;
mod queue;
mod registry;
mod resources;
mod rollback;
mod run_tree;
mod runs;
mod search;
mod state;
mod tables;
mod tokens;
mod triggers;
mod upkeep;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use flowstone_model::ids::RunId;
use flowstone_model::limits::Limits;
use flowstone_model::ports::{CommitPhase, PortFuture, Probe, StoreError, Stores};
use rusqlite::Connection;
use tokio::sync::watch;

use crate::live::LiveTexts;
use crate::sqlite::{Base, Layers, in_memory};
use state::State;

/// The data of a project.
#[derive(Clone)]
pub struct Memory(Arc<Project>);

/// The options of a project in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryOptions {
    /// Observes each transaction.
    pub probe: Option<Arc<dyn Probe>>,
    /// The same as [`crate::Options::crashes`].
    pub crashes: Option<u32>,
}

struct Project {
    state: Mutex<State>,
    /// The database of tables and the search index, created when it is first needed.
    relations: Mutex<Option<Connection>>,
    processes: Mutex<Processes>,
    news: watch::Sender<u64>,
    /// Counts commits.
    commits: watch::Sender<u64>,
    live: Arc<LiveTexts>,
    options: MemoryOptions,
}

/// The processes that opened a project and have not left it.
#[derive(Default)]
struct Processes {
    count: u64,
    known: BTreeMap<String, Process>,
}

struct Process {
    is_alive: bool,
    /// The runs that the process executes, or executed when it ended.
    executes: BTreeSet<RunId>,
}

impl Memory {
    /// Creates an empty project.
    pub fn new(options: MemoryOptions) -> Memory {
        Memory(Arc::new(Project {
            state: Mutex::default(),
            relations: Mutex::default(),
            processes: Mutex::default(),
            news: watch::Sender::new(0),
            commits: watch::Sender::new(0),
            live: Arc::default(),
            options,
        }))
    }

    /// Returns the stores of a new process. The process ends cleanly when the last of them is dropped.
    pub fn open(&self) -> Stores {
        let mut processes = lock(&self.0.processes);
        processes.count += 1;
        let id = format!("memory-{}", processes.count);
        processes.known.insert(
            id.clone(),
            Process {
                is_alive: true,
                executes: BTreeSet::new(),
            },
        );
        let session = Arc::new(Session {
            project: self.0.clone(),
            id,
            failures: Mutex::default(),
        });
        Stores {
            agenda: session.clone(),
            journal: session.clone(),
            feed: session.clone(),
            live: self.0.live.clone(),
            runs: session.clone(),
            queue: session.clone(),
            waits: session.clone(),
            jobs: session.clone(),
            kv: session.clone(),
            tables: session.clone(),
            blobs: session.clone(),
            resources: session.clone(),
            changesets: session.clone(),
            search: session.clone(),
            tokens: session.clone(),
            registry: session.clone(),
            triggers: session.clone(),
            installations: session.clone(),
            scratch: Arc::new(Layers(session.clone())),
            upkeep: session,
        }
    }

    /// Ends all processes at once, like a loss of power: they can change nothing any more, and their leases are those
    /// of crashed processes.
    pub fn crash(&self) {
        // Waits for the transaction that is in progress.
        let _state = lock(&self.0.state);
        for process in lock(&self.0.processes).known.values_mut() {
            process.is_alive = false;
        }
    }
}

/// A process that uses a project.
struct Session {
    project: Arc<Project>,
    id: String,
    /// Runs with a failed change that no caller waited for: their later changes must fail, too.
    failures: Mutex<BTreeMap<RunId, StoreError>>,
}

/// Whether a change may allow a run to continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    None,
    Some,
}

/// A transaction of a process.
struct Tx<'a> {
    state: &'a mut State,
    session: &'a Session,
    /// The locked database of tables, once the transaction changes it.
    relations: Option<Relations<'a>>,
}

/// The database of tables; `None` until something is stored in it.
type Relations<'a> = MutexGuard<'a, Option<Connection>>;

impl Session {
    /// Runs a query on the rows.
    fn read<'a, T: Send + 'a>(
        &self,
        query: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
    ) -> PortFuture<'a, T> {
        let mut state = lock(&self.project.state);
        let mut tx = Tx {
            state: &mut state,
            session: self,
            relations: None,
        };
        let answer = query(&mut tx);
        Box::pin(std::future::ready(answer))
    }

    /// Makes a change in a transaction, immediately.
    fn write<'a, T: Send + 'a>(
        &self,
        news: News,
        change: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
    ) -> PortFuture<'a, T> {
        Box::pin(std::future::ready(self.change(news, change)))
    }

    fn change<T>(
        &self,
        news: News,
        change: impl FnOnce(&mut Tx<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut state = lock(&self.project.state);
        if !self.is_alive(&self.id) {
            return Err(StoreError::Internal("the process has ended".to_owned()));
        }
        let mut tx = Tx {
            state: &mut state,
            session: self,
            relations: None,
        };
        let changed = change(&mut tx).and_then(|answer| {
            self.reach(CommitPhase::BeforeCommit)?;
            Ok(answer)
        });
        match changed {
            Ok(answer) => {
                tx.finish("COMMIT")?;
                tx.state.commit();
                if news == News::Some {
                    self.project.news.send_modify(|count| *count += 1);
                }
                self.project.commits.send_modify(|count| *count += 1);
                self.reach(CommitPhase::AfterCommit)?;
                Ok(answer)
            }
            Err(error) => {
                tx.state.roll_back();
                tx.finish("ROLLBACK")?;
                Err(error)
            }
        }
    }

    fn reach(&self, phase: CommitPhase) -> Result<(), StoreError> {
        match &self.project.options.probe {
            Some(probe) => probe.reach(phase),
            None => Ok(()),
        }
    }

    /// Tells whether a process is alive.
    fn is_alive(&self, process: &str) -> bool {
        let processes = lock(&self.project.processes);
        let process = processes.known.get(process);
        process.is_some_and(|process| process.is_alive)
    }

    fn most_crashes(&self) -> u32 {
        let crashes = self.project.options.crashes;
        crashes.unwrap_or_else(|| Limits::default().crashes)
    }
}

impl Tx<'_> {
    /// Returns the database of tables, in the same transaction as the rows.
    fn relations(&mut self) -> Result<&Connection, StoreError> {
        if self.relations.is_none() {
            let mut relations = lock(&self.session.project.relations);
            execute(made(&mut relations)?, "BEGIN")?;
            self.relations = Some(relations);
        }
        let relations = self.relations.as_ref().and_then(|it| it.as_ref());
        relations.ok_or_else(|| StoreError::Internal("no database of tables".to_owned()))
    }

    /// Ends the transaction in the database of tables, if one was begun.
    fn finish(&mut self, how: &str) -> Result<(), StoreError> {
        match self.relations.take().as_ref().and_then(|it| it.as_ref()) {
            Some(relations) => execute(relations, how),
            None => Ok(()),
        }
    }
}

impl Session {
    /// Runs a query on the database of tables.
    fn relate<'a, T: Send + 'a>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> PortFuture<'a, T> {
        let mut relations = lock(&self.project.relations);
        let answer = made(&mut relations).and_then(query);
        Box::pin(std::future::ready(answer))
    }
}

impl Base for Session {
    fn aside(
        &self,
        work: Box<dyn FnOnce(&Connection) -> Result<(), StoreError> + Send>,
    ) -> PortFuture<'_, ()> {
        self.relate(work)
    }
}

/// Returns the database of tables, and creates it if necessary.
fn made(relations: &mut Option<Connection>) -> Result<&Connection, StoreError> {
    match relations {
        Some(relations) => Ok(relations),
        None => Ok(relations.insert(in_memory()?)),
    }
}

fn execute(relations: &Connection, sql: &str) -> Result<(), StoreError> {
    let done = relations.execute_batch(sql);
    done.map_err(|error| StoreError::Internal(error.to_string()))
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut processes = lock(&self.project.processes);
        let is_alive = processes.known.get(&self.id).is_some_and(|it| it.is_alive);
        // The runs that a crashed process executed are remembered.
        if is_alive {
            processes.known.remove(&self.id);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses an operation that a store in memory does not support.
fn unsupported(what: &str) -> StoreError {
    crate::failure::rejected(
        "E0617",
        "unsupported",
        format!("the memory store cannot {what}"),
    )
}
