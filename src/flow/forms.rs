//! Inspection of forms: quoted forms, and the places of the parts of a map.

use flowstone_lang::value::{Sources, Span, Value};

use crate::spec::shape::{Mismatch, What};

/// Returns the quoted form, or `None` if the form is not a quote.
pub(crate) fn quoted(form: &Value) -> Option<Value> {
    let Value::List(list) = form else {
        return None;
    };
    let mut items = list.iter();
    let head = items.next()?;
    if !head.as_symbol().is_some_and(|symbol| symbol.is("quote")) {
        return None;
    }
    let inner = items.next()?;
    items.next().is_none().then(|| inner.clone())
}

/// Returns the form without its quote, if it has one.
pub(crate) fn unquoted(form: &Value) -> Value {
    quoted(form).unwrap_or_else(|| form.clone())
}

/// Tells whether a form evaluates to itself at every depth.
pub fn is_known(form: &Value) -> bool {
    match form {
        Value::List(_) | Value::Symbol(_) | Value::Name(_) => false,
        Value::Vector(items) => items.iter().all(is_known),
        Value::Set(items) => items.iter().all(is_known),
        Value::Map(map) => map
            .iter()
            .all(|(key, value)| is_known(key) && is_known(value)),
        _ => true,
    }
}

/// The places of an entry of a map literal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntrySpans {
    pub key: Span,
    pub value: Span,
}

/// Finds an entry of a map literal by the text of its key, which begins with a colon for keywords.
///
/// The items of a map's place are in the written order, which is not the iteration order of a larger map.
pub(crate) fn entry_spans(sources: &Sources, map: &Value, key: &str) -> EntrySpans {
    let whole = map.span();
    let is_key = |span: &Span| {
        let range = span.start as usize..span.end as usize;
        let source = sources.get(span.source);
        source.is_some_and(|source| source.text.get(range) == Some(key))
    };
    map.place()
        .and_then(|place| place.items.chunks(2).find(|pair| is_key(&pair[0])))
        .map_or(
            EntrySpans {
                key: whole,
                value: whole,
            },
            |pair| EntrySpans {
                key: pair[0],
                value: pair.get(1).copied().unwrap_or(pair[0]),
            },
        )
}

/// Returns the place of an item of a list or vector literal.
pub(crate) fn item_span(form: &Value, idx: usize) -> Span {
    form.place()
        .and_then(|place| place.items.get(idx).copied())
        .unwrap_or_else(|| form.span())
}

/// Returns the items of a list or vector.
pub(crate) fn items(form: &Value) -> Option<Vec<Value>> {
    match form {
        Value::List(list) => Some(list.iter().cloned().collect()),
        Value::Vector(vector) => Some(vector.iter().cloned().collect()),
        _ => None,
    }
}

/// Returns the place of a mismatch inside a value, as exactly as the value is written out. `whole` is the value with
/// its place.
pub(crate) fn misfit_span(sources: &Sources, whole: (&Value, Span), mismatch: &Mismatch) -> Span {
    let (mut at, mut span) = (Some(whole.0.clone()), whole.1);
    for step in &mismatch.path {
        let Some(value) = at.take() else {
            return span;
        };
        if let (Value::Map(_), Some(name)) = (&value, step.strip_prefix(':')) {
            span = entry_spans(sources, &value, step).value.or(span);
            at = value.get(name).cloned();
        } else if let Ok(idx) = step.parse::<usize>() {
            span = item_span(&value, idx).or(span);
            at = crate::json::items(&value).and_then(|items| items.get(idx).cloned());
        }
    }
    match (&mismatch.what, at) {
        (What::Unknown { key, .. }, Some(map @ Value::Map(_))) => {
            entry_spans(sources, &map, &format!(":{key}")).key.or(span)
        }
        _ => span,
    }
}

/// Returns the forms directly inside a form: keys and values of a map, items of a set or a sequence.
pub(crate) fn children(form: &Value) -> Vec<Value> {
    match form {
        Value::Map(map) => map
            .iter()
            .flat_map(|(key, value)| [key.clone(), value.clone()])
            .collect(),
        Value::Set(set) => set.iter().cloned().collect(),
        form => items(form).unwrap_or_default(),
    }
}
