//! `defn`, `defn-`, `defmacro`, `declare`.

use super::{Expansion, form, symbol, with_rest};
use crate::compiler::error;
use crate::value::{Arity, List, Native, PMap, Result, Value};
use crate::vm::Vm;

/// The macros of this file for `clojure.core`, sorted by name.
pub(super) const FNS: &[Native] = &[DECLARE, DEFMACRO, DEFN, DEFN_PRIVATE];

const DECLARE: Native = Native {
    name: "declare",
    usage: "(declare name ...)",
    doc: "Creates vars without values, for functions that refer to each other.",
    examples: &[],
    arity: Arity::at_least(2),
    run: |_, args| -> Expansion {
        let defs: Vec<Value> = args
            .from(2)
            .iter()
            .map(|name| form([symbol("def"), name.clone()]))
            .collect();
        Ok(with_rest([symbol("do")], &defs))
    },
};

const DEFMACRO: Native = Native {
    name: "defmacro",
    usage: "(defmacro name doc? [params] body ...)",
    doc: "Defines a macro: a function from forms to the form that replaces them. &form and &env are the call and its locals.",
    examples: &[],
    arity: Arity::at_least(4),
    run: |vm, args| -> Expansion { define(vm, args.get(0), args.from(2), Defined::Macro) },
};

const DEFN: Native = Native {
    name: "defn",
    usage: "(defn name doc? attributes? [params] body ...)\n(defn name doc? attributes? ([params] body ...) ...)",
    doc: "Defines a function.",
    examples: &[("(do (defn twice [x] (* 2 x)) (twice 4))", "8")],
    arity: Arity::at_least(3),
    run: |vm, args| -> Expansion { define(vm, args.get(0), args.from(2), Defined::Public) },
};

const DEFN_PRIVATE: Native = Native {
    name: "defn-",
    usage: "(defn- name doc? attributes? [params] body ...)",
    doc: "Defines a function that is private to its namespace.",
    examples: &[],
    arity: Arity::at_least(3),
    run: |vm, args| -> Expansion { define(vm, args.get(0), args.from(2), Defined::Private) },
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Defined {
    Public,
    Private,
    Macro,
}

fn define(vm: &mut Vm, call: &Value, items: &[Value], defined: Defined) -> Expansion {
    let (name, mut rest) = items.split_first().unwrap_or((&Value::Nil, &[]));
    if name.as_symbol().is_none() {
        let word = if defined == Defined::Macro {
            "defmacro"
        } else {
            "defn"
        };
        return Err(error(
            "E0212",
            name.span(),
            format!(
                "`{word}` needs a symbol to define, and this is {}",
                name.kind()
            ),
        )
        .into());
    }
    let mut meta = name
        .meta()
        .as_map()
        .map_or_else(PMap::new, |meta| meta.entries().clone());
    if let Some((doc @ Value::Text(_), after)) = rest.split_first()
        && !after.is_empty()
    {
        meta.insert(Value::keyword("doc"), doc.clone());
        rest = after;
    }
    if let Some((Value::Map(attributes), after)) = rest.split_first() {
        attributes
            .iter()
            .for_each(|(key, value)| meta.insert(key.clone(), value.clone()));
        rest = after;
    }
    // An attribute map may also follow the last arity.
    if let Some((Value::Map(attributes), before)) = rest.split_last()
        && matches!(rest.first(), Some(Value::List(_)))
    {
        attributes
            .iter()
            .for_each(|(key, value)| meta.insert(key.clone(), value.clone()));
        rest = before;
    }
    let arms = arms(vm, name, rest)?;
    let arglists: Vec<Value> = arms.iter().map(|arm| arm[0].clone()).collect();
    if !meta.contains(&Value::keyword("arglists")) {
        meta.insert(
            Value::keyword("arglists"),
            form([symbol("quote"), List::of(arglists)]),
        );
    }
    match defined {
        Defined::Private => meta.insert(Value::keyword("private"), Value::Bool(true)),
        Defined::Macro => meta.insert(Value::keyword("macro"), Value::Bool(true)),
        Defined::Public => {}
    }
    let function = function(name, rest, with_result_hint(name, arms), defined);
    let function = keep_place(function, call);
    let meta = Value::Map(std::rc::Rc::new(crate::value::Map::new(meta)));
    let name = name.with_meta(meta).unwrap_or_else(|| name.clone());
    Ok(form([symbol("def"), name, function]))
}

/// Copies the hint of a function's name to each vector of parameters without one.
fn with_result_hint(name: &Value, mut arms: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    let tag = name.meta().get("tag").cloned();
    let Some(tag) = tag.filter(|tag| tag.as_symbol().is_some()) else {
        return arms;
    };
    for params in arms.iter_mut().filter_map(|arm| arm.first_mut()) {
        if params.meta().get("tag").is_some() {
            continue;
        }
        let meta = params.meta().as_map().map(|meta| meta.entries().clone());
        let mut meta = meta.unwrap_or_default();
        meta.insert(Value::keyword("tag"), tag.clone());
        let meta = Value::Map(std::rc::Rc::new(crate::value::Map::new(meta)));
        if let Some(hinted) = params.with_meta(meta) {
            *params = hinted;
        }
    }
    arms
}

/// Returns the `fn` form. It carries the var's name for traces only: a real name would hide the var, and with it
/// redefinitions.
fn function(name: &Value, rest: &[Value], arms: Vec<Vec<Value>>, defined: Defined) -> Value {
    let label = name
        .as_symbol()
        .map_or(Value::Nil, |symbol| Value::text(&*symbol.name()));
    let mut items = vec![symbol("clojure.core/fn")];
    if let (Some(Value::Vector(_)), false) = (rest.first(), defined == Defined::Macro) {
        items.extend(arms.into_iter().flatten());
    } else {
        for (idx, mut arm) in arms.into_iter().enumerate() {
            if defined == Defined::Macro
                && let Value::Vector(params) = &arm[0]
            {
                let hidden = [symbol("&form"), symbol("&env")];
                arm[0] = Value::vector(hidden.into_iter().chain(params.iter().cloned()));
            }
            let original = if matches!(rest.first(), Some(Value::List(_))) {
                rest.get(idx)
            } else {
                None
            };
            let made = List::of(arm);
            items.push(original.map_or(made.clone(), |original| keep_place(made, original)));
        }
    }
    let meta = Value::map([(Value::keyword("flowstone/name"), label)]);
    List::of(items).with_meta(meta).unwrap_or(Value::Nil)
}

fn arms(vm: &mut Vm, name: &Value, rest: &[Value]) -> Result<Vec<Vec<Value>>> {
    let bad = |span| {
        error("E0219", span, "a function needs a vector of parameters")
            .hint("(defn name [x y] body ...)")
    };
    match rest.first() {
        Some(Value::Vector(_)) => Ok(vec![rest.to_vec()]),
        Some(Value::List(_)) => rest
            .iter()
            .map(|item| {
                let parts = vm.items(item.clone()).map_err(|_| bad(item.span()))?;
                match (item, parts.first()) {
                    (Value::List(_), Some(Value::Vector(_))) => Ok(parts),
                    _ => Err(bad(item.span()).into()),
                }
            })
            .collect(),
        Some(other) => Err(bad(other.span()).into()),
        None => Err(bad(name.span()).into()),
    }
}

fn keep_place(made: Value, original: &Value) -> Value {
    match (&made, original.place()) {
        (Value::List(list), Some(place)) => {
            let meta = made.meta();
            let place = crate::value::Place {
                span: place.span,
                items: Box::default(),
            };
            let extra = crate::value::Extras {
                meta,
                place: Some(place),
            };
            Value::List(std::rc::Rc::new(
                list.with_extra(Some(std::rc::Rc::new(extra))),
            ))
        }
        _ => made,
    }
}
