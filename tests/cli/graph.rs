//! `flowstone graph`, and graph specs as arguments of other commands.

use serde_json::{Value, json};

use crate::graphs::{SETTINGS, calling, function, llm, one};
use crate::program::Scratch;

fn project(spec: &Value) -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", SETTINGS);
    scratch.write("agent.json", spec.to_string());
    scratch
}

const LOOKUP: &str = "{:slug :lookup
 :description \"Looks up an account.\"
 :graph/agent-tool true
 :invocations {:default {:inputs [{:name :id :type :number :required true}]}}
 :flow '{:id (:id (flow/input)) :plan \"pro\"}}";

#[test]
fn a_spec_is_run_like_a_flow() {
    let scratch = project(&calling("CALL", &["lookup"]));
    scratch.write("lookup.edn", LOOKUP);
    let ran = scratch.run(&["run", "agent.json", "--input", r#"{"message": "hi"}"#]);
    assert_eq!(ran.out.trim(), "called", "{ran:?}");
    let runs = scratch.run(&["runs", "list", "--json"]).json();
    let flows: Vec<&str> = runs["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .filter_map(|it| it["flow"].as_str())
        .collect();
    // The marked flow is called as a child run, once for each call.
    assert_eq!(
        flows.iter().filter(|it| **it == "lookup").count(),
        2,
        "{flows:?}"
    );
    assert!(flows.contains(&"agent"));
}

#[test]
fn an_ejected_flow_gives_what_the_spec_gives() {
    let scratch = project(&calling("CALL", &["lookup"]));
    scratch.write("lookup.edn", LOOKUP);
    let flow = scratch.run(&["graph", "eject", "agent.json"]).ok();
    assert!(flow.contains("(flow/step :llm :work"), "{flow}");
    scratch.write(
        "ejected.edn",
        flow.replace(":slug :agent", ":slug :ejected"),
    );
    scratch.run(&["check", "ejected.edn"]).ok();
    let ran = scratch.run(&[
        "run",
        "ejected.edn",
        "--quiet",
        "--input",
        r#"{"message": "hi"}"#,
    ]);
    assert_eq!(ran.out.trim(), "called", "{ran:?}");
}

#[test]
fn validate_reports_all_issues_at_once() {
    let mut spec = calling("CALL", &["lookup"]);
    spec["spec_version"] = json!("2");
    spec["limits"] = json!({"max_steps": 0});
    let scratch = project(&spec);
    let ran = scratch.run(&["graph", "validate", "agent.json"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("E1230"), "{ran:?}");
    assert!(
        ran.err
            .contains("agent.json: spec_version: expected \"1\", got \"2\""),
        "{ran:?}"
    );
    assert!(
        ran.err
            .contains("agent.json: limits.max_steps: expected a whole number from 1 to 200, got 0"),
        "{ran:?}"
    );
    let json = scratch
        .run(&["graph", "validate", "agent.json", "--json"])
        .json();
    assert_eq!(json["valid"], false);
    assert_eq!(json["issues"].as_array().map(Vec::len), Some(2));
    let checked = scratch.run(&["check", "agent.json"]);
    assert_eq!(checked.code, Some(1), "{checked:?}");
    let ran = scratch.run(&["run", "agent.json", "--input", "{}"]);
    assert!(ran.err.contains("E1230"), "{ran:?}");
}

/// A run says the same as `graph validate`, in the same order.
#[test]
fn a_run_of_an_invalid_file_reports_all_that_is_wrong() {
    let mut spec = calling("CALL", &["lookup"]);
    spec["spec_version"] = json!("2");
    spec["limits"] = json!({"max_steps": 0, "max_tool_calls": -1});
    let scratch = project(&spec);
    let valid = scratch.run(&["graph", "validate", "agent.json"]);
    let ran = scratch.run(&["run", "agent.json"]);
    assert_eq!((ran.code, &ran.err), (Some(1), &valid.err), "{ran:?}");
    let json = scratch.run(&["run", "agent.json", "--json"]);
    assert_eq!(json.err, "", "{json:?}");
    let json = json.json();
    assert_eq!(json["errors"].as_array().map(Vec::len), Some(3), "{json}");
    assert_eq!(json["errors"][0], json["error"], "{json}");
}

#[test]
fn json_that_is_not_a_spec_is_not_run_as_a_flow() {
    let scratch = project(&calling("CALL", &["lookup"]));
    for (text, expected) in [
        ("{\"spec_version\": \"1\", \"nodes\": {", "is not JSON"),
        ("[]", "is neither a graph spec nor a behaviour tree"),
        ("{}", "is neither a graph spec nor a behaviour tree"),
    ] {
        scratch.write("other.json", text);
        let ran = scratch.run(&["run", "other.json"]);
        assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{ran:?}");
        assert!(
            ran.err.contains("E1230") && ran.err.contains(expected),
            "{ran:?}"
        );
    }
    scratch.write("other.json", "{\"spec_version\": ");
    let checked = scratch.run(&["check", "other.json"]);
    assert!(checked.err.contains("E1230"), "{checked:?}");
}

#[test]
fn a_project_that_lacks_something_says_what() {
    let scratch = project(&calling("CALL", &["nothing"]));
    let valid = scratch.run(&["graph", "validate", "agent.json"]);
    assert_eq!(valid.code, Some(0));
    assert!(
        valid.err.contains("warning[E1230]") && valid.err.contains("`nothing`"),
        "{valid:?}"
    );
    let ran = scratch.run(&["run", "agent.json", "--input", "{}"]);
    assert!(
        ran.err.contains("E1231") && ran.err.contains("`nothing`"),
        "{ran:?}"
    );
}

#[test]
fn the_schema_of_specs_is_printed() {
    let schema = Scratch::new().run(&["graph", "schema"]).json();
    let valid = jsonschema::validator_for(&schema).expect("a schema");
    assert!(valid.is_valid(&calling("CALL", &["lookup"])));
    let mut wrong = calling("CALL", &["lookup"]);
    wrong["limits"] = json!({"max_steps": 201});
    assert!(!valid.is_valid(&wrong));
}

/// The same job as a flow and as a graph leaves the same steps, with the same requests and answers.
#[test]
fn a_graph_and_a_flow_leave_equivalent_journals() {
    let mut spec = one(llm("CLASSIFY", &[]), json!({}));
    spec["nodes"]["done"]["output_template"] = json!("{{ state.reply }}");
    let scratch = project(&spec);
    scratch.write(
        "flow.edn",
        "{:slug :flow :flow '(:content (flow/step :llm :work {:connection :ai :model \"test/small\" :system \"CLASSIFY\"
                                                              :messages [{:role :user :content (:message (flow/input))}]}))}",
    );
    let result = |file: &str| {
        let ran = scratch
            .run(&["run", file, "--json", "--input", r#"{"message": "hi"}"#])
            .json();
        let id = ran["run"]
            .as_str()
            .or(ran["id"].as_str())
            .expect("an id")
            .to_owned();
        let shown = scratch.run(&["runs", "show", &id, "--json"]).json();
        let steps = shown["steps"].as_array().expect("steps").clone();
        let facts = |step: &Value| json!([step["path"], step["type"], step["status"]]);
        (
            shown["result"].clone(),
            steps.iter().map(facts).collect::<Vec<_>>(),
        )
    };
    assert_eq!(result("flow.edn"), result("agent.json"));
}

#[test]
fn overrides_of_a_spec_make_a_tool_ask_and_never_keep_it_from_asking() {
    let mut tool = function("lookup");
    tool["mode_override"] = json!("read_write");
    let scratch = project(&one(llm("CALL", &[tool]), json!({"functions": ["lookup"]})));
    scratch.write("lookup.edn", LOOKUP);
    let ran = scratch.run(&["run", "agent.json", "--input", r#"{"message": "hi"}"#]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let mut tool = function("lookup");
    tool["mode_override"] = json!("read_only");
    // A mode that is not understood does not open the door.
    for mode in [":read-write", ":write", "\"readwrite\"", "true"] {
        let scratch = project(&one(
            llm("CALL", &[tool.clone()]),
            json!({"functions": ["lookup"]}),
        ));
        let marks = format!(":graph/agent-tool true :graph/agent-tool-mode {mode}");
        scratch.write(
            "lookup.edn",
            LOOKUP.replace(":graph/agent-tool true", &marks),
        );
        let ran = scratch.run(&["run", "agent.json", "--input", r#"{"message": "hi"}"#]);
        assert_eq!(ran.code, Some(3), "{mode}: {ran:?}");
    }
}

/// A name in a spec is data wherever it ends up in the flow.
#[test]
fn names_of_members_that_are_no_keywords_stay_data() {
    let spec = json!({
        "spec_version": "1", "entry": "find",
        "nodes": {
            "find": {
                "type": "tool", "tool_ref": {"source": "function", "name": "lookup"}, "output_key": "found",
                "args_template": {"id": 1, "a b": "{{ input.x }}", "x} (flow/step :kv :e {:operation :get :key \"k\"}) {": 2},
            },
            "done": {"type": "end", "output_template": "{{ state.found.id }}"},
        },
        "edges": [{"from": "find", "to": "done"}],
        "tools": {"functions": ["lookup"]},
    });
    let scratch = project(&spec);
    scratch.write(
        "lookup.edn",
        LOOKUP.replace("[{:name :id", "[{:name :other :type :any} {:name :id"),
    );
    let ran = scratch
        .run(&["run", "agent.json", "--json", "--input", r#"{"x": 7}"#])
        .json();
    let id = ran["run"]
        .as_str()
        .or(ran["id"].as_str())
        .expect("an id")
        .to_owned();
    let shown = scratch.run(&["runs", "show", &id, "--json"]).json();
    let kinds: Vec<&str> = shown["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .filter_map(|it| it["type"].as_str())
        .collect();
    assert_eq!(kinds, ["call-flow"], "{shown}");
    assert!(shown.to_string().contains("a b"), "{shown}");
}
