//! What each line of a run has for itself: the main line of the flow, and every branch that goes on beside others.
//!
//! A line's place in the run, its count of what it met and its share of randomness depend on the flow alone, never on
//! which of several lines was faster.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use flowstone_lang::value::{Object, Value};

use crate::ids::{RunId, StepPath};
use crate::journal::History;
use crate::ports::{ParentClose, mix};
use crate::step::NestedRequest;

/// Randomness of the `n`th draw is that of the `n`th multiple of this.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// One line of a run.
#[derive(Debug)]
pub(crate) struct Line {
    /// No other line is beside it: it parks the run.
    is_alone: bool,
    /// How many steps that perform others are around what stands on it.
    level: u32,
    /// The most tokens that models may use in what stands on it.
    allowance: Option<i64>,
    /// Rules of the steps around what stands on it.
    rules: Option<Value>,
    /// Where it branched off; empty for the main line.
    prefix: String,
    /// How often each step id was met.
    counters: Rc<RefCell<HashMap<String, u32>>>,
    seed: u64,
    draws: Cell<u64>,
    /// How many places it has passed where the run was forked.
    forks: Cell<usize>,
    /// Which end of the run's journal the request under way has made, counted in this drive.
    sequence: Cell<Option<u64>>,
    /// The child run whose end the request under way needs.
    child: RefCell<Option<(RunId, ParentClose)>>,
    /// What the request under way waits for, where nothing is done meanwhile.
    waiting: RefCell<Option<Waiting>>,
}

/// Something that a line waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waiting {
    pub reason: String,
    pub due_ms: Option<i64>,
    /// The process is to stay for it.
    pub stays: bool,
}

impl Line {
    pub(super) fn main(seed: u64) -> Rc<Line> {
        Rc::new(Line::new(String::new(), seed))
    }

    /// Branches off another line. `prefix` is unique in the run.
    pub(super) fn branch(prefix: String, from: &Line) -> Rc<Line> {
        let seed = from.seed_below(&prefix);
        let line = Line::new(prefix, seed);
        line.forks.set(from.forks.get());
        Rc::new(line)
    }

    fn seed_below(&self, prefix: &str) -> u64 {
        prefix
            .bytes()
            .fold(self.seed, |seed, byte| mix(seed ^ u64::from(byte)))
    }

    fn new(prefix: String, seed: u64) -> Line {
        Line {
            is_alone: prefix.is_empty(),
            level: 0,
            allowance: None,
            rules: None,
            prefix,
            counters: Rc::default(),
            seed,
            draws: Cell::new(0),
            forks: Cell::new(0),
            sequence: Cell::new(None),
            child: RefCell::default(),
            waiting: RefCell::default(),
        }
    }

    /// Returns a line that runs when the main one is over. `prefix` is unique in the run.
    pub(super) fn alone(prefix: String, main: &Line) -> Rc<Line> {
        let seed = main.seed_below(&prefix);
        let mut line = Line::new(prefix, seed);
        line.is_alone = true;
        line.forks.set(main.forks.get());
        Rc::new(line)
    }

    /// Returns a line for what a step performs, whose path is `prefix`.
    pub(super) fn inside(prefix: String, owner: &Line) -> Line {
        let seed = owner.seed_below(&prefix);
        let mut line = Line::new(prefix, seed);
        line.is_alone = owner.is_alone;
        line.level = owner.level + 1;
        line.rules.clone_from(&owner.rules);
        line
    }

    /// Returns a line at the same place, for a step beside others, with the limits and rules that it is given: only what was
    /// met there is counted together.
    pub(super) fn twin(&self, inside: &NestedRequest) -> Rc<Line> {
        let mut line = Line::new(self.prefix.clone(), self.seed);
        line.is_alone = self.is_alone;
        line.level = self.level;
        line.allowance = inside.allowance;
        line.rules = inside.rules.clone().or_else(|| self.rules.clone());
        line.counters = self.counters.clone();
        Rc::new(line)
    }

    /// Tells whether no other line can be beside it.
    pub(super) fn is_main(&self) -> bool {
        self.is_alone
    }

    /// Tells whether it is for what a step performs.
    pub(super) fn is_inside(&self) -> bool {
        self.level > 0
    }

    /// Returns how many steps that perform others are around what stands on it.
    pub(super) fn level(&self) -> u32 {
        self.level
    }

    /// Returns the most tokens that models may use in what stands on it.
    pub(super) fn allowance(&self) -> Option<i64> {
        self.allowance
    }

    /// Returns the rules of the steps around what stands on it.
    pub(super) fn rules(&self) -> Option<Value> {
        self.rules.clone()
    }

    /// Tells whether it is that of the flow itself.
    pub(super) fn is_body(&self) -> bool {
        self.prefix.is_empty()
    }

    /// Returns the path of the next occurrence of a step id.
    pub(super) fn next_path(&self, step: &str) -> StepPath {
        let mut counters = self.counters.borrow_mut();
        let count = match counters.get_mut(step) {
            Some(count) => count,
            None => counters.entry(step.to_owned()).or_default(),
        };
        *count += 1;
        StepPath {
            branch: self.prefix.clone(),
            step: step.to_owned(),
            occurrence: *count,
        }
    }

    /// Notes how many forks lie before what the line asks for.
    pub(super) fn pass_forks(&self, passed: usize) {
        self.forks.set(self.forks.get().max(passed));
    }

    /// Returns the next bits of the line's own random sequence: the same on replay, without a journal entry.
    pub(super) fn random(&self, history: &History) -> u64 {
        self.pass_forks(history.passed());
        let draw = self.draws.get() + 1;
        self.draws.set(draw);
        let seed = match history.fork_seed(self.forks.get()) {
            Some(fork) => mix(self.seed ^ fork),
            None => self.seed,
        };
        mix(seed.wrapping_add(draw.wrapping_mul(STRIDE)))
    }

    pub(super) fn uuid(&self, history: &History) -> Value {
        let random = || u128::from(self.random(history));
        let bits = (random() << 64) | random();
        let version = (bits & !(0xf << 76)) | (4 << 76);
        Object::Uuid((version & !(0b11 << 62)) | (0b10 << 62)).into()
    }

    pub(super) fn fraction(&self, history: &History) -> Value {
        Value::Float((self.random(history) >> 11) as f64 / (1_u64 << 53) as f64)
    }

    pub(super) fn sequence(&self) -> Option<u64> {
        self.sequence.get()
    }

    /// Notes that the request under way has made its end, as the journal's `sequence`th; `None`: that was undone.
    pub(super) fn set_sequence(&self, sequence: Option<u64>) {
        self.sequence.set(sequence);
    }

    pub(super) fn set_child(&self, child: RunId, close: ParentClose) {
        self.child.replace(Some((child, close)));
    }

    /// Gives the child up.
    pub(super) fn take_child(&self) -> Option<(RunId, ParentClose)> {
        self.child.take()
    }

    /// Tells whether the request under way still needs the end of a child.
    pub(super) fn has_child(&self) -> bool {
        self.child.borrow().is_some()
    }

    /// Says that nothing is done on this line until what is returned is dropped.
    pub(super) fn wait(self: &Rc<Self>, waiting: Waiting) -> WaitingNow {
        self.waiting.replace(Some(waiting));
        WaitingNow(self.clone())
    }

    pub(super) fn waiting(&self) -> Option<Waiting> {
        self.waiting.borrow().clone()
    }
}

/// A line waits for as long as this lives.
pub(super) struct WaitingNow(Rc<Line>);

impl Drop for WaitingNow {
    fn drop(&mut self) {
        self.0.waiting.take();
    }
}
