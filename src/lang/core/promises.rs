//! Promises and futures on one thread: a future runs when it is created, and a promise cannot be delivered while its
//! value is awaited.

use std::cell::RefCell;
use std::rc::Rc;

use super::functions::is_fn;
use crate::value::{
    Arity, Class, Exception, Native, Object, Promise, Result, Signal, Value, tracked,
};
use crate::vm::{Args, Vm};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    DELIVER,
    FUTURE_CALL,
    FUTURE_CANCEL,
    IS_CANCELLED,
    IS_DONE,
    IS_FUTURE,
    PROMISE,
];

const DELIVER: Native = Native {
    name: "deliver",
    usage: "(deliver promise x)",
    doc: "Delivers a value to a promise, and returns the promise; nil if it has a value already.",
    examples: &[("(let [p (promise)] (deliver p 1) @p)", "1")],
    arity: Arity::exactly(2),
    run: |_, mut args| {
        let value = args.take(1);
        {
            let Some(cell) = Promise::of(args.get(0)) else {
                return Err(args.expected(0, "a promise"));
            };
            let mut outcome = cell.outcome.borrow_mut();
            if outcome.is_some() {
                return Ok(Value::Nil);
            }
            *outcome = Some(Ok(value));
        }
        Ok(args.take(0))
    },
};

const FUTURE_CALL: Native = Native {
    name: "future-call",
    usage: "(future-call f)",
    doc: "Calls f without arguments, at once, and returns a future of its value or exception.",
    examples: &[("@(future-call (fn [] 1))", "1")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        if !is_fn(args.get(0)) {
            return Err(args.expected(0, "a function"));
        }
        let outcome = match vm.call(args.get(0), &[]) {
            Ok(value) => Ok(value),
            Err(Signal::Throw(exception)) => Err(exception),
            Err(stop) => return Err(stop),
        };
        Ok(cell(true, Some(outcome)))
    },
};

const FUTURE_CANCEL: Native = Native {
    name: "future-cancel",
    usage: "(future-cancel future)",
    doc: "Returns false: a future is done as soon as it is created.",
    examples: &[("(future-cancel (future 1))", "false")],
    arity: Arity::exactly(1),
    run: |_, args| future(&args).map(|_| Value::Bool(false)),
};

const IS_CANCELLED: Native = Native {
    name: "future-cancelled?",
    usage: "(future-cancelled? future)",
    doc: "Returns false: a future is done as soon as it is created.",
    examples: &[("(future-cancelled? (future 1))", "false")],
    arity: Arity::exactly(1),
    run: |_, args| future(&args).map(|_| Value::Bool(false)),
};

const IS_DONE: Native = Native {
    name: "future-done?",
    usage: "(future-done? future)",
    doc: "Tells whether a future has its value.",
    examples: &[("(future-done? (future 1))", "true")],
    arity: Arity::exactly(1),
    run: |_, args| future(&args).map(|_| Value::Bool(true)),
};

const IS_FUTURE: Native = Native {
    name: "future?",
    usage: "(future? x)",
    doc: "Tells whether x is a future.",
    examples: &[("(future? (future 1))", "true"), ("(future? 1)", "false")],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::Bool(future(&args).is_ok())),
};

const PROMISE: Native = Native {
    name: "promise",
    usage: "(promise)",
    doc: "Returns a cell to which deliver assigns a value, once, and which deref reads.",
    examples: &[("(realized? (promise))", "false")],
    arity: Arity::exactly(0),
    run: |_, _| Ok(cell(false, None)),
};

fn cell(is_future: bool, outcome: Option<Result<Value, Rc<Exception>>>) -> Value {
    let outcome = RefCell::new(outcome);
    let promise = Promise { is_future, outcome };
    tracked(Value::from(Object::State(Box::new(promise))))
}

fn future<'a>(args: &'a Args<'_>) -> Result<&'a Promise> {
    Promise::of(args.get(0))
        .filter(|cell| cell.is_future)
        .ok_or_else(|| args.expected(0, "a future"))
}

/// Tells whether a promise or future has its value; `None` for any other value.
pub(super) fn is_realized(value: &Value) -> Option<bool> {
    Promise::of(value).map(|cell| cell.outcome.borrow().is_some())
}

/// Returns the value of a promise or future, or `default` if it has none yet; `None` for any other value.
pub(super) fn deref(_vm: &mut Vm, value: &Value, default: Option<&Value>) -> Option<Result<Value>> {
    let cell = Promise::of(value)?;
    Some(match (&*cell.outcome.borrow(), default) {
        (Some(Ok(value)), _) => Ok(value.clone()),
        (Some(Err(exception)), _) => Err(Signal::Throw(exception.clone())),
        (None, Some(default)) => Ok(default.clone()),
        (None, None) => Err(Exception::new(
            Class::ILLEGAL_STATE,
            "E0351",
            "nothing was delivered to this promise, and nothing can be while this waits",
        )
        .hint("deliver it first, or give deref a timeout and a value")
        .into()),
    })
}
