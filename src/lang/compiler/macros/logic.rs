//! `and` and `or`, which are compiled directly: their expansions for programs that walk code.

use super::{Expansion, form, symbol, with_rest};
use crate::compiler::destructure::fresh;
use crate::value::{Arity, Native, Value};
use crate::vm::{Args, Vm};

/// The macros of this file for `clojure.core`, sorted by name.
pub(super) const FNS: &[Native] = &[AND, OR];

const AND: Native = Native {
    name: "and",
    usage: "(and x ...)",
    doc: "Evaluates forms in order: returns the first value that is nil or false, or else the last; true without forms.",
    examples: &[
        ("(and 1 nil 2)", "nil"),
        ("(and 1 2)", "2"),
        ("(and)", "true"),
    ],
    arity: Arity::at_least(2),
    run: |vm, args| {
        connected(vm, &args, "and", Value::Bool(true), |name, more| {
            form([symbol("if"), name.clone(), more, name])
        })
    },
};

const OR: Native = Native {
    name: "or",
    usage: "(or x ...)",
    doc: "Evaluates forms in order: returns the first value that is neither nil nor false, or else the last; nil without forms.",
    examples: &[
        ("(or nil 1 2)", "1"),
        ("(or nil false)", "false"),
        ("(or)", "nil"),
    ],
    arity: Arity::at_least(2),
    run: |vm, args| {
        connected(vm, &args, "or", Value::Nil, |name, more| {
            form([symbol("if"), name.clone(), name, more])
        })
    },
};

/// Expands one form connected with the rest.
fn connected(
    vm: &mut Vm,
    args: &Args<'_>,
    name: &str,
    empty: Value,
    choose: fn(Value, Value) -> Value,
) -> Expansion {
    let parts = args.from(2);
    Ok(match parts {
        [] => empty,
        [only] => only.clone(),
        [first, more @ ..] => {
            let more = with_rest([symbol(&format!("clojure.core/{name}"))], more);
            let held = fresh(vm, name);
            let bindings = Value::vector([held.clone(), first.clone()]);
            form([symbol("clojure.core/let"), bindings, choose(held, more)])
        }
    })
}
