//! When a call ends, becomes a task, or is answered with the run's id.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Client, last_message, stateless, token};
use crate::api::Api;
use crate::program::Scratch;

const VERSION: &str = "mcp-protocol-version: 2026-07-28";

fn tool(slug: &str, more: &str, flow: &str) -> String {
    format!(
        "{{:slug :{slug} :invocations {{:default {{:inputs []}}}}
           :interfaces {{:mcp [{{:tool-name \"{slug}\" :invocation :default {more}}}]}}
           :flow '{flow}}}"
    )
}

fn project() -> Scratch {
    let scratch = Scratch::new();
    let long = "(do (flow/step :sleep :nap {:duration \"1h\"}) :done)";
    let ask =
        "(:city (flow/step :wait :place {:message \"Where?\" :validation [:map [:city :string]]}))";
    for (slug, more, flow) in [
        ("slow", "", long),
        ("quick", "", "{:n 1}"),
        ("eager", ":task :at-once", "{:n 2}"),
        ("strict", ":task :at-once :task-required true", "{:n 3}"),
        ("asking", ":task :after-input :task-required true", ask),
    ] {
        scratch.write(&format!("flows/{slug}.edn"), tool(slug, more, flow));
    }
    scratch
}

fn call(api: &Api, name: &str, meta: Value, more: &Value) -> Value {
    let mut params = json!({"name": name, "arguments": {}, "_meta": meta});
    for (key, value) in more.as_object().into_iter().flatten() {
        params[key] = value.clone();
    }
    let headers = [
        VERSION,
        "mcp-method: tools/call",
        &*format!("mcp-name: {name}"),
    ];
    last_message(&stateless(api, &headers, "tools/call", &params))
}

fn tasks() -> Value {
    json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

fn get(api: &Api, task: &Value) -> Value {
    let id = task.as_str().expect("a task").to_owned();
    let headers = [
        VERSION,
        "mcp-method: tasks/get",
        &*format!("mcp-name: {id}"),
    ];
    let params = json!({"taskId": id, "_meta": tasks()});
    last_message(&stateless(api, &headers, "tasks/get", &params))["result"].take()
}

#[test]
fn a_call_waits_as_long_as_the_project_says_and_longer_with_progress() {
    let scratch = project();
    scratch.write(
        "flowstone.edn",
        "{:server {:mcp {:wait \"300ms\" :progress-wait \"1500ms\"}}}",
    );
    let api = Api::serve(&scratch);
    let client = Client::owner(&api);
    let begun = Instant::now();
    let late = client.call("slow", &json!({}));
    let plain = begun.elapsed();
    assert!(late["structuredContent"]["runId"].is_string(), "{late}");
    assert_eq!(late["isError"], false);
    assert!(plain >= Duration::from_millis(300), "{plain:?}");
    let begun = Instant::now();
    let params = json!({"name": "slow", "arguments": {}, "_meta": {"progressToken": 1}});
    let late = client.ask("tools/call", &params);
    let longer = begun.elapsed();
    assert!(late["structuredContent"]["runId"].is_string(), "{late}");
    assert!(longer >= Duration::from_millis(1500), "{longer:?}");
    // A client that knows tasks gets one.
    let task = call(&api, "slow", tasks(), &json!({}));
    assert_eq!(task["result"]["resultType"], "task", "{task}");
    assert_eq!(task["result"]["status"], "working");
    let found = get(&api, &task["result"]["taskId"]);
    assert_eq!(found["status"], "working", "{found}");
}

#[test]
fn a_tool_says_when_its_calls_become_tasks() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let plain = json!({"elicitation": {}});
    let quick = call(&api, "quick", tasks(), &json!({}));
    assert_eq!(quick["result"]["structuredContent"]["n"], 1, "{quick}");
    let eager = call(&api, "eager", plain.clone(), &json!({}));
    assert_eq!(eager["result"]["structuredContent"]["n"], 2, "{eager}");
    let eager = call(&api, "eager", tasks(), &json!({}));
    assert_eq!(eager["result"]["resultType"], "task", "{eager}");
    let begun = Instant::now();
    loop {
        let found = get(&api, &eager["result"]["taskId"]);
        if found["status"] == "completed" {
            assert_eq!(found["result"]["structuredContent"]["n"], 2, "{found}");
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{found}");
    }
    let strict = call(&api, "strict", plain, &json!({}));
    assert_eq!(strict["error"]["code"], -32021, "{strict}");
    let needed = &strict["error"]["data"]["requiredCapabilities"]["extensions"];
    assert!(
        needed["io.modelcontextprotocol/tasks"].is_object(),
        "{strict}"
    );
    let session = Client::owner(&api);
    let refused = session.call("strict", &json!({}));
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    let listed = session.ask("tools/list", &json!({}));
    let listed = listed["tools"].as_array().expect("tools").iter();
    let support = |name: &str| {
        let found = listed.clone().find(|tool| tool["name"] == name);
        found.map(|tool| tool["execution"]["taskSupport"].clone())
    };
    assert_eq!(support("strict"), Some(json!("required")));
    assert_eq!(support("eager"), Some(json!("optional")));
}

#[test]
fn a_call_becomes_a_task_once_its_first_question_is_answered() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let asked = call(&api, "asking", tasks(), &json!({}));
    let asked = &asked["result"];
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert!(asked.get("taskId").is_none(), "{asked}");
    let answer = json!({"place": {"action": "accept", "content": {"city": "Oslo"}}});
    let again = json!({"requestState": asked["requestState"], "inputResponses": answer});
    let task = call(&api, "asking", tasks(), &again);
    assert_eq!(task["result"]["resultType"], "task", "{task}");
    assert!(task["result"].get("requestState").is_none(), "{task}");
    let begun = Instant::now();
    loop {
        let found = get(&api, &task["result"]["taskId"]);
        if found["status"] == "completed" {
            assert!(found["result"].to_string().contains("Oslo"), "{found}");
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{found}");
    }
}

#[test]
fn a_task_is_there_for_another_process_after_a_restart() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let task = call(&api, "eager", tasks(), &json!({}));
    let id = task["result"]["taskId"].clone();
    let stranger = token(&scratch, &["--scope", "read", "--scope", "run"]);
    drop(api);
    let api = Api::serve(&scratch);
    let begun = Instant::now();
    while get(&api, &id)["status"] != "completed" {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{}",
            get(&api, &id)
        );
    }
    // The handle is of no use to others.
    let other = Client::begin(&api, &stranger, &json!({}));
    let hidden = other.ask("tasks/get", &json!({"taskId": id}));
    assert_eq!(hidden["error"]["code"], -32602, "{hidden}");
}

#[test]
fn tasks_are_listed_within_the_reach_of_the_token() {
    let scratch = project();
    let api = Api::serve(&scratch);
    // Both tokens have one name, so their runs have one starter.
    let wide = token(&scratch, &["--scope", "run"]);
    let narrow = token(&scratch, &["--scope", "run", "--flow", "eager"]);
    for flow in ["quick", "eager"] {
        let path = format!("/api/v1/flows/{flow}/runs");
        let started = api.post_as(&wide, &path, &json!({"wait": "60s"}));
        assert_eq!(started.status, 200, "{started:?}");
    }
    let listed = |token: &str| {
        let client = Client::begin(&api, token, &json!({}));
        let tasks = client.ask("tasks/list", &json!({}))["tasks"].clone();
        tasks.as_array().expect("tasks").len()
    };
    assert_eq!((listed(&wide), listed(&narrow)), (2, 1));
}
