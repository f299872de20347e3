//! Dropping values without deep recursion, in slices, and deferred if a limit ended the evaluation.
//!
//! Every type that can hold values drops them through this module. The first few levels are dropped by ordinary
//! recursion; deeper values and the nodes of large collections wait in a queue of this thread until the outermost drop
//! empties it. After each slice of that work, the host is asked whether a limit is reached.
//!
//! Once a limit is reached, drops are deferred, because freeing values takes longer than an evaluation may need to
//! stop. [`free_deferred`] frees a slice of them; the next evaluation without a fiber frees all of them first.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::map::{Entries, HashNode, SortedNode};
use super::vector::{Branch, Items};
use super::{LazyState, Value, meter};

/// Maximum recursion depth of drops.
const MAX_NESTED: u32 = 24;
/// The depth while the evaluation is being stopped: every drop is deferred.
const DEFERRING: u32 = u32::MAX;
/// Number of drops in a slice, which takes a fraction of a millisecond.
const SLICE: u32 = 1 << 12;
/// A collection with more items than this is split until each part has fewer.
const LARGE: usize = 1 << 10;
/// Number of drops that a part of a large collection counts as.
const PART: u32 = 256;
/// Maximum number of deferred drops, because each takes memory.
const MAX_DEFERRED: usize = 1 << 20;

thread_local! {
    static NESTED: Cell<u32> = const { Cell::new(0) };
    /// Drops that remain in the current slice.
    static LEFT: Cell<u32> = const { Cell::new(SLICE) };
    /// Whether the queue may be non-empty.
    static IS_QUEUED: Cell<bool> = const { Cell::new(false) };
    static QUEUE: RefCell<Vec<Garbage>> = const { RefCell::new(Vec::new()) };
    /// Whether deferred drops wait for [`free_deferred`].
    static HAS_DEFERRED: Cell<bool> = const { Cell::new(false) };
    static DEFERRED: RefCell<Vec<Garbage>> = const { RefCell::new(Vec::new()) };
}

/// A value, or part of a value, that waits to be dropped.
pub(super) enum Garbage {
    Value(Value),
    Values(Box<[Value]>),
    Lazy(LazyState),
    Items(Items),
    Branch(Rc<Branch>),
    Entries(Entries),
    /// A node of a large map, and the number of its levels that are still to be split.
    Hashed(Rc<HashNode>, u32),
    Sorted(Rc<SortedNode>),
    /// Work to be done after all other drops.
    Last(Box<dyn FnOnce()>),
}

impl Garbage {
    /// Drops this. Of a large collection, only one node is dropped, and its children are added to `children`.
    fn free(self, children: &mut Vec<Garbage>) {
        charge(1);
        match self {
            Garbage::Value(value) => drop(value),
            Garbage::Values(values) => drop(values),
            Garbage::Lazy(state) => drop(state),
            Garbage::Items(items) if items.len() > LARGE => {
                children.extend(items.into_root().map(Garbage::Branch));
            }
            Garbage::Items(items) => drop(items),
            Garbage::Branch(branch) => match Rc::try_unwrap(branch) {
                Ok(branch) if branch.has_leaves() => {
                    charge(PART);
                    drop(branch);
                }
                Ok(branch) => children.extend(branch.into_branches().map(Garbage::Branch)),
                Err(shared) => drop(shared),
            },
            Garbage::Entries(entries) if entries.len() > LARGE => match entries {
                Entries::Hash(trie) => {
                    // The number of parts is 32 to the power of this.
                    let levels = trie.len().ilog2() / 5 - 1;
                    let root = trie.into_root();
                    children.extend(root.map(|root| Garbage::Hashed(root, levels)));
                }
                Entries::Sorted(sorted) => {
                    children.extend(sorted.into_root().map(Garbage::Sorted));
                }
                Entries::Array(entries) => drop(entries),
            },
            Garbage::Entries(entries) => drop(entries),
            Garbage::Last(work) => work(),
            Garbage::Hashed(node, 0) => {
                charge(PART);
                drop(node);
            }
            Garbage::Hashed(node, levels) => {
                if let Ok(node) = Rc::try_unwrap(node) {
                    let below = node.into_children();
                    children.extend(below.map(|child| Garbage::Hashed(child, levels - 1)));
                }
            }
            Garbage::Sorted(node) => match Rc::try_unwrap(node) {
                Ok(node) if node.len() > LARGE => {
                    children.extend(node.into_children().map(Garbage::Sorted));
                }
                Ok(node) => {
                    charge(PART);
                    drop(node);
                }
                Err(shared) => drop(shared),
            },
        }
    }
}

fn charge(drops: u32) {
    LEFT.set(LEFT.get().saturating_sub(drops));
}

/// Drops a value, now or later.
#[inline]
pub(super) fn discard<T>(contents: T, wrap: impl FnOnce(T) -> Garbage) {
    let nested = NESTED.get();
    let left = LEFT.get();
    if nested >= MAX_NESTED || left == 0 {
        return discard_later(contents, wrap);
    }
    LEFT.set(left - 1);
    NESTED.set(nested + 1);
    drop(contents);
    if nested == 0 && IS_QUEUED.get() {
        return drain();
    }
    NESTED.set(nested);
}

/// Queues a drop that is too deep or too large for this slice. The outermost drop begins another slice.
#[cold]
#[inline(never)]
fn discard_later<T>(contents: T, wrap: impl FnOnce(T) -> Garbage) {
    if NESTED.get() > 0 {
        return put_aside(wrap(contents));
    }
    LEFT.set(SLICE);
    if meter::is_stopped_now() {
        NESTED.set(DEFERRING);
    }
    discard(contents, wrap);
}

/// Like [`discard`], for a collection of `len` items.
#[inline]
pub(super) fn discard_collection<T>(len: usize, contents: T, wrap: impl FnOnce(T) -> Garbage) {
    if len > LARGE {
        return put_aside(wrap(contents));
    }
    discard(contents, wrap);
}

/// Drops a value that may hold others; any other value is left to its owner.
#[inline]
pub(super) fn discard_value(value: &mut Value) {
    if value.may_nest() {
        discard(std::mem::replace(value, Value::Nil), Garbage::Value);
    }
}

/// Drops the captured values of a function.
#[inline]
pub(super) fn discard_values(values: &mut Box<[Value]>) {
    if values.iter().any(Value::may_nest) {
        discard(std::mem::take(values), Garbage::Values);
    }
}

/// Drops the rest of a chain of cells whose first slice was dropped.
#[cold]
#[inline(never)]
pub(super) fn discard_rest(rest: Value) {
    charge(SLICE / 2);
    put_aside(Garbage::Value(rest));
}

/// Adds a drop to the queue, and empties the queue if no other drop is under way.
#[cold]
#[inline(never)]
fn put_aside(garbage: Garbage) {
    let nested = NESTED.get();
    // The queue no longer exists when the thread is ending; then the drop recurses.
    let refused = QUEUE.try_with(|queue| {
        let mut queue = queue.borrow_mut();
        if nested == DEFERRING && queue.len() >= MAX_DEFERRED {
            return Some(garbage);
        }
        queue.push(garbage);
        None
    });
    match refused {
        Ok(None) => {
            IS_QUEUED.set(true);
            if nested == 0 {
                NESTED.set(1);
                drain();
            }
        }
        Ok(Some(garbage)) => {
            NESTED.set(1);
            LEFT.set(SLICE);
            drop(garbage);
            NESTED.set(DEFERRING);
        }
        Err(_) => {}
    }
}

/// Empties the queue, unless a limit is reached meanwhile. Ends the outermost drop.
#[cold]
#[inline(never)]
fn drain() {
    let mut children = Vec::new();
    loop {
        if LEFT.get() == 0 {
            LEFT.set(SLICE);
            if meter::is_stopped_now() {
                NESTED.set(DEFERRING);
                return;
            }
        }
        let next = QUEUE.try_with(|queue| {
            let mut queue = queue.borrow_mut();
            queue.append(&mut children);
            let next = queue.pop();
            if next.is_none() {
                // The queue's memory is released after a drop.
                *queue = Vec::new();
            }
            next
        });
        match next {
            Ok(Some(garbage)) => garbage.free(&mut children),
            Ok(None) | Err(_) => {
                IS_QUEUED.set(false);
                NESTED.set(0);
                return;
            }
        }
    }
}

/// Defers all drops from now on, until [`end`].
pub(super) fn begin() {
    // A drop that is under way notices the limit by itself.
    if NESTED.get() == 0 {
        NESTED.set(DEFERRING);
    }
}

/// Drops as usual again. Deferred drops wait for [`free_deferred`].
#[inline]
pub(super) fn end() {
    if NESTED.get() == DEFERRING {
        keep();
    }
}

#[cold]
fn keep() {
    NESTED.set(0);
    IS_QUEUED.set(false);
    let put_aside = QUEUE.try_with(RefCell::take).unwrap_or_default();
    if !put_aside.is_empty() {
        HAS_DEFERRED.set(true);
        let _ = DEFERRED.try_with(|deferred| deferred.borrow_mut().extend(put_aside));
    }
}

/// Never frees the deferred values of this thread: for a process that is about to end.
pub fn forget_deferred() {
    HAS_DEFERRED.set(false);
    std::mem::forget(DEFERRED.try_with(RefCell::take));
}

/// Frees some of the values of this thread that were deferred when a limit ended an evaluation: less than a millisecond
/// of work. Returns whether some are left.
pub fn free_deferred() -> bool {
    if !HAS_DEFERRED.get() || NESTED.get() != 0 {
        return false;
    }
    let mut waiting = DEFERRED.try_with(RefCell::take).unwrap_or_default();
    NESTED.set(1);
    LEFT.set(SLICE);
    while LEFT.get() > 0 {
        let Some(garbage) = waiting.pop() else { break };
        let mut children = Vec::new();
        garbage.free(&mut children);
        waiting.append(&mut children);
        if IS_QUEUED.replace(false) {
            let _ = QUEUE.try_with(|queue| waiting.append(&mut queue.borrow_mut()));
        }
    }
    NESTED.set(0);
    HAS_DEFERRED.set(!waiting.is_empty());
    let _ = DEFERRED.try_with(|deferred| deferred.borrow_mut().extend(waiting));
    HAS_DEFERRED.get()
}

/// Frees all deferred values.
#[inline]
pub(crate) fn free_all() {
    if HAS_DEFERRED.get() {
        while free_deferred() {}
    }
}

/// Runs `work` once all values that are deferred now are freed.
pub(crate) fn after_deferred(work: impl FnOnce() + 'static) {
    if !HAS_DEFERRED.get() {
        return work();
    }
    // A thread that is ending no longer runs it.
    let _ = DEFERRED.try_with(|deferred| {
        let work = Garbage::Last(Box::new(work));
        deferred.borrow_mut().insert(0, work);
    });
}

impl Value {
    /// Tells whether dropping this may drop further values.
    #[inline]
    fn may_nest(&self) -> bool {
        match self {
            Value::Nil
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Char(_)
            | Value::Keyword(_)
            | Value::Symbol(_)
            | Value::Native(_)
            | Value::Text(_)
            | Value::BigInt(_)
            | Value::Ratio(_)
            | Value::Decimal(_)
            | Value::Var(_) => false,
            Value::Name(_)
            | Value::Fn(_)
            | Value::Vector(_)
            | Value::Map(_)
            | Value::Set(_)
            | Value::List(_)
            | Value::Seq(_)
            | Value::Lazy(_)
            | Value::Atom(_)
            | Value::Exception(_)
            | Value::Record(_)
            | Value::Object(_) => true,
        }
    }
}
