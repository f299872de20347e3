//! The published example of a spec, and changes that make it invalid.

use flowstone_fronts::graph::validate::validate;
use serde_json::{Value, json};

/// Changes of a valid spec, each with the places of its issues.
#[test]
fn mutations_of_the_published_example_are_refused_at_their_place() {
    let example = json!({
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
        "limits": {"max_steps": 20, "max_tool_calls": 50, "max_parallel_tools": 4, "timeout_seconds": 300, "human_timeout_seconds": 86400},
    });
    assert!(validate(&example).1.is_valid());
    let tool = "/nodes/respond/tools/0";
    let cases: &[(&str, Value, &[&str])] = &[
        ("/spec_version", json!(1), &["spec_version"]),
        ("/spec_version", json!("2"), &["spec_version"]),
        ("/entry", json!("none"), &["entry"]),
        ("/entry", Value::Null, &["entry"]),
        (
            "/nodes/classify/type",
            json!("branch"),
            &["nodes.classify.type"],
        ),
        ("/nodes/classify", Value::Null, &["nodes.classify"]),
        (
            "/nodes/classify/output_key",
            json!("a b"),
            &["nodes.classify.output_key"],
        ),
        ("/nodes/respond/model", json!(7), &["nodes.respond.model"]),
        ("/edges/0/to", json!("none"), &["edges[0].to"]),
        ("/edges/1/to", json!("classify"), &["edges"]),
        (
            "/edges/1",
            json!({"from": "classify", "to": "done"}),
            &["edges[1].from", "nodes.respond"],
        ),
        (
            "/edges/0",
            json!({"from": "classify", "to": "respond", "condition": "x"}),
            &["edges[0].condition"],
        ),
        (
            tool,
            json!({"source": "function", "name": "other"}),
            &["nodes.respond.tools[0]"],
        ),
        (
            tool,
            json!({"source": "http", "name": "lookup_account"}),
            &["nodes.respond.tools[0].source"],
        ),
        (
            tool,
            json!({"source": "mcp", "name": "search"}),
            &["nodes.respond.tools[0].server_id"],
        ),
        (
            "/nodes/respond/system_prompt",
            json!("{{ env.HOME }}"),
            &["nodes.respond.system_prompt"],
        ),
        (
            "/nodes/done/output_template",
            json!("{{ state.reply | upper }}"),
            &["nodes.done.output_template"],
        ),
        ("/limits/max_steps", json!(201), &["limits.max_steps"]),
        (
            "/limits/max_tool_calls",
            json!(-1),
            &["limits.max_tool_calls"],
        ),
        (
            "/limits/max_parallel_tools",
            json!(17),
            &["limits.max_parallel_tools"],
        ),
        (
            "/limits/timeout_seconds",
            json!(3601),
            &["limits.timeout_seconds"],
        ),
        (
            "/limits/human_timeout_seconds",
            json!("86400"),
            &["limits.human_timeout_seconds"],
        ),
    ];
    assert_eq!(cases.len(), 22);
    for (pointer, value, expected) in cases {
        let mut spec = example.clone();
        *spec.pointer_mut(pointer).expect(pointer) = value.clone();
        let (read, report) = validate(&spec);
        let places: Vec<String> = report.issues.iter().map(|it| it.place()).collect();
        assert!(read.is_none());
        assert_eq!(places, *expected, "{pointer} {value}");
    }
}
