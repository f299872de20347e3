//! Expands patterns in bindings into plain bindings.

use super::error;
use super::macros::{form_of as form, symbol_of as symbol};
use crate::value::{Keyword, Map, Place, Result, Signal, Span, Symbol, Value, Vector, brief};
use crate::vm::Vm;

/// Tells whether a binding form is a plain name.
pub(super) fn is_plain(pattern: &Value) -> bool {
    pattern.as_symbol().is_some()
}

/// Number of distinct generated names: each is used for a few bindings only, and interned names are never freed.
const FRESH: u64 = 10_000;

/// Returns a symbol that cannot occur in the user's code.
pub(super) fn fresh(vm: &mut Vm, prefix: &str) -> Value {
    Value::Symbol(Symbol::new(&format!(
        "{prefix}__{}__auto",
        vm.world().next_id() % FRESH
    )))
}

/// Expands the patterns of a binding vector. `env` has the locals in scope, as macros receive them.
///
/// # Errors
/// When a binding form is not a pattern.
pub(crate) fn bindings(vm: &mut Vm, env: &Value, vector: &Value) -> Result<Value> {
    let Value::Vector(pairs) = vector else {
        return Ok(vector.clone());
    };
    let pairs: Vec<Value> = pairs.iter().cloned().collect();
    let mut plain = Vec::new();
    for (idx, pair) in pairs.chunks(2).enumerate() {
        let [pattern, value] = pair else {
            plain.push(pair[0].clone());
            break;
        };
        let place = vector.place().and_then(|place| place.items.get(idx * 2));
        let value = if is_stable(pattern, value, env, &plain) {
            value.clone()
        } else {
            held(vm, value.clone(), &mut plain)
        };
        take_apart(vm, pattern, value, &mut plain).map_err(|signal| signal.at(place.copied()))?;
    }
    let made = Value::vector(plain);
    Ok(match (&made, vector.place()) {
        (Value::Vector(made), Some(place)) => {
            let place = Place {
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
        Value::Vector(items) => sequential(vm, (pattern, items), value, out),
        Value::Map(entries) => associative(vm, (pattern, entries), value, out),
        plain if is_plain(plain) => {
            out.extend([plain.clone(), value]);
            Ok(())
        }
        other => Err(no_pattern(other, other.span())),
    }
}

/// Returns the error for a form that is not a pattern.
pub(super) fn no_pattern(form: &Value, place: Span) -> Signal {
    let message = format!(
        "{} cannot be given a value: it is {}",
        brief(form),
        form.kind()
    );
    error("E0225", place, message)
        .hint("bind a name or a pattern: [a b & more], {:keys [a b] :as all}")
        .into()
}

/// Gives a destructuring form the place of its pattern.
fn placed_at(pattern: &Value, form: Value) -> Value {
    match pattern.span() {
        span if span.is_some() => form.with_place(Place {
            span,
            items: Box::default(),
        }),
        _ => form,
    }
}

/// Binds a value to a generated name.
fn held(vm: &mut Vm, value: Value, out: &mut Vec<Value>) -> Value {
    let name = fresh(vm, "vec");
    out.extend([name.clone(), value]);
    name
}

/// Tells whether a pattern may read a value repeatedly: it reads it once, or the value is a local that the pattern does
/// not rebind before the last reading. `bound` are the bindings so far.
fn is_stable(pattern: &Value, value: &Value, env: &Value, bound: &[Value]) -> bool {
    if !matches!(pattern, Value::Vector(_)) {
        return true;
    }
    let Some(name) = value.as_symbol() else {
        return false;
    };
    let is_bound = |name: &Value| bound.iter().step_by(2).any(|other| other == name);
    let is_in = |env: &Value| env.as_map().is_some_and(|env| env.get(value).is_some());
    name.namespace().is_none() && (is_bound(value) || is_in(env)) && !binds(pattern, name)
}

/// Tells whether a pattern binds a name.
fn binds(pattern: &Value, name: Symbol) -> bool {
    match pattern {
        Value::Vector(items) => items.iter().any(|item| binds(item, name)),
        Value::Map(entries) => entries.iter().any(|(key, target)| match (key, target) {
            (Value::Keyword(key), _) if key.namespace().is_none() && &*key.name() == "or" => false,
            (Value::Keyword(_), Value::Vector(names)) => names.iter().any(|local| {
                let local = local
                    .as_symbol()
                    .or_else(|| local.as_keyword().map(Symbol::from));
                local.is_some_and(|local| local.name() == name.name())
            }),
            (Value::Keyword(_), target) => binds(target, name),
            (pattern, _) => binds(pattern, name),
        }),
        plain => plain.as_symbol() == Some(name),
    }
}

fn sequential(
    vm: &mut Vm,
    (pattern, items): (&Value, &Vector),
    value: Value,
    out: &mut Vec<Value>,
) -> Result<()> {
    let items: Vec<Value> = items.iter().cloned().collect();
    check_sequential(pattern, &items)?;
    let is_rest = |item: &Value| item.as_symbol().is_some_and(|symbol| symbol.is("&"));
    let is_as = |item: &Value| {
        item.as_keyword()
            .is_some_and(|keyword| keyword == Keyword::new("as"))
    };
    let has_rest = items.iter().any(is_rest);
    // A part of a pattern is a new value; for a whole value the caller knows whether its name can be used.
    let whole = if is_plain(&value) {
        value
    } else {
        held(vm, value, out)
    };
    let mut seq = whole.clone();
    if has_rest {
        seq = fresh(vm, "seq");
        out.extend([
            seq.clone(),
            placed_at(pattern, form([symbol("clojure.core/seq"), whole.clone()])),
        ]);
    }
    let mut rest_taken = false;
    let mut at = 0;
    let mut idx = 0;
    while at < items.len() {
        let item = &items[at];
        if is_as(item) || is_rest(item) {
            let target = items.get(at + 1).unwrap_or(&Value::Nil);
            let source = if is_as(item) {
                whole.clone()
            } else {
                seq.clone()
            };
            take_apart(vm, target, source, out)?;
            rest_taken |= is_rest(item);
            at += 2;
            continue;
        }
        if rest_taken {
            return Err(error(
                "E0225",
                item.span(),
                "only `:as` can follow the name after `&` in a pattern",
            )
            .into());
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
            let nth = symbol("clojure.core/nth");
            let element = form([nth, whole.clone(), Value::Int(idx), Value::Nil]);
            placed_at(pattern, element)
        };
        if !(has_rest && is_plain(item)) {
            take_apart(vm, item, element, out)?;
        }
        idx += 1;
        at += 1;
    }
    Ok(())
}

fn associative(
    vm: &mut Vm,
    (pattern, entries): (&Value, &Map),
    value: Value,
    out: &mut Vec<Value>,
) -> Result<()> {
    let whole = fresh(vm, "map");
    let taken = form([symbol("clojure.core/destructure-map"), value]);
    out.extend([whole.clone(), placed_at(pattern, taken)]);
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
    // Patterns and names with a key of their own come before `:keys` and similar entries, whose defaults may use them.
    for (pattern, key) in &entries {
        if matches!(pattern, Value::Keyword(_)) {
            continue;
        }
        let default = pattern
            .as_symbol()
            .and_then(|name| default_of(defaults, name));
        let element = lookup(&whole, key.clone(), default);
        take_apart(vm, pattern, element, out)?;
    }
    for (key, names) in &entries {
        if let Value::Keyword(keyword) = key {
            named(*keyword, names, &whole, defaults, out)?;
        }
    }
    Ok(())
}

/// Rejects a vector pattern with a misplaced `&` or `:as`.
fn check_sequential(pattern: &Value, items: &[Value]) -> Result<()> {
    let places = pattern.place().map_or(&[][..], |place| &place.items);
    let place = |idx: usize| places.get(idx).copied().unwrap_or(pattern.span());
    let is_rest = |item: &Value| item.as_symbol().is_some_and(|symbol| symbol.is("&"));
    let is_as = |item: &Value| *item == Value::keyword("as");
    let refuse = |idx: usize, message: &str| {
        let refused = error("E0225", place(idx), message);
        Err(refused
            .hint("a vector pattern is written [a b & more :as all]")
            .into())
    };
    let mut at = 0;
    while at < items.len() {
        let item = &items[at];
        let name = items.get(at + 1);
        if is_rest(item) {
            if name.is_none_or(|name| is_rest(name) || is_as(name)) {
                return refuse(at, "a name must follow `&` in a pattern");
            }
            if items.get(at + 2).is_some_and(|after| !is_as(after)) {
                return refuse(
                    at + 2,
                    "only `:as` and a name can follow the name after `&`",
                );
            }
            at += 2;
        } else if is_as(item) {
            if name.is_none_or(|name| !is_plain(name)) {
                return refuse(at, "a name must follow `:as` in a pattern");
            }
            at += 2;
        } else if let Value::Keyword(keyword) = item {
            return refuse(at, &format!("{keyword} is not allowed in a vector pattern"));
        } else {
            at += 1;
        }
    }
    Ok(())
}

/// Expands `:keys`, `:strs` and `:syms`, also with a namespace, and with `!` for required keys.
fn named(
    keyword: Keyword,
    names: &Value,
    whole: &Value,
    defaults: Option<&std::rc::Rc<Map>>,
    out: &mut Vec<Value>,
) -> Result<()> {
    let (kind, namespace) = (keyword.name(), keyword.namespace());
    let is_required = kind.ends_with('!');
    let kind = kind.trim_end_matches('!');
    if !matches!(kind, "keys" | "strs" | "syms") {
        if matches!(kind, "as" | "or") && !is_required {
            return Ok(());
        }
        return Err(error(
            "E0225",
            names.span(),
            format!("{keyword} is not allowed in a pattern"),
        )
        .hint("the options are :keys, :strs, :syms, :keys!, :strs!, :syms!, :or and :as")
        .into());
    }
    let places = names.place().map(|place| place.items.clone());
    let Value::Vector(names) = names else {
        return Err(error(
            "E0225",
            names.span(),
            format!("{keyword} needs a vector of names"),
        )
        .into());
    };
    for (idx, name) in names.iter().enumerate() {
        let place = places.as_ref().and_then(|places| places.get(idx)).copied();
        let full = name
            .as_symbol()
            .or_else(|| name.as_keyword().map(Symbol::from));
        let Some(full) = full else {
            return Err(error(
                "E0225",
                place.unwrap_or(name.span()),
                format!("{keyword} needs names, and this is {}", name.kind()),
            )
            .into());
        };
        let local = Symbol::new(&full.name());
        let prefix = full.namespace().or_else(|| namespace.clone());
        let qualified = Symbol::with_namespace(prefix.as_deref(), &full.name());
        let key = match kind {
            "keys" => Value::Keyword(Keyword::from(qualified)),
            "strs" => Value::text(&*full.name()),
            _ => form([symbol("quote"), Value::Symbol(qualified)]),
        };
        let plain = match name {
            Value::Name(_) if full.namespace().is_none() => name.clone(),
            _ => Value::Symbol(local),
        };
        let value = match is_required {
            true => form([
                symbol("clojure.core/destructure-required"),
                whole.clone(),
                key,
            ]),
            false => lookup(whole, key, default_of(defaults, local)),
        };
        out.extend([plain, placed_at(name, value)]);
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
