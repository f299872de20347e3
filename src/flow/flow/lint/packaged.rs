//! Checks packaged steps against the step types that they wrap, and calls of them against their contracts.

use std::collections::BTreeSet;

use flowstone_lang::value::{Span, Value};
use flowstone_model::names::name_of;

use super::{Lint, find, unknown};
use crate::call_problem;
use crate::config::{self, Problem};
use crate::diagnostic::Diagnostic;
use crate::flow::{Flow, PackagedStep};
use crate::forms::{entry_spans, is_known, item_span};
use crate::natives::fanout;
use crate::schema::{self, Kind, Schema};

impl Lint<'_> {
    /// Checks the entries of `:steps`.
    pub(super) fn packaged(&mut self) {
        let referenced = references(self.flow);
        for step in &self.flow.packaged {
            self.wrapped(step);
            if !referenced.contains(&*step.id) {
                let message = format!("nothing uses the {} `:{}`", step.origin.noun(), step.id);
                self.findings.push(
                    Diagnostic::warning("E0419", message)
                        .at(step.span)
                        .hint(format!("call it: `(flow/step :{} {{...}})`", step.id)),
                );
            }
        }
    }

    fn wrapped(&mut self, step: &PackagedStep) {
        let at = entry_spans(self.sources, &step.entry, ":type").value;
        let Some(spec) = find(&self.specs, &step.kind) else {
            let named = step.kind.as_ref();
            let mut finding = unknown(named, &self.specs).at(at);
            finding.code = "E0422";
            finding.message = format!("`:{}` wraps `:{named}`, which is not a step type", step.id);
            self.findings.push(finding);
            return;
        };
        if spec.kind == fanout::KIND {
            let message = format!(
                "`:{}` wraps a `:fanout`, which works only in a flow's body",
                step.id
            );
            self.findings.push(
                Diagnostic::error("E0422", message)
                    .at(at)
                    .hint("call the packaged step itself with flow/pmap"),
            );
            return;
        }
        let (given, place) = match step.is_agent() {
            true => (step.entry.clone(), step.span),
            false => (
                step.entry.get("defaults").cloned().unwrap_or(Value::Nil),
                entry_spans(self.sources, &step.entry, ":defaults").value,
            ),
        };
        self.tools(spec, &step.defaults, &given);
        for problem in config::check_literal(spec, &step.defaults) {
            if matches!(problem, Problem::Missing { .. }) {
                continue;
            }
            let at = problem.key().map_or(place, |key| {
                entry_spans(self.sources, &given, &format!(":{key}")).key
            });
            let message = match step.is_agent() {
                true => format!("the named agent `:{}`: {}", step.id, problem.message(spec)),
                false => format!("`:defaults` of `:{}`: {}", step.id, problem.message(spec)),
            };
            let finding = Diagnostic::error(problem.code(), message).at(at);
            self.findings.push(match problem.hint(spec) {
                Some(hint) => finding.hint(hint),
                None => finding,
            });
        }
    }

    /// Checks a call of a packaged step or of a named agent.
    pub(super) fn packaged_call(&mut self, name: &str, form: &Value, args: &[Value]) {
        let at = |idx: usize| item_span(form, idx + 1);
        let Some(step) = self.flow.packaged_step(name).cloned() else {
            self.findings
                .push(call_problem::missing(name, self.flow).at(at(0)));
            return;
        };
        let input = match args {
            [_] => {
                self.findings
                    .push(call_problem::no_input(name).at(form.span()));
                return;
            }
            [_, input] => (input, at(1)),
            [_, id, input] => {
                if matches!(id, Value::Map(_)) {
                    self.findings.push(call_problem::extra(name).at(at(2)));
                    return;
                }
                let is_id = !matches!(
                    id,
                    Value::Nil
                        | Value::Bool(_)
                        | Value::Int(_)
                        | Value::Float(_)
                        | Value::Vector(_)
                        | Value::Set(_)
                );
                if !is_id {
                    let message = format!("a step id is a keyword, not {}", id.kind());
                    self.findings
                        .push(Diagnostic::error("E0433", message).at(at(1)));
                }
                (input, at(2))
            }
            _ => return,
        };
        self.packaged_input(&step, input.0, input.1);
    }

    /// Checks the parts of an input that are written out in the call.
    fn packaged_input(&mut self, step: &PackagedStep, input: &Value, at: Span) {
        match input {
            Value::Map(_) => {}
            Value::List(_) | Value::Symbol(_) | Value::Name(_) => return,
            other => {
                let message = format!(
                    "the input of `:{}` must be a map, not {}",
                    step.id,
                    other.kind()
                );
                self.findings
                    .push(Diagnostic::error("E0432", message).at(at));
                return;
            }
        }
        let Some(contract) = &step.input else {
            return;
        };
        for (key, problem) in literal_problems(&contract.schema, input) {
            let at = key.map_or(at, |key| entry_spans(self.sources, input, &key).value);
            self.findings.push(
                Diagnostic::error("E0425", format!("the input of `:{}`: {problem}", step.id))
                    .at(at)
                    .hint(format!(
                        "its input is {}",
                        crate::text::brief(&contract.form)
                    )),
            );
        }
    }
}

/// Returns the problems of a map literal, each with its key. Computed entries may be anything.
fn literal_problems(schema: &Schema, input: &Value) -> Vec<(Option<String>, schema::Problem)> {
    let mut partial = schema.clone();
    let Some(map) = input.as_map() else {
        return Vec::new();
    };
    // A computed key may be any key.
    if !map.iter().all(|(key, _)| key.as_keyword().is_some()) {
        return Vec::new();
    }
    let Kind::Map { entries, .. } = &mut partial.kind else {
        return Vec::new();
    };
    for entry in entries.iter_mut() {
        let is_open = map.get(&entry.key).is_some_and(|form| !is_known(form));
        if is_open {
            entry.schema.kind = Kind::Any;
            entry.schema.notes.message = None;
        }
    }
    let decoded = schema::decode(&partial, input.clone());
    let problems = schema::validate_with(&partial, &decoded, &mut |_, _| Ok(true));
    problems
        .into_iter()
        .map(|problem| (problem.path.first().cloned(), problem))
        .collect()
}

/// Returns the qualified keywords of a definition, without their colons. Ids of `:steps` and `:agents` are left out.
fn references(flow: &Flow) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![flow.body.clone()];
    open.extend(flow.packaged.iter().map(|step| step.defaults.clone()));
    for (key, value) in flow
        .definition
        .as_map()
        .into_iter()
        .flat_map(|map| map.iter())
    {
        match name_of(key).as_deref() {
            Some("flow" | "steps" | "agents") => {}
            _ => open.push(value.clone()),
        }
    }
    while let Some(form) = open.pop() {
        match &form {
            Value::Keyword(name) if name.namespace().is_some() => {
                found.insert(name.to_string().trim_start_matches(':').to_owned());
            }
            // Code may be a string.
            Value::Text(text) if text.contains(':') => {
                for step in &flow.packaged {
                    if text.contains(&*step.id) {
                        found.insert(step.id.to_string());
                    }
                }
            }
            Value::List(items) => open.extend(items.iter().cloned()),
            Value::Vector(items) => open.extend(items.iter().cloned()),
            Value::Set(items) => open.extend(items.iter().cloned()),
            Value::Map(map) => {
                open.extend(
                    map.iter()
                        .flat_map(|(key, value)| [key.clone(), value.clone()]),
                );
            }
            _ => {}
        }
    }
    found
}
