//! Selects a part of a value, and prints its beginning.

use flowstone_lang::value::Value;

use crate::cli::pretty::pretty;
use crate::cli::report::Report;

/// Limits of a preview.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub depth: usize,
    pub items: usize,
    pub chars: usize,
}

/// Returns the beginning of a printed value, and whether anything was left out. `...` marks each omission.
pub(super) fn preview(value: &Value, bounds: Bounds) -> (String, bool) {
    let mut is_cut = false;
    let shown = cut(value, bounds, bounds.depth, &mut is_cut);
    (pretty(&shown), is_cut)
}

fn cut(value: &Value, bounds: Bounds, depth: usize, is_cut: &mut bool) -> Value {
    let more = || Value::symbol("...");
    let count = match value {
        Value::Map(map) => map.len(),
        Value::Vector(vector) => vector.len(),
        Value::Set(set) => set.len(),
        Value::List(list) => list.iter().count(),
        Value::Text(text) => {
            let Some((end, _)) = text.char_indices().nth(bounds.chars) else {
                return value.clone();
            };
            *is_cut = true;
            return Value::from(format!("{}...", &text[..end]));
        }
        _ => return value.clone(),
    };
    if count == 0 {
        return value.clone();
    }
    if depth == 0 {
        *is_cut = true;
        return more();
    }
    let has_more = count > bounds.items;
    *is_cut |= has_more;
    let tail = has_more.then(more);
    let mut inner = |value: &Value| cut(value, bounds, depth - 1, is_cut);
    match value {
        Value::Map(map) => {
            let kept: Vec<(Value, Value)> = map
                .iter()
                .take(bounds.items)
                .map(|(key, value)| (key.clone(), inner(value)))
                .collect();
            let tail = tail.map(|more| (more.clone(), more));
            Value::map(kept.into_iter().chain(tail))
        }
        Value::Set(set) => {
            let kept: Vec<Value> = set.iter().take(bounds.items).map(inner).collect();
            Value::set(kept.into_iter().chain(tail))
        }
        Value::List(list) => {
            let kept: Vec<Value> = list.iter().take(bounds.items).map(inner).collect();
            Value::list(kept.into_iter().chain(tail))
        }
        Value::Vector(vector) => {
            let kept: Vec<Value> = vector.iter().take(bounds.items).map(inner).collect();
            Value::vector(kept.into_iter().chain(tail))
        }
        other => other.clone(),
    }
}

/// Returns the part of a value under a path of names and indexes, separated by points.
pub(super) fn at(value: &Value, path: &str) -> Result<Value, Report> {
    let mut at = value.clone();
    for step in path.split('.') {
        let name = step.trim_start_matches(':');
        let inner = match &at {
            Value::Map(map) => map
                .iter()
                .find(|(key, _)| {
                    flowstone_engine::json::name_text(key).is_some_and(|key| key == name)
                })
                .map(|(_, value)| value.clone()),
            Value::Vector(items) => name
                .parse::<usize>()
                .ok()
                .and_then(|idx| items.get(idx).cloned()),
            _ => None,
        };
        at = inner.ok_or_else(|| {
            let message = format!("the result has nothing under `{path}`: there is no `{step}`");
            let there = match &at {
                Value::Map(map) => {
                    let names = map.iter().take(20);
                    let names = names.filter_map(|(key, _)| flowstone_engine::json::name_text(key));
                    format!("there are {}", names.collect::<Vec<_>>().join(", "))
                }
                Value::Vector(items) => format!("there are {} items, from 0", items.len()),
                other => format!("there is {}", other.kind()),
            };
            Report::error("E0948", message).hint(there)
        })?;
    }
    Ok(at)
}
