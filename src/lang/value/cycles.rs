//! Detection of unreachable cycles of counted references, which are broken so that their memory is freed.
//!
//! A cycle needs something that changed after it was made: an atom, a volatile, a delay, a promise, a var, functions of
//! one `letfn`, a sequence that was computed. These cells are registered weakly when they are made or released. When
//! their number has doubled since the last search, everything reachable from them is walked: a value with more
//! references than the walk finds is held from outside, and so is everything reachable from it; the rest is garbage,
//! and its cells are emptied. A value that cannot be inspected, or that is shared inside a collection, counts as held,
//! so that nothing alive is ever emptied.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use super::{
    Atom, Closure, Delay, DelayState, FixedState, Lazy, LazyState, Map, Object, PMap, Promise,
    SeqView, Thunk, Value, Var,
};
use crate::vm::{Body, Proto};

/// Number of cells below which no search runs.
const FEW: usize = 256;
/// Maximum number of values that a search visits; beyond it, the next search waits until there are twice as many cells.
const MAX_NODES: usize = 1_000_000;

/// A cell that may be part of a cycle.
enum Tracked {
    Atom(Weak<Atom>),
    Closure(Weak<Closure>),
    Lazy(Weak<Lazy>),
    Object(Weak<Object>),
    Var(Weak<Var>),
}

struct Registry {
    tracked: RefCell<Vec<Tracked>>,
    /// Number of cells at which the next search runs.
    limit: Cell<usize>,
    is_searching: Cell<bool>,
}

thread_local! {
    static REGISTRY: Registry = const {
        Registry {
            tracked: RefCell::new(Vec::new()),
            limit: Cell::new(FEW),
            is_searching: Cell::new(false),
        }
    };
}

impl Tracked {
    fn of(value: &Value) -> Option<Tracked> {
        Some(match value {
            Value::Atom(atom) => Tracked::Atom(Rc::downgrade(atom)),
            Value::Fn(closure) => Tracked::Closure(Rc::downgrade(closure)),
            Value::Lazy(lazy) => Tracked::Lazy(Rc::downgrade(lazy)),
            Value::Object(object) => Tracked::Object(Rc::downgrade(object)),
            Value::Var(var) => Tracked::Var(Rc::downgrade(var)),
            _ => return None,
        })
    }

    fn is_alive(&self) -> bool {
        let count = match self {
            Tracked::Atom(atom) => atom.strong_count(),
            Tracked::Closure(closure) => closure.strong_count(),
            Tracked::Lazy(lazy) => lazy.strong_count(),
            Tracked::Object(object) => object.strong_count(),
            Tracked::Var(var) => var.strong_count(),
        };
        count > 0
    }

    fn value(&self) -> Option<Value> {
        match self {
            Tracked::Atom(atom) => atom.upgrade().map(Value::Atom),
            Tracked::Closure(closure) => closure.upgrade().map(Value::Fn),
            Tracked::Lazy(lazy) => lazy.upgrade().map(Value::Lazy),
            Tracked::Object(object) => object.upgrade().map(Value::Object),
            Tracked::Var(var) => var.upgrade().map(Value::Var),
        }
    }
}

/// Registers a cell that was made, and returns it.
pub(crate) fn tracked(cell: Value) -> Value {
    track(&cell);
    cell
}

/// Registers a cell: an atom, an object with state, functions that refer to each other, a var without a namespace.
pub(crate) fn track(cell: &Value) {
    // The registry no longer exists when the thread is ending.
    let is_full = REGISTRY.try_with(|registry| {
        if registry.is_searching.get() {
            return false;
        }
        let mut tracked = registry.tracked.borrow_mut();
        tracked.extend(Tracked::of(cell));
        tracked.len() >= registry.limit.get()
    });
    if is_full == Ok(true) {
        sweep();
    }
}

/// Registers the previous content of a cell, if it can be part of a cycle without that cell.
#[inline]
pub(crate) fn let_go(old: &Value) {
    let is_held = match old {
        Value::Lazy(lazy) => Rc::strong_count(lazy) > 1,
        Value::Object(object) => Rc::strong_count(object) > 1,
        _ => false,
    };
    if is_held {
        track(old);
    }
}

/// Frees unreachable cycles. Cheap if few cells are alive; called at the end of a session.
pub(crate) fn collect_few() {
    let few = REGISTRY.try_with(|registry| registry.tracked.borrow().len() <= 16 * FEW);
    if few == Ok(true) {
        search();
    }
}

/// Removes the cells that were freed, and searches for cycles if too many remain.
#[cold]
fn sweep() {
    let alive = REGISTRY.with(|registry| {
        let mut tracked = registry.tracked.borrow_mut();
        tracked.retain(Tracked::is_alive);
        tracked.len()
    });
    let is_due = REGISTRY.with(|registry| alive * 2 > registry.limit.get());
    if is_due {
        search();
    }
}

/// Searches everything reachable from the cells for garbage, and empties it.
fn search() {
    let cells: Vec<Tracked> = REGISTRY.with(|registry| {
        if registry.is_searching.replace(true) {
            return Vec::new();
        }
        registry.tracked.take()
    });
    if cells.is_empty() {
        REGISTRY.with(|registry| registry.is_searching.set(false));
        return;
    }
    let mut graph = Graph::default();
    for cell in cells.iter().filter_map(Tracked::value) {
        graph.visit(Node::of(&cell));
    }
    let mut spoils = Vec::new();
    if graph.walk() {
        graph.find_live();
        for node in graph.garbage() {
            if let Node::Value(value) = node {
                empty(value, &mut spoils);
            }
        }
    }
    // Destructors of the host may run here, so nothing may be borrowed.
    drop(graph);
    drop(spoils);
    REGISTRY.with(|registry| {
        let mut tracked = registry.tracked.borrow_mut();
        tracked.extend(cells);
        tracked.retain(Tracked::is_alive);
        registry.limit.set((tracked.len() * 2).max(FEW));
        registry.is_searching.set(false);
    });
}

/// Takes the contents of an unreachable cell.
fn empty(value: &Value, spoils: &mut Vec<Value>) {
    let take = |cell: &RefCell<Value>| cell.replace(Value::Nil);
    match value {
        Value::Atom(atom) => {
            spoils.extend([&atom.value, &atom.meta, &atom.validator].map(take));
            spoils.push(Value::Map(Rc::new(Map::new(atom.watches.take()))));
        }
        Value::Var(var) => var.empty(spoils),
        Value::Lazy(lazy) => match lazy.state.replace(LazyState::Done(Value::Nil)) {
            LazyState::Done(seq) => spoils.push(seq),
            state => spoils.push(Value::Lazy(Rc::new(Lazy {
                state: RefCell::new(state),
                meta: Value::Nil,
            }))),
        },
        Value::Fn(closure) => closure.empty(spoils),
        Value::Object(object) => match &**object {
            Object::Volatile(cell) => spoils.push(take(cell)),
            Object::Delay(delay) => {
                if let DelayState::Done(value) = delay.state.replace(DelayState::Done(Value::Nil)) {
                    spoils.push(value);
                }
            }
            Object::Array(array) => {
                let mut items = array.items.borrow_mut();
                let items = items.iter_mut();
                spoils.extend(items.map(|item| std::mem::replace(item, Value::Nil)));
            }
            Object::Transient(cell) => spoils.extend(cell.take()),
            Object::State(state) => {
                if let Some(promise) = state.downcast_ref::<Promise>() {
                    spoils.push(promise.empty());
                }
            }
            _ => {}
        },
        _ => {}
    }
}

/// A value with a reference count.
enum Node {
    Value(Value),
    Proto(Rc<Proto>),
    Body(Rc<Body>),
}

impl Node {
    /// Returns the node of a value that is counted and can be inspected.
    fn of(value: &Value) -> Option<(usize, Node)> {
        let address = match value {
            Value::Fn(closure) => Rc::as_ptr(closure).addr(),
            Value::Vector(vector) => Rc::as_ptr(vector).addr(),
            Value::Map(map) => Rc::as_ptr(map).addr(),
            Value::Set(set) => Rc::as_ptr(set).addr(),
            Value::List(list) => Rc::as_ptr(list).addr(),
            Value::Seq(view) => Rc::as_ptr(view).addr(),
            Value::Lazy(lazy) => Rc::as_ptr(lazy).addr(),
            // The namespace holds the var, and much is reachable from it.
            Value::Var(var) if var.is_interned.get() => return None,
            Value::Var(var) => Rc::as_ptr(var).addr(),
            Value::Atom(atom) => Rc::as_ptr(atom).addr(),
            Value::Record(record) => Rc::as_ptr(record).addr(),
            Value::Exception(exception) => Rc::as_ptr(exception).addr(),
            Value::Object(object) => Rc::as_ptr(object).addr(),
            Value::Nil
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::Char(_)
            | Value::Keyword(_)
            | Value::Symbol(_)
            | Value::Native(_)
            | Value::Text(_)
            | Value::Name(_)
            | Value::BigInt(_)
            | Value::Ratio(_)
            | Value::Decimal(_) => return None,
        };
        Some((address, Node::Value(value.clone())))
    }

    /// Returns the reference count, this reference included.
    fn count(&self) -> usize {
        match self {
            Node::Proto(proto) => Rc::strong_count(proto),
            Node::Body(body) => Rc::strong_count(body),
            Node::Value(value) => match value {
                Value::Fn(closure) => Rc::strong_count(closure),
                Value::Vector(vector) => Rc::strong_count(vector),
                Value::Map(map) => Rc::strong_count(map),
                Value::Set(set) => Rc::strong_count(set),
                Value::List(list) => Rc::strong_count(list),
                Value::Seq(view) => Rc::strong_count(view),
                Value::Lazy(lazy) => Rc::strong_count(lazy),
                Value::Var(var) => Rc::strong_count(var),
                Value::Atom(atom) => Rc::strong_count(atom),
                Value::Record(record) => Rc::strong_count(record),
                Value::Exception(exception) => Rc::strong_count(exception),
                Value::Object(object) => Rc::strong_count(object),
                // These never become nodes.
                _ => usize::MAX,
            },
        }
    }

    /// Passes each reference that this node holds to `see`, once.
    fn children(&self, see: &mut dyn FnMut(Option<(usize, Node)>)) {
        match self {
            Node::Proto(proto) => {
                for body in proto.bodies() {
                    see(Some((Rc::as_ptr(body).addr(), Node::Body(body.clone()))));
                }
            }
            Node::Body(body) => body.constants.iter().for_each(|value| see(Node::of(value))),
            Node::Value(Value::Fn(closure)) => {
                let proto = &closure.proto;
                see(Some((Rc::as_ptr(proto).addr(), Node::Proto(proto.clone()))));
                closure
                    .captured
                    .iter()
                    .for_each(|value| see(Node::of(value)));
                see(Node::of(&closure.meta));
            }
            Node::Value(value) => values_in(value, &mut |value| see(Node::of(value))),
        }
    }
}

pub(super) fn entries_in(map: &PMap, see: &mut dyn FnMut(&Value)) {
    if map.is_unshared() {
        for (key, value) in map.iter() {
            see(key);
            see(value);
        }
    }
}

/// Passes each value that a value holds directly to `see`; none if that is not certain.
fn values_in(value: &Value, see: &mut dyn FnMut(&Value)) {
    match value {
        Value::Vector(vector) if vector.items().is_unshared() => vector.iter().for_each(see),
        Value::Map(map) => entries_in(map.entries(), see),
        Value::Record(record) => entries_in(&record.fields, see),
        Value::Set(set) if set.items().is_unshared() => set.iter().for_each(see),
        Value::List(list) => {
            see(&list.first);
            see(&list.rest);
        }
        Value::Seq(view) => match &**view {
            SeqView::Chunk { items, rest, .. } => {
                if Rc::strong_count(items) == 1 {
                    items.iter().for_each(&mut *see);
                }
                see(rest);
            }
            SeqView::Slice { items, .. } if items.is_unshared() => items.iter().for_each(see),
            SeqView::Repeat { value, .. } => see(value),
            SeqView::Slice { .. } | SeqView::Range { .. } | SeqView::Chars { .. } => {}
        },
        Value::Lazy(lazy) => {
            if let Ok(state) = lazy.state.try_borrow() {
                match &*state {
                    LazyState::Done(seq) => see(seq),
                    LazyState::Pending(thunk) => in_thunk(thunk, see),
                    LazyState::Running | LazyState::Failed(_) => {}
                }
            }
        }
        Value::Atom(atom) => {
            for cell in [&atom.value, &atom.meta, &atom.validator] {
                if let Ok(value) = cell.try_borrow() {
                    see(&value);
                }
            }
            if let Ok(watches) = atom.watches.try_borrow() {
                entries_in(&watches, see);
            }
        }
        Value::Var(var) => var.visit_values(see),
        Value::Exception(exception) => {
            see(&exception.data);
            see(&exception.cause);
        }
        Value::Object(object) => values_in_object(object, see),
        _ => {}
    }
}

fn in_thunk(thunk: &Thunk, see: &mut dyn FnMut(&Value)) {
    match thunk {
        Thunk::Call(function) => see(function),
        Thunk::Stage { coll, .. } => see(coll),
        Thunk::Native(_) => {}
    }
}

fn values_in_object(object: &Object, see: &mut dyn FnMut(&Value)) {
    match object {
        Object::Volatile(cell) => {
            if let Ok(value) = cell.try_borrow() {
                see(&value);
            }
        }
        Object::Delay(Delay { state }) => {
            if let Ok(state) = state.try_borrow() {
                match &*state {
                    DelayState::Done(value) => see(value),
                    DelayState::Pending(thunk) => in_thunk(thunk, see),
                    DelayState::Running | DelayState::Failed(_) => {}
                }
            }
        }
        Object::Array(array) => {
            if let Ok(items) = array.items.try_borrow() {
                items.iter().for_each(see);
            }
        }
        Object::Transient(cell) => {
            if let Ok(Some(value)) = cell.try_borrow().as_deref() {
                see(value);
            }
        }
        Object::Function(function) => {
            function.captured.iter().for_each(&mut *see);
            see(&function.meta);
        }
        Object::State(state) => {
            if let Some(promise) = state.downcast_ref::<Promise>() {
                promise.visit_values(see);
            }
        }
        Object::Reduced(value)
        | Object::Tagged { form: value, .. }
        | Object::Conditional { form: value, .. }
        | Object::Host { data: value, .. } => see(value),
        Object::Instance(instance) => {
            entries_in(&instance.fields, see);
            entries_in(&instance.methods, see);
            see(&instance.meta);
        }
        Object::Queue { items, meta, .. } => {
            if items.is_unshared() {
                items.iter().for_each(&mut *see);
            }
            see(meta);
        }
        Object::Regex { .. }
        | Object::Inst(_)
        | Object::Uuid(_)
        | Object::Namespace(_)
        | Object::Bytes(_)
        | Object::Class(_)
        | Object::RecordType(_)
        | Object::Stop(_)
        | Object::HostObject(_)
        | Object::Unbound(_) => {}
    }
}

/// The values that the search found: each node once, with the number of references found to it.
#[derive(Default)]
struct Graph {
    nodes: Vec<Met>,
    by_address: HashMap<usize, usize, FixedState>,
    /// Number of nodes whose references were walked.
    walked: usize,
}

struct Met {
    node: Node,
    internal: usize,
    children: Vec<usize>,
    is_live: bool,
}

impl Graph {
    /// Adds a node unless it is present; returns its index.
    fn visit(&mut self, found: Option<(usize, Node)>) -> Option<usize> {
        let (address, node) = found?;
        let next = self.nodes.len();
        let idx = *self.by_address.entry(address).or_insert(next);
        if idx == next {
            self.nodes.push(Met {
                node,
                internal: 0,
                children: Vec::new(),
                is_live: false,
            });
        }
        Some(idx)
    }

    /// Walks everything reachable; returns false if that exceeds [`MAX_NODES`].
    fn walk(&mut self) -> bool {
        while self.walked < self.nodes.len() {
            if self.nodes.len() > MAX_NODES {
                return false;
            }
            let mut found = Vec::new();
            self.nodes[self.walked]
                .node
                .children(&mut |child| found.extend(child));
            let mut children = Vec::with_capacity(found.len());
            for child in found {
                if let Some(idx) = self.visit(Some(child)) {
                    self.nodes[idx].internal += 1;
                    children.push(idx);
                }
            }
            self.nodes[self.walked].children = children;
            self.walked += 1;
        }
        true
    }

    /// Marks the nodes that are held from outside, and everything reachable from them.
    fn find_live(&mut self) {
        // One of the references is the graph's own.
        let mut open: Vec<usize> = (0..self.nodes.len())
            .filter(|idx| self.nodes[*idx].node.count() > self.nodes[*idx].internal + 1)
            .collect();
        while let Some(idx) = open.pop() {
            if !std::mem::replace(&mut self.nodes[idx].is_live, true) {
                open.extend_from_slice(&self.nodes[idx].children);
            }
        }
    }

    fn garbage(&self) -> impl Iterator<Item = &Node> {
        self.nodes
            .iter()
            .filter(|met| !met.is_live)
            .map(|met| &met.node)
    }
}
