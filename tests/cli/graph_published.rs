//! Specs as other services publish them: their names of arguments and members of events.

use serde_json::{Value, json};

use crate::graphs::{Graphs, data, names, one};
use crate::mutations::{MUTATIONS, example};

fn builtin(name: &str, args: Value, key: &str) -> Value {
    json!({
        "type": "tool", "tool_ref": {"source": "builtin", "name": name}, "args_template": args, "output_key": key,
    })
}

/// Serves a project with a table `tickets` of one row.
fn served() -> Graphs {
    let graphs = Graphs::serve();
    graphs.scratch.write("tickets.edn", r#"{:slug :tickets :flow '(flow/step :table :save {:op :upsert :table "tickets" :key-fields [:id] :rows [{:id "t-1" :status "open"}]})}"#);
    graphs.scratch.run(&["run", "tickets.edn", "--quiet"]).ok();
    graphs
}

/// Runs the nodes of a list one after the other, and approves each call that asks.
fn run(graphs: &Graphs, name: &str, nodes: &[(&str, Value)]) -> (Vec<String>, Value) {
    let ids: Vec<&str> = nodes.iter().map(|(id, _)| *id).collect();
    let mut all: serde_json::Map<String, Value> = nodes
        .iter()
        .map(|(id, node)| ((*id).to_owned(), node.clone()))
        .collect();
    let output = json!({"type": "end", "output_template": "{{ state }}"});
    all.insert("done".to_owned(), output);
    let next = ids.iter().skip(1).copied().chain(["done"]);
    let edges: Vec<Value> = ids
        .iter()
        .zip(next)
        .map(|(from, to)| json!({"from": from, "to": to}))
        .collect();
    let tools: Vec<&Value> = nodes
        .iter()
        .map(|(_, node)| &node["tool_ref"]["name"])
        .collect();
    let spec = json!({
        "spec_version": "1", "entry": ids[0], "nodes": all, "edges": edges, "tools": {"builtin": tools},
    });
    graphs.agent(name, &spec, json!({}));
    let report = graphs
        .send("POST", &format!("/agents/{name}/validate"), &Value::Null)
        .json();
    assert_eq!(report, json!({"valid": true}), "no argument is unknown");
    let run = graphs.start(name, &json!({"id": "t-2"}));
    let mut tokens: Vec<String> = Vec::new();
    loop {
        let events = graphs
            .api
            .follow(&format!("{}{run}/events", crate::graphs::BASE), None);
        let mut seen = Vec::new();
        let mut token = None;
        for event in events {
            if event.name == "run_paused" {
                let found = event.data["payload"]["approval_token"].as_str();
                let found = found.expect("a token").to_owned();
                if !tokens.contains(&found) {
                    token = Some(found);
                    break;
                }
            }
            seen.push(event);
        }
        match token {
            Some(token) => {
                let answer = json!({"approval_token": token, "approved": true});
                let answered = graphs.post(&format!("{run}/resume"), &answer);
                assert_eq!(answered.status, 202, "{answered:?}");
                tokens.push(token);
            }
            None => {
                let last = seen.last().expect("an end").data.clone();
                return (names(&seen).into_iter().map(str::to_owned).collect(), last);
            }
        }
    }
}

#[test]
fn built_in_tools_take_the_argument_names_of_published_specs() {
    let graphs = served();
    let nodes = [
        (
            "insert",
            builtin(
                "insert_row",
                json!({"table": "tickets", "values": {"id": "{{ input.id }}", "status": "open"}}),
                "a",
            ),
        ),
        (
            "update",
            builtin(
                "update_row",
                json!({"table": "tickets", "id": "{{ input.id }}", "patch": {"status": "closed"}}),
                "b",
            ),
        ),
        (
            "query",
            builtin(
                "query_table",
                json!({"table": "tickets", "filter": {"status": "closed"}, "limit": 20}),
                "closed",
            ),
        ),
        (
            "delete",
            builtin(
                "delete_row",
                json!({"table": "tickets", "id": "{{ input.id }}"}),
                "c",
            ),
        ),
        (
            "rest",
            builtin(
                "select_rows",
                json!({"table": "tickets", "filter": {}}),
                "rest",
            ),
        ),
        (
            "write",
            builtin(
                "write_storage",
                json!({"key": "notes/a.txt", "content_base64": "aGk=", "content_type": "text/plain"}),
                "d",
            ),
        ),
        (
            "read",
            builtin("read_storage", json!({"key": "notes/a.txt"}), "stored"),
        ),
    ];
    let (events, last) = run(&graphs, "published", &nodes);
    assert_eq!(events.last().map(String::as_str), Some("run_end"), "{last}");
    let state: Value = last["output"]
        .as_str()
        .and_then(|text| text.parse().ok())
        .expect("the state as JSON");
    let ids = |key: &str| -> Vec<Value> {
        let rows = state[key]["rows"].as_array().expect("rows").iter();
        rows.map(|row| row["id"].clone()).collect()
    };
    assert_eq!(ids("closed"), [json!("t-2")], "{state}");
    assert_eq!(ids("rest"), [json!("t-1")], "{state}");
    assert_eq!(
        state["stored"]["content"],
        json!({"content_base64": "aGk=", "content_type": "text/plain"})
    );
}

#[test]
fn an_argument_that_a_built_in_tool_does_not_have_is_an_error() {
    let graphs = served();
    for (args, why) in [
        (
            json!({"table": "tickets", "filtr": {"status": "open"}}),
            "has no argument `filtr`: expected table",
        ),
        (
            json!({"table": "tickets", "where": {"status": "open"}, "filter": {"status": "open"}}),
            "`where` or `filter`, got both",
        ),
    ] {
        let spec = one(
            builtin("query_table", args, "reply"),
            json!({"builtin": ["query_table"]}),
        );
        let name = format!("wrong-{}", why.len());
        graphs.agent(&name, &spec, json!({}));
        let run = graphs.start(&name, &json!({}));
        let events = graphs.events(&run);
        let ended = data(&events, "tool_call_end")[0].clone();
        assert_eq!(ended["status"], "error", "{ended}");
        let error = ended["error"].as_str().unwrap_or_default();
        assert!(error.contains(why), "{ended}");
        assert_eq!(events.last().map(|it| it.name.as_str()), Some("run_failed"));
    }
}

#[test]
fn token_usage_has_both_spellings() {
    let graphs = Graphs::serve();
    let spec = one(crate::graphs::llm("hello", &[]), json!({}));
    graphs.agent("plain", &spec, json!({}));
    let run = graphs.start("plain", &json!({"message": "hi"}));
    let events = graphs.events(&run);
    let usage = data(&events, "llm_token_usage")[0];
    assert!(usage["input_tokens"].is_i64(), "{usage}");
    for (one, other) in [("input_tokens", "prompt"), ("output_tokens", "completion")] {
        assert_eq!(usage[one], usage[other], "{usage}");
    }
}

/// Returns the places of issues, such as `nodes.respond.tools[0]`.
fn places(issues: &Value, skipped: usize) -> Vec<String> {
    let issues = issues.as_array().expect("issues").iter();
    let place = |issue: &Value| {
        let path = issue["path"].as_array().expect("a path").iter();
        let parts = path.skip(skipped).map(|part| match part.as_str() {
            Some(name) => format!(".{name}"),
            None => format!("[{part}]"),
        });
        let text: String = parts.collect();
        text.trim_start_matches('.').to_owned()
    };
    issues.map(place).collect()
}

#[test]
fn mutations_of_the_published_example_are_refused_over_http() {
    let graphs = Graphs::serve();
    let valid = graphs.post("/agents/any/validate", &example()).json();
    assert_eq!(valid["valid"], true, "{valid}");
    for (pointer, value, expected) in MUTATIONS {
        let mut spec = example();
        *spec.pointer_mut(pointer).expect(pointer) = value.parse().expect("JSON");
        let report = graphs.post("/agents/any/validate", &spec);
        let shown = report.json();
        assert_eq!((report.status, &shown["valid"]), (200, &json!(false)));
        assert_eq!(places(&shown["issues"], 0), *expected, "{pointer} {value}");
        let refused = graphs.post("/agents", &json!({"name": "any", "graph_spec": spec}));
        assert_eq!(refused.problem(), "400 E1230", "{pointer} {value}");
        let issues = refused.json()["issues"].clone();
        assert_eq!(places(&issues, 1), *expected, "{pointer} {value}");
    }
    assert_eq!(graphs.get("/agents").json(), json!({"agents": []}));
}
