//! Slots, limits and the queue in memory. The rules are [`flowstone_model::rules::queue`].

use std::cmp::Reverse;
use std::collections::BTreeMap;

use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    Admission, BulkAdmission, Delivered, Delivery, Entry, Event, NewRun, OnNewVersion,
    PastDelivery, PortFuture, Queue, QueuePlace, RunRow, RunStatus, StartRules, StoreError,
};
use flowstone_model::rules::admission::{self, Caller, Replaced};
use flowstone_model::rules::deliveries;
use flowstone_model::rules::queue::{
    self as rules, Head, LimitView, Limited, Occupant, SlotRows, Withdrawn,
};
use flowstone_model::rules::rows::{QueueRows, ReceiptRows as _};

use super::state::{Run, next};
use super::{News, Session, Tx};
use crate::failure::rolled_back;

impl Queue for Session {
    fn admit(&self, run: NewRun, rules: StartRules) -> PortFuture<'_, Admission> {
        self.admit_with(run, rules, Vec::new())
    }

    fn admit_with(
        &self,
        run: NewRun,
        rules: StartRules,
        entries: Vec<Entry>,
    ) -> PortFuture<'_, Admission> {
        self.write(News::Some, |tx| {
            let admission = admission::admit(tx, &run, &rules)?;
            if let Admission::Admitted { run, .. } = &admission
                && let Some(num) = tx.state.number(run)
            {
                for entry in entries {
                    tx.state.add_entry(num, entry);
                }
            }
            Ok(admission)
        })
    }

    fn admit_all(&self, delivery: Delivery) -> PortFuture<'_, BulkAdmission> {
        let mut refused = None;
        let taking = |tx: &mut Tx<'_>| match deliveries::deliver_all(tx, &delivery)? {
            other @ BulkAdmission::Refused { .. } => {
                refused = Some(other);
                Err(rolled_back())
            }
            taken @ (BulkAdmission::Admitted(_) | BulkAdmission::Known(_)) => Ok(taken),
        };
        let admitted = self.change(News::Some, taking);
        let answer = refused.map_or(admitted, Ok);
        Box::pin(std::future::ready(answer))
    }

    fn deliver(&self, delivery: Delivery) -> PortFuture<'_, Delivered> {
        self.write(News::Some, |tx| deliveries::deliver(tx, &delivery))
    }

    fn receipt(&self, scope: &str, key: &str, now_ms: i64) -> PortFuture<'_, Option<PastDelivery>> {
        let (scope, key) = (scope.to_owned(), key.to_owned());
        self.read(|tx| {
            let found = tx.receipt(&scope, &key)?;
            Ok(found.filter(|past| past.until_ms > now_ms))
        })
    }

    fn promote(&self, now_ms: i64) -> PortFuture<'_, Vec<RunId>> {
        self.write(News::Some, |tx| rules::promote(tx, now_ms))
    }

    fn place(&self, run: &RunId) -> PortFuture<'_, Option<QueuePlace>> {
        self.read(|tx| {
            let found = tx.state.number(run).zip(tx.state.run(run));
            let found = found.filter(|(_, run)| run.is_queued());
            Ok(found.map(|(num, run)| place(tx, num, run)))
        })
    }
}

/// Tells whether one queued run comes before another.
fn is_before((num, run): (i64, &Run), (other_num, other): (i64, &Run)) -> bool {
    (Reverse(run.row.priority), num) < (Reverse(other.row.priority), other_num)
}

fn place(tx: &Tx<'_>, num: i64, run: &Run) -> QueuePlace {
    let runs = || tx.state.runs.iter().map(|(num, run)| (*num, run));
    let count = |condition: &dyn Fn(&Run) -> bool| {
        let ahead = runs().filter(|other| condition(other.1) && is_before(*other, (num, run)));
        u32::try_from(ahead.count()).unwrap_or(u32::MAX)
    };
    if run.is_next {
        let in_limit = |other: &Run| other.limit_name() == run.limit_name();
        let live = runs().filter(|(_, other)| other.is_live() && in_limit(other));
        return rules::place_before_limit(LimitView {
            runs: run.limit.as_ref().and_then(|limit| limit.concurrency),
            due_ms: run.row.due_ms,
            live: live.map(|(_, other)| other.row.id.clone()).collect(),
            ahead: count(&|other| other.is_queued() && other.is_next && in_limit(other)),
        });
    }
    let in_slot = |other: &Run| {
        other.slot == run.slot && (!run.apart || other.row.program == run.row.program)
    };
    let of = |condition: &dyn Fn(&Run) -> bool| -> Vec<RunId> {
        let found = runs().filter(|(_, other)| in_slot(other) && condition(other));
        found.map(|(_, other)| other.row.id.clone()).collect()
    };
    let mut behind = of(&|other| other.is_live());
    behind.extend(of(&|other| other.is_queued() && other.is_next));
    rules::place_before_slot(behind, count(&|other| other.is_queued() && in_slot(other)))
}

/// Returns the row of a new run.
fn row(run: &NewRun, status: RunStatus) -> RunRow {
    RunRow {
        id: run.id.clone(),
        external_id: run.external_id.clone(),
        program: run.program.hash.clone(),
        flow: run.flow.clone(),
        status,
        wait_reason: None,
        due_ms: None,
        input: run.input.clone(),
        sealed: None,
        seed: run.seed,
        result: None,
        error: None,
        cancel_requested: None,
        is_unwinding: false,
        executing: false,
        begun: false,
        created_ms: run.now_ms,
        updated_ms: run.now_ms,
        invocation: run.invocation.clone(),
        key: run.key.clone(),
        priority: run.priority,
        bindings: run.bindings.clone(),
        started_by: run.started_by.clone(),
        origin: run.origin.clone(),
        parent: run.parent.clone(),
        trace: run.trace,
        version: run.version,
        deadline_ms: run.deadline_ms,
        pass: 0,
        force: false,
        ended_ms: None,
        held: false,
        pruned_ms: None,
        setback: None,
        quarantine: None,
    }
}

impl Tx<'_> {
    pub(super) fn add_run(&mut self, run: Run) -> Result<i64, StoreError> {
        let id = run.row.id.clone();
        if self.state.number(&id).is_some() {
            let message = format!("there are two runs {id}");
            return Err(StoreError::Internal(message));
        }
        let num = next(&self.state.runs);
        self.state.ids.insert(id, num);
        if let Some(external) = &run.row.external_id {
            self.state.externals.insert(external.clone(), num);
        }
        self.state.runs.insert(num, run);
        Ok(num)
    }

    pub(super) fn keep_program(&mut self, program: &flowstone_model::ports::Program) {
        if self.state.programs.get(&program.hash).is_none() {
            let program = program.clone();
            self.state.programs.insert(program.hash.clone(), program);
        }
    }

    /// Applies a change to each run that matches a condition, and returns the results.
    fn each<T>(
        &mut self,
        condition: impl Fn(&Run) -> bool,
        mut change: impl FnMut(&mut Run) -> T,
    ) -> Vec<T> {
        let found = self.state.runs.iter().filter(|(_, run)| condition(run));
        let nums: Vec<i64> = found.map(|(num, _)| *num).collect();
        let runs = &mut self.state.runs;
        let changed = nums
            .iter()
            .filter_map(|num| runs.get_mut(num).map(&mut change));
        changed.collect()
    }

    fn with(&mut self, num: i64, change: impl FnOnce(&mut Run)) -> Result<(), StoreError> {
        let run = self.state.runs.get_mut(&num);
        run.map(change)
            .ok_or_else(|| StoreError::Internal(format!("there is no run number {num}")))
    }
}

impl QueueRows for Tx<'_> {
    fn by_external_id(&mut self, run: &NewRun) -> Result<Option<RunId>, StoreError> {
        let external = run.external_id.as_ref();
        let num = external.and_then(|external| self.state.externals.get(external));
        let found = num.and_then(|num| self.state.runs.get(num));
        Ok(found.map(|run| run.row.id.clone()))
    }

    fn insert(&mut self, run: &NewRun, status: RunStatus) -> Result<RunId, StoreError> {
        self.keep_program(&run.program);
        let mut added = Run::new(row(run, status));
        added.lease = run.is_taken.then(|| self.session.id.clone());
        let num = self.add_run(added)?;
        let created = Event::created(status, &run.started_by, run.now_ms);
        self.state.add_event(num, created);
        Ok(run.id.clone())
    }

    fn write_rules(&mut self, run: &RunId, rules: &StartRules) -> Result<i64, StoreError> {
        let num = self.state.number(run).unwrap_or_default();
        self.with(num, |run| {
            let slot = rules.slot.as_ref();
            run.slot = slot.map(|slot| slot.name.clone());
            run.apart = slot.is_some_and(|slot| slot.on_new_version == OnNewVersion::Coexist);
            run.limit = rules.limit.clone();
        })?;
        Ok(num)
    }

    fn caller(&mut self, run: &RunId) -> Result<Option<Caller>, StoreError> {
        Ok(self.state.run(run).map(|run| Caller {
            slot: run.slot.clone(),
            program: run.row.program.clone(),
            limit: run.limit_name().map(str::to_owned),
            parent: run.row.parent.as_ref().map(|parent| parent.run.clone()),
            is_over: run.is_over(),
        }))
    }

    fn slot(&mut self, slot: &str) -> Result<SlotRows, StoreError> {
        let (mut live, mut heads) = (BTreeMap::new(), BTreeMap::<&str, (i64, &Run)>::new());
        for (num, run) in self.state.runs.iter() {
            if run.slot.as_deref() != Some(slot) {
                continue;
            }
            let program = &*run.row.program;
            if run.is_live() {
                live.entry(program).or_insert(&run.row.id);
            }
            if run.is_queued() {
                let head = heads.entry(program).or_insert((*num, run));
                if is_before((*num, run), *head) {
                    *head = (*num, run);
                }
            }
        }
        let live = live.into_iter().map(|(program, run)| Occupant {
            program: program.to_owned(),
            run: run.clone(),
        });
        let heads = heads.into_values().map(|(num, run)| Head {
            program: run.row.program.clone(),
            run: run.row.id.clone(),
            num,
            priority: run.row.priority,
            apart: run.apart,
            limit: run.limit_name().map(str::to_owned),
        });
        Ok(SlotRows {
            live: live.collect(),
            heads: heads.collect(),
        })
    }

    fn cancel_live(
        &mut self,
        replaced: &Replaced<'_>,
        now_ms: i64,
    ) -> Result<Vec<RunId>, StoreError> {
        let is_replaced = |run: &Run| {
            run.slot.as_deref() == Some(replaced.slot)
                && run.is_live()
                && run.row.cancel_requested.is_none()
                && replaced.includes(&run.row.program)
        };
        let asked = self.each(is_replaced, |run| {
            run.row.cancel_requested = Some(replaced.reason.clone());
            run.row.updated_ms = now_ms;
            run.row.id.clone()
        });
        for run in &asked {
            let num = self.state.number(run).unwrap_or_default();
            let cancelling = Event::cancelling(&replaced.reason, now_ms);
            self.state.add_event(num, cancelling);
        }
        Ok(asked)
    }

    fn queued(&mut self, slot: &str, program: &str, except: i64) -> Result<Vec<RunId>, StoreError> {
        let mut found: Vec<(i64, &Run)> = self
            .state
            .runs
            .iter()
            .map(|(num, run)| (*num, run))
            .filter(|(num, run)| {
                let is_there = run.is_queued() && run.slot.as_deref() == Some(slot);
                is_there && run.row.program == program && *num != except
            })
            .collect();
        found.sort_by_key(|(num, run)| (Reverse(run.row.priority), *num));
        Ok(found
            .into_iter()
            .map(|(_, run)| run.row.id.clone())
            .collect())
    }

    fn cancel_queued(
        &mut self,
        run: &RunId,
        reason: &str,
        now_ms: i64,
    ) -> Result<Option<Withdrawn>, StoreError> {
        let num = self.state.number(run);
        let Some(num) = num.filter(|num| self.state.runs.get(num).is_some_and(Run::is_queued))
        else {
            return Ok(None);
        };
        self.with(num, |run| {
            let row = &mut run.row;
            row.status = RunStatus::Cancelled;
            row.cancel_requested
                .get_or_insert_with(|| reason.to_owned());
            row.due_ms = None;
            row.updated_ms = now_ms;
            row.ended_ms = Some(now_ms);
            run.is_next = false;
        })?;
        self.state
            .add_event(num, Event::ended(RunStatus::Cancelled, now_ms));
        Ok(self.state.runs.get(&num).map(|run| Withdrawn {
            num,
            limit: run.limit_name().map(str::to_owned),
            has_parent: run.row.parent.is_some(),
        }))
    }

    fn needs(&mut self, num: i64) -> Result<(Option<String>, Option<String>), StoreError> {
        let run = self.state.runs.get(&num);
        Ok(run.map_or((None, None), |run| {
            (run.slot.clone(), run.limit_name().map(str::to_owned))
        }))
    }

    fn clear_next(&mut self, slot: &str) -> Result<Vec<Option<String>>, StoreError> {
        let is_next =
            |run: &Run| run.is_queued() && run.is_next && run.slot.as_deref() == Some(slot);
        Ok(self.each(is_next, |run| {
            run.is_next = false;
            run.row.due_ms = None;
            run.limit_name().map(str::to_owned)
        }))
    }

    fn set_next(&mut self, num: i64) -> Result<(), StoreError> {
        self.with(num, |run| run.is_next = true)
    }

    fn start(&mut self, num: i64, now_ms: i64) -> Result<(), StoreError> {
        self.with(num, |run| {
            run.row.status = RunStatus::Running;
            run.row.due_ms = None;
            run.row.updated_ms = now_ms;
            run.is_next = false;
            run.admitted_ms = Some(now_ms);
        })
    }

    fn first_in_limit(&mut self, limit: &str) -> Result<Option<Limited>, StoreError> {
        let waiting =
            self.state.runs.iter().filter(|(_, run)| {
                run.is_queued() && run.is_next && run.limit_name() == Some(limit)
            });
        let first = waiting.min_by_key(|(num, run)| (Reverse(run.row.priority), **num));
        Ok(first.map(|(num, run)| Limited {
            num: *num,
            runs: run.limit.as_ref().and_then(|limit| limit.concurrency),
            rate: run.limit.as_ref().and_then(|limit| limit.rate),
        }))
    }

    fn live_in_limit(&mut self, limit: &str, most: u32) -> Result<u32, StoreError> {
        let live = self.state.runs.values();
        let live = live.filter(|run| run.is_live() && run.limit_name() == Some(limit));
        let count = live.take(most as usize).count();
        Ok(u32::try_from(count).unwrap_or(most))
    }

    fn cap_starts(&mut self, limit: &str, now_ms: i64) -> Result<(), StoreError> {
        let is_later = |run: &Run| {
            let is_later = run.admitted_ms.is_some_and(|at_ms| at_ms > now_ms);
            is_later && run.limit_name() == Some(limit)
        };
        self.each(is_later, |run| run.admitted_ms = Some(now_ms));
        Ok(())
    }

    fn earlier_start(&mut self, limit: &str, nth: u32) -> Result<Option<i64>, StoreError> {
        let runs = self.state.runs.values();
        let runs = runs.filter(|run| run.limit_name() == Some(limit));
        let mut starts: Vec<i64> = runs.filter_map(|run| run.admitted_ms).collect();
        starts.sort_unstable_by_key(|at_ms| Reverse(*at_ms));
        let before = (nth as usize).checked_sub(1);
        Ok(before.and_then(|before| starts.get(before).copied()))
    }

    fn clear_due(&mut self, limit: &str) -> Result<(), StoreError> {
        let is_due = |run: &Run| run.is_queued() && run.limit_name() == Some(limit);
        self.each(is_due, |run| run.row.due_ms = None);
        Ok(())
    }

    fn set_due(&mut self, num: i64, due_ms: i64) -> Result<(), StoreError> {
        self.with(num, |run| run.row.due_ms = Some(due_ms))
    }

    fn due_limits(&mut self, now_ms: i64) -> Result<Vec<String>, StoreError> {
        let is_due = |run: &&Run| {
            let due_ms = run.row.due_ms.filter(|due_ms| *due_ms <= now_ms);
            run.is_queued() && due_ms.is_some()
        };
        let due = self.state.runs.values().filter(is_due);
        let mut limits: Vec<String> = due
            .filter_map(|run| run.limit_name().map(str::to_owned))
            .collect();
        limits.sort_unstable();
        limits.dedup();
        Ok(limits)
    }

    fn id_of(&mut self, num: i64) -> Result<RunId, StoreError> {
        let run = self.state.runs.get(&num);
        run.map(|run| run.row.id.clone())
            .ok_or_else(|| StoreError::Internal(format!("there is no run number {num}")))
    }
}
