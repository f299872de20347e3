//! Sorted collections whose comparator is a function: only the VM can call it.

use std::cmp::Ordering;

use super::Vm;
use crate::value::{Comparison, Result, Sorted, Value};

impl Vm {
    /// Compares with a function that returns a number, or whether its first argument comes first.
    ///
    /// # Errors
    /// Any exception that it throws; an error if it returns neither.
    pub fn compare_with(
        &mut self,
        function: &Value,
        left: &Value,
        right: &Value,
    ) -> Result<Ordering> {
        match self.invoke(function, &mut [left.clone(), right.clone()])? {
            Value::Bool(true) => Ok(Ordering::Less),
            Value::Bool(false) | Value::Nil => {
                let reverse = self.invoke(function, &mut [right.clone(), left.clone()])?;
                Ok(if reverse.is_truthy() {
                    Ordering::Greater
                } else {
                    Ordering::Equal
                })
            }
            Value::Int(int) => Ok(int.cmp(&0)),
            Value::Float(float) => Ok((float as i64).cmp(&0)),
            other => {
                let expected = "a number or a boolean from the comparator";
                Err(super::wrong_type(&other, expected, 0).into())
            }
        }
    }

    /// Calls `act` with the comparison of a sorted collection.
    ///
    /// # Errors
    /// Any error of `act`.
    pub fn with_order<T>(
        &mut self,
        order: &Value,
        act: impl FnOnce(&mut Comparison<'_>) -> Result<T>,
    ) -> Result<T> {
        if order.is_nil() {
            return act(&mut |left, right| self.compare(left, right));
        }
        act(&mut |left, right| {
            self.charge(1)?;
            self.compare_with(order, left, right)
        })
    }

    /// Looks up a key in a sorted collection: the key as it is stored, and the value.
    ///
    /// # Errors
    /// Any error of the comparison.
    pub fn find_sorted(&mut self, sorted: &Sorted, key: &Value) -> Result<Option<(Value, Value)>> {
        self.with_order(sorted.order(), |by| {
            let found = sorted.find(key, by)?;
            Ok(found.map(|(key, value)| (key.clone(), value.clone())))
        })
    }

    /// Inserts an entry into a sorted collection.
    ///
    /// # Errors
    /// Any error of the comparison.
    pub fn insert_sorted(&mut self, sorted: &mut Sorted, key: Value, value: Value) -> Result<()> {
        let order = sorted.order().clone();
        self.with_order(&order, |by| sorted.insert(key, value, by))
    }

    /// Removes a key from a sorted collection.
    ///
    /// # Errors
    /// Any error of the comparison.
    pub fn remove_sorted(&mut self, sorted: &mut Sorted, key: &Value) -> Result<Option<Value>> {
        let order = sorted.order().clone();
        self.with_order(&order, |by| sorted.remove(key, by))
    }
}
