//! `flowstone import n8n`.

use expect_test::expect;
use serde_json::{Value, json};

use crate::program::Scratch;

fn node(name: &str, kind: &str, parameters: Value) -> Value {
    json!({"name": name, "type": format!("n8n-nodes-base.{kind}"), "typeVersion": 3, "position": [0, 0], "parameters": parameters})
}

/// Connects nodes: each pair is a node with its output, and the node that it leads to.
fn workflow(name: &str, nodes: &[Value], edges: &[((&str, usize), &str)]) -> Value {
    let mut connections = json!({});
    for ((from, output), to) in edges {
        let ports = &mut connections[*from]["main"];
        if !ports.is_array() {
            *ports = json!([]);
        }
        let ports = ports.as_array_mut().expect("an array");
        while ports.len() <= *output {
            ports.push(json!([]));
        }
        ports[*output]
            .as_array_mut()
            .expect("an array")
            .push(json!({"node": to, "type": "main", "index": 0}));
    }
    json!({"name": name, "nodes": nodes, "connections": connections, "settings": {"timezone": "Europe/Berlin"}})
}

/// Imports a workflow, which must pass the check; returns the report.
#[track_caller]
fn imported(scratch: &Scratch, workflow: &Value) -> Value {
    scratch.write("w.json", workflow.to_string());
    let _ = std::fs::remove_file(scratch.path().join("flows/w.edn"));
    std::fs::create_dir_all(scratch.path().join("flows")).expect("a folder");
    let told = scratch
        .run(&["import", "n8n", "w.json", "--to", "flows/w.edn", "--json"])
        .json();
    let checked = scratch.run(&["check", "flows/w.edn"]);
    assert_eq!(
        checked.code,
        Some(0),
        "{}\n{}",
        checked.err,
        scratch.read("flows/w.edn")
    );
    assert!(
        checked.err.contains("nothing found"),
        "{}\n{}",
        checked.err,
        scratch.read("flows/w.edn")
    );
    told
}

/// Returns what was not taken over, each with its node.
fn remarks_of(told: &Value) -> Vec<String> {
    let remarks = told["notTakenOver"].as_array().expect("remarks").iter();
    let remark = |it: &Value| {
        let text = |key: &str| it[key].as_str().unwrap_or("-").to_owned();
        format!("{}: {}", text("node"), text("message"))
    };
    remarks.map(remark).collect()
}

#[test]
fn branches_are_taken_and_skipped() {
    let scratch = Scratch::new();
    let is_large = json!({"conditions": {"conditions": [{
        "leftValue": "={{ $json.total }}", "rightValue": 100, "operator": {"type": "number", "operation": "gt"},
    }], "combinator": "and"}});
    let set = |text: &str| {
        json!({"includeOtherFields": true, "assignments": {"assignments": [
            {"name": "note", "value": format!("={text} {{{{ $json.total }}}}"), "type": "string"},
            {"name": "deep.er", "value": "={{ $('Start').item.json.total }}", "type": "number"},
        ]}})
    };
    let workflow = workflow(
        "Order Sync",
        &[
            node("Start", "manualTrigger", json!({})),
            node("If", "if", is_large),
            node("Large", "set", set("large")),
            node("Small", "set", set("small")),
            node(
                "Tag",
                "set",
                json!({"includeOtherFields": true, "assignments": {"assignments": [{"name": "seen", "value": true}]}}),
            ),
            node("Note", "stickyNote", json!({"content": "hello"})),
        ],
        &[
            (("Start", 0), "If"),
            (("If", 0), "Large"),
            (("If", 1), "Small"),
            (("Large", 0), "Tag"),
        ],
    );
    let told = imported(&scratch, &workflow);
    assert_eq!(told["flow"], "order-sync");
    assert_eq!(told["notTakenOver"], json!([]));
    for (total, expected) in [
        (
            500,
            json!({"total": 500, "branch": true, "note": "large 500", "deep": {"er": 500}, "seen": true}),
        ),
        (
            5,
            json!({"total": 5, "branch": false, "note": "small 5", "deep": {"er": 5}}),
        ),
    ] {
        let input = json!({"total": total}).to_string();
        let ran = scratch.run(&["run", "flows/w.edn", "--quiet", "--json", "--input", &input]);
        let result: Value = serde_json::from_str(&ran.out)
            .unwrap_or_else(|_| panic!("{}\n{}", ran.err, scratch.read("flows/w.edn")));
        assert_eq!(result["result"], expected, "{result}");
    }
}

#[test]
fn requests_triggers_and_waits_are_taken_over() {
    let scratch = Scratch::new();
    let workflow = workflow(
        "2nd try: \"quoted\"",
        &[
            node(
                "Every day",
                "scheduleTrigger",
                json!({"rule": {"interval": [{"field": "days", "triggerAtHour": 7}]}}),
            ),
            node(
                "Hook",
                "webhook",
                json!({"path": "orders/new", "httpMethod": "POST"}),
            ),
            node(
                "Get it",
                "httpRequest",
                json!({
                    "url": "https://api.example.com/orders", "sendQuery": true,
                    "queryParameters": {"parameters": [{"name": "page", "value": "1"}]},
                }),
            ),
            node(
                "Send",
                "httpRequest",
                json!({
                    "method": "POST", "url": "=https://api.example.com/orders/{{ $json.id }}/send",
                    "authentication": "genericCredentialType", "genericAuthType": "httpHeaderAuth",
                    "sendBody": true, "specifyBody": "json", "jsonBody": "={\"name\": \"{{ $json.name }}\", \"n\": 1}",
                }),
            ),
            node("Pause", "wait", json!({"amount": 5, "unit": "minutes"})),
            node(
                "Run JS",
                "code",
                json!({"jsCode": "return items; // \"x\"\nconsole.log(1)"}),
            ),
            node("Slack", "slack", json!({})),
            node("Merge", "merge", json!({})),
            node("Lonely", "noOp", json!({})),
            node(
                "Done",
                "respondToWebhook",
                json!({"respondWith": "json", "responseBody": "{\"ok\": true}"}),
            ),
        ],
        &[
            (("Every day", 0), "Get it"),
            (("Hook", 0), "Get it"),
            (("Get it", 0), "Send"),
            (("Send", 0), "Pause"),
            (("Pause", 0), "Run JS"),
            (("Pause", 0), "Slack"),
            (("Run JS", 0), "Merge"),
            (("Slack", 0), "Merge"),
            (("Merge", 0), "Done"),
        ],
    );
    let told = imported(&scratch, &workflow);
    let flow = scratch.read("flows/w.edn");
    for expected in [
        ":name \"2nd try: \\\"quoted\\\"\"",
        "{:slot :api-example-com :type :http-api :label \"api.example.com\" :base-url \"https://api.example.com\"}",
        ":query {\"page\" \"1\"}",
        ":event-name \"orders.new\" :auth {:type :bearer :secret-ref :webhook-secret}",
        ":cron \"0 7 * * *\" :timezone \"Europe/Berlin\"",
        ":path (str \"/orders/\" (get-in get-it [:id]) \"/send\")",
        ":json {\"name\" (get-in get-it [:name]) \"n\" 1}",
        "(flow/step :wait :pause {:timeout \"300s\" :on-timeout :continue})",
        ";;   console.log(1)",
        ";; TODO: Slack (n8n-nodes-base.slack)",
        "(merge run-js slack)",
        ":body {:ok true}",
    ] {
        assert!(flow.contains(expected), "{expected}: {flow}");
    }
    assert_eq!(told["nodes"], 9);
}

#[test]
fn other_shapes_pass_the_check() {
    let scratch = Scratch::new();
    let older = json!({"number": [{"value1": "={{ $json.a }}", "operation": "larger", "value2": 1}],
                       "string": [{"value1": "={{ $json.b }}", "operation": "isEmpty"}]});
    let switch = json!({"rules": {"values": [
        {"conditions": {"conditions": [{"leftValue": "={{ $json.kind }}", "rightValue": "a", "operator": {"operation": "equals"}}]}},
        {"conditions": {"conditions": [{"leftValue": "={{ $json.kind.trim() }}", "rightValue": "b", "operator": {"operation": "sounds"}}]}},
    ]}, "options": {"fallbackOutput": "extra"}});
    let older_switch = json!({"dataType": "string", "value1": "={{ $json.kind }}", "rules": {"rules": [{"value2": "x", "operation": "contains"}]}});
    let mut disabled = node("Off", "slack", json!({}));
    disabled["disabled"] = json!(true);
    let workflow = workflow(
        "map",
        &[
            node(
                "map",
                "cron",
                json!({"triggerTimes": {"item": [{"mode": "custom", "cronExpression": "0 5 4 * * MON"}, {"mode": "everyX", "unit": "seconds", "value": 3}]}}),
            ),
            node(
                "if",
                "if",
                json!({"conditions": older, "combineOperation": "any"}),
            ),
            node("let", "switch", switch),
            node("let!", "switch", older_switch),
            disabled,
            node(
                "Stop",
                "stopAndError",
                json!({"errorMessage": "=bad {{ $json.kind }}"}),
            ),
            node(
                "Other",
                "executeWorkflow",
                json!({"workflowId": {"value": "17", "cachedResultName": "Other One"}}),
            ),
            node(
                "Raw",
                "set",
                json!({"mode": "raw", "jsonOutput": "{\"a b\": [1, null, \"x\"]}"}),
            ),
            node(
                "Any",
                "httpRequest",
                json!({"url": "={{ $json.url }}", "method": "HEAD"}),
            ),
            node("Late", "wait", json!({"resume": "webhook"})),
            node(
                "Keep",
                "filter",
                json!({"conditions": {"conditions": [{"leftValue": "={{ $json.a }}", "operator": {"operation": "exists"}}]}}),
            ),
        ],
        &[
            (("map", 0), "if"),
            (("if", 0), "let"),
            (("if", 1), "let!"),
            (("let", 0), "Off"),
            (("let", 1), "Stop"),
            (("let", 2), "Other"),
            (("let!", 0), "Raw"),
            (("Off", 0), "Any"),
            (("Raw", 0), "Any"),
            (("Any", 0), "Late"),
            (("Late", 0), "Keep"),
        ],
    );
    scratch.write("flows/other-one.edn", "{:slug :other-one :flow '1}");
    let told = imported(&scratch, &workflow);
    let remarks = remarks_of(&told);
    expect![[r#"
        map: a time is left out: it has no cron expression with five fields
        let: the expression `$json.kind.trim()` is kept as text: write it in Clojure
        let: the operation `sounds` is not imported: the condition is taken to be false
        Off: it is disabled in the workflow, so it passes its input on
        Other: it calls the flow `other-one`: import that workflow, too, with `--slug other-one`
        Any: several nodes lead to it: it runs once, with the input of the first that was not skipped
        Any: its method is `head`: the flow sends GET
        Late: it waits for `webhook`: the flow waits until it is answered, with `flowstone waits complete` or over HTTP, for a day at most"#]]
    .assert_eq(&remarks.join("\n"));
}

#[test]
fn bad_input_is_refused() {
    let scratch = Scratch::new();
    let many: Vec<Value> = (0..501)
        .map(|idx| node(&format!("n{idx}"), "noOp", json!({})))
        .collect();
    let one = |name: &str| node(name, "noOp", json!({}));
    let cycle = workflow(
        "c",
        &[node("Go", "manualTrigger", json!({})), one("A"), one("B")],
        &[(("Go", 0), "A"), (("A", 0), "B"), (("B", 0), "A")],
    );
    for (text, code, message) in [
        ("not json".to_owned(), "E1496", "it is not JSON"),
        ("[]".to_owned(), "E1496", "the file holds a list"),
        ("{\"a\": 1}".to_owned(), "E1496", "it has no `nodes`"),
        (
            json!({"nodes": [{"name": "x"}]}).to_string(),
            "E1496",
            "`nodes[0]` needs `type`",
        ),
        (
            json!({"nodes": [one("x"), one("x")]}).to_string(),
            "E1496",
            "two nodes are called `x`",
        ),
        (
            workflow("x", &[one("a")], &[(("a", 0), "b")]).to_string(),
            "E1496",
            "names the node `b`",
        ),
        (
            json!({"nodes": [], "connections": []}).to_string(),
            "E1496",
            "`connections` must be an object",
        ),
        (json!({"nodes": many}).to_string(), "E1497", "501 nodes"),
        (" ".repeat(5_000_001), "E1497", "5000001 bytes"),
        (cycle.to_string(), "E1498", "B → A"),
    ] {
        scratch.write("w.json", text);
        let ran = scratch.run(&["import", "n8n", "w.json"]);
        assert_eq!(ran.code, Some(1), "{message}");
        assert!(ran.err.contains(&format!("error[{code}]")), "{}", ran.err);
        assert!(ran.err.contains(message), "{message}: {}", ran.err);
        assert_eq!(ran.out, "");
    }
    scratch.write("w.json", workflow("ok", &[one("a")], &[]).to_string());
    let ran = scratch.run(&["import", "n8n", "w.json", "--slug", "2 x"]);
    assert!(ran.err.contains("E1499"), "{}", ran.err);
    scratch.write("there.edn", "1");
    let ran = scratch.run(&["import", "n8n", "w.json", "--to", "there.edn"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(scratch.read("there.edn"), "1");
    let ran = scratch.run(&["import", "n8n", "none.json"]);
    assert!(ran.err.contains("E0905"), "{}", ran.err);
    let empty = scratch.write("w.json", workflow("Leer é", &[], &[]).to_string());
    assert!(empty.exists());
    let ran = scratch.run(&["import", "n8n", "w.json", "--json"]);
    assert_eq!(ran.json()["flow"], "leer");
}

#[test]
fn a_workflow_with_a_schedule_and_a_webhook_takes_what_the_webhook_gives() {
    let scratch = Scratch::new();
    let names = json!({"assignments": {"assignments": [
        {"name": "who", "type": "string", "value": "={{ $json.body.who }}"}
    ]}});
    let nodes = [
        node(
            "Every hour",
            "scheduleTrigger",
            json!({"rule": {"interval": [{"field": "hours"}]}}),
        ),
        node(
            "Hook",
            "webhook",
            json!({"path": "hook", "httpMethod": "POST"}),
        ),
        node("Names", "set", names),
    ];
    let edges = [(("Every hour", 0), "Names"), (("Hook", 0), "Names")];
    imported(&scratch, &workflow("Two", &nodes, &edges));
    let run = |input: &str| {
        let ran = scratch.run(&["run", "flows/w.edn", "--input", input, "--quiet"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran.out
    };
    assert!(run(r#"{"who": "Ada"}"#).contains("Ada"));
    assert!(!run("{}").contains("Ada"));
}
