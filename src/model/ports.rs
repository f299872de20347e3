//! The ports: the narrow traits through which the engine reaches stores, clock, secrets and randomness.
//!
//! All are sharable across threads, because the writer of a store is a single thread. So no [`Value`] crosses them:
//! values are EDN text made by [`crate::codec`]. Parameters are plain data.
//!
//! [`Value`]: flowstone_lang::value::Value

mod agenda;
mod changesets;
mod clock;
mod counts;
mod deliveries;
mod exchanges;
mod feed;
mod installations;
mod jobs;
mod journal;
mod listing;
mod live;
mod probe;
mod queue;
mod registry;
mod resources;
mod runs;
mod scratch;
mod search;
mod secrets;
mod simulated_clock;
mod telemetry;
mod tokens;
mod triggers;
mod upkeep;
mod vault;
mod waits;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

pub use agenda::{Agenda, News, PlanChange, ScheduleRow, Setback, Taken};
pub use changesets::Changesets;
pub use clock::{Clock, Random, SystemRandom, mix, wall_clock_ms};
pub use counts::{CommitCounts, Counts, WaitKind, count_one};
pub use deliveries::{Delivered, Delivery, NewReceipt, PastDelivery};
pub use exchanges::{
    ClientRequest, ExchangeError, Exchanged, Exchanges, OutgoingRequest, RecordedResponse,
    ResponseEnd, ResponseFault, ResponseHead, ResponseRecorder, Revealed, StepExchanges,
};
pub use feed::{
    Event, EventKind, Feed, FeedDetail, FeedItem, FeedPage, FeedRow, ProjectFeedPage,
    ProjectFeedRow, WaitPlace,
};
pub use installations::Installations;
pub use jobs::{JobAnswer, JobCall, JobClaim, JobQuery, JobReach, JobReport, Jobs, MOST_JOBS};
pub use journal::{Ack, Batch, Change, Durability, Entry, EntryKind, Journal, Receipt};
pub use listing::{RunOrder, RunQuery, RunSummary};
pub use live::{Live, LiveText, TextPiece};
pub use probe::{CommitPhase, Probe};
pub use queue::{
    Admission, BulkAdmission, LimitRule, OnConflict, OnNewVersion, Queue, QueuePlace, QueueReason,
    RateRule, SlotRule, StartDecision, StartRules,
};
pub use registry::{Registry, RegistryAnswer};
pub use resources::{Gone, ResourcePage, ResourceQuery, ResourceRow, ResourceSort, Resources};
pub use runs::{
    Adoption, Claim, ClaimBy, FlowVersion, Import, ImportedRun, ImportedWait, NewRun, Parent,
    ParentClose, Program, RunFilter, RunPages, RunRow, RunStatus, RunUpdate, Runs, StoredInput,
};
pub use scratch::{Scratch, ScratchChanges, ScratchLayers};
pub use search::{
    Embedded, Refreshed, SearchDoc, SearchFilter, SearchHit, SearchIndex, Target as SearchTarget,
    Unembedded, VectorQuery, WordQuery,
};
pub use secrets::{NoSecrets, Secrets};
pub use simulated_clock::SimulatedClock;
pub use telemetry::{FinishedSpan, NoTelemetry, SpanKind, SpanValue, Telemetry};
pub use tokens::Tokens;
pub use triggers::Triggers;
pub use upkeep::{BackedUp, Flaw, Removed, Sweep, SweepKind, Upkeep, Usage, Verified};
pub use vault::{KeyGuard, KeyRing, NoVault, Vault, VaultError};
pub use waits::{Completion, NewWait, SignalFilter, SignalRow, WaitFilter, Waits, WaitsAnswer};

use crate::blob::BlobHash;
pub use crate::blob::BlobRow;
pub use crate::jobs::{BATCH_KEY, JOB_KEY, JobBatch, JobLease, JobRow, JobStatus};
use crate::kv::{KvEntry, KvOp};
pub use crate::secret::Secret;
use crate::table::csv::{ExportCsv, ExportedCsv, StageCsv, StagedCsv};
use crate::table::{TableOp, TableQuery};
pub use crate::waits::{
    AnswerRules, CHILD_KEY, Refusal, Target, WaitAnswer, WaitEnding, WaitEvent, WaitRow, WaitState,
};

/// The future that the methods of ports return.
pub type PortFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// A change of Flowstone's own stores that a step requests. The store executes it in one transaction with the journal
/// row of the step, and its result, as EDN text, becomes the value of the step: exactly once.
#[derive(Debug, Clone, PartialEq)]
pub enum StoreOp {
    Kv(KvOp),
    Table(Box<TableOp>),
    Blob(crate::blob::BlobOp),
    Changeset(crate::changeset::ChangesetOp),
    Job(crate::jobs::JobOp),
}

/// The open stores of a project.
#[derive(Clone)]
pub struct Stores {
    pub agenda: Arc<dyn Agenda>,
    pub journal: Arc<dyn Journal>,
    pub feed: Arc<dyn Feed>,
    pub live: Arc<dyn Live>,
    pub runs: Arc<dyn Runs>,
    pub queue: Arc<dyn Queue>,
    pub waits: Arc<dyn Waits>,
    pub jobs: Arc<dyn Jobs>,
    pub kv: Arc<dyn Kv>,
    pub tables: Arc<dyn Tables>,
    pub blobs: Arc<dyn Blobs>,
    pub resources: Arc<dyn Resources>,
    pub changesets: Arc<dyn Changesets>,
    pub search: Arc<dyn SearchIndex>,
    pub tokens: Arc<dyn Tokens>,
    pub registry: Arc<dyn Registry>,
    pub triggers: Arc<dyn Triggers>,
    pub installations: Arc<dyn Installations>,
    pub scratch: Arc<dyn ScratchLayers>,
    pub upkeep: Arc<dyn Upkeep>,
}

/// Read access to the key-value store.
pub trait Kv: Send + Sync {
    /// Returns the value under a key as EDN text; an expired key counts as missing.
    fn get(&self, key: &str, now_ms: i64) -> PortFuture<'_, Option<String>>;

    /// Returns the value under a key with its metadata and expiry; an expired key counts as missing.
    fn entry(&self, key: &str, now_ms: i64) -> PortFuture<'_, Option<KvEntry>> {
        let getting = self.get(key, now_ms);
        Box::pin(async move {
            let value = getting.await?;
            Ok(value.map(|value| KvEntry {
                value,
                metadata: None,
                expires_ms: None,
            }))
        })
    }

    /// Returns the keys that start with a prefix, sorted.
    fn list_keys(&self, prefix: &str, limit: usize, now_ms: i64) -> PortFuture<'_, Vec<String>>;
}

/// Tables of the project: queries, changes outside of runs, and CSV.
pub trait Tables: Send + Sync {
    /// Returns the names of all tables, sorted.
    fn names(&self) -> PortFuture<'_, Vec<String>>;

    /// Answers a query, as EDN text.
    fn query(&self, query: TableQuery) -> PortFuture<'_, String>;

    /// Makes a change outside of any run, in one transaction; returns its result as EDN text.
    fn apply(&self, op: TableOp, now_ms: i64) -> PortFuture<'_, String>;

    /// Copies a CSV file into the blobs and inspects it; changes no table.
    fn stage(&self, ask: StageCsv) -> PortFuture<'_, StagedCsv>;

    /// Writes rows as CSV text.
    fn export(&self, ask: ExportCsv) -> PortFuture<'_, ExportedCsv>;
}

/// Blobs by their hash. Storing the same bytes again has no effect; references to a blob are committed separately.
pub trait Blobs: Send + Sync {
    fn put(&self, bytes: Vec<u8>) -> PortFuture<'_, BlobHash>;

    /// Starts a blob that arrives in parts, so that it need not be in memory.
    fn begin(&self) -> PortFuture<'_, Box<dyn BlobWriter>>;

    /// Returns the bytes of a blob.
    ///
    /// # Errors
    /// [`StoreError::Rejected`] with kind `not-found` when the blob does not exist.
    fn get(&self, hash: &BlobHash) -> PortFuture<'_, Vec<u8>>;

    /// Returns some of the bytes of a blob: fewer than `length` only at its end. Unlike [`Blobs::get`], this does not
    /// check that the blob is undamaged.
    ///
    /// # Errors
    /// As [`Blobs::get`].
    fn part(&self, hash: &BlobHash, start: u64, length: usize) -> PortFuture<'_, Vec<u8>>;

    /// Returns the row of the blob that a resource name refers to.
    fn find(&self, uri: &str) -> PortFuture<'_, Option<BlobRow>>;
}

/// A blob that is being written to the store. If dropped before `finish`, nothing of it is kept.
pub trait BlobWriter: Send {
    /// Appends bytes. After a failure the writer must not be used any more.
    fn write(&mut self, bytes: &[u8]) -> PortFuture<'_, ()>;

    /// Completes the blob; references to it are committed separately.
    fn finish(self: Box<Self>) -> PortFuture<'static, StoredBlob>;
}

/// A stored blob that nothing refers to yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredBlob {
    pub hash: BlobHash,
    pub size: u64,
}

/// The reason why a store refused or failed an operation.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    #[error("{path} is not a Flowstone database")]
    NotADatabase { path: String },
    #[error("the database {path} is damaged: {detail}")]
    Damaged { path: String, detail: String },
    #[error(
        "{path} was written by a newer Flowstone (format {found}; this version supports formats up to {known})"
    )]
    TooNew {
        path: String,
        found: i64,
        known: i64,
    },
    #[error("the database {path} was lost: {detail}")]
    Lost { path: String, detail: String },
    #[error("cannot open {path}: {detail}")]
    Unreachable { path: String, detail: String },
    #[error("no file handle is left to open {path}")]
    NoHandle { path: String },
    /// `detail`: the operation that the step attempted.
    #[error(
        "the run stopped at {step}, because no other step holds a file handle that it could wait for: {detail}"
    )]
    NoHandleForStep { step: String, detail: String },
    #[error("no thread can be started {detail}")]
    NoThread { detail: String },
    #[error("{path} cannot be used for a backup: {detail}")]
    BackupPlace { path: String, detail: String },
    #[error("the database is in use by another process and did not become free")]
    Busy,
    #[error("no space is left on the disk that holds {path}")]
    Full { path: String },
    /// A step needs more disk space than there is.
    #[error("{detail}")]
    FullForStep { detail: String },
    #[error("the disk that holds {path} does not work: {detail}")]
    Disk { path: String, detail: String },
    #[error("{path} is read-only")]
    ReadOnly { path: String },
    #[error("another process took over the run {run}")]
    LeaseLost { run: String },
    /// The operation itself is wrong: the table does not exist, a key is not allowed, a value does not fit.
    #[error("{message}")]
    Rejected {
        code: &'static str,
        /// The `:kind` of the step's error, such as `not-found`.
        kind: &'static str,
        message: String,
        hint: Option<String>,
    },
    /// A bug in Flowstone.
    #[error("internal error in the store: {0}")]
    Internal(String),
}

/// Tells whether the process, or the machine, has no file handle left.
pub fn is_lack_of_handles(error: &std::io::Error) -> bool {
    // EMFILE and ENFILE, for which `ErrorKind` has no variant. Windows uses other numbers with other meanings.
    cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}

impl StoreError {
    /// Returns the error for a file that could not be used.
    pub fn of_file(path: &std::path::Path, error: &std::io::Error) -> StoreError {
        let shown = path.display().to_string();
        match error.kind() {
            _ if is_lack_of_handles(error) => StoreError::NoHandle { path: shown },
            std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied => {
                StoreError::ReadOnly { path: shown }
            }
            _ => StoreError::Unreachable {
                path: shown,
                detail: error.to_string(),
            },
        }
    }

    /// Reports that a text in the database cannot be read. `what` names it.
    pub fn unreadable(what: &str, error: &crate::codec::CodecError) -> StoreError {
        StoreError::Damaged {
            path: "flowstone.db".to_owned(),
            detail: format!("{what} cannot be read ({error})"),
        }
    }

    /// Returns the error for a file that could not be read.
    pub fn of_reading(path: &std::path::Path, error: &std::io::Error) -> StoreError {
        let shown = path.display().to_string();
        match is_lack_of_handles(error) {
            true => StoreError::NoHandle { path: shown },
            false => StoreError::Unreachable {
                path: shown,
                detail: error.to_string(),
            },
        }
    }

    /// The error code for a full disk, also if a step detects it.
    pub const NO_SPACE: &str = "E0606";
    /// The error code for a lack of file handles before an operation could begin: a step waits for one.
    pub const NO_HANDLE: &str = "E0644";
    /// The error code for a row whose key is missing or taken.
    pub const ROW_KEY: &str = "E0625";
    /// The error code for a table that exists already, with other columns or partitions.
    pub const OTHER_TABLE: &str = "E0626";
    /// The error code for a request that does not fit the partitions of a table.
    pub const PARTITION: &str = "E0630";
    /// The kind of a refusal after which the step is performed again at once: another writer was faster.
    pub const RACED: &str = "raced";

    /// Returns the code of the page in `docs/errors`.
    pub fn code(&self) -> &'static str {
        match self {
            StoreError::NotADatabase { .. } => "E0601",
            StoreError::Damaged { .. } => "E0602",
            StoreError::TooNew { .. } => "E0603",
            StoreError::Lost { .. } => "E0619",
            StoreError::Unreachable { .. } => "E0604",
            StoreError::NoHandle { .. } | StoreError::NoHandleForStep { .. } => {
                StoreError::NO_HANDLE
            }
            StoreError::NoThread { .. } => "E0645",
            StoreError::BackupPlace { .. } => "E0646",
            StoreError::Busy => "E0605",
            StoreError::Full { .. } | StoreError::FullForStep { .. } => StoreError::NO_SPACE,
            StoreError::Disk { .. } => "E0608",
            StoreError::ReadOnly { .. } => "E0609",
            StoreError::LeaseLost { .. } => "E0506",
            StoreError::Rejected { code, .. } => code,
            StoreError::Internal(_) => "E0600",
        }
    }

    /// Returns what to try, for people.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            StoreError::NotADatabase { .. } => {
                "the file was left as it is; move it away, or give another folder with `--home`"
                    .to_owned()
            }
            StoreError::Damaged { .. } => {
                "the file was left as it is; restore it from a copy, or move it away to start with an empty one"
                    .to_owned()
            }
            StoreError::TooNew { .. } => {
                "use the Flowstone that wrote it, or a newer one".to_owned()
            }
            StoreError::Lost { .. } => {
                "nothing was changed; put the files back together, or restore a backup; to begin without what was lost, \
                 move the whole folder away"
                    .to_owned()
            }
            StoreError::NoHandle { .. } => {
                "raise the limit of open files (`ulimit -n`), or execute fewer runs at the same time".to_owned()
            }
            StoreError::NoHandleForStep { .. } => {
                "raise the limit of open files (`ulimit -n`), and resume the run".to_owned()
            }
            StoreError::NoThread { .. } => {
                "raise the limits of memory and processes (`ulimit -v`, `ulimit -u`)".to_owned()
            }
            StoreError::BackupPlace { .. } => "name a folder that does not exist yet".to_owned(),
            StoreError::Unreachable { .. } => {
                "check that the folder exists and may be written".to_owned()
            }
            StoreError::Busy => "stop the other process, or wait for it".to_owned(),
            StoreError::Full { .. } | StoreError::FullForStep { .. } => {
                "free some space, then resume the run with `flowstone runs resume`".to_owned()
            }
            StoreError::Disk { .. } => {
                "check the system log for errors of the disk; once it works, resume the run with `flowstone runs resume`"
                    .to_owned()
            }
            StoreError::ReadOnly { .. } => {
                "let this user write the file and its folder, or give another folder with `--home`".to_owned()
            }
            StoreError::LeaseLost { .. } => "inspect the run with `flowstone runs show`".to_owned(),
            StoreError::Rejected { hint, .. } => hint.clone()?,
            StoreError::Internal(_) => return None,
        })
    }
}
