//! A 32-way trie of full leaves, with a tail that grows in place.
//!
//! A slice is a view: items before `start` and from `end` on exist but are hidden.

use std::rc::Rc;

use crate::value::Value;

const BITS: usize = 5;
const WIDTH: usize = 1 << BITS;
const MASK: usize = WIDTH - 1;

type Leaf = Rc<[Value; WIDTH]>;

#[derive(Clone)]
pub(crate) struct Trie {
    /// The first visible index of the whole vector; `end` is the one after the last.
    start: usize,
    end: usize,
    /// Number of items in the nodes; the rest of `total` is in the tail.
    filled: usize,
    /// The shift of the index bits that select a child of the root; `BITS` if its children are leaves.
    shift: usize,
    root: Option<Rc<Branch>>,
    tail: Rc<Vec<Value>>,
}

#[derive(Clone)]
pub(crate) struct Branch(Vec<Child>);

#[derive(Clone)]
enum Child {
    Branch(Rc<Branch>),
    Leaf(Leaf),
}

impl Branch {
    /// Tells whether the children are leaves.
    pub(crate) fn has_leaves(&self) -> bool {
        matches!(self.0.first(), None | Some(Child::Leaf(_)))
    }

    /// Returns the children that are not leaves.
    pub(crate) fn into_branches(self) -> impl Iterator<Item = Rc<Branch>> {
        self.0.into_iter().filter_map(|child| match child {
            Child::Branch(branch) => Some(branch),
            Child::Leaf(_) => None,
        })
    }
}

impl Trie {
    /// Returns a trie of up to 32 items.
    pub(crate) fn of_tail(tail: Vec<Value>) -> Trie {
        debug_assert!(tail.len() <= WIDTH);
        Trie {
            start: 0,
            end: tail.len(),
            filled: 0,
            shift: BITS,
            root: None,
            tail: Rc::new(tail),
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }

    /// Like [`Trie::len`], including the items that a slice hides.
    pub(crate) fn len_with_hidden(&self) -> usize {
        self.filled + self.tail.len()
    }

    /// Returns the root, to be dropped.
    pub(crate) fn into_root(self) -> Option<Rc<Branch>> {
        self.root
    }

    /// Tells whether no node is shared with another vector, and no item is hidden.
    pub(crate) fn is_unshared(&self) -> bool {
        fn check(branch: &Rc<Branch>) -> bool {
            Rc::strong_count(branch) == 1
                && branch.0.iter().all(|child| match child {
                    Child::Branch(branch) => check(branch),
                    Child::Leaf(leaf) => Rc::strong_count(leaf) == 1,
                })
        }
        Rc::strong_count(&self.tail) == 1 && self.root.as_ref().is_none_or(check)
    }

    /// Tells whether dropping this trie drops items.
    pub(crate) fn is_owner(&self) -> bool {
        Rc::strong_count(&self.tail) == 1
            || self
                .root
                .as_ref()
                .is_some_and(|root| Rc::strong_count(root) == 1)
    }

    #[inline]
    pub(crate) fn get(&self, idx: usize) -> Option<&Value> {
        let idx = self.start + idx;
        if idx >= self.end {
            return None;
        }
        if idx >= self.filled {
            return self.tail.get(idx - self.filled);
        }
        Some(&self.leaf(idx)?[idx & MASK])
    }

    /// Returns the leaf with an index of the whole vector below `filled`.
    fn leaf(&self, idx: usize) -> Option<&[Value; WIDTH]> {
        let mut branch = self.root.as_deref()?;
        let mut shift = self.shift;
        loop {
            match branch.0.get(idx >> shift & MASK)? {
                Child::Branch(child) => branch = child,
                Child::Leaf(leaf) => return Some(leaf),
            }
            shift -= BITS;
        }
    }

    /// Returns the items from `idx` on that lie in one leaf or in the tail.
    pub(crate) fn chunk_at(&self, idx: usize) -> &[Value] {
        let idx = self.start + idx;
        if idx >= self.end {
            return &[];
        }
        let left = self.end - idx;
        let chunk = if idx >= self.filled {
            self.tail.get(idx - self.filled..)
        } else {
            self.leaf(idx).map(|leaf| &leaf[idx & MASK..])
        };
        let chunk = chunk.unwrap_or(&[]);
        &chunk[..chunk.len().min(left)]
    }

    pub(crate) fn get_mut(&mut self, idx: usize) -> Option<&mut Value> {
        let idx = self.start + idx;
        if idx >= self.end {
            return None;
        }
        if idx >= self.filled {
            return Rc::make_mut(&mut self.tail).get_mut(idx - self.filled);
        }
        let mut branch = Rc::make_mut(self.root.as_mut()?);
        let mut shift = self.shift;
        loop {
            match branch.0.get_mut(idx >> shift & MASK)? {
                Child::Branch(child) => branch = Rc::make_mut(child),
                Child::Leaf(leaf) => return Some(&mut Rc::make_mut(leaf)[idx & MASK]),
            }
            shift -= BITS;
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, value: Value) {
        if self.end == self.filled + self.tail.len()
            && self.tail.len() < WIDTH
            && let Some(tail) = Rc::get_mut(&mut self.tail)
        {
            tail.push(value);
            self.end += 1;
            return;
        }
        self.push_slow(value);
    }

    #[cold]
    fn push_slow(&mut self, value: Value) {
        if self.end < self.filled + self.tail.len() {
            // At the end of a slice, the new item replaces a hidden one.
            self.end += 1;
            if let Some(slot) = self.get_mut(self.end - 1 - self.start) {
                *slot = value;
            }
            return;
        }
        if self.tail.len() == WIDTH {
            let full = std::mem::replace(&mut self.tail, Rc::new(Vec::with_capacity(WIDTH)));
            let full = Rc::try_unwrap(full).unwrap_or_else(|shared| (*shared).clone());
            if let Ok(leaf) = <[Value; WIDTH]>::try_from(full) {
                self.add_leaf(Rc::new(leaf));
            }
        } else if Rc::get_mut(&mut self.tail).is_none() {
            // Copied with spare capacity: a plain clone would have none.
            let mut copy = Vec::with_capacity((self.tail.len() + 4).min(WIDTH));
            copy.extend_from_slice(&self.tail);
            self.tail = Rc::new(copy);
        }
        Rc::make_mut(&mut self.tail).push(value);
        self.end += 1;
    }

    fn add_leaf(&mut self, leaf: Leaf) {
        let idx = self.filled;
        let Some(root) = &mut self.root else {
            self.root = Some(Rc::new(Branch(vec![Child::Leaf(leaf)])));
            self.filled += WIDTH;
            return;
        };
        if idx == WIDTH << self.shift {
            let old = std::mem::replace(root, Rc::new(Branch(Vec::with_capacity(2))));
            Rc::make_mut(root).0.push(Child::Branch(old));
            self.shift += BITS;
        }
        Rc::make_mut(root).add_leaf(idx, self.shift, leaf);
        self.filled += WIDTH;
    }

    pub(crate) fn pop(&mut self) -> Option<Value> {
        if self.end == self.start {
            return None;
        }
        if self.end < self.filled + self.tail.len() {
            // At the end of a slice, the hidden items are kept.
            let last = self.get(self.len() - 1).cloned();
            self.end -= 1;
            return last;
        }
        if self.tail.is_empty() {
            let leaf = self.take_last_leaf()?;
            let items = Rc::try_unwrap(leaf).unwrap_or_else(|shared| (*shared).clone());
            self.tail = Rc::new(Vec::from(items));
        }
        self.end -= 1;
        Rc::make_mut(&mut self.tail).pop()
    }

    fn take_last_leaf(&mut self) -> Option<Leaf> {
        let root = Rc::make_mut(self.root.as_mut()?);
        let leaf = root.take_last()?;
        self.filled -= WIDTH;
        if root.0.is_empty() {
            self.root = None;
            self.shift = BITS;
            return Some(leaf);
        }
        while self.shift > BITS {
            let child = match self.root.as_deref().map(|root| root.0.as_slice()) {
                Some([Child::Branch(child)]) => child.clone(),
                _ => break,
            };
            self.root = Some(child);
            self.shift -= BITS;
        }
        Some(leaf)
    }

    /// Returns a view of a part; the range is relative to this view.
    pub(crate) fn slice(&self, start: usize, end: usize) -> Trie {
        Trie {
            start: self.start + start,
            end: self.start + end,
            ..self.clone()
        }
    }
}

impl Branch {
    fn add_leaf(&mut self, idx: usize, shift: usize, leaf: Leaf) {
        if shift > BITS {
            let at = idx >> shift & MASK;
            if at == self.0.len() {
                self.0.push(Child::Branch(Rc::new(Branch(Vec::new()))));
            }
            if let Child::Branch(child) = &mut self.0[at] {
                Rc::make_mut(child).add_leaf(idx, shift - BITS, leaf);
            }
            return;
        }
        self.0.push(Child::Leaf(leaf));
    }

    fn take_last(&mut self) -> Option<Leaf> {
        match self.0.last_mut()? {
            Child::Leaf(_) => match self.0.pop() {
                Some(Child::Leaf(leaf)) => Some(leaf),
                _ => None,
            },
            Child::Branch(child) => {
                let child = Rc::make_mut(child);
                let leaf = child.take_last();
                if child.0.is_empty() {
                    self.0.pop();
                }
                leaf
            }
        }
    }
}
