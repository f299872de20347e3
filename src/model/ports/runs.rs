//! The rows of runs, the programs they are pinned to, and the leases to execute them.

use super::{BlobRow, Entry, PortFuture, RunQuery, RunSummary, StoreError, WaitRow};
use crate::ids::RunId;
use crate::registry::RunVersion;
use crate::trace::{RunTrace, TraceId, TraceOrigin};

/// The runs of a project.
pub trait Runs: Send + Sync {
    /// Adds a run in status `running`, and its program if it is not stored yet. If the `external_id` is taken, returns
    /// the run that has it.
    fn create(&self, run: NewRun) -> PortFuture<'_, RunId>;

    fn find(&self, run: &RunId) -> PortFuture<'_, Option<RunRow>>;

    /// Returns runs, newest first.
    fn list(&self, filter: RunFilter) -> PortFuture<'_, Vec<RunRow>>;

    /// Returns the summaries of runs, for lists.
    ///
    /// # Errors
    /// [`super::StoreError::Rejected`] with kind `not-found` when the run [`RunQuery::after`] does not exist.
    fn summaries(&self, query: RunQuery) -> PortFuture<'_, Vec<RunSummary>>;

    fn program(&self, hash: &str) -> PortFuture<'_, Option<Program>>;

    /// Returns the programs of a flow's runs; the program of the newest run comes first.
    fn versions(&self, flow: &str) -> PortFuture<'_, Vec<FlowVersion>>;

    /// Takes the lease of a run for this process if it is free, expired, or held by a process that has ended. A run in
    /// quarantine is taken only if a person named it.
    fn claim(&self, run: &RunId, by: ClaimBy, now_ms: i64) -> PortFuture<'_, Claim>;

    /// Records whether this process executes a run now. If the process ends without recording that it left the run, its
    /// end counts against the run. See [`RunRow::quarantine`].
    fn executes(&self, run: &RunId, is_executing: bool);

    /// Replaces the program of a run that is not over and not being executed, if it still has the program that the
    /// caller saw.
    ///
    /// # Errors
    /// [`StoreError::Rejected`](super::StoreError::Rejected) with kind `conflict` otherwise.
    fn adopt(&self, adoption: Adoption) -> PortFuture<'_, ()>;

    /// Gives the lease back. The run must not be changed under that epoch any more. Like a claim, this matters only to
    /// processes that are alive, and need not survive a loss of power.
    fn release(&self, run: &RunId, epoch: i64) -> PortFuture<'_, ()>;

    /// Adds runs that were exported elsewhere, all or none. Runs that are not over are put on hold: see
    /// [`RunRow::held`].
    ///
    /// # Errors
    /// [`super::StoreError::Rejected`] with kind `conflict` when one of the ids is taken.
    fn import(&self, import: Import) -> PortFuture<'_, ()>;

    /// Returns the inputs with secrets, in stored form, in the order in which their runs were created; those after a
    /// given run.
    fn sealed(&self, after: Option<&RunId>, limit: usize) -> PortFuture<'_, Vec<StoredInput>>;

    /// Replaces stored inputs by others with the same text, all or none. An input that has changed since it was read is
    /// left.
    fn reseal(&self, changes: Vec<(StoredInput, StoredInput)>) -> PortFuture<'_, ()>;

    /// Asks the process that executes the run, now or later, to cancel it.
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

/// The runs that a query finds, read a page at a time: as many as its limit.
#[derive(Debug)]
pub struct RunPages(Option<RunQuery>);

impl RunPages {
    pub fn new(query: RunQuery) -> RunPages {
        RunPages(Some(query))
    }

    /// Returns the next page; `None` after the last one.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn next(&mut self, runs: &dyn Runs) -> Result<Option<Vec<RunSummary>>, StoreError> {
        let Some(query) = &mut self.0 else {
            return Ok(None);
        };
        let page = runs.summaries(query.clone()).await?;
        query.after = page.last().map(|run| run.id.clone());
        if page.len() < query.limit {
            self.0 = None;
        }
        Ok(Some(page))
    }
}

/// The source of a flow, named by its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub hash: String,
    /// The texts of the program, as EDN: `{:main "name" :files {"name" "text"}}`.
    pub source: String,
    /// The version of the replay behaviour that it was compiled for.
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
    /// When the first run was created, in milliseconds since 1970.
    pub first_ms: i64,
    pub last_ms: i64,
}

/// A run to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    pub id: RunId,
    pub external_id: Option<String>,
    pub program: Program,
    /// The slug of the flow.
    pub flow: String,
    /// The input, as EDN text.
    pub input: String,
    /// The seed of the run's randomness.
    pub seed: u64,
    pub now_ms: i64,
    /// The name of one of `:invocations`; `None`: the default one.
    pub invocation: Option<String>,
    /// The value of `:concurrency :key-field`, as EDN text.
    pub key: Option<String>,
    /// Runs with a higher priority start first.
    pub priority: i64,
    /// The stored form of the run's bindings.
    pub bindings: Option<String>,
    /// The origin of the start: `manual`, `schedule:<id>`, `call`, `fork`, `import`.
    pub started_by: String,
    /// The run from which it was made by a fork, an import or a replay.
    pub origin: Option<RunId>,
    /// The run that called it, and how it depends on that run.
    pub parent: Option<Parent>,
    /// The trace of another program that the run belongs or refers to.
    pub trace: Option<TraceOrigin>,
    /// When the run is unwound with status `timed-out`, in milliseconds since 1970.
    pub deadline_ms: Option<i64>,
    /// The version of the flow in the registry; `None` for a flow of a file.
    pub version: Option<RunVersion>,
    /// The process that adds the run will execute it: no worker takes it while that process lives.
    pub is_taken: bool,
}

/// The position of a child run in its run tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parent {
    pub run: RunId,
    /// The run at the root of the tree.
    pub root: RunId,
    /// Counted from 1 for children of the root.
    pub depth: u32,
    pub close: ParentClose,
}

/// What happens to a child when its parent ends first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ParentClose {
    /// The child continues.
    Abandon,
    /// The child is cancelled, and may clean up.
    #[default]
    RequestCancel,
    /// The child is ended at once.
    Terminate,
}

impl ParentClose {
    /// All policies with their names in flows and in the store.
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

/// The status of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunStatus {
    /// The run has not begun: the flow's `:concurrency` or a limit holds it back.
    Queued,
    Running,
    Waiting,
    /// The flow failed, and so did a compensation: a person has to act.
    FailedCompensating,
    Completed,
    Failed,
    /// The run ended on request, after its `finally` blocks and compensations.
    Cancelled,
    /// The run ended on request, at once.
    Terminated,
    /// The run exceeded its deadline.
    TimedOut,
}

impl RunStatus {
    /// All statuses with their names in the store and in listings.
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

    /// Tells whether the run has ended.
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

    /// Returns the status of a name; `canceled` and `timed_out` are accepted too.
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

/// The inputs of a run in stored form: see [`crate::sealed`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredInput {
    pub run: RunId,
    pub input: String,
    /// The input of the first pass, if the run is in a later one.
    pub first: Option<String>,
}

/// A run in stored form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    pub id: RunId,
    pub external_id: Option<String>,
    pub program: String,
    pub flow: String,
    pub status: RunStatus,
    /// The reason for waiting of a run, as text.
    pub wait_reason: Option<String>,
    /// When a timer of the run is due, in milliseconds since 1970.
    pub due_ms: Option<i64>,
    /// The input as EDN text, with `[secret]` for each secret.
    pub input: String,
    /// The secrets of the input, encrypted: see [`crate::sealed`].
    pub sealed: Option<String>,
    pub seed: u64,
    /// The value of a completed run, as EDN text.
    pub result: Option<String>,
    /// The error of a failed run, as EDN text.
    pub error: Option<String>,
    /// The reason for which someone asked for the run to be cancelled.
    pub cancel_requested: Option<String>,
    /// The run is being unwound: it was cancelled or has failed, and waits in its cleanup.
    pub is_unwinding: bool,
    /// A live process executes the run now.
    pub executing: bool,
    /// A process has executed the run before.
    pub begun: bool,
    pub created_ms: i64,
    pub updated_ms: i64,
    pub invocation: Option<String>,
    /// The value of `:concurrency :key-field`, as EDN text.
    pub key: Option<String>,
    pub priority: i64,
    /// The same as [`NewRun::bindings`].
    pub bindings: Option<String>,
    /// The same as [`NewRun::started_by`].
    pub started_by: String,
    /// The same as [`NewRun::origin`].
    pub origin: Option<RunId>,
    pub parent: Option<Parent>,
    /// The same as [`NewRun::trace`].
    pub trace: Option<TraceOrigin>,
    /// The same as [`NewRun::version`].
    pub version: Option<RunVersion>,
    /// When the run is unwound with status `timed-out`, in milliseconds since 1970.
    pub deadline_ms: Option<i64>,
    /// The number of times the run was continued as new.
    pub pass: i64,
    /// The requested cancellation ends the run at once.
    pub force: bool,
    pub ended_ms: Option<i64>,
    /// The run was imported before it was over. It is not executed until someone asks for that, because the original
    /// may still be running elsewhere. A claim ends the hold.
    pub held: bool,
    /// When the journal was removed, in milliseconds since 1970.
    pub pruned_ms: Option<i64>,
    /// The reason why the last worker that tried could not execute the run.
    pub setback: Option<String>,
    /// The reason for quarantine: processes that executed the run ended repeatedly without progress of the run. It is
    /// executed only after someone names it, and is [`held`](Self::held), too.
    pub quarantine: Option<String>,
}

impl RunRow {
    /// Tells whether a request to cancel the run still has to be delivered to its flow.
    pub fn has_cancel_to_deliver(&self) -> bool {
        self.cancel_requested.is_some() && !self.is_unwinding
    }

    /// Returns the place of the run in its trace.
    pub fn in_trace(&self) -> RunTrace {
        let root = self.parent.as_ref().map_or(&self.id, |parent| &parent.root);
        let own = TraceId::of_root(root);
        let (parent, link) = match self.trace {
            Some(TraceOrigin::Parent(parent)) => (Some(parent), None),
            Some(TraceOrigin::Link(link)) => (None, Some(link)),
            None => (None, None),
        };
        let trace = parent.map_or(own, |parent| parent.trace);
        RunTrace {
            run: self.id.clone(),
            pass: self.pass,
            trace,
            parent,
            link,
            remote: parent
                .filter(|_| trace != own)
                .map(|parent| parent.is_sampled),
        }
    }
}

/// Runs that were exported elsewhere. The bytes of their resources are already stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// The runs, parents before children.
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
    /// A new token.
    pub token: String,
}

/// The selection of a list of runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    pub statuses: Vec<RunStatus>,
    pub flow: Option<String>,
    pub id_prefix: Option<String>,
    /// The whole external id.
    pub external_id: Option<String>,
    pub due_before_ms: Option<i64>,
    /// The run that called the runs.
    pub parent: Option<RunId>,
    /// The trace that the runs belong to: that of their root, or of the program that started it.
    pub trace: Option<TraceId>,
    /// The hash of the program, and the input of the first pass as EDN text.
    pub begun_with: Option<(String, String)>,
    /// Maximum number of runs; 0: no limit.
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

/// The reason for a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClaimBy {
    /// A person named the run: it leaves quarantine, and crashes are counted from zero.
    Name,
    /// The worker found the run among those that can continue.
    #[default]
    Search,
}

/// The outcome of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// This process holds the lease of the run, under this epoch.
    Taken {
        epoch: i64,
    },
    /// A live process executes the run.
    Held {
        owner: String,
    },
    /// The run is in quarantine, for this reason.
    Quarantined {
        reason: String,
    },
    Missing,
}

/// The replacement of a run's program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adoption {
    pub run: RunId,
    /// The hash of the program that the caller saw.
    pub seen: String,
    pub program: Program,
    /// The targets of its bindings, and whether the new program is one of the project.
    pub bindings: Option<String>,
    pub now_ms: i64,
}
