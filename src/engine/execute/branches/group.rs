//! A group of branches: which of them may start, and their combined result.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::rc::Rc;

use flowstone_lang::value::{Exception, Result as Evaluated, Signal, Value};

use crate::codec;
use crate::flow::name_of;
use crate::natives::branches::{Branches, Gather, Node, OnFailure};
use crate::observer::RunEvent;

/// The branches of one call.
pub(super) struct Group {
    /// The branch that opened the group; `None` for the outermost group.
    pub owner: Option<u64>,
    /// The path of the group in the run.
    pub path: String,
    pub asked: Branches,
    labels: Vec<String>,
    /// Branches that may start, in order.
    ready: VecDeque<usize>,
    /// The number of values that each branch still waits for, if any.
    missing: BTreeMap<usize, usize>,
    /// The ids of the active branches, by number.
    pub running: BTreeMap<usize, u64>,
    values: Vec<Value>,
    /// The number of branches that have ended.
    done: usize,
    /// The answer of the group once all active branches are unwound.
    decided: Option<Evaluated<Value>>,
}

impl Group {
    pub(super) fn new(owner: Option<u64>, path: String, asked: Branches) -> Group {
        let mut ready = VecDeque::new();
        let mut missing = BTreeMap::new();
        for (idx, node) in asked.nodes.iter().enumerate() {
            let needs: HashSet<usize> = node.needs.iter().copied().collect();
            if needs.is_empty() {
                ready.push_back(idx);
            } else {
                missing.insert(idx, needs.len());
            }
        }
        Group {
            owner,
            path,
            labels: labels(&asked.nodes),
            ready,
            missing,
            running: BTreeMap::new(),
            values: vec![Value::Nil; asked.nodes.len()],
            done: 0,
            asked,
            decided: None,
        }
    }

    /// Returns the next branch to start: its number, its path, and its arguments.
    pub(super) fn next(&mut self) -> Option<(usize, String, Vec<Value>)> {
        if self.running.len() >= self.asked.max {
            return None;
        }
        let idx = self.ready.pop_front()?;
        let node = &mut self.asked.nodes[idx];
        let mut args = std::mem::take(&mut node.args);
        args.extend(node.needs.iter().map(|need| self.values[*need].clone()));
        Some((idx, format!("{}.{}", self.path, self.labels[idx]), args))
    }

    /// Takes the result of a branch, which is no longer active.
    pub(super) fn ended(&mut self, idx: usize, result: Evaluated<Value>) {
        self.running.remove(&idx);
        self.done += 1;
        if self.decided.is_some() {
            return;
        }
        match (result, self.asked.gather, self.asked.on_failure) {
            (Ok(value), Gather::First, _) => {
                let name = self.asked.nodes[idx].name.clone();
                self.decided = Some(Ok(Value::vector([name, value])));
            }
            (Ok(value), Gather::All, _) => self.keep(idx, value),
            // A signal that stops the whole run applies under every policy.
            (Err(signal @ Signal::Stop(_)), ..) => self.decided = Some(Err(signal)),
            (Err(Signal::Throw(exception)), Gather::All, OnFailure::Collect) => {
                self.keep(idx, collected(&exception));
            }
            (Err(_), Gather::All, OnFailure::Continue) => self.keep(idx, Value::Nil),
            (Err(signal), ..) => self.decided = Some(Err(signal)),
        }
    }

    /// Returns the event with the number of branches that have ended.
    pub(super) fn progress(&self) -> RunEvent {
        RunEvent::Branches {
            path: self.path.clone(),
            done: self.done,
            total: self.asked.nodes.len(),
        }
    }

    fn keep(&mut self, idx: usize, value: Value) {
        self.values[idx] = value;
        let freed: Vec<usize> = self
            .missing
            .iter_mut()
            .filter(|(waiting, _)| self.asked.nodes[**waiting].needs.contains(&idx))
            .filter_map(|(waiting, count)| {
                *count -= 1;
                (*count == 0).then_some(*waiting)
            })
            .collect();
        for freed in freed {
            self.missing.remove(&freed);
            self.ready.push_back(freed);
        }
    }

    /// Sets the group's answer while branches are still active: no further ones start.
    pub(super) fn decide(&mut self, answer: Evaluated<Value>) {
        self.decided = Some(answer);
    }

    /// Tells whether the results of the active branches no longer matter.
    pub(super) fn is_decided(&self) -> bool {
        self.decided.is_some()
    }

    /// Returns the group's answer once no branch is active and none is left to start.
    pub(super) fn answer(&mut self) -> Option<Evaluated<Value>> {
        if !self.running.is_empty() {
            return None;
        }
        if let Some(decided) = self.decided.take() {
            return Some(decided);
        }
        if !self.ready.is_empty() {
            return None;
        }
        Some(Ok(Value::vector(std::mem::take(&mut self.values))))
    }
}

/// Returns the labels of the branches in paths: their names if they are usable, else their numbers.
fn labels(nodes: &[Node]) -> Vec<String> {
    let mut taken = HashSet::new();
    nodes
        .iter()
        .enumerate()
        .map(|(idx, node)| match usable(&node.name) {
            Some(name) if taken.insert(name.clone()) => name.to_string(),
            // Usable names contain no dot, so this label is unique.
            Some(name) => format!("{name}.{idx}"),
            None => idx.to_string(),
        })
        .collect()
}

fn usable(name: &Value) -> Option<Rc<str>> {
    let name = name_of(name)?;
    let begins = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
    let is_usable = begins
        && name
            .chars()
            .all(|letter| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '?' | '!'));
    is_usable.then_some(name)
}

/// Returns a failure as data.
fn collected(exception: &Rc<Exception>) -> Value {
    let data = &exception.data;
    let kind = data.get("kind").cloned().unwrap_or(Value::Nil);
    let mut error = vec![
        (Value::keyword("message"), Value::from(exception.text())),
        (Value::keyword("kind"), kind),
    ];
    if !exception.code.is_empty() {
        error.push((Value::keyword("code"), Value::from(exception.code)));
    }
    // A value that cannot be encoded is not data.
    if !data.is_nil() && codec::encode(data).is_ok() {
        error.push((Value::keyword("data"), data.clone()));
    }
    Value::map([(Value::keyword("error"), Value::map(error))])
}
