//! The published example of a graph spec, and changes that make it invalid.

use serde_json::{Value, json};

/// Changes of the example: the place, the new value, and the places of the issues.
pub const MUTATIONS: &[(&str, &str, &[&str])] = &[
    ("/spec_version", "1", &["spec_version"]),
    ("/spec_version", r#""2""#, &["spec_version"]),
    ("/entry", r#""none""#, &["entry"]),
    ("/entry", "null", &["entry"]),
    (
        "/nodes/classify/type",
        r#""branch""#,
        &["nodes.classify.type"],
    ),
    ("/nodes/classify", "null", &["nodes.classify"]),
    (
        "/nodes/classify/output_key",
        r#""a b""#,
        &["nodes.classify.output_key"],
    ),
    ("/nodes/respond/model", "7", &["nodes.respond.model"]),
    ("/edges/0/to", r#""none""#, &["edges[0].to"]),
    ("/edges/1/to", r#""classify""#, &["edges"]),
    (
        "/edges/1",
        r#"{"from": "classify", "to": "done"}"#,
        &["edges[1].from", "nodes.respond"],
    ),
    (
        "/edges/0",
        r#"{"from": "classify", "to": "respond", "condition": "x"}"#,
        &["edges[0].condition"],
    ),
    (
        TOOL,
        r#"{"source": "function", "name": "other"}"#,
        &["nodes.respond.tools[0]"],
    ),
    (
        TOOL,
        r#"{"source": "http", "name": "lookup_account"}"#,
        &["nodes.respond.tools[0].source"],
    ),
    (
        TOOL,
        r#"{"source": "mcp", "name": "search"}"#,
        &["nodes.respond.tools[0].server_id"],
    ),
    (
        "/nodes/respond/system_prompt",
        r#""{{ env.HOME }}""#,
        &["nodes.respond.system_prompt"],
    ),
    (
        "/nodes/done/output_template",
        r#""{{ state.reply | upper }}""#,
        &["nodes.done.output_template"],
    ),
    ("/limits/max_steps", "201", &["limits.max_steps"]),
    ("/limits/max_tool_calls", "-1", &["limits.max_tool_calls"]),
    (
        "/limits/max_parallel_tools",
        "17",
        &["limits.max_parallel_tools"],
    ),
    (
        "/limits/timeout_seconds",
        "3601",
        &["limits.timeout_seconds"],
    ),
    (
        "/limits/human_timeout_seconds",
        r#""86400""#,
        &["limits.human_timeout_seconds"],
    ),
];

const TOOL: &str = "/nodes/respond/tools/0";

/// Returns the published example.
pub fn example() -> Value {
    json!({
        "spec_version": "1",
        "entry": "classify",
        "nodes": {
            "classify": {
                "type": "llm", "model": "anthropic/claude-3.5-haiku", "system_prompt": "Classify the request.",
                "input_template": "{{ input.message }}", "output_key": "category", "tools": [],
            },
            "respond": {
                "type": "llm", "model": "anthropic/claude-3.5-sonnet", "system_prompt": "You are a {{ state.category }} agent.",
                "input_template": "{{ input.message }}", "output_key": "reply",
                "tools": [{"source": "function", "name": "lookup_account"}],
            },
            "done": {"type": "end", "output_template": "{{ state.reply }}"},
        },
        "edges": [{"from": "classify", "to": "respond"}, {"from": "respond", "to": "done"}],
        "tools": {"builtin": ["select_rows"], "mcp_servers": [], "functions": ["lookup_account"]},
        "limits": {
            "max_steps": 20, "max_tool_calls": 50, "max_parallel_tools": 4, "timeout_seconds": 300,
            "human_timeout_seconds": 86400,
        },
    })
}
