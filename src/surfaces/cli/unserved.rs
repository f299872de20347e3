//! Declarations that no command of this version serves.

use std::collections::BTreeSet;

use flowstone_flow::flow::Flow;
use flowstone_lang::value::Value;

const TOOLS: &str = "interfaces of kind `:mcp`";

/// Returns which of these declarations a flow has.
pub fn of(flow: &Flow) -> BTreeSet<&'static str> {
    let mut found = BTreeSet::new();
    let has = |value: Option<&Value>| match value {
        Some(Value::Map(map)) => !map.is_empty(),
        Some(Value::Vector(items)) => items.iter().next().is_some(),
        _ => false,
    };
    let interfaces = flow.definition.get("interfaces");
    if has(interfaces.and_then(|interfaces| interfaces.get("mcp"))) {
        found.insert(TOOLS);
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
        "note: {list} are kept, but not served yet. Start runs and answer waits with commands, or over HTTP"
    ))
}
