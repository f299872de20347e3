//! Visits the names and calls of a form that are evaluated, and leaves out names that the form binds itself.
//!
//! Quoted forms, `comment` and the constants of `case` are not evaluated. Uses an explicit stack, because bodies may be nested
//! deeply.

use std::rc::Rc;

use flowstone_lang::value::{Span, Symbol, Value};

use crate::forms::{item_span, items, quoted};

/// What is visited.
pub(super) enum Place<'f> {
    /// A name that nothing around it binds, also at the head of a call.
    Name(Symbol, Span),
    /// A call of such a name.
    Call(Symbol, &'f Value),
}

/// The names that are bound at a place, innermost first.
type Scope = Option<Rc<Bound>>;

struct Bound {
    names: Vec<Symbol>,
    outer: Scope,
}

/// Forms whose vector binds names for their body.
const BINDING: &[&str] = &[
    "dotimes",
    "flow/let",
    "if-let",
    "if-some",
    "let",
    "let*",
    "loop",
    "loop*",
    "when-first",
    "when-let",
    "when-some",
    "with-open",
];
/// Forms whose vector binds names item by item, with modifiers between them.
const COMPREHENSION: &[&str] = &["doseq", "for"];
/// Forms that make functions.
const FUNCTIONS: &[&str] = &["defmacro", "defn", "defn-", "fn", "fn*"];

/// Visits a form.
pub(super) fn walk(form: &Value, visit: &mut dyn FnMut(Place<'_>)) {
    let mut walk = Walk {
        open: vec![(form.clone(), form.span(), None)],
    };
    while let Some((form, span, scope)) = walk.open.pop() {
        walk.form(&form, span, &scope, visit);
    }
}

struct Walk {
    open: Vec<(Value, Span, Scope)>,
}

impl Walk {
    fn form(&mut self, form: &Value, span: Span, scope: &Scope, visit: &mut dyn FnMut(Place<'_>)) {
        if let Some(symbol) = form.as_symbol() {
            if !is_bound(scope, symbol) {
                visit(Place::Name(symbol, form.span().or(span)));
            }
            return;
        }
        match form {
            Value::List(list) => {
                let head = list.iter().next().and_then(Value::as_symbol);
                if quoted(form).is_some() || head.is_some_and(|head| head.is("comment")) {
                    return;
                }
                if let Some(head) = head.filter(|head| !is_bound(scope, *head)) {
                    visit(Place::Call(head, form));
                    let is_one_of = |names: &[&str]| names.iter().any(|name| head.is(name));
                    if self.binder(form, &is_one_of, scope, head) {
                        let at = item_span(form, 0);
                        visit(Place::Name(head, at));
                        return;
                    }
                }
                self.rest(form, 0, scope);
            }
            Value::Vector(_) => self.rest(form, 0, scope),
            Value::Map(map) => {
                for (key, value) in map.iter() {
                    self.push(key, form.span(), scope);
                    self.push(value, form.span(), scope);
                }
            }
            Value::Set(set) => set
                .iter()
                .for_each(|item| self.push(item, form.span(), scope)),
            _ => {}
        }
    }

    fn push(&mut self, form: &Value, around: Span, scope: &Scope) {
        self.open
            .push((form.clone(), form.span().or(around), scope.clone()));
    }

    /// Visits the parts of a list or vector from an index on.
    fn rest(&mut self, form: &Value, from: usize, scope: &Scope) {
        let parts = items(form).unwrap_or_default();
        for (idx, part) in parts.iter().enumerate().skip(from) {
            self.open
                .push((part.clone(), item_span(form, idx), scope.clone()));
        }
    }

    /// Visits the parts of a form that binds names; returns false if it binds none.
    fn binder(
        &mut self,
        form: &Value,
        is_one_of: &dyn Fn(&[&str]) -> bool,
        scope: &Scope,
        head: Symbol,
    ) -> bool {
        let parts = items(form).unwrap_or_default();
        if is_one_of(BINDING) {
            let inner = self.bindings(parts.get(1), scope);
            self.rest(form, 2, &inner);
        } else if is_one_of(COMPREHENSION) {
            let inner = self.comprehension(parts.get(1), scope);
            self.rest(form, 2, &inner);
        } else if is_one_of(FUNCTIONS) {
            let name = parts.get(1).and_then(Value::as_symbol);
            let scope = with(scope, name.into_iter().collect());
            self.arities(&parts, form, 1 + usize::from(name.is_some()), &scope);
        } else if head.is("letfn") {
            let functions = parts.get(1).and_then(items).unwrap_or_default();
            let names = functions
                .iter()
                .filter_map(|it| items(it)?.first()?.as_symbol());
            let inner = with(scope, names.collect());
            for function in &functions {
                self.arities(&items(function).unwrap_or_default(), function, 1, &inner);
            }
            self.rest(form, 2, &inner);
        } else if head.is("catch") {
            let name = parts.get(2).and_then(Value::as_symbol);
            self.rest(form, 3, &with(scope, name.into_iter().collect()));
        } else if head.is("case") {
            self.cases(&parts, form, scope);
        } else {
            return false;
        }
        true
    }

    /// Visits the values of bindings; returns the scope of the body.
    fn bindings(&mut self, vector: Option<&Value>, scope: &Scope) -> Scope {
        let Some((vector, pairs)) = vector.and_then(|it| Some((it, items(it)?))) else {
            return scope.clone();
        };
        let mut inner = scope.clone();
        for (idx, pair) in pairs.chunks(2).enumerate() {
            if let [pattern, value] = pair {
                self.open
                    .push((value.clone(), item_span(vector, idx * 2 + 1), inner.clone()));
                inner = with(&inner, symbols(pattern));
            }
        }
        inner
    }

    /// Visits the clauses of a `for`; returns the scope of the body.
    fn comprehension(&mut self, vector: Option<&Value>, scope: &Scope) -> Scope {
        let Some((vector, pairs)) = vector.and_then(|it| Some((it, items(it)?))) else {
            return scope.clone();
        };
        let mut inner = scope.clone();
        for (idx, pair) in pairs.chunks(2).enumerate() {
            match pair {
                [Value::Keyword(modifier), value] if &*modifier.name() == "let" => {
                    inner = self.bindings(Some(value), &inner);
                }
                [pattern, value] => {
                    self.open
                        .push((value.clone(), item_span(vector, idx * 2 + 1), inner.clone()));
                    if pattern.as_keyword().is_none() {
                        inner = with(&inner, symbols(pattern));
                    }
                }
                _ => {}
            }
        }
        inner
    }

    /// Visits the bodies of a function, whose arguments begin at `from` or in the lists there.
    fn arities(&mut self, parts: &[Value], form: &Value, from: usize, scope: &Scope) {
        for (idx, part) in parts.iter().enumerate().skip(from) {
            match part {
                Value::Vector(_) => {
                    self.rest(form, idx + 1, &with(scope, symbols(part)));
                    return;
                }
                Value::List(_) => {
                    let arity = items(part).unwrap_or_default();
                    let names = arity.first().map(symbols).unwrap_or_default();
                    self.rest(part, 1, &with(scope, names));
                }
                _ => {}
            }
        }
    }

    fn cases(&mut self, parts: &[Value], form: &Value, scope: &Scope) {
        let clauses = parts.len().saturating_sub(2);
        for (idx, part) in parts.iter().enumerate().skip(1) {
            let is_default = idx + 1 == parts.len() && clauses % 2 == 1;
            if idx == 1 || idx % 2 == 1 || is_default {
                self.open
                    .push((part.clone(), item_span(form, idx), scope.clone()));
            }
        }
    }
}

fn with(scope: &Scope, names: Vec<Symbol>) -> Scope {
    match names.is_empty() {
        true => scope.clone(),
        false => Some(Rc::new(Bound {
            names,
            outer: scope.clone(),
        })),
    }
}

fn is_bound(scope: &Scope, symbol: Symbol) -> bool {
    let mut at = scope.as_ref();
    while let Some(bound) = at {
        if bound.names.contains(&symbol) {
            return true;
        }
        at = bound.outer.as_ref();
    }
    false
}

/// Returns the symbols of a destructuring pattern.
fn symbols(pattern: &Value) -> Vec<Symbol> {
    let mut found = Vec::new();
    let mut open = vec![pattern.clone()];
    while let Some(form) = open.pop() {
        found.extend(form.as_symbol());
        open.extend(crate::forms::children(&form));
    }
    found
}
