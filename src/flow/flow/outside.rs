//! Finds names in function code that reach outside it: steps, files, the clock, randomness. Such code throws when it is
//! run, because it is computed again on replay.
//!
//! A name that the code binds itself, anywhere, is not reported.

use std::collections::HashSet;

use flowstone_lang::value::{Span, Symbol, Value};

use crate::diagnostic::Diagnostic;
use crate::forms::{children, item_span, items, quoted};

/// Functions of the `flow` namespace that only compute.
const PURE: &[&str] = &["backoff"];

/// The reason for functions of the `flow` namespace that cannot be used.
const STEP: &str = "has no steps";

/// The reason for functions that need files.
const NO_FILES: &str = "has no files";

/// Names of the core that function code cannot use, each with what such code lacks.
const NAMES: &[(&str, &str)] = &[
    ("file-seq", NO_FILES),
    ("load-file", NO_FILES),
    ("rand", "has no randomness"),
    ("rand-int", "has no randomness"),
    ("rand-nth", "has no randomness"),
    ("random-sample", "has no randomness"),
    ("random-uuid", "has no randomness"),
    ("read-line", "has no standard input"),
    ("shuffle", "has no randomness"),
    ("slurp", NO_FILES),
    ("spit", NO_FILES),
    ("step", STEP),
];

/// Static functions of host classes, without the package of the class.
const HOST: &[(&str, &str)] = &[
    ("Instant/now", "has no clock"),
    ("LocalDate/now", "has no clock"),
    ("LocalDateTime/now", "has no clock"),
    ("Math/random", "has no randomness"),
    ("System/currentTimeMillis", "has no clock"),
    ("System/nanoTime", "has no clock"),
    ("Thread/sleep", "cannot sleep"),
    ("UUID/randomUUID", "has no randomness"),
    ("ZonedDateTime/now", "has no clock"),
];

/// Returns the findings about one piece of function code.
pub(super) fn check(code: &Value) -> Vec<Diagnostic> {
    let found = reaching(code).into_iter();
    found
        .map(|(symbol, what, span)| finding(symbol, what).at(span))
        .collect()
}

/// Returns each name in a piece of code that reaches outside it, with what such code lacks, and its place.
fn reaching(code: &Value) -> Vec<(Symbol, &'static str, Span)> {
    let own = own_names(code);
    let mut findings = Vec::new();
    let mut open = vec![(code.clone(), code.span())];
    while let Some((form, span)) = open.pop() {
        if let Some(symbol) = form.as_symbol() {
            findings.extend(reaches(symbol, &own).map(|what| (symbol, what, span)));
            continue;
        }
        match &form {
            Value::List(list) => {
                let head = list.iter().next().and_then(Value::as_symbol);
                if quoted(&form).is_some() || head.is_some_and(|head| head.is("comment")) {
                    continue;
                }
                let parts = list.iter().enumerate();
                open.extend(parts.map(|(idx, part)| (part.clone(), item_span(&form, idx))));
            }
            Value::Vector(parts) => {
                let parts = parts.iter().enumerate();
                open.extend(parts.map(|(idx, part)| (part.clone(), item_span(&form, idx))));
            }
            Value::Map(map) => open.extend(map.iter().flat_map(|(key, value)| {
                let at = |part: &Value| (part.clone(), part.span().or(form.span()));
                [at(key), at(value)]
            })),
            Value::Set(set) => {
                let parts = set.iter();
                open.extend(parts.map(|part| (part.clone(), part.span().or(form.span()))));
            }
            _ => {}
        }
    }
    findings
}

/// Returns the findings about the body of a flow, which can access files only through steps.
pub(super) fn check_body(body: &Value) -> Vec<Diagnostic> {
    let files = reaching(body).into_iter();
    let files = files.filter(|(_, what, _)| *what == NO_FILES);
    files
        .map(|(symbol, _, span)| {
            let message = format!("`{symbol}` cannot be used in a flow, which has no files");
            Diagnostic::error("E0388", message)
                .at(span)
                .hint("read and write files with a `:files` step")
        })
        .collect()
}

fn finding(symbol: Symbol, what: &str) -> Diagnostic {
    let message = match what {
        STEP => format!("`{symbol}` cannot be used inside function code"),
        what => format!("`{symbol}` cannot be used inside function code, which {what}"),
    };
    Diagnostic::error("E0707", message).hint(match what {
        STEP => "do it in the body of the flow, and pass the result to the function: `:input {...}`",
        NO_FILES => "read files in the flow, with a `:files` step, and pass the text to the function",
        "cannot sleep" => "let the flow sleep, with a `:sleep` step",
        _ => "take it in the body of the flow, where it is journaled, and pass it to the function: `:input {...}`",
    })
}

fn reaches(symbol: Symbol, own: &HashSet<Symbol>) -> Option<&'static str> {
    let name = symbol.name();
    let Some(namespace) = symbol.namespace() else {
        let found = NAMES.iter().find(|(known, _)| *known == &*name);
        return found
            .filter(|_| !own.contains(&symbol))
            .map(|(_, what)| *what);
    };
    match &*namespace {
        "flow" => (!PURE.contains(&&*name)).then_some(STEP),
        "clojure.core" => {
            let found = NAMES
                .iter()
                .find(|(known, _)| *known == &*name && *known != "step");
            found.map(|(_, what)| *what)
        }
        class => {
            let class = class.rsplit('.').next().unwrap_or(class);
            let found = HOST
                .iter()
                .find(|(known, _)| known.split_once('/') == Some((class, &*name)));
            found.map(|(_, what)| *what)
        }
    }
}

/// Forms whose vector binds names, each followed by a value.
const BINDING: &[&str] = &[
    "binding",
    "doseq",
    "dotimes",
    "for",
    "if-let",
    "if-some",
    "let",
    "let*",
    "loop",
    "loop*",
    "when-first",
    "when-let",
    "when-some",
    "with-redefs",
];
/// Forms whose first argument is the name that they define.
const DEFINING: &[&str] = &["def", "defmacro", "defn", "defn-", "fn", "fn*"];

/// Returns every name that the code binds anywhere.
fn own_names(code: &Value) -> HashSet<Symbol> {
    let mut found = HashSet::new();
    let mut open = vec![code.clone()];
    while let Some(form) = open.pop() {
        let parts = children(&form);
        let head = match &form {
            Value::List(_) => parts.first().and_then(Value::as_symbol),
            _ => None,
        };
        let is_one_of =
            |names: &[&str]| head.is_some_and(|head| names.iter().any(|it| head.is(it)));
        if is_one_of(BINDING)
            && let Some(bindings) = parts.get(1).and_then(items)
        {
            bindings
                .iter()
                .step_by(2)
                .for_each(|pattern| symbols(pattern, &mut found));
        }
        if is_one_of(DEFINING) {
            found.extend(parts.get(1).and_then(Value::as_symbol));
        }
        if head.is_some_and(|head| head.is("as->")) {
            found.extend(parts.get(2).and_then(Value::as_symbol));
        }
        // Arguments: a vector in a function, or at the head of one of its arities.
        for (idx, part) in parts.iter().enumerate() {
            let is_list = matches!(&form, Value::List(_));
            if matches!(part, Value::Vector(_)) && (is_one_of(DEFINING) || (is_list && idx == 0)) {
                symbols(part, &mut found);
            }
        }
        if is_one_of(&["letfn"])
            && let Some(functions) = parts.get(1).and_then(items)
        {
            for function in functions.iter().filter_map(items) {
                function
                    .iter()
                    .take(2)
                    .for_each(|part| symbols(part, &mut found));
            }
        }
        open.extend(parts);
    }
    found
}

/// Adds the symbols of a destructuring pattern.
fn symbols(pattern: &Value, found: &mut HashSet<Symbol>) {
    let mut open = vec![pattern.clone()];
    while let Some(form) = open.pop() {
        found.extend(form.as_symbol());
        match &form {
            Value::Map(map) => {
                open.extend(
                    map.iter()
                        .flat_map(|(key, value)| [key.clone(), value.clone()]),
                );
            }
            form => open.extend(items(form).unwrap_or_default()),
        }
    }
}
