//! Dynamic vars of `clojure.core`, and functions that query bindings.

use std::rc::Rc;

use crate::value::{Arity, Native, Symbol, Value, Var};

/// The functions of this area.
pub(super) const FNS: &[Native] = &[GET_THREAD_BINDINGS, IS_THREAD_BOUND, LOCAL_VAR];

/// Returns the dynamic vars that belong to no other area, with their root values.
pub(super) fn vars() -> Vec<(&'static str, Value)> {
    let version = ["major", "minor", "incremental"]
        .into_iter()
        .zip([1, 12, 0])
        .map(|(part, number)| (Value::keyword(part), Value::Int(number)))
        .chain([(Value::keyword("qualifier"), Value::Nil)]);
    vec![
        ("*1", Value::Nil),
        ("*2", Value::Nil),
        ("*3", Value::Nil),
        ("*assert*", Value::Bool(true)),
        ("*clojure-version*", Value::map(version)),
        ("*command-line-args*", Value::Nil),
        ("*compile-files*", Value::Bool(false)),
        ("*compile-path*", Value::from("classes")),
        ("*compiler-options*", Value::Nil),
        ("*e", Value::Nil),
        ("*file*", Value::from("NO_SOURCE_PATH")),
        ("*unchecked-math*", Value::Bool(false)),
        ("*warn-on-reflection*", Value::Bool(false)),
    ]
}

const GET_THREAD_BINDINGS: Native = Native {
    name: "get-thread-bindings",
    usage: "(get-thread-bindings)",
    doc: "Returns a map of the dynamic vars that are currently bound to their values.",
    examples: &[("(get-thread-bindings)", "{}")],
    arity: Arity::exactly(0),
    run: |vm, _| {
        let mut bound = Vec::new();
        for var in vm.bound_vars() {
            let value = vm.var_value(&var)?;
            bound.push((Value::Var(var), value));
        }
        Ok(Value::map(bound))
    },
};

const IS_THREAD_BOUND: Native = Native {
    name: "thread-bound?",
    usage: "(thread-bound? & vars)",
    doc: "Tells whether all of vars are currently bound by binding.",
    examples: &[("(thread-bound? #'*print-length*)", "false")],
    arity: Arity::at_least(0),
    run: |vm, args| {
        let bound = vm.bound_vars();
        for idx in 0..args.len() {
            let Value::Var(var) = args.get(idx) else {
                return Err(args.expected(idx, "a var"));
            };
            if !bound.iter().any(|other| Rc::ptr_eq(other, var)) {
                return Ok(Value::Bool(false));
            }
        }
        Ok(Value::Bool(true))
    },
};

const LOCAL_VAR: Native = Native {
    name: "local-var",
    usage: "(local-var)",
    doc: "Returns a dynamic var that is in no namespace, as needed by with-local-vars.",
    examples: &[("(var? (local-var))", "true")],
    arity: Arity::exactly(0),
    run: |_, _| {
        let var = Var::new(Symbol::new("local"), Symbol::new("var"));
        var.set_dynamic(true);
        Ok(Value::Var(Rc::new(var)))
    },
};
