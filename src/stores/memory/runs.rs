//! Runs in memory, their programs, and their leases.

use std::cmp::Reverse;

use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    Adoption, Claim, ClaimBy, Event, FlowVersion, Import, ImportedRun, NewRun, PortFuture, Program,
    RunFilter, RunQuery, RunRow, RunStatus, RunSummary, Runs, StoreError, StoredInput,
};
use flowstone_model::rules::lease::{self, Holder, LeaseRows as _};
use flowstone_model::rules::rows::QueueRows as _;
use flowstone_model::rules::run_tree;
use flowstone_model::sealed::{join, split};

use super::state::Run;
use super::{News, Session, Tx, listing, lock, resources};
use crate::failure::{rejected, with_hint};

impl Runs for Session {
    fn create(&self, run: NewRun) -> PortFuture<'_, RunId> {
        self.write(News::Some, |tx| match tx.by_external_id(&run)? {
            Some(found) => Ok(found),
            None => tx.insert(&run, RunStatus::Running),
        })
    }

    fn find(&self, run: &RunId) -> PortFuture<'_, Option<RunRow>> {
        self.read(|tx| Ok(tx.state.run(run).map(|run| self.shown(run))))
    }

    fn list(&self, filter: RunFilter) -> PortFuture<'_, Vec<RunRow>> {
        self.read(|tx| {
            let runs = tx.state.runs.values().rev();
            let fitting = runs.filter(|run| fits(run, &filter));
            let limit = if filter.limit == 0 {
                usize::MAX
            } else {
                filter.limit
            };
            Ok(fitting.take(limit).map(|run| self.shown(run)).collect())
        })
    }

    fn summaries(&self, query: RunQuery) -> PortFuture<'_, Vec<RunSummary>> {
        self.read(|tx| listing::list(tx, &query))
    }

    fn program(&self, hash: &str) -> PortFuture<'_, Option<Program>> {
        self.read(|tx| Ok(tx.state.programs.get(&hash.to_owned()).cloned()))
    }

    fn versions(&self, flow: &str) -> PortFuture<'_, Vec<FlowVersion>> {
        self.read(|tx| {
            let mut found: Vec<FlowVersion> = Vec::new();
            // In the order of their numbers: the last run of a program is its newest.
            for (_, run) in tx.state.runs.iter().filter(|(_, run)| run.row.flow == flow) {
                let row = &run.row;
                let at = found.iter().position(|it| it.program == row.program);
                let mut version = match at {
                    Some(at) => found.remove(at),
                    None => FlowVersion {
                        program: row.program.clone(),
                        runs: 0,
                        open: 0,
                        first_ms: row.created_ms,
                        last_ms: row.created_ms,
                    },
                };
                version.runs += 1;
                version.open += u64::from(row.ended_ms.is_none());
                version.first_ms = version.first_ms.min(row.created_ms);
                version.last_ms = version.last_ms.max(row.created_ms);
                found.push(version);
            }
            found.reverse();
            Ok(found)
        })
    }

    fn claim(&self, run: &RunId, by: ClaimBy, now_ms: i64) -> PortFuture<'_, Claim> {
        lock(&self.failures).remove(run);
        self.write(News::None, |tx| {
            lease::claim(tx, (run, by), self.most_crashes(), now_ms)
        })
    }

    fn executes(&self, run: &RunId, is_executing: bool) {
        let mut processes = lock(&self.project.processes);
        if let Some(process) = processes.known.get_mut(&self.id).filter(|it| it.is_alive) {
            match is_executing {
                true => process.executes.insert(run.clone()),
                false => process.executes.remove(run),
            };
        }
    }

    fn adopt(&self, adoption: Adoption) -> PortFuture<'_, ()> {
        self.write(News::Some, |tx| adopt(tx, &adoption))
    }

    fn release(&self, run: &RunId, epoch: i64) -> PortFuture<'_, ()> {
        self.write(News::Some, |tx| {
            release(tx, run, epoch);
            Ok(())
        })
    }

    fn import(&self, import: Import) -> PortFuture<'_, ()> {
        self.write(News::Some, |tx| {
            for blob in &import.resources {
                resources::keep(tx.state, blob, import.now_ms);
            }
            import.runs.iter().try_for_each(|run| add(tx, run))
        })
    }

    fn sealed(&self, after: Option<&RunId>, limit: usize) -> PortFuture<'_, Vec<StoredInput>> {
        self.read(|tx| {
            let after = match after {
                Some(run) => tx.state.number(run).unwrap_or(i64::MAX),
                None => 0,
            };
            let is_sealed = |text: &str| split(text).sealed.is_some();
            let runs = tx.state.runs.iter().filter(|(num, run)| {
                let first = run.first_input.as_deref();
                **num > after && (is_sealed(&run.row.input) || first.is_some_and(is_sealed))
            });
            let inputs = runs.map(|(_, run)| StoredInput {
                run: run.row.id.clone(),
                input: run.row.input.clone(),
                first: run.first_input.clone(),
            });
            Ok(inputs.take(limit).collect())
        })
    }

    fn reseal(&self, changes: Vec<(StoredInput, StoredInput)>) -> PortFuture<'_, ()> {
        self.write(News::Some, |tx| {
            for (seen, new) in changes {
                let found = tx.state.run_mut(&seen.run);
                if let Some(run) = found.filter(|run| run.row.input == seen.input) {
                    run.row.input = new.input;
                    run.first_input = new.first.or_else(|| run.first_input.take());
                }
            }
            Ok(())
        })
    }

    fn request_cancel(&self, run: &RunId, reason: &str, now_ms: i64) -> PortFuture<'_, ()> {
        self.write(News::Some, |tx| {
            run_tree::request_cancel(tx, run, reason, now_ms)
        })
    }

    fn terminate(
        &self,
        run: &RunId,
        reason: &str,
        now_ms: i64,
    ) -> PortFuture<'_, Option<RunStatus>> {
        self.write(News::Some, |tx| {
            run_tree::terminate(tx, run, reason, now_ms)
        })
    }
}

impl Session {
    pub(super) fn shown(&self, run: &Run) -> RunRow {
        run.shown(|process| self.is_alive(process))
    }
}

fn fits(run: &Run, filter: &RunFilter) -> bool {
    let row = &run.row;
    let has_prefix = |prefix: &String| {
        row.id.as_str().starts_with(prefix) || row.external_id.as_ref() == Some(prefix)
    };
    let is_due = |before: &i64| row.due_ms.is_some_and(|due_ms| due_ms <= *before);
    let is_child = |parent: &RunId| row.parent.as_ref().is_some_and(|it| it.run == *parent);
    let began_with = |(program, input): &(String, String)| {
        row.program == *program && run.first_input.as_ref().unwrap_or(&row.input) == input
    };
    (filter.statuses.is_empty() || filter.statuses.contains(&row.status))
        && filter.flow.as_ref().is_none_or(|flow| *flow == row.flow)
        && filter.id_prefix.as_ref().is_none_or(has_prefix)
        && filter
            .external_id
            .as_ref()
            .is_none_or(|id| row.external_id.as_ref() == Some(id))
        && filter.due_before_ms.as_ref().is_none_or(is_due)
        && filter.parent.as_ref().is_none_or(is_child)
        && filter
            .trace
            .is_none_or(|trace| row.in_trace().trace == trace)
        && filter.begun_with.as_ref().is_none_or(began_with)
}

fn adopt(tx: &mut Tx<'_>, adoption: &Adoption) -> Result<(), StoreError> {
    let holder = tx.holder(&adoption.run)?.unwrap_or(Holder::Nobody);
    let row = tx.state.run(&adoption.run).map(|run| run.row.clone());
    lease::check_adoption(&adoption.run, row.as_ref(), &holder, &adoption.seen)?;
    tx.keep_program(&adoption.program);
    if let Some(run) = tx.state.run_mut(&adoption.run) {
        run.epoch += 1;
        run.row.program.clone_from(&adoption.program.hash);
        run.row.bindings.clone_from(&adoption.bindings);
        run.row.version = None;
        run.row.updated_ms = adoption.now_ms;
    }
    Ok(())
}

/// Gives a lease back, if it is still the one of that epoch.
pub(super) fn release(tx: &mut Tx<'_>, run: &RunId, epoch: i64) {
    let run = tx.state.run_mut(run).filter(|run| run.epoch == epoch);
    if let Some(run) = run {
        run.lease = None;
        run.epoch = lease::epoch_after_release(epoch, run.row.status);
    }
}

/// Adds an imported run.
fn add(tx: &mut Tx<'_>, imported: &ImportedRun) -> Result<(), StoreError> {
    let row = &imported.row;
    if tx.state.number(&row.id).is_some() {
        let message = format!("the run `{}` exists already", row.id);
        let taken = rejected("E0563", "conflict", message);
        let hint = "nothing was changed; `--new-id` gives the imported run another id";
        return Err(with_hint(taken, hint));
    }
    tx.keep_program(&imported.program);
    // An external id stays with the run that has it here.
    let external = row.external_id.clone();
    let external = external.filter(|external| tx.state.externals.get(external).is_none());
    let run = Run::new(RunRow {
        external_id: external,
        // The runs that it was queued behind were not imported; like every run that is not over, it is put on hold.
        status: match row.status {
            RunStatus::Queued => RunStatus::Running,
            status => status,
        },
        input: join(&row.input, row.sealed.as_deref()),
        sealed: None,
        setback: None,
        quarantine: None,
        ..row.clone()
    });
    let num = tx.add_run(run)?;
    // A run without a journal has no feed.
    if row.pruned_ms.is_none() {
        let created = Event::created(row.status, &row.started_by, row.created_ms);
        tx.state.add_event(num, created);
        for entry in &imported.entries {
            tx.state.add_entry(num, entry.clone());
        }
        let ended_ms = row.ended_ms.unwrap_or(row.updated_ms);
        tx.state.add_event(num, Event::ended(row.status, ended_ms));
    }
    for wait in &imported.waits {
        let row = flowstone_model::ports::WaitRow {
            run: imported.row.id.clone(),
            flow: imported.row.flow.clone(),
            ..wait.row.clone()
        };
        tx.add_wait(num, row, wait.token.clone())?;
    }
    Ok(())
}

/// Returns a sort key that puts the newest run first.
pub(super) fn newest_first(num: i64, at_ms: i64) -> Reverse<(i64, i64)> {
    Reverse((at_ms, num))
}
