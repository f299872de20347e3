//! `new` and `.`: sugar for the functions that implement host classes and methods.

use super::super::analyze::{Analyzer, class_named};
use super::super::node::Node;
use super::expect_items;
use crate::value::{List, Object, Result, Symbol, Value};

/// `(new Class args ...)` for throwable classes, and for any class with a function `Class/new`.
pub(super) fn new(cx: &mut Analyzer<'_>, form: &Value, items: &[Value]) -> Result<Node> {
    expect_items(cx, items, 2, usize::MAX, "(new Class args ...)")?;
    let name = items[1]
        .as_symbol()
        .map(|symbol| symbol.to_string())
        .unwrap_or_default();
    if let Some(class) = class_named(&name) {
        let mut call = vec![
            Value::symbol("clojure.core/new-exception"),
            Value::from(Object::Class(class)),
        ];
        call.extend_from_slice(&items[2..]);
        return cx.node(&with_place(form, call));
    }
    // The namespace of a name before the dot is ignored: `(alias/Type. x)` is a call of `Type`, as in Clojure.
    if let Some((_, plain)) = name.split_once('/')
        && cx
            .var(Symbol::with_namespace(Some(plain), "new"))?
            .is_some()
    {
        let mut call = vec![items[0].clone(), Value::symbol(plain)];
        call.extend_from_slice(&items[2..]);
        return cx.node(&with_place(form, call));
    }
    let full = name.replace('_', "-");
    // A type of the program may have the short name of a host class.
    for class in [&full, short(&name)] {
        let constructor = Symbol::with_namespace(Some(class), "new");
        if cx.var(constructor)?.is_none() {
            continue;
        }
        let mut call = vec![Value::Symbol(constructor)];
        call.extend_from_slice(&items[2..]);
        return cx.node(&with_place(form, call));
    }
    cx.deferred(super::super::undefined::class(cx.vm, &name, cx.place))
}

/// `(. x (method args ...))`, `(. x method args ...)`: a call of the function `.method`.
pub(super) fn member(cx: &mut Analyzer<'_>, form: &Value, items: &[Value]) -> Result<Node> {
    expect_items(cx, items, 3, usize::MAX, "(. value method args ...)")?;
    let (method, args) = match &items[2] {
        Value::List(list) => (list.first.clone(), cx.vm.items(list.rest.clone())?),
        method => (method.clone(), items[3..].to_vec()),
    };
    // A syntax quote adds the current namespace to the method's name.
    let name = method
        .as_symbol()
        .map_or_else(|| "".into(), |symbol| symbol.name());
    let mut call = match static_member(cx, &items[1], &name)? {
        Some(function) => vec![Value::Symbol(function)],
        None => vec![Value::symbol(&format!(".{name}")), items[1].clone()],
    };
    call.extend(args);
    cx.node(&with_place(form, call))
}

/// Returns the function of a static method, if the target of a call is a class.
fn static_member(cx: &mut Analyzer<'_>, target: &Value, name: &str) -> Result<Option<Symbol>> {
    let Some(class) = target
        .as_symbol()
        .filter(|class| !cx.scopes.is_local(*class))
    else {
        return Ok(None);
    };
    let function = Symbol::with_namespace(Some(&class.to_string()), name.trim_start_matches('-'));
    let is_class = short(&class.to_string()).starts_with(char::is_uppercase);
    Ok((is_class && cx.var(function)?.is_some()).then_some(function))
}

/// Returns the last part of a class name.
fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn with_place(form: &Value, items: Vec<Value>) -> Value {
    let call = List::of(items);
    match (&call, form.place()) {
        (Value::List(list), Some(place)) => {
            let place = crate::value::Place {
                span: place.span,
                items: Box::default(),
            };
            let extra = Some(std::rc::Rc::new(crate::value::Extras {
                meta: Value::Nil,
                place: Some(place),
            }));
            Value::List(std::rc::Rc::new(list.with_extra(extra)))
        }
        _ => call,
    }
}
