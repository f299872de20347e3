//! Patterns in bindings, taken apart into plain ones.

use super::error;
use super::macros::{form_of as form, symbol_of as symbol};
use crate::value::{Keyword, Map, Result, Symbol, Value, Vector};
use crate::vm::Vm;

/// Tells whether a binding form is a plain name.
pub(super) fn is_plain(pattern: &Value) -> bool {
    pattern.as_symbol().is_some()
}

/// Returns a symbol that the user cannot have written.
pub(super) fn fresh(vm: &mut Vm, prefix: &str) -> Value {
    Value::Symbol(Symbol::new(&format!(
        "{prefix}__{}__auto",
        vm.world().next_id()
    )))
}

/// Takes the patterns of a binding vector apart.
///
/// # Errors
/// When something is no pattern.
pub(crate) fn bindings(vm: &mut Vm, vector: &Value) -> Result<Value> {
    let Value::Vector(pairs) = vector else {
        return Ok(vector.clone());
    };
    let pairs: Vec<Value> = pairs.iter().cloned().collect();
    let mut plain = Vec::new();
    for pair in pairs.chunks(2) {
        let [pattern, value] = pair else {
            plain.push(pair[0].clone());
            break;
        };
        take_apart(vm, pattern, value.clone(), &mut plain)?;
    }
    let made = Value::vector(plain);
    Ok(match (&made, vector.place()) {
        (Value::Vector(made), Some(place)) => {
            let place = crate::value::Place {
                span: place.span,
                items: Box::default(),
            };
            let extra = crate::value::Extras {
                meta: Value::Nil,
                place: Some(place),
            };
            Value::Vector(std::rc::Rc::new(
                made.with_extra(Some(std::rc::Rc::new(extra))),
            ))
        }
        _ => made,
    })
}

fn take_apart(vm: &mut Vm, pattern: &Value, value: Value, out: &mut Vec<Value>) -> Result<()> {
    match pattern {
        Value::Vector(items) => sequential(vm, items, value, out),
        Value::Map(entries) => associative(vm, entries, value, out),
        plain if is_plain(plain) => {
            out.extend([plain.clone(), value]);
            Ok(())
        }
        other => Err(error(
            "E0225",
            other.span(),
            format!(
                "{} cannot be bound to: a pattern is a symbol, a vector or a map",
                other.kind()
            ),
        )
        .into()),
    }
}

/// Gives a value a name, unless it is one.
fn held(vm: &mut Vm, value: Value, prefix: &str, out: &mut Vec<Value>) -> Value {
    if is_plain(&value) {
        return value;
    }
    let name = fresh(vm, prefix);
    out.extend([name.clone(), value]);
    name
}

fn sequential(vm: &mut Vm, items: &Vector, value: Value, out: &mut Vec<Value>) -> Result<()> {
    let items: Vec<Value> = items.iter().cloned().collect();
    let is_rest = |item: &Value| item.as_symbol().is_some_and(|symbol| symbol.is("&"));
    let is_as = |item: &Value| {
        item.as_keyword()
            .is_some_and(|keyword| keyword == Keyword::new("as"))
    };
    let has_rest = items.iter().any(is_rest);
    let whole = held(vm, value, "vec", out);
    let mut seq = whole.clone();
    if has_rest {
        seq = fresh(vm, "seq");
        out.extend([
            seq.clone(),
            form([symbol("clojure.core/seq"), whole.clone()]),
        ]);
    }
    let mut at = 0;
    let mut idx = 0;
    while at < items.len() {
        let item = &items[at];
        if is_as(item) || is_rest(item) {
            let Some(target) = items.get(at + 1) else {
                return Err(error(
                    "E0225",
                    item.span(),
                    "a name must follow `&` and `:as` in a pattern",
                )
                .into());
            };
            let source = if is_as(item) {
                whole.clone()
            } else {
                seq.clone()
            };
            take_apart(vm, target, source, out)?;
            at += 2;
            continue;
        }
        let element = if has_rest {
            let first = form([symbol("clojure.core/first"), seq.clone()]);
            let name = if is_plain(item) {
                item.clone()
            } else {
                fresh(vm, "first")
            };
            out.extend([name.clone(), first]);
            let next = fresh(vm, "seq");
            out.extend([next.clone(), form([symbol("clojure.core/next"), seq])]);
            seq = next;
            name
        } else {
            form([
                symbol("clojure.core/nth"),
                whole.clone(),
                Value::Int(idx),
                Value::Nil,
            ])
        };
        if !(has_rest && is_plain(item)) {
            take_apart(vm, item, element, out)?;
        }
        idx += 1;
        at += 1;
    }
    Ok(())
}

fn associative(vm: &mut Vm, entries: &Map, value: Value, out: &mut Vec<Value>) -> Result<()> {
    let source = held(vm, value, "map", out);
    let whole = fresh(vm, "map");
    out.extend([
        whole.clone(),
        form([symbol("clojure.core/destructure-map"), source]),
    ]);
    let defaults = entries.get(&Value::keyword("or")).cloned();
    let defaults = defaults.as_ref().and_then(Value::as_map);
    let entries: Vec<(Value, Value)> = entries
        .iter()
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    // `:as` first, so that defaults may use it.
    for (key, target) in &entries {
        if *key == Value::keyword("as") {
            take_apart(vm, target, whole.clone(), out)?;
        }
    }
    for (key, target) in &entries {
        match key {
            Value::Keyword(keyword) => named(vm, *keyword, target, &whole, defaults, out)?,
            pattern => {
                let default = pattern
                    .as_symbol()
                    .and_then(|name| default_of(defaults, name));
                let element = lookup(&whole, target.clone(), default);
                take_apart(vm, pattern, element, out)?;
            }
        }
    }
    Ok(())
}

/// `:keys`, `:strs`, `:syms`, also with a namespace.
fn named(
    vm: &mut Vm,
    keyword: Keyword,
    names: &Value,
    whole: &Value,
    defaults: Option<&std::rc::Rc<Map>>,
    out: &mut Vec<Value>,
) -> Result<()> {
    let (kind, namespace) = (keyword.name(), keyword.namespace());
    if !matches!(&*kind, "keys" | "strs" | "syms") {
        if matches!(&*kind, "as" | "or") {
            return Ok(());
        }
        return Err(error(
            "E0225",
            names.span(),
            format!("{keyword} means nothing in a pattern"),
        )
        .hint("there are :keys, :strs, :syms, :or and :as")
        .into());
    }
    let Value::Vector(names) = names else {
        return Err(error(
            "E0225",
            names.span(),
            format!("{keyword} needs a vector of names"),
        )
        .into());
    };
    let _ = vm;
    for name in names.iter() {
        let symbol = name
            .as_symbol()
            .or_else(|| name.as_keyword().map(Symbol::from));
        let Some(full) = symbol else {
            return Err(error(
                "E0225",
                name.span(),
                format!("{keyword} needs names, and this is {}", name.kind()),
            )
            .into());
        };
        let local = Symbol::new(&full.name());
        let prefix = full.namespace().or_else(|| namespace.clone());
        let qualified = Symbol::with_namespace(prefix.as_deref(), &full.name());
        let key = match &*kind {
            "keys" => Value::Keyword(Keyword::from(qualified)),
            "strs" => Value::text(&*full.name()),
            _ => form([super::macros::symbol_of("quote"), Value::Symbol(qualified)]),
        };
        let plain = match name {
            Value::Name(_) if full.namespace().is_none() => name.clone(),
            _ => Value::Symbol(local),
        };
        out.extend([plain, lookup(whole, key, default_of(defaults, local))]);
    }
    Ok(())
}

fn default_of(defaults: Option<&std::rc::Rc<Map>>, name: Symbol) -> Option<Value> {
    defaults?.get(&Value::Symbol(name)).cloned()
}

fn lookup(whole: &Value, key: Value, default: Option<Value>) -> Value {
    match (key, default) {
        (key @ Value::Keyword(_), None) => form([key, whole.clone()]),
        (key, None) => form([symbol("clojure.core/get"), whole.clone(), key]),
        (key, Some(default)) => form([symbol("clojure.core/get"), whole.clone(), key, default]),
    }
}
