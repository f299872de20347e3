//! A run's own stack: evaluation that can stop at any depth and go on later.
//!
//! No borrow, lock or span guard may be alive across a suspension.

use std::rc::Rc;

use crate::session::Session;
use crate::value::{Exception, Result, Stop, Value};
use crate::vm::{Host, Vm};

/// What a fiber came to when it last ran.
#[derive(Debug)]
pub enum Exit {
    /// The body returned.
    Done(Value),
    /// The body threw and nothing caught it.
    Threw(Rc<Exception>),
    /// The body asks for something: answer with [`Fiber::resume`].
    Step(Value),
    /// A quantum of fuel is used up: look at the clock and the others, then resume with nil.
    OutOfFuel,
    /// The body was stopped from outside.
    Stopped(Stop),
}

/// A body under evaluation.
pub struct Fiber {
    _private: (),
}

impl Fiber {
    /// Prepares `body` for running in `session`. `host` answers all that needs no suspension; its own
    /// `suspend` is never called, and its `refill` says how much each quantum is.
    pub fn new(
        session: &Session,
        host: Box<dyn Host>,
        body: impl FnOnce(&mut Vm) -> Result<Value> + 'static,
    ) -> Fiber {
        let _ = (session, host, body);
        Fiber { _private: () }
    }

    /// Runs until the next exit. `answer` is what the pending [`Exit::Step`] came to; on the first call
    /// and after [`Exit::OutOfFuel`] it is nil, or a signal to raise there.
    pub fn resume(&mut self, answer: Result<Value>) -> Exit {
        let _ = answer;
        Exit::Done(Value::Nil)
    }
}
