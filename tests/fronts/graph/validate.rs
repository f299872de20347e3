//! Each kind of mistake in a spec is reported with its place, and all of them at once.

use flowstone_fronts::graph::shape::{Member, Name, Shape};
use flowstone_fronts::graph::spec::{SPEC, schema};
use flowstone_fronts::graph::validate::validate;
use serde_json::{Value, json};

/// Returns a valid spec with each kind of node.
fn spec() -> Value {
    json!({
        "spec_version": "1",
        "entry": "find",
        "nodes": {
            "find": {
                "type": "tool",
                "tool_ref": {"source": "builtin", "name": "query_table"},
                "args_template": {"table": "orders", "where": {"id": "{{ input.id }}"}},
                "output_key": "rows"
            },
            "reply": {
                "type": "llm",
                "model": "ai/small",
                "system_prompt": "Answer from {{ state.rows }}.",
                "input_template": "{{ input.message }}",
                "output_key": "answer",
                "tools": [{"source": "function", "name": "lookup"}],
                "temperature": 0.2,
                "max_tokens": 200
            },
            "done": {"type": "end", "output_template": "{{ state.answer }}"}
        },
        "edges": [{"from": "find", "to": "reply"}, {"from": "reply", "to": "done"}],
        "tools": {"builtin": ["query_table"], "functions": ["lookup"], "mcp_servers": []},
        "limits": {"max_steps": 20}
    })
}

/// Returns the issues of the spec with a value at a place: `path: message`.
fn issues(pointer: &str, value: Value) -> Vec<String> {
    let mut spec = spec();
    set(&mut spec, pointer, value);
    issues_of(&spec)
}

fn issues_of(spec: &Value) -> Vec<String> {
    let (read, report) = validate(spec);
    assert_eq!(read.is_some(), report.is_valid());
    let issues = report.issues.iter();
    issues
        .map(|it| format!("{}: {}", it.place(), it.message))
        .collect()
}

fn warnings_of(spec: &Value) -> Vec<String> {
    let (_, report) = validate(spec);
    let warnings = report.warnings.iter();
    warnings
        .map(|it| format!("{}: {}", it.place(), it.message))
        .collect()
}

fn set(spec: &mut Value, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    let parent = spec.pointer_mut(parent).expect("a place in the spec");
    match parent {
        Value::Array(items) => match key.parse::<usize>() {
            Ok(idx) if idx < items.len() => items[idx] = value,
            _ => items.push(value),
        },
        parent => parent[key] = value,
    }
}

#[track_caller]
fn check(pointer: &str, value: Value, expected: &[&str]) {
    let found = issues(pointer, value);
    let is_found = |part: &&&str| found.iter().any(|issue| issue.contains(**part));
    let missing: Vec<&&str> = expected.iter().filter(|part| !is_found(part)).collect();
    assert!(missing.is_empty(), "{missing:?} is not in {found:#?}");
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

#[test]
fn a_valid_spec_has_no_issues_and_no_warnings() {
    assert_eq!(issues_of(&spec()), [""; 0]);
    assert_eq!(warnings_of(&spec()), [""; 0]);
}

#[test]
fn tools_and_limits_may_be_left_out() {
    let mut spec = spec();
    let members = spec.as_object_mut().expect("an object");
    members.remove("limits");
    let (read, _) = validate(&spec);
    let limits = read.expect("a valid spec").limits;
    assert_eq!(
        (
            limits.max_steps,
            limits.max_tool_calls,
            limits.max_parallel_tools
        ),
        (20, 100, 4)
    );
    assert_eq!(
        (limits.timeout_seconds, limits.human_timeout_seconds),
        (600, 86_400)
    );
    spec["limits"] = Value::Null;
    assert_eq!(issues_of(&spec), [""; 0]);
}

#[test]
fn an_unknown_version_node_type_or_member_is_refused() {
    check(
        "/spec_version",
        json!("2"),
        &[r#"spec_version: expected "1", got "2""#],
    );
    check("/spec_version", json!(1), &["spec_version: expected"]);
    check(
        "/nodes/reply/type",
        json!("branch"),
        &[r#"nodes.reply.type: expected "llm", "tool" or "end", got "branch""#],
    );
    check(
        "/nodes/reply/when",
        json!("x"),
        &["nodes.reply.when: unknown member `when`"],
    );
    check(
        "/edges/0/condition",
        json!("x"),
        &["edges[0].condition: unknown member"],
    );
    check(
        "/nodes/reply/temperature",
        json!(3),
        &["nodes.reply.temperature: expected a number from 0 to 2"],
    );
    check(
        "/nodes/find/tool_ref/source",
        json!("shell"),
        &["nodes.find.tool_ref.source: expected"],
    );
    check(
        "/nodes/done/output_template",
        json!(7),
        &["nodes.done.output_template: expected a text, got 7"],
    );
}

#[test]
fn malformed_nodes_or_edges_have_no_further_issues_of_edges() {
    check(
        "/nodes",
        json!([]),
        &["nodes: expected an object, got a list of 0"],
    );
    check(
        "/edges",
        json!({}),
        &["edges: expected a list, got an object"],
    );
}

#[test]
fn limits_have_caps() {
    for (limit, low, high) in [
        ("max_steps", 1, 200),
        ("max_tool_calls", 0, 500),
        ("max_parallel_tools", 1, 16),
        ("timeout_seconds", 5, 3_600),
        ("human_timeout_seconds", 60, 604_800),
        ("heartbeat_seconds", 1, 60),
    ] {
        let pointer = format!("/limits/{limit}");
        let expected = format!("limits.{limit}: expected a whole number from {low} to {high}");
        for wrong in [json!(low - 1), json!(high + 1), json!("many"), json!(1.5)] {
            check(&pointer, wrong, &[&expected]);
        }
        for right in [low, high] {
            assert_eq!(issues(&pointer, json!(right)), [""; 0], "{limit} {right}");
            let spelled = json!(f64::from(right));
            assert_eq!(issues(&pointer, spelled), [""; 0], "{limit} {right}.0");
        }
    }
}

#[test]
fn edges_join_known_nodes_once_and_without_cycles() {
    check(
        "/entry",
        json!("start"),
        &["entry: there is no node `start`"],
    );
    check(
        "/edges/1/to",
        json!("gone"),
        &["edges[1].to: there is no node `gone`"],
    );
    check(
        "/edges/2",
        json!({"from": "find", "to": "done"}),
        &["edges[2].from: the node `find` has an edge to `reply` already"],
    );
    check(
        "/edges/2",
        json!({"from": "done", "to": "find"}),
        &[
            "edges[2].from: the end node `done` cannot have",
            "edges: the edges form a cycle",
        ],
    );
    check(
        "/edges/1/to",
        json!("find"),
        &["edges: the edges form a cycle: find -> reply -> find"],
    );
    check(
        "/edges/1/to",
        json!("reply"),
        &["edges: the edges form a cycle: reply -> reply"],
    );
    let mut open = spec();
    open["edges"] = json!([{"from": "find", "to": "reply"}]);
    let found = issues_of(&open);
    assert!(
        found[0].starts_with("nodes.reply: the node `reply` is not an end node"),
        "{found:?}"
    );
}

#[test]
fn a_node_that_is_not_reached_is_a_warning() {
    let mut spec = spec();
    spec["nodes"]["spare"] = json!({"type": "end", "output_template": "x"});
    assert_eq!(issues_of(&spec), [""; 0]);
    assert_eq!(
        warnings_of(&spec),
        ["nodes.spare: the node `spare` is not reached from `find`"]
    );
}

#[test]
fn templates_have_two_roots_and_no_code() {
    for (text, expected) in [
        ("{{ env.HOME }}", "unknown root `env`"),
        ("{{ input.a + 1 }}", "expected a path"),
        ("{{ constructor.name }}", "unknown root `constructor`"),
        ("{{}}", "expected a path"),
    ] {
        check("/nodes/reply/input_template", json!(text), &[expected]);
        check("/nodes/reply/system_prompt", json!(text), &[expected]);
        check("/nodes/done/output_template", json!(text), &[expected]);
        let nested = json!({"a": [{"b": text}]});
        let place = "nodes.find.args_template.a[0].b: ";
        check(
            "/nodes/find/args_template",
            nested,
            &[&format!("{place}{expected}")],
        );
    }
    for text in [
        "{{input}}",
        "{{ state.rows.0.id }}",
        "no template",
        "{{ input.a }",
    ] {
        assert_eq!(
            issues("/nodes/reply/input_template", json!(text)),
            [""; 0],
            "{text}"
        );
    }
}

#[test]
fn a_tool_outside_the_top_level_block_is_refused() {
    check(
        "/nodes/reply/tools/1",
        json!({"source": "builtin", "name": "delete_row"}),
        &["nodes.reply.tools[1]: the tool `delete_row` is not listed in tools.builtin"],
    );
    check(
        "/nodes/find/tool_ref/name",
        json!("insert_row"),
        &["nodes.find.tool_ref: the tool `insert_row` is not listed"],
    );
    check(
        "/nodes/reply/tools/1",
        json!({"source": "mcp", "server_id": "docs", "name": "search"}),
        &[
            "nodes.reply.tools[1]: the tool `search` is not listed in tools.mcp_servers for the server `docs`",
        ],
    );
    check(
        "/nodes/reply/tools/0/name",
        json!("look up"),
        &["nodes.reply.tools[0].name: expected a name", "not listed"],
    );
    // The other name of the same tool.
    assert_eq!(issues("/tools/builtin", json!(["select_rows"])), [""; 0]);
}

#[test]
fn two_tools_of_a_node_have_two_names() {
    let mut spec = spec();
    spec["tools"]["mcp_servers"] = json!([{"server_id": "docs", "tools": ["lookup"]}]);
    set(
        &mut spec,
        "/nodes/reply/tools/1",
        json!({"source": "mcp", "server_id": "docs", "name": "lookup"}),
    );
    let found = issues_of(&spec);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("two tools called `lookup`"), "{found:?}");
}

#[test]
fn all_issues_are_reported_at_once() {
    let mut spec = spec();
    set(&mut spec, "/spec_version", json!("9"));
    set(&mut spec, "/limits/max_steps", json!(999));
    set(&mut spec, "/nodes/reply/input_template", json!("{{ a.b }}"));
    set(&mut spec, "/edges/1/to", json!("gone"));
    set(&mut spec, "/nodes/find/tool_ref/name", json!("nothing"));
    let found = issues_of(&spec);
    for place in [
        "spec_version",
        "limits.max_steps",
        "nodes.reply.input_template",
        "edges[1].to",
        "nodes.find.tool_ref",
    ] {
        assert!(
            found.iter().any(|issue| issue.starts_with(place)),
            "{place}: {found:#?}"
        );
    }
}

#[test]
fn a_value_that_is_no_object_and_an_oversized_spec_are_refused() {
    for wrong in [json!(null), json!([]), json!("x"), json!(1)] {
        let (read, report) = validate(&wrong);
        assert!(
            read.is_none() && report.issues[0].path.is_empty(),
            "{wrong}"
        );
    }
    let long = "x".repeat(2_000_000);
    let found = issues("/nodes/reply/system_prompt", json!(long));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("the spec: expected a spec of at most"),
        "{found:?}"
    );
    let found = issues("/nodes/reply/system_prompt", json!("x".repeat(100_001)));
    assert!(found[0].contains("at most 100000 characters"), "{found:?}");
    // A long value is not repeated in its message.
    let found = issues("/spec_version", json!("y".repeat(10_000)));
    assert!(found[0].len() < 200, "{found:?}");
}

/// The published schema and the checks come from one description.
#[test]
fn the_schema_accepts_what_is_valid_and_refuses_what_is_malformed() {
    let schema = schema();
    assert_eq!(schema["additionalProperties"], json!(false));
    let limits = &schema["properties"]["limits"]["properties"];
    assert_eq!(limits["max_steps"]["maximum"], json!(200));
    let nodes = &schema["properties"]["nodes"]["additionalProperties"]["oneOf"];
    let kinds: Vec<&Value> = nodes
        .as_array()
        .expect("kinds")
        .iter()
        .map(|it| &it["properties"]["type"]["const"])
        .collect();
    assert_eq!(kinds, ["llm", "tool", "end"]);
}

#[test]
fn a_read_before_its_write_is_a_warning() {
    let mut early = spec();
    set(
        &mut early,
        "/nodes/find/args_template",
        json!({"table": "{{ state.answer }}", "where": {"a": ["{{state.rows.0}}"]}}),
    );
    assert_eq!(
        warnings_of(&early),
        [
            "nodes.find.args_template.table: reads `state.answer` before the node `reply` writes it, so the input must have `answer`",
            "nodes.find.args_template.where.a[0]: reads `state.rows` before the node `find` writes it, so the input must have `rows`",
        ]
    );
    // A key that was written before may be read by the node that writes it again.
    let mut again = spec();
    set(&mut again, "/nodes/reply/output_key", json!("rows"));
    set(
        &mut again,
        "/nodes/done/output_template",
        json!("{{ state.rows }}"),
    );
    assert_eq!(warnings_of(&again), [""; 0]);
}

/// Returns a value of a shape with all members, one for each variant of the shape.
fn samples(shape: &Shape) -> Vec<Value> {
    let object = |members: &[Member], tag: Option<(&str, &str)>| {
        let all = members
            .iter()
            .map(|it| (it.name.to_owned(), sample(&it.shape)));
        let tag = tag.map(|(key, name)| (key.to_owned(), json!(name)));
        Value::Object(all.chain(tag).collect())
    };
    match shape {
        Shape::Tagged(tag, variants) => variants
            .iter()
            .map(|(name, members)| object(members, Some((tag, name))))
            .collect(),
        Shape::Any | Shape::MapOfAny => vec![json!({"a": null})],
        Shape::Bool => vec![json!(true)],
        Shape::Const(text) => vec![json!(text)],
        Shape::Int(low, _) => vec![json!(low)],
        Shape::List(item) => vec![json!(samples(item))],
        Shape::MapOf(_, item) => {
            let items = samples(item).into_iter().enumerate();
            vec![Value::Object(
                items.map(|(idx, it)| (format!("k{idx}"), it)).collect(),
            )]
        }
        Shape::Name(Name::Agent | Name::Key | Name::Tool) => vec![json!("a")],
        Shape::Number(low, _) => vec![json!(low)],
        Shape::Object(members) => vec![object(members, None)],
        Shape::OneOf(names) => vec![json!(names[0])],
        Shape::Text(_) => vec![json!("x")],
    }
}

fn sample(shape: &Shape) -> Value {
    samples(shape).remove(0)
}

/// Adds the pointers of all values below one.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(key, it)| (key.clone(), it)).collect(),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .map(|(idx, it)| (idx.to_string(), it))
            .collect(),
        _ => Vec::new(),
    };
    for (key, value) in inner {
        let at = format!("{at}/{key}");
        pointers(value, &at, found);
        found.push(at);
    }
}

#[test]
fn null_gets_the_same_verdict_of_the_schema_and_of_the_checks_everywhere() {
    let schema = jsonschema::validator_for(&schema()).expect("a schema");
    let whole = sample(&SPEC);
    assert!(schema.is_valid(&whole), "{whole}");
    let mut found = Vec::new();
    pointers(&whole, "", &mut found);
    for field in [
        "/limits/heartbeat_seconds",
        "/nodes/k0/tools/1/server_id",
        "/tools/mcp_servers/0/tool_overrides/k0/mode_override",
    ] {
        assert!(found.iter().any(|it| it == field), "{field}: {found:?}");
    }
    let mut accepted = 0;
    for pointer in found {
        let mut spec = whole.clone();
        *spec.pointer_mut(&pointer).expect(&pointer) = Value::Null;
        let (_, report) = validate(&spec);
        // The sample has other issues, such as edges to nowhere.
        let is_refused = report.issues.iter().any(|issue| {
            let path = issue.path.iter().map(|part| match part {
                Value::String(name) => format!("/{name}"),
                part => format!("/{part}"),
            });
            path.collect::<String>() == pointer
        });
        assert_eq!(
            schema.is_valid(&spec),
            !is_refused,
            "{pointer}: {:?}",
            report.issues
        );
        accepted += usize::from(!is_refused);
    }
    assert!(accepted > 20, "{accepted}");
}

#[test]
fn a_spec_is_read_with_null_in_place_of_each_optional_member() {
    for pointer in [
        "/tools",
        "/limits",
        "/limits/max_steps",
        "/nodes/reply/temperature",
        "/nodes/reply/max_tokens",
        "/tools/mcp_servers",
        "/nodes/find/tool_ref/mode_override",
        "/description",
    ] {
        let mut spec = spec();
        set(&mut spec, pointer, Value::Null);
        let found = issues_of(&spec);
        // Without the block of tools, nodes use tools that are not listed.
        let is_about_tools =
            pointer == "/tools" && found.iter().all(|it| it.contains("is not listed in"));
        assert!(found.is_empty() || is_about_tools, "{pointer}: {found:?}");
    }
}
