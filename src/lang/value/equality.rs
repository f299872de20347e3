//! Equality by Clojure's rules.

use std::rc::Rc;

use super::{Lazy, Result, Value};

/// Computes lazy sequences for whoever must look into them.
pub trait Force {
    /// Returns nil, or the sequence, which is not lazy itself.
    ///
    /// # Errors
    /// Whatever the computation throws.
    fn force(&mut self, lazy: &Rc<Lazy>) -> Result<Value>;
}

/// Looks at what is computed already and takes the rest for empty.
pub struct Unforced;

impl Force for Unforced {
    fn force(&mut self, lazy: &Rc<Lazy>) -> Result<Value> {
        Ok(lazy.realised().unwrap_or(Value::Nil))
    }
}

/// Tells whether two values are equal as by `=`.
///
/// # Errors
/// Whatever computing a lazy part throws.
pub fn equal(force: &mut dyn Force, left: &Value, right: &Value) -> Result<bool> {
    let _ = force;
    Ok(match (left, right) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left), Value::Int(right)) => left == right,
        (Value::Keyword(left), Value::Keyword(right)) => left == right,
        (Value::Text(left), Value::Text(right)) => left.as_str() == right.as_str(),
        _ => match (left.as_symbol(), right.as_symbol()) {
            (Some(left), Some(right)) => left == right,
            _ => false,
        },
    })
}
