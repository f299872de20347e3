//! Sessions that several runs use: making one and reading a program costs more than most executions, and takes more memory
//! than a run that waits.
//!
//! Runs of one program share a session, also at the same time, as long as none of them changes what all share or asks how
//! much of the library is loaded: the world of the session counts that ([`World::generation`]). So no run sees another.
//! A run that is about to do so in a session that others have used is evicted: it leaves as when it is interrupted, and is
//! replayed in a session of its own. From then on each run of its program gets its own. Where an execution did not come to a
//! good end, its session goes to no further run. The compiled body of a flow is compiled step by step while it is
//! evaluated, so one run has it at a time.
//!
//! [`World::generation`]: flowstone_lang::vm::World::generation

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use flowstone_lang::session::{Body, Session};

use crate::SessionUse;
use crate::flow::Flow;

/// What such runs have instead of the hash of a program.
pub(crate) const INTERACTIVE: &str = "interactive";

/// How many programs have a session that is kept for later.
const KEPT: usize = 64;
/// How many compiled bodies of a program are kept for later.
const BODIES: usize = 32;
/// What an evaluation leaves in a session is let go of with it.
const USES: u32 = 1_000;

/// What an execution begins with.
pub(crate) struct Prepared {
    pub session: Rc<Session>,
    pub flow: Rc<Flow>,
    /// Compiled as far as an execution came.
    pub body: Rc<Body>,
    pub usage: Rc<SessionUse>,
}

impl Prepared {
    /// Returns what an execution in a session of its own begins with.
    pub(crate) fn own(session: Rc<Session>, flow: Rc<Flow>) -> Prepared {
        Prepared {
            session,
            body: Rc::new(Body::new(&flow.body)),
            flow,
            usage: SessionUse::own(),
        }
    }
}

/// A session for the runs of one program.
struct Shared {
    session: Rc<Session>,
    flow: Rc<Flow>,
    /// What the world of the session said when the program was loaded.
    generation: u64,
    /// Compiled bodies that no run has.
    bodies: Vec<Rc<Body>>,
    uses: Rc<Cell<u32>>,
}

impl Shared {
    fn new(session: &Rc<Session>, flow: &Rc<Flow>) -> Shared {
        Shared {
            session: session.clone(),
            flow: flow.clone(),
            generation: session.world().generation(),
            bodies: Vec::new(),
            uses: Rc::default(),
        }
    }
}

/// The sessions of programs.
#[derive(Default)]
pub(crate) struct Sessions {
    shared: RefCell<HashMap<String, Shared>>,
    /// Programs whose runs need sessions of their own.
    own: Rc<RefCell<HashSet<String>>>,
}

impl Sessions {
    pub(crate) fn take(&self, program: &str) -> Option<Prepared> {
        let mut all = self.shared.borrow_mut();
        let shared = all.get_mut(program)?;
        let is_as_loaded = shared.session.world().generation() == shared.generation;
        if !is_as_loaded || self.own.borrow().contains(program) {
            all.remove(program);
            return None;
        }
        let prepared = Prepared {
            session: shared.session.clone(),
            flow: shared.flow.clone(),
            body: shared
                .bodies
                .pop()
                .unwrap_or_else(|| Rc::new(Body::new(&shared.flow.body))),
            usage: self.usage(program, &shared.uses),
        };
        if shared.uses.get() >= USES {
            all.remove(program);
        }
        Some(prepared)
    }

    fn usage(&self, program: &str, uses: &Rc<Cell<u32>>) -> Rc<SessionUse> {
        let shared = (program.to_owned(), self.own.clone());
        SessionUse::new(uses.clone(), Some(shared))
    }

    /// Lets other runs of a program use a session, unless they need their own.
    pub(crate) fn share(&self, program: &str, prepared: &mut Prepared) {
        let shared = Shared::new(&prepared.session, &prepared.flow);
        prepared.usage = self.usage(program, &shared.uses);
        self.add(program, shared);
    }

    /// Keeps a program that was compiled while it was checked for the next run of it.
    pub(crate) fn keep(&self, program: &str, session: &Rc<Session>, flow: &Rc<Flow>, body: Body) {
        let mut shared = Shared::new(session, flow);
        shared.uses.set(1);
        shared.bodies.push(Rc::new(body));
        self.add(program, shared);
    }

    fn add(&self, program: &str, shared: Shared) {
        if self.own.borrow().contains(program) {
            return;
        }
        let mut all = self.shared.borrow_mut();
        if all.len() >= KEPT && !all.contains_key(program) {
            let other = all.keys().next().cloned();
            other.map(|other| all.remove(&other));
        }
        all.insert(program.to_owned(), shared);
    }

    /// Keeps a compiled body for the next run of its program.
    pub(crate) fn give_back(&self, program: &str, prepared: Prepared) {
        let mut all = self.shared.borrow_mut();
        let shared = all.get_mut(program);
        let shared = shared.filter(|shared| Rc::ptr_eq(&shared.session, &prepared.session));
        if let Some(shared) = shared.filter(|shared| shared.bodies.len() < BODIES) {
            shared.bodies.push(prepared.body);
        }
    }

    /// Gives a session to no further run: one that used it was stopped in the middle.
    pub(crate) fn retire(&self, program: &str, prepared: &Prepared) {
        let mut all = self.shared.borrow_mut();
        let is_it = |shared: &Shared| Rc::ptr_eq(&shared.session, &prepared.session);
        if all.get(program).is_some_and(is_it) {
            all.remove(program);
        }
    }

    /// Keeps one body of each program, when there is little to do.
    pub(crate) fn shrink(&self) {
        for shared in self.shared.borrow_mut().values_mut() {
            shared.bodies.truncate(1);
        }
    }

    /// Gives up all sessions without freeing them.
    pub(crate) fn leak(&self) {
        std::mem::forget(self.shared.take());
    }
}
