//! Journals in memory, and the batches that change them.

use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    Batch, Change, Entry, Event, Journal, PortFuture, Receipt, RunStatus, RunUpdate, StoreError,
    StoreOp,
};
use flowstone_model::rules::rows::RunTreeRows as _;
use flowstone_model::rules::{answers, jobs, run_tree};

use super::state::State;
use super::{News, Session, Tx, lock};

impl Journal for Session {
    fn commit(&self, batch: Batch) -> PortFuture<'static, Receipt> {
        let result = self.apply(&batch);
        Box::pin(std::future::ready(result))
    }

    fn post(&self, batch: Batch) -> Result<(), StoreError> {
        if let Some(error) = lock(&self.failures).get(&batch.run) {
            return Err(error.clone());
        }
        if let Err(error) = self.apply(&batch) {
            lock(&self.failures).insert(batch.run, error);
        }
        Ok(())
    }

    fn load(&self, run: &RunId) -> PortFuture<'_, Vec<Entry>> {
        self.read(|tx| {
            let num = tx.state.number(run).unwrap_or_default();
            Ok(tx
                .state
                .entries(num)
                .map(|(_, entry)| entry.clone())
                .collect())
        })
    }

    fn load_after(
        &self,
        run: &RunId,
        place: i64,
        limit: usize,
    ) -> PortFuture<'_, Vec<(i64, Entry)>> {
        self.read(|tx| {
            let num = tx.state.number(run).unwrap_or_default();
            let entries = tx.state.entries(num).filter(|(at, _)| *at > place);
            let entries = entries.map(|(at, entry)| (at, entry.clone()));
            Ok(entries.take(limit).collect())
        })
    }
}

impl Session {
    fn apply(&self, batch: &Batch) -> Result<Receipt, StoreError> {
        if let Some(error) = lock(&self.failures).get(&batch.run) {
            return Err(error.clone());
        }
        self.change(news_in(batch), |tx| apply(tx, batch))
    }
}

fn news_in(batch: &Batch) -> News {
    let is_news = |change: &Change| match change {
        Change::Update(update) => update.status != RunStatus::Running,
        Change::OpenWait(_) | Change::Signal { .. } | Change::CloseChildren { .. } => true,
        Change::Perform { op, .. } => matches!(**op, StoreOp::Job(_)),
        Change::Append(_)
        | Change::CloseWait { .. }
        | Change::CloseWaits
        | Change::CloseWaitsOf { .. }
        | Change::Unwind
        | Change::Restart { .. } => false,
    };
    match batch.changes.iter().any(is_news) {
        true => News::Some,
        false => News::None,
    }
}

fn apply(tx: &mut Tx<'_>, batch: &Batch) -> Result<Receipt, StoreError> {
    let mut receipt = Receipt::default();
    if batch.changes.is_empty() {
        return Ok(receipt);
    }
    let found = tx.state.number(&batch.run).zip(tx.state.run(&batch.run));
    let Some((num, _)) = found.filter(|(_, run)| run.epoch == batch.epoch) else {
        let run = batch.run.to_string();
        return Err(StoreError::LeaseLost { run });
    };
    for change in &batch.changes {
        make(tx, (num, batch), change, &mut receipt)?;
    }
    Ok(receipt)
}

fn make(
    tx: &mut Tx<'_>,
    (num, batch): (i64, &Batch),
    change: &Change,
    receipt: &mut Receipt,
) -> Result<(), StoreError> {
    let now_ms = batch.now_ms;
    match change {
        Change::Append(entry) => tx.state.add_entry(num, entry.clone()),
        Change::Perform { op, entry } => {
            let result = perform(tx, op, now_ms)?;
            let entry = Entry {
                payload: result.clone(),
                ..entry.clone()
            };
            tx.state.add_entry(num, entry);
            receipt.results.push(result);
        }
        Change::Update(change) => update(tx, num, change, now_ms)?,
        Change::OpenWait(wait) => tx.open_wait(num, wait, now_ms)?,
        Change::CloseWait { path, seen } => tx.close_wait(num, path, *seen, now_ms)?,
        Change::CloseWaits => tx.close_waits(num)?,
        Change::CloseWaitsOf { path } => {
            for key in tx.close_waits_of(num, path) {
                jobs::give_up(tx, &batch.run, &key, now_ms)?;
            }
        }
        Change::Unwind => {
            if let Some(run) = tx.state.runs.get_mut(&num) {
                run.row.is_unwinding = true;
            }
        }
        Change::CloseChildren { only } => {
            run_tree::close_children(tx, &batch.run, only.as_ref(), now_ms)?;
        }
        Change::Signal {
            key,
            dedup,
            payload,
        } => {
            answers::complete(tx, &run_tree::signal(key, dedup, payload.clone(), now_ms))?;
        }
        Change::Restart { input, seed } => restart(tx.state, num, (input, *seed), now_ms),
    }
    Ok(())
}

fn perform(tx: &mut Tx<'_>, op: &StoreOp, now_ms: i64) -> Result<String, StoreError> {
    match op {
        StoreOp::Kv(op) => super::kv::apply(tx.state, op, now_ms),
        StoreOp::Table(op) => super::tables::apply(tx, op, now_ms),
        StoreOp::Blob(op) => Ok(super::resources::apply(tx.state, op, now_ms)),
        StoreOp::Changeset(op) => super::changesets::apply(tx.state, op, now_ms),
        StoreOp::Job(op) => jobs::submit(tx, op, now_ms),
    }
}

fn update(tx: &mut Tx<'_>, num: i64, update: &RunUpdate, now_ms: i64) -> Result<(), StoreError> {
    let is_final = update.status.is_final();
    if let Some(run) = tx.state.runs.get_mut(&num) {
        let row = &mut run.row;
        row.status = update.status;
        row.wait_reason.clone_from(&update.wait_reason);
        row.due_ms = update.due_ms;
        row.result.clone_from(&update.result);
        row.error.clone_from(&update.error);
        row.updated_ms = now_ms;
        row.ended_ms = is_final.then_some(now_ms);
        if is_final {
            run.lease = None;
        }
    }
    match Event::ended(update.status, now_ms) {
        Some(event) => {
            tx.state.add_event(num, event);
            run_tree::ended(tx, num, update.status, now_ms)
        }
        None => Ok(()),
    }
}

/// Removes the current pass of a run and begins the next one.
fn restart(state: &mut State, num: i64, (input, seed): (&str, u64), now_ms: i64) {
    let pass = state.runs.get(&num).map_or(0, |run| run.row.pass) + 1;
    // The event comes first: it continues the numbering of the run's rows.
    state.add_event(num, Event::continued(pass, now_ms));
    let rows = state.journal.range((num, i64::MIN)..=(num, i64::MAX));
    let last = rows.map(|(place, _)| *place).next_back();
    state
        .journal
        .remove_where(|place, _| place.0 == num && Some(*place) != last);
    state.waits.remove_where(|_, wait| wait.run == num);
    if let Some(run) = state.runs.get_mut(&num) {
        let row = &mut run.row;
        run.first_input.get_or_insert_with(|| row.input.clone());
        row.pass = pass;
        input.clone_into(&mut row.input);
        row.seed = seed;
        row.status = RunStatus::Running;
        row.wait_reason = None;
        row.due_ms = None;
        row.updated_ms = now_ms;
    }
}
