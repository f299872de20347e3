//! The input schema of a spec follows from its templates.

use flowstone_fronts::graph::inputs::input_schema;
use flowstone_fronts::graph::validate::validate;
use serde_json::{Value, json};

/// Checks the schema of a spec with two model nodes and an end, given their templates.
fn check(first: &str, second: &str, output: &str, expected: &Value) {
    let node = |template: &str, key: &str| json!({"type": "llm", "model": "ai", "system_prompt": "Work.", "input_template": template, "output_key": key});
    let spec = json!({
        "spec_version": "1", "entry": "one",
        "nodes": {
            "one": node(first, "first"),
            "two": node(second, "second"),
            "done": {"type": "end", "output_template": output},
        },
        "edges": [{"from": "one", "to": "two"}, {"from": "two", "to": "done"}],
    });
    let (spec, report) = validate(&spec);
    let spec = spec.unwrap_or_else(|| panic!("{}", report.to_json()));
    assert_eq!(input_schema(&spec), *expected, "{first} {second} {output}");
}

#[test]
fn members_that_templates_read_are_required() {
    check(
        "{{ input.message }}",
        "{{ input.message }} {{ input.rows.0.name }} {{ input.user.name }} {{ input.user }}",
        "{{ state.second }}",
        &json!({
            "type": "object",
            "properties": {
                "message": {"type": "string"}, "rows": {"type": "array"}, "user": {"type": "object"},
            },
            "required": ["message", "rows", "user"],
            "additionalProperties": false,
        }),
    );
}

#[test]
fn state_that_no_node_has_written_comes_from_the_input() {
    check(
        "{{ state.second }}",
        "{{ state.first }} {{ state.human_input }}",
        "{{ state.second }} {{ state.third }}",
        &json!({
            "type": "object",
            "properties": {"second": {"type": "string"}, "third": {"type": "string"}},
            "required": ["second", "third"],
            "additionalProperties": false,
        }),
    );
}

#[test]
fn a_template_of_the_whole_input_takes_any_member() {
    check(
        "{{ input }}",
        "x",
        "y",
        &json!({"type": "object", "properties": {}}),
    );
}
