//! Iteration over sequential values without a VM, shared by equality, hashing and printing.
//!
//! A walk owns its values and does not hold the head of a list or lazy sequence.

use std::rc::Rc;

use super::{Force, List, Object, PVec, Result, SeqView, Value};

/// The position in a vector, list, lazy sequence, view or queue.
#[derive(Clone)]
pub(crate) enum Walk {
    Items {
        items: PVec,
        at: usize,
    },
    Chunk {
        items: Rc<[Value]>,
        at: usize,
        rest: Value,
    },
    /// A list, view or lazy sequence; nil at the end.
    Seq(Value),
}

impl Walk {
    /// Returns a walk over a sequential value; `None` for any other kind.
    pub(crate) fn over(value: &Value) -> Option<Walk> {
        Some(match value {
            Value::Vector(vector) => Walk::Items {
                items: vector.items().clone(),
                at: 0,
            },
            Value::List(_) | Value::Seq(_) | Value::Lazy(_) => Walk::Seq(value.clone()),
            Value::Object(object) => match &**object {
                Object::Queue { items, taken, .. } => Walk::Items {
                    items: items.clone(),
                    at: *taken,
                },
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Tells whether the next item is not computed yet.
    pub(crate) fn is_uncomputed(&self) -> bool {
        matches!(self, Walk::Seq(Value::Lazy(lazy)) if lazy.realised().is_none())
    }

    /// Returns the next item; `None` at the end.
    ///
    /// # Errors
    /// Any exception thrown while a lazy tail is computed.
    pub(crate) fn next(&mut self, force: &mut dyn Force) -> Result<Option<Value>> {
        loop {
            match self {
                Walk::Items { items, at } => {
                    let item = items.get(*at).cloned();
                    *at += 1;
                    return Ok(item);
                }
                Walk::Chunk { items, at, rest } => {
                    if let Some(item) = items.get(*at) {
                        *at += 1;
                        return Ok(Some(item.clone()));
                    }
                    *self = Walk::Seq(std::mem::replace(rest, Value::Nil));
                }
                Walk::Seq(seq) => match std::mem::replace(seq, Value::Nil) {
                    Value::Lazy(lazy) => {
                        force.charge(1)?;
                        *self = Walk::Seq(force.force(&lazy)?);
                    }
                    Value::List(list) => {
                        if list.is_empty() {
                            return Ok(None);
                        }
                        let (first, rest) = split(list);
                        *seq = rest;
                        return Ok(Some(first));
                    }
                    Value::Seq(view) => match &*view {
                        SeqView::Slice { items, start } => {
                            *self = Walk::Items {
                                items: items.clone(),
                                at: *start,
                            };
                        }
                        SeqView::Chunk { items, start, rest } => {
                            *self = Walk::Chunk {
                                items: items.clone(),
                                at: *start,
                                rest: rest.clone(),
                            };
                        }
                        SeqView::Range { .. } | SeqView::Chars { .. } | SeqView::Repeat { .. } => {
                            force.charge(1)?;
                            *seq = view.rest();
                            return Ok(Some(view.first()));
                        }
                    },
                    Value::Nil => return Ok(None),
                    // The tail of a sequence may be any sequential value.
                    other => match Walk::over(&other) {
                        Some(walk) => *self = walk,
                        None => return Ok(None),
                    },
                },
            }
        }
    }
}

fn split(list: Rc<List>) -> (Value, Value) {
    (list.first.clone(), list.rest.clone())
}

impl Value {
    /// Tells whether this is a vector, list, sequence or queue: a value that `sequential?` accepts.
    pub fn is_sequential(&self) -> bool {
        match self {
            Value::Vector(_) | Value::List(_) | Value::Seq(_) | Value::Lazy(_) => true,
            Value::Object(object) => matches!(**object, Object::Queue { .. }),
            _ => false,
        }
    }

    /// Tells whether this may hold other values that equality, order and hash compare.
    pub(crate) fn is_compound(&self) -> bool {
        match self {
            Value::Map(_) | Value::Set(_) | Value::Record(_) => true,
            Value::Object(object) => {
                matches!(
                    **object,
                    Object::Queue { .. }
                        | Object::Tagged { .. }
                        | Object::Conditional { .. }
                        | Object::Host { .. }
                )
            }
            _ => self.is_sequential(),
        }
    }
}
