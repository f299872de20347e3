//! Finds forms whose steps are never performed, and forms that never end.
//!
//! Only what follows from the written form is reported: a lazy sequence that nothing can use, a reader of all items of a sequence
//! without an end, a loop that never ends.

use flowstone_lang::value::{Symbol, Value};
use flowstone_model::names::name_of;

use super::Lint;
use super::order::has_step;
use crate::diagnostic::Diagnostic;
use crate::forms::{item_span, items, quoted};

/// Forms that return a sequence whose items are computed when they are used.
const LAZY: &[&str] = &[
    "filter",
    "for",
    "keep",
    "keep-indexed",
    "lazy-seq",
    "map",
    "map-indexed",
    "mapcat",
    "remove",
    "repeatedly",
];
/// Forms with a body, and the index at which it begins. Only the last form of the body is the value.
const BODIES: &[(&str, usize)] = &[
    ("binding", 2),
    ("do", 1),
    ("fn", 1),
    ("fn*", 1),
    ("let", 2),
    ("let*", 2),
    ("loop", 2),
    ("try", 1),
    ("when", 2),
    ("when-first", 2),
    ("when-let", 2),
    ("when-not", 2),
    ("when-some", 2),
];
/// Forms of which no form of the body is the value.
const EFFECTS: &[(&str, usize)] = &[("doseq", 2), ("dotimes", 2), ("while", 2)];
/// Functions that read all items of their last argument.
const EAGER: &[&str] = &[
    "count",
    "doall",
    "dorun",
    "filterv",
    "frequencies",
    "group-by",
    "into",
    "last",
    "mapv",
    "reverse",
    "run!",
    "set",
    "sort",
    "sort-by",
    "vec",
];
/// Functions that pass on the items of their last argument.
const PASSING: &[&str] = &[
    "drop",
    "filter",
    "keep",
    "map",
    "map-indexed",
    "mapcat",
    "remove",
    "rest",
];

impl Lint<'_> {
    /// Checks one call.
    pub(super) fn endless(&mut self, head: Symbol, form: &Value) {
        let parts = items(form).unwrap_or_default();
        self.dropped(head, form, &parts);
        let is = |name: &str| head.is(name);
        let reads_all = EAGER.iter().any(|name| is(name));
        let source = match reads_all {
            // With several sequences, the shortest one decides.
            true if is("mapv") && parts.len() != 3 => None,
            true => parts.last().filter(|_| parts.len() > 1).cloned(),
            false => unstopped(head, &parts),
        };
        if let Some(source) = source.filter(is_endless) {
            let message = format!("`{head}` reads a sequence that has no end");
            self.findings.push(
                Diagnostic::warning("E1493", message)
                    .at(source.span().or(form.span()))
                    .hint("give it an end, such as `(range 10)`, or take a part of it first: `(take 10 ...)`"),
            );
        }
        let is_endless_loop = match (is("loop"), is("while")) {
            (true, _) => parts.len() > 2 && parts.last().is_some_and(always_recurs),
            (_, true) => parts
                .get(1)
                .is_some_and(|test| matches!(test, Value::Bool(true) | Value::Keyword(_))),
            _ => false,
        };
        if is_endless_loop {
            self.findings.push(
                Diagnostic::warning("E1494", "this loop never ends")
                    .at(form.span())
                    .hint("let a test decide about `recur`, or start the flow again with `flow/continue-as-new`"),
            );
        }
    }

    /// Warns of lazy sequences with steps in places where no value is used.
    fn dropped(&mut self, head: Symbol, form: &Value, parts: &[Value]) {
        let start = |forms: &[(&str, usize)]| {
            let found = forms.iter().find(|(name, _)| head.is(name));
            found.map(|(_, start)| *start)
        };
        let (from, to) = match (start(BODIES), start(EFFECTS)) {
            (Some(from), _) => (from, body_end(parts).saturating_sub(1)),
            (None, Some(from)) => (from, parts.len()),
            (None, None) => return,
        };
        for (idx, part) in parts.iter().enumerate().take(to).skip(from) {
            self.unused(part, item_span(form, idx));
        }
        // The name `_` says that the value is not used.
        if head.is("let")
            && let Some(vector) = parts.get(1)
            && let Some(pairs) = items(vector)
        {
            for (idx, pair) in pairs.chunks(2).enumerate() {
                if let [name, value] = pair
                    && name.as_symbol().is_some_and(|name| name.is("_"))
                {
                    self.unused(value, item_span(vector, idx * 2 + 1));
                }
            }
        }
    }

    fn unused(&mut self, form: &Value, span: flowstone_lang::value::Span) {
        let Value::List(list) = form else {
            return;
        };
        let head = list.iter().next().and_then(Value::as_symbol);
        let Some(head) = head.filter(|head| LAZY.iter().any(|name| head.is(name))) else {
            return;
        };
        let parts = items(form).unwrap_or_default();
        if has_step(&Value::vector(later(head, &parts))) {
            let message = format!(
                "nothing uses the value of this `{head}`, so its steps are never performed"
            );
            self.findings.push(
                Diagnostic::warning("E1491", message).at(form.span().or(span)).hint(
                    "it is lazy: use `doseq` or `run!` if only the steps count, or bind its value and read it with `vec`",
                ),
            );
        }
    }

    /// Checks that a slot that a flow asks about is declared.
    pub(super) fn slot(&mut self, form: &Value, args: &[Value]) {
        let Some(slot @ (Value::Keyword(_) | Value::Text(_))) = args.first() else {
            return;
        };
        let slot = name_of(slot).unwrap_or_default();
        if self.flow.requirement(&slot).is_some() {
            return;
        }
        let slots = crate::json::items(&self.flow.requires).unwrap_or_default();
        let slots: Vec<std::rc::Rc<str>> = slots
            .iter()
            .filter_map(|it| name_of(it.get("slot")?))
            .collect();
        let finding = Diagnostic::warning("E1492", format!("the flow declares no slot `:{slot}`"))
            .at(item_span(form, 1))
            .suggest(&slot, slots.iter().map(|slot| &**slot));
        self.findings.push(match finding.hints.is_empty() {
            true => finding.hint(format!("add it: `:requires [{{:slot :{slot} ...}}]`")),
            false => finding,
        });
    }
}

/// Returns the parts of a lazy form that are evaluated when its items are used.
fn later(head: Symbol, parts: &[Value]) -> Vec<Value> {
    let args = parts.get(1..).unwrap_or_default();
    match &*head.name() {
        // The first sequence of a `for` is computed at once.
        "for" => {
            let clauses = args.first().and_then(items).unwrap_or_default();
            let body = args.iter().skip(1);
            clauses.into_iter().skip(2).chain(body.cloned()).collect()
        }
        "lazy-seq" => args.to_vec(),
        "repeatedly" => args.last().cloned().into_iter().collect(),
        _ => args.first().cloned().into_iter().collect(),
    }
}

/// Returns the index after the last form of a body: `catch` and `finally` are not part of it.
fn body_end(parts: &[Value]) -> usize {
    let is_clause = |part: &Value| {
        let head = match part {
            Value::List(list) => list.iter().next().and_then(Value::as_symbol),
            _ => None,
        };
        head.is_some_and(|head| head.is("catch") || head.is("finally"))
    };
    parts
        .iter()
        .rposition(|part| !is_clause(part))
        .map_or(0, |last| last + 1)
}

/// Returns the first sequence of a `doseq` that nothing ends early.
fn unstopped(head: Symbol, parts: &[Value]) -> Option<Value> {
    let pairs = parts.get(1).filter(|_| head.is("doseq")).and_then(items)?;
    let stops = pairs
        .iter()
        .step_by(2)
        .any(|it| it.as_keyword().is_some_and(|it| &*it.name() == "while"));
    pairs.get(1).filter(|_| !stops).cloned()
}

/// Tells whether a form is a sequence without an end.
fn is_endless(form: &Value) -> bool {
    let mut at = form.clone();
    loop {
        if !matches!(at, Value::List(_)) || quoted(&at).is_some() {
            return false;
        }
        let parts = items(&at).unwrap_or_default();
        let Some(head) = parts.first().and_then(Value::as_symbol) else {
            return false;
        };
        match (&*head.name(), parts.len()) {
            ("range", 1) | ("cycle" | "repeat" | "repeatedly", 2) | ("iterate", 3) => {
                return head.namespace().is_none();
            }
            (name, 2..) if PASSING.contains(&name) => {
                // With several sequences, the shortest one decides.
                if name == "map" && parts.len() > 3 {
                    return false;
                }
                match parts.last() {
                    Some(last) => at = last.clone(),
                    None => return false,
                }
            }
            _ => return false,
        }
    }
}

/// Tells whether evaluating a form always ends with `recur`.
fn always_recurs(form: &Value) -> bool {
    let mut open = vec![form.clone()];
    while let Some(form) = open.pop() {
        let parts = match &form {
            Value::List(_) => items(&form).unwrap_or_default(),
            _ => return false,
        };
        let Some(head) = parts.first().and_then(Value::as_symbol) else {
            return false;
        };
        match &*head.name() {
            "recur" => {}
            "do" | "let" | "let*" => open.extend(parts.last().cloned()),
            "if" | "if-not" if parts.len() == 4 => open.extend(parts[2..].iter().cloned()),
            _ => return false,
        }
    }
    true
}
