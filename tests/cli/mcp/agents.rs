//! Graph agents as tools of MCP clients: who sees them, who may call them, and calls that take long.

use serde_json::{Value, json};

use super::{Client, last_message, stateless};
use crate::graphs::{Graphs, calling, one};

fn offered(client: &Client<'_>, name: &str) -> Option<Value> {
    let listed = client.ask("tools/list", &json!({}));
    let tools = listed["tools"].as_array().expect("tools").clone();
    tools.into_iter().find(|tool| tool["name"] == name)
}

fn exposed(more: &Value) -> Value {
    let mut members = json!({"mcp_tool": true});
    for (key, value) in more.as_object().into_iter().flatten() {
        members[key] = value.clone();
    }
    members
}

#[test]
fn an_exposed_agent_is_a_tool_with_its_schema() {
    let graphs = Graphs::serve();
    let spec = calling("CLASSIFY", &[]);
    graphs.agent("hidden", &spec, json!({}));
    graphs.agent(
        "triage",
        &spec,
        exposed(&json!({"display_name": "Triage", "description": "Sorts messages."})),
    );
    let client = Client::owner(&graphs.api);
    assert_eq!(offered(&client, "hidden"), None);
    let tool = offered(&client, "triage").expect("it is listed");
    assert_eq!(tool["title"], "Triage");
    assert_eq!(tool["description"], "Sorts messages.");
    assert_eq!(tool["execution"]["taskSupport"], "optional");
    assert_eq!(
        tool["inputSchema"],
        json!({
            "type": "object", "properties": {"message": {"type": "string"}},
            "required": ["message"], "additionalProperties": false,
        })
    );
    let called = client.call("triage", &json!({"message": "my bill"}));
    assert_eq!(called["isError"], false, "{called}");
    assert_eq!(called["content"][0]["text"], "billing");
    assert_eq!(called["structuredContent"], json!({"result": "billing"}));
    // Each call is a run, and each is a run of the agent.
    client.call("triage", &json!({"message": "my bill"}));
    let runs = graphs.get("/agents/triage/runs").json();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(2), "{runs}");
    let (missing, unknown) = (
        client.call("triage", &json!({})),
        client.call("triage", &json!({"message": "x", "other": 1})),
    );
    assert!(
        missing["content"][0]["text"].to_string().contains("E1234"),
        "{missing}"
    );
    assert!(
        unknown["content"][0]["text"].to_string().contains("E1045"),
        "{unknown}"
    );
    let refused = client.call("hidden", &json!({"message": "x"}));
    assert!(
        refused["error"]["message"]
            .to_string()
            .contains("no tool `hidden`"),
        "{refused}"
    );
}

#[test]
fn visibility_limits_and_status_hold_for_tools() {
    let graphs = Graphs::serve();
    let (ada, anon) = (
        graphs.token("user", &["--subject", "ada"]),
        graphs.token("anon", &[]),
    );
    graphs.agent("own", &calling("CLASSIFY", &[]), exposed(&json!({})));
    graphs.agent(
        "members",
        &calling("CLASSIFY", &[]),
        exposed(&json!({"visibility": "authenticated", "max_runs_per_user_per_hour": 1})),
    );
    graphs.agent(
        "open",
        &calling("CLASSIFY", &[]),
        exposed(&json!({"visibility": "public", "safety_acknowledged": true, "max_runs_per_ip_per_hour": 1})),
    );
    let seen = |token: &str| {
        let client = Client::begin(&graphs.api, token, &json!({}));
        let names = ["own", "members", "open"];
        names.map(|name| offered(&client, name).is_some())
    };
    assert_eq!(seen(&graphs.api.token), [true, true, true]);
    assert_eq!(seen(&ada), [false, true, true]);
    assert_eq!(seen(&anon), [false, false, true]);
    assert_eq!(
        seen(&graphs.token("service", &["--scope", "read"])),
        [false; 3]
    );
    let elsewhere = graphs.token("service", &["--scope", "run", "--flow", "members"]);
    assert_eq!(seen(&elsewhere), [false, true, false]);

    let client = Client::begin(&graphs.api, &ada, &json!({}));
    let refused = client.call("own", &json!({"message": "x"}));
    assert!(refused["error"].is_object(), "{refused}");
    assert_eq!(
        client.call("members", &json!({"message": "x"}))["isError"],
        false
    );
    let limited = client.call("members", &json!({"message": "y"}));
    assert!(
        limited["content"][0]["text"].to_string().contains("E1238"),
        "{limited}"
    );
    // The address counts for the anonymous key, as it does over the routes.
    let client = Client::begin(&graphs.api, &anon, &json!({}));
    assert_eq!(
        client.call("open", &json!({"message": "x"}))["isError"],
        false
    );
    let body = json!({"input": {"message": "z"}});
    assert_eq!(
        graphs
            .post_as(&anon, "/public/agents/open/runs", &body)
            .problem(),
        "429 E1238"
    );
    graphs.send("PATCH", "/agents/own", &json!({"status": "disabled"}));
    assert_eq!(offered(&Client::owner(&graphs.api), "own"), None);
}

#[test]
fn a_call_that_waits_for_an_approval_becomes_a_task() {
    let graphs = Graphs::serve();
    graphs.agent(
        "writer",
        &calling("WRITE", &["cancel", "lookup"]),
        exposed(&json!({})),
    );
    let tasks = json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}});
    let call = |method: &str, name: &str, params: Value| {
        let headers = [
            "mcp-protocol-version: 2026-07-28".to_owned(),
            format!("mcp-method: {method}"),
            format!("mcp-name: {name}"),
        ];
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        last_message(&stateless(&graphs.api, &headers, method, &params))["result"].take()
    };
    let task = call(
        "tools/call",
        "writer",
        json!({"name": "writer", "arguments": {"message": "x"}, "_meta": tasks}),
    );
    assert_eq!(task["resultType"], "task", "{task}");
    let id = task["taskId"].as_str().expect("a task").to_owned();
    let get = || call("tasks/get", &id, json!({"taskId": id, "_meta": tasks}));
    let runs = graphs.get("/agents/writer/runs").json();
    let run = runs["runs"][0]["id"].as_str().expect("a run").to_owned();
    let path = format!("/agents/writer/runs/{run}");
    let token = graphs.paused(&path);
    let waiting = get();
    assert_ne!(waiting["status"], "completed", "{waiting}");
    let answer = json!({"approval_token": token, "approved": true});
    assert_eq!(graphs.post(&format!("{path}/resume"), &answer).status, 202);
    graphs.events(&path);
    let done = get();
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done["result"]["content"][0]["text"], "cancelled", "{done}");
}

/// The right to start an agent is not the right to approve its calls.
#[test]
fn a_user_gets_no_link_to_approve_a_call() {
    let graphs = Graphs::serve();
    let node = json!({
        "type": "tool", "args_template": {"id": 1}, "output_key": "reply",
        "tool_ref": {"source": "function", "name": "lookup", "mode_override": "read_write"},
    });
    graphs.agent(
        "asks",
        &one(node, json!({"functions": ["lookup"]})),
        exposed(&json!({"visibility": "authenticated"})),
    );
    let ada = graphs.token("user", &["--subject", "ada"]);
    let links = json!({"elicitation": {"url": {}, "form": {}}});
    let client = Client::begin(&graphs.api, &ada, &links);
    let late = client.call("asks", &json!({}));
    assert!(late["structuredContent"]["waits"][0].is_string(), "{late}");
    assert!(!late.to_string().contains("/waits/"), "{late}");
}
