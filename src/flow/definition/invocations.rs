//! Contracts of run inputs: `:invocations`, and the older `:triggers`.

use std::rc::Rc;

use flowstone_lang::value::{Span, Value};

use super::inputs::InputError;
use super::reading::{Reading, is_identifier, keywords};
use super::{Input, Invocation, name_of};
use crate::diagnostic::Diagnostic;
use crate::forms::{entry_spans, item_span};

/// Every type of an input, sorted.
pub(super) const TYPES: &[&str] = &[
    "any", "blob", "blob-ref", "boolean", "checkbox", "date", "datetime", "email", "file", "json",
    "list", "number", "password", "resource", "secret", "select", "string", "text", "textarea",
    "time",
];

/// The kinds of interfaces.
const INTERFACES: &[&str] = &["http", "manual", "mcp", "webhook"];

/// Reads the contracts, from current and from older keys.
pub(super) fn read(reading: &mut Reading<'_>, map: &Value) -> Vec<Invocation> {
    let triggers = triggers(reading, map);
    let mut found = current(reading, map);
    if found.is_empty() {
        found.extend(legacy(reading, map, &triggers));
    }
    found
}

/// Reads the entries of `:triggers`, each of which needs a type.
fn triggers(reading: &mut Reading<'_>, map: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    for (trigger, span) in reading.maps(map, "triggers") {
        match trigger.get("type").and_then(name_of) {
            Some(_) => found.push(trigger),
            None => reading.error("E0409", "an entry of `:triggers` needs a `:type`", span),
        }
    }
    found
}

fn current(reading: &mut Reading<'_>, map: &Value) -> Vec<Invocation> {
    let Some(value) = map.get("invocations").filter(|value| !value.is_nil()) else {
        return Vec::new();
    };
    let at = reading.value_at(map, "invocations");
    let Value::Map(entries) = value else {
        let message = format!("`:invocations` must be a map, not {}", value.kind());
        reading.push(
            Diagnostic::error("E0407", message)
                .at(at)
                .hint("for example `{:default {:inputs [{:name :query :type :text}]}}`"),
        );
        return Vec::new();
    };
    let mut found = Vec::new();
    for (key, contract) in entries.iter() {
        let id = match key {
            Value::Keyword(_) => name_of(key).filter(|name| is_identifier(name)),
            _ => None,
        };
        let Some(id) = id else {
            reading.error("E0407", "the id of an invocation is a plain keyword", at);
            continue;
        };
        let span = entry_spans(reading.sources, value, &format!(":{id}")).value;
        if !matches!(contract, Value::Map(_)) {
            let message = format!(
                "the invocation `:{id}` must be a map, not {}",
                contract.kind()
            );
            reading.error("E0407", message, span);
            continue;
        }
        found.push(Invocation {
            label: reading.text(contract, "label"),
            inputs: inputs(reading, contract, "inputs"),
            id,
        });
    }
    found
}

/// Reads manual triggers with `:fields`, and forms that are filled in for each run.
fn legacy(reading: &mut Reading<'_>, map: &Value, triggers: &[Value]) -> Vec<Invocation> {
    let named = |entry: &Value, key: &str, name: &str| {
        entry.get(key).and_then(name_of).as_deref() == Some(name)
    };
    let mut fields = Vec::new();
    let mut label = None;
    let mut is_there = false;
    for trigger in triggers {
        if named(trigger, "type", "manual") {
            is_there = true;
            label = reading.text(trigger, "label");
            if let Some(config) = trigger.get("config") {
                fields.extend(inputs(reading, config, "fields"));
            }
        }
    }
    for (entry, _) in reading.maps(map, "requires") {
        if named(&entry, "kind", "form") && named(&entry, "collect", "run") {
            is_there = true;
            fields.extend(inputs(reading, &entry, "fields"));
        }
    }
    if !is_there {
        return Vec::new();
    }
    vec![Invocation {
        id: "default".into(),
        label,
        inputs: fields,
    }]
}

/// Reads the fields of the forms that are filled in before the first run.
pub(super) fn setup(reading: &mut Reading<'_>, map: &Value) -> Vec<Input> {
    let is = |entry: &Value, key: &str, name: &str| {
        entry.get(key).and_then(name_of).as_deref() == Some(name)
    };
    let mut fields: Vec<Input> = Vec::new();
    for (entry, _) in reading.maps(map, "requires") {
        if is(&entry, "kind", "form") && !is(&entry, "collect", "run") {
            for field in inputs(reading, &entry, "fields") {
                if fields.iter().any(|known| known.name == field.name) {
                    let message = format!("two setup forms have a field `:{}`", field.name);
                    reading.error("E0414", message, field.span);
                    continue;
                }
                fields.push(field);
            }
        }
    }
    fields
}

fn inputs(reading: &mut Reading<'_>, contract: &Value, key: &str) -> Vec<Input> {
    let Some(value) = contract.get(key).filter(|value| !value.is_nil()) else {
        return Vec::new();
    };
    let at = reading.value_at(contract, key);
    let Value::Vector(items) = value else {
        let message = format!("`:{key}` must be a vector of maps, not {}", value.kind());
        reading.error("E0408", message, at);
        return Vec::new();
    };
    let mut found: Vec<Input> = Vec::new();
    for (idx, item) in items.iter().enumerate() {
        let span = item_span(value, idx).or(at);
        let Some(input) = input(reading, item, span) else {
            continue;
        };
        if found.iter().any(|known| known.name == input.name) {
            reading.error(
                "E0414",
                format!("there are two inputs `:{}`", input.name),
                span,
            );
            continue;
        }
        found.push(input);
    }
    found
}

fn input(reading: &mut Reading<'_>, item: &Value, span: Span) -> Option<Input> {
    if !matches!(item, Value::Map(_)) {
        reading.error(
            "E0408",
            format!("an input must be a map, not {}", item.kind()),
            span,
        );
        return None;
    }
    let name = item
        .get("name")
        .or_else(|| item.get("key"))
        .and_then(name_of);
    let Some(name) = name else {
        reading.push(
            Diagnostic::error("E0408", "an input needs a `:name`")
                .at(span)
                .hint("for example `{:name :query :type :text :required true}`"),
        );
        return None;
    };
    if !is_identifier(&name) {
        let message = format!("`{name}` cannot name an input");
        reading.push(
            Diagnostic::error("E0408", message)
                .at(span)
                .hint("a name is letters, digits, `-` and `_`, and starts with a letter"),
        );
        return None;
    }
    let key = if item.get("type").is_some() {
        "type"
    } else {
        "field-type"
    };
    let type_ = item
        .get(key)
        .and_then(name_of)
        .unwrap_or_else(|| Rc::from("text"));
    if !TYPES.contains(&&*type_) {
        let message = format!("unknown input type `:{type_}`");
        let at = reading.value_at(item, key);
        reading.push(
            Diagnostic::error("E0408", message)
                .at(at)
                .suggest(&type_, TYPES.iter().copied())
                .hint(format!("the types are {}", keywords(TYPES))),
        );
    }
    let flag = |key: &str| item.get(key).is_some_and(Value::is_truthy);
    let options = item.get("options").and_then(crate::forms::items);
    if &*type_ == "select" && options.as_ref().is_none_or(Vec::is_empty) {
        let message = format!("the input `:{name}` of type `:select` needs `:options`");
        reading.push(
            Diagnostic::error("E0408", message)
                .at(span)
                .hint("for example `:options [\"EU\" \"US\"]`"),
        );
    }
    let mut input = Input {
        name,
        type_,
        required: flag("required"),
        label: reading.text(item, "label"),
        description: reading.text(item, "description"),
        default: item.get("default").cloned().unwrap_or(Value::Nil),
        options: options.unwrap_or_default(),
        multiple: flag("multiple"),
        span,
    };
    default(reading, item, &mut input);
    Some(input)
}

/// Converts the default of an input to the input's type, like the value of a caller.
fn default(reading: &mut Reading<'_>, item: &Value, input: &mut Input) {
    if input.default.is_nil() || !TYPES.contains(&&*input.type_) {
        return;
    }
    match input.coerced(input.default.clone()) {
        Ok(value) => input.default = value,
        Err(InputError::WrongType {
            name,
            expected,
            found,
        }) => {
            let message =
                format!("the `:default` of the input `:{name}` must be {expected}, not {found}");
            let at = reading.value_at(item, "default");
            reading.error("E0408", message, at.or(input.span));
        }
        Err(other) => reading.error("E0408", other.to_string(), input.span),
    }
}

/// Checks the references to invocations: interfaces and schedules.
pub(super) fn check_callers(reading: &mut Reading<'_>, map: &Value, contracts: &[Invocation]) {
    let interfaces = map.get("interfaces").cloned().unwrap_or(Value::Nil);
    match &interfaces {
        Value::Nil => {}
        Value::Map(_) => {
            let mut ids = Vec::new();
            for category in INTERFACES {
                check_category(reading, &interfaces, category, contracts, &mut ids);
            }
        }
        other => {
            let at = reading.value_at(map, "interfaces");
            let message = format!("`:interfaces` must be a map, not {}", other.kind());
            reading.error("E0409", message, at);
        }
    }
    for (schedule, span) in reading.maps(map, "schedules") {
        if schedule.get("invocation").is_some() {
            names_invocation(reading, &schedule, span, contracts);
        }
    }
}

fn check_category(
    reading: &mut Reading<'_>,
    interfaces: &Value,
    category: &str,
    contracts: &[Invocation],
    ids: &mut Vec<Rc<str>>,
) {
    let entries = reading.maps(interfaces, category);
    if category != "mcp" && entries.len() > 1 {
        let at = reading.value_at(interfaces, category);
        reading.error(
            "E0409",
            format!("there can only be one `:{category}` interface"),
            at,
        );
    }
    let key = if category == "mcp" { "tool-name" } else { "id" };
    for (entry, span) in entries {
        match entry.get(key).and_then(name_of).filter(|id| !id.is_empty()) {
            None => reading.error("E0409", format!("this interface needs `:{key}`"), span),
            Some(id) if ids.contains(&id) => {
                reading.error("E0414", format!("there are two interfaces `{id}`"), span);
            }
            Some(id) => ids.push(id),
        }
        names_invocation(reading, &entry, span, contracts);
    }
}

fn names_invocation(
    reading: &mut Reading<'_>,
    entry: &Value,
    span: Span,
    contracts: &[Invocation],
) {
    let Some(id) = entry.get("invocation").and_then(name_of) else {
        reading.error("E0409", "this needs an `:invocation` to call", span);
        return;
    };
    if !contracts.iter().any(|contract| contract.id == id) {
        let at = reading.value_at(entry, "invocation");
        let names = contracts.iter().map(|contract| &*contract.id);
        reading.push(
            Diagnostic::error("E0409", format!("there is no invocation `:{id}`"))
                .at(at)
                .suggest(&id, names),
        );
    }
}
