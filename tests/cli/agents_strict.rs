//! What the agents API says where a request cannot mean what it says, and where a client is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agents_api::{Agents, answer, error, offered};
use crate::server::Server;

/// Creates a tool of type `http` for a path of the outside server.
fn tool(agents: &Agents, (name, path): (&str, &str), more: Value) -> String {
    let mut body = json!({"name": name, "execute": {"url": agents.outside.url(path)}});
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    agents.made("/tools", &body)
}

#[test]
fn a_tool_without_parameters_has_those_of_its_address() {
    let agents = Agents::serve();
    let preset = json!({"preset_parameters": {"tenant": "acme"}});
    let tool = tool(&agents, ("get_user", "/t/{tenant}/u/{userId}"), preset);
    let script = "call get_user {\"userId\": \"a b\", \"tenant\": \"evil\", \"x\": 1}\nsay done";
    let agent = agents.agent(script, &[&tool], json!({}));
    assert_eq!(
        agents.generate(&agent, &json!({"prompt": "x"}))["text"],
        "done"
    );
    let schema = &agents.turns()[0]["tools"][0]["function"]["parameters"];
    assert_eq!(schema["required"], json!(["userId"]), "{schema}");
    assert_eq!(
        schema["properties"].as_object().map(|it| it.len()),
        Some(1),
        "{schema}"
    );
    let sent = agents.tool_requests();
    assert_eq!(
        (sent[0].path.as_str(), sent[0].body.as_str()),
        ("/t/acme/u/a%20b", "{\"x\":1}")
    );
    // Where a tool lists its parameters, one that is not among them is a mistake.
    let listed = json!({"name": "t", "execute": {"url": agents.outside.url("/u/{userId}")},
                        "parameters": {"type": "object", "properties": {"user_id": {}}}});
    assert_eq!(
        error(&agents.post("/tools", &listed)),
        "400 VALIDATION_FAILED"
    );
}

#[test]
fn a_direct_call_of_an_action_is_refused_like_its_route() {
    let agents = Agents::serve();
    let actions = json!(["get-document", "create-document"]);
    let tool = agents.made(
        "/tools",
        &json!({"name": "docs", "type": "builtin", "actions": actions}),
    );
    // The alias is stored under the name that clients know.
    assert_eq!(agents.get(&format!("/tools/{tool}")).json()["type"], "soat");
    let document = agents.made("/documents", &json!({"content": "x"}));
    let path = format!("/tools/{tool}/call");
    let get = |id: &str| json!({"action": "get-document", "input": {"document_id": id}});
    assert_eq!(agents.post(&path, &get(&document)).json()["content"], "x");
    let wrong = json!({"action": "create-document", "input": {"zz": 1}});
    for (body, expected) in [
        (get("doc_nothing"), "404 RESOURCE_NOT_FOUND"),
        (wrong, "400 VALIDATION_FAILED"),
    ] {
        assert_eq!(error(&agents.post(&path, &body)), expected, "{body}");
    }
    let policy = json!({"statement": [{"effect": "Allow", "action": ["tools:CallTool"]}]});
    let policy = agents.made("/policies", &json!({"name": "caller", "document": policy}));
    let key = agents.post("/api-keys", &json!({"name": "k", "policy_ids": [policy]}));
    let key = key.json()["key"].as_str().expect("a key").to_owned();
    let refused = agents
        .api
        .post_as(&key, &format!("/api/v1{path}"), &get(&document));
    assert_eq!(error(&refused), "403 FORBIDDEN");
}

#[test]
fn the_context_counts_before_a_header_of_the_tool() {
    let agents = Agents::serve();
    let headers = json!({"X-Soat-Context-UserId": "of the tool", "X-Own": "kept"});
    let execute = json!({"url": agents.outside.url("/lookup"), "headers": headers});
    let http = agents.made("/tools", &json!({"name": "lookup", "execute": execute}));
    let mcp = json!({"mcp": {"url": agents.outside.url("/mcp"), "headers": headers}});
    let mcp = agents.mcp_tool("github", "/mcp", mcp);
    let agent = agents.agent(
        "call lookup\ncall github_find\nsay done",
        &[&http, &mcp],
        json!({}),
    );
    let done = agents.generate(
        &agent,
        &json!({"prompt": "x", "tool_context": {"userId": "u1"}}),
    );
    assert_eq!(done["text"], "done", "{done}");
    let mut calls = agents.mcp_requests("tools/call");
    calls.extend(
        agents
            .tool_requests()
            .into_iter()
            .filter(|it| it.path == "/lookup"),
    );
    assert_eq!(calls.len(), 2, "{calls:?}");
    for call in calls {
        let sent = (call.header("x-soat-context-userid"), call.header("x-own"));
        assert_eq!(sent, (Some("u1"), Some("kept")), "{call:?}");
    }
}

#[test]
fn a_statement_that_denies_wins_over_one_that_allows() {
    let agents = Agents::serve();
    let document = agents.made("/documents", &json!({"content": "x", "path": "/a.txt"}));
    let tool = agents.made(
        "/tools",
        &json!({"name": "docs", "type": "soat", "actions": ["get-document", "list-documents"]}),
    );
    let boundary = json!({"statement": [
        {"effect": "Allow", "action": ["documents:*"], "resource": ["*"]},
        {"effect": "Deny", "action": ["documents:GetDocument"], "resource": ["*"]},
    ]});
    let get = json!({"document_id": document});
    let agent = agents.agent(
        &format!("call docs_get-document {get}\nsay done"),
        &[&tool],
        json!({"boundary_policy": boundary}),
    );
    agents.generate(&agent, &json!({"prompt": "x"}));
    let turns = agents.turns();
    let messages = turns[1]["messages"].as_array().expect("messages");
    let read = messages.last().expect("a result")["content"].to_string();
    assert!(
        read.contains("does not allow `documents:GetDocument`"),
        "{read}"
    );
}

#[test]
fn an_idempotency_key_belongs_to_its_session() {
    let agents = Agents::serve();
    let agent = agents.agent("say hi", &[], json!({}));
    let sessions = format!("/agents/{agent}/sessions");
    let message = json!({"message": "hello", "idempotency_key": "m1"});
    for _ in 0..2 {
        let session = agents.made(&sessions, &json!({}));
        let path = format!("{sessions}/{session}/messages");
        let sent = [0, 1].map(|_| agents.post(&path, &message).status);
        assert_eq!(sent, [201, 200]);
        assert_eq!(agents.get(&path).json()["total"], 1);
    }
}

#[test]
fn a_required_call_needs_a_tool_and_a_prompt_needs_text() {
    let agents = Agents::serve();
    let none = agents.agent("say hi", &[], json!({}));
    let path = format!("/agents/{none}/generate");
    let rules = json!([{"step": 1, "tool_choice": "required"}]);
    for body in [
        json!({"prompt": "x", "tool_choice": "required"}),
        json!({"prompt": "x", "step_rules": rules}),
        json!({"prompt": ""}),
    ] {
        let refused = agents.post(&path, &body);
        assert_eq!(error(&refused), "400 VALIDATION_FAILED", "{body}");
    }
    let stored = agents.agent("say hi", &[], json!({"tool_choice": "required"}));
    let refused = agents.post(
        &format!("/agents/{stored}/generate"),
        &json!({"prompt": "x"}),
    );
    assert_eq!(error(&refused), "400 VALIDATION_FAILED");
    let list = agents.get("/agents/generations").json();
    assert_eq!((&list["total"], agents.turns().len()), (&json!(0), 0));
    // A tool that comes later makes the agent run, also one that writes facts.
    let memory = agents.made("/memories", &json!({"name": "m"}));
    let config = json!({"knowledge_config": {"write_memory_id": memory}});
    let changed = agents.send("PUT", &format!("/agents/{stored}"), &config);
    assert_eq!(changed.status, 200, "{changed:?}");
    agents.generate(&stored, &json!({"prompt": "x"}));
    assert_eq!(offered(&agents.turns()[0]), ["write_memory"]);
}

#[test]
fn an_agent_has_at_most_a_hundred_steps() {
    let agents = Agents::serve();
    let http = agents.http_tool("lookup");
    // The last line is repeated.
    let agent = agents.agent("call lookup", &[&http], json!({"max_steps": 100}));
    let done = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(
        (&done["stop_reason"], agents.turns().len()),
        (&json!("max_steps"), 100),
        "{done}"
    );
    let provider = agents.provider.clone();
    let refused = agents.post(
        "/agents",
        &json!({"ai_provider_id": provider, "max_steps": 101}),
    );
    assert_eq!(error(&refused), "400 VALIDATION_FAILED");
}

#[test]
fn a_turn_that_asks_again_requires_what_the_one_before_it_required() {
    let agents = Agents::serve();
    let (ask, http) = (agents.client_tool("ask"), agents.http_tool("lookup"));
    let script = "call ask\nsay no\nsay no again\nsay never";
    let agent = agents.agent(script, &[&ask, &http], json!({}));
    let paused = agents.generate(&agent, &json!({"prompt": "x"}));
    let outputs = json!([{"tool_call_id": "c0.0", "output": "yes"}]);
    let failed = agents.submit(
        &agent,
        &paused,
        &json!({"tool_outputs": outputs, "tool_choice": "required"}),
    );
    assert_eq!(
        failed.json()["error"]["code"],
        "TOOL_CALL_MISSING",
        "{failed:?}"
    );
    let choices: Vec<Value> = agents
        .turns()
        .iter()
        .map(|turn| turn["tool_choice"].clone())
        .collect();
    assert_eq!(choices, [json!(null), json!("required"), json!("required")]);
    // A rule of a step holds for the turn that asks again, too.
    let rules = json!([{"step": 1, "tool_choice": {"type": "tool", "tool_name": "lookup"}}]);
    let agent = agents.agent(
        "say no\ncall lookup\nsay done",
        &[&ask, &http],
        json!({"step_rules": rules}),
    );
    let done = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(done["text"], "done", "{done}");
    let turns = &agents.turns()[3..];
    assert_eq!(offered(&turns[1]), ["lookup"]);
    assert_eq!(offered(&turns[2]).len(), 2);
}

#[test]
fn the_last_activity_of_a_generation_moves_with_its_steps() {
    let server = Server::start(|request, _| {
        if request.path == "/v1/chat/completions" {
            thread::sleep(Duration::from_millis(250));
        }
        answer(request)
    });
    let agents = Agents::serve_beside(server);
    let http = agents.http_tool("lookup");
    let script = "call lookup\ncall lookup\ncall lookup\ncall lookup\nsay done";
    let agent = agents.agent(script, &[&http], json!({}));
    let path = format!("/agents/{agent}/generate");
    let mut seen = Vec::new();
    thread::scope(|scope| {
        let asked = scope.spawn(|| agents.post(&path, &json!({"prompt": "x"})));
        while !asked.is_finished() {
            let list = agents.get("/agents/generations?status=in_progress").json();
            let at = list["data"][0]["last_activity_at"].clone();
            if at.is_string() && !seen.contains(&at) {
                seen.push(at);
            }
            thread::sleep(Duration::from_millis(40));
        }
    });
    assert!(seen.len() >= 4, "{seen:?}");
}

#[test]
fn names_of_arguments_reach_a_server_as_the_model_wrote_them() {
    let agents = Agents::serve();
    let parameters =
        json!({"parameters": {"type": "object", "properties": {"userId": {"type": "string"}}}});
    let tool = tool(&agents, ("find", "/find"), parameters);
    let script = "call find {\"user_id\": \"a\", \"userId\": \"b\", \"nothing\": null}\nsay done";
    let agent = agents.agent(script, &[&tool], json!({}));
    agents.generate(&agent, &json!({"prompt": "x"}));
    let sent: Value = serde_json::from_str(&agents.tool_requests()[0].body).expect("JSON");
    assert_eq!(
        sent,
        json!({"user_id": "a", "userId": "b", "nothing": null})
    );
}

#[test]
fn a_call_that_is_written_as_a_request_has_it_fails() {
    let agents = Agents::serve();
    let http = agents.http_tool("lookup");
    let call = json!({"type": "function", "function": {"name": "lookup", "arguments": "{}"}});
    let agent = agents.agent(&format!("say {call}"), &[&http], json!({}));
    let failed = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(
        failed["error"]["code"], "TEXT_ENCODED_TOOL_CALL",
        "{failed}"
    );
}

#[test]
fn a_stream_whose_client_left_says_so() {
    let gate = Arc::new(AtomicBool::new(false));
    let held = gate.clone();
    let server = Server::start(move |request, _| {
        let ends = Instant::now() + Duration::from_secs(30);
        while request.path == "/v1/chat/completions"
            && !held.load(Ordering::SeqCst)
            && Instant::now() < ends
        {
            thread::sleep(Duration::from_millis(10));
        }
        answer(request)
    });
    let agents = Agents::serve_beside(server);
    let agent = agents.agent("say hi", &[], json!({}));
    let authorization = format!("authorization: Bearer {}", agents.api.token);
    let stream = agents.api.follow_request(
        &format!("POST /api/v1/agents/{agent}/generate"),
        &[authorization.as_str(), "content-type: application/json"],
        &json!({"prompt": "x", "stream": true}).to_string(),
    );
    let latest = || agents.get("/agents/generations").json()["data"][0].clone();
    assert_eq!(latest()["status"], "in_progress");
    drop(stream);
    // The server sees the end of the connection, and notes it.
    thread::sleep(Duration::from_millis(700));
    gate.store(true, Ordering::SeqCst);
    let ends = Instant::now() + Duration::from_secs(30);
    while latest()["status"] != "completed" {
        assert!(Instant::now() < ends, "{}", latest());
        thread::sleep(Duration::from_millis(30));
    }
    assert_eq!(latest()["stop_reason"], "stream_response_started");
    // A client that stays to the end reads the reason of the model.
    let stayed = agents.post(
        &format!("/agents/{agent}/generate"),
        &json!({"prompt": "x", "stream": true}),
    );
    assert!(stayed.body.contains("[DONE]"), "{stayed:?}");
    assert_eq!(latest()["stop_reason"], "end_turn");
}

#[test]
fn presets_are_merged_before_the_check_and_hidden_everywhere() {
    let agents = Agents::serve();
    let parameters = json!({"$ref": "#/$defs/all", "anyOf": [{"required": ["tenant"]}], "minProperties": 2,
        "examples": [{"q": "x", "tenant": "acme"}],
        "$defs": {"all": {"type": "object", "required": ["tenant", "q"],
            "properties": {"q": {"type": "string"}, "tenant": {"const": "acme"}}}}});
    let more = json!({"parameters": parameters, "preset_parameters": {"tenant": "acme"}});
    let hidden = tool(&agents, ("search", "/search"), more);
    let agent = agents.agent(
        "call search {\"q\": \"a\"}\nsay done",
        &[&hidden],
        json!({}),
    );
    agents.generate(&agent, &json!({"prompt": "x"}));
    let offered = agents.turns()[0]["tools"].to_string();
    assert!(
        !offered.contains("tenant") && !offered.contains("acme"),
        "{offered}"
    );
    let sent = agents.tool_requests();
    assert_eq!(sent[0].body, "{\"q\":\"a\",\"tenant\":\"acme\"}");
    let outside = json!({"name": "t", "execute": {"url": agents.outside.url("/u")},
        "parameters": {"$dynamicRef": "#all", "$defs": {"all": {"$dynamicAnchor": "all"}}},
        "preset_parameters": {"tenant": "acme"}});
    assert_eq!(
        error(&agents.post("/tools", &outside)),
        "400 VALIDATION_FAILED"
    );
}

#[test]
fn what_only_the_server_may_set_is_not_taken_from_callers() {
    let agents = Agents::serve();
    let lookup = agents.http_tool("lookup");
    let agent = agents.agent("call lookup\nsay done", &[&lookup], json!({}));
    let context = json!({"sessionid": "s", "actorId": "a", "userId": "u"});
    agents.generate(&agent, &json!({"prompt": "x", "tool_context": context}));
    let session = agents.made(
        &format!("/agents/{agent}/sessions"),
        &json!({"tool_context": context}),
    );
    let at = format!("/agents/{agent}/sessions/{session}");
    agents.post(&format!("{at}/messages"), &json!({"message": "x"}));
    agents.post(
        &format!("{at}/generate"),
        &json!({"tool_context": {"actorExternalId": "e"}}),
    );
    let sent = agents.tool_requests();
    let seen = |idx: usize| {
        let names = ["sessionid", "actorid", "actorexternalid", "userid"];
        names.map(|name| {
            sent[idx]
                .header(&format!("x-soat-context-{name}"))
                .map(str::to_owned)
        })
    };
    assert_eq!(seen(0), [None, None, None, Some("u".to_owned())]);
    assert_eq!(seen(1), [Some(session), None, None, Some("u".to_owned())]);
}

#[test]
fn tags_are_texts_wherever_they_are_written() {
    let agents = Agents::serve();
    for level in [json!(1), json!(true), json!({"a": "b"}), json!(null)] {
        let tags = json!({"level": level});
        let created = agents.post("/documents", &json!({"content": "x", "tags": tags}));
        assert_eq!(error(&created), "400 VALIDATION_FAILED", "{level}");
        let actor = agents.post("/actors", &json!({"name": "a", "tags": tags}));
        assert_eq!(error(&actor), "400 VALIDATION_FAILED", "{level}");
    }
    let id = agents.made(
        "/documents",
        &json!({"content": "x", "tags": {"level": "1"}}),
    );
    let changed = agents.send(
        "PATCH",
        &format!("/documents/{id}"),
        &json!({"tags": {"level": 1}}),
    );
    assert_eq!(error(&changed), "400 VALIDATION_FAILED");
}

#[test]
fn headers_of_the_connection_are_refused_in_a_tool() {
    let agents = Agents::serve();
    let execute = json!({"url": agents.outside.url("/u"), "headers": {"Content-Length": "3"}});
    let created = agents.post("/tools", &json!({"name": "t", "execute": execute}));
    assert_eq!(error(&created), "400 VALIDATION_FAILED");
    let id = agents.http_tool("lookup");
    let changed = agents.send(
        "PATCH",
        &format!("/tools/{id}"),
        &json!({"execute": execute}),
    );
    assert_eq!(error(&changed), "400 VALIDATION_FAILED");
}
