//! The VM's state and its outside: calling functions, walking sequences.

use std::cmp::Ordering;
use std::rc::Rc;

use super::{Host, World};
use crate::value::{
    Class, Exception, Force, Lazy, LazyState, PrintOptions, Result, SeqView, Signal, Thunk, Value,
    compare, equal, hash_value, print_value,
};

/// One thread of execution: registers, frames, bindings, and the fuel it has left.
pub struct Vm {
    world: Rc<World>,
    host: Box<dyn Host>,
    fuel: u32,
    /// What `with-out-str` collects, innermost last.
    pub(super) captures: Vec<String>,
    /// Natives that call back must not grow the native stack below this address; 0: not known.
    native_stack_limit: usize,
}

impl Vm {
    pub fn new(world: Rc<World>, host: Box<dyn Host>) -> Vm {
        Vm {
            world,
            host,
            fuel: 0,
            captures: Vec::new(),
            native_stack_limit: 0,
        }
    }

    /// Says where the native stack that this machine runs on ends, a margin left aside.
    pub fn set_native_stack_limit(&mut self, address: usize) {
        self.native_stack_limit = address;
    }

    /// Returns the address below which the native stack must not grow; 0 where it is not known.
    pub fn native_stack_limit(&self) -> usize {
        self.native_stack_limit
    }

    /// Returns the globals.
    pub fn world(&self) -> &Rc<World> {
        &self.world
    }

    pub fn host(&mut self) -> &mut dyn Host {
        &mut *self.host
    }

    /// Pays for `units` of work that a native does by itself.
    ///
    /// # Errors
    /// The stop that the host answers with when the fuel is used up.
    #[inline]
    pub fn charge(&mut self, units: u32) -> Result<()> {
        match self.fuel.checked_sub(units) {
            Some(left) => {
                self.fuel = left;
                Ok(())
            }
            None => self.refill(),
        }
    }

    #[cold]
    fn refill(&mut self) -> Result<()> {
        self.fuel = self.host.refill().map_err(Signal::from)?;
        Ok(())
    }

    /// Leaves the VM with a request and returns its outcome.
    ///
    /// # Errors
    /// Whatever the request came to.
    pub fn suspend(&mut self, request: Value) -> Result<Value> {
        self.host.suspend(request)
    }

    /// Tells whether two values are equal as by `=`.
    pub fn equal(&mut self, left: &Value, right: &Value) -> Result<bool> {
        equal(self, left, right)
    }

    /// Compares two values as `compare` does.
    pub fn compare(&mut self, left: &Value, right: &Value) -> Result<Ordering> {
        compare(self, left, right)
    }

    /// Returns the hash of a value.
    pub fn hash(&mut self, value: &Value) -> Result<u32> {
        hash_value(self, value)
    }

    /// Prints a value.
    pub fn print(&mut self, value: &Value, options: PrintOptions) -> Result<String> {
        let mut out = String::new();
        print_value(&mut out, self, value, options)?;
        Ok(out)
    }

    /// Returns nil for what has no items, or a non-empty sequence of kind `List` or `Seq`.
    ///
    /// # Errors
    /// When the value is not seqable, and whatever computing it throws.
    pub fn seq(&mut self, value: &Value) -> Result<Value> {
        Ok(match value {
            Value::Nil => Value::Nil,
            Value::List(list) if list.is_empty() => Value::Nil,
            Value::List(_) | Value::Seq(_) => value.clone(),
            Value::Lazy(lazy) => self.force(lazy)?,
            Value::Vector(vector) if vector.is_empty() => Value::Nil,
            Value::Vector(vector) => Value::Seq(Rc::new(SeqView::Slice {
                items: vector.items().clone(),
                start: 0,
            })),
            Value::Map(map) => SeqView::chunk(
                map.iter()
                    .map(|(key, value)| Value::entry(key.clone(), value.clone()))
                    .collect(),
                Value::Nil,
            ),
            Value::Record(record) => SeqView::chunk(
                record
                    .fields
                    .iter()
                    .map(|(key, value)| Value::entry(key.clone(), value.clone()))
                    .collect(),
                Value::Nil,
            ),
            Value::Set(set) => SeqView::chunk(set.iter().cloned().collect(), Value::Nil),
            Value::Text(text) if text.is_empty() => Value::Nil,
            Value::Text(text) => Value::Seq(Rc::new(SeqView::Chars {
                text: text.clone(),
                start: 0,
            })),
            _ => return Err(super::args::wrong_type(value, "something seqable", 0).into()),
        })
    }

    /// Splits a seqable value into its first item and the rest, which may be lazy; `None` when it has
    /// no items. Takes the value, so that its head is not held.
    pub fn uncons(&mut self, value: Value) -> Result<Option<(Value, Value)>> {
        let seq = match value {
            Value::List(_) | Value::Seq(_) => value,
            value => self.seq(&value)?,
        };
        Ok(match &seq {
            Value::List(list) if list.is_empty() => None,
            Value::List(list) => Some((list.first.clone(), list.rest.clone())),
            Value::Seq(view) => Some((view.first(), view.rest())),
            _ => None,
        })
    }

    /// Collects the items of a seqable value.
    pub fn items(&mut self, value: Value) -> Result<Vec<Value>> {
        let mut iter = self.iter(value)?;
        let mut items = Vec::new();
        while let Some(item) = iter.next(self)? {
            items.push(item);
        }
        Ok(items)
    }

    /// Computes every lazy part of a value, however deep, so that it can be a key or be stored.
    pub fn realise(&mut self, value: &Value) -> Result<()> {
        hash_value(self, value).map(|_| ())
    }

    fn compute(&mut self, thunk: Thunk) -> Result<Value> {
        match thunk {
            Thunk::Call(function) => self.call(&function, &[]),
            Thunk::Native(step) => step(self),
            Thunk::Stage { stage, coll } => self.pull(stage, coll),
        }
    }
}

impl Force for Vm {
    fn force(&mut self, lazy: &Rc<Lazy>) -> Result<Value> {
        let state = lazy.state.replace(LazyState::Running);
        let thunk = match state {
            LazyState::Pending(thunk) => thunk,
            LazyState::Done(seq) => {
                lazy.state.replace(LazyState::Done(seq.clone()));
                return Ok(seq);
            }
            LazyState::Failed(exception) => {
                lazy.state.replace(LazyState::Failed(exception.clone()));
                return Err(Signal::Throw(exception));
            }
            LazyState::Running => {
                return Err(Exception::new(
                    Class::ILLEGAL_STATE,
                    "E0310",
                    "a lazy sequence needs itself to be computed",
                )
                .into());
            }
        };
        let mut result = self.compute(thunk);
        // A lazy sequence whose body is another one: walk down in a loop, not on the stack.
        while let Ok(Value::Lazy(inner)) = &result {
            let inner = inner.clone();
            let state = inner.state.replace(LazyState::Running);
            result = match state {
                LazyState::Pending(thunk) if Rc::strong_count(&inner) <= 2 => self.compute(thunk),
                state => {
                    inner.state.replace(state);
                    self.force(&inner)
                }
            };
        }
        match result.and_then(|value| self.seq(&value)) {
            Ok(seq) => {
                lazy.state.replace(LazyState::Done(seq.clone()));
                Ok(seq)
            }
            Err(Signal::Throw(exception)) => {
                lazy.state.replace(LazyState::Failed(exception.clone()));
                Err(Signal::Throw(exception))
            }
            Err(stop) => Err(stop),
        }
    }
}
