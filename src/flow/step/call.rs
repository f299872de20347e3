//! Calls of flow functions outside the flow's own evaluation: `:function`, hooks, `:expect {:fn ...}`.
//!
//! Each call has its own machine in the run's session. It cannot reach a step, a clock or randomness, because it is
//! computed again on replay.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use flowstone_lang::fiber::{Exit, Fiber};
use flowstone_lang::value::heap::HeapBudget;
use flowstone_lang::value::meter::Watch;
use flowstone_lang::value::{Class, Exception, Result as Evaluated, Signal, Stop, Value};
use flowstone_lang::vm::{Host, Request, Stream};

use super::StepError;
use super::context::Scope;
use crate::interrupt::Interrupt;
use crate::ports::{Clock, Revealed};
use crate::session_use::SessionUse;

/// Maximum duration of one call.
const PATIENCE: Duration = Duration::from_secs(60);
const QUANTUM: u32 = 100_000;
/// The first grant of instructions, which every call pays in full. Each further grant is twice as large, up to
/// [`QUANTUM`].
const FIRST_QUANTUM: u32 = 1_000;
/// The time that a function may still run after its run was asked to suspend, so that short functions can finish.
const GRACE: Duration = Duration::from_millis(50);

/// Stops the code of functions when their run is to be suspended, or when it meets a limit. Their results are not needed
/// then: the caller ends, and calls them again if the run resumes. The flow and its functions share the instructions of
/// the run, which are counted here.
#[derive(Clone, Default)]
pub struct Cutoff {
    interrupt: Interrupt,
    /// The instant at which the run is cancelled; `None` also while the run is unwound.
    deadline_ms: Rc<Cell<Option<i64>>>,
    clock: Option<Arc<dyn Clock>>,
    cut: Rc<RefCell<Option<Cut>>>,
    /// The instructions that the run has left; `None` if they are not limited.
    instructions: Rc<Cell<Option<u64>>>,
    /// `None` if the session is not shared.
    usage: Option<Rc<SessionUse>>,
}

impl Cutoff {
    pub fn new(interrupt: Interrupt, clock: Arc<dyn Clock>, usage: Rc<SessionUse>) -> Cutoff {
        Cutoff {
            interrupt,
            deadline_ms: Rc::default(),
            clock: Some(clock),
            cut: Rc::default(),
            instructions: Rc::default(),
            usage: Some(usage),
        }
    }

    /// Sets the instant at which the run is cancelled.
    pub fn set_deadline(&self, deadline_ms: Option<i64>) {
        self.deadline_ms.set(deadline_ms);
    }

    /// Removes the deadline: the run is unwound, and its code may run again.
    pub fn unwind(&self) {
        self.deadline_ms.set(None);
        if self.cut() == Some(Cut::Late) {
            self.forget();
        }
    }

    /// Tells whether the run is to be suspended.
    pub fn is_suspended(&self) -> bool {
        self.interrupt.is_set()
    }

    /// Tells whether the deadline of the run has passed.
    pub fn is_late(&self) -> bool {
        match (self.deadline_ms.get(), &self.clock) {
            (Some(deadline_ms), Some(clock)) => deadline_ms <= clock.now_ms(),
            _ => false,
        }
    }

    /// Called before code of the run changes state that all users of its session share.
    pub fn touch_session(&self) -> Evaluated<(), Stop> {
        let touched = self.usage.as_ref().map_or(Ok(()), |usage| usage.touch());
        if touched.is_err() {
            self.cut_by(Cut::Suspended);
        }
        touched
    }

    /// Tells whether the run was evicted from another session before.
    pub fn follows_eviction(&self) -> bool {
        let usage = self.usage.as_ref();
        usage.is_some_and(|usage| usage.follows_eviction())
    }

    /// Counts a text that the run prints. Returns false if it was printed before.
    pub fn note_printed(&self) -> bool {
        self.usage.as_ref().is_none_or(|usage| usage.note_printed())
    }

    /// Returns the reason for which a function was stopped early, if one was.
    pub fn cut(&self) -> Option<Cut> {
        self.cut.borrow().clone()
    }

    pub fn forget(&self) {
        self.cut.replace(None);
    }

    /// Sets the number of instructions that the run has left, and lets code run again that met a limit.
    pub fn renew_instructions(&self, instructions: u64) {
        self.instructions.set(Some(instructions));
        if matches!(self.cut(), Some(Cut::Limit(_))) {
            self.forget();
        }
    }

    /// Takes instructions from those that the run has left.
    ///
    /// # Errors
    /// [`Stop::OutOfFuel`] if fewer are left.
    pub fn take_instructions(&self, count: u64) -> Evaluated<(), Stop> {
        let Some(left) = self.instructions.get() else {
            return Ok(());
        };
        let rest = left.checked_sub(count);
        self.instructions.set(Some(rest.unwrap_or(0)));
        rest.map(|_| ()).ok_or(Stop::OutOfFuel)
    }

    /// Records why code was stopped early. A limit is not replaced: it ends the run.
    fn cut_by(&self, cut: Cut) {
        let mut current = self.cut.borrow_mut();
        if !matches!(*current, Some(Cut::Limit(_))) {
            *current = Some(cut);
        }
    }

    /// Converts the end of a call to an error. A limit of the run is recorded: whatever the caller makes of the error,
    /// the run ends.
    fn error_of(&self, signal: Signal) -> StepError {
        if let Signal::Stop(stop) = &signal
            && matches!(**stop, Stop::OutOfFuel | Stop::OutOfMemory(_))
        {
            self.cut_by(Cut::Limit((**stop).clone()));
        }
        signal.into()
    }
}

/// The reason for which the code of a function was stopped early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cut {
    Suspended,
    /// The deadline of the run has passed.
    Late,
    /// The run has used up its instructions or its memory.
    Limit(Stop),
}

/// Calls a function, and lets other tasks of the thread run meanwhile. `patience` is the maximum duration that the
/// step's own `:timeout` allows. Dropping the future stops the function.
pub(super) async fn call_in_turns(
    scope: &Scope,
    function: &Value,
    args: &[Value],
    patience: Option<Duration>,
) -> Result<Value, StepError> {
    let host = PureHost::patient(scope, patience.unwrap_or(PATIENCE), Deadline::OfRun);
    let (function, args) = (function.clone(), args.to_vec());
    let mut fiber = Fiber::new(&scope.session, Box::new(host), move |vm| {
        let value = vm.call(&function, &args)?;
        vm.realise(&value)?;
        Ok(value)
    });
    let mut answer = Ok(Value::Nil);
    loop {
        let exit = scope.heap.within(|| fiber.resume(answer));
        answer = match exit {
            Exit::Done(value) => return Ok(value),
            Exit::Threw(exception) => return Err(Signal::Throw(exception).into()),
            Exit::Stopped(stop) => return Err(scope.cutoff.error_of(stop.into())),
            Exit::Step(_) => Err(not_here("a step")),
            Exit::OutOfFuel => {
                tokio::task::yield_now().await;
                Ok(Value::Nil)
            }
        };
    }
}

/// As [`call_in_turns`], for callers that cannot wait: the thread does nothing else until the function returns.
pub(super) fn call(
    scope: &Scope,
    function: &Value,
    args: &[Value],
    patience: Option<Duration>,
) -> Result<Value, StepError> {
    let host = PureHost::patient(scope, patience.unwrap_or(PATIENCE), Deadline::Own);
    let mut vm = scope.session.vm(Box::new(host));
    let called = scope.heap.within(|| {
        let value = vm.call(function, args)?;
        vm.realise(&value)?;
        Ok(value)
    });
    called.map_err(|signal| scope.cutoff.error_of(signal))
}

/// Calls code of the flow for the engine itself.
pub fn run_code(scope: &Scope, function: &Value, args: &[Value]) -> Result<Value, StepError> {
    call(scope, function, args, None)
}

/// As [`function`], for the engine itself.
pub fn code(scope: &Scope, code: &Value) -> Result<Value, StepError> {
    function(scope, code)
}

pub(super) fn function(scope: &Scope, code: &Value) -> Result<Value, StepError> {
    named_function(scope, code, "<code>")
}

/// As [`function`]; `name` is the name in errors of code that is given as text.
fn named_function(scope: &Scope, code: &Value, name: &str) -> Result<Value, StepError> {
    let mut vm = scope.session.vm(Box::new(PureHost::new(scope)));
    let stopped = |signal| scope.cutoff.error_of(signal);
    let value = match code {
        Value::Fn(_) | Value::Native(_) => return Ok(code.clone()),
        Value::Keyword(id) => {
            let Some(found) = scope.flow.function(&id.name()) else {
                let names = scope.flow.functions.iter().map(|function| &*function.id);
                let error = StepError::config(
                    "E0705",
                    format!("the flow has no function `{id}` in `:functions`"),
                );
                return Err(match crate::diagnostic::nearest(&id.name(), names) {
                    Some(name) => error.hint(format!("did you mean `:{name}`?")),
                    None => error,
                });
            };
            return named_function(scope, &found.code, &format!("<function {id}>"));
        }
        Value::Text(text) => scope
            .session
            .eval_text(&mut vm, name, text)
            .map_err(stopped)?,
        Value::List(_) => scope.session.eval(&mut vm, code).map_err(stopped)?,
        other => {
            return Err(
                StepError::config("E0706", format!("expected code, got {}", other.kind()))
                    .hint("give a quoted form such as `'(fn [input] ...)`"),
            );
        }
    };
    match value {
        Value::Fn(_) | Value::Native(_) | Value::Keyword(_) | Value::Map(_) | Value::Set(_) => {
            Ok(value)
        }
        other => Err(StepError::config(
            "E0706",
            format!("the code evaluates to {}, not to a function", other.kind()),
        )
        .hint("wrap it: `(fn [input] ...)`")),
    }
}

/// A host that only permits computing.
struct PureHost {
    bounds: Rc<Bounds>,
    /// The secrets that are removed from printed text.
    revealed: Revealed,
    /// The instructions of the next grant.
    grant: u32,
}

/// The limits of a call, which the machine and native functions check.
struct Bounds {
    deadline: Instant,
    heap: Rc<HeapBudget>,
    cutoff: Cutoff,
    /// The instant at which the call first saw that the run is to be suspended.
    suspended: Cell<Option<Instant>>,
    minds: Deadline,
}

/// The deadlines that stop the code of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deadline {
    /// Only the deadline of the call: the call may be replayed, and a replay delivers a cancellation where the journal
    /// records it.
    Own,
    /// Also the deadline of the run.
    OfRun,
}

impl Watch for Bounds {
    fn spend(&self, units: u64) -> Evaluated<(), Stop> {
        self.heap.check()?;
        self.cutoff.take_instructions(units)?;
        self.check_interrupt()
    }

    fn check_interrupt(&self) -> Evaluated<(), Stop> {
        let now = Instant::now();
        if now >= self.deadline {
            return Err(Stop::Deadline);
        }
        if self.minds == Deadline::OfRun && self.cutoff.is_late() {
            self.cutoff.cut_by(Cut::Late);
            return Err(Stop::Deadline);
        }
        if self.cutoff.is_suspended() {
            let since = self.suspended.get().unwrap_or(now);
            self.suspended.set(Some(since));
            if now.duration_since(since) >= GRACE {
                self.cutoff.cut_by(Cut::Suspended);
                return Err(Stop::Interrupted("the run is suspended".to_owned()));
            }
        }
        Ok(())
    }
}

impl PureHost {
    fn new(scope: &Scope) -> PureHost {
        PureHost::patient(scope, PATIENCE, Deadline::Own)
    }

    fn patient(scope: &Scope, patience: Duration, minds: Deadline) -> PureHost {
        PureHost {
            bounds: Rc::new(Bounds {
                heap: scope.heap.clone(),
                deadline: Instant::now() + patience,
                cutoff: scope.cutoff.clone(),
                suspended: Cell::new(None),
                minds,
            }),
            revealed: scope.revealed.clone(),
            grant: FIRST_QUANTUM,
        }
    }
}

fn not_here(what: &str) -> flowstone_lang::value::Signal {
    Exception::new(
        Class::UNSUPPORTED_OPERATION,
        "E0707",
        format!("{what} cannot be used inside function code"),
    )
    .hint("do it in the flow and pass the result to the function")
    .into()
}

fn refused<T>(what: &str) -> Result<T, String> {
    Err(format!("{what} cannot be used inside function code"))
}

impl Host for PureHost {
    fn refill(&mut self) -> Evaluated<u32, Stop> {
        let grant = self.grant;
        self.bounds.spend(u64::from(grant))?;
        self.grant = grant.saturating_mul(2).min(QUANTUM);
        Ok(grant)
    }

    fn watch(&self) -> Option<Rc<dyn Watch>> {
        Some(self.bounds.clone())
    }

    fn room_for(&mut self, bytes: usize) -> Evaluated<(), Stop> {
        self.bounds.heap.room_for(bytes)
    }

    fn write(&mut self, stream: Stream, text: &str) -> Result<(), String> {
        if tracing::enabled!(target: "flowstone::function", tracing::Level::INFO) {
            let text = self.revealed.redactor().text(text.to_owned());
            tracing::info!(target: "flowstone::function", ?stream, "{}", text.trim_end());
        }
        Ok(())
    }

    fn read_line(&mut self) -> Result<Option<String>, String> {
        refused("standard input")
    }

    fn now_millis(&mut self) -> Evaluated<i64> {
        Err(not_here("the clock"))
    }

    fn now_nanos(&mut self) -> Evaluated<i64> {
        Err(not_here("the clock"))
    }

    fn random(&mut self) -> Evaluated<u64> {
        Err(not_here("randomness"))
    }

    fn read_file(&mut self, _path: &str) -> Result<String, String> {
        refused("files")
    }

    fn write_file(&mut self, _path: &str, _text: &str, _append: bool) -> Result<(), String> {
        refused("files")
    }

    fn find_source(&mut self, _namespace: &str) -> Option<(String, String)> {
        None
    }

    fn suspend(&mut self, _request: Request) -> Evaluated<Value> {
        Err(not_here("a step"))
    }

    fn touch_session(&mut self) -> Evaluated<(), Stop> {
        self.bounds.cutoff.touch_session()
    }

    fn sleep(&mut self, _millis: u64) -> Evaluated<()> {
        Err(not_here("sleeping"))
    }
}
