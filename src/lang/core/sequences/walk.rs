//! Walking through a collection item by item: the one place where a reduction meets a pipeline.
//!
//! An unrealised pipeline of stages that is not shared runs without cells. The order of effects is that of the lazy
//! sequence: each item passes through all stages before the next one is taken.

use std::any::Any;
use std::ops::ControlFlow;
use std::rc::Rc;

use super::function::Reducer;
use super::stage::{Made, Step};
use crate::value::{Emit, Lazy, LazyState, Object, Result, SeqView, Thunk, Value};
use crate::vm::objects::own_method;
use crate::vm::{Iter, Vm, made_at};

/// A function that receives items and breaks to stop.
pub(crate) type Visit<'a> = dyn FnMut(&mut Vm, Value) -> Result<ControlFlow<()>> + 'a;

/// Continue, or stop with this number of last stages still to be flushed.
type Flow = ControlFlow<usize>;

/// Passes each item of a seqable value to `visit` until that breaks.
///
/// # Errors
/// Any exception that computing an item or `visit` throws, and when `coll` is not seqable.
pub(crate) fn each(vm: &mut Vm, coll: Value, visit: &mut Visit<'_>) -> Result<()> {
    run(vm, Vec::new(), coll, &mut Sink::Visit(visit))
}

/// Reduces a seqable value as `reduce` does: a `reduced` result ends it and is unwrapped.
///
/// # Errors
/// As [`each`].
pub(crate) fn reduce(vm: &mut Vm, function: &Value, init: Value, coll: Value) -> Result<Value> {
    if let Some(method) = own_reduce(&coll) {
        return vm.invoke(&method, &mut [coll, function.clone(), init]);
    }
    reduce_through(vm, Vec::new(), function, init, coll)
}

/// Returns the method with which an object of a program's type reduces itself: of `IReduceInit`, or of
/// `clojure.core.protocols/CollReduce`.
pub(crate) fn own_reduce(coll: &Value) -> Option<Value> {
    match coll {
        Value::Object(_) => ["reduce", "coll-reduce"]
            .iter()
            .find_map(|name| own_method(coll, name)),
        _ => None,
    }
}

/// Reduces a seqable value from its first item on; `None` if it has no items.
///
/// # Errors
/// As [`each`].
pub(crate) fn reduce_from_first(
    vm: &mut Vm,
    function: &Value,
    coll: Value,
) -> Result<Option<Value>> {
    if let Some(method) = own_reduce(&coll)
        && takes(&method, 2)
    {
        return vm.invoke(&method, &mut [coll, function.clone()]).map(Some);
    }
    let mut sink = Sink::First(Reducer::new(function.clone()));
    run(vm, Vec::new(), coll, &mut sink)?;
    Ok(match sink {
        Sink::Reduce { result, .. } => Some(result),
        Sink::First(_) | Sink::Visit(_) => None,
    })
}

/// Reduces the output of `steps` for the items of a seqable value.
///
/// # Errors
/// As [`each`], and any exception that a step throws.
pub(crate) fn reduce_through(
    vm: &mut Vm,
    steps: Vec<Step>,
    function: &Value,
    init: Value,
    coll: Value,
) -> Result<Value> {
    let function = Reducer::new(function.clone());
    let mut sink = Sink::Reduce {
        function,
        result: init,
    };
    run(vm, steps, coll, &mut sink)?;
    Ok(match sink {
        Sink::Reduce { result, .. } => result,
        Sink::First(_) | Sink::Visit(_) => Value::Nil,
    })
}

/// Unwraps a reduced value, and returns whether to continue.
pub(crate) fn unreduced(value: Value) -> (Value, ControlFlow<()>) {
    if let Value::Object(object) = &value
        && let Object::Reduced(inner) = &**object
    {
        return (inner.clone(), ControlFlow::Break(()));
    }
    (value, ControlFlow::Continue(()))
}

/// The destination of items.
enum Sink<'v, 'a> {
    Visit(&'v mut Visit<'a>),
    /// A reduction without items so far: the first item is its first result.
    First(Reducer),
    Reduce {
        function: Reducer,
        result: Value,
    },
}

impl Sink<'_, '_> {
    #[inline(always)]
    fn accept(&mut self, vm: &mut Vm, item: Value) -> Result<ControlFlow<()>> {
        match self {
            Sink::Visit(visit) => visit(vm, item),
            Sink::First(function) => {
                *self = Sink::Reduce {
                    function: function.clone(),
                    result: item,
                };
                Ok(ControlFlow::Continue(()))
            }
            Sink::Reduce { function, result } => Ok(if function.combine(vm, result, item)? {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }),
        }
    }
}

/// Splits a pipeline that is not computed yet and not shared: its steps in the order in which items pass them, before
/// those of `after`, and its source.
fn open(coll: Value, after: Vec<Step>) -> (Vec<Made>, Value) {
    let mut steps = Vec::new();
    let mut base = coll;
    while let Value::Lazy(lazy) = &base {
        let Some((step, coll)) = take_step(lazy) else {
            break;
        };
        steps.push(step);
        base = coll;
    }
    steps.reverse();
    steps.extend(after.into_iter().map(Made::from));
    (steps, base)
}

fn take_step(lazy: &Rc<Lazy>) -> Option<(Made, Value)> {
    if Rc::strong_count(lazy) != 1 {
        return None;
    }
    let mut state = lazy.state.try_borrow_mut().ok()?;
    match &*state {
        LazyState::Pending(Thunk::Stage { stage, .. }) => {
            let stage: &dyn Any = &**stage;
            if !stage.is::<Made>() {
                return None;
            }
        }
        _ => return None,
    }
    match std::mem::replace(&mut *state, LazyState::Running) {
        LazyState::Pending(Thunk::Stage { stage, coll }) => {
            let stage: Box<dyn Any> = stage;
            Some((*stage.downcast::<Made>().ok()?, coll))
        }
        _ => None,
    }
}

fn run(vm: &mut Vm, after: Vec<Step>, coll: Value, sink: &mut Sink<'_, '_>) -> Result<()> {
    let (mut steps, base) = open(coll, after);
    let mut to_flush = steps.len();
    if let Some(done) = steps.iter().rposition(|made| made.step.is_done()) {
        to_flush = steps.len() - done - 1;
    } else {
        plain(vm, base, |vm, item| {
            Ok(match push(vm, &mut steps, item, sink)? {
                ControlFlow::Continue(()) => ControlFlow::Continue(()),
                ControlFlow::Break(left) => {
                    to_flush = left;
                    ControlFlow::Break(())
                }
            })
        })?;
    }
    while to_flush > 0 {
        let at = steps.len() - to_flush;
        to_flush -= 1;
        if let Some(item) = steps[at].step.flush()
            && let ControlFlow::Break(left) = push(vm, &mut steps[at + 1..], item, sink)?
        {
            to_flush = to_flush.min(left);
        }
    }
    Ok(())
}

/// Sends one item through steps. The most frequent steps are handled here; the others in [`Step::step`].
fn push(
    vm: &mut Vm,
    mut steps: &mut [Made],
    mut item: Value,
    sink: &mut Sink<'_, '_>,
) -> Result<Flow> {
    let mut end = ControlFlow::Continue(());
    while let Some((Made { step, at }, rest)) = steps.split_first_mut() {
        let failed = |signal| made_at(*at, signal);
        match step {
            Step::Map(function) => function.update(vm, &mut item).map_err(failed)?,
            Step::Filter(pred) => {
                if !pred.test(vm, &item).map_err(failed)? {
                    return Ok(end);
                }
            }
            Step::Remove(pred) => {
                if pred.test(vm, &item).map_err(failed)? {
                    return Ok(end);
                }
            }
            Step::Take(left) if *left > 1 => *left -= 1,
            Step::Keep(function) => {
                function.update(vm, &mut item).map_err(failed)?;
                if item.is_nil() {
                    return Ok(end);
                }
            }
            step => match step.step(vm, item).map_err(failed)? {
                Emit::Nothing => return Ok(end),
                Emit::One(value) => item = value,
                Emit::Last(value) => {
                    item = value;
                    end = ControlFlow::Break(rest.len());
                }
                Emit::Stop => return Ok(ControlFlow::Break(rest.len())),
                Emit::Two(first, second) => {
                    if let ControlFlow::Break(left) = push(vm, rest, first, sink)? {
                        return Ok(ControlFlow::Break(left));
                    }
                    item = second;
                }
                Emit::Each(items) => return push_each(vm, rest, items, sink, end),
            },
        }
        steps = rest;
    }
    Ok(match sink.accept(vm, item)? {
        ControlFlow::Continue(()) => end,
        ControlFlow::Break(()) => ControlFlow::Break(0),
    })
}

/// Sends each item of a seqable value through steps.
fn push_each(
    vm: &mut Vm,
    steps: &mut [Made],
    items: Value,
    sink: &mut Sink<'_, '_>,
    end: Flow,
) -> Result<Flow> {
    let mut flow = end;
    each(vm, items, &mut |vm, item| {
        Ok(match push(vm, steps, item, sink)? {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(left) => {
                flow = ControlFlow::Break(left);
                ControlFlow::Break(())
            }
        })
    })?;
    Ok(flow)
}

/// Walks over a value that is not a pipeline.
fn plain(
    vm: &mut Vm,
    coll: Value,
    mut visit: impl FnMut(&mut Vm, Value) -> Result<ControlFlow<()>>,
) -> Result<()> {
    match coll {
        Value::Nil => Ok(()),
        Value::Vector(vector) => {
            for item in vector.iter() {
                vm.charge(1)?;
                if visit(vm, item.clone())?.is_break() {
                    break;
                }
            }
            Ok(())
        }
        Value::Map(map) => {
            for (key, value) in map.iter() {
                vm.charge(1)?;
                if visit(vm, Value::entry(key.clone(), value.clone()))?.is_break() {
                    break;
                }
            }
            Ok(())
        }
        // All cells exist already: releasing the head would not free any of them earlier.
        Value::List(list) if list.count.is_some() => {
            for item in list.iter() {
                vm.charge(1)?;
                if visit(vm, item.clone())?.is_break() {
                    break;
                }
            }
            Ok(())
        }
        Value::Seq(view) => match &*view {
            SeqView::Range { start, end, step } => range(vm, (*start, *end, *step), visit),
            SeqView::Repeat { value, count } => repeat(vm, value, *count, visit),
            _ => by_item(vm, Value::Seq(view), visit),
        },
        coll => match own_reduce(&coll) {
            // The items of a value that can only be reduced are collected in a vector first.
            Some(method) if own_method(&coll, "seq").is_none() => {
                let into = Value::Native(&crate::core::collections::CONJ);
                let items = vm.invoke(&method, &mut [coll, into, Value::vector([])])?;
                by_item(vm, items, visit)
            }
            _ => by_item(vm, coll, visit),
        },
    }
}

fn takes(method: &Value, count: usize) -> bool {
    matches!(method, Value::Fn(closure) if closure.proto.body(count).is_some())
}

fn by_item(
    vm: &mut Vm,
    coll: Value,
    mut visit: impl FnMut(&mut Vm, Value) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let mut items = Iter::new(coll);
    while let Some(item) = items.next(vm)? {
        if visit(vm, item)?.is_break() {
            break;
        }
    }
    Ok(())
}

fn range(
    vm: &mut Vm,
    (start, end, step): (i64, i64, i64),
    mut visit: impl FnMut(&mut Vm, Value) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let mut at = start;
    while (step > 0 && at < end) || (step < 0 && at > end) {
        vm.charge(1)?;
        if visit(vm, Value::Int(at))?.is_break() {
            break;
        }
        let Some(next) = at.checked_add(step) else {
            break;
        };
        at = next;
    }
    Ok(())
}

fn repeat(
    vm: &mut Vm,
    value: &Value,
    count: Option<u64>,
    mut visit: impl FnMut(&mut Vm, Value) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let mut left = count;
    while left != Some(0) {
        vm.charge(1)?;
        if visit(vm, value.clone())?.is_break() {
            break;
        }
        left = left.map(|left| left - 1);
    }
    Ok(())
}
