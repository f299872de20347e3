//! Persistent vectors: up to three items inline, more in a 32-way trie with a tail.

mod iter;
mod trie;

use std::fmt;
use std::rc::Rc;

use self::trie::Trie;
use super::drops::{Garbage, discard_collection, discard_value};
use super::{Extra, Value};

pub use iter::VecIter;
pub(super) use trie::Branch;

/// Maximum number of items that are stored inline.
const SMALL: usize = 3;
/// Maximum length of a slice that is copied, so that it does not keep the whole vector alive.
const COPIED_SLICE: usize = 32;

/// The items of a vector: a persistent sequence with cheap copies.
#[derive(Clone, Default)]
pub struct PVec {
    items: Items,
}

#[derive(Clone)]
pub(super) enum Items {
    Small { len: u8, items: [Value; SMALL] },
    Trie(Trie),
}

const NO_ITEMS: [Value; SMALL] = [Value::Nil, Value::Nil, Value::Nil];

impl Items {
    /// Returns the number of items, including those that a slice hides.
    pub(super) fn len(&self) -> usize {
        match self {
            Items::Small { len, .. } => usize::from(*len),
            Items::Trie(trie) => trie.len_with_hidden(),
        }
    }

    /// Returns the root of a large vector, to be dropped; the items of the tail are dropped.
    pub(super) fn into_root(self) -> Option<Rc<Branch>> {
        match self {
            Items::Small { .. } => None,
            Items::Trie(trie) => trie.into_root(),
        }
    }
}

impl Default for Items {
    fn default() -> Self {
        Items::Small {
            len: 0,
            items: NO_ITEMS,
        }
    }
}

impl PVec {
    /// Returns an empty vector.
    pub fn new() -> PVec {
        PVec::default()
    }

    /// Returns the number of items.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.items {
            Items::Small { len, .. } => usize::from(*len),
            Items::Trie(trie) => trie.len(),
        }
    }

    /// Tells whether no part of the vector is shared with another one.
    pub(crate) fn is_unshared(&self) -> bool {
        match &self.items {
            Items::Small { .. } => true,
            Items::Trie(trie) => trie.is_unshared(),
        }
    }

    /// Tells whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the item at an index.
    #[inline]
    pub fn get(&self, idx: usize) -> Option<&Value> {
        match &self.items {
            Items::Small { len, items } if idx < usize::from(*len) => Some(&items[idx]),
            Items::Small { .. } => None,
            Items::Trie(trie) => trie.get(idx),
        }
    }

    /// Returns the last item.
    pub fn last(&self) -> Option<&Value> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Returns the items from `idx` on that are contiguous in memory: at least one if there is one.
    pub fn chunk_at(&self, idx: usize) -> &[Value] {
        match &self.items {
            Items::Small { len, items } => items[..usize::from(*len)].get(idx..).unwrap_or(&[]),
            Items::Trie(trie) => trie.chunk_at(idx),
        }
    }

    /// Appends an item, in place if the items are not shared.
    #[inline]
    pub fn push(&mut self, value: Value) {
        match &mut self.items {
            Items::Trie(trie) => trie.push(value),
            Items::Small { len, items } if usize::from(*len) < SMALL => {
                items[usize::from(*len)] = value;
                *len += 1;
            }
            Items::Small { .. } => self.grow(value),
        }
    }

    fn grow(&mut self, value: Value) {
        let mut tail = Vec::with_capacity(2 * SMALL + 2);
        if let Items::Small { items, .. } = &mut self.items {
            tail.extend(std::mem::replace(items, NO_ITEMS));
        }
        tail.push(value);
        self.items = Items::Trie(Trie::of_tail(tail));
    }

    /// Removes the last item.
    pub fn pop(&mut self) -> Option<Value> {
        match &mut self.items {
            Items::Small { len: 0, .. } => None,
            Items::Small { len, items } => {
                *len -= 1;
                Some(std::mem::replace(&mut items[usize::from(*len)], Value::Nil))
            }
            Items::Trie(trie) => trie.pop(),
        }
    }

    /// Replaces the item at `idx`, which must exist.
    ///
    /// # Panics
    /// When it does not.
    pub fn set(&mut self, idx: usize, value: Value) {
        *self.get_mut(idx).expect("the index is checked before") = value;
    }

    /// Returns the item at `idx` for modification in place; shared nodes are copied.
    pub fn get_mut(&mut self, idx: usize) -> Option<&mut Value> {
        match &mut self.items {
            Items::Small { len, items } => items[..usize::from(*len)].get_mut(idx),
            Items::Trie(trie) => trie.get_mut(idx),
        }
    }

    /// Returns the items.
    pub fn iter(&self) -> VecIter<'_> {
        VecIter::new(self)
    }

    /// Returns the items from `start` up to `end`: a view if there are many.
    ///
    /// # Panics
    /// When the range does not lie in the vector.
    pub fn slice(&self, start: usize, end: usize) -> PVec {
        assert!(start <= end && end <= self.len(), "the range is checked");
        match &self.items {
            Items::Trie(trie) if end - start > COPIED_SLICE => PVec {
                items: Items::Trie(trie.slice(start, end)),
            },
            _ => (start..end)
                .filter_map(|idx| self.get(idx).cloned())
                .collect(),
        }
    }
}

impl FromIterator<Value> for PVec {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Self {
        let mut items = items.into_iter();
        let mut all = PVec::new();
        let (expected, most) = items.size_hint();
        if most == Some(expected) && expected <= SMALL {
            let mut len = 0;
            let mut small = NO_ITEMS;
            for (slot, item) in small.iter_mut().zip(items.by_ref()) {
                *slot = item;
                len += 1;
            }
            all.items = Items::Small { len, items: small };
            all.extend(items);
            return all;
        }
        if expected > SMALL {
            all.items = Items::Trie(Trie::of_tail(Vec::with_capacity(expected.min(32))));
        }
        all.extend(items);
        all
    }
}

impl From<Vec<Value>> for PVec {
    fn from(items: Vec<Value>) -> Self {
        if (SMALL + 1..=32).contains(&items.len()) {
            return PVec {
                items: Items::Trie(Trie::of_tail(items)),
            };
        }
        items.into_iter().collect()
    }
}

impl Extend<Value> for PVec {
    fn extend<I: IntoIterator<Item = Value>>(&mut self, items: I) {
        for item in items {
            self.push(item);
        }
    }
}

impl<'a> IntoIterator for &'a PVec {
    type Item = &'a Value;
    type IntoIter = VecIter<'a>;

    fn into_iter(self) -> VecIter<'a> {
        self.iter()
    }
}

impl fmt::Debug for PVec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.iter()).finish()
    }
}

impl Drop for PVec {
    fn drop(&mut self) {
        match &mut self.items {
            Items::Small { items, .. } => items.iter_mut().for_each(discard_value),
            Items::Trie(trie) if trie.is_owner() => {
                let items = std::mem::take(&mut self.items);
                discard_collection(items.len(), items, Garbage::Items);
            }
            Items::Trie(_) => {}
        }
    }
}

/// A vector value: items, metadata and place.
#[derive(Clone, Debug)]
pub struct Vector {
    items: PVec,
    /// Whether this is an entry of a map.
    pub is_entry: bool,
    /// Metadata and place.
    pub extra: Extra,
}

impl Vector {
    /// Returns a vector without metadata.
    pub fn new(items: PVec) -> Vector {
        Vector {
            items,
            is_entry: false,
            extra: None,
        }
    }

    /// Returns a map entry.
    pub fn entry(key: Value, value: Value) -> Vector {
        Vector {
            items: PVec {
                items: Items::Small {
                    len: 2,
                    items: [key, value, Value::Nil],
                },
            },
            is_entry: true,
            extra: None,
        }
    }

    /// Returns the items of the vector, without its metadata.
    pub fn items(&self) -> &PVec {
        &self.items
    }

    /// Returns the items for modification in place. The vector is no longer a map entry.
    pub fn items_mut(&mut self) -> &mut PVec {
        self.is_entry = false;
        &mut self.items
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Tells whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the item at an index.
    #[inline]
    pub fn get(&self, idx: usize) -> Option<&Value> {
        self.items.get(idx)
    }

    /// Returns the items.
    pub fn iter(&self) -> VecIter<'_> {
        self.items.iter()
    }

    pub(crate) fn with_extra(&self, extra: Extra) -> Vector {
        Vector {
            extra,
            ..self.clone()
        }
    }

    /// Returns this vector for modification: itself if it is not shared, else a copy.
    pub fn make_mut(this: &mut Rc<Vector>) -> &mut Vector {
        Rc::make_mut(this)
    }
}
