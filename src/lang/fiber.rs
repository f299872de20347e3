//! A separate stack for each run: an evaluation that can be suspended at any call depth and resumed later.
//!
//! No borrow, lock or span guard may be alive across a suspension. [`Suspender`] hides how stacks are switched: with
//! coroutines if the platform supports them, else with a thread for each fiber, which takes turns with its owner.

#[cfg(not(all(windows, target_arch = "aarch64")))]
mod coroutine;
mod host;
#[cfg(any(test, all(windows, target_arch = "aarch64")))]
mod thread;

use std::rc::Rc;

use crate::session::Session;
use crate::value::meter::{self, Meter};
use crate::value::number::{MathContext, set_math_context};
use crate::value::{Exception, Result, Signal, Stop, Value};
use crate::vm::{Host, Request, Size, Vm, World};
use host::FiberHost;

#[cfg(not(all(windows, target_arch = "aarch64")))]
use coroutine::Stack;
#[cfg(all(windows, target_arch = "aarch64"))]
use thread::Stack;

/// Releases memory that this thread keeps for future fibers: for a thread that expects none for a while.
pub fn trim() {
    #[cfg(not(all(windows, target_arch = "aarch64")))]
    coroutine::trim();
}

/// The exit with which a fiber last stopped.
#[derive(Debug)]
pub enum Exit {
    /// The body returned.
    Done(Value),
    /// The body threw and nothing caught it.
    Threw(Rc<Exception>),
    /// The body makes a request: pass its outcome to [`Fiber::resume`].
    Step(Request),
    /// A quantum of fuel is used up: check the clock, yield to others, then resume with nil.
    OutOfFuel,
    /// The body was stopped from outside.
    Stopped(Stop),
}

/// A body under evaluation. Dropping a suspended fiber unwinds its stack: destructors run, `finally` blocks of the
/// language do not.
pub struct Fiber {
    state: State,
    /// The body's decimal rounding: a thread has one such setting, but may have several fibers.
    math_context: Option<MathContext>,
    /// The limits of native work, while the body is suspended.
    meter: Meter,
}

enum State {
    /// A fiber that has not run, and takes no stack yet.
    New(Box<Start>),
    Running(Box<dyn Suspender>),
    Over,
}

/// The reason why a body leaves its stack temporarily.
enum Leave {
    Step(Request),
    OutOfFuel,
}

/// The outcome of a turn of a body.
enum Turn {
    Left(Leave),
    Returned(Result<Value>),
}

/// A stack with a body on it.
trait Suspender {
    /// Runs the body until it leaves or returns.
    fn resume(&mut self, answer: Result<Value>) -> Turn;
}

/// The exit from a stack, used from inside.
trait Exiter {
    /// Switches to the owner that resumed the body; returns with the next answer.
    fn leave(&self, why: Leave) -> Result<Value>;
}

/// Everything needed to start a body.
struct Start {
    world: Rc<World>,
    host: Box<dyn Host>,
    body: crate::value::NativeThunk,
}

impl Start {
    /// Runs the body; called on the new stack.
    fn run(self, exiter: Box<dyn Exiter>, stack_limit: usize) -> Result<Value> {
        let host = Box::new(FiberHost::new(self.host, exiter, self.world.clone()));
        let machine = Vm::sized(self.world, host, Size::Small);
        let _watch = machine.watch_fiber();
        // Dropped before the watch: once a limit is reached, the values that the machine holds are freed later.
        let mut vm = machine;
        vm.set_native_stack_limit(stack_limit);
        (self.body)(&mut vm)
    }
}

impl Fiber {
    /// Prepares `body` for running in `session`. `host` answers everything that needs no suspension; its own `suspend`
    /// is never called, and its `refill` returns the size of each quantum.
    pub fn new(
        session: &Session,
        host: Box<dyn Host>,
        body: impl FnOnce(&mut Vm) -> Result<Value> + 'static,
    ) -> Fiber {
        Fiber {
            state: State::New(Box::new(Start {
                world: session.world().clone(),
                host,
                body: Box::new(body),
            })),
            math_context: None,
            meter: Meter::default(),
        }
    }

    /// Runs until the next exit. `answer` is the outcome of the pending [`Exit::Step`]; on the first call and after
    /// [`Exit::OutOfFuel`] it is nil, or a signal to raise there.
    ///
    /// # Panics
    /// If the body panics; a fiber that is over must not be resumed.
    pub fn resume(&mut self, answer: Result<Value>) -> Exit {
        let (mut stack, answer) = match std::mem::replace(&mut self.state, State::Over) {
            State::Over => panic!("a fiber that is over was resumed"),
            State::Running(stack) => (stack, answer),
            State::New(start) => match answer {
                Err(signal) => return over(Err(signal)),
                Ok(answer) => match Stack::start(*start) {
                    Ok(stack) => (Box::new(stack) as Box<dyn Suspender>, Ok(answer)),
                    Err(error) => {
                        let what = format!("a stack for the run ({error})");
                        return Exit::Stopped(Stop::OutOfMemory(what));
                    }
                },
            },
        };
        let outside = set_math_context(self.math_context);
        let outer = meter::replace(std::mem::take(&mut self.meter));
        let turn = stack.resume(answer);
        self.meter = meter::replace(outer);
        self.math_context = set_math_context(outside);
        match turn {
            Turn::Returned(result) => over(result),
            Turn::Left(why) => {
                self.state = State::Running(stack);
                match why {
                    Leave::Step(request) => Exit::Step(request),
                    Leave::OutOfFuel => Exit::OutOfFuel,
                }
            }
        }
    }

    /// Tells whether the body has returned, has thrown or was stopped.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    #[cfg(test)]
    fn on_thread(
        session: &Session,
        host: Box<dyn Host>,
        body: impl FnOnce(&mut Vm) -> Result<Value> + 'static,
    ) -> Fiber {
        let start = Start {
            world: session.world().clone(),
            host,
            body: Box::new(body),
        };
        let stack = thread::Stack::start(start).expect("a thread can be started");
        Fiber {
            state: State::Running(Box::new(stack)),
            math_context: None,
            meter: Meter::default(),
        }
    }
}

impl Drop for Fiber {
    fn drop(&mut self) {
        // Unwinding the stack removes the watch of the body, not that of the owner.
        let mut meter = std::mem::take(&mut self.meter);
        if let State::Running(_) = self.state {
            // The values that the body holds are freed later, because the owner may be in a hurry.
            meter.stop(Stop::Evicted);
        }
        let outer = meter::replace(meter);
        self.state = State::Over;
        meter::replace(outer);
    }
}

fn over(result: Result<Value>) -> Exit {
    match result {
        Ok(value) => Exit::Done(value),
        Err(Signal::Throw(exception)) => Exit::Threw(exception),
        Err(Signal::Stop(stop)) => Exit::Stopped((*stop).clone()),
    }
}

#[cfg(test)]
mod tests;
