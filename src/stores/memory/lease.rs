//! Leases and quarantine in memory. The rules are [`flowstone_model::rules::lease`].

use flowstone_model::ids::RunId;
use flowstone_model::ports::{EntryKind, Event, RunStatus, StoreError, WaitState};
use flowstone_model::rules::lease::{Counted, Crashes, Holder, LeaseRows, progress};

use super::state::Run;
use super::{Tx, lock};

impl Tx<'_> {
    /// Gives a run's lease to this process.
    pub(super) fn take_lease(&mut self, num: i64, now_ms: i64) -> Result<i64, StoreError> {
        let process = self.session.id.clone();
        let Some(run) = self.state.runs.get_mut(&num) else {
            return Err(StoreError::Internal(format!("there is no run {num}")));
        };
        run.lease = Some(process);
        run.epoch += 1;
        run.again_ms = None;
        run.row.setback = None;
        run.row.updated_ms = now_ms;
        let epoch = run.epoch;
        self.state.note_taken(num, now_ms)?;
        Ok(epoch)
    }

    /// Tells whether a run was active: a run that only waits did nothing when its process ended.
    fn is_at_work(&self, num: i64, run: &Run, now_ms: i64) -> bool {
        match run.row.status {
            RunStatus::Queued => false,
            RunStatus::Waiting => {
                let mut waits = self.state.waits_of(num);
                run.row.due_ms.is_some_and(|due_ms| due_ms <= now_ms)
                    || run.row.has_cancel_to_deliver()
                    || waits.any(|(_, wait)| wait.row.state == WaitState::Completed)
            }
            _ => !run.is_over(),
        }
    }
}

impl LeaseRows for Tx<'_> {
    fn holder(&mut self, run: &RunId) -> Result<Option<Holder>, StoreError> {
        let session = self.session;
        Ok(self.state.run(run).map(|run| match &run.lease {
            None => Holder::Nobody,
            Some(process) if *process == session.id => Holder::This,
            Some(process) if session.is_alive(process) => Holder::Living(process.clone()),
            Some(process) => Holder::Ended(process.clone()),
        }))
    }

    fn take(&mut self, run: &RunId, now_ms: i64) -> Result<i64, StoreError> {
        let num = self.state.number(run).unwrap_or_default();
        let epoch = self.take_lease(num, now_ms)?;
        if let Some(run) = self.state.runs.get_mut(&num) {
            run.row.held = false;
        }
        Ok(epoch)
    }

    fn quarantine(&mut self, run: &RunId) -> Result<Option<String>, StoreError> {
        let run = self.state.run(run);
        Ok(run.and_then(|run| run.row.quarantine.clone()))
    }

    fn end_quarantine(&mut self, run: &RunId) -> Result<(), StoreError> {
        if let Some(run) = self.state.run_mut(run).filter(|run| run.crashes > 0) {
            run.crashes = 0;
            run.crash_mark = None;
            run.row.quarantine = None;
        }
        Ok(())
    }

    fn executed_by(&mut self, process: &str) -> Vec<RunId> {
        let processes = lock(&self.session.project.processes);
        let process = processes.known.get(process);
        process.map_or_else(Vec::new, |it| it.executes.iter().cloned().collect())
    }

    fn crashes(
        &mut self,
        run: &RunId,
        process: &str,
        now_ms: i64,
    ) -> Result<Option<Crashes>, StoreError> {
        let Some((num, run)) = self.state.number(run).zip(self.state.run(run)) else {
            return Ok(None);
        };
        if run.lease.as_deref() != Some(process) || !self.is_at_work(num, run, now_ms) {
            return Ok(None);
        }
        let is_progress = |kind: EntryKind| !matches!(kind, EntryKind::Begin | EntryKind::Intent);
        let entries = self.state.entries(num);
        let entries = entries.filter(|(_, entry)| is_progress(entry.kind)).count();
        Ok(Some(Crashes {
            num,
            count: run.crashes,
            mark: run.crash_mark,
            progress: progress(run.row.pass, i64::try_from(entries).unwrap_or(i64::MAX)),
        }))
    }

    fn set_crashes(&mut self, num: i64, counted: &Counted) -> Result<(), StoreError> {
        if let Some(run) = self.state.runs.get_mut(&num) {
            run.crashes = counted.count;
            run.crash_mark = Some(counted.mark);
            run.row.held |= counted.quarantine.is_some();
            run.row.quarantine.clone_from(&counted.quarantine);
        }
        Ok(())
    }

    fn note(&mut self, num: i64, event: Event) -> Result<(), StoreError> {
        self.state.add_event_with_above(num, "", Some(event));
        Ok(())
    }

    fn free_all(&mut self, process: &str) -> Result<usize, StoreError> {
        let runs = self.state.runs.iter();
        let held = runs.filter(|(_, run)| run.lease.as_deref() == Some(process));
        let held: Vec<i64> = held.map(|(num, _)| *num).collect();
        for num in &held {
            if let Some(run) = self.state.runs.get_mut(num) {
                run.lease = None;
            }
        }
        Ok(held.len())
    }

    fn forget(&mut self, process: &str) {
        lock(&self.session.project.processes).known.remove(process);
    }
}
