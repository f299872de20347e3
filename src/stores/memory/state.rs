//! The rows of a project in memory.

use std::sync::Arc;

use flowstone_model::changeset::{FileState, PathChange};
use flowstone_model::ids::RunId;
use flowstone_model::installation::{InstallationName, InstallationRow};
use flowstone_model::kv::KvEntry;
use flowstone_model::ports::{
    Entry, FeedItem, JobRow, LimitRule, PastDelivery, Program, ResourceRow, RunRow, ScheduleRow,
    WaitRow, WaitState,
};
use flowstone_model::registry::{FlowName, FlowRow, ReleaseRow, VersionFiles, VersionRow};
use flowstone_model::rules::answers::{EarlySignal, SignalState};
use flowstone_model::sealed::split;
use flowstone_model::token::Token;
use flowstone_model::triggers::{EventDelivery, TriggerRow};

use super::rollback::Table;

/// All rows of a project.
#[derive(Default)]
pub(super) struct State {
    /// Runs by number.
    pub runs: Table<i64, Run>,
    /// Numbers of runs by id.
    pub ids: Table<RunId, i64>,
    /// Numbers of runs by external id.
    pub externals: Table<String, i64>,
    pub programs: Table<String, Program>,
    /// Entries and events, by the number of the run and the place in its journal, counted from 1.
    pub journal: Table<(i64, i64), FeedItem>,
    /// The rows of all journals in the order in which they were added.
    pub positions: Table<i64, (i64, i64)>,
    /// Waits in the order in which they were opened.
    pub waits: Table<i64, Wait>,
    pub inbox: Table<i64, Signal>,
    /// Jobs in the order in which they were submitted.
    pub jobs: Table<i64, JobRow>,
    /// Schedules by flow and id.
    pub schedules: Table<(String, String), ScheduleRow>,
    pub kv: Table<String, Key>,
    /// Blobs by hash, with the time at which they were stored.
    pub blobs: Table<String, (i64, Arc<Vec<u8>>)>,
    pub resources: Table<String, ResourceRow>,
    pub changesets: Table<String, Changeset>,
    /// Tokens by id, with the digests of their secrets.
    pub tokens: Table<String, (Token, Vec<u8>)>,
    /// Receipts by scope and key.
    pub receipts: Table<(String, String), PastDelivery>,
    pub flows: Table<FlowName, FlowRow>,
    /// Versions of flows by flow and number.
    pub flow_versions: Table<(FlowName, i64), VersionRow>,
    /// The files of versions by content digest.
    pub flow_files: Table<String, Arc<VersionFiles>>,
    /// Lines of release logs by flow and number.
    pub flow_releases: Table<(FlowName, i64), ReleaseRow>,
    /// The versions that working copies have.
    pub flow_checkouts: Table<(FlowName, String), i64>,
    /// Schedules and subscriptions by id.
    pub triggers: Table<String, TriggerRow>,
    /// Deliveries of their events by id.
    pub event_deliveries: Table<String, EventDelivery>,
    pub installations: Table<InstallationName, InstallationRow>,
    /// The tokens that models have used, by installation and run.
    pub installation_tokens: Table<(InstallationName, RunId), i64>,
}

impl State {
    pub(super) fn commit(&mut self) {
        self.runs.commit();
        self.ids.commit();
        self.externals.commit();
        self.programs.commit();
        self.journal.commit();
        self.positions.commit();
        self.waits.commit();
        self.inbox.commit();
        self.jobs.commit();
        self.schedules.commit();
        self.kv.commit();
        self.blobs.commit();
        self.resources.commit();
        self.changesets.commit();
        self.tokens.commit();
        self.receipts.commit();
        self.flows.commit();
        self.flow_versions.commit();
        self.flow_files.commit();
        self.flow_releases.commit();
        self.flow_checkouts.commit();
        self.triggers.commit();
        self.event_deliveries.commit();
        self.installations.commit();
        self.installation_tokens.commit();
    }

    pub(super) fn roll_back(&mut self) {
        self.runs.roll_back();
        self.ids.roll_back();
        self.externals.roll_back();
        self.programs.roll_back();
        self.journal.roll_back();
        self.positions.roll_back();
        self.waits.roll_back();
        self.inbox.roll_back();
        self.jobs.roll_back();
        self.schedules.roll_back();
        self.kv.roll_back();
        self.blobs.roll_back();
        self.resources.roll_back();
        self.changesets.roll_back();
        self.tokens.roll_back();
        self.receipts.roll_back();
        self.flows.roll_back();
        self.flow_versions.roll_back();
        self.flow_files.roll_back();
        self.flow_releases.roll_back();
        self.flow_checkouts.roll_back();
        self.triggers.roll_back();
        self.event_deliveries.roll_back();
        self.installations.roll_back();
        self.installation_tokens.roll_back();
    }

    pub(super) fn number(&self, run: &RunId) -> Option<i64> {
        self.ids.get(run).copied()
    }

    pub(super) fn run(&self, run: &RunId) -> Option<&Run> {
        self.runs.get(&self.number(run)?)
    }

    pub(super) fn run_mut(&mut self, run: &RunId) -> Option<&mut Run> {
        let num = self.number(run)?;
        self.runs.get_mut(&num)
    }

    /// Returns the entries of a run's journal, with the place of each.
    pub(super) fn entries(&self, num: i64) -> impl Iterator<Item = (i64, &Entry)> {
        let entries = self.journal.range((num, i64::MIN)..=(num, i64::MAX));
        entries.filter_map(|((_, place), item)| match item {
            FeedItem::Entry(entry) => Some((*place, entry)),
            FeedItem::Event(_) => None,
        })
    }

    /// Returns the entries of all journals.
    pub(super) fn all_entries(&self) -> impl Iterator<Item = &Entry> {
        self.journal.values().filter_map(|item| match item {
            FeedItem::Entry(entry) => Some(entry),
            FeedItem::Event(_) => None,
        })
    }

    /// Tells whether the journal of a run has entries or events.
    pub(super) fn has_rows(&self, num: i64) -> bool {
        let mut rows = self.journal.range((num, i64::MIN)..=(num, i64::MAX));
        rows.next().is_some()
    }

    /// Returns the waits of a run, in the order in which they were opened.
    pub(super) fn waits_of(&self, num: i64) -> impl DoubleEndedIterator<Item = (i64, &Wait)> {
        let waits = self.waits.iter().map(|(seq, wait)| (*seq, wait));
        waits.filter(move |(_, wait)| wait.run == num)
    }
}

/// Returns the next free key.
pub(super) fn next<V: Clone>(table: &Table<i64, V>) -> i64 {
    table.iter().next_back().map_or(1, |(last, _)| last + 1)
}

/// The row of a run.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// The stored row; its `input` ends with the encrypted secrets. `lease` names the process that executes the run.
    pub row: RunRow,
    /// The input of the first pass, if a later pass has another one.
    pub first_input: Option<String>,
    /// The process that holds the lease.
    pub lease: Option<String>,
    pub epoch: i64,
    pub slot: Option<String>,
    /// Runs of other versions do not occupy the slot for this run.
    pub apart: bool,
    /// The run is queued, has its slot, and waits for its limit.
    pub is_next: bool,
    pub limit: Option<LimitRule>,
    /// When the run started, for rates.
    pub admitted_ms: Option<i64>,
    /// When a worker may try again after one could not execute the run.
    pub again_ms: Option<i64>,
    pub crashes: u32,
    pub crash_mark: Option<i64>,
}

impl Run {
    pub(super) fn new(row: RunRow) -> Run {
        Run {
            row,
            first_input: None,
            lease: None,
            epoch: 0,
            slot: None,
            apart: false,
            is_next: false,
            limit: None,
            admitted_ms: None,
            again_ms: None,
            crashes: 0,
            crash_mark: None,
        }
    }

    /// Returns the row in the form of the ports.
    pub(super) fn shown(&self, is_alive: impl Fn(&str) -> bool) -> RunRow {
        let parts = split(&self.row.input);
        RunRow {
            input: parts.shown.to_owned(),
            sealed: parts.sealed.map(str::to_owned),
            executing: self.lease.as_deref().is_some_and(is_alive),
            begun: self.epoch > 0,
            ..self.row.clone()
        }
    }

    pub(super) fn is_over(&self) -> bool {
        self.row.ended_ms.is_some()
    }

    /// Tells whether the run occupies its slot and its limit.
    pub(super) fn is_live(&self) -> bool {
        self.row.status != flowstone_model::ports::RunStatus::Queued && !self.is_over()
    }

    pub(super) fn is_queued(&self) -> bool {
        self.row.status == flowstone_model::ports::RunStatus::Queued
    }

    pub(super) fn limit_name(&self) -> Option<&str> {
        self.limit.as_ref().map(|limit| &*limit.name)
    }
}

/// A wait, with the parts that only its run and its recipient know.
#[derive(Debug, Clone)]
pub(super) struct Wait {
    pub run: i64,
    pub row: WaitRow,
    pub token: String,
}

impl Wait {
    pub(super) fn is_open(&self) -> bool {
        self.row.state == WaitState::Open
    }
}

/// A signal in the inbox.
#[derive(Debug, Clone)]
pub(super) struct Signal {
    pub early: EarlySignal,
    pub state: SignalState,
    pub dedup: Option<String>,
    /// The wait that took or refused the signal.
    pub wait: Option<String>,
    pub refusal: Option<String>,
    pub at_ms: i64,
}

/// The entry of a key.
#[derive(Debug, Clone)]
pub(super) struct Key {
    pub entry: KvEntry,
    pub updated_ms: i64,
}

/// A changeset.
#[derive(Debug, Clone)]
pub(super) struct Changeset {
    pub base: String,
    pub source: String,
    pub revision: i64,
    pub updated_ms: i64,
    /// The changes by path: the revision of the last edit, the current state, and the path it was moved from.
    pub paths: std::collections::BTreeMap<String, (i64, Option<FileState>, Option<String>)>,
}

impl Changeset {
    pub(super) fn changes(&self) -> Vec<PathChange> {
        let changes = self.paths.iter().map(|(path, (_, now, from))| PathChange {
            path: path.clone(),
            now: now.clone(),
            moved_from: from.clone(),
        });
        changes.collect()
    }
}
