//! Sets.

use std::ops::ControlFlow;
use std::rc::Rc;

use super::sequences::walk;
use crate::value::{Arity, Native, PSet, Result, Set, Value};
use crate::vm::{Vm, wrong_type};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[DISJ, HASH_SET, SET];

const DISJ: Native = Native {
    name: "disj",
    usage: "(disj set & items)",
    doc: "Returns set without items.",
    examples: &[("(disj #{1 2} 1)", "#{2}"), ("(disj nil 1)", "nil")],
    arity: Arity::at_least(1),
    run: |vm, mut args| {
        let mut coll = args.take(0);
        for idx in 1..args.len() {
            coll = disj(vm, coll, args.get(idx))?;
        }
        Ok(coll)
    },
};

const HASH_SET: Native = Native {
    name: "hash-set",
    usage: "(hash-set & items)",
    doc: "Returns a set of items.",
    examples: &[("(hash-set 1 1)", "#{1}")],
    arity: Arity::at_least(0),
    run: |vm, mut args| {
        let mut items = PSet::new();
        for item in args.as_mut_slice() {
            vm.charge(1)?;
            vm.realise_key(item)?;
            items.insert(std::mem::replace(item, Value::Nil));
        }
        Ok(Value::Set(Rc::new(Set::new(items))))
    },
};

const SET: Native = Native {
    name: "set",
    usage: "(set coll)",
    doc: "Returns a set of the items of coll.",
    examples: &[("(set [1 1])", "#{1}"), ("(set nil)", "#{}")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        let coll = args.take(0);
        if let Value::Set(set) = &coll {
            if coll.meta().is_nil() {
                return Ok(coll);
            }
            return Ok(Value::Set(Rc::new(Set::new(set.items().clone()))));
        }
        let mut items = PSet::new();
        walk::each(vm, coll, &mut |vm, item| {
            vm.realise_key(&item)?;
            items.insert(item);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Value::Set(Rc::new(Set::new(items))))
    },
};

/// Removes an item of a set.
///
/// # Errors
/// When `coll` is not a set.
pub(crate) fn disj(vm: &mut Vm, mut coll: Value, item: &Value) -> Result<Value> {
    match &mut coll {
        Value::Nil => {}
        Value::Set(set) => {
            vm.realise_key(item)?;
            if set.items().sorted().is_some() {
                if let Some(sorted) = Set::make_mut(set).items_mut().sorted_mut() {
                    vm.remove_sorted(sorted, item)?;
                }
            } else if set.contains(item) {
                Set::make_mut(set).items_mut().remove(item);
            }
        }
        _ => {
            return match vm.call_own_method(&coll, "disjoin", std::slice::from_ref(item))? {
                Some(coll) => Ok(coll),
                None => Err(wrong_type(&coll, "a set", 0).into()),
            };
        }
    }
    Ok(coll)
}
