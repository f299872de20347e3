//! MCP servers of graph agents: registered, probed, pinned; credentials that nobody gets back.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::Api;
use crate::graphs::{Graphs, data, llm, names, one};
use crate::program::Scratch;
use crate::server::{Answer, Request, Server};

const TOKEN: &str = "s3cret-token-77";

/// An MCP server with one tool that only reads. It takes a token.
fn server() -> Server {
    server_of(json!({"readOnlyHint": true}), 0)
}

/// An MCP server with one tool, which takes a token. `silent`: how many calls of the tool are not answered.
fn server_of(annotations: Value, silent: usize) -> Server {
    let calls = AtomicUsize::new(0);
    Server::start(move |request: &Request, _| {
        let asked: Value = serde_json::from_str(&request.body).unwrap_or(Value::Null);
        if !request
            .head
            .contains(&format!("authorization: bearer {TOKEN}"))
        {
            return Answer::Status(401, "no");
        }
        let result = match asked["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": asked["params"]["protocolVersion"],
                "capabilities": {"tools": {}}, "serverInfo": {"name": "docs", "version": "1"},
            }),
            "tools/list" => json!({"tools": [{
                "name": "search", "description": "Searches the docs.",
                "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}},
                "annotations": annotations,
            }]}),
            "tools/call" if calls.fetch_add(1, Ordering::SeqCst) < silent => {
                return Answer::Hang(Vec::new());
            }
            "tools/call" => json!({"content": [{"type": "text", "text": "a page"}]}),
            _ if asked.get("id").is_none() => return Answer::Status(202, ""),
            _ => return Answer::Json(json!({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "no"}}).to_string()),
        };
        Answer::Json(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string())
    })
}

fn register(graphs: &Graphs, server: &Server) -> String {
    let body = json!({"name": "docs", "url": server.url("/mcp"), "auth": {"type": "bearer", "token": TOKEN}});
    let created = graphs.post("/mcp-servers", &body);
    assert_eq!(created.status, 201, "{created:?}");
    assert!(!created.body.contains(TOKEN));
    let created = created.json()["server"].clone();
    assert_eq!(created["auth"], json!({"type": "bearer"}));
    created["id"].as_str().expect("an id").to_owned()
}

/// Returns how often the tool was called.
fn calls(server: &Server) -> usize {
    let requests = server.requests();
    let calls = requests.iter().filter(|it| it.body.contains("tools/call"));
    calls.count()
}

fn spec(id: &str, overrides: Value) -> Value {
    let tool = json!({"source": "mcp", "server_id": id, "name": "search"});
    one(
        llm("SEARCH", &[tool]),
        json!({"mcp_servers": [{"server_id": id, "tools": ["search"], "tool_overrides": overrides}]}),
    )
}

#[test]
fn a_registered_server_is_probed_and_used_by_runs() {
    let graphs = Graphs::serve();
    let server = server();
    let id = register(&graphs, &server);
    assert_eq!(id.len(), 36);
    let probed = graphs.post(&format!("/mcp-servers/{id}/probe"), &json!({}));
    assert_eq!(probed.status, 200, "{probed:?}");
    assert_eq!(probed.json()["tools"][0]["name"], "search");
    graphs.agent("docs", &spec(&id, json!({})), json!({}));
    let run = graphs.start("docs", &json!({"message": "x"}));
    let events = graphs.events(&run);
    assert_eq!(
        data(&events, "tool_call_end")[0]["result"],
        "a page",
        "{events:?}"
    );
    assert_eq!(data(&events, "tool_call_start")[0]["tool_source"], "mcp");
    let lists = server
        .requests()
        .iter()
        .filter(|it| it.body.contains("tools/list"))
        .count();
    // One of the probe, one before the run is made, and the one that the run keeps.
    assert_eq!(lists, 3);
}

/// The server is asked before a run is made. One that does not answer is left to the run.
#[test]
fn a_tool_that_the_server_does_not_have_makes_no_run() {
    let graphs = Graphs::serve();
    let server = server();
    let id = register(&graphs, &server);
    let tool = json!({"source": "mcp", "server_id": id, "name": "delete_all"});
    let tools = json!({"mcp_servers": [{"server_id": id, "tools": ["delete_all"]}]});
    let spec = one(llm("SEARCH", &[tool]), tools);
    graphs.agent("lacks", &spec, json!({}));
    let path = json!(["nodes", "work", "tools", 0]);
    let valid = graphs.post("/agents/lacks/validate", &spec).json();
    assert_eq!(valid["valid"], true, "{valid}");
    assert_eq!(valid["warnings"][0]["path"], path, "{valid}");
    let refused = graphs.post("/agents/lacks/runs", &json!({"input": {"message": "x"}}));
    assert_eq!(refused.problem(), "400 E1231", "{refused:?}");
    assert_eq!(refused.json()["issues"][0]["path"], path, "{refused:?}");
    assert!(refused.body.contains("`delete_all`"), "{refused:?}");
    let runs = graphs.get("/agents/lacks/runs").json();
    assert_eq!(runs["runs"], json!([]));
}

#[test]
fn a_spec_in_a_file_is_checked_at_its_servers_before_it_runs() {
    let graphs = Graphs::serve();
    let server = server();
    let id = register(&graphs, &server);
    let of = |name: &str| {
        let tool = json!({"source": "mcp", "server_id": id, "name": name});
        let tools = json!({"mcp_servers": [{"server_id": id, "tools": [name]}]});
        one(llm("SEARCH", &[tool]), tools).to_string()
    };
    graphs.scratch.write("lacks.json", of("delete_all"));
    graphs.scratch.write("docs.json", of("search"));
    let run = |file: &str| {
        let input = "{\"message\": \"x\"}";
        graphs
            .scratch
            .run(&["run", file, "--quiet", "--input", input])
    };
    let refused = run("lacks.json");
    assert_eq!((refused.code, &*refused.out), (Some(1), ""), "{refused:?}");
    assert!(
        refused.err.contains("error[E1231]") && refused.err.contains("`delete_all` does not exist"),
        "{refused:?}"
    );
    let runs = graphs.scratch.json_of(&["runs", "list"]);
    assert_eq!(runs["runs"], json!([]));
    let valid = graphs.scratch.run(&["graph", "validate", "lacks.json"]);
    assert!(
        valid.code == Some(0) && valid.err.contains("`delete_all` does not exist"),
        "{valid:?}"
    );
    let ran = run("docs.json");
    assert_eq!((ran.code, &*ran.out), (Some(0), "found\n"), "{ran:?}");
}

#[test]
fn a_spec_may_name_a_server_by_its_name() {
    let graphs = Graphs::serve();
    let server = server();
    register(&graphs, &server);
    graphs.agent("docs", &spec("docs", json!({})), json!({}));
    let run = graphs.start("docs", &json!({"message": "x"}));
    let events = graphs.events(&run);
    assert_eq!(data(&events, "tool_call_end")[0]["result"], "a page");
}

#[test]
fn an_override_makes_a_tool_of_a_server_ask() {
    let graphs = Graphs::serve();
    let server = server();
    let id = register(&graphs, &server);
    graphs.agent(
        "docs",
        &spec(&id, json!({"search": {"mode_override": "read_write"}})),
        json!({}),
    );
    let run = graphs.start("docs", &json!({"message": "x"}));
    graphs.paused(&run);
    assert!(
        !server
            .requests()
            .iter()
            .any(|it| it.body.contains("tools/call"))
    );
}

/// A tool is assumed to change something unless its server says that it only reads.
#[test]
fn a_tool_of_a_server_asks_unless_it_only_reads() {
    for annotations in [json!({"readOnlyHint": false}), json!({})] {
        let graphs = Graphs::serve();
        let server = server_of(annotations, 0);
        let id = register(&graphs, &server);
        let node = json!({
            "spec_version": "1", "entry": "find",
            "nodes": {
                "find": {
                    "type": "tool", "output_key": "found", "args_template": {"q": "x"},
                    "tool_ref": {"source": "mcp", "server_id": id, "name": "search", "mode_override": "read_only"},
                },
                "done": {"type": "end", "output_template": "{{ state.found }}"},
            },
            "edges": [{"from": "find", "to": "done"}],
            "tools": {"mcp_servers": [{"server_id": id, "tools": ["search"]}]},
        });
        graphs.agent("model", &spec(&id, json!({})), json!({}));
        graphs.agent("node", &node, json!({}));
        for (agent, before) in [("model", 0), ("node", 1)] {
            let run = graphs.start(agent, &json!({"message": "x"}));
            let token = graphs.paused(&run);
            assert_eq!(calls(&server), before, "{agent}");
            let answer = json!({"approval_token": token, "approved": true});
            let resumed = graphs.post(&format!("{run}/resume"), &answer);
            assert_eq!(resumed.status, 202, "{resumed:?}");
            let events = graphs.events(&run);
            assert_eq!(data(&events, "tool_call_end")[0]["result"], "a page");
            assert_eq!(calls(&server), before + 1, "{agent}");
        }
    }
}

/// The server was killed in the middle of a call, so nobody knows whether the tool did it.
#[test]
fn a_call_in_doubt_is_a_question_to_the_owner() {
    let mut graphs = Graphs::serve();
    let server = server_of(json!({}), 1);
    let id = register(&graphs, &server);
    graphs.agent(
        "docs",
        &spec(&id, json!({})),
        json!({"visibility": "authenticated"}),
    );
    let user = graphs.token("user", &["--subject", "ada"]);
    let body = json!({"input": {"message": "x"}});
    let started = graphs.post_as(&user, "/public/agents/docs/runs", &body);
    let id = started.json()["run_id"].as_str().expect("a run").to_owned();
    let (run, own) = (
        format!("/agents/docs/runs/{id}"),
        format!("/public/runs/{id}"),
    );
    let token = graphs.paused(&run);
    let approval = json!({"approval_token": token, "approved": true});
    assert_eq!(graphs.post(&format!("{run}/resume"), &approval).status, 202);
    let begun = Instant::now();
    while calls(&server) == 0 && begun.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::mem::replace(&mut graphs.api, Api::serve(&Scratch::new())).kill();
    graphs.api = Api::serve(&graphs.scratch);
    while graphs.run(&run)["status"] != "paused" && begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let pause = graphs.run(&run)["pause"].clone();
    assert_eq!(pause["question"], "in-doubt", "{pause}");
    assert_eq!(pause["tool_name"], "search", "{pause}");
    assert_eq!(pause["args"], json!({"q": "x"}), "{pause}");
    let actions = pause["actions"].as_array().expect("actions");
    assert!(actions.contains(&json!("retry")) && actions.contains(&json!("use")));
    let events = graphs.get(&format!("{run}/events.json")).json()["events"].clone();
    let last = events
        .as_array()
        .and_then(|all| all.last())
        .expect("events");
    assert_eq!(last["type"], "run_paused", "{events}");
    assert_eq!(last["data"]["payload"]["tool_name"], "search", "{events}");
    let retry = json!({"input": {"action": "retry"}});
    let refused = graphs.post_as(&user, &format!("{own}/resume"), &retry);
    assert_eq!(refused.problem(), "403 E1239");
    for wrong in [json!({"input": {"action": "dance"}}), approval_of(&pause)] {
        let refused = graphs.post(&format!("{run}/resume"), &wrong);
        assert_eq!(refused.problem(), "400 E1234", "{wrong}");
    }
    assert_eq!(calls(&server), 1);
    let resumed = graphs.post(&format!("{run}/resume"), &retry);
    assert_eq!(resumed.status, 202, "{resumed:?}");
    assert_eq!(names(&graphs.events(&run)).last(), Some(&"run_end"));
    assert_eq!(calls(&server), 2);
}

fn approval_of(pause: &Value) -> Value {
    json!({"approval_token": pause["approval_token"], "approved": true})
}

#[test]
fn credentials_are_encrypted_and_never_returned() {
    let graphs = Graphs::serve();
    let server = server();
    let id = register(&graphs, &server);
    graphs.agent("docs", &spec(&id, json!({})), json!({}));
    let run = graphs.start("docs", &json!({"message": "x"}));
    graphs.events(&run);
    for path in [
        "/mcp-servers".to_owned(),
        format!("/mcp-servers/{id}"),
        run.clone(),
        format!("{run}/events.json"),
    ] {
        assert!(!graphs.get(&path).body.contains(TOKEN), "{path}");
    }
    let mut folders = vec![graphs.scratch.path().join(".flowstone")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(bytes) = fs::read(&path) {
                let found = bytes
                    .windows(TOKEN.len())
                    .any(|part| part == TOKEN.as_bytes());
                assert!(!found, "{}", path.display());
            }
        }
    }
    assert_eq!(
        graphs
            .send("DELETE", &format!("/mcp-servers/{id}"), &Value::Null)
            .status,
        204
    );
    assert_eq!(
        graphs.get(&format!("/mcp-servers/{id}")).problem(),
        "404 E1232"
    );
    let refused = graphs.post("/agents/docs/runs", &json!({"input": {"message": "y"}}));
    assert_eq!(refused.problem(), "400 E1231");
    assert!(refused.body.contains(&id), "{refused:?}");
}

/// The token goes to the host that it was registered for, whatever a flow names.
#[test]
fn the_token_of_a_server_goes_to_no_other_host() {
    let graphs = Graphs::serve();
    let own = server();
    let id = register(&graphs, &own);
    let other = Server::start(|_, _| Answer::Json("{}".to_owned()));
    let address = other.url("").trim_start_matches("http://").to_owned();
    for host in [address.as_str(), own.url("").trim_start_matches("http://")] {
        let flow = format!(
            "{{:slug :steal :requires [{{:slot :x :type :http-api :base-url \"{}\" :auth {{:type :bearer :secret-ref \"mcp-server-{id}@{host}\"}}}}]
              :flow '(flow/step :http :get {{:connection :x :path \"/\"}})}}",
            other.url("")
        );
        graphs.scratch.write("steal.edn", flow);
        let ran = graphs
            .scratch
            .run(&["run", "steal.edn", "--new", "--quiet"]);
        assert_ne!(ran.code, Some(0), "{ran:?}");
    }
    assert!(other.requests().iter().all(|it| !it.head.contains(TOKEN)));
}

#[test]
fn a_server_that_gives_no_list_is_a_bad_gateway() {
    let graphs = Graphs::serve();
    let silent = Server::start(|_, _| Answer::Status(500, "broken"));
    let created = graphs.post(
        "/mcp-servers",
        &json!({"name": "broken", "url": silent.url("/mcp")}),
    );
    let id = created.json()["server"]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let probed = graphs.post(&format!("/mcp-servers/{id}/probe"), &json!({}));
    assert_eq!(probed.problem(), "502 E1242");
    assert_eq!(
        graphs
            .post(
                "/mcp-servers",
                &json!({"name": "broken", "url": silent.url("/mcp")})
            )
            .problem(),
        "409 E1233"
    );
    let body = json!({"name": "x", "url": silent.url("/mcp"), "auth": "s3cret"});
    let refused = graphs.post("/mcp-servers", &body);
    assert_eq!(refused.problem(), "400 E1234");
    assert!(!refused.body.contains("s3cret"), "{refused:?}");
    let body = json!({"name": "keyed", "url": silent.url("/mcp?token=s3cret")});
    let created = graphs.post("/mcp-servers", &body);
    assert_eq!(created.status, 201, "{created:?}");
    assert!(!graphs.get("/mcp-servers").body.contains("s3cret"));
    for url in ["ftp://x", "http://me:pw@x/"] {
        let refused = graphs.post("/mcp-servers", &json!({"name": "x", "url": url}));
        assert_eq!(refused.problem(), "400 E1234", "{url}");
    }
}
