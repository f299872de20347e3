//! `quote` and `var`.

use super::super::analyze::Analyzer;
use super::super::fail;
use super::super::node::{Kind, Node};
use super::expect_items;
use crate::value::{Result, Value};

pub(super) fn quote(cx: &mut Analyzer<'_>, _form: &Value, items: &[Value]) -> Result<Node> {
    expect_items(cx, items, 2, 2, "(quote form) or 'form")?;
    Ok(Node::constant(items[1].clone(), cx.place))
}

pub(super) fn var(cx: &mut Analyzer<'_>, _form: &Value, items: &[Value]) -> Result<Node> {
    expect_items(cx, items, 2, 2, "(var name) or #'name")?;
    let span = cx.place;
    let Some(name) = items[1].as_symbol() else {
        return fail(
            "E0212",
            span,
            format!("`var` needs a symbol, and this is {}", items[1].kind()),
        );
    };
    match cx.var(name)? {
        Some(var) => Ok(Node::new(Kind::Const(Value::Var(var)), span)),
        None => fail(
            "E0204",
            items[1].span().or(span),
            format!("`{name}` is not defined: there is no such var"),
        ),
    }
}
