//! Computes the next cell of a lazy sequence that applies a stage, or that joins two others.

use super::Vm;
use crate::value::{Emit, Lazy, List, Result, Signal, Span, Stage, Thunk, Value};

impl Vm {
    /// Pulls items of `coll` through a stage until it emits one: one item at a time, in a loop.
    pub(super) fn pull(&mut self, mut stage: Box<dyn Stage>, mut coll: Value) -> Result<Value> {
        loop {
            if stage.is_done() {
                return Ok(Value::Nil);
            }
            if stage.is_spent() {
                return Ok(coll);
            }
            self.charge(1)?;
            let Some((item, rest)) = self.uncons(std::mem::replace(&mut coll, Value::Nil))? else {
                return Ok(stage
                    .flush()
                    .map_or(Value::Nil, |last| List::cons(last, Value::Nil)));
            };
            let more = |stage, coll| Lazy::new(Thunk::Stage { stage, coll });
            let emit = stage
                .step(self, item)
                .map_err(|signal| made_at(stage.made_at(), signal))?;
            match emit {
                Emit::Nothing => coll = rest,
                Emit::One(item) => return Ok(List::cons(item, more(stage, rest))),
                Emit::Two(first, second) => {
                    return Ok(List::cons(first, List::cons(second, more(stage, rest))));
                }
                Emit::Each(items) => match self.uncons(items)? {
                    None => coll = rest,
                    Some((item, others)) => {
                        return Ok(List::cons(item, join(others, more(stage, rest))));
                    }
                },
                Emit::Last(item) => return Ok(List::cons(item, Value::Nil)),
                Emit::Stop => return Ok(Value::Nil),
            }
        }
    }
}

/// Records where a lazy sequence was created whose computation failed.
#[cold]
pub(crate) fn made_at(place: Span, signal: Signal) -> Signal {
    if let Signal::Throw(exception) = &signal
        && place.is_some()
    {
        let lazies = &mut exception.origin.borrow_mut().lazies;
        if lazies.len() < MOST_LAZIES && !lazies.contains(&place) {
            lazies.push(place);
        }
    }
    signal
}

/// Maximum number of nested sequences that an error names.
const MOST_LAZIES: usize = 4;

/// Returns the items of `first` followed by those of `second`, both seqable and not opened yet.
pub(crate) fn join(first: Value, second: Value) -> Value {
    if first.is_nil() {
        return match second {
            Value::Nil | Value::List(_) | Value::Seq(_) | Value::Lazy(_) => second,
            // The rest of a cell is a sequence, not merely a seqable value.
            other => Lazy::native(move |_| Ok(other)),
        };
    }
    Lazy::native(move |vm| {
        Ok(match vm.uncons(first)? {
            None => second,
            Some((item, rest)) => List::cons(item, join(rest, second)),
        })
    })
}
