//! Checks inside the entries of a definition: misspelt keys, values of a wrong type, duplicate slots.
//!
//! A stored program is read without these checks: a run resumes with the program that it was started with. None of
//! these findings repeats one of reading the definition. Keys with a namespace belong to the user, and are kept.

mod old;
mod outside;
mod rows;
pub(super) mod whole;

use flowstone_lang::value::{Sources, Span, Value};
use flowstone_model::names::name_of;

use crate::auth;
use crate::definition::is_identifier;
use crate::diagnostic::{Diagnostic, nearest};
use crate::forms::{entry_spans, item_span, misfit_span};
use crate::spec::shape::{self, Mismatch, What};
use crate::step::{Field, FieldType};

const CODE: &str = "E0472";

/// Checks the entries of a definition map.
pub(super) fn check(sources: &Sources, map: &Value) -> Vec<Diagnostic> {
    let mut contents = Contents {
        sources,
        findings: Vec::new(),
    };
    contents.invocations(map);
    contents.requires(map);
    for category in ["http", "manual", "mcp", "webhook"] {
        let interfaces = map.get("interfaces").cloned().unwrap_or(Value::Nil);
        contents.entries(&interfaces, category, |_| Some(rows::interface(category)));
    }
    contents.unknown_interfaces(map);
    contents.entries(map, "triggers", |_| Some(rows::TRIGGER));
    contents.entries(map, "functions", |_| Some(rows::FUNCTION));
    contents.entries(map, "templates", |_| Some(rows::TEMPLATE));
    outside::check(&mut contents, map);
    old::check(&mut contents, map);
    contents.findings
}

struct Contents<'a> {
    sources: &'a Sources,
    findings: Vec<Diagnostic>,
}

impl Contents<'_> {
    /// Checks the maps in a vector under a key. `rows` returns the fields of an entry; with `None`, an entry may be
    /// anything.
    fn entries(
        &mut self,
        map: &Value,
        key: &str,
        rows: impl Fn(&Value) -> Option<&'static [Field]>,
    ) {
        let Some(entries @ Value::Vector(items)) = map.get(key) else {
            return;
        };
        for (idx, entry) in items.iter().enumerate() {
            if let (Value::Map(_), Some(fields)) = (entry, rows(entry)) {
                self.entry(
                    &format!("an entry of `:{key}`"),
                    fields,
                    entry,
                    item_span(entries, idx),
                );
            }
        }
    }

    /// Checks one map. `what` is its name in messages.
    fn entry(&mut self, what: &str, fields: &'static [Field], entry: &Value, span: Span) {
        let own = without_extensions(entry);
        for mismatch in shape::misfits(FieldType::Keys(fields), &own, true) {
            let at = misfit_span(self.sources, (entry, span), &mismatch);
            self.findings.push(finding(what, &mismatch).at(at));
        }
    }

    fn invocations(&mut self, map: &Value) {
        let Some(contracts @ Value::Map(entries)) = map.get("invocations") else {
            return;
        };
        for (key, contract) in entries.iter() {
            let id = name_of(key).unwrap_or_default();
            let spans = entry_spans(self.sources, contracts, &key.to_string());
            if let Value::Map(_) = contract {
                let what = format!("the invocation `:{id}`");
                self.entry(&what, rows::INVOCATION, contract, spans.value);
            }
            let is_there = contracts.get("default").is_some();
            if !is_there && nearest(&id, ["default"]).is_some() {
                let message = format!("the invocation `:{id}` is not the default one");
                self.findings.push(
                    Diagnostic::warning(CODE, message)
                        .at(spans.key)
                        .suggest(&id, ["default"]),
                );
            }
        }
    }

    fn requires(&mut self, map: &Value) {
        let kind = |entry: &Value| entry.get("kind").and_then(name_of);
        self.entries(map, "requires", |entry| match kind(entry).as_deref() {
            None | Some("connection") => Some(rows::CONNECTION),
            Some("form") => Some(rows::FORM),
            Some("worker") => None,
            Some(_) => Some(rows::REQUIREMENT),
        });
        let Some(entries @ Value::Vector(items)) = map.get("requires") else {
            return;
        };
        let mut slots: Vec<String> = Vec::new();
        for (idx, entry) in items.iter().enumerate() {
            let Some(slot) = entry.get("slot").and_then(name_of) else {
                continue;
            };
            let at = entry_spans(self.sources, entry, ":slot").value;
            let at = at.or(item_span(entries, idx));
            if !is_identifier(&slot) {
                let message = format!("`:{slot}` cannot name a slot");
                self.findings.push(
                    Diagnostic::error(CODE, message)
                        .at(at)
                        .hint("a slot is a keyword without a namespace, such as `:crm`"),
                );
            } else if slots.iter().any(|known| **known == *slot) {
                let message = format!("there are two slots `:{slot}`");
                self.findings
                    .push(Diagnostic::error("E0414", message).at(at));
            }
            slots.push(slot.to_string());
        }
    }

    fn unknown_interfaces(&mut self, map: &Value) {
        let Some(interfaces @ Value::Map(entries)) = map.get("interfaces") else {
            return;
        };
        for (key, _) in entries.iter() {
            let name = name_of(key).unwrap_or_default();
            if rows::INTERFACES.contains(&&*name) || name.contains('/') {
                continue;
            }
            let message = format!("there are no interfaces of kind `:{name}`");
            let at = entry_spans(self.sources, interfaces, &key.to_string()).key;
            let finding = match nearest(&name, rows::INTERFACES.iter().copied()) {
                Some(_) => Diagnostic::error(CODE, message),
                None => Diagnostic::warning(CODE, message),
            };
            self.findings.push(
                finding
                    .at(at)
                    .suggest(&name, rows::INTERFACES.iter().copied())
                    .hint(format!(
                        "there are {}",
                        crate::definition::keywords(rows::INTERFACES)
                    )),
            );
        }
    }
}

/// Returns a value without the namespaced keys of its maps.
fn without_extensions(value: &Value) -> Value {
    match value {
        Value::Map(map) => Value::map(map.iter().filter_map(|(key, inner)| {
            let is_own = key.as_keyword().is_none_or(|key| key.namespace().is_none());
            is_own.then(|| (key.clone(), without_extensions(inner)))
        })),
        Value::Vector(items) => Value::vector(items.iter().map(without_extensions)),
        other => other.clone(),
    }
}

fn finding(what: &str, mismatch: &Mismatch) -> Diagnostic {
    let path = mismatch.path.join(" ");
    let whole = match path.as_str() {
        "" => what.to_owned(),
        path => format!("`{path}` of {what}"),
    };
    let is_in_auth = mismatch.path.last().is_some_and(|last| last == ":auth");
    let found = match &mismatch.what {
        What::Unknown { key, .. }
            if is_in_auth && auth::LITERAL_SECRET_KEYS.contains(&key.as_str()) =>
        {
            let message = format!("{whole} holds a secret itself, under `:{key}`");
            return Diagnostic::error("E0753", message).hint(
                "name it instead, `:secret-ref :my-token`, and set MY_TOKEN in the environment or in `.env`",
            );
        }
        What::Unknown { key, known } => {
            let message = format!("{whole} has no key `:{key}`");
            match is_in_auth || nearest(key, known.iter().copied()).is_some() {
                true => Diagnostic::error(CODE, message),
                // A key of an unknown interface may have a meaning for another program.
                false => Diagnostic::warning(CODE, format!("{message}: it has no effect")),
            }
        }
        What::Missing { key, .. } => Diagnostic::error(CODE, format!("{whole} needs `:{key}`")),
        What::Type {
            expected, found, ..
        } => Diagnostic::error(CODE, format!("{whole} must be {expected}, not {found}")),
    };
    let found = match mismatch.what.misspelt() {
        Some((word, near)) => found.respell(word, Some(near)),
        None => found,
    };
    match mismatch.hint() {
        Some(hint) => found.hint(hint),
        None => found,
    }
}
