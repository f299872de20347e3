//! Functions that reduce a whole sequence to one result.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::rc::Rc;

use super::walk;
use crate::core::transducers::is_reduced;
use crate::value::{Arity, Lazy, List, Map, Native, Object, PMap, Result, Value, Vector};
use crate::vm::{Args, Vm};

/// The functions of this area.
pub(in crate::core) const FNS: &[Native] = &[
    EVERY,
    FREQUENCIES,
    GROUP_BY,
    MAX_KEY,
    MIN_KEY,
    NOT_ANY,
    NOT_EVERY,
    REDUCE,
    REDUCTIONS,
    SOME,
];

const EVERY: Native = Native {
    name: "every?",
    usage: "(every? pred coll)",
    doc: "Tells whether pred holds for each item of coll.",
    examples: &[
        ("(every? odd? [1 3])", "true"),
        ("(every? odd? [])", "true"),
    ],
    arity: Arity::exactly(2),
    run: |vm, mut args| Ok(Value::Bool(holds_for_all(vm, &mut args)?)),
};

const FREQUENCIES: Native = Native {
    name: "frequencies",
    usage: "(frequencies coll)",
    doc: "Returns a map of each item of coll to the number of its occurrences.",
    examples: &[("(frequencies [:a :b :a])", "{:a 2, :b 1}")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        let mut counts = PMap::new();
        let coll = args.take(0);
        walk::each(vm, coll, &mut |vm, item| {
            vm.realise_key(&item)?;
            match counts.get_mut(&item) {
                Some(Value::Int(count)) => *count += 1,
                _ => counts.insert(item, Value::Int(1)),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Value::Map(Rc::new(Map::new(counts))))
    },
};

const GROUP_BY: Native = Native {
    name: "group-by",
    usage: "(group-by f coll)",
    doc: "Returns a map of each result of f to a vector of the items with that result.",
    examples: &[("(group-by odd? [1 2 3])", "{true [1 3], false [2]}")],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let (function, coll) = (args.take(0), args.take(1));
        let mut groups = PMap::new();
        walk::each(vm, coll, &mut |vm, item| {
            let key = vm.call(&function, std::slice::from_ref(&item))?;
            vm.realise_key(&key)?;
            match groups.get_mut(&key) {
                Some(Value::Vector(group)) => Vector::make_mut(group).items_mut().push(item),
                _ => groups.insert(key, Value::vector([item])),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Value::Map(Rc::new(Map::new(groups))))
    },
};

const MAX_KEY: Native = Native {
    name: "max-key",
    usage: "(max-key f x & more)",
    doc: "Returns the argument for which f returns the greatest number; the last one of several.",
    examples: &[("(max-key count [1] [1 2] [3 4])", "[3 4]")],
    arity: Arity::at_least(2),
    run: |vm, mut args| by_key(vm, &mut args, Ordering::Greater),
};

const MIN_KEY: Native = Native {
    name: "min-key",
    usage: "(min-key f x & more)",
    doc: "Returns the argument for which f returns the least number; the last one of several.",
    examples: &[("(min-key abs -3 2 5)", "2")],
    arity: Arity::at_least(2),
    run: |vm, mut args| by_key(vm, &mut args, Ordering::Less),
};

const NOT_ANY: Native = Native {
    name: "not-any?",
    usage: "(not-any? pred coll)",
    doc: "Tells whether pred holds for no item of coll.",
    examples: &[("(not-any? odd? [2 4])", "true")],
    arity: Arity::exactly(2),
    run: |vm, mut args| Ok(Value::Bool(!first_truthy(vm, &mut args)?.is_truthy())),
};

const NOT_EVERY: Native = Native {
    name: "not-every?",
    usage: "(not-every? pred coll)",
    doc: "Tells whether pred does not hold for some item of coll.",
    examples: &[("(not-every? odd? [1 2])", "true")],
    arity: Arity::exactly(2),
    run: |vm, mut args| Ok(Value::Bool(!holds_for_all(vm, &mut args)?)),
};

const REDUCE: Native = Native {
    name: "reduce",
    usage: "(reduce f coll)\n(reduce f init coll)",
    doc: "Combines the items of coll: (f so-far item) for each, from init or the first item on.\n\
          Without items the result is init or (f). A (reduced x) ends it with x.",
    examples: &[
        ("(reduce + [1 2 3])", "6"),
        ("(reduce conj [] '(1 2))", "[1 2]"),
        (
            "(reduce (fn [_ x] (if (odd? x) (reduced x) nil)) nil [2 4 5 6])",
            "5",
        ),
    ],
    arity: Arity::between(2, 3),
    run: |vm, mut args| {
        let function = args.take(0);
        if args.len() == 3 {
            let (init, coll) = (args.take(1), args.take(2));
            return walk::reduce(vm, &function, init, coll);
        }
        match walk::reduce_from_first(vm, &function, args.take(1))? {
            Some(result) => Ok(result),
            None => vm.invoke(&function, &mut []),
        }
    },
};

const REDUCTIONS: Native = Native {
    name: "reductions",
    usage: "(reductions f coll)\n(reductions f init coll)",
    doc: "Returns the intermediate results of a reduce, from init or the first item on.",
    examples: &[
        ("(reductions + [1 2 3])", "(1 3 6)"),
        ("(reductions conj [] [1 2])", "([] [1] [1 2])"),
    ],
    arity: Arity::between(2, 3),
    run: |_, mut args| {
        let function = args.take(0);
        if args.len() == 3 {
            return Ok(reductions(function, args.take(1), args.take(2)));
        }
        let coll = args.take(1);
        Ok(Lazy::native(move |vm| match vm.uncons(coll)? {
            Some((first, rest)) => Ok(reductions(function, first, rest)),
            None => Ok(List::cons(vm.invoke(&function, &mut [])?, Value::Nil)),
        }))
    },
};

const SOME: Native = Native {
    name: "some",
    usage: "(some pred coll)",
    doc: "Returns the first value of (pred item) that is neither nil nor false, or nil.",
    examples: &[("(some #{2 3} [1 2 3])", "2"), ("(some odd? [2])", "nil")],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let found = first_truthy(vm, &mut args)?;
        Ok(if found.is_truthy() { found } else { Value::Nil })
    },
};

fn holds_for_all(vm: &mut Vm, args: &mut Args<'_>) -> Result<bool> {
    let (pred, coll) = (args.take(0), args.take(1));
    let mut all = true;
    walk::each(vm, coll, &mut |vm, item| {
        all = vm.invoke(&pred, &mut [item])?.is_truthy();
        Ok(if all {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        })
    })?;
    Ok(all)
}

fn first_truthy(vm: &mut Vm, args: &mut Args<'_>) -> Result<Value> {
    let (pred, coll) = (args.take(0), args.take(1));
    let mut found = Value::Nil;
    walk::each(vm, coll, &mut |vm, item| {
        found = vm.invoke(&pred, &mut [item])?;
        Ok(if found.is_truthy() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    })?;
    Ok(found)
}

fn by_key(vm: &mut Vm, args: &mut Args<'_>, wanted: Ordering) -> Result<Value> {
    let function = args.take(0);
    let mut best = args.take(1);
    if args.len() == 2 {
        return Ok(best);
    }
    let mut best_key = vm.call(&function, std::slice::from_ref(&best))?;
    for idx in 2..args.len() {
        let item = args.take(idx);
        let key = vm.call(&function, std::slice::from_ref(&item))?;
        // Keeps the last of equal ones; with NaN, which has no order, keeps Clojure's choice: it compares the second
        // argument with `<`, and the further ones with `<=`.
        let order = crate::value::number::order(&best_key, &key, "compare")?;
        let stays = match order {
            Some(order) => order == wanted,
            None => idx > 2,
        };
        if !stays {
            (best, best_key) = (item, key);
        }
    }
    Ok(best)
}

fn reductions(function: Value, so_far: Value, coll: Value) -> Value {
    if is_reduced(&so_far) {
        return List::cons(walk::unreduced(so_far).0, Value::Nil);
    }
    let held = so_far.clone();
    let rest = Lazy::native(move |vm| match vm.uncons(coll)? {
        Some((item, rest)) => {
            let next = vm.invoke(&function, &mut [held, item])?;
            Ok(reductions(function, next, rest))
        }
        None => Ok(Value::Nil),
    });
    List::cons(so_far, rest)
}

/// Wraps a value so that a reduction ends with it.
pub(crate) fn reduced(value: Value) -> Value {
    Value::from(Object::Reduced(value))
}
