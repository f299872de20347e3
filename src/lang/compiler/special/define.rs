//! `def` and `set!`.

use super::super::analyze::Analyzer;
use super::super::node::{Kind, Node};
use super::super::{error, fail};
use super::expect_items;
use crate::value::{LineColumn, List, Result, Symbol, Value};

/// `(def name doc? value?)`. The var exists from here on, so that its value may refer to it.
pub(super) fn def(cx: &mut Analyzer<'_>, form: &Value, items: &[Value]) -> Result<Node> {
    expect_items(
        cx,
        items,
        2,
        4,
        "(def name value) or (def name \"doc\" value)",
    )?;
    let span = cx.place;
    let Some(name) = items[1].as_symbol() else {
        return fail(
            "E0212",
            items[1].span().or(form.item_span(1)).or(span),
            format!(
                "`def` needs a symbol to define, and this is {}",
                items[1].kind()
            ),
        );
    };
    let current = cx.vm.world().current.borrow().clone();
    if let Some(namespace) = name.namespace()
        && *namespace != *current.name.to_string()
    {
        return fail(
            "E0212",
            items[1].span().or(span),
            format!(
                "`def` cannot define `{name}` from the namespace {}",
                current.name
            ),
        );
    }
    let (doc, value) = match &items[2..] {
        [] => (None, None),
        [value] => (None, Some((value, 2))),
        [doc @ Value::Text(_), value] => (Some(doc.clone()), Some((value, 3))),
        _ => {
            return Err(error(
                "E0209",
                span,
                "the second of three forms of `def` must be a docstring",
            )
            .into());
        }
    };
    cx.vm.touch_session()?;
    let var = current.intern(Symbol::new(&name.name()));
    let meta = meta(cx, &items[1], doc, span)?;
    // Flags apply from now on: the rest of this form already uses them.
    var.set_meta(constant_part(&meta));
    let meta = match cx.node(&meta)? {
        Node {
            kind: Kind::Const(meta),
            ..
        } => {
            var.set_meta(meta);
            None
        }
        node => Some(Box::new(node)),
    };
    let value = match value {
        Some((value, idx)) => Some(Box::new(cx.not_tail(|cx| cx.item(value, form, idx))?)),
        None => None,
    };
    Ok(Node::new(Kind::Define { var, value, meta }, span))
}

/// Returns the form of the metadata: that of the name, the docstring and the place.
fn meta(
    cx: &Analyzer<'_>,
    name: &Value,
    doc: Option<Value>,
    span: crate::value::Span,
) -> Result<Value> {
    let mut entries = name
        .meta()
        .as_map()
        .map_or_else(Default::default, |meta| meta.entries().clone());
    if let Some(doc) = doc {
        entries.insert(Value::keyword("doc"), doc);
    }
    let sources = cx.vm.world().sources.borrow();
    if let Some(source) = span.is_some().then(|| sources.get(span.source)).flatten() {
        let LineColumn { line, column } = source.line_column(span.start);
        entries.insert(Value::keyword("line"), Value::Int(i64::from(line)));
        entries.insert(Value::keyword("column"), Value::Int(i64::from(column)));
        entries.insert(Value::keyword("file"), Value::text(&*source.name));
    }
    Ok(Value::Map(std::rc::Rc::new(crate::value::Map::new(
        entries,
    ))))
}

/// Returns the entries of a metadata form that are flags, which must be literals.
fn constant_part(meta: &Value) -> Value {
    let flags = ["dynamic", "macro", "private"];
    let entries = flags.iter().filter_map(|flag| {
        let value = meta.get(flag)?;
        matches!(value, Value::Bool(_)).then(|| (Value::keyword(flag), value.clone()))
    });
    Value::map(entries.collect::<Vec<_>>())
}

/// `(set! var value)` of a dynamic var that is bound here.
pub(super) fn set(cx: &mut Analyzer<'_>, _form: &Value, items: &[Value]) -> Result<Node> {
    expect_items(cx, items, 3, 3, "(set! *var* value)")?;
    let span = cx.place;
    let Some(name) = items[1].as_symbol() else {
        return match super::fields::set_member(cx, items)? {
            Some(node) => Ok(node),
            None => {
                let message = "`set!` changes bound dynamic vars and mutable fields only";
                cx.deferred(crate::compiler::error("E0212", span, message))
            }
        };
    };
    if let Some(node) = super::fields::set(cx, items, name)? {
        return Ok(node);
    }
    let var = List::of([Value::symbol("var"), items[1].clone()]);
    let call = List::of([Value::symbol("clojure.core/var-set"), var, items[2].clone()]);
    cx.node(&call)
}
