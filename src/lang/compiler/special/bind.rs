//! `let*`, `loop*`, `letfn*`, `recur`.

use std::rc::Rc;

use super::super::analyze::Analyzer;
use super::super::node::{Kind, LocalId, Node};
use super::super::scope::Loop;
use super::super::{error, fail};
use super::{expect_items, plain_name};
use crate::value::{Result, Span, Value};

/// Returns the names and values of a binding vector.
fn pairs(cx: &Analyzer<'_>, items: &[Value]) -> Result<Vec<Value>> {
    let name = items[0]
        .as_symbol()
        .map_or_else(String::new, |name| name.to_string());
    let name = name.trim_end_matches('*');
    let Some(Value::Vector(bindings)) = items.get(1) else {
        let got = items.get(1).map(Value::kind);
        let got = got.map_or_else(String::new, |kind| format!(", and this is {kind}"));
        return Err(error(
            "E0213",
            items.get(1).map_or(Span::NONE, Value::span).or(cx.place),
            format!("`{name}` needs a vector of bindings{got}"),
        )
        .hint(format!("({name} [name value ...] body ...)"))
        .into());
    };
    if bindings.len() % 2 != 0 {
        let last = bindings.iter().next_back().cloned().unwrap_or(Value::Nil);
        let shown = last
            .as_symbol()
            .map_or_else(|| "the last name".to_owned(), |name| format!("`{name}`"));
        let place = last.span().or(items[1].item_span(bindings.len() - 1));
        return Err(error(
            "E0210",
            place.or(items[1].span()).or(cx.place),
            format!("`{name}` needs a value for {shown}"),
        )
        .hint("names and values alternate: [name value name value ...]")
        .into());
    }
    Ok(bindings.iter().cloned().collect())
}

fn bindings(cx: &mut Analyzer<'_>, items: &[Value]) -> Result<Vec<(LocalId, Node)>> {
    let pairs = pairs(cx, items)?;
    let mut bound = Vec::with_capacity(pairs.len() / 2);
    for idx in (0..pairs.len()).step_by(2) {
        let name = plain_name(cx, (&items[1], idx), &pairs[idx], "a local")?;
        let value = cx.not_tail(|cx| cx.item(&pairs[idx + 1], &items[1], idx + 1))?;
        bound.push((cx.scopes.define(name), value));
    }
    Ok(bound)
}

pub(super) fn let_(cx: &mut Analyzer<'_>, form: &Value, items: &[Value]) -> Result<Node> {
    let span = cx.place;
    let mark = cx.scopes.mark();
    let bindings = bindings(cx, items)?;
    let body = cx.body(form, items, 2)?;
    cx.scopes.forget(mark);
    Ok(Node::new(
        Kind::Let {
            bindings,
            body: Box::new(body),
        },
        span,
    ))
}

pub(super) fn loop_(cx: &mut Analyzer<'_>, form: &Value, items: &[Value]) -> Result<Node> {
    let span = cx.place;
    let mark = cx.scopes.mark();
    let bindings = bindings(cx, items)?;
    cx.scopes.push_loop(Loop::Target(
        bindings.iter().map(|binding| binding.0).collect(),
    ));
    let body = cx.body(form, items, 2);
    cx.scopes.pop_loop();
    cx.scopes.forget(mark);
    Ok(Node::new(
        Kind::Loop {
            bindings,
            body: Box::new(body?),
        },
        span,
    ))
}

pub(super) fn recur(cx: &mut Analyzer<'_>, form: &Value, items: &[Value]) -> Result<Node> {
    let span = cx.place;
    let targets: Rc<[LocalId]> = match cx.scopes.current_loop() {
        Some(Loop::Target(targets)) => targets,
        Some(Loop::Barrier(why)) => {
            let (clojure, hint) = if why.contains("`try`") {
                (
                    "Cannot recur across try",
                    "catch inside the loop only what one iteration may throw",
                )
            } else {
                (
                    "Can only recur from tail position",
                    "carry the pending work in another loop value, such as an accumulator",
                )
            };
            return Err(error("E0214", span, why).clojure(clojure).hint(hint).into());
        }
        None => {
            return fail(
                "E0214",
                span,
                "recur is only allowed in a loop or a function",
            );
        }
    };
    let count = items.len() - 1;
    if count != targets.len() {
        let plural = if targets.len() == 1 { "" } else { "s" };
        let wanted = targets.len();
        return Err(error(
            "E0215",
            span,
            format!("recur needs {wanted} value{plural} here and got {count}"),
        )
        .clojure(format!(
            "Mismatched argument count to recur, expected: {wanted} args, got: {count}"
        ))
        .hint(
            "recur assigns a new value to each name of the loop or each parameter of the function",
        )
        .into());
    }
    let args = cx.not_tail(|cx| {
        let args = items.iter().enumerate().skip(1);
        args.map(|(idx, arg)| cx.item(arg, form, idx))
            .collect::<Result<Vec<_>>>()
    })?;
    Ok(Node::new(Kind::Recur { targets, args }, span))
}

/// `(letfn* [name (fn* name ...) ...] body ...)`.
pub(super) fn letfn(cx: &mut Analyzer<'_>, form: &Value, items: &[Value]) -> Result<Node> {
    let span = cx.place;
    expect_items(
        cx,
        items,
        2,
        usize::MAX,
        "(letfn [(name [args] body) ...] body ...)",
    )?;
    let pairs = pairs(cx, items)?;
    let mark = cx.scopes.mark();
    let mut locals = Vec::new();
    for (idx, name) in pairs.iter().enumerate().step_by(2) {
        let name = plain_name(cx, (&items[1], idx), name, "a function of letfn")?;
        locals.push(cx.scopes.define(name));
    }
    let mut functions = Vec::new();
    for (idx, local) in locals.into_iter().enumerate() {
        let node = cx.not_tail(|cx| cx.item(&pairs[idx * 2 + 1], &items[1], idx * 2 + 1))?;
        match node.kind {
            Kind::Fn(function) => functions.push((local, *function)),
            _ => return fail("E0216", node.span, "letfn binds functions only"),
        }
    }
    let body = cx.body(form, items, 2)?;
    cx.scopes.forget(mark);
    Ok(Node::new(
        Kind::LetFn {
            functions,
            body: Box::new(body),
        },
        span,
    ))
}
