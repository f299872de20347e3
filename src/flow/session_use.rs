//! The use of a session by one run, where several runs share it.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;

use flowstone_lang::value::Stop;

/// How many programs are remembered whose runs need sessions of their own.
const REMEMBERED: usize = 10_000;

/// The use of a session by one run.
pub struct SessionUse {
    /// How many runs have used the session so far, and the check that compiled the program in it.
    uses: Rc<Cell<u32>>,
    /// The program, and those whose runs need sessions of their own; `None` for a session that nobody else gets.
    shared: Option<(String, Rc<RefCell<HashSet<String>>>)>,
    was_evicted: Cell<bool>,
    printed: Cell<usize>,
    /// What the run had printed when it was evicted from the session before.
    printed_before: Cell<Option<usize>>,
}

impl SessionUse {
    /// Returns the use of a session that no other run gets.
    pub fn own() -> Rc<SessionUse> {
        SessionUse::new(Rc::default(), None)
    }

    pub fn new(
        uses: Rc<Cell<u32>>,
        shared: Option<(String, Rc<RefCell<HashSet<String>>>)>,
    ) -> Rc<SessionUse> {
        uses.set(uses.get() + 1);
        Rc::new(SessionUse {
            uses,
            shared,
            was_evicted: Cell::new(false),
            printed: Cell::new(0),
            printed_before: Cell::new(None),
        })
    }

    /// Called before the run changes what all users of the session share, or asks how much of the library is loaded. The
    /// first one may, because nobody has used the session before, and nobody will.
    ///
    /// # Errors
    /// [`Stop::Evicted`] where the session has had other users.
    pub fn touch(&self) -> Result<(), Stop> {
        if let Some((program, own)) = &self.shared
            && !own.borrow().contains(program)
        {
            let mut own = own.borrow_mut();
            if own.len() >= REMEMBERED {
                own.clear();
            }
            own.insert(program.clone());
        }
        if self.uses.get() <= 1 {
            return Ok(());
        }
        self.was_evicted.set(true);
        Err(Stop::Evicted)
    }

    /// Tells whether the run has to begin again in a session of its own.
    pub fn was_evicted(&self) -> bool {
        self.was_evicted.get()
    }

    /// Notes that the run prints something; tells whether it did not do so before it was evicted.
    pub fn note_printed(&self) -> bool {
        self.printed.set(self.printed.get() + 1);
        self.printed.get() > self.printed_before.get().unwrap_or(0)
    }

    /// Begins where an evicted run was: what it has printed is not shown again.
    pub fn follow(&self, evicted: &SessionUse) {
        let before = evicted.printed_before.get().unwrap_or(0);
        self.printed_before
            .set(Some(before.max(evicted.printed.get())));
    }

    /// Tells whether the run was evicted from another session just now.
    pub fn follows_eviction(&self) -> bool {
        self.printed_before.get().is_some()
    }
}
