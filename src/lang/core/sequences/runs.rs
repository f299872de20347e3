//! `partition-by` as a lazy sequence of lazy runs: a run may be infinite, and is computed as it is read. The next run
//! is found by walking to the end of the current one.

use std::cell::RefCell;
use std::rc::Rc;

use super::function::Function;
use crate::value::{Lazy, List, Value};

/// Returns the runs of items for which `function` returns equal values.
pub(super) fn partition_by(function: Function, coll: Value) -> Value {
    Lazy::native(move |vm| {
        let Some((first, rest)) = vm.uncons(coll)? else {
            return Ok(Value::Nil);
        };
        let run = Rc::new(Run {
            key: function.call(vm, first.clone())?,
            function,
            after: RefCell::new(None),
        });
        let items = List::cons(first, more_of(run.clone(), rest));
        let held = items.clone();
        let others = Lazy::native(move |vm| {
            let mut left = held;
            while run.after.borrow().is_none()
                && let Some((_, rest)) = vm.uncons(left)?
            {
                vm.charge(1)?;
                left = rest;
            }
            let after = run.after.take().unwrap_or(Value::Nil);
            Ok(partition_by(run.function.clone(), after))
        });
        Ok(List::cons(items, others))
    })
}

/// A run whose end is not known yet.
struct Run {
    function: Function,
    key: Value,
    /// The items after the run, once its end is known.
    after: RefCell<Option<Value>>,
}

/// Returns the items at the start of `coll` that belong to a run.
fn more_of(run: Rc<Run>, coll: Value) -> Value {
    Lazy::native(move |vm| {
        let Some((item, rest)) = vm.uncons(coll)? else {
            run.after.replace(Some(Value::Nil));
            return Ok(Value::Nil);
        };
        let key = run.function.call(vm, item.clone())?;
        if vm.equal(&run.key, &key)? {
            return Ok(List::cons(item, more_of(run, rest)));
        }
        run.after.replace(Some(List::cons(item, rest)));
        Ok(Value::Nil)
    })
}
