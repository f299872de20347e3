//! The agenda of workers, and schedules.

use std::collections::BTreeSet;

use flowstone_model::ids::RunId;
use flowstone_model::ports::{
    Agenda, PlanChange, PortFuture, RunStatus, ScheduleRow, Setback, StoreError, Taken, WaitState,
    wall_clock_ms,
};
use flowstone_model::rules::agenda::{Candidate, Idle, choose, is_ready};
use flowstone_model::rules::{jobs, lease, queue};

use super::state::Run;
use super::{News, Session, Tx, lock, runs};

impl Agenda for Session {
    fn news(&self) -> Box<dyn flowstone_model::ports::News> {
        Box::new(crate::news::Commits(self.project.news.subscribe()))
    }

    fn take(&self, now_ms: i64, limit: usize) -> PortFuture<'_, Vec<Taken>> {
        self.write(News::None, |tx| {
            let taken = take(tx, now_ms, limit)?;
            let mut failures = lock(&self.failures);
            for taken in &taken {
                failures.remove(&taken.row.id);
            }
            Ok(taken)
        })
    }

    fn next_ms(&self) -> PortFuture<'_, Option<i64>> {
        self.read(|tx| {
            let runs = tx.state.runs.values().filter_map(next_ms);
            let jobs = tx.state.jobs.values().filter_map(jobs::due_ms);
            Ok(runs.chain(jobs).min())
        })
    }

    fn sweep(&self) -> PortFuture<'_, usize> {
        let now_ms = wall_clock_ms();
        self.write(News::Some, |tx| {
            let leases = tx.state.runs.values().filter_map(|run| run.lease.clone());
            let holders: BTreeSet<String> = leases.collect();
            let gone = holders.iter().filter(|process| !self.is_alive(process));
            gone.map(|process| lease::free(tx, process, self.most_crashes(), now_ms))
                .sum()
        })
    }

    fn set_aside(&self, run: &RunId, epoch: i64, setback: Setback) -> PortFuture<'_, ()> {
        self.write(News::Some, |tx| {
            let found = tx.state.run(run);
            if found.is_some_and(|run| run.epoch == epoch && !run.is_over())
                && let Some(run) = tx.state.run_mut(run)
            {
                run.row.setback = Some(setback.reason);
                run.again_ms = Some(setback.again_ms);
            }
            runs::release(tx, run, epoch);
            Ok(())
        })
    }

    fn forget_setbacks(&self) -> PortFuture<'_, usize> {
        self.write(News::Some, |tx| {
            let runs = tx.state.runs.iter();
            let aside = runs.filter(|(_, run)| run.row.setback.is_some());
            let aside: Vec<i64> = aside.map(|(num, _)| *num).collect();
            for num in &aside {
                if let Some(run) = tx.state.runs.get_mut(num) {
                    run.again_ms = Some(0);
                }
            }
            Ok(aside.len())
        })
    }

    fn schedules(&self) -> PortFuture<'_, Vec<ScheduleRow>> {
        self.read(|tx| Ok(tx.state.schedules.values().cloned().collect()))
    }

    fn plan(&self, change: PlanChange) -> PortFuture<'_, bool> {
        self.write(News::Some, |tx| {
            let key = (change.row.flow.clone(), change.row.id.clone());
            if tx.state.schedules.get(&key) != change.seen.as_ref() {
                return Ok(false);
            }
            if let Some(program) = &change.program {
                tx.keep_program(program);
            }
            tx.state.schedules.insert(key, change.row);
            Ok(true)
        })
    }
}

/// The program of interactive runs, which only the process with the prompt executes.
const INTERACTIVE: &str = "interactive";

fn take(tx: &mut Tx<'_>, now_ms: i64, limit: usize) -> Result<Vec<Taken>, StoreError> {
    queue::promote(tx, now_ms)?;
    jobs::expire(tx, now_ms)?;
    let runs = tx.state.runs.iter();
    let ready = runs.filter(|(num, run)| {
        let mut waits = tx.state.waits_of(**num);
        let is_answered = waits.any(|(_, wait)| wait.row.state == WaitState::Completed);
        run.lease.is_none() && is_ready(&idle(run, is_answered), now_ms)
    });
    let candidates = ready.map(|(num, run)| Candidate {
        num: *num,
        priority: run.row.priority,
    });
    let chosen = choose(candidates.collect(), limit);
    let mut taken = Vec::new();
    for num in chosen {
        let Some(row) = tx.state.runs.get(&num).map(|run| tx.session.shown(run)) else {
            continue;
        };
        let epoch = tx.take_lease(num, now_ms)?;
        taken.push(Taken { row, epoch });
    }
    Ok(taken)
}

fn idle(run: &Run, is_answered: bool) -> Idle {
    let row = &run.row;
    Idle {
        status: row.status,
        is_interactive: row.program == INTERACTIVE,
        is_held: row.held,
        due_ms: row.due_ms,
        is_answered,
        is_cancel_requested: row.has_cancel_to_deliver(),
        again_ms: run.again_ms.filter(|_| row.setback.is_some()),
    }
}

/// Returns when a timer of a run is due.
fn next_ms(run: &Run) -> Option<i64> {
    let row = &run.row;
    let is_idle = run.lease.is_none() && !row.held && row.setback.is_none();
    let due_ms = match row.status {
        RunStatus::Waiting if is_idle => row.due_ms,
        RunStatus::Queued => row.due_ms,
        _ => None,
    };
    let again_ms = run.again_ms.filter(|_| row.setback.is_some());
    due_ms.into_iter().chain(again_ms).min()
}
