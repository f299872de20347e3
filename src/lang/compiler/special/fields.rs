//! `fields*`: the mutable fields of an object. Inside its body the name of such a field refers to the field's current
//! value, and `set!` changes it.

use super::super::analyze::Analyzer;
use super::super::node::Node;
use super::super::{error, fail};
use super::expect_items;
use crate::value::{List, Result, Symbol, Value};

/// `(fields* this [field ...] body ...)`, where each field is already a local.
pub(super) fn fields(cx: &mut Analyzer<'_>, form: &Value, items: &[Value]) -> Result<Node> {
    expect_items(
        cx,
        items,
        3,
        usize::MAX,
        "(fields* this [field ...] body ...)",
    )?;
    let (Some(this), Value::Vector(names)) = (items[1].as_symbol(), &items[2]) else {
        return fail(
            "E0213",
            cx.place,
            "`fields*` needs a name and a vector of fields",
        );
    };
    let names: Vec<Symbol> = names.iter().filter_map(Value::as_symbol).collect();
    let before = cx.scopes.mark_fields(&names, this);
    let body = cx.body(form, items, 3);
    cx.scopes.forget_fields(before);
    body
}

/// Returns the form that reads a mutable field.
pub(in crate::compiler) fn read(field: Symbol, this: Symbol) -> Value {
    List::of([
        Value::symbol("clojure.core/field-of"),
        Value::Symbol(this),
        Value::keyword(&field.name()),
    ])
}

/// `(set! field value)`; `None` if the name is not such a field.
pub(super) fn set(cx: &mut Analyzer<'_>, items: &[Value], name: Symbol) -> Result<Option<Node>> {
    if let Some(this) = cx.scopes.field_owner(name) {
        let call = List::of([
            Value::symbol("clojure.core/set-field-of"),
            Value::Symbol(this),
            Value::keyword(&name.name()),
            items[2].clone(),
        ]);
        return cx.node(&call).map(Some);
    }
    if cx.scopes.is_local(name) {
        return Err(error(
            "E0218",
            items[1].span().or(cx.place),
            format!("`{name}` is a local, and locals do not change"),
        )
        .hint("use an atom, or loop and recur with the next value; a field of a deftype can be marked ^:unsynchronized-mutable")
        .into());
    }
    Ok(None)
}

/// `(set! (.-field x) value)`; `None` for any other form.
pub(super) fn set_member(cx: &mut Analyzer<'_>, items: &[Value]) -> Result<Option<Node>> {
    let target = cx.vm.items(items[1].clone()).unwrap_or_default();
    let [method, object] = &target[..] else {
        return Ok(None);
    };
    let name = method.as_symbol().map(|symbol| symbol.name());
    let Some(field) = name.as_deref().and_then(|name| name.strip_prefix(".-")) else {
        return Ok(None);
    };
    let call = List::of([
        Value::symbol("clojure.core/set-field-of"),
        object.clone(),
        Value::keyword(field),
        items[2].clone(),
    ]);
    cx.node(&call).map(Some)
}
