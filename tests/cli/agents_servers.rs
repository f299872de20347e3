//! Tools of type `mcp` of the agents API.

use serde_json::{Value, json};

use crate::agents_api::{Agents, answer, error, offered};
use crate::server::{Answer, Server};

#[test]
fn the_tools_of_a_server_have_its_prefix_presets_and_context_headers() {
    let agents = Agents::serve();
    let url = agents.outside.url("/mcp");
    let tool = agents.mcp_tool(
        "github",
        "/mcp",
        json!({"mcp": {"url": url, "headers": {"Authorization": "Bearer t0ken-of-server", "X-Own": "own", "X-Soat-Context-UserId": "own"}},
               "preset_parameters": {"repo": "acme/app"}}),
    );
    let shown = agents.get(&format!("/tools/{tool}"));
    assert_eq!(shown.json()["mcp"]["has_token"], true);
    assert!(
        !shown.body.contains("t0ken-of-server") && !shown.body.contains("secret"),
        "{shown:?}"
    );
    let script = "call github_create_issue {\"title\": \"Bug\", \"repo\": \"other\"}\nsay done";
    let agent = agents.agent(script, &[&tool], json!({}));
    let body = json!({"prompt": "x", "tool_context": {"userId": "u1"}});
    assert_eq!(agents.generate(&agent, &body)["text"], "done");
    let turns = agents.turns();
    assert_eq!(offered(&turns[0]), ["github_create_issue", "github_find"]);
    let parameters = &turns[0]["tools"][0]["function"]["parameters"];
    assert_eq!(
        (&parameters["required"], &parameters["properties"]["repo"]),
        (&json!(["title"]), &Value::Null)
    );
    let said = turns[1]["messages"].as_array().and_then(|it| it.last());
    assert_eq!(
        said.map(|it| &it["content"]),
        Some(&json!("{\"title\":\"Bug\",\"repo\":\"acme/app\"}"))
    );
    let call = &agents.mcp_requests("tools/call")[0];
    let header = |name: &str| call.header(name).map(str::to_owned);
    assert_eq!(
        [
            header("x-soat-context-userid"),
            header("x-own"),
            header("authorization")
        ],
        [
            Some("u1".into()),
            Some("own".into()),
            Some("Bearer t0ken-of-server".into())
        ]
    );
    let list = &agents.mcp_requests("tools/list")[0];
    assert_eq!(
        (
            list.header("authorization"),
            list.header("x-soat-context-userid")
        ),
        (Some("Bearer t0ken-of-server"), Some("own"))
    );
}

#[test]
fn a_server_that_lists_no_tools_is_in_the_trace_and_fails_a_turn_that_forces_its_tool() {
    let agents = Agents::serve();
    let broken = agents.mcp_tool("github", "/mcp/broken", json!({}));
    let good = agents.http_tool("lookup");
    let agent = agents.agent("call lookup\nsay done", &[&broken, &good], json!({}));
    let done = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(
        (&done["status"], &done["text"]),
        (&json!("completed"), &json!("done"))
    );
    let trace = agents
        .get(&format!(
            "/traces/{}",
            done["trace_id"].as_str().expect("an id")
        ))
        .json();
    let problem = &trace["problems"][0];
    assert_eq!(
        (&problem["type"], &problem["tool_name"], &problem["server"]),
        (
            &json!("mcp_tools_unlisted"),
            &json!("github"),
            &json!(agents.outside.url("/mcp/broken"))
        )
    );
    assert!(
        problem["message"]
            .as_str()
            .is_some_and(|it| it.contains("500")),
        "{trace}"
    );
    // The first step is free, the second one forces a tool of the server.
    let rule = json!([{"step": 2, "tool_choice": {"type": "tool", "tool_name": "github_find"}}]);
    let failed = agents.generate(&agent, &json!({"prompt": "x", "step_rules": rule}));
    assert_eq!(
        (&failed["status"], &failed["error"]["code"]),
        (&json!("failed"), &json!("MCP_TOOLS_UNLISTED"))
    );
    assert!(
        failed["error"]["message"]
            .as_str()
            .is_some_and(|it| it.contains("`github`")),
        "{failed}"
    );
}

#[test]
fn loop_control_names_tools_of_a_server_by_their_whole_names() {
    let agents = Agents::serve();
    let server = agents.mcp_tool("github", "/mcp", json!({}));
    let other = agents.http_tool("lookup");
    let control = json!({"active_tool_ids": [server],
                         "step_rules": [{"step": 1, "tool_choice": {"type": "tool", "tool_name": "github_find"}}],
                         "stop_conditions": [{"type": "hasToolCall", "tool_name": "github_create_issue"}]});
    let script = "call github_find\ncall github_create_issue {\"title\": \"a\", \"repo\": \"b\"}";
    let agent = agents.agent(script, &[&server, &other], control);
    let done = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(done["stop_reason"], "stop_condition");
    let turns = agents.turns();
    assert_eq!(offered(&turns[0]), ["github_find"]);
    assert_eq!(offered(&turns[1]), ["github_create_issue", "github_find"]);
    // A tool that the server lacks fails the generation with its name.
    let rule = json!([{"step": 1, "tool_choice": {"type": "tool", "tool_name": "github_gone"}}]);
    let failed = agents.generate(&agent, &json!({"prompt": "x", "step_rules": rule}));
    assert!(
        failed["error"]["message"]
            .as_str()
            .is_some_and(|it| it.contains("github_gone")),
        "{failed}"
    );
    let wrong = json!({"prompt": "x", "tool_choice": {"type": "tool", "tool_name": "gitlab_find"}});
    let refused = agents.post(&format!("/agents/{agent}/generate"), &wrong);
    assert_eq!(error(&refused), "400 VALIDATION_FAILED");
}

#[test]
fn a_tool_of_a_server_is_called_directly_by_its_name() {
    let agents = Agents::serve();
    let preset = json!({"preset_parameters": {"repo": "acme/app"}});
    let tool = agents.mcp_tool("github", "/mcp", preset);
    let call = format!("/tools/{tool}/call");
    let body = json!({"action": "create_issue", "input": {"title": "Bug", "repo": "other"}});
    assert_eq!(
        agents.post(&call, &body).json(),
        json!({"title": "Bug", "repo": "acme/app"})
    );
    let missing = agents.post(&call, &json!({"input": {}}));
    assert_eq!(error(&missing), "400 VALIDATION_FAILED");
    let unknown = agents.post(&call, &json!({"action": "gone"}));
    assert_eq!(error(&unknown), "502 TOOL_CALL_FAILED");
    let broken = agents.mcp_tool("b", "/mcp/broken", json!({}));
    let failed = agents.post(&format!("/tools/{broken}/call"), &json!({"action": "find"}));
    assert_eq!(error(&failed), "502 TOOL_CALL_FAILED");
}

#[test]
fn a_server_is_checked_when_it_is_stored() {
    let agents = Agents::serve();
    for body in [
        json!({"name": "m", "type": "mcp"}),
        json!({"name": "m", "type": "mcp", "mcp": {"url": "ftp://x"}}),
        json!({"name": "m", "type": "mcp", "mcp": {"url": "http://u:p@x"}}),
        json!({"name": "m", "type": "mcp", "mcp": {"url": "http://x", "headers": {"a b": "c"}}}),
        json!({"name": "m", "type": "mcp", "mcp": {"url": "http://x", "headers": {"a": "b\r\nc: d"}}}),
        json!({"name": "m", "type": "mcp", "mcp": {"url": "http://x", "secret": "other", "secret_id": "other"}}),
        json!({"name": "m", "type": "http", "mcp": {"url": "http://x"}}),
        json!({"name": "m", "type": "mcp", "mcp": {"url": "http://x"}, "execute": {"url": "http://x"}}),
    ] {
        assert_eq!(
            error(&agents.post("/tools", &body)),
            "400 VALIDATION_FAILED",
            "{body}"
        );
    }
}

#[test]
fn a_tool_of_a_server_whose_name_is_taken_is_left_out_and_named() {
    let agents = Agents::serve();
    let server = agents.mcp_tool("github", "/mcp", json!({}));
    let own = agents.client_tool("github_find");
    let agent = agents.agent("say done", &[&server, &own], json!({}));
    let done = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(done["text"], "done", "{done}");
    assert_eq!(
        offered(&agents.turns()[0]),
        ["github_create_issue", "github_find"]
    );
    let trace = done["trace_id"].as_str().expect("an id");
    let trace = agents.get(&format!("/traces/{trace}")).json();
    let problem = &trace["problems"][0];
    assert_eq!(
        (&problem["type"], &problem["tool_name"]),
        (&json!("mcp_tool_left_out"), &json!("github_find")),
        "{trace}"
    );
}

#[test]
fn a_server_that_hangs_is_named_after_its_time_and_asked_once() {
    let agents = Agents::serve_beside(Server::start(|request, _| {
        match request.body.contains("tools/list") {
            true => Answer::Hang(Vec::new()),
            false => answer(request),
        }
    }));
    let url = agents.outside.url("/mcp");
    let silent = agents.mcp_tool(
        "github",
        "/mcp",
        json!({"mcp": {"url": url, "timeout_seconds": 1}}),
    );
    let agent = agents.agent("say done", &[&silent], json!({}));
    let done = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(done["text"], "done", "{done}");
    let trace = done["trace_id"].as_str().expect("an id");
    let trace = agents.get(&format!("/traces/{trace}")).json();
    let problem = &trace["problems"][0];
    assert_eq!(
        (&problem["type"], &problem["tool_name"], &problem["server"]),
        (&json!("mcp_tools_unlisted"), &json!("github"), &json!(url))
    );
    let message = problem["message"].as_str().unwrap_or_default();
    assert!(message.contains("did not answer within 1 s"), "{message}");
    assert_eq!(agents.mcp_requests("tools/list").len(), 1);
    let wrong = json!({"name": "t", "type": "mcp", "mcp": {"url": url, "timeout_seconds": 0}});
    assert_eq!(
        error(&agents.post("/tools", &wrong)),
        "400 VALIDATION_FAILED"
    );
}
