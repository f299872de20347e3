//! Vectors, and functions that return vectors.

use std::ops::ControlFlow;

use super::collections::out_of_bounds;
use super::sequences::walk;
use crate::value::{Arity, Class, Exception, Native, PVec, Result, Value, Vector};
use crate::vm::{Args, Iter, Vm};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[FILTERV, MAPV, SUBVEC, VEC, VECTOR];

const FILTERV: Native = Native {
    name: "filterv",
    usage: "(filterv pred coll)",
    doc: "Returns a vector of the items of coll for which pred holds.",
    examples: &[("(filterv odd? [1 2 3])", "[1 3]")],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let pred = args.take(0);
        let mut kept = PVec::new();
        let coll = args.take(1);
        walk::each(vm, coll, &mut |vm, item| {
            if vm.invoke(&pred, &mut [item.clone()])?.is_truthy() {
                kept.push(item);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(vector(kept))
    },
};

const MAPV: Native = Native {
    name: "mapv",
    usage: "(mapv f coll)\n(mapv f coll & colls)",
    doc: "Returns a vector of the results of f for each item, or for the items of several colls at each position.",
    examples: &[
        ("(mapv inc [1 2 3])", "[2 3 4]"),
        ("(mapv + [1 2] [10 20 30])", "[11 22]"),
    ],
    arity: Arity::at_least(2),
    run: |vm, mut args| {
        let function = args.take(0);
        let mut made = PVec::new();
        if args.len() == 2 {
            let coll = args.take(1);
            walk::each(vm, coll, &mut |vm, item| {
                made.push(vm.invoke(&function, &mut [item])?);
                Ok(ControlFlow::Continue(()))
            })?;
            return Ok(vector(made));
        }
        let mut all: Vec<Iter> = (1..args.len())
            .map(|idx| Iter::new(args.take(idx)))
            .collect();
        while let Some(mut items) = next_of_all(vm, &mut all)? {
            made.push(vm.invoke(&function, &mut items)?);
        }
        Ok(vector(made))
    },
};

const SUBVEC: Native = Native {
    name: "subvec",
    usage: "(subvec v start)\n(subvec v start end)",
    doc: "Returns the items of a vector from start up to end (its count), without copying.",
    examples: &[
        ("(subvec [1 2 3 4] 1 3)", "[2 3]"),
        ("(subvec [1 2 3] 1)", "[2 3]"),
    ],
    arity: Arity::between(2, 3),
    run: |_, args| subvec(&args),
};

const VEC: Native = Native {
    name: "vec",
    usage: "(vec coll)",
    doc: "Returns a vector of the items of coll.",
    examples: &[
        ("(vec '(1 2))", "[1 2]"),
        ("(vec nil)", "[]"),
        (r#"(vec "ab")"#, r"[\a \b]"),
    ],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        let coll = args.take(0);
        if let Value::Vector(items) = &coll {
            if items.is_entry || !coll.meta().is_nil() {
                return Ok(vector(items.items().clone()));
            }
            return Ok(coll);
        }
        let mut items = PVec::new();
        walk::each(vm, coll, &mut |_, item| {
            items.push(item);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(vector(items))
    },
};

const VECTOR: Native = Native {
    name: "vector",
    usage: "(vector & items)",
    doc: "Returns a vector of items.",
    examples: &[("(vector 1 2)", "[1 2]"), ("(vector)", "[]")],
    arity: Arity::at_least(0),
    run: |_, mut args| {
        Ok(Value::vector(
            args.as_mut_slice()
                .iter_mut()
                .map(|item| std::mem::replace(item, Value::Nil)),
        ))
    },
};

/// Takes one item from each iteration; `None` when one of them is at its end.
pub(crate) fn next_of_all(vm: &mut Vm, all: &mut [Iter]) -> Result<Option<Vec<Value>>> {
    let mut items = Vec::with_capacity(all.len());
    for iter in all {
        match iter.next(vm)? {
            Some(item) => items.push(item),
            None => return Ok(None),
        }
    }
    Ok(Some(items))
}

fn vector(items: PVec) -> Value {
    Value::Vector(std::rc::Rc::new(Vector::new(items)))
}

/// Returns a position of any number type: a fraction is truncated, and NaN is 0.
fn position(args: &Args<'_>, idx: usize) -> Result<i64> {
    match args.get(idx) {
        Value::Float(float) if float.is_nan() => Ok(0),
        value if value.is_number() => {
            crate::value::number::to_int_in(value, i32::MIN.into()..=i32::MAX.into(), "int")
        }
        _ => args.int(idx),
    }
}

fn subvec(args: &Args<'_>) -> Result<Value> {
    let items = args.vector(0)?;
    let start = position(args, 1)?;
    let end = if args.len() == 3 {
        position(args, 2)?
    } else {
        items.len() as i64
    };
    let bounds = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    match bounds {
        Some((start, end)) if start <= end && end <= items.len() => {
            Ok(vector(items.items().slice(start, end)))
        }
        Some((start, end)) if start <= end => {
            Err(out_of_bounds(end as i64, items.len()).argument(2).into())
        }
        _ => Err(Exception::new(
            Class::INDEX_OUT_OF_BOUNDS,
            "E0303",
            format!("there is no part from {start} to {end}"),
        )
        .argument(1)
        .into()),
    }
}
