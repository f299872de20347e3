//! `fn*`.

use std::rc::Rc;

use super::super::analyze::{Analyzer, function};
use super::super::node::{Arm, Kind, Node};
use super::super::{error, fail};
use super::plain_name;
use crate::value::{Result, Symbol, Value};

/// `(fn* name? [params] body ...)` or `(fn* name? ([params] body ...) ...)`. Parameters are symbols, because the macro
/// `fn` has expanded patterns.
pub(super) fn fn_(cx: &mut Analyzer<'_>, form: &Value, items: &[Value]) -> Result<Node> {
    let span = cx.place;
    let mut at = 1;
    let name = items.get(at).and_then(Value::as_symbol);
    if name.is_some() {
        at += 1;
    }
    let label = match name {
        Some(name) => {
            let namespace = cx.vm.world().current.borrow().name;
            Rc::from(format!("{namespace}/{name}"))
        }
        None => label(cx, form),
    };
    cx.scopes.enter_function(name);
    cx.within.push(label.clone());
    let arms = arms(cx, form, items, at);
    cx.within.pop();
    let captures = cx.scopes.leave_function();
    let arms = arms?;
    check_arms(cx, &arms)?;
    let mut node = function(label, arms, captures);
    let meta = form.meta();
    let is_label = meta
        .as_map()
        .is_some_and(|meta| meta.len() == 1 && meta.get(&label_key()).is_some());
    if !meta.is_nil() && !is_label {
        node.meta = Some(cx.not_tail(|cx| cx.node(&meta))?);
    }
    Ok(Node::new(Kind::Fn(Box::new(node)), span))
}

fn arms(cx: &mut Analyzer<'_>, form: &Value, items: &[Value], at: usize) -> Result<Vec<Arm>> {
    match items.get(at) {
        Some(Value::Vector(_)) => Ok(vec![arm(cx, form, items, at)?]),
        Some(Value::List(_)) => items[at..]
            .iter()
            .map(|item| {
                let parts: Vec<Value> = cx.vm.items(item.clone())?;
                match (item, parts.first()) {
                    (Value::List(_), Some(Value::Vector(_))) => arm(cx, item, &parts, 0),
                    _ => Err(error(
                        "E0219",
                        item.span().or(cx.place),
                        "an arity of a function is ([params] body ...)",
                    )
                    .into()),
                }
            })
            .collect(),
        _ => Err(
            error("E0219", cx.place, "a function needs a vector of parameters")
                .hint("(fn [x y] body ...)")
                .into(),
        ),
    }
}

fn arm(cx: &mut Analyzer<'_>, form: &Value, items: &[Value], at: usize) -> Result<Arm> {
    let outer = cx.place;
    cx.place = form.span().or(outer);
    let Value::Vector(vector) = &items[at] else {
        return fail("E0219", cx.place, "a function needs a vector of parameters");
    };
    let mut params: Vec<Symbol> = Vec::new();
    let mut rest = None;
    let mut names = vector.iter().enumerate();
    while let Some((idx, name)) = names.next() {
        let symbol = plain_name(cx, (&items[at], idx), name, "a parameter")?;
        if symbol.is("&") {
            rest = match (names.next(), names.next()) {
                (Some((idx, name)), None) => {
                    Some(plain_name(cx, (&items[at], idx), name, "a parameter")?)
                }
                _ => {
                    return fail(
                        "E0219",
                        name.span().or(cx.place),
                        "exactly one name follows `&` in parameters",
                    );
                }
            };
            break;
        }
        params.push(symbol);
    }
    if params.len() > 200 {
        return fail(
            "E0219",
            cx.place,
            "a function can have at most 200 parameters: pass a map",
        );
    }
    let arm = cx.arm(&params, rest, |cx| cx.body(form, items, at + 1));
    cx.place = outer;
    arm
}

fn check_arms(cx: &Analyzer<'_>, arms: &[Arm]) -> Result<()> {
    let mut seen: Vec<usize> = Vec::new();
    let variadic: Vec<usize> = arms
        .iter()
        .filter(|arm| arm.rest.is_some())
        .map(|arm| arm.params.len())
        .collect();
    if variadic.len() > 1 {
        return fail(
            "E0219",
            cx.place,
            "a function can have only one arity with `&`",
        );
    }
    for arm in arms.iter().filter(|arm| arm.rest.is_none()) {
        let count = arm.params.len();
        if seen.contains(&count) {
            return fail(
                "E0219",
                cx.place,
                format!("a function has two arities of {count} parameters"),
            );
        }
        if variadic.first().is_some_and(|min| count > *min) {
            return fail(
                "E0219",
                cx.place,
                "no arity can have more parameters than the one with `&`",
            );
        }
        seen.push(count);
    }
    Ok(())
}

/// Returns the name that `defn` gives the function in traces.
fn label(cx: &Analyzer<'_>, form: &Value) -> Rc<str> {
    let namespace = cx.vm.world().current.borrow().name;
    match form
        .meta()
        .as_map()
        .and_then(|meta| meta.get(&label_key()).cloned())
    {
        Some(Value::Text(name)) => Rc::from(format!("{namespace}/{}", name.as_str())),
        _ => match cx.within.last() {
            Some(around) if around.ends_with("/fn") => around.clone(),
            Some(around) => Rc::from(format!("{around}/fn")),
            None => Rc::from(format!("{namespace}/fn")),
        },
    }
}

fn label_key() -> Value {
    Value::keyword("flowstone/name")
}
