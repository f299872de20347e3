//! Equality by Clojure's rules.
//!
//! Sequential values are walked in lock step, so that a finite one can be compared with an infinite one. Values nested
//! deeper than [`DEPTH`] levels wait on an explicit stack: nesting never overflows the native one.

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;

use super::hash::{FixedState, address, is_shared};
use super::meter;
use super::number::same_number;
use super::walk::Walk;
use super::{Class, Exception, Lazy, Object, PMap, Result, Set, Value};

/// Realises lazy sequences for comparisons and hashes.
pub trait Force {
    /// Returns nil, or the realised sequence, which is not lazy itself.
    ///
    /// # Errors
    /// Any exception that the computation throws.
    fn force(&mut self, lazy: &Rc<Lazy>) -> Result<Value>;

    /// Tells whether the program has printing methods of its own.
    fn is_print_extended(&self) -> bool {
        false
    }

    /// Returns the text that a printing method of the program writes for a value; `None` if there is no such method.
    ///
    /// # Errors
    /// Any exception that the method throws.
    fn printed(&mut self, _value: &Value, _options: super::PrintOptions) -> Result<Option<String>> {
        Ok(None)
    }

    /// Tells whether this computes unrealised sequences.
    fn computes(&self) -> bool {
        true
    }

    /// Returns the result of the `toString` of a program's type; `None` if the type does not define it.
    ///
    /// # Errors
    /// Any exception that the method throws.
    fn own_text(&mut self, _value: &Value) -> Result<Option<String>> {
        Ok(None)
    }

    /// Returns the sequence of an object of a program's type; `None` if the type does not define one.
    ///
    /// # Errors
    /// Any exception that the methods of the type throw.
    fn own_items(&mut self, _value: &Value) -> Result<Option<Value>> {
        Ok(None)
    }

    /// Compares with the `equals` of a program's type; `None` if neither value defines it.
    ///
    /// # Errors
    /// Any exception that the method throws.
    fn own_equality(&mut self, _left: &Value, _right: &Value) -> Result<Option<bool>> {
        Ok(None)
    }

    /// Pays for work on a number of items. May yield to other evaluations of the thread if the machine does.
    ///
    /// # Errors
    /// The stop when the budget is used up.
    fn charge(&mut self, items: u32) -> Result<()> {
        meter::spend(items)
    }
}

/// A [`Force`] that treats the unrealised part of a sequence as empty.
pub struct Unforced;

impl Force for Unforced {
    fn force(&mut self, lazy: &Rc<Lazy>) -> Result<Value> {
        Ok(lazy.realised().unwrap_or(Value::Nil))
    }

    fn computes(&self) -> bool {
        false
    }
}

/// Recursion depth of equality and hashing, beyond which they use an explicit stack.
pub(super) const DEPTH: usize = 64;

/// Maximum nesting of keys within keys: each level is a look-up in a map, which recurses.
const MAX_KEYS: u32 = 100;

thread_local! {
    static KEYS: Cell<u32> = const { Cell::new(0) };
    static TOO_DEEP: Cell<bool> = const { Cell::new(false) };
}

/// Tells whether two keys are equal, without computing anything. Keys that nest too deep are treated as different,
/// which the surrounding [`equal`] turns into an exception.
pub(super) fn equal_keys(left: &Value, right: &Value) -> bool {
    if let Some(answer) = equal_at_once(left, right) {
        return answer;
    }
    let depth = KEYS.get();
    if depth >= MAX_KEYS {
        TOO_DEEP.set(true);
        return false;
    }
    KEYS.set(depth + 1);
    let answer = equal(&mut Unforced, left, right);
    KEYS.set(depth);
    matches!(answer, Ok(true))
}

/// Tells whether two values are equal as by `=`.
///
/// # Errors
/// Any exception thrown while a lazy part is computed; an error if sets or keys nest too deep.
pub fn equal(force: &mut dyn Force, left: &Value, right: &Value) -> Result<bool> {
    if let Some(answer) = equal_at_once(left, right) {
        return Ok(answer);
    }
    let is_outermost = KEYS.get() == 0;
    if is_outermost {
        TOO_DEEP.set(false);
    }
    let mut comparison = Comparison {
        force,
        deferred: Vec::new(),
        work: 0,
        visited: HashSet::default(),
        held: Vec::new(),
    };
    let mut same = comparison.equal(left, right, 0)?;
    while same && let Some((left, right)) = comparison.deferred.pop() {
        same = comparison.equal(&left, &right, 0)?;
    }
    comparison.pay()?;
    if is_outermost && TOO_DEEP.get() {
        return Err(Exception::new(
            Class::STACK_OVERFLOW,
            "E0302",
            format!("sets or keys nest more than {MAX_KEYS} levels deep"),
        )
        .into());
    }
    Ok(same)
}

/// Compares two values without comparing their contents; `None` if the contents decide.
#[inline]
fn equal_at_once(left: &Value, right: &Value) -> Option<bool> {
    Some(match (left, right) {
        (Value::Keyword(left), Value::Keyword(right)) => left == right,
        (Value::Int(left), Value::Int(right)) => left == right,
        (Value::Text(left), Value::Text(right)) => {
            Rc::ptr_eq(left, right) || left.as_str() == right.as_str()
        }
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Char(left), Value::Char(right)) => left == right,
        (Value::Float(left), Value::Float(right)) => left == right,
        (Value::Symbol(left), Value::Symbol(right)) => left == right,
        (Value::Native(left), Value::Native(right)) => std::ptr::eq(*left, *right),
        (Value::Fn(left), Value::Fn(right)) => Rc::ptr_eq(left, right),
        (Value::Var(left), Value::Var(right)) => Rc::ptr_eq(left, right),
        (Value::Atom(left), Value::Atom(right)) => Rc::ptr_eq(left, right),
        (Value::Exception(left), Value::Exception(right)) => Rc::ptr_eq(left, right),
        (Value::Vector(left), Value::Vector(right)) if Rc::ptr_eq(left, right) => true,
        (Value::Map(left), Value::Map(right)) if Rc::ptr_eq(left, right) => true,
        (Value::Set(left), Value::Set(right)) if Rc::ptr_eq(left, right) => true,
        (Value::List(left), Value::List(right)) if Rc::ptr_eq(left, right) => true,
        (Value::Seq(left), Value::Seq(right)) if Rc::ptr_eq(left, right) => true,
        (Value::Lazy(left), Value::Lazy(right)) if Rc::ptr_eq(left, right) => true,
        (Value::Record(left), Value::Record(right)) if Rc::ptr_eq(left, right) => true,
        (Value::Object(left), Value::Object(right)) if Rc::ptr_eq(left, right) => true,
        (Value::Name(_), _) | (_, Value::Name(_)) => match (left.as_symbol(), right.as_symbol()) {
            (Some(left), Some(right)) => left == right,
            _ => false,
        },
        _ if left.is_compound() && right.is_compound() => return None,
        _ if is_instance(left) || is_instance(right) => return None,
        (Value::Object(left), Value::Object(right)) => equal_objects(left, right),
        _ => same_number(left, right),
    })
}

/// Compares objects that hold no values. An object of any other kind is equal only to itself.
fn equal_objects(left: &Object, right: &Object) -> bool {
    match (left, right) {
        (Object::Inst(left), Object::Inst(right)) => left == right,
        (Object::Uuid(left), Object::Uuid(right)) => left == right,
        (Object::HostObject(left), Object::HostObject(right)) => left.equals(&**right),
        (Object::Class(left), Object::Class(right)) => left == right,
        (Object::RecordType(left), Object::RecordType(right)) => Rc::ptr_eq(left, right),
        (Object::Namespace(left), Object::Namespace(right)) => Rc::ptr_eq(left, right),
        _ => false,
    }
}

/// Tells whether a value is of a program's type, which may define its own equality.
fn is_instance(value: &Value) -> bool {
    matches!(value, Value::Object(object) if matches!(**object, Object::Instance(_)))
}

struct Comparison<'a> {
    force: &'a mut dyn Force,
    /// Pairs that are nested too deep to be compared by recursion.
    deferred: Vec<(Value, Value)>,
    /// Number of pairs compared in total.
    work: u32,
    /// Pairs of shared values that were visited. They need no second visit, because a single difference decides.
    visited: HashSet<(usize, usize), FixedState>,
    /// Keeps the addresses in `visited` from being reused for other values.
    held: Vec<(Value, Value)>,
}

/// Number of pairs that are compared before shared values are remembered, and between two payments.
const MANY: u32 = 1024;
/// Work below this is not worth paying for when the comparison ends.
const FEW: u32 = 32;

impl Comparison<'_> {
    /// Pays for the pairs since the last payment.
    fn pay(&mut self) -> Result<()> {
        match self.work % MANY {
            0..FEW => Ok(()),
            pairs => self.force.charge(pairs),
        }
    }

    #[inline]
    fn tick(&mut self) -> Result<()> {
        self.work = self.work.wrapping_add(1);
        match self.work.is_multiple_of(MANY) {
            true => self.force.charge(MANY),
            false => Ok(()),
        }
    }

    /// Tells whether a pair of shared values was visited before, and remembers it.
    fn is_visited(&mut self, left: &Value, right: &Value, holders: usize) -> bool {
        if self.work < MANY || !is_shared(left, holders) || !is_shared(right, holders) {
            return false;
        }
        let is_new = self.visited.insert((address(left), address(right)));
        if is_new {
            self.held.push((left.clone(), right.clone()));
        }
        !is_new
    }

    fn equal(&mut self, left: &Value, right: &Value, depth: usize) -> Result<bool> {
        self.equal_items(left, right, depth, 1)
    }

    /// `holders`: the number of references to each value held by its place and by the walk there.
    fn equal_items(
        &mut self,
        left: &Value,
        right: &Value,
        depth: usize,
        holders: usize,
    ) -> Result<bool> {
        if let Some(answer) = equal_at_once(left, right) {
            return Ok(answer);
        }
        self.tick()?;
        if self.is_visited(left, right, holders) {
            return Ok(true);
        }
        if depth > DEPTH {
            self.deferred.push((left.clone(), right.clone()));
            return Ok(true);
        }
        if (is_instance(left) || is_instance(right))
            && let Some(answer) = self.force.own_equality(left, right)?
        {
            return Ok(answer);
        }
        match (left, right) {
            (Value::Vector(left), Value::Vector(right)) => {
                if left.len() != right.len() {
                    return Ok(false);
                }
                for (left, right) in left.iter().zip(right.iter()) {
                    self.tick()?;
                    if !self.equal(left, right, depth + 1)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            (Value::Map(left), Value::Map(right)) => {
                self.equal_maps(left.entries(), right.entries(), depth)
            }
            (Value::Set(left), Value::Set(right)) => self.equal_sets(left, right),
            (Value::Record(left), Value::Record(right)) => {
                if !Rc::ptr_eq(&left.record_type, &right.record_type) {
                    return Ok(false);
                }
                self.equal_maps(&left.fields, &right.fields, depth)
            }
            (Value::Object(one), Value::Object(other)) => {
                self.equal_parts((&**one, left), (&**other, right), depth)
            }
            _ => self.equal_sequences(left, right, depth),
        }
    }

    fn equal_sets(&mut self, left: &Set, right: &Set) -> Result<bool> {
        if left.len() != right.len() {
            return Ok(false);
        }
        for item in left.iter() {
            self.tick()?;
            if !right.contains(item) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Compares two objects, each passed together with its value.
    fn equal_parts(
        &mut self,
        (one, left): (&Object, &Value),
        (other, right): (&Object, &Value),
        depth: usize,
    ) -> Result<bool> {
        match (one, other) {
            (
                Object::Tagged { tag, form },
                Object::Tagged {
                    tag: right_tag,
                    form: right_form,
                },
            ) => Ok(tag == right_tag && self.equal(form, right_form, depth + 1)?),
            (
                Object::Conditional { form, splicing },
                Object::Conditional {
                    form: right_form,
                    splicing: right_splicing,
                },
            ) => Ok(splicing == right_splicing && self.equal(form, right_form, depth + 1)?),
            (
                Object::Host { kind, id, data },
                Object::Host {
                    kind: right_kind,
                    id: right_id,
                    data: right_data,
                },
            ) => Ok(kind == right_kind
                && id == right_id
                && self.equal(data, right_data, depth + 1)?),
            _ => self.equal_sequences(left, right, depth),
        }
    }

    fn equal_maps(&mut self, left: &PMap, right: &PMap, depth: usize) -> Result<bool> {
        if left.len() != right.len() {
            return Ok(false);
        }
        for (idx, (key, value)) in left.iter().enumerate() {
            self.tick()?;
            let other = match (key, right.array_entry(idx)) {
                (Value::Keyword(key), Some((Value::Keyword(same), value))) if key == same => value,
                _ => match right.get(key) {
                    Some(value) => value,
                    None => return Ok(false),
                },
            };
            if !self.equal(value, other, depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn equal_sequences(&mut self, left: &Value, right: &Value, depth: usize) -> Result<bool> {
        let (Some(mut left), Some(mut right)) = (Walk::over(left), Walk::over(right)) else {
            return Ok(false);
        };
        loop {
            match (left.next(self.force)?, right.next(self.force)?) {
                (None, None) => return Ok(true),
                (Some(left), Some(right)) => {
                    self.tick()?;
                    if !self.equal_items(&left, &right, depth + 1, 2)? {
                        return Ok(false);
                    }
                }
                _ => return Ok(false),
            }
        }
    }
}
