//! Lists, lazy sequences, and sequences that are views of other values.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use super::drops::{Garbage, discard, discard_rest, discard_value};
use super::{Exception, Extra, PVec, Result, Span, Text, Value};
use crate::vm::Vm;

/// A list cell. The empty list is a cell too, of kind `Empty`.
#[derive(Debug)]
pub struct List {
    /// The first item; nil in the empty list.
    pub first: Value,
    /// Nil, or any sequence: for a `List` with more than one item, another `List`.
    pub rest: Value,
    /// The number of items from here on, for values that `list?` and `counted?` accept; 0 for the empty list; `None`
    /// for a `cons` onto a sequence that may be lazy.
    pub count: Option<u32>,
    /// Metadata and place.
    pub extra: Extra,
}

impl List {
    /// Returns `()`.
    pub fn empty() -> Value {
        Value::List(Rc::new(List {
            first: Value::Nil,
            rest: Value::Nil,
            count: Some(0),
            extra: None,
        }))
    }

    /// Returns a list of `items`.
    pub fn of(items: impl IntoIterator<Item = Value, IntoIter: DoubleEndedIterator>) -> Value {
        let mut list = Value::Nil;
        let mut count = 0;
        for item in items.into_iter().rev() {
            count += 1;
            list = Value::List(Rc::new(List {
                first: item,
                rest: list,
                count: Some(count),
                extra: None,
            }));
        }
        if count == 0 { List::empty() } else { list }
    }

    /// Prepends `first` to `rest`, which is nil, a list or any other sequence (not merely seqable).
    pub fn cons(first: Value, rest: Value) -> Value {
        let count = match &rest {
            Value::Nil => Some(1),
            Value::List(list) => list.count.map(|count| count + 1),
            _ => None,
        };
        let rest = match rest {
            Value::List(list) if list.count == Some(0) => Value::Nil,
            rest => rest,
        };
        Value::List(Rc::new(List {
            first,
            rest,
            count,
            extra: None,
        }))
    }

    /// Tells whether this is `()`.
    pub fn is_empty(&self) -> bool {
        self.count == Some(0)
    }

    /// Returns the items of a list whose cells are all lists, as in forms; stops at any other tail.
    pub fn iter(&self) -> ListIter<'_> {
        ListIter {
            at: (!self.is_empty()).then_some(self),
        }
    }

    pub(crate) fn with_extra(&self, extra: Extra) -> List {
        List {
            first: self.first.clone(),
            rest: self.rest.clone(),
            count: self.count,
            extra,
        }
    }
}

/// Iterator over the items of a list. See [`List::iter`].
pub struct ListIter<'a> {
    at: Option<&'a List>,
}

impl<'a> Iterator for ListIter<'a> {
    type Item = &'a Value;

    fn next(&mut self) -> Option<&'a Value> {
        let list = self.at?;
        self.at = match &list.rest {
            Value::List(rest) if !rest.is_empty() => Some(rest),
            _ => None,
        };
        Some(&list.first)
    }
}

/// Dropping a long list must not recurse.
impl Drop for List {
    fn drop(&mut self) {
        discard_value(&mut self.first);
        drop_chain(std::mem::replace(&mut self.rest, Value::Nil));
    }
}

/// Number of cells that are dropped before other drops have a turn.
const CHAIN: u32 = 1 << 11;

/// Drops a chain of cells one after another, as long as this is their only owner.
fn drop_chain(at: Value) {
    let mut at = match at {
        Value::List(_) | Value::Lazy(_) | Value::Seq(_) => at,
        _ => return,
    };
    let mut left = CHAIN;
    loop {
        at = match at {
            Value::List(cell) => match Rc::try_unwrap(cell) {
                Ok(mut list) => std::mem::replace(&mut list.rest, Value::Nil),
                Err(_) => return,
            },
            Value::Lazy(lazy) => match Rc::try_unwrap(lazy) {
                Ok(lazy) => match lazy.state.replace(LazyState::Done(Value::Nil)) {
                    LazyState::Done(seq) => seq,
                    state => return discard(state, Garbage::Lazy),
                },
                Err(_) => return,
            },
            Value::Seq(view) => match Rc::try_unwrap(view) {
                Ok(mut view) => view.take_rest(),
                Err(_) => return,
            },
            _ => return,
        };
        left -= 1;
        if left == 0 {
            return discard_rest(at);
        }
    }
}

/// A sequence that is computed when it is first read.
pub struct Lazy {
    /// The state of the computation.
    pub state: RefCell<LazyState>,
    /// A map, or nil.
    pub meta: Value,
}

/// The state of a [`Lazy`].
pub enum LazyState {
    /// Not begun.
    Pending(Thunk),
    /// Being computed: found only by a sequence that depends on itself.
    Running,
    /// Nil, or a sequence that is not lazy itself.
    Done(Value),
    /// The computation threw this exception, which each later access throws again.
    Failed(Rc<Exception>),
}

/// A pending step of a native.
pub type NativeThunk = Box<dyn FnOnce(&mut Vm) -> Result<Value>>;

/// The computation of a lazy sequence: returns nil or a seqable value.
#[expect(missing_docs, reason = "each variant says what its fields are")]
pub enum Thunk {
    /// A function of no arguments.
    Call(Value),
    /// A stage applied to a sequence, kept visible so that a reduction can run through it without cells.
    Stage { stage: Box<dyn Stage>, coll: Value },
    /// A pending step of a native.
    Native(NativeThunk),
}

/// One step of a pipeline: `map`, `filter`, `take` and all others that process a sequence item by item. The same stage
/// serves lazy sequences (pulled) and transducers and reductions (pushed).
pub trait Stage: std::any::Any {
    /// Processes an item.
    ///
    /// # Errors
    /// Any exception that the stage's function throws.
    fn step(&mut self, vm: &mut Vm, item: Value) -> Result<Emit>;

    /// Returns the items that are still held when the input ends.
    fn flush(&mut self) -> Option<Value> {
        None
    }

    /// Tells whether the stage accepts no more items.
    fn is_done(&self) -> bool {
        false
    }

    /// Returns the place where the lazy sequence was created, if it is known.
    fn made_at(&self) -> Span {
        Span::NONE
    }

    /// Tells whether every further item passes through unchanged.
    fn is_spent(&self) -> bool {
        false
    }
}

/// The output of a [`Stage`] for an item.
#[derive(Debug)]
pub enum Emit {
    /// No item.
    Nothing,
    /// One item.
    One(Value),
    /// Two items.
    Two(Value, Value),
    /// Each item of a seqable value.
    Each(Value),
    /// One item, which is the last.
    Last(Value),
    /// No item, and no further ones.
    Stop,
}

impl Lazy {
    /// Returns a sequence that `thunk` will compute.
    #[expect(
        clippy::new_ret_no_self,
        reason = "a lazy sequence is only ever met as a value"
    )]
    pub fn new(thunk: Thunk) -> Value {
        Value::Lazy(Rc::new(Lazy {
            state: RefCell::new(LazyState::Pending(thunk)),
            meta: Value::Nil,
        }))
    }

    /// Returns a sequence that `step` will compute.
    pub fn native(step: impl FnOnce(&mut Vm) -> Result<Value> + 'static) -> Value {
        Lazy::new(Thunk::Native(Box::new(step)))
    }

    /// Returns the sequence if it is computed: nil or a sequence that is not lazy.
    pub fn realised(&self) -> Option<Value> {
        match &*self.state.borrow() {
            LazyState::Done(seq) => Some(seq.clone()),
            _ => None,
        }
    }

    /// Returns a copy with metadata. A pending copy shares the computation through a thunk.
    pub(crate) fn with_meta(self: &Rc<Self>, meta: Value) -> Lazy {
        let state = match self.realised() {
            Some(seq) => LazyState::Done(seq),
            None => {
                let inner = self.clone();
                LazyState::Pending(Thunk::Native(Box::new(move |_| Ok(Value::Lazy(inner)))))
            }
        };
        Lazy {
            state: RefCell::new(state),
            meta,
        }
    }
}

impl fmt::Debug for Lazy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.state.borrow() {
            LazyState::Done(seq) => seq.fmt(out),
            _ => out.write_str("#lazy"),
        }
    }
}

/// Dropping a long realised sequence must not recurse.
impl Drop for Lazy {
    fn drop(&mut self) {
        match self.state.replace(LazyState::Running) {
            LazyState::Done(seq) => drop_chain(seq),
            LazyState::Running => {}
            state => discard(state, Garbage::Lazy),
        }
    }
}

/// A non-empty sequence over a value that already exists.
#[expect(missing_docs, reason = "each variant says what its fields are")]
#[derive(Debug)]
pub enum SeqView {
    /// The items of a vector from `start` on.
    Slice { items: PVec, start: usize },
    /// Some items, followed by another sequence (nil, or any sequence, including lazy ones).
    Chunk {
        items: Rc<[Value]>,
        start: usize,
        rest: Value,
    },
    /// `start`, `start + step` ... before `end`; integers only.
    Range { start: i64, end: i64, step: i64 },
    /// The characters of a string from byte `start` on.
    Chars { text: Rc<Text>, start: usize },
    /// One value repeated; `None` repeats it forever.
    Repeat { value: Value, count: Option<u64> },
}

impl SeqView {
    /// Returns a sequence of items already computed followed by `rest`.
    pub fn chunk(items: Vec<Value>, rest: Value) -> Value {
        if items.is_empty() {
            return rest;
        }
        Value::Seq(Rc::new(SeqView::Chunk {
            items: items.into(),
            start: 0,
            rest,
        }))
    }

    fn take_rest(&mut self) -> Value {
        match self {
            SeqView::Chunk { rest, .. } => std::mem::replace(rest, Value::Nil),
            _ => Value::Nil,
        }
    }

    /// Returns the first item.
    pub fn first(&self) -> Value {
        match self {
            SeqView::Slice { items, start } => items.get(*start).cloned().unwrap_or(Value::Nil),
            SeqView::Chunk { items, start, .. } => items[*start].clone(),
            SeqView::Range { start, .. } => Value::Int(*start),
            SeqView::Chars { text, start } => text[*start..]
                .chars()
                .next()
                .map_or(Value::Nil, Value::Char),
            SeqView::Repeat { value, .. } => value.clone(),
        }
    }

    /// Returns the rest after the first item: nil, or a sequence that may be lazy.
    pub fn rest(&self) -> Value {
        let view = match self {
            SeqView::Slice { items, start } if start + 1 < items.len() => SeqView::Slice {
                items: items.clone(),
                start: start + 1,
            },
            SeqView::Chunk { items, start, rest } if start + 1 < items.len() => SeqView::Chunk {
                items: items.clone(),
                start: start + 1,
                rest: rest.clone(),
            },
            SeqView::Chunk { rest, .. } => return rest.clone(),
            SeqView::Range { start, end, step } => match start.checked_add(*step) {
                Some(next) if (*step > 0 && next < *end) || (*step < 0 && next > *end) => {
                    SeqView::Range {
                        start: next,
                        end: *end,
                        step: *step,
                    }
                }
                _ => return Value::Nil,
            },
            SeqView::Chars { text, start } => {
                let next = start + text[*start..].chars().next().map_or(0, char::len_utf8);
                if next >= text.len() {
                    return Value::Nil;
                }
                SeqView::Chars {
                    text: text.clone(),
                    start: next,
                }
            }
            SeqView::Repeat { value, count: None } => SeqView::Repeat {
                value: value.clone(),
                count: None,
            },
            SeqView::Repeat {
                value,
                count: Some(count),
            } if *count > 1 => SeqView::Repeat {
                value: value.clone(),
                count: Some(count - 1),
            },
            SeqView::Slice { .. } | SeqView::Repeat { .. } => return Value::Nil,
        };
        Value::Seq(Rc::new(view))
    }

    /// Returns the number of items, if it is known without walking.
    pub fn count(&self) -> Option<usize> {
        match self {
            SeqView::Slice { items, start } => Some(items.len() - start),
            // An infinite range is represented as a range up to the greatest integer.
            SeqView::Range { end: i64::MAX, .. } => None,
            SeqView::Range { start, end, step } => {
                let span = i128::from(*end) - i128::from(*start);
                let step = i128::from(*step);
                usize::try_from((span + step - step.signum()) / step).ok()
            }
            SeqView::Chars { text, start } => Some(text[*start..].chars().count()),
            SeqView::Repeat { count, .. } => count.and_then(|count| usize::try_from(count).ok()),
            SeqView::Chunk {
                items,
                start,
                rest: Value::Nil,
            } => Some(items.len() - start),
            SeqView::Chunk { .. } => None,
        }
    }
}

impl Drop for SeqView {
    fn drop(&mut self) {
        match self {
            SeqView::Chunk { items, .. } => {
                if let Some(items) = Rc::get_mut(items) {
                    items.iter_mut().for_each(discard_value);
                }
            }
            SeqView::Repeat { value, .. } => discard_value(value),
            SeqView::Slice { .. } | SeqView::Range { .. } | SeqView::Chars { .. } => {}
        }
        drop_chain(self.take_rest());
    }
}
