//! Walking through a collection item by item: the one place where a reduction meets a pipeline.
//!
//! An unrealised pipeline of stages that nobody else holds runs without cells. The order of effects is
//! that of the lazy sequence: each item goes through all stages before the next one is taken.

use std::ops::ControlFlow;
use std::rc::Rc;

use crate::value::{Emit, Lazy, LazyState, Object, Result, SeqView, Stage, Thunk, Value};
use crate::vm::{Iter, Vm, made_at};

/// Receives items; breaks to get no more.
pub(crate) type Visit<'a> = dyn FnMut(&mut Vm, Value) -> Result<ControlFlow<()>> + 'a;

/// To go on, or to stop with so many of the last stages still to be flushed.
type Flow = ControlFlow<usize>;

/// Gives each item of a seqable value to `visit` until that breaks.
///
/// # Errors
/// Whatever computing an item or `visit` throws, and when `coll` is not seqable.
pub(crate) fn each(vm: &mut Vm, coll: Value, visit: &mut Visit<'_>) -> Result<()> {
    let (mut stages, base) = open(coll);
    run(vm, &mut stages, base, visit)
}

/// Gives each item of a seqable value, gone through `stages`, to `visit` until that breaks.
///
/// # Errors
/// As [`each`], and whatever a stage throws.
pub(crate) fn each_through(
    vm: &mut Vm,
    mut stages: Vec<Box<dyn Stage>>,
    coll: Value,
    visit: &mut Visit<'_>,
) -> Result<()> {
    let (mut all, base) = open(coll);
    all.append(&mut stages);
    run(vm, &mut all, base, visit)
}

/// Reduces a seqable value as `reduce` does: a `reduced` result ends it and is unwrapped.
///
/// # Errors
/// As [`each`].
pub(crate) fn reduce(vm: &mut Vm, function: &Value, init: Value, coll: Value) -> Result<Value> {
    let mut result = init;
    each(vm, coll, &mut |vm, item| {
        let so_far = std::mem::replace(&mut result, Value::Nil);
        let (value, flow) = unreduced(vm.invoke(function, &mut [so_far, item])?);
        result = value;
        Ok(flow)
    })?;
    Ok(result)
}

/// Unwraps a reduced value, and tells whether to go on.
pub(crate) fn unreduced(value: Value) -> (Value, ControlFlow<()>) {
    if let Value::Object(object) = &value
        && let Object::Reduced(inner) = &**object
    {
        return (inner.clone(), ControlFlow::Break(()));
    }
    (value, ControlFlow::Continue(()))
}

/// Takes apart a pipeline that is not computed yet and that nobody else holds: its stages in the order
/// that items meet them, and what they draw from.
fn open(coll: Value) -> (Vec<Box<dyn Stage>>, Value) {
    let mut stages = Vec::new();
    let mut base = coll;
    while let Value::Lazy(lazy) = &base {
        let Some(stage) = take_stage(lazy) else { break };
        stages.push(stage.0);
        base = stage.1;
    }
    stages.reverse();
    (stages, base)
}

fn take_stage(lazy: &Rc<Lazy>) -> Option<(Box<dyn Stage>, Value)> {
    if Rc::strong_count(lazy) != 1 {
        return None;
    }
    let mut state = lazy.state.try_borrow_mut().ok()?;
    if !matches!(*state, LazyState::Pending(Thunk::Stage { .. })) {
        return None;
    }
    match std::mem::replace(&mut *state, LazyState::Running) {
        LazyState::Pending(Thunk::Stage { stage, coll }) => Some((stage, coll)),
        _ => None,
    }
}

fn run(
    vm: &mut Vm,
    stages: &mut [Box<dyn Stage>],
    base: Value,
    visit: &mut Visit<'_>,
) -> Result<()> {
    if stages.is_empty() {
        return plain(vm, base, visit);
    }
    let mut to_flush = stages.len();
    if let Some(done) = stages.iter().rposition(|stage| stage.is_done()) {
        to_flush = stages.len() - done - 1;
    } else {
        plain(vm, base, &mut |vm, item| {
            Ok(match push(vm, stages, item, visit)? {
                ControlFlow::Continue(()) => ControlFlow::Continue(()),
                ControlFlow::Break(left) => {
                    to_flush = left;
                    ControlFlow::Break(())
                }
            })
        })?;
    }
    while to_flush > 0 {
        let at = stages.len() - to_flush;
        to_flush -= 1;
        if let Some(item) = stages[at].flush()
            && let ControlFlow::Break(left) = push(vm, &mut stages[at + 1..], item, visit)?
        {
            to_flush = to_flush.min(left);
        }
    }
    Ok(())
}

/// Sends one item through stages.
fn push(
    vm: &mut Vm,
    mut stages: &mut [Box<dyn Stage>],
    mut item: Value,
    visit: &mut Visit<'_>,
) -> Result<Flow> {
    let mut end = ControlFlow::Continue(());
    while let Some((stage, rest)) = stages.split_first_mut() {
        let emit = stage
            .step(vm, item)
            .map_err(|signal| made_at(stage.made_at(), signal))?;
        match emit {
            Emit::Nothing => return Ok(end),
            Emit::One(value) => item = value,
            Emit::Last(value) => {
                item = value;
                end = ControlFlow::Break(rest.len());
            }
            Emit::Stop => return Ok(ControlFlow::Break(rest.len())),
            Emit::Two(first, second) => {
                if let ControlFlow::Break(left) = push(vm, rest, first, visit)? {
                    return Ok(ControlFlow::Break(left));
                }
                item = second;
            }
            Emit::Each(items) => {
                let mut flow = end;
                each(vm, items, &mut |vm, item| {
                    Ok(match push(vm, rest, item, visit)? {
                        ControlFlow::Continue(()) => ControlFlow::Continue(()),
                        ControlFlow::Break(left) => {
                            flow = ControlFlow::Break(left);
                            ControlFlow::Break(())
                        }
                    })
                })?;
                return Ok(flow);
            }
        }
        stages = rest;
    }
    Ok(match visit(vm, item)? {
        ControlFlow::Continue(()) => end,
        ControlFlow::Break(()) => ControlFlow::Break(0),
    })
}

/// Walks over what is no pipeline.
fn plain(vm: &mut Vm, coll: Value, visit: &mut Visit<'_>) -> Result<()> {
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
        Value::Seq(view) => match &*view {
            SeqView::Range { start, end, step } => range(vm, (*start, *end, *step), visit),
            SeqView::Repeat { value, count } => repeat(vm, value, *count, visit),
            _ => by_item(vm, Value::Seq(view), visit),
        },
        coll => by_item(vm, coll, visit),
    }
}

fn by_item(vm: &mut Vm, coll: Value, visit: &mut Visit<'_>) -> Result<()> {
    let mut items = Iter::new(coll);
    while let Some(item) = items.next(vm)? {
        if visit(vm, item)?.is_break() {
            break;
        }
    }
    Ok(())
}

fn range(vm: &mut Vm, (start, end, step): (i64, i64, i64), visit: &mut Visit<'_>) -> Result<()> {
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

fn repeat(vm: &mut Vm, value: &Value, count: Option<u64>, visit: &mut Visit<'_>) -> Result<()> {
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
