//! Functions that split sequences into parts.

use super::function::Function;
use super::pipeline::part_size;
use super::stage::{Step, lazy};
use super::{count_argument, last_items};
use crate::value::{Arity, Lazy, List, Native, Result, SeqView, Value};
use crate::vm::{Args, Vm};

/// The functions of this area.
pub(in crate::core) const FNS: &[Native] = &[
    PARTITION,
    PARTITIONV,
    PARTITIONV_ALL,
    SPLITV_AT,
    SPLIT_AT,
    SPLIT_WITH,
    TAKE_LAST,
];

const PARTITION: Native = Native {
    name: "partition",
    usage: "(partition n coll)\n(partition n step coll)\n(partition n step pad coll)",
    doc: "Returns parts of n items each, starting step (n) items apart.\n\
          A part at the end that is too small is left out, or filled with items of pad.",
    examples: &[
        ("(partition 2 [1 2 3 4 5])", "((1 2) (3 4))"),
        ("(partition 2 1 [1 2 3])", "((1 2) (2 3))"),
        ("(partition 2 2 [:x] [1 2 3])", "((1 2) (3 :x))"),
    ],
    arity: Arity::between(2, 4),
    run: |_, mut args| partition(&mut args, true),
};

const PARTITIONV: Native = Native {
    name: "partitionv",
    usage: "(partitionv n coll)\n(partitionv n step coll)\n(partitionv n step pad coll)",
    doc: "Returns parts as partition does, each a vector.",
    examples: &[("(partitionv 2 [1 2 3 4 5])", "([1 2] [3 4])")],
    arity: Arity::between(2, 4),
    run: |_, mut args| partition(&mut args, false),
};

const PARTITIONV_ALL: Native = Native {
    name: "partitionv-all",
    usage: "(partitionv-all n)\n(partitionv-all n coll)\n(partitionv-all n step coll)",
    doc: "Returns parts as partition-all does, each a vector.",
    examples: &[("(partitionv-all 2 [1 2 3])", "([1 2] [3])")],
    arity: Arity::between(1, 3),
    run: |_, mut args| {
        let size = part_size(&args, 0)?;
        let step = if args.len() == 3 {
            part_size(&args, 1)?
        } else {
            size
        };
        if args.len() == 1 {
            return Ok(crate::core::transducers::transducer(Step::PartitionAll(
                super::stage::Parts {
                    size,
                    items: Vec::new(),
                    as_lists: false,
                },
            )));
        }
        Ok(all(size, step, false, args.take(args.len() - 1)))
    },
};

const SPLIT_AT: Native = Native {
    name: "split-at",
    usage: "(split-at n coll)",
    doc: "Returns a vector of (take n coll) and (drop n coll).",
    examples: &[("(split-at 1 [1 2 3])", "[(1) (2 3)]")],
    arity: Arity::exactly(2),
    run: |_, mut args| {
        let count = count_argument(&args, 0)?;
        let coll = args.take(1);
        Ok(Value::vector([
            lazy(Step::Take(count), coll.clone()),
            lazy(Step::Drop(count), coll),
        ]))
    },
};

const SPLIT_WITH: Native = Native {
    name: "split-with",
    usage: "(split-with pred coll)",
    doc: "Returns a vector of (take-while pred coll) and (drop-while pred coll).",
    examples: &[("(split-with odd? [1 3 4 5])", "[(1 3) (4 5)]")],
    arity: Arity::exactly(2),
    run: |_, mut args| {
        let (pred, coll) = (Function::new(args.take(0)), args.take(1));
        Ok(Value::vector([
            lazy(Step::TakeWhile(pred.clone()), coll.clone()),
            lazy(Step::DropWhile(Some(pred)), coll),
        ]))
    },
};

const SPLITV_AT: Native = Native {
    name: "splitv-at",
    usage: "(splitv-at n coll)",
    doc: "Returns a vector of the first n items of coll, as a vector, and of (drop n coll).",
    examples: &[("(splitv-at 1 [1 2 3])", "[[1] (2 3)]")],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let count = count_argument(&args, 0)?;
        let coll = args.take(1);
        let first = vm.items(lazy(Step::Take(count), coll.clone()))?;
        Ok(Value::vector([
            Value::vector(first),
            lazy(Step::Drop(count), coll),
        ]))
    },
};

const TAKE_LAST: Native = Native {
    name: "take-last",
    usage: "(take-last n coll)",
    doc: "Returns the last n items of coll, or nil if there are no items.",
    examples: &[
        ("(take-last 2 [1 2 3])", "(2 3)"),
        ("(take-last 2 [])", "nil"),
    ],
    arity: Arity::exactly(2),
    run: |vm, mut args| {
        let count = usize::try_from(count_argument(&args, 0)?).unwrap_or(usize::MAX);
        let items = last_items(vm, args.take(1), count)?;
        Ok(SeqView::chunk(items.into(), Value::Nil))
    },
};

/// The treatment of a last part that is too small.
#[derive(Clone)]
enum Short {
    Drop,
    Keep,
    Fill(Value),
}

/// The parameters of splitting.
#[derive(Clone)]
struct Cut {
    size: usize,
    step: usize,
    short: Short,
    as_lists: bool,
}

/// Returns the parts; the remaining items at the end form smaller ones.
pub(crate) fn all(size: usize, step: usize, as_lists: bool, coll: Value) -> Value {
    cut(
        Cut {
            size,
            step,
            short: Short::Keep,
            as_lists,
        },
        coll,
    )
}

fn partition(args: &mut Args<'_>, as_lists: bool) -> Result<Value> {
    let size = part_size(args, 0)?;
    let step = if args.len() > 2 {
        part_size(args, 1)?
    } else {
        size
    };
    let short = if args.len() == 4 {
        Short::Fill(args.take(2))
    } else {
        Short::Drop
    };
    let rule = Cut {
        size,
        step,
        short,
        as_lists,
    };
    Ok(cut(rule, args.take(args.len() - 1)))
}

fn cut(rule: Cut, coll: Value) -> Value {
    Lazy::native(move |vm| {
        let Some((mut items, rest)) = part(vm, &rule, coll)? else {
            return Ok(Value::Nil);
        };
        let is_short = items.len() < rule.size;
        match &rule.short {
            Short::Drop if is_short => return Ok(Value::Nil),
            Short::Fill(pad) if is_short => {
                let missing = (rule.size - items.len()) as u64;
                items.extend(vm.items(lazy(Step::Take(missing), pad.clone()))?);
            }
            _ => {}
        }
        let made = if rule.as_lists {
            Value::list(items)
        } else {
            Value::vector(items)
        };
        // A padded part is the last one; parts that are kept continue as long as there are items.
        let ends = is_short && !matches!(rule.short, Short::Keep);
        Ok(List::cons(
            made,
            if ends { Value::Nil } else { cut(rule, rest) },
        ))
    })
}

/// Takes the items of one part, and returns where the next one starts; `None` at the end.
fn part(vm: &mut Vm, rule: &Cut, coll: Value) -> Result<Option<(Vec<Value>, Value)>> {
    // Only overlapping parts need to return to their start.
    let overlapping = rule.step < rule.size;
    let start = if overlapping { vm.seq(&coll)? } else { coll };
    let again = if overlapping {
        start.clone()
    } else {
        Value::Nil
    };
    let mut walk = vm.iter(start)?;
    let mut items = Vec::new();
    while items.len() < rule.size {
        match walk.next(vm)? {
            Some(item) => items.push(item),
            None => break,
        }
    }
    if items.is_empty() {
        return Ok(None);
    }
    let rest = if overlapping {
        lazy(Step::Drop(rule.step as u64), again)
    } else if rule.step == rule.size {
        walk.rest()
    } else {
        lazy(Step::Drop((rule.step - rule.size) as u64), walk.rest())
    };
    Ok(Some((items, rest)))
}
