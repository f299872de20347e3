//! Sorted maps and sets, and their ranges of keys.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::value::{
    Arity, Map, Native, PMap, PSet, Result, SeqView, Set, Signal, Sorted, Symbol, Value,
};
use crate::vm::objects::own_method;
use crate::vm::{Args, Vm};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    COMPARATOR_OF,
    IS_SORTED,
    RSUBSEQ,
    SORTED_MAP,
    SORTED_MAP_BY,
    SORTED_SET,
    SORTED_SET_BY,
    SUBSEQ,
];

const COMPARATOR_OF: Native = Native {
    name: "-comparator-of",
    usage: "(-comparator-of coll)",
    doc: "Returns the function that orders a sorted collection.",
    examples: &[("((-comparator-of (sorted-set)) 1 2)", "-1")],
    arity: Arity::exactly(1),
    run: |vm, args| match sorted(args.get(0)).map(Sorted::order) {
        Some(Value::Nil) => {
            let compare = vm.world().core.lookup(Symbol::new("compare"));
            Ok(compare.and_then(|var| var.root()).unwrap_or(Value::Nil))
        }
        Some(order) => Ok(order.clone()),
        None => Err(args.expected(0, "a sorted map or set")),
    },
};

const IS_SORTED: Native = Native {
    name: "sorted?",
    usage: "(sorted? coll)",
    doc: "Tells whether coll is a sorted map or set.",
    examples: &[
        ("(sorted? (sorted-set))", "true"),
        ("(sorted? #{})", "false"),
    ],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::Bool(sorted(args.get(0)).is_some())),
};

const RSUBSEQ: Native = Native {
    name: "rsubseq",
    usage: "(rsubseq coll test key)\n(rsubseq coll start-test start-key end-test end-key)",
    doc: "Returns the part of a sorted collection whose keys pass the tests (< <= > >=), backwards, or nil.",
    examples: &[("(rsubseq (sorted-set 1 2 3 4) < 3)", "(2 1)")],
    arity: Arity::between(3, 5),
    run: |vm, mut args| {
        if own_method(args.get(0), "seqFrom").is_some() {
            return part_of_object(vm, &mut args, Value::Bool(false));
        }
        let mut items = part(vm, &args)?;
        items.reverse();
        if items.is_empty() {
            return nothing(vm, &args, ["<", "<="]);
        }
        Ok(SeqView::chunk(items, Value::Nil))
    },
};

const SORTED_MAP: Native = Native {
    name: "sorted-map",
    usage: "(sorted-map & keyvals)",
    doc: "Returns a map whose keys are in the order of compare.",
    examples: &[("(sorted-map :b 2 :a 1)", "{:a 1, :b 2}")],
    arity: Arity::at_least(0),
    run: |vm, mut args| map_of(vm, &mut args, 0, Value::Nil),
};

const SORTED_MAP_BY: Native = Native {
    name: "sorted-map-by",
    usage: "(sorted-map-by comparator & keyvals)",
    doc: "Returns a map whose keys are in the order of comparator.",
    examples: &[("(sorted-map-by > 1 :a 2 :b)", "{2 :b, 1 :a}")],
    arity: Arity::at_least(1),
    run: |vm, mut args| {
        let order = comparator(args.take(0));
        map_of(vm, &mut args, 1, order)
    },
};

const SORTED_SET: Native = Native {
    name: "sorted-set",
    usage: "(sorted-set & items)",
    doc: "Returns a set whose items are in the order of compare.",
    examples: &[("(sorted-set 3 1 2)", "#{1 2 3}")],
    arity: Arity::at_least(0),
    run: |vm, mut args| set_of(vm, &mut args, 0, Value::Nil),
};

const SORTED_SET_BY: Native = Native {
    name: "sorted-set-by",
    usage: "(sorted-set-by comparator & items)",
    doc: "Returns a set whose items are in the order of comparator.",
    examples: &[("(sorted-set-by > 1 3 2)", "#{3 2 1}")],
    arity: Arity::at_least(1),
    run: |vm, mut args| {
        let order = comparator(args.take(0));
        set_of(vm, &mut args, 1, order)
    },
};

const SUBSEQ: Native = Native {
    name: "subseq",
    usage: "(subseq coll test key)\n(subseq coll start-test start-key end-test end-key)",
    doc: "Returns the part of a sorted collection whose keys pass the tests (< <= > >=), or nil.",
    examples: &[
        ("(subseq (sorted-set 1 2 3 4) > 2)", "(3 4)"),
        ("(subseq (sorted-map 1 :a 2 :b 3 :c) >= 2 < 3)", "([2 :b])"),
    ],
    arity: Arity::between(3, 5),
    run: |vm, mut args| {
        if own_method(args.get(0), "seqFrom").is_some() {
            return part_of_object(vm, &mut args, Value::Bool(true));
        }
        let items = part(vm, &args)?;
        if items.is_empty() {
            return nothing(vm, &args, [">", ">="]);
        }
        Ok(SeqView::chunk(items, Value::Nil))
    },
};

/// Cost of an insertion into a sorted collection, in units of fuel.
const INSERTED: u32 = 4;

/// Returns nil for `compare`, which needs no call.
fn comparator(function: Value) -> Value {
    match function {
        Value::Native(native) if native.name == "compare" => Value::Nil,
        function => function,
    }
}

fn map_of(vm: &mut Vm, args: &mut Args<'_>, from: usize, order: Value) -> Result<Value> {
    if !(args.len() - from).is_multiple_of(2) {
        return Err(super::maps::odd_keyvals("a map", args.get(args.len() - 1)));
    }
    let mut map = Value::Map(Rc::new(Map::new(PMap::sorted_by(order))));
    for idx in (from..args.len()).step_by(2) {
        let (key, value) = (args.take(idx), args.take(idx + 1));
        vm.charge(INSERTED)?;
        map = super::collections::assoc(vm, map, key, value)?;
    }
    Ok(map)
}

fn set_of(vm: &mut Vm, args: &mut Args<'_>, from: usize, order: Value) -> Result<Value> {
    let mut set = Value::Set(Rc::new(Set::new(PSet::sorted_by(order))));
    for idx in from..args.len() {
        vm.charge(INSERTED)?;
        set = super::collections::conj(vm, set, args.take(idx))?;
    }
    Ok(set)
}

fn sorted(coll: &Value) -> Option<&Sorted> {
    match coll {
        Value::Map(map) => map.entries().sorted(),
        Value::Set(set) => set.items().sorted(),
        _ => None,
    }
}

/// Returns the items of a sorted collection in order; `None` for any other.
pub(super) fn items_of(coll: &Value) -> Option<Vec<Value>> {
    let sorted = sorted(coll)?;
    Some(range(coll, sorted, 0, sorted.len()))
}

fn range(coll: &Value, sorted: &Sorted, start: usize, end: usize) -> Vec<Value> {
    let is_map = matches!(coll, Value::Map(_));
    sorted
        .iter_from(start)
        .take(end.saturating_sub(start))
        .map(|(key, value)| match is_map {
            true => Value::entry(key.clone(), value.clone()),
            false => key.clone(),
        })
        .collect()
}

/// Returns the items that pass the tests of `subseq`.
fn part(vm: &mut Vm, args: &Args<'_>) -> Result<Vec<Value>> {
    let coll = args.get(0);
    let Some(sorted) = sorted(coll) else {
        return Err(args.expected(0, "a sorted map or set"));
    };
    let (mut start, mut end) = (0, sorted.len());
    for idx in (1..args.len()).step_by(2) {
        if idx + 1 == args.len() {
            return Err(args.expected(idx, "a test and a key for it"));
        }
        let (bound, is_start) = bound(vm, args, sorted, idx)?;
        if is_start {
            start = start.max(bound);
        } else {
            end = end.min(bound);
        }
    }
    vm.charge(u32::try_from(end.saturating_sub(start)).unwrap_or(u32::MAX))?;
    Ok(range(coll, sorted, start, end))
}

/// Returns the range of an object that has the methods of the host's sorted collections.
fn part_of_object(vm: &mut Vm, args: &mut Args<'_>, ascending: Value) -> Result<Value> {
    let name = Symbol::new("-part-of-sorted");
    let world = vm.world().clone();
    world.loader().load_definition(vm, world.core.name, name)?;
    let function = match world.core.lookup(name) {
        Some(var) => vm.var_value(&var)?,
        None => Value::Nil,
    };
    let mut given = vec![ascending];
    given.extend((0..args.len()).map(|idx| args.take(idx)));
    vm.invoke(&function, &mut given)
}

/// Returns the result of a walk that finds nothing: nil if no entry passes its starting test, else the empty sequence,
/// as in Clojure. `starts` are the tests that start a walk in this direction.
fn nothing(vm: &mut Vm, args: &Args<'_>, starts: [&str; 2]) -> Result<Value> {
    let Some(sorted) = sorted(args.get(0)) else {
        return Ok(Value::Nil);
    };
    let is_start =
        |idx: usize| matches!(args.get(idx), Value::Native(test) if starts.contains(&test.name));
    let Some(idx) = (1..args.len()).step_by(2).find(|idx| is_start(*idx)) else {
        return Ok(Value::list([]));
    };
    if args.len() == 3 {
        return Ok(Value::Nil);
    }
    // With two tests the walk starts at the key, whether or not the test accepts it.
    let key = args.get(idx + 1);
    let forwards = starts[0] == ">";
    let before = vm.with_order(sorted.order(), |by| {
        sorted.count_while(&mut |other| {
            let order = by(other, key)?;
            Ok(if forwards {
                order.is_lt()
            } else {
                order.is_le()
            })
        })
    })?;
    let is_past_end = if forwards {
        before == sorted.len()
    } else {
        before == 0
    };
    Ok(if is_past_end {
        Value::Nil
    } else {
        Value::list([])
    })
}

/// Returns the bound that a test sets for the range, and which of the two bounds it is.
fn bound(vm: &mut Vm, args: &Args<'_>, sorted: &Sorted, idx: usize) -> Result<(usize, bool)> {
    let unknown = || -> Signal { args.expected(idx, "one of < <= > >=") };
    let Value::Native(test) = args.get(idx) else {
        return Err(unknown());
    };
    let (before, is_start): (fn(Ordering) -> bool, bool) = match test.name {
        ">" => (Ordering::is_le, true),
        ">=" => (Ordering::is_lt, true),
        "<" => (Ordering::is_lt, false),
        "<=" => (Ordering::is_le, false),
        _ => return Err(unknown()),
    };
    let key = args.get(idx + 1);
    let bound = vm.with_order(sorted.order(), |by| {
        sorted.count_while(&mut |other| Ok(before(by(other, key)?)))
    })?;
    Ok((bound, is_start))
}
