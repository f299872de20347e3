//! Sorted entries: a persistent tree, balanced by size.
//!
//! The order is that of `compare`, or of a function. Only the VM can call a function, so the caller of
//! [`Sorted::find`], [`Sorted::insert`] and [`Sorted::remove`] passes the comparison. Without a VM, a key is found with
//! `compare`, or by checking the entries one after another.

use std::cmp::Ordering;
use std::iter::FusedIterator;
use std::rc::Rc;

use crate::value::{Result, Unforced, Value, compare};

/// A function with which the caller compares two keys.
pub type Comparison<'a> = dyn FnMut(&Value, &Value) -> Result<Ordering> + 'a;

/// The entries of a sorted map or set.
#[derive(Clone)]
pub struct Sorted {
    /// The function that compares; nil for `compare`.
    order: Value,
    root: Link,
}

type Link = Option<Rc<Node>>;

#[derive(Clone)]
pub(crate) struct Node {
    key: Value,
    value: Value,
    /// Number of entries in this subtree.
    size: usize,
    left: Link,
    right: Link,
}

impl Node {
    /// Returns the number of entries in this subtree.
    pub(crate) fn len(&self) -> usize {
        self.size
    }

    /// Drops the entry and returns the children.
    pub(crate) fn into_children(self) -> impl Iterator<Item = Rc<Node>> {
        [self.left, self.right].into_iter().flatten()
    }
}

fn size(link: &Link) -> usize {
    link.as_ref().map_or(0, |node| node.size)
}

fn natural(left: &Value, right: &Value) -> Result<Ordering> {
    compare(&mut Unforced, left, right)
}

impl Sorted {
    /// Returns an empty tree ordered by a function, or by `compare` if `order` is nil.
    pub fn new(order: Value) -> Sorted {
        Sorted { order, root: None }
    }

    /// Tells whether no node is shared with another map.
    pub(crate) fn is_unshared(&self) -> bool {
        fn check(link: &Link) -> bool {
            link.as_ref().is_none_or(|node| {
                Rc::strong_count(node) == 1 && check(&node.left) && check(&node.right)
            })
        }
        check(&self.root)
    }

    /// Returns the root, to be dropped.
    pub(crate) fn into_root(self) -> Option<Rc<Node>> {
        self.root
    }

    /// Returns the function that compares; nil for `compare`.
    pub fn order(&self) -> &Value {
        &self.order
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        size(&self.root)
    }

    /// Tells whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Looks up a key.
    ///
    /// # Errors
    /// Any error of the comparison.
    pub fn find(&self, key: &Value, by: &mut Comparison<'_>) -> Result<Option<(&Value, &Value)>> {
        let mut at = &self.root;
        while let Some(node) = at {
            at = match by(key, &node.key)? {
                Ordering::Less => &node.left,
                Ordering::Greater => &node.right,
                Ordering::Equal => return Ok(Some((&node.key, &node.value))),
            };
        }
        Ok(None)
    }

    /// Inserts an entry; a key that compares as equal stays.
    ///
    /// # Errors
    /// Any error of the comparison; nothing is changed then.
    pub fn insert(&mut self, key: Value, value: Value, by: &mut Comparison<'_>) -> Result<()> {
        if self.root.is_none() {
            // The first key is compared with itself, so that a key that cannot be compared is refused at once.
            by(&key, &key)?;
        }
        insert(&mut self.root, key, value, by).map(|_| ())
    }

    /// Removes an entry.
    ///
    /// # Errors
    /// Any error of the comparison; nothing is changed then.
    pub fn remove(&mut self, key: &Value, by: &mut Comparison<'_>) -> Result<Option<Value>> {
        if self.find(key, by)?.is_none() {
            return Ok(None);
        }
        remove(&mut self.root, &mut |node| by(key, node)).map(|entry| entry.map(|entry| entry.1))
    }

    /// Returns the number of leading entries for which `comes_before` holds.
    ///
    /// # Errors
    /// Any error of `comes_before`.
    pub fn count_while(
        &self,
        comes_before: &mut dyn FnMut(&Value) -> Result<bool>,
    ) -> Result<usize> {
        let mut at = &self.root;
        let mut count = 0;
        while let Some(node) = at {
            if comes_before(&node.key)? {
                count += size(&node.left) + 1;
                at = &node.right;
            } else {
                at = &node.left;
            }
        }
        Ok(count)
    }

    /// Returns the entries in order.
    pub fn iter(&self) -> SortedIter<'_> {
        self.iter_from(0)
    }

    /// Returns the entries from an index on.
    pub fn iter_from(&self, idx: usize) -> SortedIter<'_> {
        let mut iter = SortedIter {
            open: Vec::new(),
            left: self.len().saturating_sub(idx),
        };
        let (mut at, mut skip) = (&self.root, idx);
        while let Some(node) = at {
            let before = size(&node.left);
            if skip <= before {
                iter.open.push(node);
                at = &node.left;
            } else {
                skip -= before + 1;
                at = &node.right;
            }
        }
        iter
    }

    /// Finds the index of a key without a VM.
    pub fn position(&self, key: &Value) -> Option<usize> {
        if !self.order.is_nil() {
            return self.iter().position(|(other, _)| other == key);
        }
        let mut failed = false;
        let idx = self
            .count_while(&mut |other| {
                Ok(natural(other, key).map_or_else(
                    |_| {
                        failed = true;
                        false
                    },
                    Ordering::is_lt,
                ))
            })
            .ok()?;
        let (other, _) = self.iter_from(idx).next()?;
        (!failed && natural(other, key).is_ok_and(Ordering::is_eq)).then_some(idx)
    }

    /// Returns the entry at an index.
    pub fn entry_at(&self, idx: usize) -> Option<(&Value, &Value)> {
        self.iter_from(idx).next()
    }

    /// Returns the value at an index for modification in place; shared nodes are copied.
    pub fn value_at_mut(&mut self, idx: usize) -> Option<&mut Value> {
        let (mut at, mut skip) = (&mut self.root, idx);
        loop {
            let node = Rc::make_mut(at.as_mut()?);
            let before = size(&node.left);
            match skip.cmp(&before) {
                Ordering::Equal => return Some(&mut node.value),
                Ordering::Less => at = &mut node.left,
                Ordering::Greater => {
                    skip -= before + 1;
                    at = &mut node.right;
                }
            }
        }
    }

    /// Removes the entry at an index.
    pub fn remove_at(&mut self, idx: usize) -> Option<Value> {
        self.entry_at(idx)?;
        let mut rank = Rank::of(&self.root, idx);
        remove(&mut self.root, &mut |_| Ok(rank.next()))
            .ok()
            .flatten()
            .map(|(_, value)| value)
    }
}

/// The directions on the path to an index.
struct Rank(std::vec::IntoIter<Ordering>);

impl Rank {
    fn of(root: &Link, idx: usize) -> Rank {
        let (mut at, mut skip) = (root, idx);
        let mut turns = Vec::new();
        while let Some(node) = at {
            let before = size(&node.left);
            let turn = skip.cmp(&before);
            turns.push(turn);
            at = match turn {
                Ordering::Equal => break,
                Ordering::Less => &node.left,
                Ordering::Greater => {
                    skip -= before + 1;
                    &node.right
                }
            };
        }
        Rank(turns.into_iter())
    }

    fn next(&mut self) -> Ordering {
        self.0.next().unwrap_or(Ordering::Equal)
    }
}

/// Inserts an entry; returns whether its key is new.
fn insert(link: &mut Link, key: Value, value: Value, by: &mut Comparison<'_>) -> Result<bool> {
    let Some(rc) = link else {
        *link = Some(Rc::new(Node {
            key,
            value,
            size: 1,
            left: None,
            right: None,
        }));
        return Ok(true);
    };
    let turn = by(&key, &rc.key)?;
    let node = Rc::make_mut(rc);
    let is_new = match turn {
        Ordering::Equal => {
            node.value = value;
            return Ok(false);
        }
        Ordering::Less => insert(&mut node.left, key, value, by)?,
        Ordering::Greater => insert(&mut node.right, key, value, by)?,
    };
    if is_new {
        balance(link);
    }
    Ok(is_new)
}

/// Removes the entry at the end of the path.
fn remove(
    link: &mut Link,
    turn: &mut dyn FnMut(&Value) -> Result<Ordering>,
) -> Result<Option<(Value, Value)>> {
    let Some(rc) = link else {
        return Ok(None);
    };
    let turn_here = turn(&rc.key)?;
    let node = Rc::make_mut(rc);
    let removed = match turn_here {
        Ordering::Less => remove(&mut node.left, turn)?,
        Ordering::Greater => remove(&mut node.right, turn)?,
        Ordering::Equal => {
            let next = match (node.left.take(), node.right.take()) {
                (left, None) => left,
                (None, right) => right,
                (left, mut right) => take_first(&mut right).map(|(key, value)| {
                    Rc::new(Node {
                        key,
                        value,
                        size: 0,
                        left,
                        right,
                    })
                }),
            };
            let old = std::mem::replace(link, next);
            balance(link);
            return Ok(old.map(|old| (old.key.clone(), old.value.clone())));
        }
    };
    balance(link);
    Ok(removed)
}

/// Removes the first entry.
fn take_first(link: &mut Link) -> Option<(Value, Value)> {
    let node = Rc::make_mut(link.as_mut()?);
    if node.left.is_some() {
        let first = take_first(&mut node.left);
        balance(link);
        return first;
    }
    let next = node.right.take();
    let old = std::mem::replace(link, next)?;
    Some((old.key.clone(), old.value.clone()))
}

/// Maximum ratio of the sizes of two siblings.
const WIDEST: usize = 3;

/// Updates the size of a node, and rotates it if one side has become too large.
fn balance(link: &mut Link) {
    let Some(rc) = link else {
        return;
    };
    let node = Rc::make_mut(rc);
    let (left, right) = (size(&node.left), size(&node.right));
    node.size = left + right + 1;
    if left + right < 2 {
        return;
    }
    if right > WIDEST * left {
        let inner = node
            .right
            .as_ref()
            .map_or((0, 0), |right| (size(&right.left), size(&right.right)));
        if inner.0 >= 2 * inner.1 {
            rotate_right(&mut node.right);
        }
        rotate_left(link);
    } else if left > WIDEST * right {
        let inner = node
            .left
            .as_ref()
            .map_or((0, 0), |left| (size(&left.left), size(&left.right)));
        if inner.1 >= 2 * inner.0 {
            rotate_left(&mut node.left);
        }
        rotate_right(link);
    }
}

fn recount(node: &mut Node) {
    node.size = size(&node.left) + size(&node.right) + 1;
}

fn rotate_left(link: &mut Link) {
    let Some(mut top) = link.take() else {
        return;
    };
    let node = Rc::make_mut(&mut top);
    let Some(mut right) = node.right.take() else {
        *link = Some(top);
        return;
    };
    let new_top = Rc::make_mut(&mut right);
    node.right = new_top.left.take();
    recount(node);
    new_top.left = Some(top);
    recount(new_top);
    *link = Some(right);
}

fn rotate_right(link: &mut Link) {
    let Some(mut top) = link.take() else {
        return;
    };
    let node = Rc::make_mut(&mut top);
    let Some(mut left) = node.left.take() else {
        *link = Some(top);
        return;
    };
    let new_top = Rc::make_mut(&mut left);
    node.left = new_top.right.take();
    recount(node);
    new_top.right = Some(top);
    recount(new_top);
    *link = Some(left);
}

/// The entries in order.
#[derive(Clone)]
pub struct SortedIter<'a> {
    /// The nodes whose left sides are done; the next one is the last.
    open: Vec<&'a Node>,
    left: usize,
}

impl<'a> Iterator for SortedIter<'a> {
    type Item = (&'a Value, &'a Value);

    fn next(&mut self) -> Option<Self::Item> {
        let node = self.open.pop()?;
        self.left -= 1;
        let mut at = &node.right;
        while let Some(next) = at {
            self.open.push(next);
            at = &next.left;
        }
        Some((&node.key, &node.value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for SortedIter<'_> {}
impl FusedIterator for SortedIter<'_> {}
