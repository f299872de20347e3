//! Functions that generate sequences, and that walk nested ones.

use std::rc::Rc;

use super::pipeline::{concat as concat_all, map_all, take_from};
use super::stage::{Step, lazy};
use crate::value::{Arity, Lazy, List, Native, Result, SeqView, Value};
use crate::vm::{Args, Vm};

/// The functions of this area.
pub(in crate::core) const FNS: &[Native] = &[
    CONCAT, CYCLE, FLATTEN, INTERLEAVE, ITERATE, ITERATION, RANGE, REPEAT, REPEATEDLY, REPLICATE,
    TREE_SEQ,
];

const CONCAT: Native = Native {
    name: "concat",
    usage: "(concat & colls)",
    doc: "Returns the items of each of colls, one after another.",
    examples: &[("(concat [1 2] [3])", "(1 2 3)"), ("(concat)", "()")],
    arity: Arity::at_least(0),
    run: concat,
};

const CYCLE: Native = Native {
    name: "cycle",
    usage: "(cycle coll)",
    doc: "Returns the items of coll repeatedly, without end.",
    examples: &[
        ("(take 5 (cycle [1 2]))", "(1 2 1 2 1)"),
        ("(cycle [])", "()"),
    ],
    arity: Arity::exactly(1),
    run: |vm, mut args| {
        let all = args.take(0);
        match vm.seq(&all)? {
            Value::Nil => Ok(List::empty()),
            seq => Ok(cycle(seq.clone(), seq)),
        }
    },
};

const FLATTEN: Native = Native {
    name: "flatten",
    usage: "(flatten coll)",
    doc: "Returns the items of nested sequential collections in one sequence; () for anything else.",
    examples: &[
        ("(flatten [1 [2 '(3 [4])]])", "(1 2 3 4)"),
        ("(flatten 1)", "()"),
    ],
    arity: Arity::exactly(1),
    run: |_, mut args| {
        let coll = args.take(0);
        if !is_sequential(&coll) {
            return Ok(List::empty());
        }
        Ok(flatten(vec![coll]))
    },
};

const INTERLEAVE: Native = Native {
    name: "interleave",
    usage: "(interleave & colls)",
    doc: "Returns the first item of each of colls, then the second of each, up to the end of the shortest.",
    examples: &[("(interleave [1 2 3] [:a :b])", "(1 :a 2 :b)")],
    arity: Arity::at_least(0),
    run: |vm, mut args| match args.len() {
        0 => Ok(List::empty()),
        1 => concat_all(vm, vec![args.take(0)]),
        _ => {
            let rows = map_all(Value::Native(&super::LIST), take_from(&mut args, 0));
            Ok(lazy(Step::Cat, rows))
        }
    },
};

const ITERATE: Native = Native {
    name: "iterate",
    usage: "(iterate f x)",
    doc: "Returns x, (f x), (f (f x)) and so on, without end.",
    examples: &[("(take 4 (iterate inc 1))", "(1 2 3 4)")],
    arity: Arity::exactly(2),
    run: |_, mut args| Ok(iterate(args.take(0), args.take(1))),
};

const ITERATION: Native = Native {
    name: "iteration",
    usage: "(iteration step & {:keys [somef vf kf initk]})",
    doc: "Returns the values of successive (step key) calls, such as pages of results.\n\
          somef tells whether a result has a value (some?), vf returns the value (identity), kf returns the next key \
          or nil at the end (identity), initk is the first key (nil).",
    examples: &[(
        "(iteration (fn [k] {:page k :next (if (< k 2) (inc k))}) :initk 0 :vf :page :kf :next)",
        "(0 1 2)",
    )],
    arity: Arity::at_least(1),
    run: |vm, mut args| {
        let mut pages = Pages {
            step: args.take(0),
            somef: None,
            vf: None,
            kf: None,
        };
        let mut first = Value::Nil;
        let options = options(vm, &mut args)?;
        for (key, value) in options {
            match key.as_keyword() {
                Some(key) if key.is("somef") => pages.somef = Some(value),
                Some(key) if key.is("vf") => pages.vf = Some(value),
                Some(key) if key.is("kf") => pages.kf = Some(value),
                Some(key) if key.is("initk") => first = value,
                _ => {}
            }
        }
        Ok(pages.from(first))
    },
};

const RANGE: Native = Native {
    name: "range",
    usage: "(range)\n(range end)\n(range start end)\n(range start end step)",
    doc: "Returns the numbers from start (0) up to but not including end (infinity), step (1) apart.",
    examples: &[
        ("(range 4)", "(0 1 2 3)"),
        ("(range 1 10 3)", "(1 4 7)"),
        ("(range 3 0 -1)", "(3 2 1)"),
    ],
    arity: Arity::between(0, 3),
    run: range,
};

const REPEAT: Native = Native {
    name: "repeat",
    usage: "(repeat x)\n(repeat n x)",
    doc: "Returns x repeatedly: n times, or without end.",
    examples: &[
        ("(repeat 3 :x)", "(:x :x :x)"),
        ("(take 2 (repeat 1))", "(1 1)"),
    ],
    arity: Arity::between(1, 2),
    run: |_, mut args| {
        if args.len() == 1 {
            let value = args.take(0);
            return Ok(Value::Seq(Rc::new(SeqView::Repeat { value, count: None })));
        }
        repeat(&mut args)
    },
};

const REPEATEDLY: Native = Native {
    name: "repeatedly",
    usage: "(repeatedly f)\n(repeatedly n f)",
    doc: "Returns the results of calls of f without arguments: n of them, or without end.",
    examples: &[("(repeatedly 2 (constantly 1))", "(1 1)")],
    arity: Arity::between(1, 2),
    run: |_, mut args| {
        let function = args.take(args.len() - 1);
        let calls = repeatedly(function);
        if args.len() == 1 {
            return Ok(calls);
        }
        Ok(lazy(Step::Take(super::count_argument(&args, 0)?), calls))
    },
};

const REPLICATE: Native = Native {
    name: "replicate",
    usage: "(replicate n x)",
    doc: "Returns x n times; the older name of repeat.",
    examples: &[("(replicate 2 :x)", "(:x :x)")],
    arity: Arity::exactly(2),
    run: |_, mut args| repeat(&mut args),
};

const TREE_SEQ: Native = Native {
    name: "tree-seq",
    usage: "(tree-seq branch? children root)",
    doc: "Returns the nodes of a tree, each before its children, which are (children node) if (branch? node) holds.",
    examples: &[("(tree-seq vector? seq [1 [2]])", "([1 [2]] 1 [2] 2)")],
    arity: Arity::exactly(3),
    run: |_, mut args| {
        let tree = Tree {
            branch: args.take(0),
            children: args.take(1),
        };
        let root = args.take(2);
        Ok(Lazy::native(move |_| Ok(tree.node(root, Vec::new()))))
    },
};

pub(in crate::core) fn concat(vm: &mut Vm, mut args: Args<'_>) -> Result<Value> {
    let colls = take_from(&mut args, 0);
    concat_all(vm, colls)
}

fn cycle(all: Value, at: Value) -> Value {
    Lazy::native(move |vm| {
        let next = match vm.uncons(at)? {
            Some(next) => Some(next),
            None => vm.uncons(all.clone())?,
        };
        Ok(next.map_or(Value::Nil, |(first, rest)| {
            List::cons(first, cycle(all, rest))
        }))
    })
}

/// Tells whether a value is a sequential collection: of a kind for which order is part of equality.
pub(crate) fn is_sequential(value: &Value) -> bool {
    match value {
        Value::Vector(_) | Value::List(_) | Value::Seq(_) | Value::Lazy(_) => true,
        Value::Object(object) => matches!(**object, crate::value::Object::Queue { .. }),
        _ => false,
    }
}

/// Walks nested sequences with the rests of the outer ones on a stack.
fn flatten(mut outer: Vec<Value>) -> Value {
    Lazy::native(move |vm| {
        while let Some(at) = outer.pop() {
            vm.charge(1)?;
            let Some((item, rest)) = vm.uncons(at)? else {
                continue;
            };
            if !rest.is_nil() {
                outer.push(rest);
            }
            if is_sequential(&item) {
                outer.push(item);
            } else {
                return Ok(List::cons(item, flatten(outer)));
            }
        }
        Ok(Value::Nil)
    })
}

fn iterate(function: Value, value: Value) -> Value {
    let next = value.clone();
    let rest = Lazy::native(move |vm| {
        let next = vm.invoke(&function, &mut [next])?;
        Ok(iterate(function, next))
    });
    List::cons(value, rest)
}

/// The functions of `iteration`.
#[derive(Clone)]
struct Pages {
    step: Value,
    somef: Option<Value>,
    vf: Option<Value>,
    kf: Option<Value>,
}

impl Pages {
    fn from(self, key: Value) -> Value {
        Lazy::native(move |vm| {
            let result = vm.invoke(&self.step, &mut [key])?;
            let has_value = match &self.somef {
                Some(somef) => vm.call(somef, std::slice::from_ref(&result))?.is_truthy(),
                None => !result.is_nil(),
            };
            if !has_value {
                return Ok(Value::Nil);
            }
            let value = apply_or(vm, self.vf.as_ref(), &result)?;
            let key = apply_or(vm, self.kf.as_ref(), &result)?;
            let rest = if key.is_nil() {
                Value::Nil
            } else {
                self.from(key)
            };
            Ok(List::cons(value, rest))
        })
    }
}

fn apply_or(vm: &mut Vm, function: Option<&Value>, value: &Value) -> Result<Value> {
    match function {
        Some(function) => vm.call(function, std::slice::from_ref(value)),
        None => Ok(value.clone()),
    }
}

/// Returns keyword arguments: pairs, with or without a map at the end.
fn options(vm: &mut Vm, args: &mut Args<'_>) -> Result<Vec<(Value, Value)>> {
    let mut options = Vec::new();
    let mut idx = 1;
    while idx + 1 < args.len() {
        options.push((args.take(idx), args.take(idx + 1)));
        idx += 2;
    }
    if idx < args.len() {
        for entry in vm.items(args.take(idx))? {
            options.push(crate::core::maps::pair(&entry)?);
        }
    }
    Ok(options)
}

fn range(vm: &mut Vm, mut args: Args<'_>) -> Result<Value> {
    let (start, end, step) = match args.len() {
        0 => (Value::Int(0), Value::Int(i64::MAX), Value::Int(1)),
        1 => (Value::Int(0), args.take(0), Value::Int(1)),
        2 => (args.take(0), args.take(1), Value::Int(1)),
        _ => (args.take(0), args.take(1), args.take(2)),
    };
    match (&start, &end, &step) {
        (Value::Int(start), Value::Int(end), Value::Int(step)) => {
            let goes = (*step > 0 && start < end) || (*step < 0 && start > end);
            if *step == 0 && start != end {
                return Ok(Value::Seq(Rc::new(SeqView::Repeat {
                    value: Value::Int(*start),
                    count: None,
                })));
            }
            if !goes {
                return Ok(List::empty());
            }
            Ok(Value::Seq(Rc::new(SeqView::Range {
                start: *start,
                end: *end,
                step: *step,
            })))
        }
        _ => {
            let zero = vm.compare(&step, &Value::Int(0))?;
            Ok(numbers(start, end, step, zero))
        }
    }
}

/// Returns a range of numbers that are not all integers. `sign` is the sign of the step.
fn numbers(at: Value, end: Value, step: Value, sign: std::cmp::Ordering) -> Value {
    Lazy::native(move |vm| {
        vm.charge(1)?;
        let order = vm.compare(&at, &end)?;
        if order.is_eq() || (sign.is_ne() && order == sign) {
            return Ok(Value::Nil);
        }
        let next = crate::value::number::add_promoting(&at, &step)?;
        Ok(List::cons(at, numbers(next, end, step, sign)))
    })
}

fn repeat(args: &mut Args<'_>) -> Result<Value> {
    let count = match args.get(0) {
        Value::Int(int) => u64::try_from(*int).unwrap_or(0),
        _ => u64::try_from(args.position(0)?).unwrap_or(0),
    };
    if count == 0 {
        return Ok(List::empty());
    }
    Ok(Value::Seq(Rc::new(SeqView::Repeat {
        value: args.take(1),
        count: Some(count),
    })))
}

fn repeatedly(function: Value) -> Value {
    Lazy::native(move |vm| {
        let item = vm.invoke(&function, &mut [])?;
        Ok(List::cons(item, repeatedly(function)))
    })
}

/// The functions of `tree-seq`.
struct Tree {
    branch: Value,
    children: Value,
}

impl Tree {
    /// Returns a node and the rest: its children, then the rests of the levels above.
    fn node(self, node: Value, mut above: Vec<Value>) -> Value {
        let parent = node.clone();
        let rest = Lazy::native(move |vm| {
            if vm
                .call(&self.branch, std::slice::from_ref(&parent))?
                .is_truthy()
            {
                above.push(vm.invoke(&self.children, &mut [parent])?);
            }
            while let Some(level) = above.pop() {
                vm.charge(1)?;
                if let Some((node, rest)) = vm.uncons(level)? {
                    above.push(rest);
                    return Ok(self.node(node, above));
                }
            }
            Ok(Value::Nil)
        });
        List::cons(node, rest)
    }
}
