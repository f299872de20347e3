//! What requests of the agents API refer to: documents, tools, knowledge and memories need the right to use them.

use serde_json::{Value, json};

use super::agents_keys::{key, policy, with};
use crate::agents_api::{Agents, error};

/// The records that requests refer to, and an agent that refers to none of them.
struct Bench {
    agents: Agents,
    agent: String,
    document: String,
    memory: String,
    tool: String,
}

impl Bench {
    fn serve() -> Bench {
        let agents = Agents::serve();
        let made = |path: &str, body: Value| agents.made(path, &body);
        let document = made("/documents", json!({"content": "classified text"}));
        let memory = made("/memories", json!({"name": "m"}));
        let tool = made(
            "/tools",
            json!({"name": "docs", "type": "soat", "actions": ["get-document"]}),
        );
        let agent = agents.agent("say read", &[], json!({}));
        Bench {
            document,
            memory,
            tool,
            agent,
            agents,
        }
    }

    /// Bodies of generations, each with a reference.
    fn bodies(&self) -> Vec<Value> {
        let content = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
        let config = |config: Value| json!({"prompt": "x", "knowledge_config": config});
        vec![
            content(json!({"type": "document", "document_id": self.document})),
            content(
                json!({"type": "tool_output", "tool_id": self.tool, "action": "get-document",
                           "input": {"document_id": self.document}}),
            ),
            config(json!({"document_ids": [self.document]})),
            config(json!({"document_paths": ["/"]})),
            config(json!({"write_memory_id": self.memory})),
        ]
    }
}

/// All but the records that requests refer to.
fn without_references() -> Value {
    json!([
        {"effect": "Allow", "action": ["*"]},
        {"effect": "Deny", "action": ["documents:*", "knowledge:*", "memories:*", "tools:*"]},
    ])
}

#[test]
fn references_of_a_request_need_the_rights_of_its_key() {
    let bench = Bench::serve();
    let agents = &bench.agents;
    let id = policy(agents, &without_references());
    let (_, narrow) = key(agents, &json!({"name": "narrow", "policy_ids": [id]}));
    let (_, wide) = key(agents, &json!({"name": "wide"}));
    let at = format!("/agents/{}", bench.agent);
    let session = agents.made(&format!("{at}/sessions"), &json!({}));
    let mut requests: Vec<(String, Value)> = Vec::new();
    for body in bench.bodies() {
        requests.push((format!("POST {at}/generate"), body));
    }
    requests.push((
        format!("POST {at}/sessions/{session}/messages"),
        json!({"document_id": bench.document}),
    ));
    requests.push((
        "POST /actors".to_owned(),
        json!({"name": "a", "memory_id": bench.memory}),
    ));
    requests.push((
        format!("PUT {at}"),
        json!({"knowledge_config": {"document_paths": ["/"]}}),
    ));
    requests.push((format!("PUT {at}"), json!({"tool_ids": [bench.tool]})));
    for (route, body) in &requests {
        let refused = with(agents, &narrow, route, body);
        assert_eq!(error(&refused), "403 FORBIDDEN", "{route} {body}");
        assert!(
            refused.body.contains("policies of the caller"),
            "{refused:?}"
        );
        assert!(!refused.body.contains("classified"), "{refused:?}");
    }
    assert!(agents.turns().is_empty());
    for (route, body) in &requests[..2] {
        let allowed = with(agents, &wide, route, body);
        assert_eq!(allowed.status, 200, "{route} {body}: {allowed:?}");
    }
    for (route, body) in &requests[5..] {
        let allowed = with(agents, &wide, route, body);
        assert!(allowed.status < 300, "{route} {body}: {allowed:?}");
    }
    // What an agent has needs no right of those who run it.
    let kept = json!({"name": "n", "tool_ids": [bench.tool]});
    let kept = with(agents, &narrow, &format!("PUT {at}"), &kept);
    assert_eq!(kept.status, 200, "{kept:?}");
}

#[test]
fn references_of_a_model_stay_within_the_boundary_of_its_agent() {
    let bench = Bench::serve();
    let agents = &bench.agents;
    let at = format!("/agents/{}/sessions", bench.agent);
    let session = agents.made(&at, &json!({}));
    let names = [
        "get-document",
        "add-session-message",
        "create-agent-generation",
        "update-agent",
    ];
    let tool = json!({"name": "api", "type": "soat", "actions": names});
    let tool = agents.made("/tools", &tool);
    let mut calls = vec![
        format!(
            "call api_get-document {}",
            json!({"document_id": bench.document})
        ),
        format!(
            "call api_add-session-message {}",
            json!({"agent_id": bench.agent, "session_id": session, "document_id": bench.document})
        ),
        format!(
            "call api_update-agent {}",
            json!({"agent_id": bench.agent, "tool_ids": [bench.tool]})
        ),
    ];
    for mut body in bench.bodies() {
        body["agent_id"] = json!(bench.agent);
        calls.push(format!("call api_create-agent-generation {body}"));
    }
    let count = calls.len();
    calls.push("say done".to_owned());
    let boundary = json!({"statement": without_references()});
    let outer = agents.agent(
        &calls.join("\n"),
        &[&tool],
        json!({"boundary_policy": boundary}),
    );
    let done = agents.generate(&outer, &json!({"prompt": "x"}));
    assert_eq!(done["text"], "done", "{done}");
    let turns = agents.turns();
    assert_eq!(turns.len(), count + 1, "no nested generation began");
    let messages = turns[count]["messages"].as_array().expect("messages");
    let results: Vec<&str> = messages
        .iter()
        .filter(|it| it["role"] == "tool")
        .filter_map(|it| it["content"].as_str())
        .collect();
    assert_eq!(results.len(), count);
    for result in results {
        assert!(result.contains("boundary policy"), "{result}");
        assert!(!result.contains("classified"), "{result}");
    }
    let messages = agents.get(&format!("{at}/{session}/messages")).json();
    assert_eq!(messages["total"], 0, "{messages}");
}

#[test]
fn a_token_without_the_scope_read_gets_no_document() {
    let bench = Bench::serve();
    let args = ["tokens", "create", "--name", "runner", "--scope", "run"];
    let token = bench.agents.scratch.run(&args).ok().trim_end().to_owned();
    let at = format!("/agents/{}", bench.agent);
    let session = bench.agents.made(&format!("{at}/sessions"), &json!({}));
    let route = format!("POST {at}/sessions/{session}/messages");
    let body = json!({"document_id": bench.document});
    let refused = with(&bench.agents, &token, &route, &body);
    assert_eq!(error(&refused), "403 FORBIDDEN", "{refused:?}");
    let text = with(&bench.agents, &token, &route, &json!({"message": "x"}));
    assert_eq!(text.status, 201, "{text:?}");
}

#[test]
fn a_policy_that_names_what_does_not_exist_is_refused_with_the_nearest_name() {
    let agents = Agents::serve();
    for (action, resource, near) in [
        ("documents:createDocument", "*", "documents:CreateDocument"),
        ("document:CreateDocument", "*", "documents:CreateDocument"),
        ("document:*", "*", "documents:*"),
        ("documents:Nope", "*", "openapi.json"),
        (
            "documents:*",
            "soat:*:documents:/reports/*",
            "did you mean `document`?",
        ),
        ("documents:*", "soat:*:doc:*", "document"),
        ("documents:*", "soat:*:agent:/reports/*", "only documents"),
    ] {
        let statement = json!({"effect": "Deny", "action": [action], "resource": [resource]});
        let document = json!({"statement": [statement]});
        let refused = agents.post("/policies", &json!({"name": "p", "document": document}));
        assert_eq!(error(&refused), "400 VALIDATION_FAILED", "{action}");
        assert!(refused.body.contains(near), "{refused:?}");
        let agent = agents.agent("say x", &[], json!({}));
        let boundary = json!({"boundary_policy": document});
        let refused = agents.send("PUT", &format!("/agents/{agent}"), &boundary);
        assert_eq!(error(&refused), "400 VALIDATION_FAILED", "{action}");
    }
    let typed = json!([{"effect": "Deny", "action": ["*"], "condition": {"StringEquals": {"soat:ResourceType": "documents"}}}]);
    let refused = agents.post("/policies", &json!({"document": {"statement": typed}}));
    assert_eq!(error(&refused), "400 VALIDATION_FAILED");
    policy(
        &agents,
        &json!([{"effect": "Deny", "action": ["memories:*"], "resource": ["soat:*:memory:*", "soat:*:ai_provider:*"]}]),
    );
}

#[test]
fn a_denied_type_is_denied_for_new_records_too() {
    let agents = Agents::serve();
    let id = policy(
        &agents,
        &json!([{"effect": "Allow", "action": ["*"]}, {"effect": "Deny", "action": ["*"], "resource": ["soat:*:memory:*"]}]),
    );
    let (_, text) = key(&agents, &json!({"name": "k", "policy_ids": [id]}));
    let refused = with(&agents, &text, "POST /memories", &json!({"name": "m"}));
    assert_eq!(error(&refused), "403 FORBIDDEN");
}

#[test]
fn a_key_of_a_project_sees_it_and_creates_no_other() {
    let agents = Agents::serve();
    let own = agents.made("/projects", &json!({"name": "own"}));
    agents.made("/projects", &json!({"name": "other"}));
    let (_, text) = key(&agents, &json!({"name": "k", "project_id": own}));
    let refused = with(&agents, &text, "POST /projects", &json!({"name": "more"}));
    assert_eq!(error(&refused), "403 FORBIDDEN", "{refused:?}");
    let list = with(&agents, &text, "GET /projects", &Value::Null).json();
    let ids: Vec<&Value> = list
        .as_array()
        .expect("projects")
        .iter()
        .map(|it| &it["id"])
        .collect();
    assert_eq!(ids, [&json!(own)]);
    let all = agents.get("/projects").json();
    assert_eq!(all.as_array().map(Vec::len), Some(3));
}

#[test]
fn presets_that_no_action_takes_and_weak_secrets_are_refused() {
    let agents = Agents::serve();
    let tool = json!({"name": "d", "type": "soat", "actions": ["create-document"], "preset_parameters": {"project_id": "proj_x"}});
    let refused = agents.post("/tools", &tool);
    assert_eq!(error(&refused), "400 VALIDATION_FAILED");
    assert!(refused.body.contains("`project_id`"), "{refused:?}");
    let refused = agents.post("/secrets", &json!({"name": "s", "value": "x"}));
    assert_eq!(error(&refused), "400 VALIDATION_FAILED");
    assert!(refused.body.contains("`value`"), "{refused:?}");
    let stored = agents.get("/secrets").json();
    assert_eq!(
        stored.as_array().map(Vec::len),
        Some(1),
        "that of the provider"
    );
    let secret = agents.made("/secrets", &json!({"name": "s", "value": "sk-0123456789"}));
    let path = format!("/secrets/{secret}");
    let refused = agents.send("PATCH", &path, &json!({"value": "aaaaaaaaaaaa"}));
    assert_eq!(error(&refused), "400 VALIDATION_FAILED");
}

#[test]
fn credentials_of_tools_are_sent_encrypted_at_rest_and_shown_by_name() {
    let agents = Agents::serve();
    let url = agents.outside.url("/users/{userId}");
    let parameters = json!({"type": "object", "properties": {"userId": {"type": "string"}}});
    for (header, value, secret) in [
        ("Authorization", "Bearer tool-t0ken-0123", "tool-t0ken-0123"),
        (
            "Authorization",
            "Basic YWJjOmRlZjpnaGk=",
            "YWJjOmRlZjpnaGk=",
        ),
        ("X-Api-Key", "key-0123456789", "key-0123456789"),
    ] {
        let tool = json!({"name": "get_user", "parameters": parameters, "execute": {"url": url, "method": "GET", "headers": {"X-Own": "a", header: value}}});
        let tool = agents.made("/tools", &tool);
        let path = format!("/tools/{tool}");
        let shown = agents.get(&path);
        let mut names = [header, "X-Own"];
        names.sort_unstable();
        assert_eq!(shown.json()["execute"]["headers"], json!(names));
        assert!(!shown.body.contains(secret), "{shown:?}");
        let renamed = agents.send("PATCH", &path, &json!({"description": "d"}));
        assert_eq!(renamed.status, 200, "{renamed:?}");
        let call = format!("{path}/call");
        let called = agents.post(&call, &json!({"input": {"userId": "u1"}}));
        assert_eq!(called.status, 200, "{called:?}");
        let requests = agents.tool_requests();
        let last = requests.last().expect("a request");
        assert_eq!(last.header(header), Some(value), "{last:?}");
        assert_eq!(last.header("x-own"), Some("a"), "{last:?}");
        assert_eq!(agents.send("DELETE", &path, &Value::Null).status, 204);
    }
    let two = json!({"name": "t", "parameters": parameters, "execute": {"url": url, "headers": {"Authorization": "Bearer tool-t0ken-0123", "X-Api-Key": "key-0123456789"}}});
    assert_eq!(error(&agents.post("/tools", &two)), "400 VALIDATION_FAILED");
    let server = json!({"mcp": {"url": agents.outside.url("/mcp"), "headers": {"X-Api-Key": "key-0123456789"}}});
    let server = agents.mcp_tool("github", "/mcp", server);
    let shown = agents.get(&format!("/tools/{server}"));
    assert_eq!(shown.json()["mcp"]["headers"], json!(["X-Api-Key"]));
    assert!(!shown.body.contains("key-0123456789"), "{shown:?}");
}
