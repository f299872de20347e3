//! Executing, resuming, cancelling and terminating runs.

use std::rc::Rc;

use crate::engine::{Engine, StartOptions};
use crate::error::EngineError;
use crate::execute::{self, ExecuteOptions, RunTree, trace};
use crate::flow::LoadedFlow;
use crate::ids::RunId;
use crate::observer::Observer;
use crate::outcome::RunOutcome;
use crate::ports::{Claim, ClaimBy, RunFilter, RunRow, RunStatus, Taken, WaitFilter, WaitState};
use crate::sessions::INTERACTIVE;

/// The result of requesting a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    Cancelled,
    /// Another process executes the run and will see it.
    Requested,
    /// What the run does about it has begun, and waits for something.
    Unwinding,
}

impl Engine {
    /// Adds a run, as [`Engine::submit`] does, and returns its id only.
    ///
    /// # Errors
    /// When the input does not fit the flow's contract, the flow refuses a second run, or the store cannot be
    /// written.
    pub async fn start(
        &self,
        loaded: &LoadedFlow,
        options: StartOptions,
    ) -> Result<RunId, EngineError> {
        Ok(self.submit(loaded, options).await?.run)
    }

    /// Executes a run until it is over, waits, or is interrupted. A run that was executed before resumes where
    /// it stopped; one that is over gives its outcome again.
    ///
    /// # Errors
    /// When the run cannot be executed; what the flow throws is an outcome.
    pub async fn execute(
        &self,
        run: &RunId,
        observer: Rc<dyn Observer>,
        options: ExecuteOptions,
    ) -> Result<RunOutcome, EngineError> {
        let tree = Rc::new(RunTree::default());
        let main = self.execute_in(run, observer, options, tree.clone());
        tree.accompany(self, main).await
    }

    /// Executes a run and, if it ends, the parents that wait for it. Returns their outcomes, that of the run itself
    /// first.
    ///
    /// # Errors
    /// As of [`Engine::execute`].
    pub async fn execute_with_parents(
        &self,
        run: &RunId,
        observer: Rc<dyn Observer>,
        options: ExecuteOptions,
    ) -> Result<Vec<(RunId, RunOutcome)>, EngineError> {
        let outcome = self.execute(run, observer.clone(), options.clone()).await?;
        let mut outcomes = vec![(run.clone(), outcome)];
        let mut row = self.run_row(run).await?;
        let options = ExecuteOptions {
            by: ClaimBy::Search,
            ..options
        };
        while let Some(parent) = row.parent.clone().filter(|_| row.status.is_final()) {
            row = self.run_row(&parent.run).await?;
            let waits = row.status == RunStatus::Waiting && !row.executing;
            if !waits || !self.can_go_on(&row).await? {
                break;
            }
            match self
                .execute(&row.id, observer.clone(), options.clone())
                .await
            {
                Ok(outcome) => outcomes.push((row.id.clone(), outcome)),
                // Somebody was faster.
                Err(EngineError::Held { .. }) => break,
                Err(error) => return Err(error),
            }
            row = self.run_row(&row.id).await?;
        }
        Ok(outcomes)
    }

    /// Executes one run; its children are left to the tree.
    pub(crate) async fn execute_in(
        &self,
        run: &RunId,
        observer: Rc<dyn Observer>,
        options: ExecuteOptions,
        tree: Rc<RunTree>,
    ) -> Result<RunOutcome, EngineError> {
        let _active = self.activate(run)?;
        // In a box: the frames of what surrounds it stay small.
        let work = Box::pin(execute::execute_run(self, run, observer, options, tree));
        trace::in_span(run, work).await
    }

    /// Executes a run whose lease was taken, as [`Engine::execute`] does. Giving the lease back is left to the caller.
    pub(crate) async fn execute_leased(
        &self,
        taken: &Taken,
        observer: Rc<dyn Observer>,
        options: ExecuteOptions,
    ) -> Result<RunOutcome, EngineError> {
        let run = &taken.row.id;
        let _active = self.activate(run)?;
        let tree = Rc::new(RunTree::default());
        let place = (run, taken.epoch);
        let main = execute::execute_taken(self, place, observer, options, tree.clone());
        let work = Box::pin(tree.accompany(self, main));
        trace::in_span(run, work).await
    }

    /// Replays a run that is over, with every answer from its journal, and compares the end.
    ///
    /// # Errors
    /// When its requests or its end differ from the journal.
    pub async fn verify(&self, run: &RunId) -> Result<(), EngineError> {
        execute::verify(self, run).await
    }

    /// Executes every run that can go on: interrupted ones, and waiting ones whose timer is due or whose wait
    /// was answered.
    ///
    /// # Errors
    /// When the runs cannot be listed. What becomes of each is in the list.
    pub async fn resume_all(
        &self,
        observer: Rc<dyn Observer>,
        options: ExecuteOptions,
    ) -> Result<Vec<(RunId, Result<RunOutcome, EngineError>)>, EngineError> {
        let mut outcomes = Vec::new();
        for run in self.resumable().await? {
            if options.interrupt.is_set() {
                break;
            }
            let outcome = self
                .execute(&run.id, observer.clone(), options.clone())
                .await;
            outcomes.push((run.id, outcome));
        }
        Ok(outcomes)
    }

    /// Returns the runs that can go on and that nobody executes, oldest first.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn resumable(&self) -> Result<Vec<RunRow>, EngineError> {
        let stores = &self.services.stores;
        let now_ms = self.services.clock.now_ms();
        stores.queue.promote(now_ms).await?;
        stores.jobs.expire(now_ms).await?;
        let filter = RunFilter {
            statuses: vec![RunStatus::Running, RunStatus::Waiting],
            ..RunFilter::default()
        };
        let mut runs = stores.runs.list(filter).await?;
        let all = WaitFilter {
            all: true,
            ..WaitFilter::default()
        };
        let waits = stores.waits.list(all).await?;
        let answered = |run: &RunRow| {
            waits
                .iter()
                .any(|wait| wait.run == run.id && wait.state == WaitState::Completed)
        };
        runs.retain(|run| {
            let is_due = run.due_ms.is_some_and(|due| due <= now_ms);
            let can_go_on = run.status == RunStatus::Running || is_due || answered(run);
            let is_flow = run.program != INTERACTIVE;
            !run.executing && !run.held && is_flow && (can_go_on || run.has_cancel_to_deliver())
        });
        runs.reverse();
        Ok(runs)
    }

    /// Tells whether executing a run that is not over would get it further.
    pub(crate) async fn can_go_on(&self, run: &RunRow) -> Result<bool, EngineError> {
        let is_due = run
            .due_ms
            .is_some_and(|due| due <= self.services.clock.now_ms());
        if run.status != RunStatus::Waiting || is_due || run.has_cancel_to_deliver() {
            return Ok(true);
        }
        let filter = WaitFilter {
            run: Some(run.id.clone()),
            all: true,
            ..WaitFilter::default()
        };
        let waits = self.services.stores.waits.list(filter).await?;
        Ok(waits.iter().any(|wait| wait.state == WaitState::Completed))
    }

    /// Cancels a run: its `finally` blocks run. A run that another process executes is asked to cancel.
    ///
    /// # Errors
    /// When it is over already.
    pub async fn cancel(
        &self,
        run: &RunId,
        reason: &str,
        observer: Rc<dyn Observer>,
    ) -> Result<CancelOutcome, EngineError> {
        self.request_cancel(run, reason).await?;
        match self.execute(run, observer, ExecuteOptions::default()).await {
            Ok(RunOutcome::Waiting { .. } | RunOutcome::Stuck { .. }) => {
                Ok(CancelOutcome::Unwinding)
            }
            Ok(_) => Ok(CancelOutcome::Cancelled),
            Err(EngineError::Held { .. }) => Ok(CancelOutcome::Requested),
            Err(error) => Err(error),
        }
    }

    /// Asks a run to cancel. The process that executes it does so, or else a worker.
    ///
    /// # Errors
    /// When it is over already, or in quarantine.
    pub async fn request_cancel(&self, run: &RunId, reason: &str) -> Result<(), EngineError> {
        let row = self.run_row(run).await?;
        refuse_ended(&row)?;
        let (runs, now_ms) = (&self.services.stores.runs, self.now_ms());
        runs.request_cancel(run, reason, now_ms).await?;
        // One that was queued is over.
        self.send_ends(std::slice::from_ref(run), now_ms).await
    }

    /// Terminates a run at once, as [`Engine::terminate`] does. Its children are left to workers.
    ///
    /// # Errors
    /// As of [`Engine::terminate`].
    pub async fn request_end(&self, run: &RunId, reason: &str) -> Result<(), EngineError> {
        let (runs, now_ms) = (&self.services.stores.runs, self.now_ms());
        match runs.terminate(run, reason, now_ms).await? {
            None => Err(EngineError::NoSuchRun {
                run: run.to_string(),
            }),
            Some(status) if status.is_final() => Err(EngineError::Over {
                run: run.to_string(),
                status: status.name(),
            }),
            Some(_) => self.send_ends(std::slice::from_ref(run), now_ms).await,
        }
    }

    /// Releases a run that is on hold, in quarantine or set aside, so that a worker executes it. A run that no process
    /// executes is found by workers anyway.
    ///
    /// # Errors
    /// When it is over already.
    pub async fn request_resume(&self, run: &RunId) -> Result<(), EngineError> {
        let row = self.run_row(run).await?;
        if row.status.is_final() {
            return Err(EngineError::Over {
                run: run.to_string(),
                status: row.status.name(),
            });
        }
        let is_stopped = row.held || row.quarantine.is_some() || row.setback.is_some();
        if row.executing || !is_stopped {
            return Ok(());
        }
        let runs = &self.services.stores.runs;
        match runs.claim(run, ClaimBy::Name, self.now_ms()).await? {
            Claim::Taken { epoch } => Ok(runs.release(run, epoch).await?),
            // The process that holds it executes it.
            Claim::Held { .. } | Claim::Missing | Claim::Quarantined { .. } => Ok(()),
        }
    }

    /// Terminates a run at once: none of its code runs any more, even if another process executes it. Its children end
    /// according to their policies.
    ///
    /// # Errors
    /// When there is no such run, or it is over already.
    pub async fn terminate(
        &self,
        run: &RunId,
        reason: &str,
        observer: Rc<dyn Observer>,
    ) -> Result<(), EngineError> {
        self.request_end(run, reason).await?;
        let runs = &self.services.stores.runs;
        let filter = RunFilter {
            parent: Some(run.clone()),
            ..RunFilter::default()
        };
        for child in runs.list(filter).await? {
            let is_asked = child.cancel_requested.is_some() && !child.status.is_final();
            if is_asked && !child.executing {
                self.execute(&child.id, observer.clone(), ExecuteOptions::default())
                    .await?;
            }
        }
        Ok(())
    }
}

/// Refuses to cancel a run that is over, or that nobody may execute.
fn refuse_ended(row: &RunRow) -> Result<(), EngineError> {
    let run = row.id.to_string();
    if row.status.is_final() {
        return Err(EngineError::Over {
            run,
            status: row.status.name(),
        });
    }
    match row.quarantine.clone() {
        Some(reason) => Err(EngineError::Quarantined { run, reason }),
        None => Ok(()),
    }
}
