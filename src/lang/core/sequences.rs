//! Sequences: taking them apart and building them. The files below hold the other functions by topic.

pub(crate) mod function;
pub(crate) mod generate;
pub(crate) mod order;
pub(crate) mod parts;
pub(crate) mod pipeline;
pub(crate) mod reducing;
mod runs;
pub(crate) mod stage;
pub(crate) mod walk;

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::rc::Rc;

use crate::value::{Arity, List, Native, Result, SeqView, Value};
use crate::vm::{Args, Vm};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    BUTLAST, CONS, DOALL, DORUN, FFIRST, FIRST, FNEXT, LAST, LIST, LIST_STAR, NEXT, NFIRST, NNEXT,
    NTHNEXT, NTHREST, REST, REVERSE, RUN, SECOND, SEQ,
];

const BUTLAST: Native = Native {
    name: "butlast",
    usage: "(butlast coll)",
    doc: "Returns the items of coll except the last, or nil if coll has fewer than two.",
    examples: &[("(butlast [1 2 3])", "(1 2)"), ("(butlast [1])", "nil")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        let mut items = vm.items(args.take(0))?;
        items.pop();
        Ok(SeqView::chunk(items, Value::Nil))
    },
};

const CONS: Native = Native {
    name: "cons",
    usage: "(cons x coll)",
    doc: "Returns a sequence of x and the items of coll.",
    examples: &[("(cons 1 [2 3])", "(1 2 3)"), ("(cons 1 nil)", "(1)")],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let rest = match args.take(1) {
            rest @ (Value::Lazy(_) | Value::List(_) | Value::Seq(_)) => rest,
            other => vm.seq(&other)?,
        };
        let first = args.take(0);
        Ok(match rest {
            Value::Nil => List::cons(first, Value::Nil),
            rest => Value::List(Rc::new(List {
                first,
                rest,
                count: None,
                extra: None,
            })),
        })
    },
};

const DOALL: Native = Native {
    name: "doall",
    usage: "(doall coll)\n(doall n coll)",
    doc: "Computes all items of a lazy sequence, or the first n + 1, and returns it.",
    examples: &[("(doall (map inc [1 2]))", "(2 3)")],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        let coll = args.take(args.len() - 1);
        let limit = if args.len() == 2 {
            Some(args.int(0)?)
        } else {
            None
        };
        realise_cells(vm, coll.clone(), limit)?;
        Ok(coll)
    },
};

const DORUN: Native = Native {
    name: "dorun",
    usage: "(dorun coll)\n(dorun n coll)",
    doc: "Computes all items of a lazy sequence, or the first n + 1, for their effects; returns nil.",
    examples: &[("(dorun (map inc [1 2]))", "nil")],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        let coll = args.take(args.len() - 1);
        let limit = if args.len() == 2 {
            Some(args.int(0)?)
        } else {
            None
        };
        realise_cells(vm, coll, limit)?;
        Ok(Value::Nil)
    },
};

const FFIRST: Native = Native {
    name: "ffirst",
    usage: "(ffirst coll)",
    doc: "Returns the first item of the first item of coll.",
    examples: &[("(ffirst [[1 2] [3]])", "1")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        let inner = first(vm, args.take(0))?;
        first(vm, inner)
    },
};

const FIRST: Native = Native {
    name: "first",
    usage: "(first coll)",
    doc: "Returns the first item of coll, or nil if coll is empty.",
    examples: &[
        ("(first [1 2])", "1"),
        ("(first nil)", "nil"),
        (r#"(first "ab")"#, r"\a"),
    ],
    arity: Arity::exactly(1),
    run: |vm, mut args| match args.get(0) {
        Value::Vector(vector) => Ok(vector.get(0).cloned().unwrap_or(Value::Nil)),
        Value::List(list) => Ok(list.first.clone()),
        Value::Map(map) => Ok(map.iter().next().map_or(Value::Nil, |(key, value)| {
            Value::entry(key.clone(), value.clone())
        })),
        _ => first(vm, args.take(0)),
    },
};

const FNEXT: Native = Native {
    name: "fnext",
    usage: "(fnext coll)",
    doc: "Returns the second item of coll: (first (next coll)).",
    examples: &[("(fnext [1 2 3])", "2")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        let rest = rest(vm, args.take(0))?;
        first(vm, rest)
    },
};

const LAST: Native = Native {
    name: "last",
    usage: "(last coll)",
    doc: "Returns the last item of coll, or nil if coll is empty.",
    examples: &[("(last [1 2 3])", "3"), ("(last [])", "nil")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        let coll = args.take(0);
        if let Value::Vector(vector) = &coll {
            return Ok(vector.items().last().cloned().unwrap_or(Value::Nil));
        }
        let mut last = Value::Nil;
        walk::each(vm, coll, &mut |_, item| {
            last = item;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(last)
    },
};

const LIST: Native = Native {
    name: "list",
    usage: "(list & items)",
    doc: "Returns a list of items.",
    examples: &[("(list 1 2)", "(1 2)"), ("(list)", "()")],
    arity: Arity::at_least(0),
    run: |vm, mut args| {
        const AT_ONCE: usize = 1 << 10;
        let mut list = Value::Nil;
        for items in args.as_mut_slice().rchunks_mut(AT_ONCE) {
            vm.charge(items.len() as u32 / 2)?;
            list = list_of(items, list);
        }
        Ok(or_empty(list))
    },
};

const LIST_STAR: Native = Native {
    name: "list*",
    usage: "(list* coll)\n(list* x & more)",
    doc: "Returns a sequence of the arguments, the last of which is a sequence of further items.",
    examples: &[("(list* 1 2 [3 4])", "(1 2 3 4)"), ("(list* nil)", "nil")],
    arity: Arity::at_least(1),
    run: |vm, mut args| {
        let last = args.len() - 1;
        let rest = match args.take(last) {
            rest @ (Value::Lazy(_) | Value::Seq(_)) if last > 0 => rest,
            other => vm.seq(&other)?,
        };
        Ok(match rest {
            Value::Nil if last == 0 => Value::Nil,
            rest => list_of(&mut args.as_mut_slice()[..last], rest),
        })
    },
};

const NEXT: Native = Native {
    name: "next",
    usage: "(next coll)",
    doc: "Returns the items after the first, or nil if there are no more.",
    examples: &[("(next [1 2 3])", "(2 3)"), ("(next [1])", "nil")],
    arity: Arity::exactly(1),
    run: |vm, mut args| next(vm, args.take(0)),
};

const NFIRST: Native = Native {
    name: "nfirst",
    usage: "(nfirst coll)",
    doc: "Returns the items after the first of the first item: (next (first coll)).",
    examples: &[("(nfirst [[1 2 3]])", "(2 3)")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        let inner = first(vm, args.take(0))?;
        next(vm, inner)
    },
};

const NNEXT: Native = Native {
    name: "nnext",
    usage: "(nnext coll)",
    doc: "Returns the items after the second, or nil if there are no more.",
    examples: &[("(nnext [1 2 3])", "(3)"), ("(nnext [1 2])", "nil")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        let rest = rest(vm, args.take(0))?;
        next(vm, rest)
    },
};

const NTHNEXT: Native = Native {
    name: "nthnext",
    usage: "(nthnext coll n)",
    doc: "Returns the items after the first n, or nil if there are no more.",
    examples: &[("(nthnext [1 2 3] 1)", "(2 3)"), ("(nthnext [1] 3)", "nil")],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let coll = vm.seq(&args.take(0))?;
        if coll.is_nil() {
            return Ok(Value::Nil);
        }
        let count = i64::try_from(count_argument(&args, 1)?).unwrap_or(i64::MAX);
        let rest = skip(vm, coll, count)?;
        vm.seq(&rest)
    },
};

const NTHREST: Native = Native {
    name: "nthrest",
    usage: "(nthrest coll n)",
    doc: "Returns the items after the first n, or () if there are no more; coll itself for an n of 0.",
    examples: &[("(nthrest [1 2 3] 1)", "(2 3)"), ("(nthrest [1] 3)", "()")],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let count = i64::try_from(count_argument(&args, 1)?).unwrap_or(i64::MAX);
        let coll = args.take(0);
        if count <= 0 {
            return Ok(coll);
        }
        Ok(or_empty(skip(vm, coll, count)?))
    },
};

const REST: Native = Native {
    name: "rest",
    usage: "(rest coll)",
    doc: "Returns the items after the first, or () if there are no more.",
    examples: &[("(rest [1 2 3])", "(2 3)"), ("(rest nil)", "()")],
    arity: Arity::exactly(1),
    run: |vm, mut args| Ok(or_empty(rest(vm, args.take(0))?)),
};

const REVERSE: Native = Native {
    name: "reverse",
    usage: "(reverse coll)",
    doc: "Returns a list of the items of coll in reverse order.",
    examples: &[("(reverse [1 2 3])", "(3 2 1)"), ("(reverse nil)", "()")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        let mut list = Value::Nil;
        let coll = args.take(0);
        walk::each(vm, coll, &mut |_, item| {
            list = List::cons(item, std::mem::replace(&mut list, Value::Nil));
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(or_empty(list))
    },
};

const RUN: Native = Native {
    name: "run!",
    usage: "(run! f coll)",
    doc: "Calls f with each item of coll, for its effects; returns nil.",
    examples: &[("(run! identity [1 2])", "nil")],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let (function, coll) = (args.take(0), args.take(1));
        walk::each(vm, coll, &mut |vm, item| {
            Ok(walk::unreduced(vm.invoke(&function, &mut [item])?).1)
        })?;
        Ok(Value::Nil)
    },
};

const SECOND: Native = Native {
    name: "second",
    usage: "(second coll)",
    doc: "Returns the second item of coll, or nil if coll has fewer than two.",
    examples: &[("(second [1 2])", "2"), ("(second [1])", "nil")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        if let Value::Vector(vector) = args.get(0) {
            return Ok(vector.get(1).cloned().unwrap_or(Value::Nil));
        }
        let rest = rest(vm, args.take(0))?;
        first(vm, rest)
    },
};

const SEQ: Native = Native {
    name: "seq",
    usage: "(seq coll)",
    doc: "Returns a sequence of the items of coll, or nil if coll is empty.",
    examples: &[
        ("(seq [1 2])", "(1 2)"),
        ("(seq [])", "nil"),
        (r#"(seq "ab")"#, r"(\a \b)"),
    ],
    arity: Arity::exactly(1),
    run: |vm, mut args| match args.get(0) {
        Value::List(list) if !list.is_empty() => Ok(args.take(0)),
        Value::Seq(_) => Ok(args.take(0)),
        coll => vm.seq(coll),
    },
};

/// Returns the first item; nil for an empty sequence. Takes the value, so that its head is not held.
pub(crate) fn first(vm: &mut Vm, coll: Value) -> Result<Value> {
    Ok(vm.uncons(coll)?.map_or(Value::Nil, |(first, _)| first))
}

/// Returns the rest after the first item: nil, or a sequence that may be lazy.
pub(crate) fn rest(vm: &mut Vm, coll: Value) -> Result<Value> {
    Ok(vm.uncons(coll)?.map_or(Value::Nil, |(_, rest)| rest))
}

fn next(vm: &mut Vm, coll: Value) -> Result<Value> {
    match rest(vm, coll)? {
        Value::Nil => Ok(Value::Nil),
        rest => vm.seq(&rest),
    }
}

fn or_empty(seq: Value) -> Value {
    match seq {
        Value::Nil => List::empty(),
        seq => seq,
    }
}

/// Returns the rest after the first `count` items.
fn skip(vm: &mut Vm, coll: Value, count: i64) -> Result<Value> {
    let mut items = vm.iter(coll)?;
    for _ in 0..count {
        if items.next(vm)?.is_none() {
            return Ok(Value::Nil);
        }
    }
    Ok(items.rest())
}

/// Returns a list of `items`, which are moved out, followed by `rest`.
pub(crate) fn list_of(items: &mut [Value], rest: Value) -> Value {
    if items.is_empty() {
        return or_empty(rest);
    }
    let mut list = rest;
    for item in items.iter_mut().rev() {
        list = List::cons(std::mem::replace(item, Value::Nil), list);
    }
    list
}

/// Computes cells: all of them, or `limit` plus one.
fn realise_cells(vm: &mut Vm, coll: Value, limit: Option<i64>) -> Result<()> {
    let mut at = coll;
    let mut left = limit;
    // The cells must remain for other users of the sequence, so this cannot run through a pipeline.
    loop {
        vm.charge(1)?;
        if left.is_some_and(|left| left < 0) {
            return Ok(());
        }
        left = left.map(|left| left - 1);
        at = match vm.uncons(at)? {
            Some((_, rest)) => rest,
            None => return Ok(()),
        };
    }
}

/// Collects the last `count` items of an iteration.
pub(crate) fn last_items(vm: &mut Vm, coll: Value, count: usize) -> Result<VecDeque<Value>> {
    let mut kept = VecDeque::new();
    walk::each(vm, coll, &mut |_, item| {
        kept.push_back(item);
        if kept.len() > count {
            kept.pop_front();
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(kept)
}

/// Returns a count argument; negative numbers count as 0.
pub(crate) fn count_argument(args: &Args<'_>, idx: usize) -> Result<u64> {
    match args.get(idx) {
        Value::Float(float) => Ok(float.ceil() as u64),
        big @ Value::BigInt(_) if big.as_index().is_none() => Ok(u64::MAX),
        big @ Value::BigInt(_) => Ok(big.as_index().map_or(0, |int| int.max(0) as u64)),
        part @ (Value::Ratio(_) | Value::Decimal(_)) => {
            crate::value::number::to_float(part, "a number of items")
                .map(|float| float.ceil() as u64)
        }
        _ => Ok(u64::try_from(args.int(idx)?).unwrap_or(0)),
    }
}
