//! What the author of a graph spec is warned about in a project, and what is refused.

use serde_json::{Value, json};

use crate::graphs::{Graphs, calling, one};
use crate::program::Scratch;

const SETTINGS: &str =
    "{:connections {:ai {:backend :scripted :model \"small\" :script {:turns [\"hello\"]}}}}";

#[track_caller]
fn check(spec: &Value, expected: &[&str]) {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS);
    scratch.write("agent.json", spec.to_string());
    scratch.write(
        "lookup.edn",
        "{:slug :lookup :graph/agent-tool true
          :invocations {:default {:inputs [{:name :id :type :number :required true} {:name :kind :type :string}]}}
          :flow '{:id (:id (flow/input))}}",
    );
    let report = scratch
        .run(&["graph", "validate", "agent.json", "--json"])
        .json();
    assert_eq!(report["valid"], true, "{report}");
    let none = Vec::new();
    let found = report["warnings"].as_array().unwrap_or(&none).iter();
    let found: Vec<String> = found
        .map(|it| {
            let path = it["path"].as_array().expect("a path").iter();
            let path: Vec<String> = path.map(|part| part.to_string().replace('"', "")).collect();
            format!(
                "{}: {}",
                path.join("."),
                it["message"].as_str().expect("a message")
            )
        })
        .collect();
    assert_eq!(found, expected);
}

fn tool(source: &str, name: &str, args: Value) -> Value {
    let tools = match source {
        "builtin" => json!({"builtin": [name]}),
        _ => json!({"functions": [name]}),
    };
    let node = json!({
        "type": "tool", "tool_ref": {"source": source, "name": name}, "args_template": args, "output_key": "reply",
    });
    one(node, tools)
}

#[test]
fn literal_arguments_are_compared_with_the_schema_of_the_tool() {
    check(
        &tool(
            "builtin",
            "query_table",
            json!({"tabel": "orders", "limit": "ten", "where": {"id": "{{ input.id }}"}}),
        ),
        &[
            "nodes.work.args_template: the tool `query_table` needs the argument `table`",
            "nodes.work.args_template.tabel: the tool `query_table` has no argument `tabel`",
            "nodes.work.args_template.limit: expected integer, got \"ten\"",
        ],
    );
    check(
        &tool(
            "builtin",
            "select_rows",
            json!({"table": "{{ input.table }}", "limit": "{{ input.n }}"}),
        ),
        &[],
    );
    check(
        &tool("function", "lookup", json!({"kind": 1, "what": true})),
        &[
            "nodes.work.args_template: the tool `lookup` needs the argument `id`",
            "nodes.work.args_template.kind: expected string, got 1",
            "nodes.work.args_template.what: the tool `lookup` has no argument `what`",
        ],
    );
    check(&tool("function", "lookup", json!({"id": 1})), &[]);
}

#[test]
fn a_model_that_the_usual_connection_stands_in_for_is_named() {
    let mut spec = calling("x", &[]);
    spec["nodes"]["work"]["model"] = json!("anthropic/claude-3.5-haiku");
    let warning = "no connection of the project lists the model `anthropic/claude-3.5-haiku`, so runs use the connection `ai` with its own model";
    check(&spec, &[&format!("nodes.work.model: {warning}")]);
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS);
    scratch.write("agent.json", spec.to_string());
    let input = r#"{"message": "hi"}"#;
    let ran = scratch.run(&["run", "agent.json", "--input", input]);
    assert_eq!(ran.out.trim(), "hello", "{ran:?}");
    assert!(ran.err.contains(warning), "{ran:?}");
    let quiet = scratch.run(&["run", "agent.json", "--quiet", "--new", "--input", input]);
    assert!(!quiet.err.contains("claude"), "{quiet:?}");
    for named in ["ai", "ai/small", "small"] {
        spec["nodes"]["work"]["model"] = json!(named);
        check(&spec, &[]);
    }
}

#[test]
fn a_member_twice_is_refused_with_both_places() {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS);
    let text = calling("x", &[]).to_string();
    scratch.write(
        "agent.json",
        text.replacen(
            "\"entry\":\"work\"",
            "\"entry\":\"work\",\"entry\":\"done\"",
            1,
        ),
    );
    for args in [
        ["graph", "validate", "agent.json"].as_slice(),
        &["graph", "eject", "agent.json"],
        &["graph", "import", "agent.json"],
        &["run", "agent.json"],
        &["check", "agent.json"],
    ] {
        let ran = scratch.run(args);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let expected = "the member `entry` is there twice: at line 1, column ";
        assert!(
            ran.err.contains("E1230") && ran.err.contains(expected),
            "{ran:?}"
        );
    }
}

#[test]
fn a_body_that_readers_would_change_is_refused_with_its_places() {
    let graphs = Graphs::serve();
    let send = |path: &str, body: &str| {
        let authorization = format!("authorization: Bearer {}", graphs.api.token);
        let headers = [authorization.as_str(), "content-type: application/json"];
        graphs
            .api
            .request(&format!("POST /v1/default{path}"), &headers, body)
    };
    let spec = calling("x", &[]).to_string();
    let twice = spec.replacen("{", "{\"entry\":\"done\",", 1);
    let body = format!("{{\"name\":\"a\",\"graph_spec\":{twice}}}");
    let refused = send("/agents", &body);
    assert_eq!(refused.problem(), "400 E1234", "{refused:?}");
    let places = refused.body.matches("line 1, column").count();
    assert!(places >= 2, "{refused:?}");
    let long = "{\"spec_version\": \"1\", \"limits\": {\"max_steps\": 99999999999999999999}}";
    for (body, expected) in [(twice.as_str(), "is there twice"), (long, "64 bits")] {
        let checked = send("/agents/a/validate", body);
        assert_eq!(checked.status, 200, "{checked:?}");
        let checked = checked.json();
        assert_eq!(checked["valid"], false, "{checked}");
        let message = checked["issues"][0]["message"].as_str().expect("a message");
        assert!(message.contains(expected), "{checked}");
    }
}

#[test]
fn members_and_spec_of_an_agent_are_checked_together() {
    let graphs = Graphs::serve();
    let mut spec = calling("x", &[]);
    spec["spec_version"] = json!("9");
    let body = json!({"name": "Not a name", "colour": 1, "graph_spec": spec});
    let refused = graphs.post("/agents", &body);
    assert_eq!(refused.problem(), "400 E1234", "{refused:?}");
    let issues = refused.json()["issues"].clone();
    let paths: Vec<String> = issues
        .as_array()
        .into_iter()
        .flatten()
        .map(|issue| issue["path"].to_string())
        .collect();
    for path in [
        r#"["name"]"#,
        r#"["colour"]"#,
        r#"["graph_spec","spec_version"]"#,
    ] {
        assert!(paths.iter().any(|it| it == path), "{path}: {issues}");
    }
}

#[test]
fn lengths_are_counted_in_characters() {
    let graphs = Graphs::serve();
    graphs.agent("a", &calling("CLASSIFY", &[]), json!({}));
    let start = |key: String| {
        let body = json!({"input": {"message": "x"}, "idempotency_key": key});
        graphs.post("/agents/a/runs", &body)
    };
    assert_eq!(start("ü".repeat(128)).status, 201);
    let refused = start("ü".repeat(129));
    assert_eq!(refused.problem(), "400 E1234", "{refused:?}");
    assert!(
        refused.body.contains("at most 128 characters, got 129"),
        "{refused:?}"
    );
}

#[test]
fn a_stored_function_does_not_replace_a_flow() {
    let graphs = Graphs::serve();
    let flow =
        |slug: &str| format!("{{:slug :{slug} :graph/agent-tool true :flow '{{:from :flow}}}}");
    graphs.scratch.write("flows/audit.edn", flow("audit"));
    let code = json!({"name": "audit", "code": "(fn [_] {:from :function})", "agent_tool": true});
    let refused = graphs.post("/functions", &code);
    assert_eq!(refused.problem(), "409 E1233", "{refused:?}");
    assert!(refused.body.contains("a flow `audit`"), "{refused:?}");
    // A marked flow that is added later comes before the function.
    graphs.scratch.write("flows/lookup.edn", flow("lookup"));
    graphs.agent("calls", &tool("function", "lookup", json!({})), json!({}));
    let run = graphs.start("calls", &json!({"message": "x"}));
    graphs.events(&run);
    assert_eq!(graphs.run(&run)["output"], "{\"from\":\"flow\"}");
}

#[test]
fn a_private_agent_looks_like_an_absent_one() {
    let graphs = Graphs::serve();
    graphs.agent("hidden", &calling("CLASSIFY", &[]), json!({}));
    let body = json!({"input": {"message": "x"}});
    for token in [
        graphs.token("user", &["--subject", "ada"]),
        graphs.token("anon", &[]),
    ] {
        let of = |name: &str| {
            let refused = graphs.post_as(&token, &format!("/public/agents/{name}/runs"), &body);
            let text = refused.json()["error"]
                .as_str()
                .expect("a text")
                .replace(name, "NAME");
            (refused.problem(), text)
        };
        assert_eq!(of("hidden"), of("absent"));
        assert_eq!(of("hidden").0, "403 E1239");
    }
}

#[test]
fn a_listed_tool_that_does_not_exist_is_named_even_if_no_node_uses_it() {
    let mut spec = calling("CLASSIFY", &[]);
    spec["tools"] = json!({
        "builtin": ["select_rows", "drop_table"],
        "functions": ["gone"],
        "mcp_servers": [{"server_id": "nowhere", "tools": ["search"]}],
    });
    let graphs = Graphs::serve();
    graphs.agent("lists", &spec, json!({}));
    let report = graphs.post("/agents/lists/validate", &spec).json();
    let refused = graphs.post("/agents/lists/runs", &json!({"input": {"message": "x"}}));
    assert_eq!(refused.problem(), "400 E1231", "{refused:?}");
    for name in ["drop_table", "gone", "search"] {
        let expected = format!("the tool `{name}` does not exist");
        assert!(report.to_string().contains(&expected), "{name}: {report}");
        assert!(refused.body.contains(&expected), "{name}: {refused:?}");
    }
    assert!(!refused.body.contains("select_rows"), "{refused:?}");
}
