//! Which runs of behaviour trees a token reaches over MCP, and which handles it may name.

use std::time::Duration;

use serde_json::{Value, json};

use crate::api::Api;
use crate::program::Scratch;

const TREE: &str = "{name: t, version: 1.0.0, tree: {type: action, name: Ask, steps: [{instruct: The secret work.}]}}";

/// Each tool with its arguments beside the handle.
fn tools() -> Vec<(&'static str, Value)> {
    vec![
        ("const_read", json!({})),
        ("eval", json!({"result": true})),
        ("get_execution", json!({})),
        ("next_step", json!({})),
        ("read_trace", json!({})),
        ("reset_execution", json!({})),
        ("resume_execution", json!({})),
        ("submit", json!({"status": "success"})),
        ("think", json!({"thought": "mine"})),
        ("var_read", json!({})),
        ("var_write", json!({"path": "a", "value": 1})),
    ]
}

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flowstone.edn", "{}");
    scratch.write("trees/t.yaml", TREE);
    scratch
}

fn token(scratch: &Scratch, name: &str, options: &[&str]) -> String {
    let args = [&["tokens", "create", "--name", name], options].concat();
    scratch.run(&args).ok().trim_end().to_owned()
}

/// Sends a request of MCP with a token, again while its rate is exceeded.
fn send(api: &Api, token: &str, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let name = params["name"].as_str().unwrap_or_default();
    let mut headers = vec![
        format!("authorization: Bearer {token}"),
        "content-type: application/json".to_owned(),
        "mcp-protocol-version: 2026-07-28".to_owned(),
        format!("mcp-method: {method}"),
    ];
    if !name.is_empty() {
        headers.push(format!("mcp-name: {name}"));
    }
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    for _ in 0..100 {
        let reply = api.request("POST /mcp?tools=tree", &headers, &body);
        if reply.status != 429 {
            return reply.json();
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the rate is exceeded for long");
}

/// Calls a tool. Returns the text of its result, with its code if it is an error.
fn call(api: &Api, token: &str, (tool, uri): (&str, &str), mut arguments: Value) -> String {
    arguments["trace_output"] = json!(uri);
    let params = json!({"name": tool, "arguments": arguments});
    let answer = send(api, token, "tools/call", params);
    let text = answer["result"]["content"][0]["text"].as_str();
    match text {
        Some(text) => format!("{text} {}", answer["result"]["_meta"]["code"]),
        None => answer["error"]["message"].to_string(),
    }
}

fn start(api: &Api, token: &str, uri: &str) -> String {
    let arguments = json!({"tree_uri": "trees/t.yaml", "gate": false});
    call(api, token, ("start_execution", uri), arguments)
}

fn runs(api: &Api) -> Vec<Value> {
    let listed = api.get("/api/v1/runs").json();
    listed["runs"].as_array().expect("a list").clone()
}

fn newest(api: &Api) -> String {
    runs(api)[0]["id"].as_str().expect("an id").to_owned()
}

#[test]
fn runs_of_others_do_not_exist_for_people_visitors_and_those_who_only_run() {
    let scratch = project();
    let api = Api::serve(&scratch);
    assert!(start(&api, &api.token, "run://owners").contains("\"ok\""));
    let id = newest(&api);
    assert!(start(&api, &api.token, "memory://owners").contains("\"ok\""));
    let whole = call(
        &api,
        &api.token,
        ("get_execution", "run://owners"),
        json!({}),
    );
    let tokens = [
        token(&scratch, "ada", &["--kind", "user", "--subject", "ada"]),
        token(&scratch, "visitor", &["--kind", "anon"]),
        token(&scratch, "runner", &["--kind", "service", "--scope", "run"]),
        token(
            &scratch,
            "pay",
            &["--kind", "user", "--subject", "bob", "--flow", "pay"],
        ),
        token(
            &scratch,
            "labels",
            &[
                "--kind", "service", "--scope", "read", "--scope", "run", "--label", "money",
            ],
        ),
    ];
    for token in &tokens {
        for (tool, arguments) in tools() {
            let unknown = call(&api, token, (tool, "run://unknown"), arguments.clone());
            let is_offered = unknown == "Execution not found: run://unknown \"E1203\"";
            let is_hidden = unknown == format!("\"there is no tool `{tool}`\"");
            assert!(is_offered || is_hidden, "{tool}: {unknown}");
            for uri in ["run://owners", "memory://owners", &format!("run://{id}")] {
                let found = call(&api, token, (tool, uri), arguments.clone());
                assert_eq!(found, unknown.replace("run://unknown", uri), "{tool}");
            }
        }
    }
    for token in &tokens[..3] {
        let taken = start(&api, token, "run://owners");
        assert_eq!(taken, "Execution already exists: run://owners \"E1204\"");
    }
    assert_eq!(runs(&api).len(), 2, "nothing was started");
    let after = call(
        &api,
        &api.token,
        ("get_execution", "run://owners"),
        json!({}),
    );
    assert_eq!(after, whole, "nothing has changed");
    let reader = ["--kind", "service", "--scope", "read", "--scope", "run"];
    let reader = token(&scratch, "reader", &reader);
    let request = call(&api, &reader, ("next_step", "run://owners"), json!({}));
    assert!(request.contains("The secret work."), "{request}");
}

#[test]
fn people_and_visitors_drive_what_they_started() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let ada = token(&scratch, "phone", &["--kind", "user", "--subject", "ada"]);
    let same = token(&scratch, "laptop", &["--kind", "user", "--subject", "ada"]);
    let bob = token(&scratch, "bob", &["--kind", "user", "--subject", "bob"]);
    let visitor = token(&scratch, "visitor", &["--kind", "anon"]);
    for (token, uri, by) in [
        (&ada, "run://hers", "user:ada"),
        (&visitor, "run://visit", "anon:visitor"),
        (&ada, "memory://hers", "user:ada"),
    ] {
        let started = start(&api, token, uri);
        assert!(started.contains("\"ok\""), "{started}");
        assert_eq!(runs(&api)[0]["startedBy"], by);
        let request = call(&api, token, ("next_step", uri), json!({}));
        assert!(request.contains("The secret work."), "{request}");
    }
    let request = call(&api, &same, ("next_step", "run://hers"), json!({}));
    assert!(request.contains("The secret work."), "{request}");
    for uri in ["run://hers", "run://visit", "memory://hers"] {
        let refused = call(&api, &bob, ("next_step", uri), json!({}));
        assert!(refused.contains("E1203"), "{refused}");
    }
    // The run that follows an ended one is hers, also if the owner began it again.
    let done = json!({"status": "success"});
    for token in [&ada, &api.token] {
        call(&api, &ada, ("next_step", "run://hers"), json!({}));
        call(&api, &ada, ("submit", "run://hers"), done.clone());
        let ended = call(&api, &ada, ("next_step", "run://hers"), json!({}));
        assert!(ended.contains("done"), "{ended}");
        let reset = call(&api, token, ("reset_execution", "run://hers"), json!({}));
        assert!(reset.contains("reset"), "{reset}");
        assert_eq!(runs(&api)[0]["startedBy"], "user:ada");
        let refused = call(&api, &bob, ("next_step", "run://hers"), json!({}));
        assert!(refused.contains("E1203"), "{refused}");
    }
    // A name with the number of a later run belongs to no other handle.
    assert!(start(&api, &bob, "memory://hers#2").contains("\"ok\""));
    let hers = call(&api, &ada, ("next_step", "memory://hers"), json!({}));
    assert!(hers.contains("The secret work."), "{hers}");
}

#[test]
fn documents_are_named_by_the_owner_and_by_services_that_may_edit() {
    let scratch = project();
    scratch.write("flows/here.edn", "{:slug :here :flow '1}");
    let api = Api::serve(&scratch);
    let folder = std::fs::canonicalize(scratch.path()).expect("it is there");
    let uri = |name: &str| format!("file://{}/flows/{name}", folder.display());
    let tokens = [
        token(
            &scratch,
            "ada",
            &["--kind", "user", "--subject", "ada", "--scope", "admin"],
        ),
        token(&scratch, "visitor", &["--kind", "anon"]),
        token(
            &scratch,
            "runner",
            &["--kind", "service", "--scope", "read", "--scope", "run"],
        ),
    ];
    for token in &tokens {
        // Whether a file or a folder is there is not told.
        for name in ["x.json", "here.edn", "missing/x.json"] {
            for refused in [
                start(&api, token, &uri(name)),
                call(&api, token, ("resume_execution", &uri(name)), json!({})),
            ] {
                assert!(refused.contains("\"E1219\""), "{refused}");
            }
        }
        assert!(!scratch.path().join("flows/x.json").exists());
    }
    assert_eq!(runs(&api), Vec::<Value>::new());
    let options = ["--kind", "service", "--scope", "run", "--scope", "edit"];
    let editor = token(&scratch, "editor", &options);
    for (token, name) in [(&editor, "x.json"), (&api.token, "y.json")] {
        let started = start(&api, token, &uri(name));
        assert!(started.contains("\"ok\""), "{started}");
        assert!(scratch.path().join("flows").join(name).exists());
    }
}

#[test]
fn the_beginning_of_an_id_is_no_handle() {
    let scratch = project();
    scratch.json_of(&["tree", "start", "trees/t.yaml", "one"]);
    scratch.json_of(&["tree", "start", "trees/t.yaml", "two"]);
    let listed = scratch.json_of(&["runs", "list"]);
    let id = listed["runs"][0]["id"].as_str().expect("an id").to_owned();
    let (first, short) = (&id[..1], &id[..15]);
    let api = Api::serve(&scratch);
    for part in [first, short] {
        let uri = format!("run://{part}");
        let refused = call(&api, &api.token, ("next_step", &uri), json!({}));
        assert_eq!(refused, format!("Execution not found: {uri} \"E1203\""));
    }
    let whole = format!("run://{id}");
    let request = call(&api, &api.token, ("next_step", &whole), json!({}));
    assert!(request.contains("The secret work."), "{request}");
    assert_eq!(
        start(&api, &api.token, &whole),
        format!("Execution already exists: {whole} \"E1204\"")
    );
    api.stop();
    let uri = format!("run://{short}");
    let refused = scratch.run(&["tree", "next", &uri]);
    assert!(refused.err.contains("E1203"), "{refused:?}");
    // Without a scheme, commands take the beginning of an id, until it is the name of a run.
    scratch.json_of(&["tree", "submit", short, "success"]);
    assert_eq!(scratch.json_of(&["tree", "next", &id])["status"], "done");
    let started = scratch.run(&["tree", "start", "trees/t.yaml", &uri]);
    assert_eq!(started.code, Some(0), "{started:?}");
    assert_eq!(
        scratch.json_of(&["tree", "next", short])["type"],
        "instruct"
    );
    assert_eq!(scratch.json_of(&["tree", "next", &id])["status"], "done");
}
