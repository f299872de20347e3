//! The use of a session by one run, if several runs share it.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;

use flowstone_lang::value::Stop;

/// Maximum number of remembered programs whose runs need their own sessions.
const REMEMBERED: usize = 10_000;

/// The use of a session by one run.
pub struct SessionUse {
    /// The number of runs that have used the session so far. The check that compiled the program counts as a run.
    uses: Rc<Cell<u32>>,
    /// The program, and the programs whose runs need their own sessions; `None` for a session that is not shared.
    shared: Option<(String, Rc<RefCell<HashSet<String>>>)>,
    was_evicted: Cell<bool>,
    printed: Cell<usize>,
    /// The number of texts that the run had printed when it was evicted from the previous session.
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

    /// Called before the run changes state that all users of the session share, or asks how much of the library is
    /// loaded. The first user may do so, because no other run has used the session, and none will.
    ///
    /// # Errors
    /// [`Stop::Evicted`] if the session has had other users.
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

    /// Tells whether the run has to start again in its own session.
    pub fn was_evicted(&self) -> bool {
        self.was_evicted.get()
    }

    /// Counts a text that the run prints. Returns false if the run had printed it before it was evicted.
    pub fn note_printed(&self) -> bool {
        self.printed.set(self.printed.get() + 1);
        self.printed.get() > self.printed_before.get().unwrap_or(0)
    }

    /// Continues an evicted run: texts that it has already printed are not shown again.
    pub fn follow(&self, evicted: &SessionUse) {
        let before = evicted.printed_before.get().unwrap_or(0);
        self.printed_before
            .set(Some(before.max(evicted.printed.get())));
    }

    /// Tells whether the run was evicted from another session before.
    pub fn follows_eviction(&self) -> bool {
        self.printed_before.get().is_some()
    }
}
