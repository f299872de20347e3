//! Finds lazy sequences inside `binding` whose items are computed later, without the bound values.
//!
//! Only certain findings are reported: the value of the form is a lazy sequence, and a function or body that runs later
//! reads a bound name, directly or through functions that the same flow defines.

use std::collections::{HashMap, HashSet};

use flowstone_lang::value::{Symbol, Value};

use crate::diagnostic::Diagnostic;
use crate::forms::{children, items, quoted};

/// Functions that call an argument when an item is requested, and the number of arguments with which they return a
/// sequence.
const LAZY: &[(&str, usize)] = &[
    ("drop-while", 2),
    ("filter", 2),
    ("iterate", 2),
    ("keep", 2),
    ("keep-indexed", 2),
    ("map", 2),
    ("map-indexed", 2),
    ("mapcat", 2),
    ("partition-by", 2),
    ("pmap", 2),
    ("reductions", 2),
    ("remove", 2),
    ("repeatedly", 1),
    ("take-while", 2),
    ("tree-seq", 3),
];

/// Functions that pass on the items of their arguments and compute nothing themselves.
const PASSING: &[&str] = &[
    "butlast",
    "concat",
    "cons",
    "cycle",
    "dedupe",
    "distinct",
    "drop",
    "drop-last",
    "interleave",
    "interpose",
    "next",
    "partition",
    "partition-all",
    "rest",
    "take",
    "take-nth",
];

/// Forms whose whole body runs later.
const BODIES: &[&str] = &["lazy-cat", "lazy-seq"];

/// Forms that return the value of their last part.
const LAST: &[&str] = &[
    "do",
    "let",
    "let*",
    "letfn",
    "loop",
    "when",
    "when-let",
    "when-not",
    "when-some",
    "when-first",
    "binding",
];

/// Checks the forms of a flow. All of them see each other's definitions.
pub(super) fn check(forms: &[Value]) -> Vec<Diagnostic> {
    let defined = definitions(forms);
    let mut findings = Vec::new();
    each(forms.to_vec(), |form, name| {
        if name.is("binding") {
            findings.extend(check_binding(form, &defined));
        }
        true
    });
    findings
}

/// The forms that each function of the flow consists of.
type Definitions = HashMap<Symbol, Vec<Value>>;

fn definitions(forms: &[Value]) -> Definitions {
    let mut found = HashMap::new();
    each(forms.to_vec(), |form, name| {
        if ["defn", "defn-"].iter().any(|known| name.is(known)) {
            let parts = items(form).unwrap_or_default();
            if let Some(defined) = parts.get(1).and_then(Value::as_symbol) {
                found.insert(defined, parts[2..].to_vec());
            }
        }
        true
    });
    found
}

/// Visits the calls among forms and the parts that are evaluated, but not the parts of calls for which the visitor
/// returns false.
fn each(mut open: Vec<Value>, mut visit: impl FnMut(&Value, Symbol) -> bool) {
    while let Some(form) = open.pop() {
        let head = match &form {
            Value::List(list) => list.iter().next().and_then(Value::as_symbol),
            _ => None,
        };
        let is_visited = match head {
            Some(head) if quoted(&form).is_some() || head.is("comment") => false,
            Some(head) => visit(&form, head),
            None => true,
        };
        if is_visited {
            open.extend(children(&form));
        }
    }
}

fn check_binding(form: &Value, defined: &Definitions) -> Vec<Diagnostic> {
    let parts = items(form).unwrap_or_default();
    let (Some(names), Some(body)) = (parts.get(1).and_then(items), parts.get(2..)) else {
        return Vec::new();
    };
    let names: Vec<Symbol> = names
        .iter()
        .step_by(2)
        .filter_map(Value::as_symbol)
        .collect();
    let Some(tail) = body.last() else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    for part in lazy_parts(tail) {
        let found = names.iter().find(|name| {
            part.runs_later
                .iter()
                .any(|form| reads(form, **name, defined))
        });
        if let Some(name) = found {
            let message = format!(
                "`{}` makes its items after `binding` has ended, and does not see what `{name}` was bound to",
                part.head
            );
            findings.push(
                Diagnostic::warning("E0445", message)
                    .at(part.form.span().or(form.span()))
                    .label("this sequence is lazy")
                    .hint("make the items inside the binding: wrap the sequence in `doall`, or use `mapv`, `into` or `vec`"),
            );
        }
    }
    findings
}

/// A lazy sequence that is the value of a form, or part of it.
struct LazyPart {
    form: Value,
    head: Symbol,
    /// The code that runs when an item is requested: the function, or the bodies in a vector.
    runs_later: Vec<Value>,
}

fn lazy_parts(tail: &Value) -> Vec<LazyPart> {
    let mut found = Vec::new();
    let mut open = vec![tail.clone()];
    while let Some(form) = open.pop() {
        let Some((head, args)) = call(&form) else {
            continue;
        };
        let is_one_of = |names: &[&str]| names.iter().any(|name| head.is(name));
        if is_one_of(LAST) {
            open.extend(args.last().cloned());
        } else if is_one_of(&["if", "if-not", "if-let", "if-some"]) {
            open.extend(args.iter().skip(1).cloned());
        } else if head.is("cond") {
            open.extend(args.iter().skip(1).step_by(2).cloned());
        } else if is_one_of(&["->", "->>"]) {
            open.extend(threaded(&args, &mut found));
        } else {
            open.extend(lazy_call(&form, head, &args, 0, &mut found).unwrap_or_default());
        }
    }
    found
}

/// Adds the steps of a threading form, from its end, while they are lazy. Returns the forms that remain to be examined.
fn threaded(args: &[Value], found: &mut Vec<LazyPart>) -> Vec<Value> {
    let mut open = Vec::new();
    for (idx, step) in args.iter().enumerate().rev() {
        if idx == 0 {
            open.push(step.clone());
            break;
        }
        let Some((head, args)) = call(step).or_else(|| Some((step.as_symbol()?, Vec::new())))
        else {
            break;
        };
        match lazy_call(step, head, &args, 1, found) {
            Some(more) => open.extend(more),
            None => break,
        }
    }
    open
}

/// Examines a call that has `threaded` arguments in addition to the written ones. Returns the arguments whose items it
/// passes on, or `None` if its value is not lazy.
fn lazy_call(
    form: &Value,
    head: Symbol,
    args: &[Value],
    threaded: usize,
    found: &mut Vec<LazyPart>,
) -> Option<Vec<Value>> {
    let lazy = LAZY.iter().find(|(name, _)| head.is(name));
    let (runs_later, passed) = if let Some((_, least)) = lazy {
        if args.len() + threaded < *least {
            return None;
        }
        // `(repeatedly 3 f)` takes its function last.
        let place = match head.is("repeatedly") {
            true => args.len().saturating_sub(1),
            false => 0,
        };
        let called = args.get(place);
        let others = args.iter().enumerate().filter(|(idx, _)| *idx != place);
        let others = others.map(|(_, other)| other.clone()).collect();
        let called = called.filter(|called| is_function(called));
        (called.cloned().into_iter().collect(), others)
    } else if BODIES.iter().any(|name| head.is(name)) {
        (vec![Value::vector(args.to_vec())], Vec::new())
    } else if head.is("for") {
        for_parts(args)
    } else if PASSING.iter().any(|name| head.is(name)) {
        (Vec::new(), args.to_vec())
    } else {
        return None;
    };
    if !runs_later.is_empty() {
        found.push(LazyPart {
            form: form.clone(),
            head,
            runs_later,
        });
    }
    Some(passed)
}

/// Splits a `for`: the first sequence is evaluated at once, everything else later.
fn for_parts(args: &[Value]) -> (Vec<Value>, Vec<Value>) {
    let clauses = args.first().and_then(items).unwrap_or_default();
    let mut later: Vec<Value> = clauses.iter().skip(3).step_by(2).cloned().collect();
    later.extend(args.iter().skip(1).cloned());
    (
        vec![Value::vector(later)],
        clauses.get(1).cloned().into_iter().collect(),
    )
}

/// Tells whether a form in function position names a function or is a function literal. Other forms, such as `(partial
/// + *x*)`, are evaluated inside the binding.
fn is_function(form: &Value) -> bool {
    form.as_symbol().is_some()
        || call(form).is_some_and(|(head, _)| head.is("fn") || head.is("fn*"))
}

/// Tells whether evaluating a form reads a name, directly or through functions of the flow.
fn reads(form: &Value, name: Symbol, defined: &Definitions) -> bool {
    // A bound name that names the function is read when the sequence is created.
    if form.as_symbol().is_some_and(|symbol| same(symbol, name)) {
        return false;
    }
    let mut seen = HashSet::new();
    let mut open = vec![form.clone()];
    while let Some(form) = open.pop() {
        if let Some(symbol) = form.as_symbol() {
            if same(symbol, name) {
                return true;
            }
            if let Some(parts) = defined.get(&symbol).filter(|_| seen.insert(symbol)) {
                open.extend(parts.iter().cloned());
            }
            continue;
        }
        let Some((head, args)) = call(&form) else {
            open.extend(children(&form));
            continue;
        };
        if quoted(&form).is_some() || head.is("comment") || head.is("var") {
            continue;
        }
        if head.is("binding") && binds(&args, name) {
            // The new values are evaluated outside the inner binding.
            let pairs = args.first().and_then(items).unwrap_or_default();
            open.extend(pairs.into_iter().skip(1).step_by(2));
            continue;
        }
        open.extend(children(&form));
    }
    false
}

fn binds(args: &[Value], name: Symbol) -> bool {
    let pairs = args.first().and_then(items).unwrap_or_default();
    pairs
        .iter()
        .step_by(2)
        .filter_map(Value::as_symbol)
        .any(|symbol| same(symbol, name))
}

/// Tells whether two symbols name the same var, as far as can be known from their text.
fn same(one: Symbol, other: Symbol) -> bool {
    let namespaces = one.namespace().zip(other.namespace());
    one.name() == other.name() && namespaces.is_none_or(|(one, other)| one == other)
}

/// Returns the symbol that a form calls, and the arguments.
fn call(form: &Value) -> Option<(Symbol, Vec<Value>)> {
    let Value::List(list) = form else {
        return None;
    };
    let mut parts = list.iter();
    let head = parts.next()?.as_symbol()?;
    Some((head, parts.cloned().collect()))
}
