//! The time of graph runs, with models and MCP servers that are slow.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::api::Api;
use crate::graphs::{Graphs, data, limited, llm, names, one};
use crate::program::Scratch;
use crate::server::{Answer, Request, Server};

/// The shortest limit of a run, in seconds.
const LIMIT: u64 = 5;

/// Returns a project whose only model is at an address.
fn project(model: &Server) -> Graphs {
    let scratch = Scratch::new();
    scratch.write(
        "flowstone.edn",
        format!(
            "{{:allow {{:net [\"127.0.0.1\"]}}
              :connections {{:ai {{:backend :vllm :base-url \"{}\" :model \"small\" :models [\"test/small\"]}}}}}}",
            model.url("/v1")
        ),
    );
    let api = Api::serve(&scratch);
    Graphs { scratch, api }
}

/// Returns an answer of a model in the form that the request asks for.
fn said(request: &Request, message: Value) -> Answer {
    let finish = match message.get("tool_calls") {
        Some(_) => "tool_calls",
        None => "stop",
    };
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
    let asked: Value = serde_json::from_str(&request.body).unwrap_or(Value::Null);
    if asked["stream"] != json!(true) {
        let choice = json!({"index": 0, "message": message, "finish_reason": finish});
        return Answer::Json(json!({"id": "1", "choices": [choice], "usage": usage}).to_string());
    }
    let chunk = |delta: &Value, finish: Value| {
        json!({"id": "1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
            .to_string()
    };
    Answer::Events(vec![
        chunk(&message, Value::Null),
        chunk(&json!({}), json!(finish)),
        json!({"id": "1", "choices": [], "usage": usage}).to_string(),
        "[DONE]".to_owned(),
    ])
}

/// A model that is slow in the ways that its system prompt names.
fn model() -> Server {
    Server::start(|request: &Request, _| {
        if request.method == "GET" {
            return Answer::Json(json!({"data": []}).to_string());
        }
        let text = |words: &str| said(request, json!({"role": "assistant", "content": words}));
        if request.body.contains("SILENT") {
            std::thread::sleep(Duration::from_secs(LIMIT + 3));
            return text("late");
        }
        if request.body.contains("BUSY") {
            std::thread::sleep(Duration::from_secs(LIMIT - 2));
            return Answer::Status(500, "no");
        }
        if request.body.contains("REFUSED") {
            std::thread::sleep(Duration::from_millis(4_400));
            return Answer::Status(500, "no");
        }
        if request.body.contains("tool_call_id") {
            return text("found");
        }
        let call = json!({"index": 0, "id": "c1", "type": "function", "function": {"name": "search", "arguments": "{\"q\": \"x\"}"}});
        said(
            request,
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        )
    })
}

/// An MCP server with a tool that only reads and takes long.
fn mcp() -> Server {
    Server::start(|request: &Request, _| {
        let asked: Value = serde_json::from_str(&request.body).unwrap_or(Value::Null);
        let result = match asked["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": asked["params"]["protocolVersion"],
                "capabilities": {"tools": {}}, "serverInfo": {"name": "docs", "version": "1"},
            }),
            "tools/list" => json!({"tools": [{
                "name": "search", "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}},
                "annotations": {"readOnlyHint": true},
            }]}),
            "tools/call" => {
                std::thread::sleep(Duration::from_secs(LIMIT + 3));
                json!({"content": [{"type": "text", "text": "late"}]})
            }
            _ => return Answer::Status(202, ""),
        };
        Answer::Json(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}).to_string())
    })
}

/// Each attempt counts, and so do the pauses between attempts: three attempts of three seconds do not fit in five.
#[test]
fn the_time_of_a_run_bounds_all_attempts_of_its_steps() {
    let (model, mcp) = (model(), mcp());
    let graphs = project(&model);
    let created = graphs.post(
        "/mcp-servers",
        &json!({"name": "docs", "url": mcp.url("/mcp")}),
    );
    let server = created.json()["server"]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let tool = json!({"source": "mcp", "server_id": server, "name": "search"});
    let tools = json!({"mcp_servers": [{"server_id": server, "tools": ["search"]}]});
    let limits = json!({"timeout_seconds": LIMIT});
    let rows = [
        ("silent", one(llm("SILENT", &[]), json!({})), "timeout"),
        ("busy", one(llm("BUSY", &[]), json!({})), "timeout"),
        // The next attempt would begin after the limit, so the error is that of the model.
        ("refused", one(llm("REFUSED", &[]), json!({})), "model"),
        ("reads", one(llm("SEARCH", &[tool]), tools), "timeout"),
    ];
    let begun = Instant::now();
    let runs = rows.map(|(name, spec, reason)| {
        graphs.agent(name, &limited(spec, limits.clone()), json!({}));
        let run = graphs.start(name, &json!({"message": "x"}));
        (name, run, reason)
    });
    for (name, run, reason) in &runs {
        let events = graphs.events(run);
        assert_eq!(
            names(&events).last(),
            Some(&"run_failed"),
            "{name}: {events:?}"
        );
        assert_eq!(
            data(&events, "run_failed")[0]["reason"],
            *reason,
            "{name}: {events:?}"
        );
        let ends = data(&events, "tool_call_end");
        let starts = data(&events, "tool_call_start");
        assert_eq!(ends.len(), starts.len(), "{name}: {events:?}");
        assert!(ends.iter().all(|end| end["status"] == "error"), "{ends:?}");
    }
    // A second more than the limit, for a machine that does other things as well.
    let lasted = begun.elapsed();
    assert!(lasted < Duration::from_secs(LIMIT + 3), "{lasted:?}");
    let calls = mcp
        .requests()
        .iter()
        .filter(|it| it.body.contains("tools/call"))
        .count();
    assert_eq!(calls, 1);
    let asked = |words: &str| {
        model
            .requests()
            .iter()
            .filter(|it| it.body.contains(words))
            .count()
    };
    assert_eq!(
        (asked("SILENT"), asked("BUSY"), asked("REFUSED")),
        (1, 2, 1)
    );
}

/// All attempts together, as the answer says. The server closes no connection and answers nothing.
#[test]
fn a_probe_of_a_silent_server_ends_within_one_limit() {
    let silent = Server::start(|_, _| Answer::Hang(Vec::new()));
    let graphs = Graphs::serve();
    let created = graphs.post(
        "/mcp-servers",
        &json!({"name": "silent", "url": silent.url("/mcp")}),
    );
    let id = created.json()["server"]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    let begun = Instant::now();
    let probed = graphs.post(&format!("/mcp-servers/{id}/probe"), &json!({}));
    let lasted = begun.elapsed();
    assert_eq!(probed.problem(), "502 E1242", "{probed:?}");
    assert_eq!(
        probed.json()["error"],
        "the server did not list its tools within 20 s"
    );
    assert!(lasted < Duration::from_secs(25), "{lasted:?}");
}
