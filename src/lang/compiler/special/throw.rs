//! `throw` and `try`.

use super::super::analyze::{Analyzer, class_named};
use super::super::node::{Kind, Node, TryNode};
use super::super::{error, fail, undefined};
use super::{expect_items, plain_name};
use crate::suggest::did_you_mean;
use crate::value::{Class, Object, Result, Signal, Span, Symbol, Value};

pub(super) fn throw(cx: &mut Analyzer<'_>, form: &Value, items: &[Value]) -> Result<Node> {
    expect_items(cx, items, 2, 2, "(throw exception)")?;
    let span = cx.place;
    let value = cx.not_tail(|cx| cx.item(&items[1], form, 1))?;
    Ok(Node::new(Kind::Throw(Box::new(value)), span))
}

pub(super) fn stray_catch(cx: &mut Analyzer<'_>, _form: &Value, items: &[Value]) -> Result<Node> {
    let name = items[0]
        .as_symbol()
        .map_or_else(String::new, |name| name.to_string());
    fail("E0220", cx.place, format!("`{name}` is outside of a `try`"))
}

/// `(try body ... (catch Class name body ...) ... (finally body ...))`.
pub(super) fn try_(cx: &mut Analyzer<'_>, form: &Value, items: &[Value]) -> Result<Node> {
    let span = cx.place;
    let is_clause = |item: &Value, name: &str| matches!(item, Value::List(list) if list.first.as_symbol().is_some_and(|symbol| symbol.is(name)));
    let end = items
        .iter()
        .position(|item| is_clause(item, "catch") || is_clause(item, "finally"))
        .unwrap_or(items.len());
    let why = "recur cannot leave a `try`: put the loop outside";
    let guarded = items[end..].iter().any(|item| is_clause(item, "catch"));
    cx.guards += u32::from(guarded);
    let body = cx.barrier(why, |cx| cx.body(form, &items[..end], 1));
    cx.guards -= u32::from(guarded);
    let body = body?;
    let mut catches = Vec::new();
    let mut finally = None;
    for item in &items[end..] {
        let place = item.span().or(span);
        if finally.is_some() {
            return Err(
                error("E0220", place, "nothing can follow `finally` in a `try`")
                    .hint("it is written (try body ... (catch Exception e ...) (finally ...))")
                    .into(),
            );
        }
        let parts = cx.vm.items(item.clone()).unwrap_or_default();
        if is_clause(item, "catch") {
            catches.push(cx.barrier(why, |cx| catch(cx, item, &parts))?);
        } else if is_clause(item, "finally") {
            finally = Some(cx.barrier(why, |cx| cx.body(item, &parts, 1))?);
        } else {
            return fail(
                "E0220",
                place,
                "only `catch` and `finally` can follow a `catch`",
            );
        }
    }
    if catches.is_empty() && finally.is_none() {
        return Ok(body);
    }
    Ok(Node::new(
        Kind::Try(Box::new(TryNode {
            body,
            catches,
            finally,
        })),
        span,
    ))
}

/// Returns the error for a `catch` whose first form does not name an exception class.
fn no_class(name: Option<&str>, place: Span) -> Signal {
    let known = || Class::THROWABLES.iter().map(|class| class.0.name);
    let Some(name) = name else {
        return error(
            "E0221",
            place,
            "a `catch` begins with a class of exceptions",
        )
        .hint("it is written (catch Exception e body ...); :default catches anything")
        .into();
    };
    let refused = error(
        "E0221",
        place,
        format!("`{name}` is not a class of exceptions"),
    );
    match &did_you_mean(name, known())[..] {
        [] if name.starts_with(char::is_lowercase) => refused
            .hint("it is written (catch Exception e body ...): the class comes before the name"),
        [] => refused.hint(format!(
            "there are: {}, and :default for any",
            known().collect::<Vec<_>>().join(", ")
        )),
        near => refused.hint(format!("did you mean `{}`?", near[0])),
    }
    .into()
}

fn catch(
    cx: &mut Analyzer<'_>,
    form: &Value,
    parts: &[Value],
) -> Result<(Option<Value>, u32, Node)> {
    expect_items(cx, parts, 3, usize::MAX, "(catch ExceptionInfo e body ...)")?;
    let class = match &parts[1] {
        Value::Keyword(keyword) if keyword.parts().name.as_ref() == "default" => None,
        other => {
            let name = other.as_symbol().map(|symbol| symbol.to_string());
            let Some(class) = name.as_deref().and_then(class_named) else {
                if other
                    .as_symbol()
                    .is_some_and(|symbol| is_foreign(cx, symbol))
                {
                    // A class without instances here; the body is still checked.
                    let class = Object::Class(Class::PRIMITIVE_BOOLEAN);
                    return caught(cx, form, parts, Some(Value::from(class)));
                }
                let place = other.span().or(form.item_span(1)).or(cx.place);
                return Err(no_class(name.as_deref(), place));
            };
            (class != Class::THROWABLE).then(|| Value::from(Object::Class(class)))
        }
    };
    caught(cx, form, parts, class)
}

/// Tells whether a symbol names a host class that does not exist here, in a program that may name one.
fn is_foreign(cx: &mut Analyzer<'_>, symbol: Symbol) -> bool {
    if !cx.vm.world().defers_host_names() {
        return false;
    }
    let class = match cx.var(symbol) {
        Ok(Some(var)) => Symbol::new(&format!("{}.{}", var.namespace, var.name)),
        _ => symbol,
    };
    undefined::is_foreign_class(class)
}

fn caught(
    cx: &mut Analyzer<'_>,
    form: &Value,
    parts: &[Value],
    class: Option<Value>,
) -> Result<(Option<Value>, u32, Node)> {
    let mark = cx.scopes.mark();
    let name = plain_name(cx, (form, 2), &parts[2], "the name of a caught exception")?;
    let local = cx.scopes.define(name);
    let body = cx.body(form, parts, 3);
    cx.scopes.forget(mark);
    Ok((class, local, body?))
}
