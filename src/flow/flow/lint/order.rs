//! Finds literals whose order of evaluation differs from the written one: large maps, and sets.
//!
//! Clojure evaluates the entries of a large map literal in the order of its hash table. For plain code that hardly
//! matters, but steps in such entries are performed in an arbitrary order.

use flowstone_lang::value::{Symbol, Value};

use super::Lint;
use crate::diagnostic::Diagnostic;
use crate::forms::quoted;

/// Maximum size of maps that are evaluated in the written order.
const ORDERED: usize = 8;

/// Forms that are not evaluated with the literal when they are its direct entries, such as a branch of `flow/all`.
/// Inside another call, a function is probably called.
const LATER: &[&str] = &["delay", "fn", "fn*", "lazy-seq"];

impl Lint<'_> {
    /// Warns of a map or set literal in which two or more entries hold steps.
    pub(super) fn order(&mut self, form: &Value) {
        let (what, steps) = match form {
            Value::Map(map) if map.len() > ORDERED => {
                let entries = map.iter();
                let with_steps = entries.filter(|(key, value)| has_step(key) || has_step(value));
                ("a map of more than 8 entries", with_steps.count())
            }
            Value::Set(set) => ("a set", set.iter().filter(|item| has_step(item)).count()),
            _ => return,
        };
        if steps < 2 {
            return;
        }
        let message = format!(
            "the {steps} steps in this literal are not performed in the written order: {what} is evaluated in the order of its hashes"
        );
        self.findings.push(
            Diagnostic::warning("E0953", message)
                .at(form.span())
                .hint("perform the steps in a `let`, in the order that you want, and put the results into the literal"),
        );
    }
}

/// Tells whether a step call is evaluated in a form. Uses an explicit stack, because forms may be nested deeply.
pub(super) fn has_step(form: &Value) -> bool {
    if let Value::List(list) = form
        && let Some(head) = list.iter().next().and_then(Value::as_symbol)
        && LATER.iter().any(|name| head.is(name))
    {
        return false;
    }
    let mut open = vec![form.clone()];
    while let Some(form) = open.pop() {
        match &form {
            Value::List(list) => {
                let head = list.iter().next().and_then(Value::as_symbol);
                if head.is_some_and(performs) {
                    return true;
                }
                if quoted(&form).is_none() && !head.is_some_and(|head| head.is("comment")) {
                    open.extend(list.iter().cloned());
                }
            }
            Value::Vector(items) => open.extend(items.iter().cloned()),
            Value::Set(items) => open.extend(items.iter().cloned()),
            Value::Map(map) => {
                let entries = map.iter();
                open.extend(entries.flat_map(|(key, value)| [key.clone(), value.clone()]));
            }
            _ => {}
        }
    }
    false
}

/// Tells whether a call of this name performs steps itself.
fn performs(head: Symbol) -> bool {
    ["flow/step", "flow/call-flow"]
        .iter()
        .any(|name| head.is(name))
}
