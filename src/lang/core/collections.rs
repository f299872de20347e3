//! Operations on every kind of collection: adding, counting, looking up, emptying.
//!
//! A function that changes a collection takes it out of its arguments, so that a collection that is not shared is
//! changed in place.

use std::ops::ControlFlow;
use std::rc::Rc;

use super::sequences::walk;
use super::transducers;
use crate::value::{
    Arity, Class, Exception, List, Map, Native, Object, PVec, Record, Result, SeqView, Set, Value,
    Vector,
};
use crate::vm::{Args, Vm, transient_is_done, wrong_type};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    BOUNDED_COUNT,
    CONJ,
    CONTAINS,
    COUNT,
    EMPTY,
    GET,
    GET_IN,
    INTO,
    IS_EMPTY,
    NOT_EMPTY,
    NTH,
    PEEK,
    POP,
    RSEQ,
];

const BOUNDED_COUNT: Native = Native {
    name: "bounded-count",
    usage: "(bounded-count n coll)",
    doc: "Returns the count of coll if it is known, else counts at most n items.",
    examples: &[
        ("(bounded-count 3 (iterate inc 0))", "3"),
        ("(bounded-count 3 [1 2 3 4])", "4"),
    ],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let limit = args.index(0)?;
        let coll = args.take(1);
        if let Some(count) = known_count(&coll) {
            return Ok(Value::from(count));
        }
        let mut count = 0;
        if limit > 0 {
            walk::each(vm, coll, &mut |_, _| {
                count += 1;
                Ok(if count < limit {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                })
            })?;
        }
        Ok(Value::from(count))
    },
};

pub(in crate::core) const CONJ: Native = Native {
    name: "conj",
    usage: "(conj)\n(conj coll)\n(conj coll x & xs)",
    doc: "Returns coll with items added at the cheapest position: vectors at the end, lists at the front.",
    examples: &[
        ("(conj [1 2] 3)", "[1 2 3]"),
        ("(conj '(1 2) 3)", "(3 1 2)"),
        ("(conj {:a 1} [:b 2])", "{:a 1, :b 2}"),
        ("(conj nil 1)", "(1)"),
    ],
    arity: Arity::at_least(0),
    run: |vm, mut args| {
        if args.is_empty() {
            return Ok(Value::vector([]));
        }
        let mut coll = args.take(0);
        for idx in 1..args.len() {
            let item = args.take(idx);
            coll = conj(vm, coll, item).map_err(|signal| signal.at_argument(idx))?;
        }
        Ok(coll)
    },
};

const CONTAINS: Native = Native {
    name: "contains?",
    usage: "(contains? coll key)",
    doc: "Tells whether coll contains key: for a map a key, for a set an item, for a vector or string an index.",
    examples: &[
        ("(contains? {:a nil} :a)", "true"),
        ("(contains? #{:a} :b)", "false"),
        ("(contains? [:x] 0)", "true"),
    ],
    arity: Arity::exactly(2),
    run: |vm, args| contains(vm, &args).map(Value::Bool),
};

const COUNT: Native = Native {
    name: "count",
    usage: "(count coll)",
    doc: "Returns the number of items of coll; 0 for nil.",
    examples: &[
        ("(count [1 2 3])", "3"),
        ("(count nil)", "0"),
        (r#"(count "abc")"#, "3"),
    ],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        let coll = args.take(0);
        if let Some(count) = known_count(&coll) {
            return Ok(Value::from(count));
        }
        if let Some(count) = vm.call_first_own_method(&coll, &["count", "size", "length"], &[])? {
            return Ok(count);
        }
        let coll = match vm.call_own_method(&coll, "seq", &[])? {
            Some(seq) => vm.seq(&seq)?,
            None => coll,
        };
        if coll.is_nil() {
            return Ok(Value::Int(0));
        }
        if !is_countable(&coll) {
            return Err(wrong_type(&coll, "a collection", 0)
                .of_class(Class::UNSUPPORTED_OPERATION)
                .into());
        }
        let mut count = 0_i64;
        walk::each(vm, coll, &mut |_, _| {
            count += 1;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(Value::Int(count))
    },
};

const EMPTY: Native = Native {
    name: "empty",
    usage: "(empty coll)",
    doc: "Returns an empty collection of the kind of coll, with its metadata; nil for anything else.",
    examples: &[
        ("(empty [1 2])", "[]"),
        ("(empty {:a 1})", "{}"),
        ("(empty 1)", "nil"),
    ],
    arity: Arity::exactly(1),
    run: |vm, args| match vm.call_own_method(args.get(0), "empty", &[])? {
        Some(coll) => Ok(coll),
        None => empty(args.get(0)),
    },
};

const IS_EMPTY: Native = Native {
    name: "empty?",
    usage: "(empty? coll)",
    doc: "Tells whether coll has no items.",
    examples: &[
        ("(empty? [])", "true"),
        ("(empty? nil)", "true"),
        (r#"(empty? "a")"#, "false"),
    ],
    arity: Arity::exactly(1),
    run: |vm, args| Ok(Value::Bool(is_empty(vm, args.get(0))?)),
};

const GET: Native = Native {
    name: "get",
    usage: "(get coll key)\n(get coll key default)",
    doc: "Returns the value of coll at key, or default (nil) if coll does not contain it.",
    examples: &[
        ("(get {:a 1} :a)", "1"),
        ("(get {:a 1} :b 0)", "0"),
        ("(get [:x :y] 1)", ":y"),
        ("(get nil :a)", "nil"),
    ],
    arity: Arity::between(2, 3),
    run: |vm, mut args| {
        let found = vm.lookup(args.get(0), args.get(1));
        let found = found.map_err(|signal| signal.at_argument(1))?;
        Ok(found.unwrap_or_else(|| args.take(2)))
    },
};

const GET_IN: Native = Native {
    name: "get-in",
    usage: "(get-in coll keys)\n(get-in coll keys default)",
    doc: "Returns the value at the path of keys in nested collections, or default (nil).",
    examples: &[
        ("(get-in {:a {:b [1 2]}} [:a :b 1])", "2"),
        ("(get-in {:a 1} [:b :c] :none)", ":none"),
    ],
    arity: Arity::between(2, 3),
    run: |vm, mut args| {
        let mut at = args.take(0);
        let mut keys = vm.iter(args.take(1))?;
        while let Some(key) = keys.next(vm)? {
            match vm.lookup(&at, &key)? {
                Some(value) => at = value,
                None => return Ok(args.take(2)),
            }
        }
        Ok(at)
    },
};

const INTO: Native = Native {
    name: "into",
    usage: "(into)\n(into to)\n(into to from)\n(into to xform from)",
    doc: "Returns to with all items of from added, passed through a transducer if one is given.",
    examples: &[
        ("(into [] '(1 2 3))", "[1 2 3]"),
        ("(into {} [[:a 1] [:b 2]])", "{:a 1, :b 2}"),
        ("(into [] (map inc) [1 2 3])", "[2 3 4]"),
    ],
    arity: Arity::between(0, 3),
    run: |vm, mut args| {
        if args.is_empty() {
            return Ok(Value::vector([]));
        }
        let to = args.take(0);
        match args.len() {
            1 => Ok(to),
            2 => {
                let from = args.take(1);
                walk::reduce(vm, &Value::Native(&CONJ), to, from)
            }
            _ => {
                let (xform, from) = (args.take(1), args.take(2));
                let Some(steps) = transducers::steps_for(&xform, &from) else {
                    let function = vm.invoke(&xform, &mut [Value::Native(&CONJ)])?;
                    let result = walk::reduce(vm, &function, to, from)?;
                    return vm.invoke(&function, &mut [result]);
                };
                walk::reduce_through(vm, steps, &Value::Native(&CONJ), to, from)
            }
        }
    },
};

const NOT_EMPTY: Native = Native {
    name: "not-empty",
    usage: "(not-empty coll)",
    doc: "Returns coll, or nil if it has no items.",
    examples: &[("(not-empty [1])", "[1]"), ("(not-empty [])", "nil")],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        if is_empty(vm, args.get(0))? {
            return Ok(Value::Nil);
        }
        Ok(args.take(0))
    },
};

const NTH: Native = Native {
    name: "nth",
    usage: "(nth coll index)\n(nth coll index default)",
    doc: "Returns the item of coll at index, counted from 0; default, or an exception, if the index is out of range.",
    examples: &[
        ("(nth [:a :b] 1)", ":b"),
        ("(nth '(1 2) 5 :none)", ":none"),
        (r#"(nth "abc" 0)"#, r"\a"),
    ],
    arity: Arity::between(2, 3),
    run: |vm, mut args| {
        if let (Value::Vector(vector), Value::Int(idx)) = (args.get(0), args.get(1))
            && let Ok(idx) = usize::try_from(*idx)
            && let Some(item) = vector.get(idx)
        {
            return Ok(item.clone());
        }
        let idx = args.position(1)?;
        let default = (args.len() == 3).then(|| args.take(2));
        let coll = args.take(0);
        nth(vm, coll, idx, default)
    },
};

const PEEK: Native = Native {
    name: "peek",
    usage: "(peek coll)",
    doc: "Returns the item that pop would remove: the last of a vector, the first of a list or queue.",
    examples: &[
        ("(peek [1 2 3])", "3"),
        ("(peek '(1 2 3))", "1"),
        ("(peek [])", "nil"),
    ],
    arity: Arity::exactly(1),
    run: |vm, args| match args.get(0) {
        Value::Nil => Ok(Value::Nil),
        Value::Vector(vector) => Ok(vector.items().last().cloned().unwrap_or(Value::Nil)),
        Value::List(list) if list.count.is_some() => Ok(list.first.clone()),
        Value::Object(object) => match &**object {
            Object::Queue { items, taken, .. } => {
                Ok(items.get(*taken).cloned().unwrap_or(Value::Nil))
            }
            _ => match vm.call_own_method(args.get(0), "peek", &[])? {
                Some(item) => Ok(item),
                None => Err(args.expected(0, "a vector, list or queue")),
            },
        },
        _ => Err(args.expected(0, "a vector, list or queue")),
    },
};

const POP: Native = Native {
    name: "pop",
    usage: "(pop coll)",
    doc: "Returns coll without the item that peek returns; an empty coll is an error.",
    examples: &[("(pop [1 2 3])", "[1 2]"), ("(pop '(1 2 3))", "(2 3)")],
    arity: Arity::exactly(1),
    run: |vm, mut args| match vm.call_own_method(args.get(0), "pop", &[])? {
        Some(coll) => Ok(coll),
        None => pop(&mut args),
    },
};

const RSEQ: Native = Native {
    name: "rseq",
    usage: "(rseq coll)",
    doc: "Returns the items of a vector or sorted collection in reverse order, or nil if it is empty.",
    examples: &[("(rseq [1 2 3])", "(3 2 1)"), ("(rseq [])", "nil")],
    arity: Arity::exactly(1),
    run: |vm, args| match args.get(0) {
        Value::Vector(vector) => {
            vm.charge(u32::try_from(vector.len()).unwrap_or(u32::MAX))?;
            Ok(SeqView::chunk(
                vector.iter().rev().cloned().collect(),
                Value::Nil,
            ))
        }
        coll @ Value::Object(_) => match vm.call_own_method(coll, "rseq", &[])? {
            Some(items) => Ok(items),
            None => Err(args.expected(0, "a vector or a sorted collection")),
        },
        coll => match super::sorted::items_of(coll) {
            Some(mut items) => {
                vm.charge(u32::try_from(items.len()).unwrap_or(u32::MAX))?;
                items.reverse();
                Ok(SeqView::chunk(items, Value::Nil))
            }
            None => Err(args.expected(0, "a vector or a sorted collection")),
        },
    },
};

/// Adds an item to a collection; in place if it is not shared.
///
/// # Errors
/// When the value is not a collection, or the item does not fit a map.
pub(crate) fn conj(vm: &mut Vm, mut coll: Value, item: Value) -> Result<Value> {
    match &mut coll {
        Value::Vector(vector) => Vector::make_mut(vector).items_mut().push(item),
        Value::Map(_) | Value::Record(_) => return conj_entry(vm, coll, item),
        Value::Set(set) => {
            vm.realise_key(&item)?;
            let items = Set::make_mut(set).items_mut();
            match items.sorted_mut() {
                None => items.insert(item),
                Some(sorted) => vm.insert_sorted(sorted, item, Value::Nil)?,
            }
        }
        Value::List(list) => {
            // A sequence that merely began as a list does not keep its metadata.
            let meta = match list.count {
                Some(_) => coll_meta(list),
                None => Value::Nil,
            };
            let list = List::cons(item, coll);
            return Ok(if meta.is_nil() {
                list
            } else {
                list.with_meta(meta).unwrap_or(list)
            });
        }
        Value::Nil => return Ok(List::cons(item, Value::Nil)),
        Value::Seq(_) | Value::Lazy(_) => return Ok(List::cons(item, coll)),
        Value::Object(object) => match &**object {
            Object::Queue { items, taken, meta } => {
                let mut items = items.clone();
                items.push(item);
                return Ok(Value::from(Object::Queue {
                    items,
                    taken: *taken,
                    meta: meta.clone(),
                }));
            }
            _ => {
                return match vm.call_own_method(&coll, "cons", &[item])? {
                    Some(coll) => Ok(coll),
                    None => Err(wrong_type(&coll, "a collection", 0).into()),
                };
            }
        },
        _ => return Err(wrong_type(&coll, "a collection", 0).into()),
    }
    Ok(coll)
}

fn coll_meta(list: &Rc<List>) -> Value {
    list.extra
        .as_ref()
        .map_or(Value::Nil, |extra| extra.meta.clone())
}

/// Adds to a map: an entry, a vector of two items, or the entries of another map.
fn conj_entry(vm: &mut Vm, coll: Value, item: Value) -> Result<Value> {
    match &item {
        Value::Nil => Ok(coll),
        Value::Vector(pair) => match (pair.get(0), pair.get(1), pair.len()) {
            (Some(key), Some(value), 2) => assoc(vm, coll, key.clone(), value.clone()),
            _ => Err(Exception::new(
                Class::ILLEGAL_ARGUMENT,
                "E0332",
                format!(
                    "a vector added to a map must hold a key and a value; this one has {} items",
                    pair.len()
                ),
            )
            .argument(1)
            .into()),
        },
        Value::Map(_) | Value::Record(_) | Value::List(_) | Value::Seq(_) | Value::Lazy(_) => {
            let mut coll = coll;
            let mut entries = vm.iter(item)?;
            while let Some(entry) = entries.next(vm)? {
                if !matches!(entry, Value::Vector(_)) {
                    return Err(wrong_type(&entry, "a map entry", 1).into());
                }
                coll = conj_entry(vm, coll, entry)?;
            }
            Ok(coll)
        }
        _ => Err(wrong_type(&item, "a map entry or a map", 1)
            .of_class(Class::ILLEGAL_ARGUMENT)
            .into()),
    }
}

/// Sets the value of a key of a map, record or vector, or creates a map from nil; in place if it is not shared.
///
/// # Errors
/// When coll is not associative, or the index is past the end of a vector.
pub(crate) fn assoc(vm: &mut Vm, mut coll: Value, key: Value, value: Value) -> Result<Value> {
    match &mut coll {
        Value::Map(map) => {
            vm.realise_key(&key)?;
            let entries = Map::make_mut(map).entries_mut();
            match entries.sorted_mut() {
                None => entries.insert(key, value),
                Some(sorted) => vm.insert_sorted(sorted, key, value)?,
            }
        }
        Value::Vector(vector) => {
            let count = vector.len();
            let Some(int) = key.as_index() else {
                return Err(wrong_type(&key, "an index of the vector", 1)
                    .of_class(Class::ILLEGAL_ARGUMENT)
                    .into());
            };
            match usize::try_from(int) {
                Ok(idx) if idx < count => Vector::make_mut(vector).items_mut().set(idx, value),
                Ok(idx) if idx == count => Vector::make_mut(vector).items_mut().push(value),
                _ => return Err(out_of_bounds(int, count).argument(1).into()),
            }
        }
        Value::Record(record) => {
            vm.realise_key(&key)?;
            let mut fields = record.fields.clone();
            fields.insert(key, value);
            coll = Value::Record(Rc::new(Record {
                record_type: record.record_type.clone(),
                fields,
                meta: record.meta.clone(),
            }));
        }
        Value::Nil => {
            vm.realise_key(&key)?;
            return Ok(Value::map([(key, value)]));
        }
        _ => {
            return match vm.call_own_method(&coll, "assoc", &[key, value])? {
                Some(coll) => Ok(coll),
                None => Err(wrong_type(&coll, "a map, a record or a vector", 0).into()),
            };
        }
    }
    Ok(coll)
}

pub(crate) fn out_of_bounds(idx: i64, count: usize) -> Exception {
    crate::vm::out_of_bounds(idx, count)
}

fn contains(vm: &mut Vm, args: &Args<'_>) -> Result<bool> {
    let (coll, key) = (args.get(0), args.get(1));
    let within = |count: usize| {
        key.as_index()
            .is_some_and(|idx| usize::try_from(idx).is_ok_and(|idx| idx < count))
    };
    match coll {
        Value::Nil => Ok(false),
        Value::Vector(vector) => Ok(within(vector.len())),
        Value::Text(text) => {
            only_positions(args)?;
            Ok(within(text.count()))
        }
        Value::Map(_) | Value::Set(_) | Value::Record(_) => {
            vm.realise_key(key)?;
            let sorted = match coll {
                Value::Map(map) => map.entries().sorted(),
                Value::Set(set) => set.items().sorted(),
                _ => None,
            };
            if let Some(sorted) = sorted {
                let found = vm.find_sorted(sorted, key);
                return Ok(found.map_err(|signal| signal.at_argument(1))?.is_some());
            }
            Ok(match coll {
                Value::Map(map) => map.entries().contains(key),
                Value::Set(set) => set.contains(key),
                Value::Record(record) => record.fields.contains(key),
                _ => false,
            })
        }
        Value::Object(object) if let Object::Array(array) = &**object => {
            only_positions(args)?;
            Ok(within(array.len()))
        }
        Value::Object(object) if let Object::Bytes(bytes) = &**object => {
            only_positions(args)?;
            Ok(within(bytes.len()))
        }
        Value::Object(object) if matches!(**object, Object::Transient(_)) => {
            Ok(vm.lookup(coll, key)?.is_some())
        }
        _ if let Some(answer) = vm.call_first_own_method(
            coll,
            &["containsKey", "contains"],
            std::slice::from_ref(key),
        )? =>
        {
            Ok(answer.is_truthy())
        }
        _ => Err(Exception::new(
            Class::ILLEGAL_ARGUMENT,
            "E0333",
            format!("contains? does not work on {}", coll.kind()),
        )
        .argument(0)
        .hint("to look for an item of a sequence, use (some #{item} coll)")
        .into()),
    }
}

/// Rejects keys other than positions for a string or array.
fn only_positions(args: &Args<'_>) -> Result<()> {
    if args.get(1).is_number() {
        return Ok(());
    }
    Err(Exception::new(
        Class::ILLEGAL_ARGUMENT,
        "E0333",
        format!(
            "contains? needs an index for {}, got {}",
            args.get(0).kind(),
            crate::value::describe(args.get(1))
        ),
    )
    .argument(1)
    .hint("to look for an item, use (some #{item} coll)")
    .into())
}

/// Returns the number of items if it is known without walking.
pub(crate) fn known_count(coll: &Value) -> Option<usize> {
    match coll {
        Value::Nil => Some(0),
        Value::Vector(vector) => Some(vector.len()),
        Value::Map(map) => Some(map.len()),
        Value::Set(set) => Some(set.len()),
        Value::Text(text) => Some(text.count()),
        Value::Record(record) => Some(record.fields.len()),
        Value::List(list) => list.count.map(|count| count as usize),
        Value::Seq(view) => view.count(),
        Value::Object(object) => match &**object {
            Object::Queue { items, taken, .. } => Some(items.len() - taken),
            Object::Array(array) => Some(array.len()),
            Object::Bytes(bytes) => Some(bytes.len()),
            Object::Transient(inner) => inner.borrow().as_ref().and_then(known_count),
            _ => None,
        },
        _ => None,
    }
}

fn is_countable(coll: &Value) -> bool {
    matches!(coll, Value::List(_) | Value::Seq(_) | Value::Lazy(_))
}

/// Tells whether a seqable value has no items.
pub(crate) fn is_empty(vm: &mut Vm, coll: &Value) -> Result<bool> {
    match coll {
        Value::Vector(_) | Value::Map(_) | Value::Set(_) | Value::Text(_) => {
            Ok(known_count(coll) == Some(0))
        }
        coll => Ok(vm.seq(coll)?.is_nil()),
    }
}

pub(crate) fn empty(coll: &Value) -> Result<Value> {
    let empty = match coll {
        Value::Vector(vector) if vector.is_entry => return Ok(Value::Nil),
        Value::Vector(_) => Value::vector([]),
        Value::Map(map) => Value::Map(Rc::new(Map::new(map.entries().emptied()))),
        Value::Set(set) => Value::Set(Rc::new(Set::new(set.items().emptied()))),
        Value::List(list) if list.count.is_some() => List::empty(),
        Value::List(_) | Value::Seq(_) | Value::Lazy(_) => return Ok(List::empty()),
        Value::Object(object) => match &**object {
            Object::Queue { meta, .. } => {
                return Ok(Value::from(Object::Queue {
                    items: PVec::new(),
                    taken: 0,
                    meta: meta.clone(),
                }));
            }
            _ => return Ok(Value::Nil),
        },
        Value::Record(_) => {
            return Err(Exception::new(
                Class::UNSUPPORTED_OPERATION,
                "E0334",
                "a record always has its fields: it cannot be empty",
            )
            .argument(0)
            .into());
        }
        _ => return Ok(Value::Nil),
    };
    let meta = coll.meta();
    if meta.is_nil() {
        return Ok(empty);
    }
    Ok(empty.with_meta(meta).unwrap_or(empty))
}

fn nth(vm: &mut Vm, coll: Value, idx: i64, default: Option<Value>) -> Result<Value> {
    let index = usize::try_from(idx).ok();
    let (found, count) = match &coll {
        Value::Nil => return Ok(default.unwrap_or(Value::Nil)),
        Value::Vector(vector) => (index.and_then(|idx| vector.get(idx)).cloned(), vector.len()),
        Value::Text(text) => {
            let char = index.and_then(|idx| text.char_at(idx)).map(Value::Char);
            (char, text.count())
        }
        Value::Object(object) if let Object::Array(array) = &**object => {
            (index.and_then(|idx| array.get(idx)), array.len())
        }
        Value::Object(object) if let Object::Bytes(bytes) = &**object => {
            let byte = index.and_then(|idx| bytes.get(idx));
            (
                byte.map(|byte| Value::from(i64::from(*byte as i8))),
                bytes.len(),
            )
        }
        Value::Map(_) | Value::Set(_) | Value::Record(_) => {
            return Err(Exception::new(
                Class::UNSUPPORTED_OPERATION,
                "E0335",
                format!("nth does not work on {}, which has no order", coll.kind()),
            )
            .argument(0)
            .into());
        }
        Value::Object(object) if let Object::Transient(inner) = &**object => {
            let inner = inner.borrow().clone().ok_or_else(transient_is_done)?;
            return nth(vm, inner, idx, default);
        }
        Value::Object(_) if let Some(found) = super::regex::nth(&coll, idx, &default) => {
            return found;
        }
        Value::Object(_) if let Some(found) = nth_of_object(vm, &coll, idx, &default)? => {
            return Ok(found);
        }
        Value::List(_) | Value::Seq(_) | Value::Lazy(_) | Value::Object(_) => {
            return nth_of_seq(vm, coll, idx, default);
        }
        _ => {
            return Err(wrong_type(&coll, "a sequential collection or a string", 0)
                .of_class(Class::UNSUPPORTED_OPERATION)
                .into());
        }
    };
    found.or(default).ok_or_else(|| {
        let error = out_of_bounds(idx, count).argument(1);
        match coll {
            Value::Text(_) => error.of_class(Class::STRING_INDEX_OUT_OF_BOUNDS).into(),
            _ => error.into(),
        }
    })
}

/// Calls the method `nth` of an object that defines it.
fn nth_of_object(
    vm: &mut Vm,
    coll: &Value,
    idx: i64,
    default: &Option<Value>,
) -> Result<Option<Value>> {
    let idx = Value::Int(idx);
    match default {
        Some(default) => vm.call_own_method(coll, "nth", &[idx, default.clone()]),
        None => vm.call_own_method(coll, "nth", &[idx]),
    }
}

fn nth_of_seq(vm: &mut Vm, coll: Value, idx: i64, default: Option<Value>) -> Result<Value> {
    let mut found = None;
    let mut left = idx;
    if idx >= 0 {
        walk::each(vm, coll, &mut |_, item| {
            if left == 0 {
                found = Some(item);
                return Ok(ControlFlow::Break(()));
            }
            left -= 1;
            Ok(ControlFlow::Continue(()))
        })?;
    }
    match found.or(default) {
        Some(value) => Ok(value),
        None => {
            let count = usize::try_from(idx.saturating_sub(left)).unwrap_or(0);
            Err(out_of_bounds(idx, count).argument(1).into())
        }
    }
}

fn pop(args: &mut Args<'_>) -> Result<Value> {
    let mut coll = args.take(0);
    match &mut coll {
        Value::Nil => return Ok(Value::Nil),
        Value::Vector(vector) if !vector.is_empty() => {
            Vector::make_mut(vector).items_mut().pop();
            return Ok(coll);
        }
        Value::List(list) if list.count.is_some_and(|count| count > 0) => {
            return Ok(match &list.rest {
                Value::Nil => List::empty(),
                rest => rest.clone(),
            });
        }
        Value::Object(object) => {
            if let Object::Queue { items, taken, meta } = &**object {
                let mut items = items.clone();
                let mut taken = (taken + 1).min(items.len());
                // More than half of the stored items are consumed: store only the rest.
                if taken * 2 > items.len() {
                    items = items.slice(taken, items.len());
                    taken = 0;
                }
                let meta = meta.clone();
                return Ok(Value::from(Object::Queue { items, taken, meta }));
            }
        }
        _ => {}
    }
    match &coll {
        Value::Vector(_) | Value::List(_) if known_count(&coll).is_some() => Err(Exception::new(
            Class::ILLEGAL_STATE,
            "E0336",
            format!("cannot pop {} without items", coll.kind()),
        )
        .argument(0)
        .into()),
        _ => Err(wrong_type(&coll, "a vector, list or queue", 0).into()),
    }
}

/// Returns a queue without items: `clojure.lang.PersistentQueue/EMPTY`.
pub(super) fn empty_queue() -> Value {
    Value::from(Object::Queue {
        items: PVec::new(),
        taken: 0,
        meta: Value::Nil,
    })
}
