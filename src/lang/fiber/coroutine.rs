//! Bodies on pooled coroutine stacks of one mebibyte of address space; only touched pages take memory.

use std::cell::RefCell;
use std::io;

use corosensei::stack::{DefaultStack, Stack as _};
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::{Exiter, Leave, Start, Suspender, Turn};
use crate::value::{Result, Value};

const STACK_BYTES: usize = 1 << 20;
/// Stack space reserved for code between two checks of the limit, and for unwinding.
const MARGIN_BYTES: usize = 128 << 10;
/// Maximum number of stacks that each thread keeps for reuse.
const POOL_MAX: usize = 256;

thread_local! {
    static POOL: RefCell<Vec<DefaultStack>> = const { RefCell::new(Vec::new()) };
}

type Body = Coroutine<Result<Value>, Leave, Result<Value>, DefaultStack>;

/// A body on its own stack.
pub(super) struct Stack {
    /// `None` only while dropping.
    body: Option<Body>,
}

impl Stack {
    /// Takes a stack from the pool, or maps a new one, and puts the body on it.
    ///
    /// # Errors
    /// When no more memory can be mapped.
    pub(super) fn start(start: Start) -> io::Result<Stack> {
        let pooled = POOL.with_borrow_mut(Vec::pop);
        let stack = match pooled {
            Some(stack) => stack,
            None => DefaultStack::new(STACK_BYTES)?,
        };
        let limit = stack.limit().get() + MARGIN_BYTES;
        let body = Coroutine::with_stack(stack, move |yielder: &Yielder<_, _>, _first| {
            let exiter = CoroutineExiter {
                yielder: std::ptr::from_ref(yielder),
            };
            start.run(Box::new(exiter), limit)
        });
        Ok(Stack { body: Some(body) })
    }
}

impl Suspender for Stack {
    fn resume(&mut self, answer: Result<Value>) -> Turn {
        let body = self
            .body
            .as_mut()
            .expect("only dropping takes the body away");
        match body.resume(answer) {
            CoroutineResult::Yield(why) => Turn::Left(why),
            CoroutineResult::Return(result) => Turn::Returned(result),
        }
    }
}

/// Releases the memory of all pooled stacks except one.
pub(super) fn trim() {
    // The pool no longer exists when the thread is ending.
    let _ = POOL.try_with(|pool| pool.borrow_mut().truncate(1));
}

impl Drop for Stack {
    fn drop(&mut self) {
        let Some(mut body) = self.body.take() else {
            return;
        };
        if !body.done() {
            body.force_unwind();
        }
        let stack = body.into_stack();
        // The pool no longer exists when the thread is ending; the stack is then unmapped.
        let _ = POOL.try_with(|pool| {
            let mut pool = pool.borrow_mut();
            if pool.len() < POOL_MAX {
                pool.push(stack);
            }
        });
    }
}

struct CoroutineExiter {
    yielder: *const Yielder<Result<Value>, Leave>,
}

impl Exiter for CoroutineExiter {
    fn leave(&self, why: Leave) -> Result<Value> {
        // SAFETY: the yielder lives on the coroutine's stack for as long as the body runs. This exiter is owned
        // by the host of the machine that `Start::run` makes and drops inside the body, and the host is not
        // handed out, so it is only used while the body runs, on its stack.
        let yielder = unsafe { &*self.yielder };
        yielder.suspend(why)
    }
}
