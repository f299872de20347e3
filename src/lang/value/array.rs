//! Arrays: sequences of a fixed length whose items can be replaced.
//!
//! Arrays are the only mutable collections, for programs that were written with them. An array is equal only to itself,
//! and never leaves its run: it cannot be journaled.

use std::borrow::Cow;
use std::cell::RefCell;

use super::{Object, Value};

/// The type of the items of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// True or false.
    Boolean,
    /// 8-bit integers.
    Byte,
    /// Characters.
    Char,
    /// 16-bit integers.
    Short,
    /// 32-bit integers.
    Int,
    /// 64-bit integers.
    Long,
    /// Doubles with the digits of a 32-bit float.
    Float,
    /// Doubles.
    Double,
    /// Strings or nil.
    Text,
    /// Values of any kind.
    Any,
}

impl Element {
    /// Returns how messages describe an array of these items, such as `an array of longs`.
    pub fn array_kind(self) -> &'static str {
        match self {
            Element::Boolean => "an array of booleans",
            Element::Byte => "an array of bytes",
            Element::Char => "an array of characters",
            Element::Short => "an array of shorts",
            Element::Int => "an array of ints",
            Element::Long => "an array of longs",
            Element::Float => "an array of floats",
            Element::Double => "an array of doubles",
            Element::Text => "an array of strings",
            Element::Any => "an array",
        }
    }

    /// Returns the JVM's class name for an array of these items.
    pub const fn array_class(self) -> &'static str {
        match self {
            Element::Boolean => "[Z",
            Element::Byte => "[B",
            Element::Char => "[C",
            Element::Short => "[S",
            Element::Int => "[I",
            Element::Long => "[J",
            Element::Float => "[F",
            Element::Double => "[D",
            Element::Text => "[Ljava.lang.String;",
            Element::Any => "[Ljava.lang.Object;",
        }
    }

    /// Returns the initial item of an array of this type.
    pub fn initial(self) -> Value {
        match self {
            Element::Boolean => Value::Bool(false),
            Element::Char => Value::Char('\0'),
            Element::Byte | Element::Short | Element::Int | Element::Long => Value::Int(0),
            Element::Float | Element::Double => Value::Float(0.0),
            Element::Text | Element::Any => Value::Nil,
        }
    }
}

/// A mutable array. Its items must not be borrowed while user code runs.
#[derive(Debug)]
pub struct Array {
    /// The type of the items.
    pub element: Element,
    /// The items themselves.
    pub items: RefCell<Vec<Value>>,
}

impl Array {
    /// Returns an array that holds `items`.
    pub fn new(element: Element, items: Vec<Value>) -> Array {
        Array {
            element,
            items: RefCell::new(items),
        }
    }

    /// Returns the number of items.
    pub fn len(&self) -> usize {
        self.items.borrow().len()
    }

    /// Tells whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.items.borrow().is_empty()
    }

    /// Returns the item at `idx`.
    pub fn get(&self, idx: usize) -> Option<Value> {
        self.items.borrow().get(idx).cloned()
    }

    /// Replaces the item at `idx`; false if the index is out of range.
    pub fn set(&self, idx: usize, item: Value) -> bool {
        // The old item is dropped after the borrow ends, since dropping may reach other values.
        let old = match self.items.borrow_mut().get_mut(idx) {
            Some(slot) => std::mem::replace(slot, item),
            None => return false,
        };
        drop(old);
        true
    }

    /// Returns the items as they are now.
    pub fn snapshot(&self) -> Vec<Value> {
        self.items.borrow().clone()
    }
}

impl Object {
    /// Returns the bytes of this object: those of a step's value, or the current contents of a byte array.
    pub fn as_bytes(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Object::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
            Object::Array(array) if array.element == Element::Byte => {
                // Bytes of the language are signed.
                let byte = |item: &Value| item.as_int().unwrap_or_default() as u8;
                Some(array.items.borrow().iter().map(byte).collect())
            }
            _ => None,
        }
    }
}

impl Value {
    /// Returns the bytes of this value: see [`Object::as_bytes`].
    pub fn as_bytes(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Value::Object(object) => object.as_bytes(),
            _ => None,
        }
    }

    /// Returns the array, if this value is an array.
    pub fn as_array(&self) -> Option<&Array> {
        match self {
            Value::Object(object) => match &**object {
                Object::Array(array) => Some(array),
                _ => None,
            },
            _ => None,
        }
    }
}
