//! Transients: collections under construction.
//!
//! They keep Clojure's contract, including use after `persistent!`; the gain in speed is small here, because a
//! collection that is not shared is changed in place anyway.

use std::cell::RefCell;
use std::rc::Rc;

use super::collections::{assoc, conj};
use super::maps::dissoc;
use super::sets::disj;
use crate::value::{Arity, Class, Exception, Native, Object, Result, Value, Vector};
use crate::vm::objects::type_of;
use crate::vm::{Args, Vm, transient_is_done, wrong_type};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[ASSOC, CONJ, DISJ, DISSOC, PERSISTENT, POP, TRANSIENT];

const ASSOC: Native = Native {
    name: "assoc!",
    usage: "(assoc! transient key value & keyvals)",
    doc: "Sets the values of keys of a transient map or vector, nil for a last key without one, and returns it.",
    examples: &[("(persistent! (assoc! (transient {}) :a 1))", "{:a 1}")],
    arity: Arity::at_least(3),
    run: |vm, mut args| {
        change(vm, args.take(0), |vm, mut coll| {
            for idx in (1..args.len()).step_by(2) {
                let (key, value) = (args.take(idx), args.take(idx + 1));
                coll = assoc(vm, coll, key, value)?;
            }
            Ok(coll)
        })
    },
};

const CONJ: Native = Native {
    name: "conj!",
    usage: "(conj!)\n(conj! transient)\n(conj! transient x)",
    doc: "Adds an item to a transient, and returns it.",
    examples: &[("(persistent! (conj! (transient []) 1))", "[1]")],
    arity: Arity::between(0, 2),
    run: |vm, mut args| match args.len() {
        0 => Ok(transient(Value::vector([]))),
        1 => Ok(args.take(0)),
        _ => change(vm, args.take(0), |vm, coll| {
            match vm.call_own_method(&coll, "conj", std::slice::from_ref(args.get(1)))? {
                Some(own) => Ok(own),
                None => conj(vm, coll, args.take(1)),
            }
        }),
    },
};

const DISJ: Native = Native {
    name: "disj!",
    usage: "(disj! transient & items)",
    doc: "Removes items of a transient set, and returns it.",
    examples: &[("(persistent! (disj! (transient #{1 2}) 1))", "#{2}")],
    arity: Arity::at_least(1),
    run: |vm, mut args| {
        change(vm, args.take(0), |vm, mut coll| {
            for item in args.from(1) {
                coll = match vm.call_own_method(&coll, "disjoin", std::slice::from_ref(item))? {
                    Some(own) => own,
                    None => disj(vm, coll, item)?,
                };
            }
            Ok(coll)
        })
    },
};

const DISSOC: Native = Native {
    name: "dissoc!",
    usage: "(dissoc! transient key & keys)",
    doc: "Removes keys of a transient map, and returns it.",
    examples: &[(
        "(persistent! (dissoc! (transient {:a 1 :b 2}) :a))",
        "{:b 2}",
    )],
    arity: Arity::at_least(2),
    run: |vm, mut args| {
        change(vm, args.take(0), |vm, mut coll| {
            for key in args.from(1) {
                coll = dissoc(vm, coll, key)?;
            }
            Ok(coll)
        })
    },
};

const PERSISTENT: Native = Native {
    name: "persistent!",
    usage: "(persistent! transient)",
    doc: "Returns the collection that a transient holds; the transient cannot be used any more.",
    examples: &[("(persistent! (transient [1 2]))", "[1 2]")],
    arity: Arity::exactly(1),
    run: |vm, args| {
        if let Some(own) = vm.call_own_method(args.get(0), "persistent", &[])? {
            return Ok(own);
        }
        let inner = cell(&args)?.borrow_mut().take();
        inner.ok_or_else(transient_is_done)
    },
};

const POP: Native = Native {
    name: "pop!",
    usage: "(pop! transient)",
    doc: "Removes the last item of a transient vector, and returns it.",
    examples: &[("(persistent! (pop! (transient [1 2])))", "[1]")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        change(vm, args.take(0), |vm, mut coll| {
            if let Some(own) = vm.call_own_method(&coll, "pop", &[])? {
                return Ok(own);
            }
            let Value::Vector(vector) = &mut coll else {
                return Err(wrong_type(&coll, "a transient vector", 0).into());
            };
            if Vector::make_mut(vector).items_mut().pop().is_none() {
                return Err(Exception::new(
                    Class::ILLEGAL_STATE,
                    "E0336",
                    "cannot pop a vector without items",
                )
                .into());
            }
            Ok(coll)
        })
    },
};

const TRANSIENT: Native = Native {
    name: "transient",
    usage: "(transient coll)",
    doc: "Returns a transient with the items of a vector, map or set.",
    examples: &[("(persistent! (conj! (transient #{}) 1))", "#{1}")],
    arity: Arity::exactly(1),
    run: |vm, mut args| match args.get(0) {
        Value::Map(map) if map.entries().sorted().is_none() => Ok(transient(args.take(0))),
        Value::Set(set) if set.items().sorted().is_none() => Ok(transient(args.take(0))),
        Value::Vector(_) => Ok(transient(args.take(0))),
        own if let Some(own) = vm.call_own_method(own, "asTransient", &[])? => Ok(own),
        _ => Err(args.expected(0, "a vector, map or set that is not sorted")),
    },
};

fn transient(coll: Value) -> Value {
    let coll = if coll.meta().is_nil() {
        coll
    } else {
        coll.with_meta(Value::Nil).unwrap_or(coll)
    };
    Value::from(Object::Transient(RefCell::new(Some(coll))))
}

fn cell<'a>(args: &'a Args<'_>) -> Result<&'a RefCell<Option<Value>>> {
    match args.get(0) {
        Value::Object(object) => match &**object {
            Object::Transient(inner) => Ok(inner),
            _ => Err(args.expected(0, "a transient")),
        },
        _ => Err(args.expected(0, "a transient")),
    }
}

/// Takes the collection out, so that it is not shared while it changes, and puts it back. If the change fails, the
/// transient is unchanged.
fn change(
    vm: &mut Vm,
    holder: Value,
    change: impl FnOnce(&mut Vm, Value) -> Result<Value>,
) -> Result<Value> {
    let object: Rc<Object> = match &holder {
        Value::Object(object) => object.clone(),
        other => return Err(wrong_type(other, "a transient", 0).into()),
    };
    let Object::Transient(inner) = &*object else {
        return match type_of(&holder) {
            // A transient of a program's type: the functions of collections call its methods.
            Some(_) => change(vm, holder),
            None => Err(wrong_type(&holder, "a transient", 0).into()),
        };
    };
    let coll = inner.borrow_mut().take().ok_or_else(transient_is_done)?;
    match change(vm, coll) {
        Ok(coll) => {
            inner.replace(Some(coll));
            Ok(holder)
        }
        Err(error) => Err(error),
    }
}
