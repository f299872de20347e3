//! Functions that take or return functions.

use std::cell::RefCell;

use super::sequences::pipeline::take_from;
use super::sequences::stage::{Step, lazy};
use crate::value::{Arity, Native, NativeClosure, Object, PMap, Result, Value};
use crate::vm::{Args, Vm};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    APPLY, COMP, COMPLEMENT, CONSTANTLY, EVERY_PRED, FNIL, IDENTITY, JUXT, MEMOIZE, PARTIAL,
    SOME_FN, TRAMPOLINE,
];

const APPLY: Native = Native {
    name: "apply",
    usage: "(apply f args)\n(apply f x & args)",
    doc: "Calls f with the given arguments, the last of which is a sequence of further ones.",
    examples: &[("(apply + [1 2 3])", "6"), ("(apply max 1 2 [5 3])", "5")],
    arity: Arity::at_least(1),
    run: |vm, mut args| {
        if args.len() == 1 {
            return Err(crate::vm::arity_error("apply", Arity::at_least(2), 1).into());
        }
        let mut function = args.take(0);
        let last = args.take(args.len() - 1);
        let count = args.len() - 1;
        if let Value::Native(native) = &function
            && std::ptr::fn_addr_eq(
                native.run,
                super::sequences::generate::concat as fn(&mut Vm, Args<'_>) -> Result<Value>,
            )
        {
            // Joining must not walk the sequence of sequences, which may be infinite.
            let colls = super::sequences::list_of(&mut args.as_mut_slice()[1..count], last);
            return Ok(lazy(Step::Cat, colls));
        }
        let mut all = Vec::new();
        loop {
            if let Value::Var(var) = &function {
                function = vm.var_value(var)?;
            } else if let Some((inner, given)) = partial_of(&function) {
                all.splice(0..0, given);
                function = inner;
            } else {
                break;
            }
        }
        all.extend((1..count).map(|idx| args.take(idx)));
        if let Value::Vector(vector) = &last
            && vm.fixed_before_rest(&function).is_none()
        {
            vm.charge(u32::try_from(vector.len()).unwrap_or(u32::MAX))?;
            all.extend(vector.iter().cloned());
            return vm.invoke(&function, &mut all);
        }
        let mut items = vm.iter(last)?;
        let fixed = vm.fixed_before_rest(&function).unwrap_or(usize::MAX);
        // One argument too many is rejected without walking the others, which may be infinite.
        let most = most_arguments(&function).map_or(usize::MAX, |most| most.max(MOST_COUNTED));
        while all.len() < fixed {
            let item = if all.len() > most {
                None
            } else {
                items.next(vm)?
            };
            let Some(item) = item else {
                return vm.invoke(&function, &mut all);
            };
            all.push(item);
        }
        // The function takes the rest as one sequence, which may be infinite.
        if let Some(item) = items.next(vm)? {
            let mut given = all.split_off(fixed.min(all.len()));
            given.push(item);
            all.push(super::sequences::list_of(&mut given, items.rest()));
            return vm.invoke_with_rest(&function, &mut all);
        }
        vm.invoke(&function, &mut all)
    },
};

/// Maximum number of arguments that are counted for a function that takes fewer.
const MOST_COUNTED: usize = 20;

/// Returns the maximum number of arguments of a function; `None` if there is no limit, or it is not known.
fn most_arguments(function: &Value) -> Option<usize> {
    match function {
        Value::Fn(closure) => closure.proto.most_arguments(),
        Value::Native(native) => native.arity.max.map(usize::from),
        Value::Keyword(_) | Value::Symbol(_) | Value::Name(_) | Value::Map(_) => Some(2),
        Value::Set(_) | Value::Vector(_) => Some(1),
        Value::Object(object) => match &**object {
            Object::Function(closure) => closure.arity.max.map(usize::from),
            _ => None,
        },
        _ => None,
    }
}

const COMP: Native = Native {
    name: "comp",
    usage: "(comp & fs)",
    doc: "Returns a function that calls the last of fs with its arguments, then each preceding one with the result.",
    examples: &[("((comp str inc) 1)", r#""2""#), ("((comp) 1)", "1")],
    arity: Arity::at_least(0),
    run: |_, mut args| Ok(compose(take_from(&mut args, 0))),
};

const COMPLEMENT: Native = Native {
    name: "complement",
    usage: "(complement f)",
    doc: "Returns a function that returns true if f returns nil or false, and false otherwise.",
    examples: &[("((complement odd?) 2)", "true")],
    arity: Arity::exactly(1),
    run: |_, mut args| {
        Ok(closure(
            "complement",
            Arity::at_least(0),
            vec![args.take(0)],
            |vm, own, mut args| {
                let result = vm.invoke(&own.captured[0], args.as_mut_slice())?;
                Ok(Value::Bool(!result.is_truthy()))
            },
        ))
    },
};

const CONSTANTLY: Native = Native {
    name: "constantly",
    usage: "(constantly x)",
    doc: "Returns a function that returns x, whatever its arguments.",
    examples: &[("((constantly 1) :a :b)", "1")],
    arity: Arity::exactly(1),
    run: |_, mut args| {
        Ok(closure(
            "constantly",
            Arity::at_least(0),
            vec![args.take(0)],
            |_, own, _| Ok(own.captured[0].clone()),
        ))
    },
};

const EVERY_PRED: Native = Native {
    name: "every-pred",
    usage: "(every-pred pred & preds)",
    doc: "Returns a function that tells whether each of preds holds for each of its arguments.",
    examples: &[
        ("((every-pred pos? odd?) 1 3)", "true"),
        ("((every-pred pos? odd?) 2)", "false"),
    ],
    arity: Arity::at_least(1),
    run: |_, mut args| {
        let preds = take_from(&mut args, 0);
        Ok(closure(
            "every-pred",
            Arity::at_least(0),
            preds,
            |vm, own, args| {
                for pred in &own.captured {
                    for item in args.as_slice() {
                        if !vm.invoke(pred, &mut [item.clone()])?.is_truthy() {
                            return Ok(Value::Bool(false));
                        }
                    }
                }
                Ok(Value::Bool(true))
            },
        ))
    },
};

const FNIL: Native = Native {
    name: "fnil",
    usage: "(fnil f x)\n(fnil f x y)\n(fnil f x y z)",
    doc: "Returns a function that calls f with x, y and z in place of a nil first, second and third argument.",
    examples: &[
        ("((fnil inc 0) nil)", "1"),
        ("(update {} :n (fnil conj []) 1)", "{:n [1]}"),
    ],
    arity: Arity::between(2, 4),
    run: |_, mut args| {
        let captured = take_from(&mut args, 0);
        Ok(closure(
            "fnil",
            Arity::at_least(1),
            captured,
            |vm, own, mut args| {
                for (slot, default) in args.as_mut_slice().iter_mut().zip(&own.captured[1..]) {
                    if slot.is_nil() {
                        *slot = default.clone();
                    }
                }
                vm.invoke(&own.captured[0], args.as_mut_slice())
            },
        ))
    },
};

const IDENTITY: Native = Native {
    name: "identity",
    usage: "(identity x)",
    doc: "Returns its argument.",
    examples: &[("(identity 1)", "1")],
    arity: Arity::exactly(1),
    run: |_, mut args| Ok(args.take(0)),
};

const JUXT: Native = Native {
    name: "juxt",
    usage: "(juxt f & fs)",
    doc: "Returns a function that returns a vector of the results of each of fs for its arguments.",
    examples: &[("((juxt inc dec) 1)", "[2 0]")],
    arity: Arity::at_least(1),
    run: |_, mut args| {
        let fs = take_from(&mut args, 0);
        Ok(closure("juxt", Arity::at_least(0), fs, |vm, own, args| {
            let mut results = Vec::with_capacity(own.captured.len());
            for function in &own.captured {
                results.push(vm.call(function, args.as_slice())?);
            }
            Ok(Value::vector(results))
        }))
    },
};

const MEMOIZE: Native = Native {
    name: "memoize",
    usage: "(memoize f)",
    doc: "Returns a function that calls f once for the same arguments, and remembers the result.",
    examples: &[("((memoize inc) 1)", "2")],
    arity: Arity::exactly(1),
    run: |_, mut args| {
        let known = Value::from(Object::State(Box::new(RefCell::new(PMap::new()))));
        let captured = vec![args.take(0), known];
        Ok(closure("memoize", Arity::at_least(0), captured, memoized))
    },
};

const PARTIAL: Native = Native {
    name: "partial",
    usage: "(partial f & args)",
    doc: "Returns a function that calls f with args and then its own arguments.",
    examples: &[("((partial + 1) 2)", "3")],
    arity: Arity::at_least(1),
    run: |_, mut args| {
        if args.len() == 1 {
            return Ok(args.take(0));
        }
        let captured = take_from(&mut args, 0);
        Ok(closure(
            "partial",
            Arity::at_least(0),
            captured,
            call_partial,
        ))
    },
};

fn call_partial(vm: &mut Vm, own: &NativeClosure, mut args: Args<'_>) -> Result<Value> {
    let given = &own.captured[1..];
    match (given, args.len()) {
        ([x], 1) => vm.invoke(&own.captured[0], &mut [x.clone(), args.take(0)]),
        _ => {
            let mut all = given.to_vec();
            all.extend((0..args.len()).map(|idx| args.take(idx)));
            vm.invoke(&own.captured[0], &mut all)
        }
    }
}

/// Returns the function and the arguments of a result of `partial`.
fn partial_of(function: &Value) -> Option<(Value, Vec<Value>)> {
    let Value::Object(object) = function else {
        return None;
    };
    match &**object {
        Object::Function(closure)
            if std::ptr::fn_addr_eq(
                closure.run,
                call_partial as fn(&mut Vm, &NativeClosure, Args<'_>) -> Result<Value>,
            ) =>
        {
            let (function, given) = closure.captured.split_first()?;
            Some((function.clone(), given.to_vec()))
        }
        _ => None,
    }
}

const SOME_FN: Native = Native {
    name: "some-fn",
    usage: "(some-fn pred & preds)",
    doc: "Returns a function that returns the first result of preds for its arguments that is neither nil nor false.",
    examples: &[("((some-fn :a :b) {:b 2})", "2")],
    arity: Arity::at_least(1),
    run: |_, mut args| {
        let preds = take_from(&mut args, 0);
        Ok(closure(
            "some-fn",
            Arity::at_least(0),
            preds,
            |vm, own, args| {
                let mut last = Value::Nil;
                for pred in &own.captured {
                    for item in args.as_slice() {
                        last = vm.invoke(pred, &mut [item.clone()])?;
                        if last.is_truthy() {
                            return Ok(last);
                        }
                    }
                }
                Ok(last)
            },
        ))
    },
};

const TRAMPOLINE: Native = Native {
    name: "trampoline",
    usage: "(trampoline f & args)",
    doc: "Calls f with args, and as long as the result is a function, calls that without arguments.",
    examples: &[("(trampoline (fn [n] (fn [] (inc n))) 1)", "2")],
    arity: Arity::at_least(1),
    run: |vm, mut args| {
        let function = args.take(0);
        let mut result = vm.invoke(&function, &mut args.as_mut_slice()[1..])?;
        while is_fn(&result) {
            vm.charge(1)?;
            result = vm.invoke(&result, &mut [])?;
        }
        Ok(result)
    },
};

/// Creates a native closure.
pub(crate) fn closure(
    name: &'static str,
    arity: Arity,
    captured: Vec<Value>,
    run: fn(&mut Vm, &NativeClosure, Args<'_>) -> Result<Value>,
) -> Value {
    Value::from(Object::Function(NativeClosure {
        name: name.into(),
        arity,
        captured: captured.into(),
        run,
        meta: Value::Nil,
    }))
}

/// Tells whether a value is a function, rather than merely callable.
pub(crate) fn is_fn(value: &Value) -> bool {
    match value {
        Value::Fn(_) | Value::Native(_) => true,
        Value::Object(object) => matches!(**object, Object::Function(_)),
        _ => false,
    }
}

/// Returns the composition of functions, the last of which is called first.
pub(crate) fn compose(mut functions: Vec<Value>) -> Value {
    match functions.len() {
        0 => Value::Native(&IDENTITY),
        1 => functions.remove(0),
        _ => closure("comp", Arity::at_least(0), functions, composition),
    }
}

/// Returns the parts of a composition.
pub(crate) fn composed(value: &Value) -> Option<&[Value]> {
    let Value::Object(object) = value else {
        return None;
    };
    match &**object {
        Object::Function(closure)
            if std::ptr::fn_addr_eq(
                closure.run,
                composition as fn(&mut Vm, &NativeClosure, Args<'_>) -> Result<Value>,
            ) =>
        {
            Some(&closure.captured)
        }
        _ => None,
    }
}

/// Calls the parts one after another, including those of nested compositions: `(reduce comp fs)` must not recurse.
fn composition(vm: &mut Vm, own: &NativeClosure, mut args: Args<'_>) -> Result<Value> {
    let mut pending: Vec<Value> = own.captured.to_vec();
    let mut result = None;
    while let Some(function) = pending.pop() {
        if let Some(parts) = composed(&function) {
            vm.charge(1)?;
            pending.extend_from_slice(parts);
            continue;
        }
        result = Some(match result.take() {
            None => vm.invoke(&function, args.as_mut_slice())?,
            Some(value) => vm.invoke(&function, &mut [value])?,
        });
    }
    Ok(result.unwrap_or(Value::Nil))
}

fn memoized(vm: &mut Vm, own: &NativeClosure, args: Args<'_>) -> Result<Value> {
    let [function, Value::Object(object)] = &own.captured[..] else {
        return Ok(Value::Nil);
    };
    let Object::State(state) = &**object else {
        return Ok(Value::Nil);
    };
    let Some(known) = state.downcast_ref::<RefCell<PMap>>() else {
        return Ok(Value::Nil);
    };
    let key = Value::vector(args.as_slice().iter().cloned());
    vm.realise_key(&key)?;
    let found = known.borrow().get(&key).cloned();
    if let Some(found) = found {
        return Ok(found);
    }
    let result = vm.call(function, args.as_slice())?;
    known.borrow_mut().insert(key, result.clone());
    Ok(result)
}
