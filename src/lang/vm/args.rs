//! The arguments of a native call.

use std::rc::Rc;

use crate::value::{
    BigInt, Class, Culprit, Exception, Fault, Keyword, Map, Result, Symbol, Text, Value, Vector,
};

/// The arguments of a call, in the callee's own registers: `take` moves one out, so that a collection can be changed in
/// place if this is its last use.
pub struct Args<'a>(&'a mut [Value]);

impl<'a> Args<'a> {
    /// Wraps the registers of a call.
    pub fn new(slots: &'a mut [Value]) -> Args<'a> {
        Args(slots)
    }

    /// Returns the number of arguments.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Tells whether there are no arguments.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the argument at `idx`; nil for a missing one.
    #[inline]
    pub fn get(&self, idx: usize) -> &Value {
        self.0.get(idx).unwrap_or(&Value::Nil)
    }

    /// Moves the argument at `idx` out; nil for a missing one.
    #[inline]
    pub fn take(&mut self, idx: usize) -> Value {
        self.0
            .get_mut(idx)
            .map_or(Value::Nil, |slot| std::mem::replace(slot, Value::Nil))
    }

    /// Returns the arguments from `idx` on.
    pub fn from(&self, idx: usize) -> &[Value] {
        self.0.get(idx..).unwrap_or(&[])
    }

    /// Returns all arguments.
    pub fn as_slice(&self) -> &[Value] {
        self.0
    }

    /// Returns all arguments mutably, so that they can be moved out.
    pub fn as_mut_slice(&mut self) -> &mut [Value] {
        self.0
    }

    /// Returns an integer argument.
    pub fn int(&self, idx: usize) -> Result<i64> {
        match self.get(idx) {
            Value::Int(int) => Ok(*int),
            _ => Err(self.expected(idx, "an integer")),
        }
    }

    /// Returns the integer of an index of any number type: a fraction is truncated, as by Java's casts.
    pub fn position(&self, idx: usize) -> Result<i64> {
        match self.get(idx) {
            Value::Float(float) => Ok(*float as i64),
            big @ Value::BigInt(_) => Ok(big.as_index().unwrap_or(i64::MAX)),
            part @ (Value::Ratio(_) | Value::Decimal(_)) => {
                crate::value::number::to_float(part, "an index").map(|float| float as i64)
            }
            _ => self.int(idx),
        }
    }

    /// Returns an argument that is a count or index: an integer of 0 or more.
    pub fn index(&self, idx: usize) -> Result<usize> {
        usize::try_from(self.int(idx)?).map_err(|_| self.expected(idx, "an integer of 0 or more"))
    }

    /// Returns a string argument.
    pub fn text(&self, idx: usize) -> Result<&Rc<Text>> {
        match self.get(idx) {
            Value::Text(text) => Ok(text),
            _ => Err(self.expected(idx, "a string")),
        }
    }

    /// Replaces an argument that is a character sequence of the host, or of a program's type, with its text.
    ///
    /// # Errors
    /// Any exception that its `toString` throws.
    pub fn read_characters(&mut self, vm: &mut super::Vm, idx: usize) -> Result<()> {
        let value = self.get(idx).clone();
        if matches!(value, Value::Object(_))
            && (super::objects::implements_named(&value, "CharSequence")
                || value.is_host("java.lang.StringBuilder")
                || value.is_host("java.lang.StringBuffer"))
        {
            let mut text = String::new();
            crate::value::write_str(&mut text, vm, &value)?;
            self.as_mut_slice()[idx] = Value::from(text);
        }
        Ok(())
    }

    /// Returns a map argument.
    pub fn map(&self, idx: usize) -> Result<&Rc<Map>> {
        match self.get(idx) {
            Value::Map(map) => Ok(map),
            _ => Err(self.expected(idx, "a map")),
        }
    }

    /// Returns a vector argument.
    pub fn vector(&self, idx: usize) -> Result<&Rc<Vector>> {
        match self.get(idx) {
            Value::Vector(vector) => Ok(vector),
            _ => Err(self.expected(idx, "a vector")),
        }
    }

    /// Returns a symbol argument.
    pub fn symbol(&self, idx: usize) -> Result<Symbol> {
        self.get(idx)
            .as_symbol()
            .ok_or_else(|| self.expected(idx, "a symbol"))
    }

    /// Returns a keyword argument.
    pub fn keyword(&self, idx: usize) -> Result<Keyword> {
        self.get(idx)
            .as_keyword()
            .ok_or_else(|| self.expected(idx, "a keyword"))
    }

    /// Returns a big integer argument, from any integer.
    pub fn big_int(&self, idx: usize) -> Result<BigInt> {
        match self.get(idx) {
            Value::Int(int) => Ok(BigInt::from(*int)),
            Value::BigInt(int) => Ok((**int).clone()),
            _ => Err(self.expected(idx, "an integer")),
        }
    }

    /// Returns the error for an argument of the wrong kind.
    pub fn expected(&self, idx: usize, expected: &str) -> crate::value::Signal {
        wrong_type(self.get(idx), expected, idx).into()
    }
}

/// Returns the exception for an argument that is not seqable.
#[cold]
pub(crate) fn not_seqable(value: &Value) -> Exception {
    let mut exception = wrong_type(value, "something seqable", 0).of_class(Class::ILLEGAL_ARGUMENT);
    if let Some(fault) = &mut exception.fault {
        fault.at = Culprit::Collection;
        exception.message = fault.sentence().map(Into::into);
    }
    exception
}

/// Returns the exception for a value of the wrong kind: `argument` counts from 0.
pub fn wrong_type(value: &Value, expected: &str, argument: usize) -> Exception {
    let class = if value.is_nil() {
        Class::NULL_POINTER
    } else {
        Class::CLASS_CAST
    };
    let fault = Fault::of(value, expected, argument);
    let message = fault.sentence().unwrap_or_default();
    let mut exception = Exception::new(class, "E0301", message);
    exception.fault = Some(fault);
    exception
}
