//! The upper bounds of a run of a flow, as far as they follow from its text.
//!
//! Every form is taken to be evaluated once wherever it stands, and as often as is known where it is repeated. What is not
//! understood has no bound: the numbers may be too large, and are never too small. Retries by a person, after a checkpoint or a
//! doubt, are not counted.

mod calls;
mod count;
mod repeat;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use flowstone_lang::value::{Span, Symbol, Value};

use super::Flow;
use crate::bounds::{Amounts, Most, Quantity};
use crate::forms::{children, items, quoted};
use crate::step::Step;

/// Maximum depth of forms that are examined.
const DEPTH: usize = 120;
/// Maximum number of forms that are examined: functions that call one another may be examined often.
const FORMS: usize = 200_000;

/// The bounds of a run.
#[derive(Debug, Clone)]
pub struct Bounds {
    pub amounts: Amounts,
    /// Why something has no bound, in the order of the text.
    pub reasons: Vec<Reason>,
}

/// What keeps something from having a bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    pub quantities: Vec<Quantity>,
    pub message: String,
    pub span: Span,
}

/// What a flow is examined with.
#[derive(Clone, Copy)]
pub struct Around<'a> {
    pub steps: &'a [Box<dyn Step>],
    pub settings: &'a Value,
    /// Returns the bounds of a flow that is called by name.
    pub called: &'a dyn Fn(&str) -> Called,
}

/// The bounds of a called flow.
#[derive(Debug, Clone)]
pub enum Called {
    /// With the first reason, if something has no bound.
    Known(Amounts, Option<String>),
    /// The flow calls itself, directly or through others.
    Recursive,
    /// There is no such flow, or it cannot be read.
    Unknown,
}

/// Returns the bounds of a run of a flow.
pub fn bounds(flow: &Flow, around: Around<'_>) -> Bounds {
    let mut analysis = Analysis {
        flow,
        around,
        reasons: Vec::new(),
        active: Vec::new(),
        depth: 0,
        restarts: false,
        macros: macros(&flow.body),
        globals: globals(&flow.body),
        forms: 0,
    };
    let mut amounts = analysis.form(&flow.body, &None);
    if analysis.restarts {
        let message = "`flow/continue-as-new` starts the flow again".to_owned();
        amounts = analysis.endless(amounts, message, flow.body.span());
    }
    let mut reasons = analysis.reasons;
    reasons.retain(|reason| {
        reason
            .quantities
            .iter()
            .any(|it| amounts.get(*it) == Most::Unbounded)
    });
    reasons.sort_by_key(|reason| (reason.span.source.0, reason.span.start));
    Bounds { amounts, reasons }
}

/// What a name stands for, as far as it matters here.
enum Meaning {
    /// A function of the flow: its literal, and the names around it.
    Function(Value, Names),
    /// A collection with at most this number of items.
    Items(u64),
    /// A whole number.
    Number(i64),
    Other,
}

/// The names that are bound at a place, innermost first.
type Names = Option<Rc<Named>>;

struct Named {
    name: Symbol,
    meaning: Meaning,
    outer: Names,
}

struct Analysis<'a> {
    flow: &'a Flow,
    around: Around<'a>,
    reasons: Vec<Reason>,
    /// The functions that are being examined, by the place of their literal.
    active: Vec<Span>,
    depth: usize,
    /// Whether the flow starts itself again.
    restarts: bool,
    /// The macros that the flow defines.
    macros: HashSet<Symbol>,
    /// The functions that the flow defines with `def` and `defn`.
    globals: HashMap<Symbol, Vec<Value>>,
    /// The number of forms that were examined.
    forms: usize,
}

/// Forms of which one branch is evaluated, with the index of the first branch.
const BRANCHES: &[(&str, usize)] = &[("if", 2), ("if-not", 2), ("if-let", 2), ("if-some", 2)];
/// Forms whose parts run an unknown number of times.
const DEFERRED: &[&str] = &[
    "amap",
    "areduce",
    "defmethod",
    "defprotocol",
    "defrecord",
    "deftype",
    "extend",
    "extend-protocol",
    "extend-type",
    "reify",
    "while",
];
/// Functions that evaluate code which is not written as such.
const EVAL: &[&str] = &[
    "eval",
    "find-var",
    "load-string",
    "ns-resolve",
    "requiring-resolve",
    "resolve",
];
/// Namespaces of functions that call none of their arguments.
const PLAIN: &[&str] = &[
    "clojure.core",
    "clojure.edn",
    "clojure.math",
    "clojure.set",
    "clojure.string",
    "flow.util",
    "json",
];

impl Analysis<'_> {
    /// Returns what evaluating a form once uses.
    fn form(&mut self, form: &Value, names: &Names) -> Amounts {
        if let Some(symbol) = form.as_symbol() {
            return self.passed(symbol, form.span(), names);
        }
        self.depth += 1;
        self.forms += 1;
        let amounts = match form {
            _ if self.depth > DEPTH || self.forms > FORMS => match self.may_perform(form, names) {
                true => self.unknown("this is too much to be counted", form.span()),
                false => Amounts::NOTHING,
            },
            Value::List(_) if quoted(form).is_some() => Amounts::NOTHING,
            Value::List(list) => match list.iter().next().and_then(Value::as_symbol) {
                Some(head) if head.is("comment") => Amounts::NOTHING,
                Some(head) => self.headed(head, form, names),
                None => self.applied(form, names),
            },
            other => self.all(&children(other), names),
        };
        self.depth -= 1;
        amounts
    }

    /// Returns what evaluating all forms uses.
    fn all(&mut self, forms: &[Value], names: &Names) -> Amounts {
        let each = forms.iter();
        each.fold(Amounts::NOTHING, |sum, form| {
            sum.plus(self.form(form, names))
        })
    }

    /// A call whose head is not a name: `((fn [x] ...) 1)`.
    fn applied(&mut self, form: &Value, names: &Names) -> Amounts {
        let parts = items(form).unwrap_or_default();
        let [head, args @ ..] = &parts[..] else {
            return Amounts::NOTHING;
        };
        let called = match is_function(head) {
            true => self.function(head, names),
            false => self.form(head, names),
        };
        called.plus(self.all(args, names))
    }

    /// A name that is not called: what it stands for may be called any number of times.
    fn passed(&mut self, symbol: Symbol, span: Span, names: &Names) -> Amounts {
        match find(names, symbol) {
            Some(Meaning::Function(function, around)) => {
                let (function, around) = (function.clone(), around.clone());
                let amounts = self.function(&function, &around);
                let message = format!(
                    "`{symbol}` performs steps, and may be called any number of times here"
                );
                self.endless(amounts, message, span)
            }
            Some(_) => Amounts::NOTHING,
            None if self.globals.contains_key(&symbol) => {
                let functions = self.globals.get(&symbol).cloned().unwrap_or_default();
                let amounts = functions.iter().fold(Amounts::NOTHING, |most, function| {
                    most.or(self.function(function, &None))
                });
                let message = format!(
                    "`{symbol}` performs steps, and may be called any number of times here"
                );
                self.endless(amounts, message, span)
            }
            None if calls::PERFORMING.iter().any(|name| symbol.is(name)) => {
                let message = format!("`{symbol}` may be called any number of times here");
                self.unknown(&message, span)
            }
            None if EVAL.iter().any(|name| symbol.is(name)) => {
                let message = format!("`{symbol}` may evaluate any code");
                self.unknown(&message, span)
            }
            None => Amounts::NOTHING,
        }
    }

    /// Returns what one call of a function literal uses: its most expensive arity.
    fn function(&mut self, function: &Value, names: &Names) -> Amounts {
        let span = function.span();
        if span.is_some() && self.active.contains(&span) {
            return self.recursive(span);
        }
        self.active.push(span);
        let parts = items(function).unwrap_or_default();
        let mut rest = parts.get(1..).unwrap_or_default();
        let mut around = names.clone();
        if let Some(name) = rest.first().and_then(Value::as_symbol) {
            around = named(
                &around,
                name,
                Meaning::Function(function.clone(), names.clone()),
            );
            rest = &rest[1..];
        }
        // What `defn` has before its arguments.
        while let Some(Value::Text(_) | Value::Map(_)) = rest.first() {
            rest = &rest[1..];
        }
        let amounts = match rest.first() {
            Some(params @ Value::Vector(_)) => {
                let inner = hidden(&around, params);
                self.all(&rest[1..], &inner)
            }
            _ => rest.iter().fold(Amounts::NOTHING, |most, arity| {
                let arity = items(arity).unwrap_or_default();
                let inner = arity
                    .first()
                    .map_or(around.clone(), |it| hidden(&around, it));
                most.or(self.all(arity.get(1..).unwrap_or_default(), &inner))
            }),
        };
        self.active.pop();
        amounts
    }

    fn recursive(&mut self, span: Span) -> Amounts {
        self.unknown("this function calls itself", span)
    }

    /// Something of which nothing is known.
    fn unknown(&mut self, message: &str, span: Span) -> Amounts {
        let all = Quantity::ALL.into_iter();
        let everything = all.fold(Amounts::NOTHING, |sum, it| sum.with(it, Most::Number(1)));
        self.endless(everything, message.to_owned(), span)
    }

    /// Something that may be repeated any number of times.
    fn endless(&mut self, once: Amounts, message: String, span: Span) -> Amounts {
        let quantities = once.used();
        if !quantities.is_empty() {
            self.reason(quantities, message, span);
        }
        once.times(Most::Unbounded)
    }

    fn reason(&mut self, quantities: Vec<Quantity>, message: String, span: Span) {
        let reason = Reason {
            quantities,
            message,
            span,
        };
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Something that is repeated, with the reason if its number is not known.
    fn repeated(
        &mut self,
        once: Amounts,
        count: Option<u64>,
        (message, span): (&str, Span),
    ) -> Amounts {
        match count {
            Some(count) => once.times(Most::Number(count)),
            None => self.endless(once, message.to_owned(), span),
        }
    }

    /// Tells whether a form mentions anything that performs steps.
    fn may_perform(&self, form: &Value, names: &Names) -> bool {
        let mut open = vec![form.clone()];
        while let Some(form) = open.pop() {
            if let Some(symbol) = form.as_symbol() {
                let is_function = matches!(find(names, symbol), Some(Meaning::Function(..)));
                let performs = || calls::PERFORMING.iter().any(|name| symbol.is(name));
                let is_global = self.globals.contains_key(&symbol) || self.macros.contains(&symbol);
                if is_function || performs() || is_global {
                    return true;
                }
            }
            open.extend(children(&form));
        }
        false
    }
}

/// Returns the names of the macros that a body defines anywhere.
fn macros(body: &Value) -> HashSet<Symbol> {
    let mut found = HashSet::new();
    let mut open = vec![body.clone()];
    while let Some(form) = open.pop() {
        let parts = children(&form);
        if parts
            .first()
            .and_then(Value::as_symbol)
            .is_some_and(|head| head.is("defmacro"))
        {
            found.extend(parts.get(1).and_then(Value::as_symbol));
        }
        open.extend(parts);
    }
    found
}

/// Returns the functions that a body defines anywhere, by their names.
fn globals(body: &Value) -> HashMap<Symbol, Vec<Value>> {
    let mut found: HashMap<Symbol, Vec<Value>> = HashMap::new();
    let mut open = vec![body.clone()];
    while let Some(form) = open.pop() {
        let parts = match &form {
            Value::List(_) if quoted(&form).is_none() => children(&form),
            Value::List(_) => Vec::new(),
            other => children(other),
        };
        let head = parts.first().and_then(Value::as_symbol);
        if let (Some(head), Some(name)) = (head, parts.get(1).and_then(Value::as_symbol)) {
            let function = match () {
                () if head.is("defn") || head.is("defn-") => Some(form.clone()),
                () if head.is("def") || head.is("defonce") => {
                    parts.last().filter(|it| is_function(it)).cloned()
                }
                () => None,
            };
            if let Some(function) = function {
                found.entry(name).or_default().push(function);
            }
        }
        open.extend(parts);
    }
    found
}

/// Tells whether a form is a function literal.
fn is_function(form: &Value) -> bool {
    let Value::List(list) = form else {
        return false;
    };
    let head = list.iter().next().and_then(Value::as_symbol);
    head.is_some_and(|head| head.is("fn") || head.is("fn*"))
}

fn named(names: &Names, name: Symbol, meaning: Meaning) -> Names {
    Some(Rc::new(Named {
        name,
        meaning,
        outer: names.clone(),
    }))
}

/// Returns the names with those of a pattern, of which nothing is known.
fn hidden(names: &Names, pattern: &Value) -> Names {
    let mut inner = names.clone();
    let mut open = vec![pattern.clone()];
    while let Some(form) = open.pop() {
        if let Some(symbol) = form.as_symbol() {
            inner = named(&inner, symbol, Meaning::Other);
        }
        open.extend(children(&form));
    }
    inner
}

fn find(names: &Names, symbol: Symbol) -> Option<&Meaning> {
    let mut at = names.as_ref();
    while let Some(named) = at {
        if named.name == symbol {
            return Some(&named.meaning);
        }
        at = named.outer.as_ref();
    }
    None
}
