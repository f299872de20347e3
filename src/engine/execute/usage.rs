//! The use of a run's limits in this execution. A replay counts everything from the start again.
//!
//! A run that reaches one of these limits ends there: no `catch` of its flow sees it, and no step fails because of it.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;

use flowstone_lang::value::{Class, Exception};

use super::Halt;
use crate::limits::{self, Limit, Limits};
use crate::ports::{Change, Entry};

/// Bytes of a journal entry in addition to its texts.
const ENTRY_BYTES: usize = 64;

/// Counters of the quantities that a run's limits apply to.
pub(crate) struct Usage {
    /// The limits of the project.
    project: Limits,
    /// The limits of the run: those of the project, lowered by its flow.
    limits: Cell<Limits>,
    steps: Cell<u64>,
    journal: Cell<u64>,
    output: Cell<u64>,
    branches: Cell<u64>,
    /// The paths of open waits.
    waits: RefCell<HashSet<String>>,
}

impl Usage {
    pub(super) fn new(limits: Limits) -> Usage {
        Usage {
            project: limits,
            limits: Cell::new(limits),
            steps: Cell::new(0),
            journal: Cell::new(0),
            output: Cell::new(0),
            branches: Cell::new(0),
            waits: RefCell::default(),
        }
    }

    /// Applies the limits of the run's flow.
    pub(super) fn bound(&self, limits: Limits) {
        self.limits.set(limits);
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits.get()
    }

    /// Renews the limits of the run, for work after its flow.
    pub(super) fn renew(&self) {
        for count in [&self.steps, &self.journal, &self.output, &self.branches] {
            count.set(0);
        }
    }

    /// Counts a step, and checks whether the run is within its limits.
    pub(super) fn step(&self) -> Result<(), Halt> {
        self.add(&self.steps, 1, &limits::STEPS)?;
        self.check()
    }

    /// Checks the limits of journal and output, which are counted when they are written.
    pub(super) fn check(&self) -> Result<(), Halt> {
        self.add(&self.journal, 0, &limits::JOURNAL)?;
        self.check_output()
    }

    /// Checks the limit of the output: a flow may print and end without a step.
    pub(super) fn check_output(&self) -> Result<(), Halt> {
        self.add(&self.output, 0, &limits::OUTPUT)
    }

    pub(super) fn wrote(&self, bytes: usize) {
        self.output.set(self.output.get() + bytes as u64);
    }

    /// Returns the size of a journal.
    pub(super) fn size_of<'e>(entries: impl IntoIterator<Item = &'e Entry>) -> u64 {
        entries.into_iter().map(size).sum::<usize>() as u64
    }

    pub(super) fn add_journal(&self, bytes: u64) {
        self.journal.set(self.journal.get().saturating_add(bytes));
    }

    /// Counts additions to the journal.
    pub(super) fn changed(&self, changes: &[Change]) {
        let entries = changes.iter().filter_map(|change| match change {
            Change::Append(entry) => Some(entry),
            _ => None,
        });
        self.add_journal(Usage::size_of(entries));
    }

    /// Counts results of stores, which they add to the journal.
    pub(super) fn results(&self, results: &[String]) {
        self.add_journal(results.iter().map(|text| text.len() as u64).sum());
    }

    /// Counts requested branches, of which `at_once` start together, in addition to the active ones.
    pub(super) fn branches(&self, asked: usize, at_once: usize) -> Result<(), Halt> {
        self.add(&self.branches, asked as u64, &limits::BRANCHES_IN_TOTAL)?;
        self.within(at_once as u64, &limits::BRANCHES)
    }

    /// Counts a wait that is open.
    pub(super) fn waits(&self, path: &str) -> Result<(), Halt> {
        let mut waits = self.waits.borrow_mut();
        if !waits.contains(path) {
            waits.insert(path.to_owned());
        }
        self.within(waits.len() as u64, &limits::WAITS)
    }

    /// Removes a wait that is closed.
    pub(super) fn closed(&self, path: &str) {
        self.waits.borrow_mut().remove(path);
    }

    fn add(&self, count: &Cell<u64>, more: u64, limit: &Limit) -> Result<(), Halt> {
        count.set(count.get().saturating_add(more));
        self.within(count.get(), limit)
    }

    fn within(&self, count: u64, limit: &Limit) -> Result<(), Halt> {
        let most = self.limits.get().value(limit);
        match count > most {
            true => Err(Halt::Limit(Rc::new(self.exceeded(limit, most)))),
            false => Ok(()),
        }
    }

    fn exceeded(&self, limit: &Limit, most: u64) -> Exception {
        let (what, most) = (limit.what, limit.shown(most));
        let message = format!("the run was stopped: it exceeded its limit of {most} ({what})");
        let hint = format!("do less in one run, or {}", self.how_to_raise(limit));
        Exception::new(Class::ERROR, limit.code, message).hint(hint)
    }

    /// Describes where a limit of the run can be raised: in its flow, if the flow has lowered it.
    pub(super) fn how_to_raise(&self, limit: &Limit) -> String {
        let is_of_flow = self.limits.get().value(limit) < self.project.value(limit);
        let place = if is_of_flow {
            "of the flow"
        } else {
            "in flowstone.edn"
        };
        format!("raise `:limits {{:{} ...}}` {place}", limit.key)
    }
}

fn size(entry: &Entry) -> usize {
    let request = entry.request.as_ref().map_or(0, String::len);
    entry.payload.len() + entry.path.len() + request + ENTRY_BYTES
}
