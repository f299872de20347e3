//! Functions as stages and reductions call them: the most common natives on integers, and keywords on maps, are
//! computed here without a call. All other functions are called as usual.

use crate::core::arithmetic::{ADD, DEC, INC};
use crate::core::collections::{CONJ, conj};
use crate::core::number::{IS_EVEN, IS_NEG, IS_ODD, IS_POS, IS_ZERO};
use crate::value::{Native, Object, Result, Value};
use crate::vm::Vm;

/// A function of one argument.
#[derive(Clone)]
pub(crate) struct Function {
    known: Known,
    value: Value,
}

/// The behaviour of a function that is known without calling it.
#[derive(Clone, Copy)]
enum Known {
    Nothing,
    Increment,
    Decrement,
    IsEven,
    IsOdd,
    IsPositive,
    IsNegative,
    IsZero,
    Keyword,
}

const NATIVES: &[(&Native, Known)] = &[
    (&INC, Known::Increment),
    (&DEC, Known::Decrement),
    (&IS_EVEN, Known::IsEven),
    (&IS_ODD, Known::IsOdd),
    (&IS_POS, Known::IsPositive),
    (&IS_NEG, Known::IsNegative),
    (&IS_ZERO, Known::IsZero),
];

impl Function {
    pub(crate) fn new(value: Value) -> Function {
        let known = match &value {
            Value::Native(native) => {
                let row = NATIVES.iter().find(|row| native.is(row.0));
                row.map_or(Known::Nothing, |row| row.1)
            }
            Value::Keyword(_) => Known::Keyword,
            _ => Known::Nothing,
        };
        Function { known, value }
    }

    /// Returns the function as a value.
    pub(crate) fn value(&self) -> &Value {
        &self.value
    }

    /// Replaces an item with the function's result for it.
    ///
    /// # Errors
    /// Any exception that the function throws.
    #[inline]
    pub(crate) fn update(&self, vm: &mut Vm, item: &mut Value) -> Result<()> {
        match (self.known, &mut *item) {
            (Known::Nothing, _) => {}
            (Known::Increment, Value::Int(int)) => {
                if let Some(next) = int.checked_add(1) {
                    *int = next;
                    return Ok(());
                }
            }
            (Known::Decrement, Value::Int(int)) => {
                if let Some(next) = int.checked_sub(1) {
                    *int = next;
                    return Ok(());
                }
            }
            (Known::Keyword, Value::Map(map)) => {
                if map.entries().sorted().is_none() {
                    let found = map.get(&self.value).cloned();
                    *item = found.unwrap_or(Value::Nil);
                    return Ok(());
                }
            }
            _ => {
                if let Some(holds) = self.holds(item) {
                    *item = Value::Bool(holds);
                    return Ok(());
                }
            }
        }
        vm.update(&self.value, item)
    }

    /// Calls the function.
    ///
    /// # Errors
    /// Any exception that it throws.
    #[inline]
    pub(crate) fn call(&self, vm: &mut Vm, mut item: Value) -> Result<Value> {
        self.update(vm, &mut item)?;
        Ok(item)
    }

    /// Calls the function and tells whether the result is neither nil nor false.
    ///
    /// # Errors
    /// Any exception that it throws.
    #[inline]
    pub(crate) fn test(&self, vm: &mut Vm, item: &Value) -> Result<bool> {
        match (self.known, self.holds(item)) {
            (_, Some(holds)) => Ok(holds),
            (Known::Keyword, None) => Ok(self.call(vm, item.clone())?.is_truthy()),
            (_, None) => vm.test(&self.value, item),
        }
    }

    /// Returns the result of a predicate of integers.
    #[inline]
    fn holds(&self, item: &Value) -> Option<bool> {
        let Value::Int(int) = item else {
            return None;
        };
        Some(match self.known {
            Known::IsEven => int & 1 == 0,
            Known::IsOdd => int & 1 != 0,
            Known::IsPositive => *int > 0,
            Known::IsNegative => *int < 0,
            Known::IsZero => *int == 0,
            Known::Nothing | Known::Increment | Known::Decrement | Known::Keyword => return None,
        })
    }
}

/// A function that combines the result so far with an item.
#[derive(Clone)]
pub(crate) struct Reducer {
    known: Combination,
    value: Value,
}

#[derive(Clone, Copy)]
enum Combination {
    Unknown,
    Sum,
    Conj,
}

impl Reducer {
    pub(crate) fn new(value: Value) -> Reducer {
        let known = match &value {
            Value::Native(native) if native.is(&ADD) => Combination::Sum,
            Value::Native(native) if native.is(&CONJ) => Combination::Conj,
            _ => Combination::Unknown,
        };
        Reducer { known, value }
    }

    /// Returns the next result; `true` if it was reduced, in which case it is unwrapped.
    ///
    /// # Errors
    /// Any exception that the function throws.
    #[inline]
    pub(crate) fn combine(&self, vm: &mut Vm, so_far: &mut Value, item: Value) -> Result<bool> {
        match self.known {
            Combination::Sum => {
                if let (Value::Int(sum), Value::Int(int)) = (&mut *so_far, &item)
                    && let Some(next) = sum.checked_add(*int)
                {
                    *sum = next;
                    return Ok(false);
                }
            }
            Combination::Conj => {
                *so_far = conj(vm, std::mem::replace(so_far, Value::Nil), item)?;
                return Ok(false);
            }
            Combination::Unknown => {}
        }
        vm.update_with(&self.value, so_far, item)?;
        if let Value::Object(object) = &*so_far
            && let Object::Reduced(inner) = &**object
        {
            *so_far = inner.clone();
            return Ok(true);
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Session;

    fn named(session: &Session, name: &str) -> Value {
        session.evaluate(name).expect("a function")
    }

    #[test]
    fn functions_of_the_library_are_recognised_by_their_rows() {
        let session = Session::new();
        for name in ["dec", "even?", "inc", "neg?", "odd?", "pos?", "zero?", ":a"] {
            let function = Function::new(named(&session, name));
            assert!(!matches!(function.known, Known::Nothing), "{name}");
        }
        for name in ["+", "conj"] {
            let reducer = Reducer::new(named(&session, name));
            assert!(!matches!(reducer.known, Combination::Unknown), "{name}");
        }
        for name in ["str", "(fn [x] x)", "{}"] {
            let function = Function::new(named(&session, name));
            assert!(matches!(function.known, Known::Nothing), "{name}");
        }
    }
}
