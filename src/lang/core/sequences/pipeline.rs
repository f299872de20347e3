//! Functions that process a sequence item by item: as lazy sequences, and without a collection as transducers.

use std::collections::VecDeque;

use super::count_argument;
use super::function::Function;
use super::stage::{Parts, Step, lazy, lazy_here};
use crate::core::transducers::transducer;
use crate::core::vectors::next_of_all;
use crate::value::{
    Arity, Class, Exception, Lazy, List, Native, PSet, PVec, Result, SeqView, Value, Vector,
};
use crate::vm::{Args, Iter, Vm, join};

/// The functions of this area.
pub(in crate::core) const FNS: &[Native] = &[
    DEDUPE,
    DISTINCT,
    DROP,
    DROP_LAST,
    DROP_WHILE,
    FILTER,
    INTERPOSE,
    KEEP,
    KEEP_INDEXED,
    MAP,
    MAPCAT,
    MAP_INDEXED,
    PARTITION_ALL,
    PARTITION_BY,
    RANDOM_SAMPLE,
    REMOVE,
    REPLACE,
    TAKE,
    TAKE_NTH,
    TAKE_WHILE,
];

const DEDUPE: Native = Native {
    name: "dedupe",
    usage: "(dedupe)\n(dedupe coll)",
    doc: "Returns the items of coll without those that equal their predecessor.",
    examples: &[("(dedupe [1 1 2 1])", "(1 2 1)")],
    arity: Arity::between(0, 1),
    run: |vm, mut args| Ok(either(vm, &mut args, 0, Step::Dedupe(None))),
};

const DISTINCT: Native = Native {
    name: "distinct",
    usage: "(distinct)\n(distinct coll)",
    doc: "Returns the distinct items of coll.",
    examples: &[("(distinct [1 2 1 3])", "(1 2 3)")],
    arity: Arity::between(0, 1),
    run: |vm, mut args| Ok(either(vm, &mut args, 0, Step::Distinct(PSet::new()))),
};

const DROP: Native = Native {
    name: "drop",
    usage: "(drop n)\n(drop n coll)",
    doc: "Returns the items of coll after the first n.",
    examples: &[("(drop 2 [1 2 3 4])", "(3 4)"), ("(drop 9 [1])", "()")],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        let count = count_argument(&args, 0)?;
        Ok(either(vm, &mut args, 1, Step::Drop(count)))
    },
};

const DROP_LAST: Native = Native {
    name: "drop-last",
    usage: "(drop-last coll)\n(drop-last n coll)",
    doc: "Returns the items of coll except the last n (1).",
    examples: &[
        ("(drop-last [1 2 3])", "(1 2)"),
        ("(drop-last 2 [1 2 3])", "(1)"),
    ],
    arity: Arity::between(1, 2),
    run: |_, mut args| {
        let count = if args.len() == 2 {
            count_argument(&args, 0)?
        } else {
            1
        };
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let coll = args.take(args.len() - 1);
        Ok(lazy(Step::Delay(count, VecDeque::new()), coll))
    },
};

const DROP_WHILE: Native = Native {
    name: "drop-while",
    usage: "(drop-while pred)\n(drop-while pred coll)",
    doc: "Returns the items of coll from the first on for which pred does not hold.",
    examples: &[("(drop-while neg? [-1 0 -2])", "(0 -2)")],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        let pred = args.take(0);
        Ok(either(
            vm,
            &mut args,
            1,
            Step::DropWhile(Some(Function::new(pred))),
        ))
    },
};

const FILTER: Native = Native {
    name: "filter",
    usage: "(filter pred)\n(filter pred coll)",
    doc: "Returns the items of coll for which pred holds.",
    examples: &[("(filter odd? [1 2 3])", "(1 3)")],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        let pred = args.take(0);
        Ok(either(vm, &mut args, 1, Step::Filter(Function::new(pred))))
    },
};

const INTERPOSE: Native = Native {
    name: "interpose",
    usage: "(interpose separator)\n(interpose separator coll)",
    doc: "Returns the items of coll with separator between them.",
    examples: &[("(interpose :x [1 2 3])", "(1 :x 2 :x 3)")],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        let separator = args.take(0);
        Ok(either(vm, &mut args, 1, Step::Interpose(separator, false)))
    },
};

const KEEP: Native = Native {
    name: "keep",
    usage: "(keep f)\n(keep f coll)",
    doc: "Returns the results of f for each item of coll, without nils.",
    examples: &[("(keep :a [{:a 1} {} {:a false}])", "(1 false)")],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        let function = args.take(0);
        Ok(either(
            vm,
            &mut args,
            1,
            Step::Keep(Function::new(function)),
        ))
    },
};

const KEEP_INDEXED: Native = Native {
    name: "keep-indexed",
    usage: "(keep-indexed f)\n(keep-indexed f coll)",
    doc: "Returns the results of f for each index and item of coll, without nils.",
    examples: &[(
        "(keep-indexed (fn [i x] (if (odd? i) x)) [:a :b :c :d])",
        "(:b :d)",
    )],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        let function = args.take(0);
        Ok(either(vm, &mut args, 1, Step::KeepIndexed(function, 0)))
    },
};

const MAP: Native = Native {
    name: "map",
    usage: "(map f)\n(map f coll)\n(map f coll & colls)",
    doc: "Returns the results of f for each item of coll, or for the items of several colls at each position.",
    examples: &[
        ("(map inc [1 2 3])", "(2 3 4)"),
        ("(map + [1 2] [10 20 30])", "(11 22)"),
    ],
    arity: Arity::at_least(1),
    run: |vm, mut args| {
        let function = args.take(0);
        if args.len() > 2 {
            let colls = take_from(&mut args, 1);
            return Ok(map_all(function, colls));
        }
        Ok(either(vm, &mut args, 1, Step::Map(Function::new(function))))
    },
};

const MAP_INDEXED: Native = Native {
    name: "map-indexed",
    usage: "(map-indexed f)\n(map-indexed f coll)",
    doc: "Returns the results of f for each index and item of coll.",
    examples: &[("(map-indexed vector [:a :b])", "([0 :a] [1 :b])")],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        let function = args.take(0);
        Ok(either(vm, &mut args, 1, Step::MapIndexed(function, 0)))
    },
};

const MAPCAT: Native = Native {
    name: "mapcat",
    usage: "(mapcat f)\n(mapcat f coll)\n(mapcat f coll & colls)",
    doc: "Returns the items of the results of f for each item of coll, joined.",
    examples: &[("(mapcat reverse [[1 2] [3 4]])", "(2 1 4 3)")],
    arity: Arity::at_least(1),
    run: |vm, mut args| {
        let function = args.take(0);
        if args.len() > 1 && !super::super::predicates::is_callable(&function) {
            return Err(vm.not_callable(&function));
        }
        if args.len() > 2 {
            let colls = take_from(&mut args, 1);
            return Ok(lazy(Step::Cat, map_all(function, colls)));
        }
        if args.len() == 2 && is_scalar(args.get(1)) {
            return Err(args.expected(1, "something seqable"));
        }
        Ok(either(
            vm,
            &mut args,
            1,
            Step::Mapcat(Function::new(function)),
        ))
    },
};

/// Tells whether a value is certainly not a collection.
fn is_scalar(value: &Value) -> bool {
    value.is_number()
        || super::super::functions::is_fn(value)
        || matches!(
            value,
            Value::Bool(_) | Value::Char(_) | Value::Keyword(_) | Value::Symbol(_) | Value::Name(_)
        )
}

const PARTITION_ALL: Native = Native {
    name: "partition-all",
    usage: "(partition-all n)\n(partition-all n coll)\n(partition-all n step coll)",
    doc: "Returns parts of n items each, starting step (n) items apart; parts at the end may be smaller.",
    examples: &[
        ("(partition-all 2 [1 2 3])", "((1 2) (3))"),
        ("(partition-all 2 1 [1 2 3])", "((1 2) (2 3) (3))"),
    ],
    arity: Arity::between(1, 3),
    run: |vm, mut args| {
        let size = part_size(&args, 0)?;
        if args.len() == 3 {
            let step = part_size(&args, 1)?;
            return Ok(super::parts::all(size, step, true, args.take(2)));
        }
        let parts = Parts {
            size,
            items: Vec::new(),
            as_lists: args.len() == 2,
        };
        Ok(either(vm, &mut args, 1, Step::PartitionAll(parts)))
    },
};

const PARTITION_BY: Native = Native {
    name: "partition-by",
    usage: "(partition-by f)\n(partition-by f coll)",
    doc: "Splits coll each time that f returns a new value.",
    examples: &[("(partition-by odd? [1 3 2 5])", "((1 3) (2) (5))")],
    arity: Arity::between(1, 2),
    run: |_, mut args| {
        let function = Function::new(args.take(0));
        if args.len() == 2 {
            return Ok(super::runs::partition_by(function, args.take(1)));
        }
        Ok(transducer(Step::PartitionBy {
            function,
            last: None,
            parts: Parts {
                size: 0,
                items: Vec::new(),
                as_lists: false,
            },
        }))
    },
};

const RANDOM_SAMPLE: Native = Native {
    name: "random-sample",
    usage: "(random-sample probability)\n(random-sample probability coll)",
    doc: "Returns each item of coll with a probability from 0 to 1.",
    examples: &[("(random-sample 1.0 [1 2 3])", "(1 2 3)")],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        let probability = match args.get(0) {
            Value::Float(float) => *float,
            Value::Int(int) => *int as f64,
            _ => return Err(args.expected(0, "a number")),
        };
        Ok(either(vm, &mut args, 1, Step::RandomSample(probability)))
    },
};

const REMOVE: Native = Native {
    name: "remove",
    usage: "(remove pred)\n(remove pred coll)",
    doc: "Returns the items of coll for which pred does not hold.",
    examples: &[("(remove odd? [1 2 3])", "(2)")],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        let pred = args.take(0);
        Ok(either(vm, &mut args, 1, Step::Remove(Function::new(pred))))
    },
};

const REPLACE: Native = Native {
    name: "replace",
    usage: "(replace replacements)\n(replace replacements coll)",
    doc: "Returns coll with each item that is a key of replacements replaced by its value.",
    examples: &[
        ("(replace {1 :one} [1 2])", "[:one 2]"),
        ("(replace {1 :one} '(1 2))", "(:one 2)"),
    ],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        let replacements = args.take(0);
        if let Value::Vector(vector) = args.get(1) {
            let mut items = PVec::new();
            for item in vector.iter() {
                vm.charge(1)?;
                let found = crate::core::maps::find(vm, &replacements, item)?;
                items.push(found.map_or_else(|| item.clone(), |(_, value)| value));
            }
            let replaced = Vector::new(items).with_extra(vector.extra.clone());
            return Ok(Value::Vector(std::rc::Rc::new(replaced)));
        }
        Ok(either(vm, &mut args, 1, Step::Replace(replacements)))
    },
};

const TAKE: Native = Native {
    name: "take",
    usage: "(take n)\n(take n coll)",
    doc: "Returns the first n items of coll.",
    examples: &[("(take 2 [1 2 3])", "(1 2)"), ("(take 2 [1])", "(1)")],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        let count = count_argument(&args, 0)?;
        Ok(either(vm, &mut args, 1, Step::Take(count)))
    },
};

const TAKE_NTH: Native = Native {
    name: "take-nth",
    usage: "(take-nth n)\n(take-nth n coll)",
    doc: "Returns the first item of coll and each nth after it.",
    examples: &[("(take-nth 2 [1 2 3 4 5])", "(1 3 5)")],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        if args.len() == 1 {
            // A negative period counts as its absolute value, because the remainder is compared with 0.
            let period = match args.get(0) {
                Value::Int(int) => int.unsigned_abs(),
                _ => count_argument(&args, 0)?,
            };
            return Ok(transducer(Step::TakeNth(period, 0)));
        }
        match count_argument(&args, 0)? {
            0 => Ok(first_again_and_again(args.take(1))),
            period => Ok(either(vm, &mut args, 1, Step::TakeNth(period, 0))),
        }
    },
};

/// Returns the first item repeatedly, because a period of 0 never leaves it.
fn first_again_and_again(coll: Value) -> Value {
    Lazy::native(move |vm| {
        let mut walk = vm.iter(coll)?;
        Ok(match walk.next(vm)? {
            Some(first) => Value::Seq(std::rc::Rc::new(SeqView::Repeat {
                value: first,
                count: None,
            })),
            None => Value::Nil,
        })
    })
}

const TAKE_WHILE: Native = Native {
    name: "take-while",
    usage: "(take-while pred)\n(take-while pred coll)",
    doc: "Returns the items of coll before the first for which pred does not hold.",
    examples: &[("(take-while pos? [1 2 0 3])", "(1 2)")],
    arity: Arity::between(1, 2),
    run: |vm, mut args| {
        let pred = args.take(0);
        Ok(either(
            vm,
            &mut args,
            1,
            Step::TakeWhile(Function::new(pred)),
        ))
    },
};

/// Returns the lazy sequence over the collection at `idx`, or the transducer if there is no collection.
fn either(vm: &Vm, args: &mut Args<'_>, idx: usize, step: Step) -> Value {
    if args.len() > idx {
        lazy_here(vm, step, args.take(idx))
    } else {
        transducer(step)
    }
}

/// Moves the arguments from `idx` on out.
pub(crate) fn take_from(args: &mut Args<'_>, idx: usize) -> Vec<Value> {
    (idx..args.len()).map(|idx| args.take(idx)).collect()
}

/// Returns the size of a part: at least 1, because otherwise the parts never end.
pub(crate) fn part_size(args: &Args<'_>, idx: usize) -> Result<usize> {
    let size = match args.get(idx) {
        big @ Value::BigInt(_) => big.as_index().and_then(|size| usize::try_from(size).ok()),
        _ => Some(args.index(idx)?),
    };
    match size.unwrap_or(usize::MAX) {
        0 => Err(Exception::new(
            Class::ILLEGAL_ARGUMENT,
            "E0338",
            "a part must have at least 1 item, and parts must be at least 1 apart",
        )
        .argument(idx)
        .into()),
        size => Ok(size),
    }
}

/// Returns the lazy sequence of the results of `function` for the items of `colls` at each position.
pub(crate) fn map_all(function: Value, colls: Vec<Value>) -> Value {
    Lazy::native(move |vm| {
        let mut walks: Vec<Iter> = colls.into_iter().map(Iter::new).collect();
        let Some(mut items) = next_of_all(vm, &mut walks)? else {
            return Ok(Value::Nil);
        };
        let first = vm.invoke(&function, &mut items)?;
        let rests = walks.into_iter().map(Iter::rest).collect();
        Ok(List::cons(first, map_all(function, rests)))
    })
}

/// Returns the items of each of `colls`, one after another.
pub(crate) fn concat(vm: &mut Vm, mut colls: Vec<Value>) -> Result<Value> {
    vm.charge(1)?;
    Ok(match colls.len() {
        0 => Lazy::native(|_| Ok(Value::Nil)),
        1 => {
            let only = colls.remove(0);
            Lazy::native(move |_| Ok(only))
        }
        2 => {
            let second = colls.remove(1);
            let first = colls.remove(0);
            Lazy::native(move |_| Ok(join(first, second)))
        }
        _ => lazy(Step::Cat, Value::list(colls)),
    })
}
