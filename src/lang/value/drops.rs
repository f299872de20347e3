//! Dropping without recursion: values nested a million deep must not overflow the native stack.
//!
//! Every type that can hold values drops them through here. The first few levels are dropped by ordinary
//! recursion; what lies deeper waits in a queue of this thread until the outermost drop is done.

use std::cell::{Cell, RefCell};

use super::Value;

/// How deep drops recurse.
const MAX_NESTED: u32 = 24;

thread_local! {
    static NESTED: Cell<u32> = const { Cell::new(0) };
    static QUEUE: RefCell<Vec<Garbage>> = const { RefCell::new(Vec::new()) };
}

/// What waits to be dropped.
pub(super) enum Garbage {
    Value(#[expect(dead_code, reason = "held to be dropped")] Value),
    Values(#[expect(dead_code, reason = "held to be dropped")] Box<[Value]>),
    Items(#[expect(dead_code, reason = "held to be dropped")] super::vector::Items),
    Lazy(#[expect(dead_code, reason = "held to be dropped")] super::LazyState),
    Entries(#[expect(dead_code, reason = "held to be dropped")] super::map::Entries),
}

/// Drops, now or later.
#[inline]
pub(super) fn discard<T>(contents: T, wrap: impl FnOnce(T) -> Garbage) {
    let nested = NESTED.get();
    if nested >= MAX_NESTED {
        // The queue is gone when the thread is ending; then the stack has to do.
        let _ = QUEUE.try_with(|queue| queue.borrow_mut().push(wrap(contents)));
        return;
    }
    NESTED.set(nested + 1);
    drop(contents);
    if nested == 0 {
        drain();
    }
    NESTED.set(nested);
}

/// Drops a value that may hold others; every other value is left to its owner.
#[inline]
pub(super) fn discard_value(value: &mut Value) {
    if value.may_nest() {
        discard(std::mem::replace(value, Value::Nil), Garbage::Value);
    }
}

/// Drops values that a function closed over.
#[inline]
pub(super) fn discard_values(values: &mut Box<[Value]>) {
    if values.iter().any(Value::may_nest) {
        discard(std::mem::take(values), Garbage::Values);
    }
}

fn drain() {
    loop {
        let next = QUEUE.try_with(|queue| queue.borrow_mut().pop());
        match next {
            Ok(Some(garbage)) => drop(garbage),
            Ok(None) | Err(_) => return,
        }
    }
}

impl Value {
    /// Tells whether dropping this may drop further values.
    #[inline]
    fn may_nest(&self) -> bool {
        match self {
            Value::Nil
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Char(_)
            | Value::Keyword(_)
            | Value::Symbol(_)
            | Value::Native(_)
            | Value::Text(_)
            | Value::BigInt(_)
            | Value::Ratio(_)
            | Value::Decimal(_)
            | Value::Var(_) => false,
            Value::Name(_)
            | Value::Fn(_)
            | Value::Vector(_)
            | Value::Map(_)
            | Value::Set(_)
            | Value::List(_)
            | Value::Seq(_)
            | Value::Lazy(_)
            | Value::Atom(_)
            | Value::Exception(_)
            | Value::Record(_)
            | Value::Object(_) => true,
        }
    }
}
