//! What the delta of a test may not change: where the run gets connections, what starts it, and beside what it runs.

use flowstone_flow::definition::Flow;
use flowstone_lang::value::Value;

/// Keys of a flow that say where it runs and what starts it.
const FIXED: &[&str] = &[
    "slug",
    "requires",
    "interfaces",
    "schedules",
    "triggers",
    "concurrency",
    "llm-providers",
];

/// Returns the first key that differs and may not: `requires`, or `mcp linear/issues`.
pub fn changed(before: &Flow, after: &Flow) -> Option<String> {
    let key = |flow: &Flow, key: &str| flow.definition.get(key).cloned().unwrap_or(Value::Nil);
    if before.slug != after.slug {
        return Some("slug".to_owned());
    }
    let mut fixed = FIXED.iter();
    if let Some(name) = fixed.find(|name| key(before, name) != key(after, name)) {
        return Some((*name).to_owned());
    }
    let known = after.mcp.iter().find(|adapter| {
        let old = before.mcp_adapter(&adapter.id);
        old.is_none_or(|old| {
            (&old.connection, old.transport, &old.path)
                != (&adapter.connection, adapter.transport, &adapter.path)
        })
    });
    known.map(|adapter| format!("mcp {}", adapter.id))
}
