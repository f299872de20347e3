//! Conditions and threading macros.

use std::rc::Rc;

use super::{Expansion, form, symbol, with_rest};
use crate::compiler::error;
use crate::value::{Arity, Extras, List, Native, Value};

/// The macros of this file for `clojure.core`, sorted by name.
pub(super) const FNS: &[Native] = &[
    THREAD_FIRST,
    THREAD_LAST,
    COMMENT,
    COND,
    IF_LET,
    IF_NOT,
    LAZY_SEQ,
    WHEN,
    WHEN_LET,
    WHEN_NOT,
];

/// Inserts `x` into a step of a threading macro; the result has the step's place.
fn thread(x: Value, step: &Value, last: bool) -> Value {
    let Value::List(list) = step else {
        return form([step.clone(), x]);
    };
    let mut items: Vec<Value> = list.iter().cloned().collect();
    if items.is_empty() {
        return form([step.clone(), x]);
    }
    let at = if last { items.len() } else { 1 };
    items.insert(at, x);
    let threaded = List::of(items);
    match (&threaded, step.place()) {
        (Value::List(list), Some(place)) => {
            // Literals keep their own places: those of later items shift by one.
            let mut spans = place.items.to_vec();
            if spans.len() >= at {
                spans.insert(at, crate::value::Span::NONE);
            }
            let place = crate::value::Place {
                span: place.span,
                items: spans.into(),
            };
            let meta = step.meta();
            Value::List(Rc::new(list.with_extra(Some(Rc::new(Extras {
                meta,
                place: Some(place),
            })))))
        }
        _ => threaded,
    }
}

const THREAD_FIRST: Native = Native {
    name: "->",
    usage: "(-> x form ...)",
    doc: "Threads x through the forms: each receives the previous value as its first argument.",
    examples: &[("(-> 1 inc (- 5))", "-3")],
    arity: Arity::at_least(3),
    run: |_, args| -> Expansion {
        Ok(args
            .from(3)
            .iter()
            .fold(args.get(2).clone(), |x, step| thread(x, step, false)))
    },
};

const THREAD_LAST: Native = Native {
    name: "->>",
    usage: "(->> x form ...)",
    doc: "Threads x through the forms: each receives the previous value as its last argument.",
    examples: &[("(->> [1 2 3] (map inc) (reduce +))", "9")],
    arity: Arity::at_least(3),
    run: |_, args| -> Expansion {
        Ok(args
            .from(3)
            .iter()
            .fold(args.get(2).clone(), |x, step| thread(x, step, true)))
    },
};

const COMMENT: Native = Native {
    name: "comment",
    usage: "(comment form ...)",
    doc: "Ignores the forms and returns nil.",
    examples: &[("(comment (launch :rockets))", "nil")],
    arity: Arity::at_least(2),
    run: |_, _| -> Expansion { Ok(Value::Nil) },
};

const COND: Native = Native {
    name: "cond",
    usage: "(cond test expression ...)",
    doc: "Returns the value of the expression after the first truthy test; nil if no test is truthy.",
    examples: &[("(cond false 1 :else 2)", "2")],
    arity: Arity::at_least(2),
    run: |_, args| -> Expansion {
        let clauses = args.from(2);
        if clauses.len() % 2 != 0 {
            let last = clauses.last().unwrap_or(&Value::Nil);
            return Err(error(
                "E0210",
                last.span().or(args.get(0).item_span(clauses.len())),
                "`cond` needs an expression for each test",
            )
            .hint("tests and expressions alternate; a default is written (cond test expression :else default)")
            .into());
        }
        Ok(clauses
            .rchunks_exact(2)
            .fold(Value::Nil, |otherwise, clause| {
                let mut items = vec![symbol("if"), clause[0].clone(), clause[1].clone()];
                if !otherwise.is_nil() {
                    items.push(otherwise);
                }
                List::of(items)
            }))
    },
};

/// Expands `if-let` and `when-let`: one binding, tested before it is destructured.
fn let_if(bindings: &Value, name: &str, then: Value, otherwise: Value) -> Expansion {
    let (pattern, test) = match bindings {
        Value::Vector(pair) if pair.len() == 2 => {
            (pair.iter().next().cloned(), pair.iter().nth(1).cloned())
        }
        other => {
            return Err(error(
                "E0213",
                other.span(),
                format!("`{name}` needs a vector of exactly one name and value"),
            )
            .hint(format!(
                "({name} [name test] ...); for several, nest them or use and"
            ))
            .into());
        }
    };
    let (pattern, test) = (pattern.unwrap_or(Value::Nil), test.unwrap_or(Value::Nil));
    if pattern.as_symbol().is_some() {
        let held = symbol("if-let-value__");
        let bound = form([symbol("let*"), Value::vector([pattern, held.clone()]), then]);
        let branch = form([symbol("if"), held.clone(), bound, otherwise]);
        return Ok(form([symbol("let*"), Value::vector([held, test]), branch]));
    }
    let held = symbol("if-let-value__");
    let bound = form([
        symbol("clojure.core/let"),
        Value::vector([pattern, held.clone()]),
        then,
    ]);
    let branch = form([symbol("if"), held.clone(), bound, otherwise]);
    Ok(form([symbol("let*"), Value::vector([held, test]), branch]))
}

const IF_LET: Native = Native {
    name: "if-let",
    usage: "(if-let [name test] then else)",
    doc: "Evaluates then with the name bound to the test's value if that is truthy, else the other expression.",
    examples: &[("(if-let [x (get {:a 1} :a)] (inc x) 0)", "2")],
    arity: Arity::between(4, 5),
    run: |_, args| -> Expansion {
        let_if(
            args.get(2),
            "if-let",
            args.get(3).clone(),
            args.get(4).clone(),
        )
    },
};

const IF_NOT: Native = Native {
    name: "if-not",
    usage: "(if-not test then else)",
    doc: "Evaluates then if the test is nil or false, else the other expression.",
    examples: &[("(if-not nil 1 2)", "1")],
    arity: Arity::between(4, 5),
    run: |_, args| -> Expansion {
        let test = form([symbol("clojure.core/not"), args.get(2).clone()]);
        Ok(form([
            symbol("if"),
            test,
            args.get(3).clone(),
            args.get(4).clone(),
        ]))
    },
};

const LAZY_SEQ: Native = Native {
    name: "lazy-seq",
    usage: "(lazy-seq body ...)",
    doc: "Returns a sequence whose body is computed when it is first read, and then kept.",
    examples: &[("(take 2 (lazy-seq (cons 1 (lazy-seq [2 3]))))", "(1 2)")],
    arity: Arity::at_least(2),
    run: |_, args| -> Expansion {
        let thunk = with_rest([symbol("fn*"), Value::vector([])], args.from(2));
        Ok(form([symbol("clojure.core/lazy-seq*"), thunk]))
    },
};

const WHEN: Native = Native {
    name: "when",
    usage: "(when test body ...)",
    doc: "Evaluates the body if the test is truthy; otherwise returns nil.",
    examples: &[("(when (pos? 1) :yes)", ":yes")],
    arity: Arity::at_least(3),
    run: |_, args| -> Expansion {
        Ok(form([
            symbol("if"),
            args.get(2).clone(),
            with_rest([symbol("do")], args.from(3)),
        ]))
    },
};

const WHEN_LET: Native = Native {
    name: "when-let",
    usage: "(when-let [name test] body ...)",
    doc: "Evaluates the body with the name bound to the test's value if that is truthy; otherwise returns nil.",
    examples: &[("(when-let [x 1] (inc x))", "2")],
    arity: Arity::at_least(3),
    run: |_, args| -> Expansion {
        let_if(
            args.get(2),
            "when-let",
            with_rest([symbol("do")], args.from(3)),
            Value::Nil,
        )
    },
};

const WHEN_NOT: Native = Native {
    name: "when-not",
    usage: "(when-not test body ...)",
    doc: "Evaluates the body if the test is nil or false; otherwise returns nil.",
    examples: &[("(when-not false 1)", "1")],
    arity: Arity::at_least(3),
    run: |_, args| -> Expansion {
        let body = with_rest([symbol("do")], args.from(3));
        Ok(form([symbol("if"), args.get(2).clone(), Value::Nil, body]))
    },
};
