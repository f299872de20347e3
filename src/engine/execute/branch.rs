//! The state of one branch of a run: the main branch, or a concurrent one.
//!
//! The path of a branch, its counters of steps and its random numbers depend on the flow alone, never on which of
//! several branches was faster.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use flowstone_lang::value::{Object, Value};

use crate::ids::{RunId, StepPath};
use crate::journal::History;
use crate::ports::{ParentClose, mix};
use crate::step::NestedRequest;

/// The random number of the `n`th draw is derived from the `n`th multiple of this.
const STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

/// One branch of a run.
#[derive(Debug)]
pub(crate) struct Branch {
    /// Whether no other branch is concurrent with it, so that its wait suspends the run.
    is_alone: bool,
    /// Number of outer steps that surround its requests.
    level: u32,
    /// Maximum number of tokens that models may use in its steps.
    allowance: Option<i64>,
    /// The rules of the outer steps that surround its requests.
    rules: Option<Value>,
    /// Texts of its request that are made from the run's id.
    own_texts: Vec<String>,
    /// Whether what its request names belongs to the author of an installed flow.
    is_of_author: bool,
    /// What a person agreed to, for its request.
    agreed: Option<String>,
    /// The path of the branch; empty for the main branch.
    prefix: String,
    /// How many times each step id was requested.
    counters: Rc<RefCell<HashMap<String, u32>>>,
    seed: u64,
    draws: Cell<u64>,
    /// Number of fork points of the run that it has passed.
    forks: Cell<usize>,
    /// The sequence number of the outcome that the request in progress has produced, counted in this execution.
    sequence: Cell<Option<u64>>,
    /// The child run that the request in progress waits for.
    child: RefCell<Option<(RunId, ParentClose)>>,
    /// What the request in progress waits for; `None` while it is being performed.
    waiting: RefCell<Option<Waiting>>,
}

/// The reason and the deadline of a branch's wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Waiting {
    pub reason: String,
    pub due_ms: Option<i64>,
    /// Whether the process stays in memory for it.
    pub stays: bool,
}

impl Branch {
    pub(super) fn main(seed: u64) -> Rc<Branch> {
        Rc::new(Branch::new(String::new(), seed))
    }

    /// Returns a new concurrent branch. `prefix` is unique in the run.
    pub(super) fn concurrent(prefix: String, from: &Branch) -> Rc<Branch> {
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
            own_texts: Vec::new(),
            is_of_author: false,
            agreed: None,
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

    /// Returns a branch that runs after the main branch has ended. `prefix` is unique in the run.
    pub(super) fn alone(prefix: String, main: &Branch) -> Rc<Branch> {
        let seed = main.seed_below(&prefix);
        let mut branch = Branch::new(prefix, seed);
        branch.is_alone = true;
        branch.forks.set(main.forks.get());
        Rc::new(branch)
    }

    /// Returns a branch for the nested steps of a step, under the path `prefix`.
    pub(super) fn nested(prefix: String, owner: &Branch) -> Branch {
        let seed = owner.seed_below(&prefix);
        let mut branch = Branch::new(prefix, seed);
        branch.is_alone = owner.is_alone;
        branch.level = owner.level + 1;
        branch.rules.clone_from(&owner.rules);
        branch
    }

    /// Returns a branch at the same path for a concurrent nested step, with its own limits and rules. The two share their
    /// counters of steps.
    pub(super) fn twin(&self, nested: &NestedRequest) -> Rc<Branch> {
        let mut branch = Branch::new(self.prefix.clone(), self.seed);
        branch.is_alone = self.is_alone;
        branch.level = self.level;
        branch.allowance = nested.allowance;
        branch.rules = nested.rules.clone().or_else(|| self.rules.clone());
        branch.counters = self.counters.clone();
        branch.own_texts.clone_from(&nested.own_texts);
        branch.is_of_author = nested.is_of_author;
        branch.agreed.clone_from(&nested.agreed);
        Rc::new(branch)
    }

    /// Returns the digest of the call that a person agreed to.
    pub(super) fn agreed(&self) -> Option<String> {
        self.agreed.clone()
    }

    /// Tells whether what its request names belongs to the author of an installed flow.
    pub(super) fn is_of_author(&self) -> bool {
        self.is_of_author
    }

    /// Tells whether no other branch can be concurrent with it.
    pub(super) fn is_main(&self) -> bool {
        self.is_alone
    }

    /// Tells whether this branch is for nested steps.
    pub(super) fn is_nested(&self) -> bool {
        self.level > 0
    }

    /// Returns the number of outer steps that surround its requests.
    pub(super) fn level(&self) -> u32 {
        self.level
    }

    /// Returns the maximum number of tokens that models may use in its steps.
    pub(super) fn allowance(&self) -> Option<i64> {
        self.allowance
    }

    /// Returns the rules of the outer steps that surround its requests.
    pub(super) fn rules(&self) -> Option<Value> {
        self.rules.clone()
    }

    /// Returns texts of its request that are made from the run's id.
    pub(super) fn own_texts(&self) -> &[String] {
        &self.own_texts
    }

    /// Tells whether this is the main branch, the flow itself.
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

    /// Records the number of fork points before the branch's request.
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

    /// Sets the sequence number of the outcome that the request in progress has produced; `None` withdraws it.
    pub(super) fn set_sequence(&self, sequence: Option<u64>) {
        self.sequence.set(sequence);
    }

    pub(super) fn set_child(&self, child: RunId, close: ParentClose) {
        self.child.replace(Some((child, close)));
    }

    /// Takes the child: the request no longer waits for it.
    pub(super) fn take_child(&self) -> Option<(RunId, ParentClose)> {
        self.child.take()
    }

    /// Tells whether the request in progress still waits for the end of a child.
    pub(super) fn has_child(&self) -> bool {
        self.child.borrow().is_some()
    }

    /// Marks this branch as waiting until the returned guard is dropped.
    pub(super) fn wait(self: &Rc<Self>, waiting: Waiting) -> WaitingNow {
        self.waiting.replace(Some(waiting));
        WaitingNow(self.clone())
    }

    pub(super) fn waiting(&self) -> Option<Waiting> {
        self.waiting.borrow().clone()
    }
}

/// Marks a branch as waiting while it is alive.
pub(super) struct WaitingNow(Rc<Branch>);

impl Drop for WaitingNow {
    fn drop(&mut self) {
        self.0.waiting.take();
    }
}
