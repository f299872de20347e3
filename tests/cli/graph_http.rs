//! Graph agents over HTTP: definitions, runs, events, answers.

use serde_json::{Value, json};

use crate::graphs::{BASE, Graphs, calling, data, limited, llm, names, one};

#[test]
fn an_agent_is_created_shown_changed_and_deleted() {
    let graphs = Graphs::serve();
    let spec = calling("CALL", &["lookup"]);
    graphs.agent("support-1", &spec, json!({"display_name": "Support"}));
    let shown = graphs.get("/agents/support-1").json()["agent"].clone();
    assert_eq!(
        (&shown["name"], &shown["display_name"], &shown["graph_spec"]),
        (&json!("support-1"), &json!("Support"), &spec)
    );
    assert_eq!(
        (&shown["status"], &shown["visibility"]),
        (&json!("active"), &json!("private"))
    );
    let again = graphs.post("/agents", &json!({"name": "support-1", "graph_spec": spec}));
    assert_eq!(again.problem(), "409 E1233");
    let list = graphs.get("/agents").json();
    assert_eq!(list["agents"].as_array().map(Vec::len), Some(1));

    let changed = graphs.send(
        "PATCH",
        "/agents/support-1",
        &json!({"description": "Helps", "status": "disabled"}),
    );
    assert_eq!(changed.json()["agent"]["description"], "Helps");
    let refused = graphs.post("/agents/support-1/runs", &json!({"input": {}}));
    assert_eq!(refused.problem(), "400 E1240");

    assert_eq!(
        graphs
            .send("DELETE", "/agents/support-1", &Value::Null)
            .status,
        204
    );
    assert_eq!(graphs.get("/agents/support-1").problem(), "404 E1232");
    let gone = graphs.get("/agents/support-1").json();
    assert_eq!(gone["error"], "there is no agent `support-1`");
}

#[test]
fn a_bad_definition_is_refused_with_all_issues() {
    let graphs = Graphs::serve();
    let mut spec = calling("CALL", &["lookup"]);
    spec["spec_version"] = json!("2");
    spec["limits"] = json!({"max_steps": 1000});
    let refused = graphs.post("/agents", &json!({"name": "bad", "graph_spec": spec}));
    assert_eq!(refused.problem(), "400 E1230");
    let issues = refused.json()["issues"].clone();
    assert_eq!(issues[0]["path"], json!(["graph_spec", "spec_version"]));
    assert_eq!(
        issues[1]["path"],
        json!(["graph_spec", "limits", "max_steps"])
    );
    for name in ["Bad", "-a", "a b", &"a".repeat(65)] {
        let refused = graphs.post("/agents", &json!({"name": name, "graph_spec": {}}));
        assert_eq!(refused.problem(), "400 E1234", "{name}");
    }
    let refused = graphs.post("/agents", &json!({"name": "a", "colour": 1}));
    assert_eq!(refused.json()["issues"][0]["path"], json!(["colour"]));
    assert_eq!(graphs.get("/agents").json(), json!({"agents": []}));
}

#[test]
fn validate_stores_nothing_and_is_always_200() {
    let graphs = Graphs::serve();
    let spec = calling("CALL", &["lookup"]);
    let valid = graphs.post("/agents/any/validate", &spec);
    assert_eq!((valid.status, valid.json()), (200, json!({"valid": true})));
    let wrapped = graphs.post("/agents/any/validate", &json!({"graph_spec": spec}));
    assert_eq!(wrapped.json(), json!({"valid": true}));
    let nothing = graphs.post("/agents/any/validate", &json!({"graph_spec": null}));
    let issue = json!({"path": [], "message": "expected an object, got null"});
    assert_eq!(nothing.json(), json!({"valid": false, "issues": [issue]}));
    let mut wrong = spec.clone();
    wrong["edges"] = json!([{"from": "work", "to": "gone"}]);
    let invalid = graphs.post("/agents/any/validate", &wrong);
    assert_eq!(invalid.status, 200);
    assert_eq!(
        invalid.json(),
        json!({"valid": false, "issues": [{"path": ["edges", 0, "to"], "message": "there is no node `gone`"}],
               "warnings": [{"path": ["nodes", "done"], "message": "the node `done` is not reached from `work`"}]})
    );
    assert_eq!(
        graphs
            .send("POST", "/agents/any/validate", &Value::Null)
            .problem(),
        "404 E1232"
    );
    graphs.agent("any", &calling("CALL", &["missing"]), json!({}));
    let stored = graphs
        .send("POST", "/agents/any/validate", &Value::Null)
        .json();
    assert_eq!(stored["valid"], true);
    assert_eq!(
        stored["warnings"][0]["path"],
        json!(["nodes", "work", "tools", 0])
    );
}

#[test]
fn a_missing_tool_or_model_can_be_stored_and_makes_no_run() {
    let graphs = Graphs::serve();
    graphs.agent("lacking", &calling("CALL", &["missing"]), json!({}));
    let refused = graphs.post("/agents/lacking/runs", &json!({"input": {"message": "x"}}));
    assert_eq!(refused.problem(), "400 E1231");
    assert!(
        refused.json()["error"]
            .as_str()
            .is_some_and(|it| it.contains("`missing`")),
        "{refused:?}"
    );
    let mut spec = calling("CALL", &[]);
    spec["nodes"]["work"]["model"] = json!("other/large");
    graphs.agent("modelless", &spec, json!({}));
    let refused = graphs.post("/agents/modelless/runs", &json!({}));
    assert!(refused.body.contains("other/large"), "{refused:?}");
    assert_eq!(refused.status, 400);
    for name in ["lacking", "modelless"] {
        let runs = graphs.get(&format!("/agents/{name}/runs")).json();
        assert_eq!(runs, json!({"runs": []}));
    }
    // The agent's own default answers for ids that no connection lists.
    graphs.send(
        "PATCH",
        "/agents/modelless",
        &json!({"default_model": "test/small"}),
    );
    let run = graphs.start("modelless", &json!({"message": "x"}));
    assert_eq!(names(&graphs.events(&run)).last(), Some(&"run_end"));
}

#[test]
fn an_unmarked_function_is_skipped_with_a_warning() {
    let graphs = Graphs::serve();
    graphs.send("PATCH", "/functions/cancel", &json!({"agent_tool": false}));
    graphs.agent("skips", &calling("CALL", &["lookup", "cancel"]), json!({}));
    let found = graphs
        .send("POST", "/agents/skips/validate", &Value::Null)
        .json();
    assert!(
        found["warnings"][0]["message"]
            .as_str()
            .is_some_and(|it| it.contains("`agent_tool` is false")),
        "{found}"
    );
    let run = graphs.start("skips", &json!({"message": "x"}));
    assert_eq!(names(&graphs.events(&run)).last(), Some(&"run_end"));
}

#[test]
fn a_run_visits_its_nodes_and_streams_its_events() {
    let graphs = Graphs::serve();
    let mut spec = calling("CALL for {{ state.category }}", &["lookup"]);
    spec["entry"] = json!("classify");
    spec["nodes"]["classify"] = llm("CLASSIFY", &[]);
    spec["nodes"]["classify"]["output_key"] = json!("category");
    spec["edges"] = json!([{"from": "classify", "to": "work"}, {"from": "work", "to": "done"}]);
    spec["nodes"]["done"]["output_template"] =
        json!("{{state.reply}} {{ state.category }} {{ state.message }} {{input}}");
    graphs.agent("support", &spec, json!({}));
    let run = graphs.start("support", &json!({"message": "hi"}));
    let events = graphs.events(&run);
    assert_eq!(
        names(&events),
        [
            "run_start",
            "node_start",
            "llm_token_usage",
            "node_end",
            "node_start",
            "llm_token_usage",
            "tool_call_start",
            "tool_call_start",
            "tool_call_end",
            "tool_call_end",
            "llm_token_usage",
            "node_end",
            "node_start",
            "node_end",
            "run_end"
        ]
    );
    let numbers: Vec<i64> = events.iter().filter_map(|event| event.id).collect();
    assert_eq!(numbers, (1..=15).collect::<Vec<i64>>());
    assert_eq!(events[0].data, json!({"input": {"message": "hi"}}));
    assert_eq!(
        events[14].data,
        json!({"output": "called billing hi {\"message\":\"hi\"}"})
    );
    let ends = data(&events, "tool_call_end");
    assert_eq!(
        (&ends[0]["status"], &ends[0]["result"]["plan"]),
        (&json!("ok"), &json!("pro"))
    );

    let shown = graphs.run(&run);
    assert_eq!(
        (&shown["status"], &shown["output"]),
        (&json!("completed"), &events[14].data["output"])
    );
    let checkpoint = &shown["checkpoint"];
    assert_eq!(
        (&checkpoint["step"], &checkpoint["node_id"]),
        (&json!(3), &json!("done"))
    );
    // The members of the input, and the results of the nodes.
    for (key, value) in shown["input"].as_object().expect("an object") {
        assert_eq!(&checkpoint["state"][key], value, "{checkpoint}");
    }
    assert!(checkpoint["state"]["reply"].is_string(), "{checkpoint}");
    let id = shown["run_id"].as_str().expect("an id");
    let audit = graphs.get(&format!("/runs/{id}/tool-calls")).json();
    let audit = audit["tool_calls"].as_array().expect("rows");
    assert_eq!(audit.len(), 2);
    assert_eq!(audit[0]["args_sha256"].as_str().map(str::len), Some(64));
}

#[test]
fn a_stream_continues_after_every_event() {
    let graphs = Graphs::serve();
    graphs.agent("support", &calling("CALL", &["lookup"]), json!({}));
    let run = graphs.start("support", &json!({"message": "hi"}));
    let whole = graphs.events(&run);
    let last = whole.len() as i64;
    for after in 0..last {
        let rest: Vec<_> = graphs
            .api
            .follow(&format!("{BASE}{run}/events"), Some(after))
            .collect();
        assert_eq!(rest, whole[after as usize..]);
        let by_query = format!("{BASE}{run}/events?since_seq={after}");
        assert_eq!(graphs.api.follow(&by_query, None).collect::<Vec<_>>(), rest);
        let list = graphs
            .get(&format!("{run}/events.json?since_seq={after}&limit=2"))
            .json();
        let list = list["events"].as_array().expect("a list").clone();
        assert_eq!(list.len(), rest.len().min(2));
        assert_eq!(
            (&list[0]["type"], &list[0]["seq"]),
            (&json!(rest[0].name), &json!(after + 1))
        );
    }
    assert_eq!(
        graphs
            .api
            .follow(&format!("{BASE}{run}/events"), Some(last))
            .status,
        204
    );
    // The header wins over the query.
    let both = format!("{BASE}{run}/events?since_seq=1");
    assert_eq!(graphs.api.follow(&both, Some(last - 1)).count(), 1);
    for wrong in ["x", "-1", "1.5"] {
        assert_eq!(
            graphs
                .get(&format!("{run}/events?since_seq={wrong}"))
                .status,
            400,
            "{wrong}"
        );
        assert_eq!(
            graphs
                .get(&format!("{run}/events.json?since_seq={wrong}"))
                .status,
            400,
            "{wrong}"
        );
    }
    let all = graphs
        .get(&format!("{run}/events.json?limit=100000"))
        .json();
    assert_eq!(all["events"].as_array().map(Vec::len), Some(whole.len()));
}

#[test]
fn a_call_that_writes_runs_after_its_approval_only() {
    let graphs = Graphs::serve();
    graphs.agent("hitl", &calling("WRITE", &["lookup", "cancel"]), json!({}));
    let run = graphs.start("hitl", &json!({"message": "cancel"}));
    let token = graphs.paused(&run);
    let before = graphs.get(&format!("{run}/events.json")).json();
    let kinds: Vec<&str> = before["events"]
        .as_array()
        .expect("events")
        .iter()
        .filter_map(|it| it["type"].as_str())
        .collect();
    // The call that only reads has run; the one that writes has begun and asks.
    assert_eq!(
        kinds[3..],
        [
            "tool_call_start",
            "tool_call_end",
            "tool_call_start",
            "run_paused"
        ]
    );
    assert_eq!(graphs.run(&run)["status"], "paused");
    let resume = format!("{run}/resume");
    for (body, expected) in [
        (
            json!({"approval_token": "other", "approved": true}),
            "403 E1236",
        ),
        (json!({"input": 1}), "400 E1234"),
        (json!({"approved": true}), "400 E1234"),
        (
            json!({"approval_token": token, "approved": "yes"}),
            "400 E1234",
        ),
        (json!({}), "400 E1234"),
        (
            json!({"approval_token": token, "approved": true, "input": 1}),
            "400 E1234",
        ),
    ] {
        assert_eq!(graphs.post(&resume, &body).problem(), expected, "{body}");
    }
    let answer = json!({"approval_token": token, "approved": true});
    let accepted = graphs.post(&resume, &answer);
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let events = graphs.events(&run);
    assert_eq!(names(&events).last(), Some(&"run_end"));
    let end = data(&events, "tool_call_end")[1];
    assert_eq!(
        (&end["tool_name"], &end["result"]),
        (&json!("cancel"), &json!({"cancelled": "u1"}))
    );
    assert_eq!(graphs.post(&resume, &answer).problem(), "409 E1236");
    let other = json!({"approval_token": "other", "approved": true});
    assert_eq!(graphs.post(&resume, &other).problem(), "409 E1236");
}

#[test]
fn calls_that_ask_are_asked_about_one_after_the_other() {
    let graphs = Graphs::serve();
    graphs.agent("twice", &calling("TWICE", &["cancel"]), json!({}));
    let run = graphs.start("twice", &json!({"message": "x"}));
    let first = graphs.paused(&run);
    let answer = |token: &str| json!({"approval_token": token, "approved": true});
    assert_eq!(
        graphs
            .post(&format!("{run}/resume"), &answer(&first))
            .status,
        202
    );
    let pauses = graphs.api.follow(&format!("{BASE}{run}/events"), None);
    let pauses: Vec<_> = pauses
        .filter(|event| event.name == "run_paused")
        .take(2)
        .collect();
    let second = pauses[1].data["payload"]["approval_token"]
        .as_str()
        .expect("a token");
    assert_ne!(first, second);
    assert_eq!(pauses[1].data["payload"]["args"], json!({"user": "b"}));
    // A token is for its own call.
    assert_eq!(
        graphs
            .post(&format!("{run}/resume"), &answer(&first))
            .problem(),
        "409 E1236"
    );
    assert_eq!(
        graphs
            .post(&format!("{run}/resume"), &answer(second))
            .status,
        202
    );
    assert_eq!(names(&graphs.events(&run)).last(), Some(&"run_end"));
}

#[test]
fn a_denied_call_fails_the_run() {
    let graphs = Graphs::serve();
    graphs.agent("hitl", &calling("WRITE", &["lookup", "cancel"]), json!({}));
    let run = graphs.start("hitl", &json!({"message": "cancel"}));
    let token = graphs.paused(&run);
    let denied = json!({"approval_token": token, "approved": false});
    assert_eq!(graphs.post(&format!("{run}/resume"), &denied).status, 202);
    let events = graphs.events(&run);
    assert_eq!(data(&events, "tool_call_end")[1]["status"], "denied");
    assert_eq!(
        events.last().expect("an end").data["reason"],
        "approval_denied"
    );
    assert_eq!(graphs.run(&run)["reason"], "approval_denied");
}

#[test]
fn an_interrupt_asks_for_input_which_is_the_result_and_state() {
    let graphs = Graphs::serve();
    let node = llm("ASK", &[json!({"source": "builtin", "name": "interrupt"})]);
    let mut spec = one(node, json!({"builtin": ["interrupt"]}));
    spec["nodes"]["done"]["output_template"] =
        json!("{{ state.reply }} {{ state.human_input.pick }}");
    graphs.agent("asker", &spec, json!({}));
    let run = graphs.start("asker", &json!({"message": "x"}));
    let token = graphs.paused(&run);
    let payload = graphs.run(&run)["pause"].clone();
    assert_eq!(
        (&payload["reason"], &payload["data"]),
        (&json!("which one?"), &json!({"options": [1, 2]}))
    );
    let approval = json!({"approval_token": token, "approved": true});
    assert_eq!(
        graphs.post(&format!("{run}/resume"), &approval).problem(),
        "400 E1234"
    );
    let given = graphs.post(&format!("{run}/resume"), &json!({"input": {"pick": 2}}));
    assert_eq!(given.status, 202, "{given:?}");
    let events = graphs.events(&run);
    assert_eq!(
        data(&events, "tool_call_end")[0]["result"],
        json!({"pick": 2})
    );
    assert_eq!(
        events.last().expect("an end").data,
        json!({"output": "thanks 2"})
    );
}

#[test]
fn a_run_is_cancelled_until_it_is_over() {
    let graphs = Graphs::serve();
    graphs.agent("hitl", &calling("WRITE", &["lookup", "cancel"]), json!({}));
    let run = graphs.start("hitl", &json!({"message": "x"}));
    graphs.paused(&run);
    let cancelled = graphs.post(&format!("{run}/cancel"), &json!({}));
    assert_eq!(cancelled.status, 202);
    let events = graphs.events(&run);
    let last = events.last().expect("an end");
    assert_eq!(
        (last.name.as_str(), &last.data),
        ("run_cancelled", &json!({}))
    );
    assert_eq!(graphs.run(&run)["status"], "cancelled");
    assert_eq!(
        graphs.post(&format!("{run}/cancel"), &json!({})).problem(),
        "409 E1237"
    );
    let list = graphs.get("/agents/hitl/runs").json();
    assert_eq!(list["runs"][0]["status"], "cancelled");
}

#[test]
fn limits_end_runs_with_their_reason() {
    let graphs = Graphs::serve();
    let spec = calling("LOOP", &["lookup"]);
    graphs.agent(
        "turns",
        &limited(spec.clone(), json!({"max_steps": 2})),
        json!({}),
    );
    let run = graphs.start("turns", &json!({"message": "x"}));
    assert_eq!(
        graphs.events(&run).last().expect("an end").data["reason"],
        "max_steps"
    );

    graphs.agent(
        "visits",
        &limited(calling("CLASSIFY", &[]), json!({"max_steps": 1})),
        json!({}),
    );
    let run = graphs.start("visits", &json!({"message": "x"}));
    let events = graphs.events(&run);
    assert_eq!(data(&events, "node_start").len(), 1);
    assert_eq!(events.last().expect("an end").data["reason"], "max_steps");

    graphs.agent(
        "calls",
        &limited(calling("CALL", &["lookup"]), json!({"max_tool_calls": 1})),
        json!({}),
    );
    let run = graphs.start("calls", &json!({"message": "x"}));
    let events = graphs.events(&run);
    let mut statuses: Vec<&Value> = data(&events, "tool_call_end")
        .iter()
        .map(|it| &it["status"])
        .collect();
    statuses.sort_by_key(|it| it.to_string());
    assert_eq!(statuses, ["budget", "ok"]);
    assert_eq!(events.last().expect("an end").name, "run_end");
}

#[test]
fn a_missing_key_of_a_template_fails_the_run_and_is_named() {
    let graphs = Graphs::serve();
    graphs.agent("keys", &calling("CLASSIFY", &[]), json!({}));
    let run = graphs.start("keys", &json!({"text": "x"}));
    let events = graphs.events(&run);
    let end = &events.last().expect("an end").data;
    assert_eq!(end["reason"], "template");
    assert!(
        end["error"]
            .as_str()
            .is_some_and(|it| it.contains("`input.message`")),
        "{end}"
    );
}

#[test]
fn a_model_that_fails_ends_the_run() {
    let graphs = Graphs::serve();
    graphs.agent("fails", &calling("FAIL", &[]), json!({}));
    let run = graphs.start("fails", &json!({"message": "x"}));
    let events = graphs.events(&run);
    assert_eq!(events.last().expect("an end").data["reason"], "model");
}

#[test]
fn tool_nodes_read_and_write_tables_and_storage() {
    let graphs = Graphs::serve();
    let builtin = |name: &str, args: Value, key: &str| json!({"type": "tool", "tool_ref": {"source": "builtin", "name": name}, "args_template": args, "output_key": key});
    let spec = json!({
        "spec_version": "1", "entry": "read",
        "nodes": {
            "read": builtin("select_rows", json!({"table": "orders", "where": {"id": "{{ input.id }}"}, "limit": "{{ input.limit }}"}), "found"),
            "done": {"type": "end", "output_template": "{{ state.found.rows.0.item }} {{ state.found.rows }}"},
        },
        "edges": [{"from": "read", "to": "done"}],
        "tools": {"builtin": ["query_table"]},
    });
    graphs.scratch.write("orders.edn", r#"{:slug :orders :flow '(flow/step :table :save {:op :upsert :table "orders" :key-fields [:id] :rows [{:id "o-1" :item "tea"}]})}"#);
    graphs.scratch.run(&["run", "orders.edn", "--quiet"]).ok();
    graphs.agent("reader", &spec, json!({}));
    let run = graphs.start("reader", &json!({"id": "o-1", "limit": 5}));
    let events = graphs.events(&run);
    let output = events.last().expect("an end").data["output"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    assert!(output.starts_with("tea [{"), "{events:?}");
    assert_eq!(data(&events, "tool_call_start")[0]["tool_call_id"], "read");

    // Definitions of agents are out of reach.
    let mut spec = spec;
    spec["nodes"]["read"]["args_template"] = json!({"table": "flowstone_agents"});
    graphs.agent("prying", &spec, json!({}));
    let run = graphs.start("prying", &json!({"id": 1}));
    let events = graphs.events(&run);
    assert_eq!(data(&events, "tool_call_end")[0]["status"], "error");
    assert_eq!(events.last().expect("an end").name, "run_failed");

    let spec = json!({
        "spec_version": "1", "entry": "write",
        "nodes": {
            "write": builtin("write_storage", json!({"path": "notes/1", "content": {"text": "{{ input.text }}"}}), "written"),
            "read": builtin("read_storage", json!({"path": "notes/1"}), "read"),
            "done": {"type": "end", "output_template": "{{ state.read.content.text }}"},
        },
        "edges": [{"from": "write", "to": "read"}, {"from": "read", "to": "done"}],
        "tools": {"builtin": ["write_storage", "read_storage"]},
    });
    graphs.agent("writer", &spec, json!({}));
    let run = graphs.start("writer", &json!({"text": "hi"}));
    let token = graphs.paused(&run);
    graphs.post(
        &format!("{run}/resume"),
        &json!({"approval_token": token, "approved": true}),
    );
    let events = graphs.events(&run);
    assert_eq!(
        events.last().expect("an end").data,
        json!({"output": "hi"}),
        "{events:?}"
    );
}

#[test]
fn the_same_request_starts_one_run() {
    let graphs = Graphs::serve();
    graphs.agent("once", &calling("CLASSIFY", &[]), json!({}));
    let start = |body: &Value| graphs.post("/agents/once/runs", body);
    let id = |reply: &crate::api::Reply| reply.json()["run_id"].clone();
    let first = start(&json!({"input": {"message": "a", "n": 1}}));
    let again = start(&json!({"input": {"n": 1, "message": "a"}}));
    assert_eq!((first.status, again.status), (201, 200));
    assert_eq!(id(&first), id(&again));
    let other = start(&json!({"input": {"message": "b"}}));
    assert_eq!(other.status, 201);

    let keyed =
        |key: &str, text: &str| start(&json!({"input": {"message": text}, "idempotency_key": key}));
    let first = keyed("k1", "c");
    let again = keyed("k1", "c");
    assert_eq!((first.status, again.status), (201, 200));
    let reused = keyed("k1", "d");
    assert_eq!(reused.problem(), "409 E1235");
    assert_eq!(
        (&reused.json()["error"], &reused.json()["existing_run_id"]),
        (&json!("idempotency_key_reuse"), &id(&first))
    );
    assert_eq!(keyed(&"k".repeat(129), "c").problem(), "400 E1234");
    assert_eq!(keyed("", "c").problem(), "400 E1234");

    graphs.send("PATCH", "/agents/once", &json!({"strict_dedupe": true}));
    let first = start(&json!({"input": {"message": "e"}}));
    let conflict = start(&json!({"input": {"message": "f"}}));
    assert_eq!(conflict.problem(), "409 E1235");
    assert_eq!(conflict.json()["existing_run_id"], id(&first));
    assert_eq!(start(&json!({"input": {"message": "e"}})).status, 200);
}

#[test]
fn a_run_keeps_the_spec_and_functions_that_it_started_with() {
    let graphs = Graphs::serve();
    graphs.agent("hitl", &calling("WRITE", &["lookup", "cancel"]), json!({}));
    let run = graphs.start("hitl", &json!({"message": "x"}));
    let token = graphs.paused(&run);
    graphs.send(
        "PATCH",
        "/functions/cancel",
        &json!({"code": "(fn [_] :other)"}),
    );
    let mut other = calling("CLASSIFY", &[]);
    other["nodes"]["done"]["output_template"] = json!("other");
    graphs.send("PATCH", "/agents/hitl", &json!({"graph_spec": other}));
    graphs.post(
        &format!("{run}/resume"),
        &json!({"approval_token": token, "approved": true}),
    );
    let events = graphs.events(&run);
    assert_eq!(
        data(&events, "tool_call_end")[1]["result"],
        json!({"cancelled": "u1"})
    );
    assert_eq!(
        events.last().expect("an end").data,
        json!({"output": "cancelled"})
    );
    let later = graphs.start("hitl", &json!({"message": "x2"}));
    assert_eq!(
        graphs.events(&later).last().expect("an end").data,
        json!({"output": "other"})
    );
}

#[test]
fn a_killed_server_continues_a_paused_run_and_repeats_no_event() {
    let mut graphs = Graphs::serve();
    graphs.agent("hitl", &calling("WRITE", &["lookup", "cancel"]), json!({}));
    let run = graphs.start("hitl", &json!({"message": "x"}));
    let token = graphs.paused(&run);
    let before = graphs.get(&format!("{run}/events.json")).json()["events"].clone();
    let old = std::mem::replace(
        &mut graphs.api,
        crate::api::Api::serve(&crate::program::Scratch::new()),
    );
    old.kill();
    graphs.api = crate::api::Api::serve(&graphs.scratch);
    assert_eq!(graphs.run(&run)["status"], "paused");
    let answer = json!({"approval_token": token, "approved": true});
    assert_eq!(graphs.post(&format!("{run}/resume"), &answer).status, 202);
    let events = graphs.events(&run);
    assert_eq!(names(&events).last(), Some(&"run_end"));
    let after = graphs.get(&format!("{run}/events.json")).json()["events"].clone();
    let before = before.as_array().expect("events");
    assert_eq!(
        after.as_array().expect("events")[..before.len()],
        before[..]
    );
}

#[test]
fn an_integer_that_would_be_rounded_is_refused() {
    let graphs = Graphs::serve();
    graphs.agent("plain", &calling("CLASSIFY", &[]), json!({}));
    let send = |number: &str| {
        let body = format!("{{\"input\": {{\"message\": \"x\", \"id\": {number}}}}}");
        let own = format!("authorization: Bearer {}", graphs.api.token);
        let headers = [own.as_str(), "content-type: application/json"];
        let request = "POST /v1/default/agents/plain/runs";
        graphs.api.request(request, &headers, &body)
    };
    assert_eq!(
        send("123456789012345678901234567890").problem(),
        "400 E1234"
    );
    for taken in ["18446744073709551615", "1e22", "1.5"] {
        assert_eq!(send(taken).status, 201, "{taken}");
    }
}

#[test]
fn an_input_cannot_name_a_webhook() {
    let graphs = Graphs::serve();
    graphs.agent("told", &calling("CLASSIFY", &[]), json!({}));
    let body = json!({"input": {"message": "x", "graph/webhook": "http://127.0.0.1:1/hook"}});
    let refused = graphs.post("/agents/told/runs", &body);
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.body.contains("graph/webhook"), "{refused:?}");
}

#[test]
fn an_input_cannot_have_keys_that_the_engine_sets() {
    let graphs = Graphs::serve();
    graphs.agent("told", &calling("CLASSIFY", &[]), json!({}));
    for key in ["activation", "flow/ctx", "flow/request", ":step/ctx"] {
        let body = json!({"input": {"message": "x", key: 1}});
        let refused = graphs.post("/agents/told/runs", &body);
        assert_eq!(refused.problem(), "400 E1120", "{key}: {refused:?}");
    }
    assert_eq!(graphs.get("/agents/told/runs").json(), json!({"runs": []}));
}

#[test]
fn an_unknown_parameter_of_an_address_is_refused() {
    let graphs = Graphs::serve();
    graphs.agent("support-1", &calling("CALL", &["lookup"]), json!({}));
    for address in [
        "/agents?page=2",
        "/agents/support-1?foo=1",
        "/agents/support-1/runs?foo=1",
        "/functions?limit=1",
        "/mcp-servers?limit=1",
    ] {
        assert_eq!(graphs.get(address).problem(), "400 E1016", "{address}");
    }
    assert_eq!(graphs.get("/agents/support-1/runs?limit=x").status, 400);
}

#[test]
fn a_list_of_runs_has_as_many_as_asked_for() {
    let graphs = Graphs::serve();
    graphs.agent("support-1", &calling("CALL", &["lookup"]), json!({}));
    for number in 0..3 {
        let body = json!({"input": {"number": number}});
        let started = graphs.post("/agents/support-1/runs", &body);
        assert_eq!(started.status, 201);
    }
    let count = |address: &str| graphs.get(address).json()["runs"].as_array().map(Vec::len);
    assert_eq!(count("/agents/support-1/runs"), Some(3));
    assert_eq!(count("/agents/support-1/runs?limit=2"), Some(2));
    assert_eq!(count("/agents/support-1/runs?limit=0"), Some(1));
    assert_eq!(count("/agents/support-1/runs?limit=99999"), Some(3));
}
