//! Steps at a prompt: an ad-hoc run that begins with the first step and ends with the prompt.
//!
//! What is evaluated there is not replayed, so nothing is answered from the journal; what steps did is journaled
//! like in any run, and can be looked at.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use flowstone_lang::fiber::{Exit, Fiber};
use flowstone_lang::session::{Body, Session};
use flowstone_lang::value::{Class, Exception, Result as Evaluated, Signal, Stop, Value};
use flowstone_lang::vm::{Host, Request, Vm};
use tracing::Instrument;

use crate::Interrupt;
use crate::SessionUse;
use crate::asker::Asker;
use crate::debugger::Debugger;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::execute::trace;
use crate::execute::{ExecuteOptions, Executor, Facts, Halt, Place, Stay, panic_message};
use crate::flow::{ENGINE_ABI, Flow};
use crate::ids::RunId;
use crate::journal::History;
use crate::natives;
use crate::observer::Observer;
use crate::ports::{Claim, ClaimBy, NewRun, Program, RunStatus};
use crate::sessions::INTERACTIVE;
use crate::step::LocalFuture;

/// Answers the requests of a prompt that no flow can make, such as to run a flow.
pub trait Desk {
    /// Answers a request.
    ///
    /// # Errors
    /// The request itself, if it is not one of the desk's own.
    fn answer(&self, request: Request) -> Result<LocalFuture<'_, Evaluated<Value>>, Request>;

    /// Asks a person the questions that steps of the prompt's run wait for. Completes when the person leaves one.
    fn questions(&self) -> LocalFuture<'_, ()>;
}

/// A prompt's way to steps.
pub struct Interactive<'a> {
    engine: &'a Engine,
    session: Rc<Session>,
    run: RunId,
    seed: u64,
    executor: Executor<'a>,
    is_created: Cell<bool>,
}

impl Engine {
    /// Makes steps work in a session: at a prompt. Waits are waited for in the process.
    pub fn interactive(
        &self,
        session: Rc<Session>,
        observer: Rc<dyn Observer>,
        interrupt: Interrupt,
    ) -> Interactive<'_> {
        natives::install(&session);
        let run = RunId::new(self.services.clock.now_ms(), self.services.random.next());
        let seed = self.services.random.next();
        let place = Place {
            services: self.services.clone(),
            run: run.clone(),
            epoch: 0,
            flow: Rc::new(Flow::bare("repl", Value::Nil)),
            input: Value::map([]),
            secrets: Vec::new(),
            session: session.clone(),
            body: Rc::new(Body::new(&Value::Nil)),
            usage: SessionUse::own(),
            seed,
            cancel: None,
            is_waiting: false,
            facts: Facts {
                is_prompt: true,
                ..Facts::default()
            },
        };
        let options = ExecuteOptions {
            interrupt,
            stay: Stay::Always,
            leave_children: false,
            asker: Asker::default(),
            by: ClaimBy::Search,
            debugger: Debugger::default(),
            keep_alive: None,
            is_test: false,
        };
        Interactive {
            engine: self,
            session,
            run,
            seed,
            executor: Executor::new(self, place, History::default(), observer, options),
            is_created: Cell::new(false),
        }
    }
}

impl Interactive<'_> {
    /// Returns the id under which steps are journaled; there is no such run before the first.
    pub fn run_id(&self) -> &RunId {
        &self.run
    }

    /// Evaluates something that may use steps and the operations of `desk`. `host` answers everything else.
    ///
    /// # Errors
    /// What it throws; the engine's own errors come as exceptions with their code.
    pub async fn eval(
        &self,
        host: Box<dyn Host>,
        desk: &dyn Desk,
        body: impl FnOnce(&mut Vm) -> Evaluated<Value> + 'static,
    ) -> Evaluated<Value> {
        let mut fiber = Fiber::new(&self.session, host, body);
        let mut answer = Ok(Value::Nil);
        loop {
            let exit = catch_unwind(AssertUnwindSafe(|| fiber.resume(answer)));
            let exit =
                exit.map_err(|panic| thrown(&EngineError::Internal(panic_message(&*panic))))?;
            answer = match exit {
                Exit::Done(value) => return Ok(value),
                Exit::Threw(exception) => return Err(Signal::Throw(exception)),
                Exit::Stopped(stop) => return Err(stop.into()),
                Exit::OutOfFuel => {
                    tokio::task::yield_now().await;
                    Ok(Value::Nil)
                }
                Exit::Step(request) => match desk.answer(request) {
                    Ok(answer) => answer.await,
                    Err(request) => self.answer(desk, request).await,
                },
            };
        }
    }

    async fn answer(&self, desk: &dyn Desk, request: Request) -> Evaluated<Value> {
        let span = trace::span(&self.run);
        Box::pin(self.answer_in_run(desk, request))
            .instrument(span)
            .await
    }

    async fn answer_in_run(&self, desk: &dyn Desk, request: Request) -> Evaluated<Value> {
        self.create().await.map_err(|error| thrown(&error))?;
        let answering = self.executor.answer(request);
        let answering = self.executor.tree().accompany(self.engine, answering);
        let answer = tokio::select! {
            biased;
            answer = answering => answer,
            () = desk.questions() => Err(Halt::Interrupted),
        };
        match answer {
            Ok(answer) => {
                let written = self.executor.settle_now().await;
                written.map_err(|error| thrown(&error))?;
                answer
            }
            Err(Halt::Engine(error)) => Err(thrown(&error)),
            Err(Halt::Interrupted) => {
                self.executor.forget_cut();
                Err(Stop::Interrupted("interrupted".to_owned()).into())
            }
            Err(Halt::Cancelled { .. }) => Err(Stop::Cancelled.into()),
            Err(Halt::Limit(exceeded)) => Err(Signal::Throw(exceeded)),
            Err(Halt::Stopped(stop)) => {
                self.executor.forget_cut();
                Err(stop.into())
            }
            Err(Halt::Suspended { reason, .. }) => Err(thrown(&EngineError::Internal(format!(
                "cannot wait here: {reason}"
            )))),
        }
    }

    /// Adds the run, before its first step.
    async fn create(&self) -> Result<(), EngineError> {
        if self.is_created.replace(true) {
            return Ok(());
        }
        let services = &self.engine.services;
        let now_ms = services.clock.now_ms();
        let run = NewRun {
            id: self.run.clone(),
            external_id: None,
            program: Program {
                hash: INTERACTIVE.to_owned(),
                source: "{}".to_owned(),
                engine_abi: ENGINE_ABI,
            },
            flow: "repl".to_owned(),
            input: "{}".to_owned(),
            seed: self.seed,
            now_ms,
            invocation: None,
            key: None,
            priority: 0,
            bindings: self.engine.bindings.encode(),
            started_by: "prompt".to_owned(),
            origin: None,
            parent: None,
            trace: None,
            version: None,
            deadline_ms: None,
            is_taken: true,
        };
        services.stores.runs.create(run).await?;
        let runs = &services.stores.runs;
        match runs.claim(&self.run, ClaimBy::Search, now_ms).await? {
            Claim::Taken { epoch } => {
                self.executor.set_epoch(epoch);
                Ok(())
            }
            Claim::Held { .. } | Claim::Quarantined { .. } | Claim::Missing => Err(
                EngineError::Internal("a new run cannot be claimed".to_owned()),
            ),
        }
    }

    /// Ends the run, if a step began it.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn finish(&self) -> Result<(), EngineError> {
        if !self.is_created.replace(false) {
            return Ok(());
        }
        self.executor
            .end(RunStatus::Completed, Some("nil".to_owned()), None)
            .await?;
        let runs = &self.engine.services.stores.runs;
        runs.release(&self.run, self.executor.epoch()).await?;
        Ok(())
    }
}

/// Returns an error of the engine as the exception that a prompt throws.
pub fn thrown(error: &EngineError) -> Signal {
    let exception = Exception::new(Class::EXCEPTION, error.code(), error.to_string());
    match error.hint() {
        Some(hint) => exception.hint(hint),
        None => exception,
    }
    .into()
}
