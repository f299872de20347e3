//! The rows of runs, the programs they are pinned to, and who executes them.

use super::{BlobRow, Entry, PortFuture, RunQuery, RunSummary, WaitRow};
use crate::ids::RunId;
use crate::trace::TraceOrigin;

/// All runs.
pub trait Runs: Send + Sync {
    /// Adds a run in status `running`, and its program if it is not there. With an `external_id` that is
    /// taken, returns the run that has it.
    fn create(&self, run: NewRun) -> PortFuture<'_, RunId>;

    fn find(&self, run: &RunId) -> PortFuture<'_, Option<RunRow>>;

    /// Returns runs, newest first.
    fn list(&self, filter: RunFilter) -> PortFuture<'_, Vec<RunRow>>;

    /// Returns runs as a list shows them.
    ///
    /// # Errors
    /// [`super::StoreError::Rejected`] with kind `not-found` when there is no run [`RunQuery::after`].
    fn summaries(&self, query: RunQuery) -> PortFuture<'_, Vec<RunSummary>>;

    fn program(&self, hash: &str) -> PortFuture<'_, Option<Program>>;

    /// Returns the programs of a flow's runs, the one of the newest run first.
    fn versions(&self, flow: &str) -> PortFuture<'_, Vec<FlowVersion>>;

    /// Takes the lease of a run for this process: free, expired, or held by a process that is gone. A run in
    /// quarantine is taken only if it was named.
    fn claim(&self, run: &RunId, by: ClaimBy, now_ms: i64) -> PortFuture<'_, Claim>;

    /// Notes whether this process executes a run at the moment. Where it ends before it notes that it left the run,
    /// that counts against the run. See [`RunRow::quarantine`].
    fn executes(&self, run: &RunId, is_executing: bool);

    /// Gives a run that is not over and that nobody executes another program, if it still has the one that was seen.
    ///
    /// # Errors
    /// [`StoreError::Rejected`](super::StoreError::Rejected) with kind `conflict` otherwise.
    fn adopt(&self, adoption: Adoption) -> PortFuture<'_, ()>;

    /// Gives the lease back. The run must not be changed under that epoch any more. Like a claim, it is worth as much
    /// as the processes that know of it, and need not survive a loss of power.
    fn release(&self, run: &RunId, epoch: i64) -> PortFuture<'_, ()>;

    /// Adds runs that were exported elsewhere, all or none. Runs that are not over are held: see [`RunRow::held`].
    ///
    /// # Errors
    /// [`super::StoreError::Rejected`] with kind `conflict` when one of the ids is taken.
    fn import(&self, import: Import) -> PortFuture<'_, ()>;

    /// Returns runs whose inputs have secrets, as they are kept, in the order of their creation: those that come after a
    /// run.
    fn sealed(&self, after: Option<&RunId>, limit: usize) -> PortFuture<'_, Vec<StoredInput>>;

    /// Replaces inputs as they are kept by others with the same text, all or none. What is no longer as it was seen is
    /// left.
    fn reseal(&self, changes: Vec<(StoredInput, StoredInput)>) -> PortFuture<'_, ()>;

    /// Asks the process that executes the run, now or next, to cancel it.
    fn request_cancel(&self, run: &RunId, reason: &str, now_ms: i64) -> PortFuture<'_, ()>;

    /// Terminates a run at once, even if a process executes it: its lease is void, its waits are closed, its parent is
    /// notified, and its children end according to their policies, all in one transaction. Returns the previous status;
    /// a finished run stays as it is. `None`: the run does not exist.
    fn terminate(
        &self,
        run: &RunId,
        reason: &str,
        now_ms: i64,
    ) -> PortFuture<'_, Option<RunStatus>>;
}

/// The source of a flow, named by its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub hash: String,
    /// The texts that make it up, as EDN: `{:main "name" :files {"name" "text"}}`.
    pub source: String,
    /// Which behaviour of replay it was compiled for.
    pub engine_abi: i64,
}

/// A program of a flow, and the runs that are pinned to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlowVersion {
    pub program: String,
    /// Number of runs.
    pub runs: u64,
    /// Number of runs that are not over.
    pub open: u64,
    /// When its first and its last run were created.
    pub first_ms: i64,
    pub last_ms: i64,
}

/// A run to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    pub id: RunId,
    pub external_id: Option<String>,
    pub program: Program,
    /// The flow's slug.
    pub flow: String,
    /// The input, as EDN text.
    pub input: String,
    /// Where the run's randomness starts.
    pub seed: u64,
    pub now_ms: i64,
    /// Which of `:invocations`; `None`: the default one.
    pub invocation: Option<String>,
    /// The value of `:concurrency :key-field`, as EDN text.
    pub key: Option<String>,
    /// Higher starts first.
    pub priority: i64,
    /// What the bindings of a run wrote.
    pub bindings: Option<String>,
    /// What started it: `manual`, `schedule:<id>`, `call`, `fork`, `import`.
    pub started_by: String,
    /// The run that it was made from: by a fork, an import or a replay.
    pub origin: Option<RunId>,
    /// The run that called it.
    pub parent: Option<Parent>,
    /// The trace that it belongs or refers to, where it is not one of its own.
    pub trace: Option<TraceOrigin>,
    /// When it is unwound with status `timed-out`.
    pub deadline_ms: Option<i64>,
    /// The process that adds it is going to execute it: no worker takes it as long as that process lives.
    pub is_taken: bool,
}

/// Where a child run hangs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    pub run: RunId,
    /// The run at the top.
    pub root: RunId,
    /// Counted from 1 below the top.
    pub depth: u32,
    pub close: ParentClose,
}

/// What becomes of a child when its parent ends before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ParentClose {
    /// It goes on.
    Abandon,
    /// It is cancelled, and may tidy up.
    #[default]
    RequestCancel,
    /// It is ended at once.
    Terminate,
}

impl ParentClose {
    /// All, with the names they have in flows and are stored under.
    pub const NAMES: &'static [(ParentClose, &'static str)] = &[
        (ParentClose::Abandon, "abandon"),
        (ParentClose::RequestCancel, "request-cancel"),
        (ParentClose::Terminate, "terminate"),
    ];

    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(close, _)| *close == self)
            .map_or("unknown", |(_, name)| name)
    }

    pub fn from_name(name: &str) -> Option<ParentClose> {
        Self::NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(close, _)| *close)
    }
}

/// What a run is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunStatus {
    /// It has not begun: the flow's `:concurrency` or a limit holds it back.
    Queued,
    Running,
    Waiting,
    /// The flow failed, and so did a compensation: a person has to act.
    FailedCompensating,
    Completed,
    Failed,
    /// Ended on request, with its `finally` blocks and compensations.
    Cancelled,
    /// Ended on request, at once.
    Terminated,
    /// It took longer than it was given.
    TimedOut,
}

impl RunStatus {
    /// All, with the names they are stored and shown under.
    pub const NAMES: &'static [(RunStatus, &'static str)] = &[
        (RunStatus::Cancelled, "cancelled"),
        (RunStatus::Completed, "completed"),
        (RunStatus::Failed, "failed"),
        (RunStatus::FailedCompensating, "failed-compensating"),
        (RunStatus::Queued, "queued"),
        (RunStatus::Running, "running"),
        (RunStatus::Terminated, "terminated"),
        (RunStatus::TimedOut, "timed-out"),
        (RunStatus::Waiting, "waiting"),
    ];

    /// Tells whether nothing will happen to the run any more.
    pub fn is_final(self) -> bool {
        match self {
            RunStatus::Queued
            | RunStatus::Running
            | RunStatus::Waiting
            | RunStatus::FailedCompensating => false,
            RunStatus::Completed
            | RunStatus::Failed
            | RunStatus::Cancelled
            | RunStatus::Terminated
            | RunStatus::TimedOut => true,
        }
    }

    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(status, _)| *status == self)
            .map_or("unknown", |(_, name)| name)
    }

    /// Returns the status of a name; `canceled` and `timed_out` are taken too.
    pub fn from_name(name: &str) -> Option<RunStatus> {
        let name = match name {
            "canceled" => "cancelled",
            "timed_out" => "timed-out",
            name => name,
        };
        Self::NAMES
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(status, _)| *status)
    }
}

/// The inputs of a run as they are kept: see [`crate::sealed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredInput {
    pub run: RunId,
    pub input: String,
    /// That of the first pass, where the run is in a later one.
    pub first: Option<String>,
}

/// A run as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    pub id: RunId,
    pub external_id: Option<String>,
    pub program: String,
    pub flow: String,
    pub status: RunStatus,
    /// What a waiting run waits for, in words.
    pub wait_reason: Option<String>,
    /// When a timer of it is due.
    pub due_ms: Option<i64>,
    /// EDN text, with `[secret]` for each secret.
    pub input: String,
    /// The secrets of the input, encrypted: see [`crate::sealed`].
    pub sealed: Option<String>,
    pub seed: u64,
    /// The value of a completed run, as EDN text.
    pub result: Option<String>,
    /// The error of a failed run, as EDN text.
    pub error: Option<String>,
    /// Why somebody asked for it to be cancelled.
    pub cancel_requested: Option<String>,
    /// A live process executes it now.
    pub executing: bool,
    /// A process has executed it before.
    pub begun: bool,
    pub created_ms: i64,
    pub updated_ms: i64,
    pub invocation: Option<String>,
    /// The value of `:concurrency :key-field`, as EDN text.
    pub key: Option<String>,
    pub priority: i64,
    /// As in [`NewRun::bindings`].
    pub bindings: Option<String>,
    /// As in [`NewRun::started_by`].
    pub started_by: String,
    /// As in [`NewRun::origin`].
    pub origin: Option<RunId>,
    pub parent: Option<Parent>,
    /// As in [`NewRun::trace`].
    pub trace: Option<TraceOrigin>,
    /// When it is unwound with status `timed-out`.
    pub deadline_ms: Option<i64>,
    /// How often the run was continued as new.
    pub pass: i64,
    /// The cancel that was asked for is to end the run at once.
    pub force: bool,
    pub ended_ms: Option<i64>,
    /// It was imported while it was not over: nobody executes it before somebody asks for that, because its
    /// effects may go on elsewhere. A claim ends this.
    pub held: bool,
    /// When its journal was removed.
    pub pruned_ms: Option<i64>,
    /// Why the worker that tried last could not execute it.
    pub setback: Option<String>,
    /// Why nobody executes it before somebody names it: processes that executed it ended again and again without
    /// progress of the run. Such a run is [`held`](Self::held), too.
    pub quarantine: Option<String>,
}

/// Runs that were exported elsewhere. The bytes of the resources are there already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// Parents before children.
    pub runs: Vec<ImportedRun>,
    pub resources: Vec<BlobRow>,
    pub now_ms: i64,
}

/// One run of an [`Import`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedRun {
    pub row: RunRow,
    pub program: Program,
    pub entries: Vec<Entry>,
    pub waits: Vec<ImportedWait>,
}

/// A wait of an [`ImportedRun`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedWait {
    pub row: WaitRow,
    /// A new one.
    pub token: String,
}

/// Which runs to list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    pub statuses: Vec<RunStatus>,
    pub flow: Option<String>,
    pub id_prefix: Option<String>,
    pub due_before_ms: Option<i64>,
    /// The run that called them.
    pub parent: Option<RunId>,
    /// The hash of the program, and the input of the first pass as EDN text.
    pub begun_with: Option<(String, String)>,
    /// 0: no limit.
    pub limit: usize,
}

/// A change of a run's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunUpdate {
    pub status: RunStatus,
    pub wait_reason: Option<String>,
    pub due_ms: Option<i64>,
    pub result: Option<String>,
    pub error: Option<String>,
}

/// How a claim came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClaimBy {
    /// A person named the run: it leaves quarantine, and crashes are counted from zero.
    Name,
    /// The run was among those that can be resumed.
    #[default]
    Search,
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// The run is ours, with this fence.
    Taken {
        epoch: i64,
    },
    /// A live process executes it.
    Held {
        owner: String,
    },
    /// It is in quarantine, for this reason.
    Quarantined {
        reason: String,
    },
    Missing,
}

/// Another program for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adoption {
    pub run: RunId,
    /// The hash of the program that it has.
    pub seen: String,
    pub program: Program,
    /// What its slots stand for, and whether the new program is one of the project.
    pub bindings: Option<String>,
    pub now_ms: i64,
}
