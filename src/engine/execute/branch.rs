//! What each branch of a run has for itself: the main branch of the flow, and every branch that goes on beside others.
//!
//! A branch's place in the run, its count of what it met and its share of randomness depend on the flow alone, never on
//! which of several branches was faster.

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

/// One branch of a run.
#[derive(Debug)]
pub(crate) struct Branch {
    /// No other branch is beside it: it suspends the run.
    is_alone: bool,
    /// How many steps that perform others are around what stands on it.
    level: u32,
    /// The most tokens that models may use in what stands on it.
    allowance: Option<i64>,
    /// Rules of the steps around what stands on it.
    rules: Option<Value>,
    /// Where it branched off; empty for the main branch.
    prefix: String,
    /// How often each step id was met.
    counters: Rc<RefCell<HashMap<String, u32>>>,
    seed: u64,
    draws: Cell<u64>,
    /// How many places it has passed where the run was forked.
    forks: Cell<usize>,
    /// Which end of the run's journal the request under way has made, counted in this execution.
    sequence: Cell<Option<u64>>,
    /// The child run whose end the request under way needs.
    child: RefCell<Option<(RunId, ParentClose)>>,
    /// What the request under way waits for, where nothing is done meanwhile.
    waiting: RefCell<Option<Waiting>>,
}

/// Something that a branch waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waiting {
    pub reason: String,
    pub due_ms: Option<i64>,
    /// The process is to stay for it.
    pub stays: bool,
}

impl Branch {
    pub(super) fn main(seed: u64) -> Rc<Branch> {
        Rc::new(Branch::new(String::new(), seed))
    }

    /// Branches off another branch. `prefix` is unique in the run.
    pub(super) fn beside(prefix: String, from: &Branch) -> Rc<Branch> {
        let seed = from.seed_below(&prefix);
        let branch = Branch::new(prefix, seed);
        branch.forks.set(from.forks.get());
        Rc::new(branch)
    }

    fn seed_below(&self, prefix: &str) -> u64 {
        prefix
            .bytes()
            .fold(self.seed, |seed, byte| mix(seed ^ u64::from(byte)))
    }

    fn new(prefix: String, seed: u64) -> Branch {
        Branch {
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

    /// Returns a branch that runs when the main one is over. `prefix` is unique in the run.
    pub(super) fn alone(prefix: String, main: &Branch) -> Rc<Branch> {
        let seed = main.seed_below(&prefix);
        let mut branch = Branch::new(prefix, seed);
        branch.is_alone = true;
        branch.forks.set(main.forks.get());
        Rc::new(branch)
    }

    /// Returns a branch for what a step performs, whose path is `prefix`.
    pub(super) fn inside(prefix: String, owner: &Branch) -> Branch {
        let seed = owner.seed_below(&prefix);
        let mut branch = Branch::new(prefix, seed);
        branch.is_alone = owner.is_alone;
        branch.level = owner.level + 1;
        branch.rules.clone_from(&owner.rules);
        branch
    }

    /// Returns a branch at the same place, for a step beside others, with the limits and rules that it is given: only what was
    /// met there is counted together.
    pub(super) fn twin(&self, inside: &NestedRequest) -> Rc<Branch> {
        let mut branch = Branch::new(self.prefix.clone(), self.seed);
        branch.is_alone = self.is_alone;
        branch.level = self.level;
        branch.allowance = inside.allowance;
        branch.rules = inside.rules.clone().or_else(|| self.rules.clone());
        branch.counters = self.counters.clone();
        Rc::new(branch)
    }

    /// Tells whether no other branch can be beside it.
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

    /// Notes how many forks lie before what the branch asks for.
    pub(super) fn pass_forks(&self, passed: usize) {
        self.forks.set(self.forks.get().max(passed));
    }

    /// Returns the next bits of the branch's own random sequence: the same on replay, without a journal entry.
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

    /// Says that nothing is done on this branch until what is returned is dropped.
    pub(super) fn wait(self: &Rc<Self>, waiting: Waiting) -> WaitingNow {
        self.waiting.replace(Some(waiting));
        WaitingNow(self.clone())
    }

    pub(super) fn waiting(&self) -> Option<Waiting> {
        self.waiting.borrow().clone()
    }
}

/// A branch waits for as long as this lives.
pub(super) struct WaitingNow(Rc<Branch>);

impl Drop for WaitingNow {
    fn drop(&mut self) {
        self.0.waiting.take();
    }
}
