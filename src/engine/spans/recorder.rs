//! Sends the spans of an execution: those of each batch of changes, once the batch is durable.

use std::collections::VecDeque;
use std::sync::Arc;

use super::RunFacts;
use super::fold::Fold;
use crate::engine::Engine;
use crate::ports::{Change, Entry, FinishedSpan, Telemetry};

/// Spans of changes that are not durable yet. Beyond this number, the next batch is awaited until it is.
const PENDING_MAX: usize = 1000;
/// Maximum number of such spans, where nothing is awaited.
const KEPT_MAX: usize = 10 * PENDING_MAX;

/// Makes spans of what an execution commits.
pub(crate) struct Recorder {
    facts: RunFacts,
    fold: Fold,
    telemetry: Arc<dyn Telemetry>,
    /// The number of the last batch.
    batches: u64,
    /// With the number of the batch that ends them.
    pending: VecDeque<(u64, FinishedSpan)>,
}

impl Recorder {
    /// Returns what records an execution that begins now, after the entries that the journal has. Returns nothing
    /// where nobody wants the spans of the run.
    pub(crate) fn start(engine: &Engine, facts: RunFacts, entries: &[Entry]) -> Option<Recorder> {
        let telemetry = &engine.services.telemetry;
        if !telemetry.is_on() || !telemetry.samples(facts.trace.trace, facts.trace.remote) {
            return None;
        }
        let began_ms = entries
            .first()
            .map_or_else(|| engine.now_ms(), |entry| entry.at_ms);
        let mut fold = Fold::new(facts.trace.clone(), began_ms, telemetry.has_content());
        let mut known = Vec::new();
        for entry in entries {
            fold.take(entry, &mut known);
            // The process that committed them has sent them.
            known.clear();
        }
        Some(Recorder {
            facts,
            fold,
            telemetry: telemetry.clone(),
            batches: 0,
            pending: VecDeque::new(),
        })
    }

    /// Takes in a batch that is about to be committed, and returns its number.
    pub(crate) fn take(&mut self, changes: &[Change], now_ms: i64) -> u64 {
        self.batches += 1;
        let mut spans = Vec::new();
        for change in changes {
            match change {
                Change::Append(entry) | Change::Perform { entry, .. } => {
                    self.fold.take(entry, &mut spans);
                }
                Change::Update(update) if update.status.is_final() => {
                    let error = update.error.as_deref();
                    spans.push(self.facts.span(update.status, error, now_ms));
                }
                Change::Update(_)
                | Change::OpenWait(_)
                | Change::CloseWait { .. }
                | Change::CloseWaits
                | Change::CloseWaitsOf { .. }
                | Change::CloseChildren { .. }
                | Change::Unwind
                | Change::Signal { .. }
                | Change::Restart { .. } => {}
            }
        }
        let batch = self.batches;
        let room = KEPT_MAX.saturating_sub(self.pending.len());
        if spans.len() > room {
            self.telemetry.lose(spans.len() - room);
            spans.truncate(room);
        }
        self.pending
            .extend(spans.into_iter().map(|span| (batch, span)));
        batch
    }

    /// Tells whether the next batch should be awaited until it is durable, because many spans wait.
    pub(crate) fn is_full(&self) -> bool {
        self.pending.len() >= PENDING_MAX
    }

    /// Sends the spans of a batch that is durable, and of those before it.
    pub(crate) fn durable(&mut self, batch: u64) {
        let durable = self.pending.iter().take_while(|(it, _)| *it <= batch);
        let count = durable.count();
        if count > 0 {
            let spans = self.pending.drain(..count).map(|(_, span)| span);
            self.telemetry.send(spans.collect());
        }
    }
}
