//! Executing a run: resumes its fiber, performs its requests, journals their outcomes, and resumes it again.
//!
//! Replay is the same loop with answers from the journal. Anything that must be on disk before an effect starts is
//! committed with its intent; results that are cheap to compute again go to the writer without waiting.

mod ask;
mod attempt;
mod branch;
mod branches;
mod call;
mod cancel;
mod child;
mod compensate;
mod deadline;
mod debug;
mod draft;
mod dry_run;
mod end;
mod facts;
mod handles;
mod host;
mod nested;
mod notify;
mod packaged;
mod probe;
mod report;
mod requests;
mod run_tree;
mod tokens;
pub(crate) mod trace;
mod turn;
mod underway;
mod usage;
mod verify;
mod wait;
mod writer;

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use flowstone_lang::fiber::{Exit, Fiber};
use flowstone_lang::session::{Body, Session};
use flowstone_lang::value::{Class, Exception, Result as Evaluated, Stop, Value, free_deferred};
use flowstone_lang::vm::{self, Vm};
use tokio::sync::{Notify, Semaphore};

use crate::asker::Asker;
use crate::codec::{self, CodecError};
use crate::debugger::Debugger;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::feed::LiveObserver;
use crate::flow::{self, name_of};
use crate::ids::RunId;
use crate::journal::{self, History};
use crate::limits::Limits;
use crate::natives::{self, Request, branches::Branches};
use crate::observer::{Observer, RunEvent};
use crate::outcome::RunOutcome;
use crate::ports::{Claim, ClaimBy, Revealed, RunRow, RunStatus, Secret, StoreError};
use crate::redact::{self, RedactedObserver};
use crate::sealed;
use crate::sessions::Prepared;
use crate::spans::{Recorder, RunFacts};
use crate::step::{Cutoff, Scope, Services};
use crate::{Interrupt, SessionUse};

use branch::Branch;
use call::PreparedRequest;
use compensate::When;
pub(crate) use dry_run::{
    Changed, DryRunReport, End as DryRunEnd, Purpose, Script, WholeRequest, dry_run,
};
pub use dry_run::{Difference, NextStep, Resolution};
use end::{Executed, stored_outcome};
pub(crate) use facts::Facts;
use host::{CancelRequests, FlowHost, Shared};
pub(crate) use run_tree::RunTree;
use usage::Usage;
pub(crate) use verify::verify;
pub use wait::Stay;
pub(crate) use writer::JournalWriter;

/// How to execute a run.
#[derive(Debug, Clone, Default)]
pub struct ExecuteOptions {
    pub interrupt: Interrupt,
    pub stay: Stay,
    /// Whether the caller also executes the children of this run: the run only waits for them.
    pub leave_children: bool,
    /// Asks a person for a permission that the flow lacks.
    pub asker: Asker,
    /// Decides about each step of the run before it is performed.
    pub debugger: Debugger,
    /// Runs that may stay in memory for an answer, beside those that `stay` keeps there.
    pub keep_alive: Option<Arc<Semaphore>>,
    /// Whether a person named the run. Does not apply to its children and parents.
    pub by: ClaimBy,
    /// The caller runs a test: without one, a test is cancelled.
    pub is_test: bool,
}

/// The reason why a step has no answer yet, and the execution ends.
#[derive(Debug)]
pub(crate) enum Halt {
    Interrupted,
    Suspended {
        reason: String,
        due_ms: Option<i64>,
    },
    /// The run was cancelled on request; the flow is unwound.
    Cancelled {
        reason: String,
    },
    /// The run reached one of its limits, and ends with this error.
    Limit(Rc<Exception>),
    /// The run used up its instructions or its memory.
    Stopped(Stop),
    Engine(EngineError),
}

impl<E: Into<EngineError>> From<E> for Halt {
    fn from(error: E) -> Self {
        Halt::Engine(error.into())
    }
}

/// The end of the evaluation of a flow.
enum Ended {
    Value(Value),
    Threw(Rc<Exception>),
    Stopped(Stop),
    Interrupted,
    Suspended { reason: String, due_ms: Option<i64> },
}

/// The progress of a request after it was taken.
enum Begun<'d> {
    /// The request is answered.
    Now(Evaluated<Value>),
    /// The journal has the answer.
    Replayed(Box<PreparedRequest<'d>>),
    /// The request is to be performed.
    Live(Box<PreparedRequest<'d>>),
    Branches(Box<Branches>),
    /// Other branches must continue first.
    Turn,
}

/// The answer to a flow, or the reason why the execution ends without one.
pub(crate) type Answer = Result<Evaluated<Value>, Halt>;

pub(crate) async fn execute_run(
    engine: &Engine,
    run: &RunId,
    observer: Rc<dyn Observer>,
    options: ExecuteOptions,
    tree: Rc<RunTree>,
) -> Result<RunOutcome, EngineError> {
    let runs = &engine.services.stores.runs;
    let mut row = engine.run_row(run).await?;
    if row.status == RunStatus::Queued {
        if let Some(outcome) = turn::await_turn(engine, run, &observer, &options).await? {
            return Ok(outcome);
        }
        row = engine.run_row(run).await?;
    }
    let now_ms = engine.services.clock.now_ms();
    if row.status.is_final() {
        return stored_outcome(&row);
    }
    let epoch = epoch_of(runs.claim(run, options.by, now_ms).await?, run)?;
    let outcome = execute_taken(engine, (run, epoch), observer, options, tree).await;
    let released = runs.release(run, epoch).await;
    let outcome = outcome?;
    Ok(released.map(|()| outcome)?)
}

/// Returns the epoch of a lease that was taken, or the reason why it was not taken.
pub(crate) fn epoch_of(claim: Claim, run: &RunId) -> Result<i64, EngineError> {
    let run = run.to_string();
    match claim {
        Claim::Taken { epoch } => Ok(epoch),
        Claim::Quarantined { reason } => Err(EngineError::Quarantined { run, reason }),
        Claim::Held { owner } => Err(EngineError::Held { run, owner }),
        Claim::Missing => Err(EngineError::NoSuchRun { run }),
    }
}

/// Executes a run whose lease is held; the caller releases the lease.
pub(crate) async fn execute_taken(
    engine: &Engine,
    (run, epoch): (&RunId, i64),
    observer: Rc<dyn Observer>,
    options: ExecuteOptions,
    tree: Rc<RunTree>,
) -> Result<RunOutcome, EngineError> {
    // The run may have ended before it was claimed.
    let mut row = crate::left_test::row_to_execute(engine, run, options.is_test).await?;
    if row.status.is_final() {
        return stored_outcome(&row);
    }
    let mut evicted: Option<Rc<SessionUse>> = None;
    loop {
        let prepared = match options.debugger.is_set() {
            true => engine.prepare_noting(&row).await?,
            false => engine.prepare(&row).await?,
        };
        if let Some(evicted) = evicted.take() {
            prepared.usage.follow(&evicted);
        }
        let view = (observer.clone(), options.clone());
        let executor = open_with(engine, &row, epoch, &prepared, view).await;
        let executed = match executor {
            Ok(executor) => {
                let tree = tree.clone();
                (Executor { tree, ..executor }).run().await
            }
            Err(error) => Err(error),
        };
        let usage = prepared.usage.clone();
        // Code that was stopped part-way may have left its session in a partial state.
        match &executed {
            Ok(
                Executed::Over(RunOutcome::Completed(_) | RunOutcome::Waiting { .. })
                | Executed::Again,
            ) if !options.debugger.is_set() => engine.sessions.give_back(&row.program, prepared),
            _ => engine.sessions.retire(&row.program, &prepared),
        }
        match executed {
            // The run needs its own session, and gets one now.
            Ok(Executed::Over(RunOutcome::Interrupted))
                if usage.was_evicted() && !options.interrupt.is_set() =>
            {
                evicted = Some(usage);
                row = engine.run_row(run).await?;
            }
            Ok(Executed::Over(outcome)) => return Ok(outcome),
            Ok(Executed::Again) => row = engine.run_row(run).await?,
            Err(EngineError::Store(StoreError::LeaseLost { run: lost })) => {
                // The run may have been ended from outside.
                row = engine.run_row(run).await?;
                return match row.status.is_final() {
                    true => stored_outcome(&row),
                    false => Err(StoreError::LeaseLost { run: lost }.into()),
                };
            }
            Err(error) => return Err(error),
        }
    }
}

async fn open<'a>(
    engine: &'a Engine,
    row: &RunRow,
    epoch: i64,
    observer: Rc<dyn Observer>,
    options: ExecuteOptions,
) -> Result<Executor<'a>, EngineError> {
    let prepared = engine.prepare_own(row).await?;
    open_with(engine, row, epoch, &prepared, (observer, options)).await
}

/// Prepares an execution with an existing session.
async fn open_with<'a>(
    engine: &'a Engine,
    row: &RunRow,
    epoch: i64,
    prepared: &Prepared,
    (observer, options): (Rc<dyn Observer>, ExecuteOptions),
) -> Result<Executor<'a>, EngineError> {
    let stores = &engine.services.stores;
    let mut entries = stores.journal.load(&row.id).await?;
    let again = match row.status {
        RunStatus::FailedCompensating => journal::retry_compensation(&entries, engine.now_ms()),
        _ => None,
    };
    entries.extend(again.clone());
    let journaled = Usage::size_of(&entries);
    let recorder = Recorder::start(engine, RunFacts::of(row), &entries);
    let history = History::new(entries);
    let (input, secrets) = engine.input_of_row(row)?;
    let place = Place {
        run: row.id.clone(),
        epoch,
        flow: prepared.flow.clone(),
        input,
        secrets,
        session: prepared.session.clone(),
        body: prepared.body.clone(),
        usage: prepared.usage.clone(),
        seed: row.seed,
        cancel: row.cancel_requested.clone(),
        is_waiting: row.status == RunStatus::Waiting,
        facts: Facts::of(row),
        services: engine.services_of(row)?,
    };
    let executor = Executor::new(engine, place, history, observer, options);
    executor.shared.journal.usage().add_journal(journaled);
    executor.shared.journal.record(recorder);
    if let Some(entry) = again {
        executor.shared.journal.append(entry);
    }
    Ok(executor)
}

/// The state of a run when its execution begins.
pub(crate) struct Place {
    pub run: RunId,
    pub epoch: i64,
    pub flow: Rc<flow::Flow>,
    pub input: Value,
    /// The secrets in the input.
    pub secrets: Vec<Secret>,
    pub session: Rc<Session>,
    /// The flow's body, for this session.
    pub body: Rc<Body>,
    pub usage: Rc<SessionUse>,
    pub seed: u64,
    pub cancel: Option<String>,
    pub is_waiting: bool,
    pub facts: Facts,
    pub services: Rc<Services>,
}

/// One execution of one run.
pub(crate) struct Executor<'a> {
    engine: &'a Engine,
    scope: Rc<Scope>,
    body: Rc<Body>,
    shared: Rc<Shared>,
    observer: Rc<dyn Observer>,
    options: ExecuteOptions,
    /// The main branch: the flow itself.
    branch: Rc<Branch>,
    /// Whether concurrent branches are active.
    is_concurrent: Cell<bool>,
    /// Wakes branches that poll.
    polls: Notify,
    /// Whether branches must leave, because the run is interrupted.
    is_leaving: Cell<bool>,
    leaving: Notify,
    /// The reason of a requested cancellation that was not delivered to the flow yet.
    cancel: RefCell<Option<String>>,
    /// The reason of the cancellation that is unwinding the flow.
    cancelling: RefCell<Option<String>>,
    /// Whether the journal records that the cancellation was delivered.
    is_cancel_noted: Cell<bool>,
    /// Whether the run's row has the status of waiting.
    is_waiting: Cell<bool>,
    facts: Facts,
    /// The functions to call if the run does not complete.
    compensations: compensate::Compensations,
    /// Whether compensations are being executed.
    is_compensating: Cell<bool>,
    /// The input of the next pass, once the flow has requested one.
    again: RefCell<Option<String>>,
    /// The locals that the flow has noted for the step that it requests next.
    locals: RefCell<Value>,
    /// The tokens that models have used in this pass: see [`tokens`].
    tokens: Cell<i64>,
    /// Executes the children of this run.
    tree: Rc<RunTree>,
    /// Whether the run is over: a request without an answer in the journal is an error.
    replay_only: bool,
    /// The dry run, if nothing may be performed and the flow is only compared with a journal.
    dry_run: Option<dry_run::DryRun>,
}

impl<'a> Executor<'a> {
    pub(crate) fn new(
        engine: &'a Engine,
        place: Place,
        history: History,
        observer: Rc<dyn Observer>,
        options: ExecuteOptions,
    ) -> Executor<'a> {
        let revealed = Revealed::new(place.services.redactors.clone());
        place.secrets.iter().for_each(|secret| revealed.add(secret));
        let journal = JournalWriter::new(engine, place.run.clone(), place.epoch, revealed.clone());
        let limits = engine.limits.narrowed(&place.flow.starts.run);
        let clock = engine.services.clock.clone();
        let cutoff = Cutoff::new(options.interrupt.clone(), clock, place.usage.clone());
        let shared = Rc::new(Shared::new(history, journal, limits, cutoff.clone()));
        let observer = LiveObserver::over(engine, &place.run, observer);
        let observer = RedactedObserver::new(place.run.clone(), observer, revealed.clone());
        let observer: Rc<dyn Observer> = Rc::new(observer);
        let watcher = observer.clone();
        let run = place.run.clone();
        let scope = Scope {
            run: place.run,
            gate: place.services.gate_of(&place.flow),
            flow: place.flow,
            input: place.input,
            session: place.session,
            services: redact::services(&place.services, &revealed),
            input_secrets: place.secrets,
            trace: place.facts.trace.clone(),
            progress: Rc::new(move |path, progress| {
                let path = path.clone();
                watcher.event(&run, &RunEvent::StepProgress { path, progress });
            }),
            revealed,
            heap: shared.heap.clone(),
            cutoff,
        };
        Executor {
            engine,
            scope: Rc::new(scope),
            body: place.body,
            shared,
            observer,
            options,
            branch: Branch::main(place.seed),
            is_concurrent: Cell::new(false),
            polls: Notify::new(),
            is_leaving: Cell::new(false),
            leaving: Notify::new(),
            cancel: RefCell::new(place.cancel),
            cancelling: RefCell::default(),
            is_cancel_noted: Cell::new(false),
            is_waiting: Cell::new(place.is_waiting),
            facts: place.facts,
            compensations: RefCell::default(),
            is_compensating: Cell::new(false),
            again: RefCell::default(),
            locals: RefCell::new(Value::Nil),
            tokens: Cell::new(0),
            tree: Rc::default(),
            replay_only: false,
            dry_run: None,
        }
    }

    async fn run(self) -> Result<Executed, EngineError> {
        // Observers received this event before the run was evicted.
        if !self.scope.cutoff.follows_eviction() {
            self.emit(&RunEvent::Started {
                flow: self.scope.flow.slug.to_string(),
                replayed: self.shared.history.borrow().finished(),
            });
        }
        self.scope.cutoff.set_deadline(self.facts.deadline_ms);
        self.shared.watch_requests(Some(CancelRequests {
            runs: self.engine.services.stores.runs.clone(),
            run: self.scope.run.clone(),
        }));
        let ended = self.evaluate(self.fiber()).await?;
        self.conclude(ended).await
    }

    /// Prepares the flow's body without evaluating anything.
    fn fiber(&self) -> Fiber {
        let body = self.body.clone();
        self.fiber_of(&self.branch, move |vm| {
            let value = body.eval(vm)?;
            vm.realise(&value)?;
            Ok(value)
        })
    }

    /// Prepares the fiber of a branch.
    fn fiber_of(
        &self,
        branch: &Rc<Branch>,
        body: impl FnOnce(&mut Vm) -> Evaluated<Value> + 'static,
    ) -> Fiber {
        let host = FlowHost::new(
            self.shared.clone(),
            branch.clone(),
            self.scope.run.clone(),
            self.observer.clone(),
            self.scope.cutoff.clone(),
        );
        Fiber::new(&self.scope.session, Box::new(host), body)
    }

    /// Runs the flow as long as its requests can be answered.
    async fn evaluate(&self, fiber: Fiber) -> Result<Ended, EngineError> {
        self.evaluate_on(&self.branch, fiber).await
    }

    /// Runs a branch that has no concurrent branches.
    async fn evaluate_on(
        &self,
        branch: &Rc<Branch>,
        mut fiber: Fiber,
    ) -> Result<Ended, EngineError> {
        let mut answer = Ok(Value::Nil);
        loop {
            self.shared.set_next(None);
            let exit = self.resume(&mut fiber, answer)?;
            if let Some(reason) = self.take_cancel() {
                self.unwind(reason);
            }
            let next = match exit {
                Exit::Done(value) => match self.shared.journal.usage().check_output() {
                    Ok(()) => return Ok(Ended::Value(value)),
                    Err(halt) => Err(halt),
                },
                Exit::Threw(exception) => return Ok(Ended::Threw(exception)),
                Exit::Stopped(Stop::Evicted) => return Ok(Ended::Interrupted),
                Exit::Stopped(stop) => return Ok(Ended::Stopped(stop)),
                Exit::OutOfFuel => self.yield_turn(usize::MAX).await,
                Exit::Step(request) => self.answer_on(branch, request).await,
            };
            // Leaving drops the fiber: its stack is unwound, and no `finally` runs.
            answer = match next {
                Ok(answer) => answer,
                Err(Halt::Cancelled { reason }) => {
                    self.unwind(reason);
                    self.leave_child(branch);
                    Err(Stop::Cancelled.into())
                }
                Err(Halt::Interrupted) => return Ok(Ended::Interrupted),
                Err(Halt::Suspended { reason, due_ms }) => {
                    return Ok(Ended::Suspended { reason, due_ms });
                }
                Err(Halt::Limit(exceeded)) => return Ok(Ended::Threw(exceeded)),
                Err(Halt::Stopped(stop)) => return Ok(Ended::Stopped(stop)),
                Err(Halt::Engine(error)) => return Err(error),
            };
        }
    }

    /// Lets a fiber run until its next exit. Its allocations count towards the run.
    fn resume(&self, fiber: &mut Fiber, answer: Evaluated<Value>) -> Result<Exit, EngineError> {
        free_deferred();
        let turn = || self.shared.heap.within(|| fiber.resume(answer));
        catch_unwind(AssertUnwindSafe(turn))
            .map_err(|panic| EngineError::Internal(panic_message(&*panic)))
    }

    /// Decodes a value of the journal; it counts towards the run's memory.
    pub(crate) fn decode(&self, text: &str) -> Result<Value, EngineError> {
        let decode = || codec::decode(text);
        self.shared.heap.within(decode).map_err(EngineError::from)
    }

    /// Commits pending entries when no further step will.
    pub(crate) async fn settle_now(&self) -> Result<(), EngineError> {
        self.shared.journal.commit(Vec::new()).await?;
        Ok(())
    }

    /// Allows the code of functions to run again, after an interrupt that is over or a limit that ended an evaluation.
    pub(crate) fn forget_cut(&self) {
        self.scope.cutoff.forget();
        self.scope.cutoff.renew_instructions(self.limits().fuel);
    }

    /// Returns the limits of the run.
    pub(super) fn limits(&self) -> Limits {
        self.shared.journal.usage().limits()
    }

    pub(crate) fn epoch(&self) -> i64 {
        self.shared.journal.epoch()
    }

    /// Sets the epoch of a lease that was acquired after the start.
    pub(crate) fn set_epoch(&self, epoch: i64) {
        self.shared.journal.set_epoch(epoch);
    }

    pub(crate) fn tree(&self) -> &Rc<RunTree> {
        &self.tree
    }

    pub(crate) fn emit(&self, event: &RunEvent) {
        let redactor = self.scope.revealed.redactor();
        match redactor.is_empty() {
            true => trace::event(event),
            false => trace::event(&redact::event(&redactor, event)),
        }
        self.observer.event(&self.scope.run, event);
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.engine.services.clock.now_ms()
    }

    /// Yields between two quanta of a long computation: flushes finished entries, lets other tasks run, and checks for
    /// cancellation. `next`: the place of the next answer in the journal for another branch.
    async fn yield_turn(&self, next: usize) -> Answer {
        self.shared.count_check();
        self.shared.journal.post()?;
        tokio::task::yield_now().await;
        self.shared.journal.usage().check()?;
        self.check_interrupt()?;
        self.poll_cancel_at(next).await?;
        Ok(Ok(Value::Nil))
    }

    /// Leaves if the run is to be suspended. Checked before every step and every attempt, so that a flow that never
    /// waits is suspended as soon as one that does.
    pub(super) fn check_interrupt(&self) -> Result<(), Halt> {
        match self.options.interrupt.is_set() {
            true => Err(Halt::Interrupted),
            false => Ok(()),
        }
    }

    /// Answers the requests of the main branch.
    pub(crate) async fn answer(&self, request: vm::Request) -> Answer {
        self.answer_on(&self.branch, request).await
    }

    async fn answer_on(&self, branch: &Rc<Branch>, request: vm::Request) -> Answer {
        let answer = self.answer_request(branch, request).await;
        self.check_cut()?;
        answer
    }

    async fn answer_request(&self, branch: &Rc<Branch>, request: vm::Request) -> Answer {
        match self.begin(branch, request)? {
            Begun::Now(answer) => Ok(answer),
            Begun::Replayed(prepared) => {
                self.check_interrupt()?;
                self.check_recorded_cancel(prepared.recorded.place)?;
                match self.dry_run {
                    Some(_) => self.live(prepared).await,
                    None => self.replay(&prepared),
                }
            }
            Begun::Live(prepared) => {
                self.check_interrupt()?;
                self.check_recorded_cancel(usize::MAX)?;
                self.check_cancel()?;
                if self.replay_only {
                    return Err(self.unfinished(&prepared.call).into());
                }
                self.live(prepared).await
            }
            // There are no other branches beside the main branch.
            Begun::Turn => Ok(Ok(Value::Bool(false))),
            // Boxed, because few runs need the memory for it.
            Begun::Branches(asked) => Box::pin(self.side_by_side(branch, *asked)).await,
        }
    }

    /// Takes a request, and answers it if nothing has to be awaited.
    fn begin(&self, branch: &Rc<Branch>, request: vm::Request) -> Result<Begun<'_>, Halt> {
        self.shared.journal.usage().check()?;
        let Ok(request) = request.take::<Request>() else {
            return Ok(Begun::Now(Err(Exception::new(
                Class::UNSUPPORTED_OPERATION,
                "E0517",
                "this cannot be asked of a flow",
            )
            .into())));
        };
        Ok(Begun::Now(match request {
            Request::Step {
                kind,
                id,
                config,
                place,
            } => return self.begin_step(branch, (&kind, &id), &config, place),
            Request::Locals { values } => {
                self.locals.replace(values);
                Ok(Value::Nil)
            }
            Request::Branches(asked) => match self.check_names(&asked) {
                Ok(()) => return Ok(Begun::Branches(asked)),
                Err(finding) => Err(natives::exception(finding).into()),
            },
            Request::Turn => return Ok(Begun::Turn),
            Request::Input => Ok(self.input()),
            Request::Now => Ok(Value::Int(self.shared.now_ms(branch))),
            Request::Uuid => Ok(branch.uuid(&self.shared.history.borrow())),
            Request::Rand => Ok(branch.fraction(&self.shared.history.borrow())),
            Request::SlotBound { slot } => Ok(self.slot_bound(branch, &slot)),
            Request::Log {
                level,
                message,
                data,
            } => self.log(branch, &level, &message, data),
            Request::Emit { name, data } => self.emitted(branch, &name, data),
            Request::Compensate { value, function } => match self.refuse_register() {
                Some(exception) => Err(exception.into()),
                None => {
                    self.register(branch, When::Compensated, function, Some(value.clone()));
                    Ok(value)
                }
            },
            Request::OnCancel { function } => match self.refuse_register() {
                Some(exception) => Err(exception.into()),
                None => {
                    self.register(branch, When::Cancelled, function, None);
                    Ok(Value::Nil)
                }
            },
            Request::ContinueAsNew { input } => self.continue_as_new(branch, &input),
        }))
    }

    /// Unwinds the flow, so that its next pass begins.
    fn continue_as_new(&self, branch: &Branch, input: &Value) -> Evaluated<Value> {
        if self.facts.is_prompt {
            return Err(compensate::at_prompt().into());
        }
        if !branch.is_body() || self.is_compensating.get() {
            return Err(Exception::new(
                Class::ILLEGAL_STATE,
                "E0450",
                "`flow/continue-as-new` ends a pass of the whole run: it cannot be called in a branch",
            )
            .hint("return what the next pass needs from the branch, and call it after that")
            .into());
        }
        let invocation = self.facts.invocation.as_deref();
        let input = flow::coerce_input(&self.scope.flow, invocation, &self.with_setup(input));
        let input = input.map_err(|error| {
            let message = format!("the next pass cannot begin: {error}");
            Exception::new(Class::ILLEGAL_ARGUMENT, error.code(), message).hint(error.hint())
        })?;
        let contract = (&*self.scope.flow, invocation);
        let vault = &*self.scope.services.vault;
        let known = self.scope.revealed.redactor();
        let text = sealed::seal(vault, contract, &input, &known).map_err(|error| {
            let message = format!("the input of the next pass cannot be stored: {error}");
            Exception::new(Class::ILLEGAL_ARGUMENT, error.code(), message)
        })?;
        self.again.replace(Some(text));
        Err(Stop::Cancelled.into())
    }

    /// Adds the values of this pass's setup forms to the input of the next one.
    fn with_setup(&self, input: &Value) -> Value {
        let key = Value::keyword(flow::ACTIVATION);
        let values = self.scope.input.as_map().and_then(|map| map.get(&key));
        match (input.as_map(), values) {
            (Some(map), Some(values)) if map.get(&key).is_none() => {
                let given = map.iter().map(|(key, value)| (key.clone(), value.clone()));
                Value::map(given.chain([(key, values.clone())]))
            }
            _ => input.clone(),
        }
    }

    fn input(&self) -> Value {
        let Value::Map(map) = &self.scope.input else {
            return self.scope.input.clone();
        };
        let mut entries = map.entries().clone();
        entries.insert(Value::keyword("flow/ctx"), self.scope.flow_context());
        Value::Map(Rc::new(flowstone_lang::value::Map::new(entries)))
    }

    fn slot_bound(&self, branch: &Branch, slot: &Value) -> Value {
        let name = name_of(slot).unwrap_or_default();
        let bound = self.shared.note(branch, "flow/slot-bound", || {
            let settings = &self.scope.services.settings;
            let declared = ["bindings", "connections"].iter();
            let mut declared = declared.filter_map(|key| settings.get(key)?.get(&name).cloned());
            Value::Bool(declared.any(|it| !it.is_nil()))
        });
        bound.unwrap_or(Value::Bool(false))
    }
}

fn unstorable(error: &CodecError) -> String {
    format!("the result of the flow cannot be stored: {error}")
}

pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    format!("a panic: {}", text.unwrap_or("without words"))
}
