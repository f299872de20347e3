//! Arrays: rows of a fixed length whose items can be replaced.
//!
//! They are the one kind of collection that changes, and are there for programs that were written with
//! them. An array is equal to itself alone, and never leaves its run: no journal takes it.

use std::borrow::Cow;
use std::cell::RefCell;

use super::{Object, Value};

/// What an array may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// True or false.
    Boolean,
    /// Integers of 8 bits.
    Byte,
    /// Characters.
    Char,
    /// Integers of 16 bits.
    Short,
    /// Integers of 32 bits.
    Int,
    /// Integers of 64 bits.
    Long,
    /// Doubles with the digits of a float of 32 bits.
    Float,
    /// Doubles.
    Double,
    /// Strings and nil.
    Text,
    /// Anything.
    Any,
}

impl Element {
    /// Returns what an array of these is, in words.
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

    /// Returns the name of the class of an array of these, as the host writes it.
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

    /// Returns what an array of these holds before anything is put into it.
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

/// An array. No borrow of its items may be alive while user code runs.
#[derive(Debug)]
pub struct Array {
    /// What it may hold.
    pub element: Element,
    /// What it holds.
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
        // What was there is dropped after the borrow, since dropping may walk far.
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
    /// Returns the bytes that this is: those of a step, or those of an array of bytes as they are now.
    pub fn as_bytes(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Object::Bytes(bytes) => Some(Cow::Borrowed(bytes)),
            Object::Array(array) if array.element == Element::Byte => {
                // Bytes of the language have signs.
                let byte = |item: &Value| item.as_int().unwrap_or_default() as u8;
                Some(array.items.borrow().iter().map(byte).collect())
            }
            _ => None,
        }
    }
}

impl Value {
    /// Returns the bytes that this is: see [`Object::as_bytes`].
    pub fn as_bytes(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Value::Object(object) => object.as_bytes(),
            _ => None,
        }
    }

    /// Returns the array that this is.
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
