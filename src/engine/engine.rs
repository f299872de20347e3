//! The engine's outside: starting runs, executing them, looking at them, answering their waits.

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flowstone_lang::session::Session;
use flowstone_lang::value::Value;

use crate::bindings::Bindings;
use crate::child::CallFlow;
use crate::clock::SystemClock;
use crate::disk;
use crate::error::EngineError;
use crate::execute::{self, ExecuteOptions, RunTree, trace};
use crate::flow::{Checked, LoadedFlow};
use crate::ids::RunId;
use crate::limits::Limits;
use crate::lookup;
use crate::natives::{self, fanout::Fanout};
use crate::observer::Observer;
use crate::outcome::RunOutcome;
use crate::permission::Permissions;
use crate::ports::{
    Claim, ClaimBy, Clock, Durability, Exchanges, NoSecrets, NoTelemetry, NoVault, Random,
    RunFilter, RunRow, RunStatus, Secrets, Stores, SystemRandom, Taken, Telemetry, Vault,
    WaitFilter,
};
use crate::redact::Redactors;
use crate::sessions::Sessions;
use crate::step::{Persist, Services, Step, real_path};
use crate::trace::TraceOrigin;

/// What an engine is made of.
pub struct EngineConfig {
    /// The folder of our own data, `.flowstone`.
    pub home: PathBuf,
    /// The folder that holds the flows.
    pub project_root: PathBuf,
    pub stores: Stores,
    pub steps: Vec<Box<dyn Step>>,
    /// What `:persist` does; without it, `:persist` is an error.
    pub persist: Option<Rc<dyn Persist>>,
    /// Adds to each session what function code may call beside the language's own.
    pub library: fn(&Session),
    pub secrets: Arc<dyn Secrets>,
    /// Encrypts secret inputs of runs.
    pub vault: Arc<dyn Vault>,
    /// Sees the requests of steps before they are sent: records them, or answers them from a recording.
    pub exchanges: Option<Arc<dyn Exchanges>>,
    /// Takes the spans of runs.
    pub telemetry: Arc<dyn Telemetry>,
    /// The project's settings, a map or nil.
    pub settings: Value,
    /// What the flows of the project may touch.
    pub permissions: Arc<Permissions>,
    /// The bindings that new runs store, and that steps outside of runs use. The code that opens the engine has checked
    /// them.
    pub bindings: Bindings,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<dyn Random>,
    pub limits: Limits,
    pub durability: Durability,
}

impl EngineConfig {
    /// Returns a config for tests and benchmarks: the real clock, full durability and the default limits, no settings, no
    /// secrets, and every permission. The home is `.flowstone` in the project.
    pub fn for_tests(project: &Path, stores: Stores, steps: Vec<Box<dyn Step>>) -> EngineConfig {
        EngineConfig {
            home: project.join(".flowstone"),
            project_root: project.to_owned(),
            stores,
            steps,
            persist: None,
            library: |_| {},
            secrets: Arc::new(NoSecrets),
            vault: Arc::new(NoVault),
            exchanges: None,
            telemetry: Arc::new(NoTelemetry),
            settings: Value::Nil,
            permissions: Arc::new(Permissions::everything()),
            bindings: Bindings::default(),
            clock: Arc::new(SystemClock),
            random: Arc::new(SystemRandom),
            limits: Limits::default(),
            durability: Durability::Full,
        }
    }
}

/// How a run starts.
#[derive(Debug, Clone)]
pub struct StartOptions {
    pub input: Value,
    /// Which of `:invocations`; `None`: the default one.
    pub invocation: Option<String>,
    /// A name from outside: starting twice with the same one gives the same run.
    pub external_id: Option<String>,
    /// A worker is to execute it, and not this process.
    pub is_left: bool,
    /// As in [`NewRun::started_by`]; `None`: `manual`.
    pub started_by: Option<String>,
    /// Of those that are queued, higher ones begin first. `None`: what the flow says, or 0.
    pub priority: Option<i64>,
    /// After this long it is unwound, with status `timed-out`.
    pub timeout: Option<Duration>,
    /// A key of `:profiles` in the settings; `None`: the profile of this engine.
    pub profile: Option<String>,
    /// The trace of the caller that starts it.
    pub trace: Option<TraceOrigin>,
}

impl StartOptions {
    /// Starts with an input, by the default contract.
    pub fn with_input(input: Value) -> StartOptions {
        StartOptions {
            input,
            invocation: None,
            external_id: None,
            is_left: false,
            started_by: None,
            priority: None,
            timeout: None,
            profile: None,
            trace: None,
        }
    }
}

/// Runs flows, durably. Lives on one thread, in a current-thread tokio runtime.
pub struct Engine {
    pub(crate) services: Rc<Services>,
    pub(crate) persist: Option<Rc<dyn Persist>>,
    library: fn(&Session),
    pub(crate) limits: Limits,
    pub(crate) durability: Durability,
    /// Without any profile.
    settings: Value,
    pub(crate) bindings: Bindings,
    /// The runs that this engine executes at the moment.
    active: RefCell<HashSet<RunId>>,
    pub(crate) sessions: Sessions,
}

impl Engine {
    pub fn open(config: EngineConfig) -> Engine {
        let bound = config.bindings.apply(&config.settings);
        Engine {
            services: Rc::new(Services {
                steps: with_builtin(config.steps),
                stores: config.stores,
                clock: config.clock,
                random: config.random,
                secrets: config.secrets,
                vault: config.vault,
                redactors: Redactors::default(),
                exchanges: config.exchanges,
                telemetry: config.telemetry,
                project_root: config.project_root,
                home: config.home,
                settings: bound.unwrap_or_else(|_| config.settings.clone()),
                profile: config.bindings.profile.clone(),
                permissions: config.permissions,
                is_outside: false,
            }),
            persist: config.persist,
            library: config.library,
            limits: config.limits,
            durability: config.durability,
            settings: config.settings,
            bindings: config.bindings,
            active: RefCell::default(),
            sessions: Sessions::default(),
        }
    }

    /// Returns what a run with these bindings has, as its row holds them.
    pub(crate) fn services_of(&self, bindings: Option<&str>) -> Result<Rc<Services>, EngineError> {
        let bindings = Bindings::decode(bindings)?;
        if bindings == self.bindings {
            return Ok(self.services.clone());
        }
        Ok(Rc::new(Services {
            settings: bindings.apply(&self.settings)?,
            profile: bindings.profile,
            is_outside: bindings.is_outside,
            ..Services::clone(&self.services)
        }))
    }

    /// Returns the settings without any profile.
    pub(crate) fn unbound_settings(&self) -> &Value {
        &self.settings
    }

    /// Returns what new runs keep of profiles and bindings.
    pub fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// Returns the step types, in the order they were given.
    pub fn steps(&self) -> &[Box<dyn Step>] {
        &self.services.steps
    }

    pub fn stores(&self) -> &Stores {
        &self.services.stores
    }

    /// Returns what one run may take.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the folder of the project.
    pub fn project_root(&self) -> &Path {
        &self.services.project_root
    }

    /// Returns the folder of the project's data.
    pub fn home(&self) -> &Path {
        &self.services.home
    }

    /// Returns a session in which the `flow` namespace is known.
    pub fn session(&self) -> Session {
        let session = Session::new();
        natives::install(&session);
        (self.library)(&session);
        session
    }

    /// Reads a flow file with all that can be known without running it. Places lie in the session's sources.
    pub fn check(&self, session: &Session, path: &Path, name: &str) -> Checked {
        let project = disk::InProject {
            root: &self.services.project_root,
            settings: &self.services.settings,
        };
        let mut checked =
            disk::check_in(session, path, name, (&self.services.steps, Some(project)));
        if let Some(loaded) = &mut checked.loaded {
            let root = real_path(&self.services.project_root);
            loaded.is_outside = !real_path(path).starts_with(root);
        }
        checked
    }

    /// As [`Engine::check`], for a text that is in no file of the project.
    pub fn check_text(&self, session: &Session, text: &str) -> Checked {
        let root = &self.services.project_root;
        disk::check_text(session, text, root, &self.services.steps)
    }

    /// As [`Engine::check`], for a file that is to be run: the next run of it need not read and compile it again.
    pub fn check_to_run(&self, session: &Rc<Session>, path: &Path, name: &str) -> Checked {
        let mut checked = self.check(session, path, name);
        let body = checked.body.take().filter(|_| !checked.has_errors());
        if let (Some(body), Some(loaded)) = (body, &checked.loaded) {
            self.sessions
                .keep(&loaded.program.hash, session, &loaded.flow, body);
        }
        checked
    }

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

    /// Returns the time by the engine's clock.
    pub fn now_ms(&self) -> i64 {
        self.services.clock.now_ms()
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
                .any(|wait| wait.run == run.id && wait.state == crate::ports::WaitState::Completed)
        };
        runs.retain(|run| {
            let is_due = run.due_ms.is_some_and(|due| due <= now_ms);
            let can_go_on = run.status == RunStatus::Running || is_due || answered(run);
            let is_flow = run.program != crate::interactive::PROGRAM;
            !run.executing && !run.held && is_flow && (can_go_on || run.cancel_requested.is_some())
        });
        runs.reverse();
        Ok(runs)
    }

    /// Tells whether executing a run that is not over would get it further.
    pub(crate) async fn can_go_on(&self, run: &RunRow) -> Result<bool, EngineError> {
        let is_due = run
            .due_ms
            .is_some_and(|due| due <= self.services.clock.now_ms());
        if run.status != RunStatus::Waiting || is_due || run.cancel_requested.is_some() {
            return Ok(true);
        }
        let filter = WaitFilter {
            run: Some(run.id.clone()),
            all: true,
            ..WaitFilter::default()
        };
        let waits = self.services.stores.waits.list(filter).await?;
        Ok(waits
            .iter()
            .any(|wait| wait.state == crate::ports::WaitState::Completed))
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

    /// Returns a run.
    ///
    /// # Errors
    /// When there is no such run, or the store cannot be read.
    pub async fn run(&self, run: &RunId) -> Result<RunRow, EngineError> {
        self.run_row(run).await
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

    /// Returns runs, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list_runs(&self, filter: RunFilter) -> Result<Vec<RunRow>, EngineError> {
        Ok(self.services.stores.runs.list(filter).await?)
    }

    /// Returns the project's settings, a map or nil.
    pub fn settings(&self) -> &Value {
        &self.services.settings
    }

    /// Returns what looks secrets up.
    pub fn secrets(&self) -> &dyn Secrets {
        &*self.services.secrets
    }

    /// Returns the flow files of the project.
    pub fn flow_files(&self) -> Vec<PathBuf> {
        disk::files_of(&self.services.project_root)
    }

    /// Finds the run that an id, or the beginning of one, means.
    ///
    /// # Errors
    /// When no run or more than one has this prefix.
    pub async fn find_run(&self, prefix: &str) -> Result<RunRow, EngineError> {
        lookup::find(&self.services.stores, prefix).await
    }

    pub(crate) async fn run_row(&self, run: &RunId) -> Result<RunRow, EngineError> {
        let row = self.services.stores.runs.find(run).await?;
        row.ok_or_else(|| EngineError::NoSuchRun {
            run: run.to_string(),
        })
    }

    pub(crate) fn activate(&self, run: &RunId) -> Result<Active<'_>, EngineError> {
        if !self.active.borrow_mut().insert(run.clone()) {
            return Err(EngineError::Held {
                run: run.to_string(),
                owner: "this one".to_owned(),
            });
        }
        self.services.stores.runs.executes(run, true);
        Ok(Active {
            engine: self,
            run: run.clone(),
        })
    }
}

/// Returns the step types that the engine performs itself.
pub fn builtin() -> Vec<Box<dyn Step>> {
    vec![Box::new(CallFlow), Box::new(Fanout)]
}

/// Adds the engine's own step types where the caller has not.
fn with_builtin(mut steps: Vec<Box<dyn Step>>) -> Rc<[Box<dyn Step>]> {
    for own in builtin() {
        if steps.iter().all(|step| step.spec().kind != own.spec().kind) {
            steps.push(own);
        }
    }
    steps.into()
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

/// The result of requesting a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelOutcome {
    Cancelled,
    /// Another process executes the run and will see it.
    Requested,
    /// What the run does about it has begun, and waits for something.
    Unwinding,
}

/// Keeps a run marked as executed.
pub(crate) struct Active<'a> {
    engine: &'a Engine,
    run: RunId,
}

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.engine.active.borrow_mut().remove(&self.run);
        self.engine.services.stores.runs.executes(&self.run, false);
    }
}
