//! The stages of pipelines. Each is implemented once and serves lazy sequences, transducers and reductions.

use std::collections::VecDeque;

use super::function::Function;
use crate::value::{Emit, Lazy, PSet, Result, Span, Stage, Thunk, Value};
use crate::vm::Vm;

/// A stage and its state. A clone of a fresh stage starts a new run.
#[derive(Clone)]
pub(crate) enum Step {
    Map(Function),
    Filter(Function),
    Remove(Function),
    Keep(Function),
    MapIndexed(Value, i64),
    KeepIndexed(Value, i64),
    Take(u64),
    TakeWhile(Function),
    Drop(u64),
    /// The predicate; `None` once an item has passed.
    DropWhile(Option<Function>),
    /// The period, and the number of items still to be skipped.
    TakeNth(u64, u64),
    Distinct(PSet),
    Dedupe(Option<Value>),
    /// The separator, and whether an item came before.
    Interpose(Value, bool),
    Replace(Value),
    Cat,
    Mapcat(Function),
    PartitionAll(Parts),
    PartitionBy {
        function: Function,
        last: Option<Value>,
        parts: Parts,
    },
    /// The probability of passing.
    RandomSample(f64),
    /// Delays each item by a number of items: when one arrives, the oldest is emitted (`drop-last`).
    Delay(usize, VecDeque<Value>),
}

fn call_with_index(vm: &mut Vm, function: &Value, idx: i64, item: Value) -> Result<Value> {
    let mut result = Value::Int(idx);
    vm.update_with(function, &mut result, item)?;
    Ok(result)
}

/// Items collected for a part.
#[derive(Clone)]
pub(crate) struct Parts {
    pub size: usize,
    pub items: Vec<Value>,
    /// Whether parts become lists, as in sequence functions, or vectors, as in transducers.
    pub as_lists: bool,
}

impl Parts {
    fn close(&mut self) -> Value {
        let items = std::mem::take(&mut self.items);
        if self.as_lists {
            Value::list(items)
        } else {
            Value::vector(items)
        }
    }
}

/// Returns the lazy sequence of `step` applied to `coll`.
pub(crate) fn lazy(step: Step, coll: Value) -> Value {
    Lazy::new(Thunk::Stage {
        stage: Box::new(Made::from(step)),
        coll,
    })
}

/// Returns the lazy sequence of `step` applied to `coll`; it remembers the current call.
pub(crate) fn lazy_here(vm: &Vm, step: Step, coll: Value) -> Value {
    Lazy::new(Thunk::Stage {
        stage: Box::new(Made {
            step,
            at: vm.here(),
        }),
        coll,
    })
}

/// A step of a lazy sequence, and where the sequence was created, if known.
pub(crate) struct Made {
    pub step: Step,
    pub at: Span,
}

impl From<Step> for Made {
    fn from(step: Step) -> Made {
        Made {
            step,
            at: Span::NONE,
        }
    }
}

impl Stage for Made {
    fn step(&mut self, vm: &mut Vm, item: Value) -> Result<Emit> {
        self.step.step(vm, item)
    }

    fn flush(&mut self) -> Option<Value> {
        self.step.flush()
    }

    fn is_done(&self) -> bool {
        self.step.is_done()
    }

    fn made_at(&self) -> Span {
        self.at
    }

    fn is_spent(&self) -> bool {
        self.step.is_spent()
    }
}

impl Step {
    /// See [`Stage::step`].
    pub(crate) fn step(&mut self, vm: &mut Vm, item: Value) -> Result<Emit> {
        let pass = |pass: bool, item: Value| if pass { Emit::One(item) } else { Emit::Nothing };
        Ok(match self {
            Step::Map(function) => Emit::One(function.call(vm, item)?),
            Step::Filter(pred) => pass(pred.test(vm, &item)?, item),
            Step::Remove(pred) => pass(!pred.test(vm, &item)?, item),
            Step::Keep(function) => {
                let item = function.call(vm, item)?;
                pass(!item.is_nil(), item)
            }
            Step::MapIndexed(function, idx) => {
                let item = call_with_index(vm, function, *idx, item)?;
                *idx += 1;
                Emit::One(item)
            }
            Step::KeepIndexed(function, idx) => {
                let item = call_with_index(vm, function, *idx, item)?;
                *idx += 1;
                pass(!item.is_nil(), item)
            }
            // Indexes are divided by the period.
            Step::TakeNth(0, _) => return Err(crate::value::number::divide_by_zero()),
            Step::TakeWhile(pred) => {
                if pred.test(vm, &item)? {
                    Emit::One(item)
                } else {
                    Emit::Stop
                }
            }
            Step::DropWhile(pred) => match pred {
                Some(function) if function.test(vm, &item)? => Emit::Nothing,
                _ => {
                    *pred = None;
                    Emit::One(item)
                }
            },
            Step::Distinct(seen) => {
                vm.realise_key(&item)?;
                if seen.contains(&item) {
                    Emit::Nothing
                } else {
                    seen.insert(item.clone());
                    Emit::One(item)
                }
            }
            Step::Dedupe(last) => {
                let same = match last {
                    Some(last) => vm.equal(last, &item)?,
                    None => false,
                };
                *last = Some(item.clone());
                pass(!same, item)
            }
            Step::Replace(map) => match crate::core::maps::find(vm, map, &item)? {
                Some((_, replacement)) => Emit::One(replacement),
                None => Emit::One(item),
            },
            Step::Mapcat(function) => Emit::Each(function.call(vm, item)?),
            Step::PartitionBy {
                function,
                last,
                parts,
            } => {
                let key = function.call(vm, item.clone())?;
                let same = match last.replace(key.clone()) {
                    Some(last) => vm.equal(&last, &key)?,
                    None => true,
                };
                let emit = if same {
                    Emit::Nothing
                } else {
                    Emit::One(parts.close())
                };
                parts.items.push(item);
                emit
            }
            Step::RandomSample(probability) => {
                pass(crate::core::random::unit(vm)? < *probability, item)
            }
            other => other.count_step(item),
        })
    }

    /// See [`Stage::flush`].
    pub(crate) fn flush(&mut self) -> Option<Value> {
        match self {
            Step::PartitionAll(parts) | Step::PartitionBy { parts, .. }
                if !parts.items.is_empty() =>
            {
                Some(parts.close())
            }
            _ => None,
        }
    }

    /// See [`Stage::is_done`].
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Step::Take(0))
    }

    /// See [`Stage::is_spent`].
    pub(crate) fn is_spent(&self) -> bool {
        matches!(self, Step::Drop(0) | Step::DropWhile(None))
    }
}

impl Step {
    /// Performs a step that only counts or collects, and calls nothing.
    fn count_step(&mut self, item: Value) -> Emit {
        match self {
            Step::Take(0) => Emit::Stop,
            Step::Take(left) => {
                *left -= 1;
                if *left == 0 {
                    Emit::Last(item)
                } else {
                    Emit::One(item)
                }
            }
            Step::Drop(0) => Emit::One(item),
            Step::Drop(left) => {
                *left -= 1;
                Emit::Nothing
            }
            Step::TakeNth(period, left) => {
                if *left == 0 {
                    *left = period.saturating_sub(1);
                    Emit::One(item)
                } else {
                    *left -= 1;
                    Emit::Nothing
                }
            }
            Step::Interpose(separator, started) => {
                if std::mem::replace(started, true) {
                    Emit::Two(separator.clone(), item)
                } else {
                    Emit::One(item)
                }
            }
            Step::Cat => Emit::Each(item),
            Step::PartitionAll(parts) => {
                parts.items.push(item);
                if parts.items.len() >= parts.size {
                    Emit::One(parts.close())
                } else {
                    Emit::Nothing
                }
            }
            Step::Delay(count, held) => {
                held.push_back(item);
                if held.len() > *count {
                    held.pop_front().map_or(Emit::Nothing, Emit::One)
                } else {
                    Emit::Nothing
                }
            }
            _ => Emit::One(item),
        }
    }
}
