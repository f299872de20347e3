//! Runs of kind test: a flow is run once, headless, and its journal is read as evidence.
//!
//! A test acts like any run, but it takes no part in the flow's `:concurrency`, `:limits` and names, every run that it starts
//! is a test too, and it belongs to its caller: nothing of it continues once the caller has what it wants or is gone. What a
//! run shows is read before it is ended, so the evidence has no step that ending it caused.

mod evidence;

use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

use flowstone_lang::value::Value;

pub use self::evidence::{Evidence, ModelEvidence, ToolEvidence};
use crate::Interrupt;
use crate::bindings::{Bindings, TestMode};
use crate::engine::{Engine, StartOptions};
use crate::error::EngineError;
use crate::execute::{ExecuteOptions, Stay};
use crate::flow::LoadedFlow;
use crate::ids::RunId;
use crate::left_test::INTERRUPTED;
use crate::observer::Observer;
use crate::outcome::RunOutcome;
use crate::ports::{
    Admission, RunFilter, RunQuery, RunRow, RunStatus, RunSummary, StartRules, Stores,
};
use crate::trace::TraceOrigin;

/// Why a test is cancelled that has shown what it does.
pub const OVER: &str = "test_over";
/// [`crate::ports::NewRun::started_by`] of a test.
pub const STARTED_BY: &str = "test";
/// Maximum number of tests at a time in a project; a flow has one.
pub const MOST_AT_ONCE: usize = 4;
/// The longest time that a test may take.
pub const LONGEST: Duration = Duration::from_secs(120);

/// How long a cancelled test may clean up before it is terminated.
const CLEANING: Duration = Duration::from_secs(5);
/// How long the work of a terminated test may take to notice that.
const LEAVING: Duration = Duration::from_secs(1);
/// A test that has not changed for this long has no caller any more.
const ABANDONED_MS: i64 = 180_000;
/// The statuses of a run that is not over.
const OPEN: [RunStatus; 4] = [
    RunStatus::FailedCompensating,
    RunStatus::Queued,
    RunStatus::Running,
    RunStatus::Waiting,
];

/// What a test is started with.
#[derive(Debug, Clone)]
pub struct TestStart {
    pub input: Value,
    pub mode: TestMode,
    /// The trace of the caller, which the trace of the test refers to.
    pub trace: Option<TraceOrigin>,
    /// Maximum duration.
    pub limit: Duration,
    /// Set when the caller is gone.
    pub stop: Interrupt,
}

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TestEnd {
    Completed,
    /// The run failed: the code, which may be empty, and the message of its error.
    Failed {
        code: String,
        message: String,
    },
    /// The run waits for an answer from outside.
    Paused,
    /// The test took longer than its limit.
    TimedOut,
    /// The caller is gone, or the process is stopping.
    Stopped,
    /// Someone else ended the run.
    EndedByOthers {
        reason: String,
    },
}

/// A test that was run.
#[derive(Debug, Clone)]
pub struct TestRun {
    pub row: RunRow,
    pub end: TestEnd,
    pub evidence: Evidence,
}

/// The reason why a test was not started.
#[derive(Debug)]
pub enum TestRefusal {
    /// A test of the flow is running.
    Busy { run: RunId },
    /// [`MOST_AT_ONCE`] tests are running.
    TooMany,
    /// The flow does not take the input, or a store failed. Nothing was run, unless a store failed later.
    Engine(EngineError),
}

impl<E: Into<EngineError>> From<E> for TestRefusal {
    fn from(error: E) -> TestRefusal {
        TestRefusal::Engine(error.into())
    }
}

impl Engine {
    /// Runs a flow as a test until it is over, waits for an answer, or its time is over; reads what it did; and ends it. `stop`
    /// ends it early, with what the run has to clean up. If the future is dropped, the run is terminated.
    ///
    /// # Errors
    /// When the test is not started, or a store fails.
    pub async fn run_test(
        &self,
        loaded: &LoadedFlow,
        start: TestStart,
        observer: Rc<dyn Observer>,
    ) -> Result<TestRun, TestRefusal> {
        self.interrupt_left_tests().await?;
        let slug = loaded.flow.slug.to_string();
        self.refuse_more_tests(&slug, None).await?;
        let run = self.add_test(loaded, &start).await?;
        // The layer lasts from the first run of the test to the last one.
        let scratch = match start.mode {
            TestMode::Dry => self.scratch_of(&run).map(Some),
            TestMode::Live => Ok(None),
        };
        let _scratch = match scratch {
            Ok(scratch) => scratch,
            Err(error) => {
                self.request_end(&run, INTERRUPTED).await?;
                return Err(error.into());
            }
        };
        // Another process may have passed the same check meanwhile.
        if let Err(refusal) = self.refuse_more_tests(&slug, Some(&run)).await {
            self.request_end(&run, INTERRUPTED).await?;
            return Err(refusal);
        }
        let mut left = Left {
            engine: self,
            run: Some(run.clone()),
        };
        let end = self.execute_test(&run, &start, observer.clone()).await;
        let evidence = match &end {
            Ok(_) => self.evidence_of(&run).await,
            Err(_) => Ok(Evidence::default()),
        };
        let reason = match &end {
            Ok(TestEnd::TimedOut | TestEnd::Stopped) | Err(_) => INTERRUPTED,
            Ok(_) => OVER,
        };
        self.end_test(&run, reason, observer).await?;
        left.run = None;
        Ok(TestRun {
            row: self.run_row(&run).await?,
            end: end?,
            evidence: evidence?,
        })
    }

    async fn add_test(&self, loaded: &LoadedFlow, start: &TestStart) -> Result<RunId, EngineError> {
        let options = StartOptions {
            started_by: Some(STARTED_BY.to_owned()),
            trace: start.trace,
            ..StartOptions::with_input(start.input.clone())
        };
        let (mut run, _) = self.new_run(loaded, options)?;
        let bindings = Bindings {
            test: Some(start.mode),
            ..self.bindings_of(loaded)
        };
        run.bindings = bindings.encode();
        let queue = &self.services.stores.queue;
        match queue.admit(run, StartRules::default()).await? {
            Admission::Admitted { run, .. } => Ok(run),
            Admission::Taken { .. } | Admission::WaitsForCaller { .. } => Err(
                EngineError::Internal("a start without rules was refused".to_owned()),
            ),
        }
    }

    async fn execute_test(
        &self,
        run: &RunId,
        start: &TestStart,
        observer: Rc<dyn Observer>,
    ) -> Result<TestEnd, EngineError> {
        let options = ExecuteOptions {
            stay: Stay::Sleeps,
            is_test: true,
            ..ExecuteOptions::default()
        };
        let mut executing = pin!(self.execute(run, observer, options));
        let ended = tokio::select! {
            biased;
            outcome = &mut executing => return Ok(end_of(outcome?)),
            () = start.stop.wait() => TestEnd::Stopped,
            () = tokio::time::sleep(start.limit) => TestEnd::TimedOut,
        };
        self.stop_executing(run, executing).await?;
        Ok(ended)
    }

    /// Cancels a run that is being executed here, and terminates it if it does not end soon. The execution may be dropped
    /// afterwards: its lease is void.
    async fn stop_executing<T>(
        &self,
        run: &RunId,
        mut executing: impl Future<Output = T> + Unpin,
    ) -> Result<(), EngineError> {
        or_over(self.request_cancel(run, INTERRUPTED).await)?;
        if tokio::time::timeout(CLEANING, &mut executing).await.is_ok() {
            return Ok(());
        }
        or_over(self.request_end(run, INTERRUPTED).await)?;
        let _ = tokio::time::timeout(LEAVING, &mut executing).await;
        Ok(())
    }

    /// Ends a test with all runs below it. Their waits are closed, and what was registered for a run that does not complete is
    /// performed.
    async fn end_test(
        &self,
        run: &RunId,
        reason: &str,
        observer: Rc<dyn Observer>,
    ) -> Result<(), EngineError> {
        if !self.run_row(run).await?.status.is_final() {
            or_over(self.request_cancel(run, reason).await)?;
            let options = ExecuteOptions {
                stay: Stay::Sleeps,
                is_test: true,
                ..ExecuteOptions::default()
            };
            let executing = self.execute(run, observer, options);
            // What fails here is ended below.
            let _ = tokio::time::timeout(CLEANING, executing).await;
        }
        let mut left = vec![run.clone()];
        while let Some(run) = left.pop() {
            if !self.run_row(&run).await?.status.is_final() {
                or_over(self.request_end(&run, reason).await)?;
            }
            let children = self.services.stores.runs.list(children_of(&run)).await?;
            left.extend(children.into_iter().map(|row| row.id));
        }
        Ok(())
    }

    /// Refuses a test beside the tests that are running, or, once it was added, beside those that were added before.
    async fn refuse_more_tests(&self, flow: &str, own: Option<&RunId>) -> Result<(), TestRefusal> {
        let mut others = open_tests(&self.services.stores).await?;
        others.retain(|row| own.is_none_or(|own| row.id.as_str() < own.as_str()));
        if let Some(other) = others.iter().find(|row| row.flow == flow) {
            let run = other.id.clone();
            return Err(TestRefusal::Busy { run });
        }
        match others.len() < MOST_AT_ONCE {
            true => Ok(()),
            false => Err(TestRefusal::TooMany),
        }
    }

    /// Asks tests to cancel that have been left by their callers: the process ended while they waited. Removes what their
    /// scratch layers have left.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub async fn interrupt_left_tests(&self) -> Result<(), EngineError> {
        self.remove_left_scratches();
        let latest_ms = self.now_ms() - ABANDONED_MS;
        for row in open_tests(&self.services.stores).await? {
            if row.executing || row.updated_ms > latest_ms {
                continue;
            }
            match self.request_cancel(&row.id, INTERRUPTED).await {
                Err(EngineError::Quarantined { .. }) => {
                    or_over(self.request_end(&row.id, INTERRUPTED).await)?;
                }
                asked => or_over(asked)?,
            }
        }
        Ok(())
    }
}

/// A test whose caller may go away: a step that is cancelled, or whose time is over, drops the test that it runs.
struct Left<'a> {
    engine: &'a Engine,
    /// The run, until it has ended.
    run: Option<RunId>,
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        let Some(run) = self.run.take() else {
            return;
        };
        let (runs, now_ms) = (&self.engine.services.stores.runs, self.engine.now_ms());
        // The first poll hands the change to the store, and nobody waits for its answer.
        let mut ending = pin!(runs.terminate(&run, INTERRUPTED, now_ms));
        let _ = ending
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
    }
}

/// Returns the tests that are not over and that nobody has asked to cancel.
async fn open_tests(stores: &Stores) -> Result<Vec<RunSummary>, EngineError> {
    let query = RunQuery {
        statuses: OPEN.to_vec(),
        started_by: Some(STARTED_BY.to_owned()),
        ..RunQuery::default()
    };
    let mut tests = stores.runs.summaries(query).await?;
    tests.retain(|row| row.parent.is_none() && !row.is_cancel_requested);
    Ok(tests)
}

fn children_of(run: &RunId) -> RunFilter {
    RunFilter {
        parent: Some(run.clone()),
        ..RunFilter::default()
    }
}

/// Accepts that a run is over already.
fn or_over(asked: Result<(), EngineError>) -> Result<(), EngineError> {
    match asked {
        Err(EngineError::Over { .. }) => Ok(()),
        asked => asked,
    }
}

fn end_of(outcome: RunOutcome) -> TestEnd {
    match outcome {
        RunOutcome::Completed(_) => TestEnd::Completed,
        RunOutcome::Failed(failure) => TestEnd::Failed {
            code: failure.exception.code.to_owned(),
            message: failure.exception.display_text().to_owned(),
        },
        RunOutcome::Waiting { .. } => TestEnd::Paused,
        RunOutcome::Cancelled { reason, .. } => TestEnd::EndedByOthers { reason },
        RunOutcome::Stuck { reason } => TestEnd::Failed {
            code: String::new(),
            message: format!("a compensation failed: {reason}"),
        },
        RunOutcome::Queued { .. } | RunOutcome::Interrupted => TestEnd::Stopped,
    }
}
