//! Bodies on threads that take turns with their owner, for platforms without coroutines.
//!
//! At any time one of the two runs and the other is blocked on a channel, so values counted with `Rc` are never
//! accessed by both. The thread's interned names are handed over with the turn.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use super::{Exiter, Leave, Start, Suspender, Turn};
use crate::value::{Names, Result, Value};

const STACK_BYTES: usize = 4 << 20;
/// Far below the thread's stack size, because its exact end is not known here.
const USABLE_BYTES: usize = 2 << 20;

/// A value whose owner changes from one thread to another.
struct Handed<T>(T);

// SAFETY: the sender blocks on the answering channel right after the hand-over, or ends. Before the answer arrives, it
// accesses neither the values that it handed over nor any that share counters with them, so the channels order all
// uses.
unsafe impl<T> Send for Handed<T> {}

impl<T> Handed<T> {
    /// Takes the value out. This is a method, so that a closure captures the wrapper and not its field.
    fn take(self) -> T {
        self.0
    }
}

enum ToBody {
    Answer(Result<Value>, Names),
    Unwind(Names),
}

enum ToOwner {
    Left(Leave, Names),
    Returned(Result<Value>, Names),
    Panicked(Box<dyn std::any::Any + Send>, Names),
}

/// A body on its own thread.
pub(super) struct Stack {
    to_body: Sender<Handed<ToBody>>,
    from_body: Receiver<Handed<ToOwner>>,
    thread: Option<JoinHandle<()>>,
    is_over: bool,
}

impl Stack {
    /// Starts a thread that waits for the first answer.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn start(start: Start) -> io::Result<Stack> {
        let (to_body, from_owner) = channel::<Handed<ToBody>>();
        let (to_owner, from_body) = channel::<Handed<ToOwner>>();
        let start = Handed(start);
        let body = move || run(start.take(), from_owner, to_owner);
        let thread = std::thread::Builder::new()
            .name("fiber".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(body)?;
        Ok(Stack {
            to_body,
            from_body,
            thread: Some(thread),
            is_over: false,
        })
    }

    fn turn(&mut self, message: ToBody) -> Turn {
        let sent = self.to_body.send(Handed(message));
        assert!(sent.is_ok(), "a fiber's thread waits for its turn");
        match self.from_body.recv().map(Handed::take) {
            Ok(ToOwner::Left(why, names)) => {
                names.install();
                Turn::Left(why)
            }
            Ok(ToOwner::Returned(result, names)) => {
                self.is_over = true;
                names.install();
                Turn::Returned(result)
            }
            Ok(ToOwner::Panicked(payload, names)) => {
                self.is_over = true;
                names.install();
                resume_unwind(payload)
            }
            Err(_) => panic!("a fiber's thread ended without a word"),
        }
    }
}

impl Suspender for Stack {
    fn resume(&mut self, answer: Result<Value>) -> Turn {
        self.turn(ToBody::Answer(answer, Names::take()))
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if !self.is_over {
            let unwound = catch_unwind(AssertUnwindSafe(|| {
                self.turn(ToBody::Unwind(Names::take()))
            }));
            debug_assert!(unwound.is_err(), "an unwound body does not come back");
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The payload of an unwinding that drops a body.
struct Dropped;

fn run(start: Start, from_owner: Receiver<Handed<ToBody>>, to_owner: Sender<Handed<ToOwner>>) {
    let Ok(first) = from_owner.recv() else {
        return;
    };
    let exiter = ThreadExiter {
        from_owner,
        to_owner: to_owner.clone(),
    };
    let marker = 0_u8;
    let stack_limit = (std::ptr::from_ref(&marker) as usize).saturating_sub(USABLE_BYTES);
    let result = catch_unwind(AssertUnwindSafe(move || match first.take() {
        ToBody::Answer(_, names) => {
            names.install();
            start.run(Box::new(exiter), stack_limit)
        }
        ToBody::Unwind(names) => {
            names.install();
            drop(start);
            resume_unwind(Box::new(Dropped))
        }
    }));
    let last = match result {
        Ok(result) => ToOwner::Returned(result, Names::take()),
        Err(payload) => ToOwner::Panicked(payload, Names::take()),
    };
    let _ = to_owner.send(Handed(last));
}

struct ThreadExiter {
    from_owner: Receiver<Handed<ToBody>>,
    to_owner: Sender<Handed<ToOwner>>,
}

impl Exiter for ThreadExiter {
    fn leave(&self, why: Leave) -> Result<Value> {
        let sent = self
            .to_owner
            .send(Handed(ToOwner::Left(why, Names::take())));
        assert!(sent.is_ok(), "a fiber's owner waits for it");
        match self.from_owner.recv().map(Handed::take) {
            Ok(ToBody::Answer(answer, names)) => {
                names.install();
                answer
            }
            Ok(ToBody::Unwind(names)) => {
                names.install();
                resume_unwind(Box::new(Dropped))
            }
            Err(_) => resume_unwind(Box::new(Dropped)),
        }
    }
}
