//! Persistent vectors.

use std::rc::Rc;

use super::{Extra, Value};

/// The items of a vector: a persistent sequence with cheap copies.
#[derive(Clone, Debug, Default)]
pub struct PVec {
    items: imbl::Vector<Value>,
}

impl PVec {
    pub fn new() -> PVec {
        PVec::default()
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn get(&self, idx: usize) -> Option<&Value> {
        self.items.get(idx)
    }

    pub fn last(&self) -> Option<&Value> {
        self.items.last()
    }

    /// Adds an item at the end; in place where nobody else holds these items.
    pub fn push(&mut self, value: Value) {
        self.items.push_back(value);
    }

    /// Removes the last item.
    pub fn pop(&mut self) -> Option<Value> {
        self.items.pop_back()
    }

    /// Replaces the item at `idx`, which must exist.
    pub fn set(&mut self, idx: usize, value: Value) {
        self.items.set(idx, value);
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.items.iter()
    }

    /// Returns the items from `start` up to `end`.
    pub fn slice(&self, start: usize, end: usize) -> PVec {
        let mut items = self.items.clone();
        PVec {
            items: items.slice(start..end),
        }
    }
}

impl FromIterator<Value> for PVec {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        PVec {
            items: items.into_iter().collect(),
        }
    }
}

/// A vector value: items, and what it carries.
#[derive(Clone, Debug)]
pub struct Vector {
    items: PVec,
    /// Whether this is an entry of a map.
    pub is_entry: bool,
    pub extra: Extra,
}

impl Vector {
    pub fn new(items: PVec) -> Vector {
        Vector {
            items,
            is_entry: false,
            extra: None,
        }
    }

    pub fn entry(key: Value, value: Value) -> Vector {
        Vector {
            items: [key, value].into_iter().collect(),
            is_entry: true,
            extra: None,
        }
    }

    pub fn items(&self) -> &PVec {
        &self.items
    }

    /// Returns the items for a change in place. The result is no map entry any more.
    pub fn items_mut(&mut self) -> &mut PVec {
        self.is_entry = false;
        &mut self.items
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn get(&self, idx: usize) -> Option<&Value> {
        self.items.get(idx)
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Value> + ExactSizeIterator {
        self.items.iter()
    }

    pub(crate) fn with_extra(&self, extra: Extra) -> Vector {
        Vector {
            extra,
            ..self.clone()
        }
    }

    /// Returns this vector for a change: itself where nobody else holds it, else a copy.
    pub fn make_mut(this: &mut Rc<Vector>) -> &mut Vector {
        Rc::make_mut(this)
    }
}
