//! Values that represent objects of the host's library: dates, durations, string builders.
//!
//! Each kind is a Rust type that implements [`HostObject`], which provides equality, order, hash and text; the
//! functions that create and change them are natives of `core`.

use std::any::Any;
use std::cmp::Ordering;

use super::{Object, Value};

/// A value of a host class.
pub trait HostObject: Any {
    /// The full name of its class, such as `java.time.Instant`.
    fn class_name(&self) -> &'static str;

    /// The result of `str`.
    fn text(&self) -> String;

    /// Tells whether it equals another object; by default no two objects are equal.
    fn equals(&self, _other: &dyn HostObject) -> bool {
        false
    }

    /// A hash that agrees with `equals`.
    fn hash(&self) -> u32 {
        0
    }

    /// Compares as `compare` does; `None` if the objects have no order.
    fn compare(&self, _other: &dyn HostObject) -> Option<Ordering> {
        None
    }
}

impl dyn HostObject {
    /// Returns the object as its concrete type.
    pub fn downcast<T: HostObject>(&self) -> Option<&T> {
        (self as &dyn Any).downcast_ref::<T>()
    }
}

impl Value {
    /// Wraps a host object as a value.
    pub fn host(object: impl HostObject) -> Value {
        Value::from(Object::HostObject(Box::new(object)))
    }

    /// Returns the host object, if this is one of type `T`.
    pub fn as_host<T: HostObject>(&self) -> Option<&T> {
        match self {
            Value::Object(object) => match &**object {
                Object::HostObject(object) => object.downcast::<T>(),
                _ => None,
            },
            _ => None,
        }
    }

    /// Tells whether this is a host object of a class with this full name.
    pub(crate) fn is_host(&self, class: &str) -> bool {
        matches!(self, Value::Object(object)
            if matches!(&**object, Object::HostObject(object) if object.class_name() == class))
    }
}

/// One of the named values of an enumeration, such as `java.time.DayOfWeek/MONDAY`.
#[derive(Debug, PartialEq, Eq)]
pub struct HostConstant {
    /// The full name of the class.
    pub class: &'static str,
    /// The name of the constant.
    pub name: &'static str,
    /// The constant's index in the class, from 0.
    pub ordinal: u8,
}

impl HostObject for &'static HostConstant {
    fn class_name(&self) -> &'static str {
        self.class
    }

    fn text(&self) -> String {
        self.name.to_owned()
    }

    fn equals(&self, other: &dyn HostObject) -> bool {
        other.downcast::<Self>() == Some(self)
    }

    fn hash(&self) -> u32 {
        u32::from(self.ordinal)
    }

    fn compare(&self, other: &dyn HostObject) -> Option<Ordering> {
        let other = other.downcast::<Self>()?;
        (self.class == other.class).then(|| self.ordinal.cmp(&other.ordinal))
    }
}
