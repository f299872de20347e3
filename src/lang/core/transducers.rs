//! Transducers: stages without a collection, and the functions that run collections through them.
//!
//! A native transducer is a stage in a closure, so that a chain of them runs without a call for each; a transducer
//! written in the program is called as a function.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::rc::Rc;

use super::functions::{closure, composed};
use super::sequences::pipeline::{map_all, take_from};
use super::sequences::reducing::reduced;
use super::sequences::stage::{Step, lazy};
use super::sequences::walk::{self, unreduced};
use super::vectors::next_of_all;
use crate::value::{Arity, Emit, Lazy, List, Native, NativeClosure, Object, Result, Value};
use crate::vm::{Args, Iter, Vm};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[
    CAT,
    COMPLETING,
    EDUCTION,
    ENSURE_REDUCED,
    IS_REDUCED,
    REDUCED,
    SEQUENCE,
    TRANSDUCE,
    UNREDUCED,
];

const CAT: Native = Native {
    name: "cat",
    usage: "(cat rf)",
    doc: "The transducer that joins the items of each item.",
    examples: &[("(into [] cat [[1 2] [3]])", "[1 2 3]")],
    arity: Arity::exactly(1),
    run: cat,
};

const COMPLETING: Native = Native {
    name: "completing",
    usage: "(completing f)\n(completing f cf)",
    doc: "Returns f with cf (identity) as its one-argument call, so that it can complete a transduce.",
    examples: &[("(transduce (map inc) (completing + str) 0 [1 2])", r#""5""#)],
    arity: Arity::between(1, 2),
    run: |_, mut args| {
        let captured = take_from(&mut args, 0);
        Ok(closure(
            "completing",
            Arity::between(0, 2),
            captured,
            |vm, own, mut args| {
                let given = args.len();
                match (given, &own.captured[..]) {
                    (1, [_]) => Ok(args.take(0)),
                    (1, [_, complete]) => vm.invoke(complete, args.as_mut_slice()),
                    (_, captured) => vm.invoke(&captured[0], args.as_mut_slice()),
                }
            },
        ))
    },
};

const EDUCTION: Native = Native {
    name: "eduction",
    usage: "(eduction & xforms coll)",
    doc: "Returns the items of coll, passed through transducers.",
    examples: &[("(eduction (map inc) (filter odd?) [1 2 3 4])", "(3 5)")],
    arity: Arity::at_least(1),
    run: |vm, mut args| {
        let coll = args.take(args.len() - 1);
        let count = args.len() - 1;
        let xforms = take_from(&mut args, 0).into_iter().take(count).collect();
        let xform = super::functions::compose(xforms);
        sequence(vm, &xform, vec![coll])
    },
};

const ENSURE_REDUCED: Native = Native {
    name: "ensure-reduced",
    usage: "(ensure-reduced x)",
    doc: "Returns x if it is reduced already, else (reduced x).",
    examples: &[("(reduced? (ensure-reduced 1))", "true")],
    arity: Arity::exactly(1),
    run: |_, mut args| {
        let value = args.take(0);
        Ok(if is_reduced(&value) {
            value
        } else {
            reduced(value)
        })
    },
};

const REDUCED: Native = Native {
    name: "reduced",
    usage: "(reduced x)",
    doc: "Returns x wrapped so that a reduction that receives it ends with x.",
    examples: &[(
        "(reduce (fn [sum x] (if (> x 2) (reduced sum) (+ sum x))) 0 (range))",
        "3",
    )],
    arity: Arity::exactly(1),
    run: |_, mut args| Ok(reduced(args.take(0))),
};

const IS_REDUCED: Native = Native {
    name: "reduced?",
    usage: "(reduced? x)",
    doc: "Tells whether x was made by reduced.",
    examples: &[
        ("(reduced? (reduced 1))", "true"),
        ("(reduced? 1)", "false"),
    ],
    arity: Arity::exactly(1),
    run: |_, args| Ok(Value::Bool(is_reduced(args.get(0)))),
};

const SEQUENCE: Native = Native {
    name: "sequence",
    usage: "(sequence coll)\n(sequence xform coll)\n(sequence xform coll & colls)",
    doc: "Returns a sequence of the items of coll, passed through a transducer; () if no items pass.",
    examples: &[
        ("(sequence (map inc) [1 2])", "(2 3)"),
        ("(sequence nil)", "()"),
    ],
    arity: Arity::at_least(1),
    run: |vm, mut args| {
        if args.len() > 1 {
            let xform = args.take(0);
            let colls = take_from(&mut args, 1);
            return sequence(vm, &xform, colls);
        }
        match args.take(0) {
            coll @ (Value::List(_) | Value::Seq(_) | Value::Lazy(_)) => Ok(coll),
            coll => Ok(match vm.seq(&coll)? {
                Value::Nil => List::empty(),
                seq => seq,
            }),
        }
    },
};

const TRANSDUCE: Native = Native {
    name: "transduce",
    usage: "(transduce xform f coll)\n(transduce xform f init coll)",
    doc: "Reduces coll with f after its items passed a transducer; f is called with the result at the end.",
    examples: &[
        ("(transduce (map inc) + [1 2 3])", "9"),
        ("(transduce (filter odd?) conj [] [1 2 3])", "[1 3]"),
    ],
    arity: Arity::between(3, 4),
    run: |vm, mut args| {
        let (xform, function) = (args.take(0), args.take(1));
        let init = if args.len() == 4 {
            args.take(2)
        } else {
            vm.invoke(&function, &mut [])?
        };
        let coll = args.take(args.len() - 1);
        let Some(steps) = steps_for(&xform, &coll) else {
            let function = vm.invoke(&xform, &mut [function])?;
            let result = walk::reduce(vm, &function, init, coll)?;
            return vm.invoke(&function, &mut [result]);
        };
        let result = walk::reduce_through(vm, steps, &function, init, coll)?;
        vm.invoke(&function, &mut [result])
    },
};

const UNREDUCED: Native = Native {
    name: "unreduced",
    usage: "(unreduced x)",
    doc: "Returns the value that a reduced x wraps, or x itself.",
    examples: &[("(unreduced (reduced 1))", "1"), ("(unreduced 1)", "1")],
    arity: Arity::exactly(1),
    run: |_, mut args| Ok(unreduced(args.take(0)).0),
};

/// Returns the steps of a transducer if the items of `coll` can be sent through them one by one; a collection that
/// reduces itself needs a function.
pub(super) fn steps_for(xform: &Value, coll: &Value) -> Option<Vec<Step>> {
    match walk::own_reduce(coll) {
        Some(_) => None,
        None => steps(xform),
    }
}

/// Tells whether a value was made by `reduced`.
pub(crate) fn is_reduced(value: &Value) -> bool {
    matches!(value, Value::Object(object) if matches!(**object, Object::Reduced(_)))
}

fn state(state: impl std::any::Any) -> Value {
    Value::from(Object::State(Box::new(state)))
}

/// Returns the transducer of a stage.
pub(crate) fn transducer(step: Step) -> Value {
    closure(
        "transducer",
        Arity::exactly(1),
        vec![state(step)],
        |_, own, mut args| {
            let step = step_of(&own.captured).cloned().unwrap_or(Step::Cat);
            Ok(reducing(step, args.take(0)))
        },
    )
}

fn cat(_vm: &mut Vm, mut args: Args<'_>) -> Result<Value> {
    Ok(reducing(Step::Cat, args.take(0)))
}

fn step_of(captured: &[Value]) -> Option<&Step> {
    match captured {
        [Value::Object(object)] => match &**object {
            Object::State(state) => state.downcast_ref::<Step>(),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the stages of a native transducer; `None` if a part of it is written in the program.
pub(crate) fn steps(xform: &Value) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    let mut pending = vec![xform.clone()];
    while let Some(xform) = pending.pop() {
        if let Some(parts) = composed(&xform) {
            pending.extend(parts.iter().rev().cloned());
            continue;
        }
        match &xform {
            Value::Native(native) if native.is(&CAT) => {
                steps.push(Step::Cat);
            }
            Value::Object(object) => match &**object {
                Object::Function(closure) => steps.push(step_of(&closure.captured)?.clone()),
                _ => return None,
            },
            _ => return None,
        }
    }
    Some(steps)
}

/// Returns the lazy sequence of a transducer applied to the items of `colls`.
fn sequence(vm: &mut Vm, xform: &Value, mut colls: Vec<Value>) -> Result<Value> {
    let Some(steps) = steps(xform) else {
        return custom(vm, xform, colls);
    };
    let mut steps = steps.into_iter();
    let mut made = if colls.len() == 1 {
        colls.remove(0)
    } else {
        match steps.next() {
            Some(Step::Map(function)) => map_all(function.value().clone(), colls),
            _ => return custom(vm, xform, colls),
        }
    };
    for step in steps {
        made = lazy(step, made);
    }
    Ok(match made {
        made @ Value::Lazy(_) => made,
        other => lazy(Step::Drop(0), other),
    })
}

/// Returns the reducing function of a stage applied to `function`.
fn reducing(step: Step, function: Value) -> Value {
    let captured = vec![function, state(RefCell::new(step))];
    closure(
        "reducing function",
        Arity::at_least(0),
        captured,
        reducing_call,
    )
}

fn reducing_call(vm: &mut Vm, own: &NativeClosure, mut args: Args<'_>) -> Result<Value> {
    let [function, Value::Object(object)] = &own.captured[..] else {
        return Ok(Value::Nil);
    };
    let Object::State(state) = &**object else {
        return Ok(Value::Nil);
    };
    let Some(cell) = state.downcast_ref::<RefCell<Step>>() else {
        return Ok(Value::Nil);
    };
    match args.len() {
        0 => vm.invoke(function, &mut []),
        1 => {
            let held = cell.borrow_mut().flush();
            let mut result = args.take(0);
            if let Some(held) = held {
                result = unreduced(vm.invoke(function, &mut [result, held])?).0;
            }
            vm.invoke(function, &mut [result])
        }
        2 => {
            // The stage leaves its cell while it runs, because it may call this function again.
            let mut step = cell.replace(Step::Cat);
            let emit = step.step(vm, args.take(1));
            cell.replace(step);
            let result = args.take(0);
            emit_into(vm, function, result, emit?)
        }
        _ => match &*cell.borrow() {
            Step::Map(of_items) => {
                let of_items = of_items.value().clone();
                let item = vm.invoke(&of_items, &mut args.as_mut_slice()[1..])?;
                vm.invoke(function, &mut [args.take(0), item])
            }
            _ => Err(crate::vm::arity_error(&own.name, Arity::between(0, 2), args.len()).into()),
        },
    }
}

fn emit_into(vm: &mut Vm, function: &Value, result: Value, emit: Emit) -> Result<Value> {
    match emit {
        Emit::Nothing => Ok(result),
        Emit::One(item) => vm.invoke(function, &mut [result, item]),
        Emit::Two(first, second) => {
            let result = vm.invoke(function, &mut [result, first])?;
            if is_reduced(&result) {
                return Ok(result);
            }
            vm.invoke(function, &mut [result, second])
        }
        Emit::Each(items) => {
            let mut result = result;
            walk::each(vm, items, &mut |vm, item| {
                let so_far = std::mem::replace(&mut result, Value::Nil);
                result = vm.invoke(function, &mut [so_far, item])?;
                Ok(if is_reduced(&result) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                })
            })?;
            Ok(result)
        }
        Emit::Last(item) => {
            let result = vm.invoke(function, &mut [result, item])?;
            Ok(if is_reduced(&result) {
                result
            } else {
                reduced(result)
            })
        }
        Emit::Stop => Ok(reduced(result)),
    }
}

/// A sequence through a transducer written in the program: its output waits in a buffer.
struct Source {
    function: Value,
    buffer: Rc<RefCell<VecDeque<Value>>>,
    /// The iterations over the collections; `None` once there are no more items.
    walks: Option<Vec<Iter>>,
}

fn custom(vm: &mut Vm, xform: &Value, colls: Vec<Value>) -> Result<Value> {
    let buffer: Rc<RefCell<VecDeque<Value>>> = Rc::default();
    let sink = closure(
        "sequence",
        Arity::between(0, 2),
        vec![state(buffer.clone())],
        |_, own, mut args| {
            if args.len() == 2
                && let [Value::Object(object)] = &own.captured[..]
                && let Object::State(state) = &**object
                && let Some(buffer) = state.downcast_ref::<Rc<RefCell<VecDeque<Value>>>>()
            {
                buffer.borrow_mut().push_back(args.take(1));
            }
            Ok(args.take(0))
        },
    );
    let function = vm.invoke(xform, &mut [sink])?;
    let walks = Some(colls.into_iter().map(Iter::new).collect());
    Ok(Source {
        function,
        buffer,
        walks,
    }
    .rest())
}

impl Source {
    fn rest(mut self) -> Value {
        Lazy::native(move |vm| {
            loop {
                let item = self.buffer.borrow_mut().pop_front();
                if let Some(item) = item {
                    return Ok(List::cons(item, self.rest()));
                }
                let Some(walks) = &mut self.walks else {
                    return Ok(Value::Nil);
                };
                let ends = match next_of_all(vm, walks)? {
                    Some(mut items) => {
                        items.insert(0, Value::Nil);
                        is_reduced(&vm.invoke(&self.function, &mut items)?)
                    }
                    None => true,
                };
                if ends {
                    self.walks = None;
                    vm.invoke(&self.function, &mut [Value::Nil])?;
                }
            }
        })
    }
}
