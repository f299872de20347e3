//! Dropping without deep recursion, in slices, and later where a limit has ended the evaluation.
//!
//! Every type that can hold values drops them through here. The first few levels are dropped by ordinary recursion;
//! deeper values and the nodes of large collections wait in a queue of this thread until the outermost drop empties it.
//! After each slice of that work, the host is asked whether a limit is met.
//!
//! Once a limit is met, values are put aside instead, because freeing them takes longer than an evaluation may need to
//! stop. [`free_deferred`] frees a slice of them; the next evaluation that has no fiber frees all of them first.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::map::{Entries, HashNode, SortedNode};
use super::vector::{Branch, Items};
use super::{LazyState, Value, meter};

/// How deep drops recurse.
const MAX_NESTED: u32 = 24;
/// The depth while the evaluation is being stopped: every drop is put aside.
const DEFERRING: u32 = u32::MAX;
/// Drops in a slice: a fraction of a millisecond.
const SLICE: u32 = 1 << 12;
/// A collection with more items than this is taken apart until its parts have fewer.
const LARGE: usize = 1 << 10;
/// Number of drops that a part of a large collection counts as.
const PART: u32 = 256;
/// Maximum number of drops that are put aside, because each takes memory.
const MAX_DEFERRED: usize = 1 << 20;

thread_local! {
    static NESTED: Cell<u32> = const { Cell::new(0) };
    /// Drops that are left of the slice.
    static LEFT: Cell<u32> = const { Cell::new(SLICE) };
    /// Whether the queue may have something in it.
    static IS_QUEUED: Cell<bool> = const { Cell::new(false) };
    static QUEUE: RefCell<Vec<Garbage>> = const { RefCell::new(Vec::new()) };
    /// Whether something waits for [`free_deferred`].
    static HAS_DEFERRED: Cell<bool> = const { Cell::new(false) };
    static DEFERRED: RefCell<Vec<Garbage>> = const { RefCell::new(Vec::new()) };
}

/// What waits to be dropped.
pub(super) enum Garbage {
    Value(Value),
    Values(Box<[Value]>),
    Lazy(LazyState),
    Items(Items),
    Branch(Rc<Branch>),
    Entries(Entries),
    /// A node of a large map, and how many levels of it are to be taken apart.
    Hashed(Rc<HashNode>, u32),
    Sorted(Rc<SortedNode>),
    /// To be done after all others are dropped.
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
                    // 32 to the power of this many parts.
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

/// Drops, now or later.
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

/// Queues what lies too deep or is too much for this slice. The outermost drop begins another slice.
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

/// As [`discard`], for a collection of `len` items.
#[inline]
pub(super) fn discard_collection<T>(len: usize, contents: T, wrap: impl FnOnce(T) -> Garbage) {
    if len > LARGE {
        return put_aside(wrap(contents));
    }
    discard(contents, wrap);
}

/// Drops a value that may hold others; every other value is left to its owner.
#[inline]
pub(super) fn discard_value(value: &mut Value) {
    if value.may_nest() {
        discard(std::mem::replace(value, Value::Nil), Garbage::Value);
    }
}

/// Drops values that a function closed over.
#[inline]
pub(super) fn discard_values(values: &mut Box<[Value]>) {
    if values.iter().any(Value::may_nest) {
        discard(std::mem::take(values), Garbage::Values);
    }
}

/// Drops the rest of a chain of cells, of which a slice was dropped.
#[cold]
#[inline(never)]
pub(super) fn discard_rest(rest: Value) {
    charge(SLICE / 2);
    put_aside(Garbage::Value(rest));
}

/// Adds to the queue, and empties it if no other drop is under way.
#[cold]
#[inline(never)]
fn put_aside(garbage: Garbage) {
    let nested = NESTED.get();
    // The queue is gone when the thread is ending; then the stack has to do.
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

/// Empties the queue, unless a limit is met meanwhile. The outermost drop ends with it.
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
                // Nothing of a drop is kept.
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

/// Puts aside what is dropped from now on, until [`end`].
pub(super) fn begin() {
    // A drop that is under way notices by itself.
    if NESTED.get() == 0 {
        NESTED.set(DEFERRING);
    }
}

/// Drops as usual again. What was put aside waits for [`free_deferred`].
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

/// Never frees the values of this thread that were put aside: for a process that is about to end.
pub fn forget_deferred() {
    HAS_DEFERRED.set(false);
    std::mem::forget(DEFERRED.try_with(RefCell::take));
}

/// Frees some of the values of this thread that were put aside when a limit ended an evaluation: less than a millisecond
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

/// Frees all values that were put aside.
#[inline]
pub(crate) fn free_all() {
    if HAS_DEFERRED.get() {
        while free_deferred() {}
    }
}

/// Does some work once all values that are put aside now are freed.
pub(crate) fn after_deferred(work: impl FnOnce() + 'static) {
    if !HAS_DEFERRED.get() {
        return work();
    }
    // A thread that is ending does it no more.
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
