//! `:agents`: agents with a name. Each is a packaged step that wraps an `:agent`. All keys of an entry but those of
//! packaged steps are defaults of the `:agent` step; the arguments of a call become its `:inputs`.
//!
//! The checks of step calls report fields that an `:agent` does not have.

use std::rc::Rc;

use flowstone_lang::value::Value;

use super::packaged::{Origin, PackagedStep, add, code, contract, id, tool, without_quotes};
use super::reading::Reading;
use super::{FlowFunction, name_of};
use crate::diagnostic::Diagnostic;

/// The step type that a named agent wraps.
pub(super) const KIND: &str = "agent";

/// The keys of an entry that are not fields of the `:agent` step, sorted.
pub(super) const OWN_KEYS: &[&str] = &[
    "description",
    "id",
    "input-schema",
    "output-schema",
    "prepare",
    "project-result",
    "tool",
    "type",
];

/// Keys of an agent that set the format of its answer.
const ANSWER: &[&str] = &["json-schema", "output", "response-format"];

/// Adds the agents of a definition to its packaged steps.
pub(super) fn read(
    reading: &mut Reading<'_>,
    map: &Value,
    functions: &[FlowFunction],
    steps: &mut Vec<Rc<PackagedStep>>,
) {
    let origin = Origin::Agent;
    for (entry, span) in reading.maps(map, origin.key()) {
        let Some(id) = id(reading, (&entry, span), origin, steps) else {
            continue;
        };
        type_(reading, &entry, &id);
        let tool = tool(reading, &entry, (&id, origin));
        let output = contract(reading, &entry, "output-schema");
        let project_result = code(reading, &entry, "project-result", functions);
        let mut defaults = fields(&entry);
        // The agent answers with its `:output-schema`, unless its result is projected or it sets an answer format
        // itself.
        let says_answer = ANSWER.iter().any(|key| has(&entry, key));
        if let (Some(output), None, false) = (&output, &project_result, says_answer) {
            let form = [
                (Value::keyword("format"), Value::keyword("json")),
                (Value::keyword("schema"), output.form.clone()),
            ];
            defaults.push((Value::keyword("output"), Value::map(form)));
        }
        let step = PackagedStep {
            kind: Rc::from(KIND),
            description: reading.text(&entry, "description"),
            input: contract(reading, &entry, "input-schema"),
            output,
            defaults: Value::map(defaults),
            prepare: code(reading, &entry, "prepare", functions),
            project_result,
            tool_name: tool.0,
            tool_description: tool.1,
            entry: entry.clone(),
            span,
            origin,
            id,
        };
        if !has(&entry, "objective") && step.prepare.is_none() {
            reading.push(
                Diagnostic::error("E0468", format!("the named agent `:{}` needs an `:objective`", step.id))
                    .at(span)
                    .hint("add one: `:objective \"Look for security problems.\"`; the arguments of a call are in `:inputs`"),
            );
        }
        add(reading, steps, step);
    }
}

fn has(entry: &Value, key: &str) -> bool {
    entry.get(key).is_some_and(|given| !given.is_nil())
}

fn type_(reading: &mut Reading<'_>, entry: &Value, id: &str) {
    let Some(given) = entry.get("type").filter(|kind| !kind.is_nil()) else {
        return;
    };
    if name_of(given).is_none_or(|name| &*name != KIND) {
        let shown = crate::text::brief(given);
        let at = reading.value_at(entry, "type");
        reading.push(
            Diagnostic::error(
                "E0468",
                format!("the named agent `:{id}` is not an `{shown}`"),
            )
            .at(at)
            .hint("remove `:type`: every entry of `:agents` is an agent; other steps belong in `:steps`"),
        );
    }
}

/// The fields of the `:agent` step, without quotes: nothing in a definition is evaluated.
fn fields(entry: &Value) -> Vec<(Value, Value)> {
    let entries = entry.as_map().into_iter().flat_map(|map| map.iter());
    let own =
        entries.filter(|(key, _)| name_of(key).is_none_or(|name| !OWN_KEYS.contains(&&*name)));
    own.map(|(key, value)| (key.clone(), without_quotes(value)))
        .collect()
}
