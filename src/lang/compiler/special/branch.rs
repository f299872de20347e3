//! `if`, `do`, `and`, `or`, `case`.

use super::super::analyze::Analyzer;
use super::super::error;
use super::super::node::{Kind, Node, Ref, Use};
use super::expect_items;
use crate::value::{List, PMap, Result, Symbol, Value};

pub(super) fn if_(cx: &mut Analyzer<'_>, form: &Value, items: &[Value]) -> Result<Node> {
    expect_items(cx, items, 3, 4, "(if test then else)")?;
    let span = cx.place;
    let test = cx.not_tail(|cx| cx.item(&items[1], form, 1))?;
    let then = arm(cx, &items[2], (form, 2), "then")?;
    let otherwise = match items.get(3) {
        Some(otherwise) => arm(cx, otherwise, (form, 3), "else")?,
        None => match cx.vm.world().is_measured() {
            true => arm(cx, &Value::Nil, (form, 3), "else")?,
            false => Node::constant(Value::Nil, span),
        },
    };
    let parts = Kind::If {
        test: Box::new(test),
        then: Box::new(then),
        otherwise: Box::new(otherwise),
    };
    Ok(Node::new(parts, span))
}

/// Analyses a branch, which records that it is taken if branches are measured.
fn arm(
    cx: &mut Analyzer<'_>,
    item: &Value,
    (form, idx): (&Value, usize),
    label: &str,
) -> Result<Node> {
    let Some(number) = cx.vm.world().branch(cx.place, label) else {
        return cx.item(item, form, idx);
    };
    let taken = List::of([
        Value::symbol("clojure.core/branch-taken*"),
        Value::from(number),
    ]);
    cx.node(&List::of([Value::symbol("do"), taken, item.clone()]))
}

pub(super) fn do_(cx: &mut Analyzer<'_>, form: &Value, items: &[Value]) -> Result<Node> {
    cx.body(form, items, 1)
}

pub(super) fn and(cx: &mut Analyzer<'_>, form: &Value, items: &[Value]) -> Result<Node> {
    connective(cx, form, items, Value::Bool(true), Kind::And)
}

pub(super) fn or(cx: &mut Analyzer<'_>, form: &Value, items: &[Value]) -> Result<Node> {
    connective(cx, form, items, Value::Nil, Kind::Or)
}

fn connective(
    cx: &mut Analyzer<'_>,
    form: &Value,
    items: &[Value],
    empty: Value,
    kind: fn(Vec<Node>) -> Kind,
) -> Result<Node> {
    let span = cx.place;
    match items.len() {
        1 => return Ok(Node::constant(empty, span)),
        2 => return cx.item(&items[1], form, 1),
        _ => {}
    }
    let mut parts = Vec::new();
    for (idx, item) in items.iter().enumerate().skip(1) {
        let is_last = idx + 1 == items.len();
        parts.push(if is_last {
            cx.item(item, form, idx)?
        } else {
            cx.not_tail(|cx| cx.item(item, form, idx))?
        });
    }
    Ok(Node::new(kind(parts), span))
}

/// `(case value test result ... default?)`; a list of tests means any of them.
pub(super) fn case(cx: &mut Analyzer<'_>, form: &Value, items: &[Value]) -> Result<Node> {
    let span = cx.place;
    expect_items(
        cx,
        items,
        2,
        usize::MAX,
        "(case value constant result ... default)",
    )?;
    let has_default = items.len() % 2 == 1;
    let mut value = cx.not_tail(|cx| cx.item(&items[1], form, 1))?;
    let mark = cx.scopes.mark();
    let held = (!has_default).then(|| {
        // The value is evaluated once, and the message of a failure shows it.
        let name = Symbol::new("case-value__");
        let local = cx.scopes.define(name);
        let place = Node::new(Kind::Ref(Use::new(Ref::Local(local))), span);
        (local, name, std::mem::replace(&mut value, place))
    });
    let mut table = PMap::new();
    let mut branches = Vec::new();
    let mut at = 2;
    while at + 1 < items.len() {
        let label = format!("case {}", at / 2);
        branches.push(arm(cx, &items[at + 1], (form, at + 1), &label)?);
        let tests = match &items[at] {
            Value::List(list) => list.iter().cloned().collect(),
            test => vec![test.clone()],
        };
        for test in tests {
            if table.contains(&test) {
                let shown = cx.vm.print(&test, crate::value::PrintOptions::BRIEF)?;
                return Err(error(
                    "E0217",
                    items[at].span().or(form.item_span(at)).or(span),
                    format!("`case` has the constant {shown} twice"),
                )
                .hint("delete one of the two; one result for several constants is written (case x (1 2) result)")
                .into());
            }
            table.insert(test, Value::from(branches.len()));
        }
        at += 2;
    }
    let default = match &held {
        None => arm(cx, &items[at], (form, at), "default")?,
        Some((_, name, _)) => cx.node(&List::of([
            Value::symbol("clojure.core/no-case"),
            Value::Symbol(*name),
        ]))?,
    };
    cx.scopes.forget(mark);
    let table = Value::Map(std::rc::Rc::new(crate::value::Map::new(table)));
    let case = Kind::Case {
        value: Box::new(value),
        table,
        branches,
        default: Box::new(default),
    };
    let case = Node::new(case, span);
    Ok(match held {
        None => case,
        Some((local, _, value)) => Node::new(
            Kind::Let {
                bindings: vec![(local, value)],
                body: Box::new(case),
            },
            span,
        ),
    })
}
