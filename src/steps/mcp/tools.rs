//! Tools of servers for agents: what a reference in `:tools {:mcp [...]}` stands for.
//!
//! A reference is an adapter's id, which publishes what its `:allow-tools` name, or an adapter's namespace with the
//! name of a tool, which publishes that tool alone. What a tool is is taken from the definition, else asked for.

use flowstone_engine::flow::McpAdapter;
use flowstone_lang::value::Value;
use rmcp::model::Tool as ServerTool;

use crate::json;

/// Returns a tool as `:list-tools` gives it.
pub(super) fn listed(adapter: &McpAdapter, tool: &ServerTool) -> Value {
    let description = tool.description.as_deref().or(tool.title.as_deref());
    let hinted = tool.annotations.as_ref().and_then(|it| it.read_only_hint);
    let known = adapter.tool(&tool.name).and_then(|it| it.read_only);
    let schema = serde_json::Value::Object((*tool.input_schema).clone());
    Value::map([
        (Value::keyword("name"), Value::from(&*tool.name)),
        (
            Value::keyword("description"),
            Value::from(description.unwrap_or_default()),
        ),
        (
            Value::keyword("input-schema"),
            json::from_json_with_string_keys(&schema),
        ),
        (
            Value::keyword("read-only?"),
            Value::Bool(known.or(hinted).unwrap_or(false)),
        ),
    ])
}
