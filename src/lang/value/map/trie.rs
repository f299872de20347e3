//! A hash trie of 32-way nodes over Clojure's hashes.
//!
//! Entries and child nodes share one array, ordered by their five bits of the hash, the lowest bits at the root. The
//! order of iteration is therefore that of Clojure's maps, and depends on the keys only; keys whose whole hashes
//! collide keep insertion order, nil first.

use std::iter::FusedIterator;
use std::rc::Rc;

use crate::value::hash::hash_long;
use crate::value::{Unforced, Value, hash_text, hash_value};

const BITS: u32 = 5;
/// The shift at which no bits of the hash are left: such a node holds the keys with equal hashes in a row.
const COLLISION_SHIFT: u32 = 35;
/// Maximum number of nodes on the path from the root to a collision.
const MAX_HEIGHT: usize = 8;

#[derive(Clone, Default)]
pub(crate) struct Trie {
    root: Option<Rc<Node>>,
    len: usize,
}

#[derive(Clone, Default)]
pub(crate) struct Node {
    /// Which of the 32 slots are taken; unused in a collision node.
    bitmap: u32,
    slots: Vec<Slot>,
}

#[derive(Clone)]
enum Slot {
    Entry(Value, Value),
    Child(Rc<Node>),
}

/// Returns the place of a hash in a node: its bit, and its index among the slots that are taken.
fn place(bitmap: u32, hash: u32, shift: u32) -> (u32, usize) {
    let bit = 1 << (hash >> shift & 31);
    (bit, (bitmap & (bit - 1)).count_ones() as usize)
}

#[inline]
fn hash_of(key: &Value) -> u32 {
    match key {
        Value::Keyword(keyword) => keyword.hash_code(),
        Value::Int(int) => hash_long(*int),
        Value::Text(text) => text.cached_hash(hash_text),
        // Keys are realised before they enter a map, so nothing is computed and hashing cannot fail.
        key => hash_value(&mut Unforced, key).unwrap_or(0),
    }
}

#[inline]
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Keyword(left), Value::Keyword(right)) => left == right,
        (Value::Int(left), Value::Int(right)) => left == right,
        _ => left == right,
    }
}

impl Trie {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Tells whether no node is shared with another map.
    pub(crate) fn is_unshared(&self) -> bool {
        fn check(node: &Rc<Node>) -> bool {
            Rc::strong_count(node) == 1
                && node.slots.iter().all(|slot| match slot {
                    Slot::Entry(..) => true,
                    Slot::Child(child) => check(child),
                })
        }
        self.root.as_ref().is_none_or(check)
    }

    /// Tells whether dropping this trie drops its entries.
    pub(crate) fn is_owner(&self) -> bool {
        self.root
            .as_ref()
            .is_some_and(|root| Rc::strong_count(root) == 1)
    }

    /// Returns the root, to be dropped.
    pub(crate) fn into_root(self) -> Option<Rc<Node>> {
        self.root
    }

    pub(crate) fn get(&self, key: &Value) -> Option<(&Value, &Value)> {
        let mut node = self.root.as_deref()?;
        let hash = hash_of(key);
        let mut shift = 0;
        while shift < COLLISION_SHIFT {
            let (bit, idx) = place(node.bitmap, hash, shift);
            if node.bitmap & bit == 0 {
                return None;
            }
            match node.slots.get(idx)? {
                Slot::Entry(other, value) => return same(other, key).then_some((other, value)),
                Slot::Child(child) => node = child,
            }
            shift += BITS;
        }
        node.slots.iter().find_map(|slot| match slot {
            Slot::Entry(other, value) if same(other, key) => Some((other, value)),
            Slot::Entry(..) | Slot::Child(_) => None,
        })
    }

    /// Returns the value of a key for modification in place; shared nodes are copied.
    pub(crate) fn get_mut(&mut self, key: &Value) -> Option<&mut Value> {
        // Looks the key up first, so that a miss copies no nodes.
        self.get(key)?;
        let hash = hash_of(key);
        let root = self.root.as_mut()?;
        Rc::make_mut(root).get_mut(hash, 0, key)
    }

    /// Inserts an entry; an equal key that is present stays.
    pub(crate) fn insert(&mut self, key: Value, value: Value) {
        let hash = hash_of(&key);
        let root = self.root.get_or_insert_default();
        if Rc::make_mut(root).insert(hash, 0, key, value) {
            self.len += 1;
        }
    }

    pub(crate) fn remove(&mut self, key: &Value) -> Option<Value> {
        // Looks the key up first, so that a miss copies no nodes.
        self.get(key)?;
        let hash = hash_of(key);
        let root = self.root.as_mut()?;
        let removed = Rc::make_mut(root).remove(hash, 0, key);
        if removed.is_some() {
            self.len -= 1;
        }
        removed
    }

    pub(crate) fn iter(&self) -> TrieIter<'_> {
        let mut iter = TrieIter {
            stack: std::array::from_fn(|_| [].iter()),
            height: 0,
            left: self.len,
        };
        if let Some(root) = &self.root {
            iter.stack[0] = root.slots.iter();
            iter.height = 1;
        }
        iter
    }
}

/// The position of an iteration: for each open node, the number of slots already passed.
#[derive(Clone, Copy, Default)]
pub struct TriePlace {
    behind: [u32; MAX_HEIGHT],
    height: usize,
    left: usize,
}

impl Trie {
    /// Returns the position of an iteration over this trie, from which it can be resumed.
    pub(crate) fn place(&self, iter: &TrieIter<'_>) -> TriePlace {
        let mut place = TriePlace {
            left: iter.left,
            ..TriePlace::default()
        };
        let mut node = self.root.as_deref();
        for open in &iter.stack[..iter.height] {
            let Some(at) = node else { break };
            let behind = at.slots.len() - open.len();
            place.behind[place.height] = behind as u32;
            place.height += 1;
            node = match behind.checked_sub(1).and_then(|idx| at.slots.get(idx)) {
                Some(Slot::Child(child)) => Some(child),
                _ => None,
            };
        }
        place
    }

    /// Returns the rest of an iteration over this same trie.
    pub(crate) fn iter_at(&self, place: &TriePlace) -> TrieIter<'_> {
        let mut iter = TrieIter {
            stack: std::array::from_fn(|_| [].iter()),
            height: 0,
            left: place.left,
        };
        let mut node = self.root.as_deref();
        for behind in &place.behind[..place.height] {
            let Some(at) = node else { break };
            let behind = *behind as usize;
            iter.stack[iter.height] = at.slots.get(behind..).unwrap_or(&[]).iter();
            iter.height += 1;
            node = match behind.checked_sub(1).and_then(|idx| at.slots.get(idx)) {
                Some(Slot::Child(child)) => Some(child),
                _ => None,
            };
        }
        iter
    }
}

impl Node {
    /// Drops the entries and returns the children.
    pub(crate) fn into_children(self) -> impl Iterator<Item = Rc<Node>> {
        self.slots.into_iter().filter_map(|slot| match slot {
            Slot::Child(child) => Some(child),
            Slot::Entry(..) => None,
        })
    }

    /// Inserts an entry; returns whether its key is new.
    fn insert(&mut self, hash: u32, shift: u32, key: Value, value: Value) -> bool {
        if shift >= COLLISION_SHIFT {
            return self.insert_colliding(key, value);
        }
        let (bit, idx) = place(self.bitmap, hash, shift);
        if self.bitmap & bit == 0 {
            self.bitmap |= bit;
            self.slots.insert(idx, Slot::Entry(key, value));
            return true;
        }
        let slot = &mut self.slots[idx];
        match slot {
            Slot::Child(child) => Rc::make_mut(child).insert(hash, shift + BITS, key, value),
            Slot::Entry(other, old) if same(other, &key) => {
                *old = value;
                false
            }
            Slot::Entry(..) => {
                let child = Slot::Child(Rc::new(Node::default()));
                let old = std::mem::replace(slot, child);
                if let (Slot::Child(child), Slot::Entry(other, old)) = (slot, old) {
                    // The new node is not shared, so this changes it in place.
                    let child = Rc::make_mut(child);
                    child.insert(hash_of(&other), shift + BITS, other, old);
                    child.insert(hash, shift + BITS, key, value);
                }
                true
            }
        }
    }

    fn get_mut(&mut self, hash: u32, shift: u32, key: &Value) -> Option<&mut Value> {
        if shift >= COLLISION_SHIFT {
            return self.slots.iter_mut().find_map(|slot| match slot {
                Slot::Entry(other, value) if same(other, key) => Some(value),
                Slot::Entry(..) | Slot::Child(_) => None,
            });
        }
        let (_, idx) = place(self.bitmap, hash, shift);
        match self.slots.get_mut(idx)? {
            Slot::Entry(_, value) => Some(value),
            Slot::Child(child) => Rc::make_mut(child).get_mut(hash, shift + BITS, key),
        }
    }

    fn insert_colliding(&mut self, key: Value, value: Value) -> bool {
        for slot in &mut self.slots {
            if let Slot::Entry(other, old) = slot
                && same(other, &key)
            {
                *old = value;
                return false;
            }
        }
        let idx = if key.is_nil() { 0 } else { self.slots.len() };
        self.slots.insert(idx, Slot::Entry(key, value));
        true
    }

    /// Removes an entry that is present.
    fn remove(&mut self, hash: u32, shift: u32, key: &Value) -> Option<Value> {
        let idx = if shift >= COLLISION_SHIFT {
            self.slots
                .iter()
                .position(|slot| matches!(slot, Slot::Entry(other, _) if same(other, key)))?
        } else {
            let (bit, idx) = place(self.bitmap, hash, shift);
            if self.bitmap & bit == 0 {
                return None;
            }
            if let Slot::Child(child) = &mut self.slots[idx] {
                let child = Rc::make_mut(child);
                let removed = child.remove(hash, shift + BITS, key);
                // A child with a single entry is replaced by the entry; the order does not depend on it.
                if let [Slot::Entry(key, value)] = child.slots.as_slice() {
                    self.slots[idx] = Slot::Entry(key.clone(), value.clone());
                }
                return removed;
            }
            self.bitmap &= !bit;
            idx
        };
        match self.slots.remove(idx) {
            Slot::Entry(_, value) => Some(value),
            Slot::Child(_) => None,
        }
    }
}

/// The entries of a [`Trie`], in order.
#[derive(Clone)]
pub struct TrieIter<'a> {
    stack: [std::slice::Iter<'a, Slot>; MAX_HEIGHT],
    height: usize,
    left: usize,
}

impl<'a> Iterator for TrieIter<'a> {
    type Item = (&'a Value, &'a Value);

    fn next(&mut self) -> Option<Self::Item> {
        while self.height > 0 {
            match self.stack[self.height - 1].next() {
                Some(Slot::Entry(key, value)) => {
                    self.left -= 1;
                    return Some((key, value));
                }
                Some(Slot::Child(child)) => {
                    self.stack[self.height] = child.slots.iter();
                    self.height += 1;
                }
                None => self.height -= 1,
            }
        }
        None
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for TrieIter<'_> {}
impl FusedIterator for TrieIter<'_> {}
