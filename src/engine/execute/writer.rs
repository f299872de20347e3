//! Entries that an execution writes: they are collected here and go to the store in batches.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::usage::Usage;
use crate::engine::Engine;
use crate::ids::RunId;
use crate::ports::{
    Ack, Batch, Change, Clock, Durability, Entry, EntryKind, Journal, Receipt, Revealed, StoreError,
};
use crate::spans::Recorder;

/// Number of pending entries above which they are handed over although no request waits for them.
const PENDING_MAX: usize = 256;

/// Writes a run's journal: gathers entries and commits them in batches.
pub(crate) struct JournalWriter {
    run: RunId,
    epoch: Cell<i64>,
    durability: Durability,
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    pending: RefCell<Vec<Change>>,
    /// The secrets that are removed from everything that is written.
    revealed: Revealed,
    /// Whether nothing is written: see [`super::dry_run`].
    discards_writes: Cell<bool>,
    usage: Usage,
    /// Makes spans of what is committed, if traces are recorded.
    recorder: RefCell<Option<Recorder>>,
}

impl JournalWriter {
    pub(crate) fn new(
        engine: &Engine,
        run: RunId,
        epoch: i64,
        revealed: Revealed,
    ) -> JournalWriter {
        JournalWriter {
            run,
            epoch: Cell::new(epoch),
            durability: engine.durability,
            journal: engine.services.stores.journal.clone(),
            clock: engine.services.clock.clone(),
            pending: RefCell::default(),
            revealed,
            discards_writes: Cell::new(false),
            usage: Usage::new(engine.limits),
            recorder: RefCell::default(),
        }
    }

    /// Starts or stops making spans of what is committed.
    pub(super) fn record(&self, recorder: Option<Recorder>) {
        self.recorder.replace(recorder);
    }

    /// Returns the run's use of its limits.
    pub(super) fn usage(&self) -> &Usage {
        &self.usage
    }

    /// Discards everything that is handed over.
    pub(super) fn discard_writes(&self) {
        self.discards_writes.set(true);
    }

    fn discards(&self) -> bool {
        let discards = self.discards_writes.get();
        if discards {
            self.pending.take();
        }
        discards
    }

    pub(super) fn epoch(&self) -> i64 {
        self.epoch.get()
    }

    pub(super) fn set_epoch(&self, epoch: i64) {
        self.epoch.set(epoch);
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Adds an entry that need not be on disk yet: it is written with the next commit.
    pub(super) fn append(&self, entry: Entry) {
        self.push(Change::Append(entry));
    }

    pub(super) fn push(&self, change: Change) {
        self.usage.changed(std::slice::from_ref(&change));
        self.pending.borrow_mut().push(change);
    }

    pub(super) fn has_pending(&self) -> bool {
        !self.pending.borrow().is_empty()
    }

    /// Hands pending entries to the store without waiting for it.
    pub(super) fn post(&self) -> Result<(), StoreError> {
        if self.discards() || self.pending.borrow().is_empty() {
            return Ok(());
        }
        let (batch, _) = self.batch(Vec::new(), Ack::Applied);
        self.journal.post(batch)
    }

    /// Hands over pending entries if there are many.
    pub(super) fn flush_if_large(&self) -> Result<(), StoreError> {
        if self.pending.borrow().len() < PENDING_MAX {
            return Ok(());
        }
        self.post()
    }

    /// Commits pending entries and these changes, and waits until they are durable.
    pub(crate) async fn commit(&self, changes: Vec<Change>) -> Result<Receipt, StoreError> {
        if self.discards() {
            return Ok(Receipt::default());
        }
        let (batch, number) = self.batch(changes, Ack::Durable);
        let receipt = self.journal.commit(batch).await?;
        self.durable(number);
        Ok(receipt)
    }

    /// Performs an operation of the project's own stores: it is durable before any external effect starts.
    pub(super) async fn apply(&self, changes: Vec<Change>) -> Result<Receipt, StoreError> {
        if self.discards() {
            return Ok(Receipt::default());
        }
        let is_full = |recorder: &Recorder| recorder.is_full();
        let ack = match self.recorder.borrow().as_ref().is_some_and(is_full) {
            true => Ack::Durable,
            false => Ack::Applied,
        };
        let (batch, number) = self.batch(changes, ack);
        let receipt = self.journal.commit(batch).await?;
        if ack == Ack::Durable {
            self.durable(number);
        }
        self.usage.results(&receipt.results);
        Ok(receipt)
    }

    /// Records that a batch, and with it all earlier ones, is durable.
    fn durable(&self, number: Option<u64>) {
        let mut recorder = self.recorder.borrow_mut();
        if let (Some(number), Some(recorder)) = (number, recorder.as_mut()) {
            recorder.durable(number);
        }
    }

    /// Returns pending entries and these changes as a batch, with its number for the recorder.
    fn batch(&self, changes: Vec<Change>, ack: Ack) -> (Batch, Option<u64>) {
        let mut all = self.pending.take();
        self.usage.changed(&changes);
        all.extend(changes);
        self.revealed.redactor().changes(&mut all);
        let now_ms = self.clock.now_ms();
        let mut recorder = self.recorder.borrow_mut();
        let number = recorder
            .as_mut()
            .map(|recorder| recorder.take(&all, now_ms));
        let batch = Batch {
            run: self.run.clone(),
            epoch: self.epoch.get(),
            durability: self.durability,
            ack,
            now_ms,
            changes: all,
        };
        (batch, number)
    }

    /// Returns an entry with the current time.
    pub(super) fn entry(
        &self,
        kind: EntryKind,
        path: String,
        what: &str,
        payload: String,
    ) -> Entry {
        Entry {
            kind,
            path,
            what: what.to_owned(),
            digest: String::new(),
            request: None,
            payload,
            at_ms: self.clock.now_ms(),
        }
    }
}
