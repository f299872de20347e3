//! Functions on maps, and on other values with keys.

use std::ops::ControlFlow;
use std::rc::Rc;

use super::collections::{assoc, conj};
use super::sequences::walk;
use crate::value::{Arity, Class, Exception, Map, Native, PMap, Result, SeqView, Value};
use crate::vm::{Args, Vm, wrong_type};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    ARRAY_MAP,
    ASSOC,
    ASSOC_IN,
    DISSOC,
    FIND,
    HASH_MAP,
    KEY,
    KEYS,
    MERGE,
    MERGE_WITH,
    REDUCE_KV,
    SELECT_KEYS,
    UPDATE,
    UPDATE_IN,
    UPDATE_KEYS,
    UPDATE_VALS,
    VAL,
    VALS,
    ZIPMAP,
];

const ARRAY_MAP: Native = Native {
    name: "array-map",
    usage: "(array-map & keyvals)",
    doc: "Returns a map that keeps the order of its keys and values; of equal keys the last one wins.",
    examples: &[("(array-map :a 1 :b 2)", "{:a 1, :b 2}")],
    arity: Arity::at_least(0),
    run: |vm, mut args| map_of(vm, &mut args, PMap::new(), PMap::insert_in_order),
};

const ASSOC: Native = Native {
    name: "assoc",
    usage: "(assoc coll key value & keyvals)",
    doc: "Returns coll with the values of keys set; for a vector the keys are indexes up to its count.",
    examples: &[
        ("(assoc {:a 1} :b 2)", "{:a 1, :b 2}"),
        ("(assoc [1 2] 0 :x)", "[:x 2]"),
        ("(assoc nil :a 1)", "{:a 1}"),
    ],
    arity: Arity::at_least(3),
    run: |vm, mut args| {
        if args.len().is_multiple_of(2) {
            return Err(odd_keyvals("assoc", args.get(args.len() - 1)));
        }
        let mut coll = args.take(0);
        for idx in (1..args.len()).step_by(2) {
            let (key, value) = (args.take(idx), args.take(idx + 1));
            coll = assoc(vm, coll, key, value).map_err(|signal| signal.at_argument(idx))?;
        }
        Ok(coll)
    },
};

const ASSOC_IN: Native = Native {
    name: "assoc-in",
    usage: "(assoc-in coll keys value)",
    doc: "Returns coll with the value at the path of keys set, creating maps for missing levels.",
    examples: &[
        ("(assoc-in {:a {:b 1}} [:a :c] 2)", "{:a {:b 1, :c 2}}"),
        ("(assoc-in nil [:a :b] 1)", "{:a {:b 1}}"),
    ],
    arity: Arity::exactly(3),
    run: |vm, mut args| {
        let (coll, value) = (args.take(0), args.take(2));
        let keys = vm.items(args.take(1))?;
        change_in(vm, coll, &keys, &mut |_, _| Ok(value.clone()))
    },
};

const DISSOC: Native = Native {
    name: "dissoc",
    usage: "(dissoc map & keys)",
    doc: "Returns map without keys.",
    examples: &[
        ("(dissoc {:a 1 :b 2} :a)", "{:b 2}"),
        ("(dissoc nil :a)", "nil"),
    ],
    arity: Arity::at_least(1),
    run: |vm, mut args| {
        let mut coll = args.take(0);
        for idx in 1..args.len() {
            coll = dissoc(vm, coll, args.get(idx))?;
        }
        // Without keys the value was not checked yet; a method of a type may return any value.
        if args.len() == 1 && !matches!(coll, Value::Nil | Value::Map(_) | Value::Record(_)) {
            return Err(wrong_type(&coll, "a map", 0).into());
        }
        Ok(coll)
    },
};

const FIND: Native = Native {
    name: "find",
    usage: "(find coll key)",
    doc: "Returns the map entry of key, or nil if the map does not contain it.",
    examples: &[
        ("(find {:a nil} :a)", "[:a nil]"),
        ("(find {:a 1} :b)", "nil"),
        ("(find [:x] 0)", "[0 :x]"),
    ],
    arity: Arity::exactly(2),
    run: |vm, args| {
        if !is_associative(args.get(0)) {
            return Err(no_keys(args.get(0)));
        }
        Ok(find(vm, args.get(0), args.get(1))?
            .map_or(Value::Nil, |(key, value)| Value::entry(key, value)))
    },
};

const HASH_MAP: Native = Native {
    name: "hash-map",
    usage: "(hash-map & keyvals)",
    doc: "Returns a map of keys and values; of equal keys the last one wins.",
    examples: &[("(hash-map :a 1)", "{:a 1}"), ("(hash-map)", "{}")],
    arity: Arity::at_least(0),
    run: |vm, mut args| match args.is_empty() {
        true => Ok(Value::map([])),
        false => map_of(vm, &mut args, PMap::hashed(), PMap::insert),
    },
};

const KEY: Native = Native {
    name: "key",
    usage: "(key entry)",
    doc: "Returns the key of a map entry.",
    examples: &[("(key (first {:a 1}))", ":a")],
    arity: Arity::exactly(1),
    run: |_, args| part_of_entry(&args, 0),
};

const KEYS: Native = Native {
    name: "keys",
    usage: "(keys map)",
    doc: "Returns the keys of a map, in the order of its entries; nil if the map is empty.",
    examples: &[("(keys {:a 1 :b 2})", "(:a :b)"), ("(keys {})", "nil")],
    arity: Arity::exactly(1),
    run: |vm, mut args| parts_of_entries(vm, &mut args, 0),
};

const MERGE: Native = Native {
    name: "merge",
    usage: "(merge & maps)",
    doc: "Returns the first map with the entries of the others added; a later one wins.",
    examples: &[
        ("(merge {:a 1 :b 2} {:b 3})", "{:a 1, :b 3}"),
        ("(merge nil {:a 1})", "{:a 1}"),
        ("(merge)", "nil"),
    ],
    arity: Arity::at_least(0),
    run: |vm, mut args| {
        if !args.as_slice().iter().any(Value::is_truthy) {
            return Ok(Value::Nil);
        }
        let mut all = match args.take(0) {
            Value::Nil | Value::Bool(false) => Value::map([]),
            other => other,
        };
        for idx in 1..args.len() {
            all = conj(vm, all, args.take(idx))?;
        }
        Ok(all)
    },
};

const MERGE_WITH: Native = Native {
    name: "merge-with",
    usage: "(merge-with f & maps)",
    doc: "Merges maps; if a key is in several of them, its value is (f so-far next).",
    examples: &[("(merge-with + {:a 1 :b 2} {:b 3})", "{:a 1, :b 5}")],
    arity: Arity::at_least(1),
    run: |vm, mut args| {
        if !args.from(1).iter().any(Value::is_truthy) {
            return Ok(Value::Nil);
        }
        let function = args.take(0);
        let mut all = match args.take(1) {
            Value::Nil | Value::Bool(false) => Value::map([]),
            other => other,
        };
        for idx in 2..args.len() {
            let mut entries = vm.iter(args.take(idx))?;
            while let Some(entry) = entries.next(vm)? {
                let (key, value) = pair(&entry)?;
                let value = match find(vm, &all, &key)? {
                    Some((_, so_far)) => vm.invoke(&function, &mut [so_far, value])?,
                    None => value,
                };
                all = assoc(vm, all, key, value)?;
            }
        }
        Ok(all)
    },
};

const REDUCE_KV: Native = Native {
    name: "reduce-kv",
    usage: "(reduce-kv f init coll)",
    doc: "Reduces a map, or a vector by index, with a function of result, key and value.",
    examples: &[
        ("(reduce-kv (fn [sum k v] (+ sum v)) 0 {:a 1 :b 2})", "3"),
        (
            "(reduce-kv (fn [all i x] (conj all [i x])) [] [:a :b])",
            "[[0 :a] [1 :b]]",
        ),
    ],
    arity: Arity::exactly(3),
    run: |vm, mut args| {
        let function = args.take(0);
        if let coll @ Value::Object(_) = args.get(2) {
            let given = [function.clone(), args.get(1).clone()];
            if let Some(answer) =
                vm.call_first_own_method(coll, &["kvreduce", "kv-reduce"], &given)?
            {
                return Ok(answer);
            }
        }
        let mut result = args.take(1);
        let mut step = |vm: &mut Vm, key: Value, value: Value| -> Result<ControlFlow<()>> {
            vm.charge(1)?;
            let so_far = std::mem::replace(&mut result, Value::Nil);
            let (next, flow) = walk::unreduced(vm.invoke(&function, &mut [so_far, key, value])?);
            result = next;
            Ok(flow)
        };
        match args.take(2) {
            Value::Nil => {}
            Value::Map(map) => {
                for (key, value) in map.iter() {
                    if step(vm, key.clone(), value.clone())?.is_break() {
                        break;
                    }
                }
            }
            Value::Vector(vector) => {
                for (idx, item) in vector.iter().enumerate() {
                    if step(vm, Value::from(idx), item.clone())?.is_break() {
                        break;
                    }
                }
            }
            coll @ (Value::Record(_)
            | Value::Set(_)
            | Value::Seq(_)
            | Value::List(_)
            | Value::Lazy(_)
            | Value::Object(_)) => {
                walk::each(vm, coll, &mut |vm, entry| {
                    let (key, value) = pair(&entry)?;
                    step(vm, key, value)
                })?;
            }
            other => return Err(wrong_type(&other, "a map or a vector", 2).into()),
        }
        Ok(result)
    },
};

const SELECT_KEYS: Native = Native {
    name: "select-keys",
    usage: "(select-keys map keys)",
    doc: "Returns a map of those entries whose key is in keys.",
    examples: &[("(select-keys {:a 1 :b 2 :c 3} [:a :c :d])", "{:a 1, :c 3}")],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let map = args.take(0);
        let mut selected = PMap::new();
        let mut keys = vm.iter(args.take(1))?;
        while let Some(key) = keys.next(vm)? {
            if !is_associative(&map) {
                return Err(no_keys(&map));
            }
            if let Some((key, value)) = find(vm, &map, &key)? {
                selected.insert(key, value);
            }
        }
        let selected = Value::Map(Rc::new(Map::new(selected)));
        let meta = map.meta();
        if meta.is_nil() {
            return Ok(selected);
        }
        Ok(selected.with_meta(meta).unwrap_or(selected))
    },
};

const UPDATE: Native = Native {
    name: "update",
    usage: "(update coll key f & args)",
    doc: "Returns coll with the value at key replaced by (f value & args).",
    examples: &[
        ("(update {:a 1} :a inc)", "{:a 2}"),
        ("(update {:a 1} :a + 10)", "{:a 11}"),
        ("(update {} :a conj 1)", "{:a (1)}"),
    ],
    arity: Arity::at_least(3),
    run: |vm, mut args| {
        let (coll, key, function) = (args.take(0), args.take(1), args.take(2));
        let mut more: Vec<Value> = vec![Value::Nil];
        more.extend((3..args.len()).map(|idx| args.take(idx)));
        update(vm, coll, key, &mut |vm, old| {
            more[0] = old;
            vm.invoke(&function, &mut more)
        })
    },
};

const UPDATE_IN: Native = Native {
    name: "update-in",
    usage: "(update-in coll keys f & args)",
    doc: "Returns coll with the value at the path of keys replaced by (f value & args).",
    examples: &[("(update-in {:a {:b 1}} [:a :b] inc)", "{:a {:b 2}}")],
    arity: Arity::at_least(3),
    run: |vm, mut args| {
        let (coll, function) = (args.take(0), args.take(2));
        let keys = vm.items(args.take(1))?;
        let mut more: Vec<Value> = vec![Value::Nil];
        more.extend((3..args.len()).map(|idx| args.take(idx)));
        change_in(vm, coll, &keys, &mut |vm, old| {
            more[0] = old;
            vm.invoke(&function, &mut more)
        })
    },
};

const UPDATE_KEYS: Native = Native {
    name: "update-keys",
    usage: "(update-keys map f)",
    doc: "Returns a map with (f key) for each key.",
    examples: &[("(update-keys {:a 1 :b 2} name)", r#"{"a" 1, "b" 2}"#)],
    arity: Arity::exactly(2),
    run: |vm, args| {
        let mut changed = PMap::new();
        each_entry(vm, args.get(0), &mut |vm, key, value| {
            let key = vm.invoke(args.get(1), &mut [key])?;
            vm.realise_key(&key)?;
            changed.insert(key, value);
            Ok(())
        })?;
        keep_meta(changed, args.get(0))
    },
};

const UPDATE_VALS: Native = Native {
    name: "update-vals",
    usage: "(update-vals map f)",
    doc: "Returns a map with (f value) for each value.",
    examples: &[("(update-vals {:a 1 :b 2} inc)", "{:a 2, :b 3}")],
    arity: Arity::exactly(2),
    run: |vm, args| {
        let mut changed = PMap::new();
        each_entry(vm, args.get(0), &mut |vm, key, value| {
            let value = vm.invoke(args.get(1), &mut [value])?;
            changed.insert(key, value);
            Ok(())
        })?;
        keep_meta(changed, args.get(0))
    },
};

const VAL: Native = Native {
    name: "val",
    usage: "(val entry)",
    doc: "Returns the value of a map entry.",
    examples: &[("(val (first {:a 1}))", "1")],
    arity: Arity::exactly(1),
    run: |_, args| part_of_entry(&args, 1),
};

const VALS: Native = Native {
    name: "vals",
    usage: "(vals map)",
    doc: "Returns the values of a map, in the order of its entries; nil if the map is empty.",
    examples: &[("(vals {:a 1 :b 2})", "(1 2)"), ("(vals nil)", "nil")],
    arity: Arity::exactly(1),
    run: |vm, mut args| parts_of_entries(vm, &mut args, 1),
};

const ZIPMAP: Native = Native {
    name: "zipmap",
    usage: "(zipmap keys vals)",
    doc: "Returns a map of the keys to the values at the same position, up to the end of the shorter collection.",
    examples: &[("(zipmap [:a :b :c] [1 2])", "{:a 1, :b 2}")],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let mut keys = vm.iter(args.take(0))?;
        let mut values = vm.iter(args.take(1))?;
        let mut entries = PMap::new();
        while let Some(key) = keys.next(vm)? {
            let Some(value) = values.next(vm)? else { break };
            vm.realise_key(&key)?;
            entries.insert(key, value);
        }
        Ok(Value::Map(Rc::new(Map::new(entries))))
    },
};

/// Returns the exception for a key without a value.
pub(crate) fn odd_keyvals(name: &str, last: &Value) -> crate::value::Signal {
    let shown = crate::value::brief(last);
    Exception::new(
        Class::ILLEGAL_ARGUMENT,
        "E0337",
        format!("No value supplied for key: {shown}"),
    )
    .display_message(format!(
        "{name} needs a value for each key; {shown} has none"
    ))
    .hint("keys and values alternate: count them, one is missing")
    .into()
}

fn map_of(
    vm: &mut Vm,
    args: &mut Args<'_>,
    mut entries: PMap,
    insert: fn(&mut PMap, Value, Value),
) -> Result<Value> {
    if !args.len().is_multiple_of(2) {
        return Err(odd_keyvals("a map", args.get(args.len() - 1)));
    }
    for idx in (0..args.len()).step_by(2) {
        let (key, value) = (args.take(idx), args.take(idx + 1));
        vm.charge(1)?;
        vm.realise_key(&key)?;
        insert(&mut entries, key, value);
    }
    Ok(Value::Map(Rc::new(Map::new(entries))))
}

fn is_associative(value: &Value) -> bool {
    matches!(
        value,
        Value::Nil | Value::Map(_) | Value::Record(_) | Value::Vector(_) | Value::Object(_)
    )
}

#[cold]
fn no_keys(value: &Value) -> crate::value::Signal {
    wrong_type(value, "a map or a vector", 0)
        .of_class(Class::ILLEGAL_ARGUMENT)
        .into()
}

/// Looks up an entry: the key as it is stored, and the value.
///
/// # Errors
/// Any exception thrown while a lazy key is computed.
pub(crate) fn find(vm: &mut Vm, coll: &Value, key: &Value) -> Result<Option<(Value, Value)>> {
    match coll {
        Value::Map(map) => {
            vm.realise_key(key)?;
            if let Some(sorted) = map.entries().sorted() {
                return vm.find_sorted(sorted, key);
            }
            Ok(map
                .entries()
                .entry(key)
                .map(|(key, value)| (key.clone(), value.clone())))
        }
        coll => Ok(vm.lookup(coll, key)?.map(|value| (key.clone(), value))),
    }
}

/// Removes a key.
///
/// # Errors
/// When `coll` is not a map.
pub(crate) fn dissoc(vm: &mut Vm, mut coll: Value, key: &Value) -> Result<Value> {
    match &mut coll {
        Value::Nil => {}
        Value::Map(map) => {
            vm.realise_key(key)?;
            if map.entries().sorted().is_some() {
                if let Some(sorted) = Map::make_mut(map).entries_mut().sorted_mut() {
                    vm.remove_sorted(sorted, key)?;
                }
            } else if map.entries().contains(key) {
                Map::make_mut(map).entries_mut().remove(key);
            }
        }
        Value::Record(record) => {
            vm.realise_key(key)?;
            let mut fields = record.fields.clone();
            fields.remove(key);
            let declared = key
                .as_keyword()
                .is_some_and(|key| record.record_type.fields.contains(&key));
            if declared {
                // A record without one of its fields becomes a plain map.
                return keep_meta(fields, &coll);
            }
            return Ok(Value::Record(Rc::new(crate::value::Record {
                record_type: record.record_type.clone(),
                fields,
                meta: record.meta.clone(),
            })));
        }
        _ => {
            return match vm.call_own_method(&coll, "without", std::slice::from_ref(key))? {
                Some(coll) => Ok(coll),
                None => Err(wrong_type(&coll, "a map", 0).into()),
            };
        }
    }
    Ok(coll)
}

/// Replaces the value of a key with the result of `change`.
fn update(
    vm: &mut Vm,
    coll: Value,
    key: Value,
    change: &mut dyn FnMut(&mut Vm, Value) -> Result<Value>,
) -> Result<Value> {
    change_in(vm, coll, &[key], change)
}

/// Replaces the value at the path `keys`. Each old value is taken out of its collection first, so that values that are
/// not shared are updated in place at every level.
fn change_in(
    vm: &mut Vm,
    coll: Value,
    keys: &[Value],
    change: &mut dyn FnMut(&mut Vm, Value) -> Result<Value>,
) -> Result<Value> {
    // An empty path means the key nil, as in Clojure.
    let keys = if keys.is_empty() { &[Value::Nil] } else { keys };
    let mut outer = Vec::with_capacity(keys.len());
    let mut at = coll;
    for key in keys {
        vm.charge(1)?;
        let inner = take_value(vm, &mut at, key)?;
        outer.push(std::mem::replace(&mut at, inner));
    }
    let mut new = change(vm, at)?;
    while let (Some(coll), Some(key)) = (outer.pop(), keys.get(outer.len())) {
        new = assoc(vm, coll, key.clone(), new)?;
    }
    Ok(new)
}

/// Returns the value of a key; moves it out if the map is not shared.
fn take_value(vm: &mut Vm, coll: &mut Value, key: &Value) -> Result<Value> {
    let found = match coll {
        Value::Map(map) => {
            vm.realise_key(key)?;
            if let Some(sorted) = map.entries().sorted() {
                let found = vm.find_sorted(sorted, key)?;
                return Ok(found.map_or(Value::Nil, |entry| entry.1));
            }
            match Rc::get_mut(map) {
                Some(map) => map
                    .entries_mut()
                    .get_mut(key)
                    .map(|slot| std::mem::replace(slot, Value::Nil)),
                None => map.get(key).cloned(),
            }
        }
        other => vm.lookup(other, key)?,
    };
    Ok(found.unwrap_or(Value::Nil))
}

fn part_of_entry(args: &Args<'_>, idx: usize) -> Result<Value> {
    match args.get(0) {
        Value::Vector(entry) if entry.is_entry => Ok(entry.get(idx).cloned().unwrap_or(Value::Nil)),
        _ => Err(args.expected(0, "a map entry")),
    }
}

fn parts_of_entries(vm: &mut Vm, args: &mut Args<'_>, part: usize) -> Result<Value> {
    let coll = args.take(0);
    let items: Vec<Value> = match &coll {
        Value::Map(map) => {
            vm.charge(u32::try_from(map.len()).unwrap_or(u32::MAX))?;
            map.iter()
                .map(|(key, value)| if part == 0 { key } else { value }.clone())
                .collect()
        }
        Value::Nil => Vec::new(),
        _ if vm.seq(&coll)?.is_nil() => Vec::new(),
        _ => {
            let mut items = Vec::new();
            let mut entries = vm.iter(coll.clone())?;
            while let Some(entry) = entries.next(vm)? {
                match &entry {
                    Value::Vector(entry) if entry.is_entry => {
                        items.extend(entry.get(part).cloned());
                    }
                    _ => {
                        args.as_mut_slice()[0] = coll;
                        return Err(args.expected(0, "a map"));
                    }
                }
            }
            items
        }
    };
    Ok(SeqView::chunk(items, Value::Nil))
}

/// Returns the key and value of an entry, or of a vector of two items.
pub(crate) fn pair(entry: &Value) -> Result<(Value, Value)> {
    match entry {
        Value::Vector(vector) => match (vector.get(0), vector.get(1), vector.len()) {
            (Some(key), Some(value), 2) => Ok((key.clone(), value.clone())),
            _ => Err(wrong_type(entry, "a map entry", 0).into()),
        },
        _ => Err(wrong_type(entry, "a map entry", 0).into()),
    }
}

fn each_entry(
    vm: &mut Vm,
    coll: &Value,
    visit: &mut dyn FnMut(&mut Vm, Value, Value) -> Result<()>,
) -> Result<()> {
    walk::each(vm, coll.clone(), &mut |vm, entry| {
        let (key, value) = pair(&entry)?;
        visit(vm, key, value)?;
        Ok(ControlFlow::Continue(()))
    })
}

fn keep_meta(entries: PMap, of: &Value) -> Result<Value> {
    let map = Value::Map(Rc::new(Map::new(entries)));
    let meta = of.meta();
    if meta.is_nil() {
        return Ok(map);
    }
    Ok(map.with_meta(meta).unwrap_or(map))
}
