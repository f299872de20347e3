//! Sorting and shuffling. The sort is stable, and an inconsistent comparator results in some order, never a panic.

use std::cmp::Ordering;

use crate::core::random;
use crate::value::{Arity, List, Native, Result, SeqView, Value};
use crate::vm::{Args, Vm};

/// The functions of this area.
pub(in crate::core) const FNS: &[Native] = &[RAND_NTH, SHUFFLE, SORT, SORT_BY];

const RAND_NTH: Native = Native {
    name: "rand-nth",
    usage: "(rand-nth coll)",
    doc: "Returns a random item of coll; nil for nil.",
    examples: &[("(rand-nth [1])", "1")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        if args.get(0).is_nil() {
            return Ok(Value::Nil);
        }
        let items = vm.items(args.take(0))?;
        if items.is_empty() {
            return Err(crate::core::collections::out_of_bounds(0, 0)
                .argument(0)
                .into());
        }
        let idx = random::below(vm, items.len())?;
        Ok(items[idx].clone())
    },
};

const SHUFFLE: Native = Native {
    name: "shuffle",
    usage: "(shuffle coll)",
    doc: "Returns a vector of the items of coll in a random order.",
    examples: &[("(count (shuffle [1 2 3]))", "3")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        if matches!(
            args.get(0),
            Value::Nil | Value::Text(_) | Value::Map(_) | Value::Record(_)
        ) {
            return Err(args.expected(0, "a vector, set or sequence"));
        }
        let mut items = vm.items(args.take(0))?;
        for idx in (1..items.len()).rev() {
            vm.charge(1)?;
            let other = random::below(vm, idx + 1)?;
            items.swap(idx, other);
        }
        Ok(Value::vector(items))
    },
};

const SORT: Native = Native {
    name: "sort",
    usage: "(sort coll)\n(sort comparator coll)",
    doc: "Returns the items of coll in the order of comparator (compare); equal items keep their order.",
    examples: &[
        ("(sort [3 1 2])", "(1 2 3)"),
        ("(sort > [3 1 2])", "(3 2 1)"),
    ],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        let at = args.len() - 1;
        let coll = args.take(at);
        let meta = coll.meta();
        let items = vm.items(coll)?;
        let comparator = comparator(&mut args, 0, 2);
        let order = order_of(vm, &items, &comparator).map_err(|signal| signal.at_argument(at))?;
        with_meta_of(vm, meta, in_order(items, order)?)
    },
};

const SORT_BY: Native = Native {
    name: "sort-by",
    usage: "(sort-by f coll)\n(sort-by f comparator coll)",
    doc: "Returns the items of coll in the order of the results of f for them; equal items keep their order.",
    examples: &[
        ("(sort-by count [[1 2] [] [3]])", "([] [3] [1 2])"),
        ("(sort-by :n > [{:n 1} {:n 2}])", "({:n 2} {:n 1})"),
    ],
    arity: Arity::between(2, 3),
    run: |vm, mut args| {
        let at = args.len() - 1;
        let coll = args.take(at);
        let meta = coll.meta();
        let items = vm.items(coll)?;
        let function = args.take(0);
        let mut keys = Vec::with_capacity(items.len());
        for item in &items {
            keys.push(vm.call(&function, std::slice::from_ref(item))?);
        }
        let comparator = comparator(&mut args, 1, 3);
        let order = order_of(vm, &keys, &comparator).map_err(|signal| signal.at_argument(at))?;
        with_meta_of(vm, meta, in_order(items, order)?)
    },
};

/// Gives sorted items the metadata of their source collection.
fn with_meta_of(vm: &mut Vm, meta: Value, sorted: Value) -> Result<Value> {
    if meta.is_nil() || matches!(sorted, Value::List(_)) {
        return Ok(sorted);
    }
    crate::core::state::with_meta(vm, sorted, meta)
}

/// The comparison of two items.
enum Comparator {
    Natural,
    Reversed,
    Function(Value),
}

fn comparator(args: &mut Args<'_>, idx: usize, with: usize) -> Comparator {
    if args.len() < with {
        return Comparator::Natural;
    }
    match args.take(idx) {
        // For numbers these give the natural order, and for any other value they throw as required.
        Value::Native(native) if native.name == "compare" => Comparator::Natural,
        function => Comparator::Function(function),
    }
}

/// Returns the positions of `keys` in their order.
fn order_of(vm: &mut Vm, keys: &[Value], comparator: &Comparator) -> Result<Vec<usize>> {
    let mut order: Vec<usize> = (0..keys.len()).collect();
    let comparator = match comparator {
        Comparator::Function(Value::Native(native)) if all_ints(keys) && native.name == "<" => {
            &Comparator::Natural
        }
        Comparator::Function(Value::Native(native)) if all_ints(keys) && native.name == ">" => {
            &Comparator::Reversed
        }
        other => other,
    };
    match comparator {
        Comparator::Natural if all_ints(keys) => {
            sort_in_parts(vm, &mut order, |left, right| {
                keys[left].as_int().cmp(&keys[right].as_int())
            })?;
        }
        Comparator::Natural if keys.iter().all(is_short_text) => {
            sort_in_parts(vm, &mut order, |left, right| {
                compare_text(&keys[left], &keys[right])
            })?;
        }
        Comparator::Reversed => {
            sort_in_parts(vm, &mut order, |left, right| {
                keys[right].as_int().cmp(&keys[left].as_int())
            })?;
        }
        other => merge_sort(vm, keys, &mut order, other)?,
    }
    Ok(order)
}

/// Maximum length of texts whose comparison is not paid for individually.
const SHORT: usize = 256;

fn is_short_text(key: &Value) -> bool {
    key.as_str().is_some_and(|text| text.len() <= SHORT)
}

/// Number of positions that are sorted or merged between two payments.
const PART: usize = 1 << 15;

/// Sorts positions by a total order: part by part, then merging the parts, so that limits act in between.
fn sort_in_parts(
    vm: &mut Vm,
    order: &mut Vec<usize>,
    compare: impl Fn(usize, usize) -> Ordering,
) -> Result<()> {
    for part in order.chunks_mut(PART) {
        vm.charge_much(part.len() as u64 * 2)?;
        part.sort_by(|left, right| compare(*left, *right));
    }
    let count = order.len();
    let mut merged = Vec::new();
    let mut width = PART;
    while width < count {
        merged.clear();
        for start in (0..count).step_by(width * 2) {
            let middle = (start + width).min(count);
            let end = (start + width * 2).min(count);
            let in_order = middle == end || compare(order[middle - 1], order[middle]).is_le();
            if in_order {
                merged.extend_from_slice(&order[start..end]);
                continue;
            }
            let (mut left, mut right) = (start, middle);
            let mut unpaid = 0;
            while left < middle && right < end {
                unpaid += 1;
                if unpaid == PART {
                    vm.charge_much(std::mem::take(&mut unpaid) as u64 / 8)?;
                }
                match compare(order[left], order[right]).is_gt() {
                    true => {
                        merged.push(order[right]);
                        right += 1;
                    }
                    false => {
                        merged.push(order[left]);
                        left += 1;
                    }
                }
            }
            merged.extend_from_slice(&order[left..middle]);
            merged.extend_from_slice(&order[right..end]);
        }
        std::mem::swap(order, &mut merged);
        width *= 2;
    }
    Ok(())
}

fn all_ints(keys: &[Value]) -> bool {
    keys.iter().all(|key| matches!(key, Value::Int(_)))
}

/// Compares strings by UTF-16 units, as Java does.
fn compare_text(left: &Value, right: &Value) -> Ordering {
    let units = |value: &Value| value.as_str().unwrap_or("").to_owned();
    match (left.as_str(), right.as_str()) {
        (Some(left), Some(right)) if left.is_ascii() && right.is_ascii() => left.cmp(right),
        _ => units(left).encode_utf16().cmp(units(right).encode_utf16()),
    }
}

/// Sorts positions bottom up by merging; two runs that are already in order are not merged.
fn merge_sort(
    vm: &mut Vm,
    keys: &[Value],
    order: &mut Vec<usize>,
    comparator: &Comparator,
) -> Result<()> {
    let count = order.len();
    let mut merged = Vec::with_capacity(count);
    let mut width = 1;
    while width < count {
        merged.clear();
        for start in (0..count).step_by(width * 2) {
            let middle = (start + width).min(count);
            let end = (start + width * 2).min(count);
            let (mut left, mut right) = (start, middle);
            let in_order = middle == end
                || !comes_after(
                    vm,
                    &keys[order[middle - 1]],
                    &keys[order[middle]],
                    comparator,
                )?;
            if in_order {
                merged.extend_from_slice(&order[start..end]);
                continue;
            }
            while left < middle && right < end {
                vm.charge(1)?;
                if comes_after(vm, &keys[order[left]], &keys[order[right]], comparator)? {
                    merged.push(order[right]);
                    right += 1;
                } else {
                    merged.push(order[left]);
                    left += 1;
                }
            }
            merged.extend_from_slice(&order[left..middle]);
            merged.extend_from_slice(&order[right..end]);
        }
        std::mem::swap(order, &mut merged);
        width *= 2;
    }
    Ok(())
}

/// Tells whether `left` belongs after `right`.
fn comes_after(vm: &mut Vm, left: &Value, right: &Value, comparator: &Comparator) -> Result<bool> {
    match comparator {
        Comparator::Natural => Ok(vm.compare(left, right)?.is_gt()),
        Comparator::Reversed => Ok(vm.compare(left, right)?.is_lt()),
        Comparator::Function(function) => Ok(vm.compare_with(function, left, right)?.is_gt()),
    }
}

fn in_order(items: Vec<Value>, order: Vec<usize>) -> Result<Value> {
    if items.is_empty() {
        return Ok(List::empty());
    }
    let sorted = order.into_iter().map(|idx| items[idx].clone()).collect();
    Ok(SeqView::chunk(sorted, Value::Nil))
}
