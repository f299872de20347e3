//! `let`, `loop`, `fn`: bindings of names and destructuring patterns.

use std::rc::Rc;

use super::{Expansion, form, symbol, with_rest};
use crate::compiler::destructure::{self, is_plain};
use crate::compiler::error;
use crate::value::{Arity, List, Native, Result, Value, Vector};
use crate::vm::Vm;

/// The macros of this file for `clojure.core`, sorted by name.
pub(super) const FNS: &[Native] = &[FN, LET, LOOP];

const FN: Native = Native {
    name: "fn",
    usage: "(fn name? [params] body ...)\n(fn name? ([params] body ...) ...)",
    doc: "Returns a function. Parameters may be patterns; the body may begin with a map of :pre and :post.",
    examples: &[("((fn [[a b]] (+ a b)) [1 2])", "3")],
    arity: Arity::at_least(2),
    run: |vm, args| -> Expansion {
        let mut items = args.from(2);
        let mut head = vec![symbol("fn*")];
        if let Some(name) = items.first().filter(|item| item.as_symbol().is_some()) {
            head.push(name.clone());
            items = &items[1..];
        }
        let meta = args.get(0).meta();
        let expanded = match items.first() {
            Some(Value::Vector(_)) => {
                let arm = arm(vm, args.get(0), items)?;
                with_rest(head, &arm)
            }
            _ => {
                for item in items {
                    let parts = vm.items(item.clone()).map_err(|_| bad_arity(item))?;
                    if !matches!(
                        (item, parts.first()),
                        (Value::List(_), Some(Value::Vector(_)))
                    ) {
                        return Err(bad_arity(item));
                    }
                    let arm = arm(vm, item, &parts)?;
                    head.push(placed(List::of(arm), item));
                }
                List::of(head)
            }
        };
        Ok(if meta.is_nil() {
            expanded
        } else {
            expanded.with_meta(meta).unwrap_or(Value::Nil)
        })
    },
};

fn bad_arity(item: &Value) -> crate::value::Signal {
    error(
        "E0219",
        item.span(),
        "a function needs a vector of parameters",
    )
    .hint("(fn [x y] body ...)")
    .into()
}

/// Gives a generated form the place of the original.
fn placed(made: Value, original: &Value) -> Value {
    match (&made, original.place()) {
        (Value::List(list), Some(place)) => {
            let place = crate::value::Place {
                span: place.span,
                items: Box::default(),
            };
            let extra = crate::value::Extras {
                meta: Value::Nil,
                place: Some(place),
            };
            Value::List(std::rc::Rc::new(
                list.with_extra(Some(std::rc::Rc::new(extra))),
            ))
        }
        _ => made,
    }
}

/// Converts one arity from `[params] body ...` to plain parameters and a body that destructures patterns.
fn arm(vm: &mut Vm, original: &Value, parts: &[Value]) -> Result<Vec<Value>> {
    let Some(Value::Vector(params)) = parts.first() else {
        return Err(bad_arity(original));
    };
    let body = conditions(&parts[1..]);
    if params.iter().all(is_plain) {
        let body = hinted(params, &body);
        return Ok(std::iter::once(parts[0].clone()).chain(body).collect());
    }
    let mut plain = Vec::new();
    let mut bindings = Vec::new();
    for (idx, param) in params.iter().enumerate() {
        if !matches!(param, Value::Vector(_) | Value::Map(_)) && !is_plain(param) {
            let place = param.span().or(parts[0].item_span(idx));
            return Err(destructure::no_pattern(param, place));
        }
        if is_plain(param) {
            plain.push(param.clone());
            continue;
        }
        let name = destructure::fresh(vm, "p");
        plain.push(name.clone());
        bindings.push(param.clone());
        bindings.push(name);
    }
    let bound = with_rest([symbol("clojure.core/let"), Value::vector(bindings)], &body);
    let plain = Vector::new(plain.into_iter().collect()).with_extra(params.extra.clone());
    let body = hinted(&plain, &[placed(bound, original)]);
    Ok(std::iter::once(Value::Vector(Rc::new(plain)))
        .chain(body)
        .collect())
}

/// Returns the function that converts to the type of a hint: `^long` or `^double`.
fn conversion(hinted: &Value) -> Option<Value> {
    let meta = hinted.meta();
    let tag = meta.get("tag")?.as_symbol()?;
    match &*tag.to_string() {
        "long" => Some(symbol("clojure.core/-as-long")),
        "double" => Some(symbol("clojure.core/-as-double")),
        _ => None,
    }
}

/// Adds the conversions of hinted parameters, and of the result if the vector of parameters is hinted.
fn hinted(params: &Vector, body: &[Value]) -> Vec<Value> {
    let is_variadic = params
        .iter()
        .any(|param| param.as_symbol().is_some_and(|name| name.is("&")));
    if is_variadic {
        // Such functions neither take nor return primitive values.
        return body.to_vec();
    }
    let converted: Vec<Value> = params
        .iter()
        .filter_map(|param| Some([param.clone(), form([conversion(param)?, param.clone()])]))
        .flatten()
        .collect();
    let body = match converted.is_empty() {
        true => body.to_vec(),
        false => vec![with_rest([symbol("let*"), Value::vector(converted)], body)],
    };
    let Some(conversion) = conversion(&Value::Vector(Rc::new(params.clone()))) else {
        return body;
    };
    // A `recur` of the body restarts inside the conversion of the result.
    let again = params
        .iter()
        .flat_map(|param| [param.clone(), param.clone()]);
    let again = with_rest([symbol("loop*"), Value::vector(again)], &body);
    vec![form([conversion, again])]
}

/// Expands the map of `:pre` and `:post` at the beginning of a body.
fn conditions(body: &[Value]) -> Vec<Value> {
    let Some((Value::Map(map), rest)) = body.split_first().filter(|parts| !parts.1.is_empty())
    else {
        return body.to_vec();
    };
    let checks = |key: &str| -> Option<Vec<Value>> {
        match map.get(&Value::keyword(key)) {
            Some(Value::Vector(checks)) => Some(
                checks
                    .iter()
                    .map(|check| form([symbol("clojure.core/assert"), check.clone()]))
                    .collect(),
            ),
            _ => None,
        }
    };
    let (pre, post) = (checks("pre"), checks("post"));
    if pre.is_none() && post.is_none() {
        return body.to_vec();
    }
    let mut checked = pre.unwrap_or_default();
    match post {
        None => checked.extend_from_slice(rest),
        Some(post) => {
            let result = with_rest([symbol("do")], rest);
            let mut bound = vec![symbol("let*"), Value::vector([symbol("%"), result])];
            bound.extend(post);
            bound.push(symbol("%"));
            checked.push(List::of(bound));
        }
    }
    checked
}

const LET: Native = Native {
    name: "let",
    usage: "(let [pattern value ...] body ...)",
    doc: "Binds names to values, in order, and evaluates the body.",
    examples: &[("(let [a 1 {:keys [b]} {:b 2}] [a b])", "[1 2]")],
    arity: Arity::at_least(3),
    run: |vm, args| -> Expansion {
        let bindings = match args.get(2) {
            Value::Vector(bindings)
                if bindings.iter().step_by(2).any(|pattern| !is_plain(pattern)) =>
            {
                destructure::bindings(vm, args.get(1), args.get(2))?
            }
            bindings => bindings.clone(),
        };
        Ok(with_rest([symbol("let*"), bindings], args.from(3)))
    },
};

const LOOP: Native = Native {
    name: "loop",
    usage: "(loop [pattern value ...] body ...)",
    doc: "Binds names to values, and evaluates the body; recur in it starts the body again with new values.",
    examples: &[(
        "(loop [n 3 acc 1] (if (zero? n) acc (recur (dec n) (* acc n))))",
        "6",
    )],
    arity: Arity::at_least(3),
    run: |vm, args| -> Expansion {
        let bindings = args.get(2).clone();
        let Value::Vector(pairs) = &bindings else {
            return Ok(with_rest([symbol("loop*"), bindings], args.from(3)));
        };
        if pairs.iter().step_by(2).all(is_plain) {
            return Ok(with_rest([symbol("loop*"), bindings.clone()], args.from(3)));
        }
        // Each pattern gets a plain loop local, which is destructured again in each round; the first values are
        // destructured in order too, since a later one may use the names of an earlier one.
        let pairs: Vec<Value> = pairs.iter().cloned().collect();
        let (mut outer, mut plain, mut inner) = (Vec::new(), Vec::new(), Vec::new());
        for pair in pairs.chunks(2) {
            let (pattern, value) = (pair[0].clone(), pair.get(1).cloned().unwrap_or(Value::Nil));
            let name = if is_plain(&pattern) {
                pattern.clone()
            } else {
                destructure::fresh(vm, "loop")
            };
            outer.extend([name.clone(), value]);
            if !is_plain(&pattern) {
                outer.extend([pattern.clone(), name.clone()]);
                inner.extend([pattern, name.clone()]);
            }
            plain.extend([name.clone(), name]);
        }
        let body = with_rest(
            [symbol("clojure.core/let"), Value::vector(inner)],
            args.from(3),
        );
        let again = form([symbol("loop*"), Value::vector(plain), body]);
        Ok(form([
            symbol("clojure.core/let"),
            Value::vector(outer),
            again,
        ]))
    },
};
