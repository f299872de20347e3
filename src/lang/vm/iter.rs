//! Iteration over sequences without holding their heads, and without allocating cells for existing items.

use std::rc::Rc;

use super::Vm;
use crate::value::{PVec, Result, SeqView, Text, Value};

/// An iteration over a sequence. See [`Vm::iter`].
pub struct Iter {
    at: At,
}

/// The position of an iteration.
enum At {
    /// A seqable value that has not been opened yet.
    Value(Value),
    Slice {
        items: PVec,
        next: usize,
    },
    Chunk {
        items: Rc<[Value]>,
        next: usize,
        rest: Value,
    },
    Range {
        next: i64,
        end: i64,
        step: i64,
    },
    Chars {
        text: Rc<Text>,
        next: usize,
    },
}

impl Vm {
    /// Returns an iteration over a seqable value that does not hold its head.
    ///
    /// # Errors
    /// Currently never: a value that is not seqable fails at the first item.
    pub fn iter(&mut self, value: Value) -> Result<Iter> {
        Ok(Iter::new(value))
    }
}

impl Iter {
    /// Returns an iteration over a value; if it is not seqable, the first step fails.
    pub fn new(value: Value) -> Iter {
        Iter {
            at: At::Value(value),
        }
    }

    /// Returns the next item.
    ///
    /// # Errors
    /// Any exception thrown while it is computed; when the fuel is used up.
    pub fn next(&mut self, vm: &mut Vm) -> Result<Option<Value>> {
        vm.charge(1)?;
        loop {
            match &mut self.at {
                At::Value(value) => {
                    let value = std::mem::replace(value, Value::Nil);
                    if let Some(first) = self.open(vm, value)? {
                        return Ok(first);
                    }
                }
                At::Slice { items, next } => {
                    let item = items.get(*next).cloned();
                    *next += 1;
                    return Ok(item);
                }
                At::Chunk { items, next, rest } => {
                    if let Some(item) = items.get(*next) {
                        *next += 1;
                        return Ok(Some(item.clone()));
                    }
                    self.at = At::Value(std::mem::replace(rest, Value::Nil));
                }
                At::Range { next, end, step } => {
                    let item = *next;
                    if (*step > 0 && item >= *end) || (*step < 0 && item <= *end) {
                        return Ok(None);
                    }
                    *next = item.checked_add(*step).unwrap_or(*end);
                    return Ok(Some(Value::Int(item)));
                }
                At::Chars { text, next } => {
                    let char = text.get(*next..).and_then(|rest| rest.chars().next());
                    *next += char.map_or(0, char::len_utf8);
                    return Ok(char.map(Value::Char));
                }
            }
        }
    }

    /// Opens the next value: returns the result of `next`, or `None` to try again.
    fn open(&mut self, vm: &mut Vm, value: Value) -> Result<Option<Option<Value>>> {
        let seq = match value {
            Value::Nil => return Ok(Some(None)),
            Value::List(list) => {
                if list.is_empty() {
                    return Ok(Some(None));
                }
                self.at = At::Value(list.rest.clone());
                return Ok(Some(Some(list.first.clone())));
            }
            Value::Vector(vector) => {
                self.at = At::Slice {
                    items: vector.items().clone(),
                    next: 0,
                };
                return Ok(None);
            }
            Value::Seq(view) => view,
            other => {
                let seq = vm.seq(&other)?;
                drop(other);
                self.at = At::Value(seq);
                return Ok(None);
            }
        };
        self.at = match &*seq {
            SeqView::Slice { items, start } => At::Slice {
                items: items.clone(),
                next: *start,
            },
            SeqView::Chunk { items, start, rest } => At::Chunk {
                items: items.clone(),
                next: *start,
                rest: rest.clone(),
            },
            SeqView::Range { start, end, step } => At::Range {
                next: *start,
                end: *end,
                step: *step,
            },
            SeqView::Chars { text, start } => At::Chars {
                text: text.clone(),
                next: *start,
            },
            SeqView::Repeat { .. } => {
                let first = seq.first();
                self.at = At::Value(seq.rest());
                return Ok(Some(Some(first)));
            }
        };
        Ok(None)
    }

    /// Returns the remaining items as a seqable value.
    pub fn rest(self) -> Value {
        match self.at {
            At::Value(value) => value,
            At::Slice { items, next } if next < items.len() => {
                Value::Seq(Rc::new(SeqView::Slice { items, start: next }))
            }
            At::Chunk { items, next, rest } if next < items.len() => {
                Value::Seq(Rc::new(SeqView::Chunk {
                    items,
                    start: next,
                    rest,
                }))
            }
            At::Chunk { rest, .. } => rest,
            At::Range { next, end, step }
                if (step > 0 && next < end) || (step < 0 && next > end) =>
            {
                Value::Seq(Rc::new(SeqView::Range {
                    start: next,
                    end,
                    step,
                }))
            }
            At::Chars { text, next } if next < text.len() => {
                Value::Seq(Rc::new(SeqView::Chars { text, start: next }))
            }
            At::Slice { .. } | At::Range { .. } | At::Chars { .. } => Value::Nil,
        }
    }
}
