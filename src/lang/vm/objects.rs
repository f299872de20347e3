//! Objects of a program's types: methods with the names of host interfaces implement functions of core.

use std::rc::Rc;

use super::Vm;
use crate::value::{Class, Lazy, List, Object, RecordType, Result, Value};

/// Returns the program's type of a value.
pub(crate) fn type_of(value: &Value) -> Option<&Rc<RecordType>> {
    match value {
        Value::Record(record) => Some(&record.record_type),
        Value::Object(object) => match &**object {
            Object::Instance(instance) => Some(&instance.instance_type),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the method of a name that the type of a value defines.
pub(crate) fn own_method(value: &Value, name: &str) -> Option<Value> {
    let methods = type_of(value)?.methods.borrow();
    methods.get(&Value::symbol(name)).cloned()
}

/// Tells whether the type of a value implements a class or one of its subclasses.
pub(crate) fn implements(value: &Value, class: Class) -> bool {
    type_of(value).is_some_and(|own| {
        own.above.borrow().iter().any(|above| match above {
            Value::Object(object) => {
                matches!(&**object, Object::Class(above) if above.is_below(class))
            }
            _ => false,
        })
    })
}

/// Like [`implements`], by the name of the class.
pub(crate) fn implements_named(value: &Value, class: &str) -> bool {
    type_of(value).is_some() && Class::named(class).is_some_and(|class| implements(value, class))
}

impl Vm {
    /// Calls the method of a name that the type of a value defines; `None` if it does not define it.
    ///
    /// # Errors
    /// Any exception that the method throws.
    pub(crate) fn call_own_method(
        &mut self,
        value: &Value,
        name: &str,
        args: &[Value],
    ) -> Result<Option<Value>> {
        let Some(method) = own_method(value, name) else {
            return Ok(None);
        };
        self.check_native_stack()?;
        let mut all = Vec::with_capacity(args.len() + 1);
        all.push(value.clone());
        all.extend_from_slice(args);
        self.invoke(&method, &mut all).map(Some)
    }

    /// Calls the first of several methods that the type defines.
    ///
    /// # Errors
    /// As [`Vm::call_own_method`].
    pub(crate) fn call_first_own_method(
        &mut self,
        value: &Value,
        names: &[&str],
        args: &[Value],
    ) -> Result<Option<Value>> {
        for name in names {
            if let Some(answer) = self.call_own_method(value, name, args)? {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    /// Looks up a key in an object with a method `valAt`.
    pub(crate) fn look_up_in_object(
        &mut self,
        object: &Value,
        key: &Value,
    ) -> Result<Option<Value>> {
        let Some(method) = own_method(object, "valAt") else {
            // A set, or a map of the host, returns the item that it holds.
            return match implements_named(object, "IPersistentSet")
                || implements_named(object, "Map")
            {
                true => Ok(self
                    .call_own_method(object, "get", std::slice::from_ref(key))?
                    .filter(|found| !found.is_nil())),
                false => Ok(None),
            };
        };
        let takes_default = match &method {
            Value::Fn(closure) => closure.proto.body(3).is_some(),
            _ => false,
        };
        if takes_default {
            // A value that is equal to nothing else marks a missing key.
            let missing = Value::from(Object::Reduced(Value::Nil));
            let found = self.call_own_method(object, "valAt", &[key.clone(), missing.clone()])?;
            return Ok(found.filter(|found| match (found, &missing) {
                (Value::Object(found), Value::Object(missing)) => !Rc::ptr_eq(found, missing),
                _ => true,
            }));
        }
        let found = self.call_own_method(object, "valAt", std::slice::from_ref(key))?;
        Ok(found.filter(|found| !found.is_nil()))
    }

    /// Returns the sequence of an object with a method `seq`, or with `first` and `next` if it is a sequence itself;
    /// `None` for any other object.
    pub(crate) fn seq_of_object(&mut self, object: &Value) -> Result<Option<Value>> {
        let Some(seq) = self.call_own_method(object, "seq", &[])? else {
            return Ok(None);
        };
        match (&seq, object) {
            (Value::Object(same), Value::Object(own)) if Rc::ptr_eq(same, own) => {
                let first = self
                    .call_own_method(object, "first", &[])?
                    .unwrap_or(Value::Nil);
                let object = object.clone();
                let rest = Lazy::native(move |vm| {
                    let rest = vm.call_first_own_method(&object, &["more", "next"], &[])?;
                    Ok(rest.unwrap_or(Value::Nil))
                });
                Ok(Some(List::cons(first, rest)))
            }
            _ => self.seq(&seq).map(Some),
        }
    }

    /// Compares an object that has a method `equiv` or `equals` with a value.
    pub(crate) fn equal_objects(&mut self, left: &Value, right: &Value) -> Result<Option<bool>> {
        for (own, other) in [(left, right), (right, left)] {
            if matches!(own, Value::Object(_))
                && let Some(answer) = self.call_first_own_method(
                    own,
                    &["equiv", "equals"],
                    std::slice::from_ref(other),
                )?
            {
                return Ok(Some(answer.is_truthy()));
            }
        }
        Ok(None)
    }
}
