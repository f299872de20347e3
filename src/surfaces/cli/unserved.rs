//! Declarations that no command of this version serves, because they need an HTTP server.

use std::collections::BTreeSet;

use flowstone_flow::flow::Flow;
use flowstone_lang::value::Value;

const INTERFACES: &str = "`:interfaces`";
const EVENTS: &str = "triggers of type `:event` and `:webhook`";
const WEBHOOKS: &str = "webhooks of waits";
const LINKS: &str = "links for approvals";

/// Returns which of these declarations a flow has.
pub fn of(flow: &Flow) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let has = |value: Option<&Value>| match value {
        Some(Value::Map(map)) => !map.is_empty(),
        Some(Value::Vector(items)) => items.iter().next().is_some(),
        _ => false,
    };
    if has(flow.definition.get("interfaces")) {
        found.insert(INTERFACES);
    }
    if let Some(triggers) = flow.definition.get("triggers").and_then(Value::as_vector) {
        let is_outside = |trigger: &Value| {
            let kind = trigger.get("type").and_then(Value::as_keyword);
            kind.is_some_and(|kind| kind.is("event") || kind.is("webhook"))
        };
        if triggers.iter().any(is_outside) {
            found.insert(EVENTS);
        }
    }
    // Forms may be deeply nested.
    let mut open = vec![flow.body.clone()];
    while let Some(form) = open.pop() {
        match &form {
            Value::Map(map) => {
                if has(form.get("webhook")) {
                    found.insert(WEBHOOKS);
                }
                open.extend(
                    map.iter()
                        .flat_map(|(key, value)| [key.clone(), value.clone()]),
                );
            }
            Value::List(list) => open.extend(list.iter().cloned()),
            Value::Vector(items) => open.extend(items.iter().cloned()),
            Value::Text(text) if text.contains("{{approval-url") => {
                found.insert(LINKS);
            }
            _ => {}
        }
    }
    found
}

/// Returns one note for all flows; `None` if everything that they declare is served.
pub fn note(found: &BTreeSet<&'static str>) -> Option<String> {
    let names: Vec<&str> = found.iter().copied().collect();
    let (last, rest) = names.split_last()?;
    let list = match rest {
        [] => (*last).to_owned(),
        rest => format!("{} and {last}", rest.join(", ")),
    };
    Some(format!(
        "note: {list} are kept, but not served yet: no command of this version listens for HTTP. Start runs and answer \
         waits with commands"
    ))
}
