//! The locals that a flow has where it requests a step, for a person who looks at a stopped run.
//!
//! Bytecode keeps no names. So the flow's form is changed before it is compiled: each call of `flow/step` becomes a call of a
//! macro that notes what is in scope, and then requests the same step. Paths, digests and the journal stay the same.

use std::rc::Rc;

use flowstone_lang::session::Session;
use flowstone_lang::value::{Arity, List, Native, Symbol, Value};

use crate::natives::Request;

/// The namespace of the two functions here.
const NAMESPACE: &str = "flow.locals";
/// Maximum nesting of forms that are looked into.
const DEPTH: usize = 200;

const FNS: &[Native] = &[NOTE, STEP];

const NOTE: Native = Native {
    name: "note",
    usage: "(note locals)",
    doc: "Notes the locals of the step that is requested next.",
    examples: &[],
    arity: Arity::exactly(1),
    run: |vm, args| {
        vm.suspend(Request::Locals {
            values: args.get(0).clone(),
        })
    },
};

const STEP: Native = Native {
    name: "step",
    usage: "(step type id config)",
    doc: "Notes the locals, and requests a step.",
    examples: &[],
    arity: Arity::at_least(2),
    run: |_, args| {
        // A macro's first arguments are the form and the locals in scope.
        let call = args.from(2).iter().cloned();
        let step = std::iter::once(Value::Symbol(Symbol::new("flow/step"))).chain(call);
        let step = Value::list(step.collect::<Vec<_>>());
        let scope = args
            .get(1)
            .as_map()
            .map(|map| map.iter().map(|(name, _)| name.clone()));
        let names: Vec<Value> = scope.into_iter().flatten().filter(is_written).collect();
        let entries = names.into_iter().map(|name| {
            let quoted = Value::list(vec![Value::Symbol(Symbol::new("quote")), name.clone()]);
            (quoted, name)
        });
        let note = Value::list(vec![
            Value::Symbol(Symbol::with_namespace(Some(NAMESPACE), "note")),
            Value::map(entries.collect::<Vec<_>>()),
        ]);
        Ok(Value::list(vec![
            Value::Symbol(Symbol::new("do")),
            note,
            step,
        ]))
    },
};

/// Tells whether a person wrote a name: destructuring and macros make others.
fn is_written(name: &Value) -> bool {
    name.as_symbol().is_some_and(|name| {
        let text = name.to_string();
        !text.contains("__") && !text.starts_with('&')
    })
}

/// Returns the form with each call of `flow/step` noting its locals.
pub(crate) fn noting(session: &Session, form: &Value) -> Value {
    let namespace = session.register(NAMESPACE, FNS);
    if let Some(var) = namespace.lookup(Symbol::new("step")) {
        var.is_macro.set(true);
    }
    changed(form, 0).unwrap_or_else(|| form.clone())
}

/// Returns a changed form; `None` if nothing in it changes.
fn changed(form: &Value, depth: usize) -> Option<Value> {
    if depth > DEPTH {
        return None;
    }
    match form {
        Value::List(list) if !list.is_empty() => {
            let head = list.first.as_symbol();
            if head.is_some_and(|name| name.is("quote")) {
                return None;
            }
            let is_step =
                head.is_some_and(|name| matches!(&*name.to_string(), "flow/step" | "step"));
            let parts: Vec<&Value> = list.iter().collect();
            let inner: Vec<Option<Value>> =
                parts.iter().map(|part| changed(part, depth + 1)).collect();
            if !is_step && inner.iter().all(Option::is_none) {
                return None;
            }
            let mut items: Vec<Value> = inner
                .into_iter()
                .zip(parts)
                .map(|(new, old)| new.unwrap_or_else(|| old.clone()))
                .collect();
            if is_step {
                items[0] = Value::Symbol(Symbol::with_namespace(Some(NAMESPACE), "step"));
            }
            match Value::list(items) {
                Value::List(new) => Some(Value::List(Rc::new(List {
                    first: new.first.clone(),
                    rest: new.rest.clone(),
                    count: new.count,
                    extra: list.extra.clone(),
                }))),
                other => Some(other),
            }
        }
        Value::Vector(vector) => {
            let parts: Vec<&Value> = vector.iter().collect();
            let inner: Vec<Option<Value>> =
                parts.iter().map(|part| changed(part, depth + 1)).collect();
            if inner.iter().all(Option::is_none) {
                return None;
            }
            let items = inner.into_iter().zip(parts);
            Some(Value::vector(
                items
                    .map(|(new, old)| new.unwrap_or_else(|| old.clone()))
                    .collect::<Vec<_>>(),
            ))
        }
        Value::Map(map) => {
            let inner: Vec<(Value, Option<Value>, Value)> = map
                .iter()
                .map(|(key, value)| (key.clone(), changed(value, depth + 1), value.clone()))
                .collect();
            if inner.iter().all(|(_, new, _)| new.is_none()) {
                return None;
            }
            let entries = inner
                .into_iter()
                .map(|(key, new, old)| (key, new.unwrap_or(old)));
            Some(Value::map(entries.collect::<Vec<_>>()))
        }
        _ => None,
    }
}
