//! The agents API over HTTP: records, generations, tools, traces.

use serde_json::{Value, json};

use crate::agents_api::{Agents, error, offered};

#[test]
fn an_agent_is_created_shown_changed_and_deleted() {
    let agents = Agents::serve();
    let agent = agents.agent("say hi", &[], json!({"name": "first"}));
    assert!(agent.starts_with("agt_"), "{agent}");
    let shown = agents.get(&format!("/agents/{agent}")).json();
    assert_eq!(
        (
            &shown["name"],
            &shown["max_steps"],
            &shown["tool_ids"],
            &shown["temperature"]
        ),
        (&json!("first"), &json!(20), &json!([]), &Value::Null)
    );
    assert!(
        shown["project_id"]
            .as_str()
            .is_some_and(|it| it.starts_with("proj_"))
    );
    let changed = agents.send(
        "PUT",
        &format!("/agents/{agent}"),
        &json!({"name": "second", "max_steps": 3}),
    );
    assert_eq!(
        (changed.status, &changed.json()["instructions"]),
        (200, &json!("say hi"))
    );
    let list = agents.get("/agents").json();
    assert_eq!(list[0]["name"], "second");
    assert_eq!(
        agents
            .send("DELETE", &format!("/agents/{agent}"), &Value::Null)
            .status,
        204
    );
    assert_eq!(
        error(&agents.get(&format!("/agents/{agent}"))),
        "404 RESOURCE_NOT_FOUND"
    );
}

#[test]
fn errors_have_the_envelope_of_this_api_on_every_layer() {
    let agents = Agents::serve();
    for (reply, expected) in [
        (agents.post("/agents", &json!({})), "400 VALIDATION_FAILED"),
        (
            agents.post(
                "/agents",
                &json!({"ai_provider_id": agents.provider, "colour": 1}),
            ),
            "400 VALIDATION_FAILED",
        ),
        (
            agents.post("/agents", &json!({"ai_provider_id": "aip_gone"})),
            "404 RESOURCE_NOT_FOUND",
        ),
        (
            agents.post(
                "/agents",
                &json!({"ai_provider_id": agents.provider, "knowledge_config": {"limit": 0}}),
            ),
            "400 VALIDATION_FAILED",
        ),
        (
            agents.post("/tools", &json!({"name": "t", "type": "soat"})),
            "400 VALIDATION_FAILED",
        ),
        (
            agents.get("/agents/%7Bagent_id%7D"),
            "404 RESOURCE_NOT_FOUND",
        ),
        (agents.get("/chats"), "404 RESOURCE_NOT_FOUND"),
        (
            agents.send("PUT", "/tools", &json!({})),
            "405 METHOD_NOT_ALLOWED",
        ),
        (agents.get("/agents?colour=1"), "400 VALIDATION_FAILED"),
        (
            agents.api.get_as("fst_wrong", "/api/v1/agents"),
            "401 UNAUTHORIZED",
        ),
        (
            agents.api.request("GET /api/v1/tools", &[], ""),
            "401 UNAUTHORIZED",
        ),
    ] {
        assert_eq!(error(&reply), expected, "{reply:?}");
    }
}

#[test]
fn a_generation_calls_http_tools_and_answers() {
    let agents = Agents::serve();
    let url = agents.outside.url("/users/{userId}");
    let tool = agents.made(
        "/tools",
        &json!({"name": "get_user", "execute": {"url": url, "method": "GET", "headers": {"X-Own": "a"}},
                "preset_parameters": {"tenant": "t1"},
                "parameters": {"type": "object", "required": ["userId", "tenant"],
                               "properties": {"userId": {"type": "string"}, "tenant": {"type": "string"}}}}),
    );
    let script = "call get_user {\"userId\": \"a/b\", \"tenant\": \"other\", \"q\": 1}\nsay done";
    let agent = agents.agent(script, &[&tool], json!({}));
    let body = json!({"prompt": 42, "tool_context": {"userId": "u1"}});
    let done = agents.generate(&agent, &body);
    assert_eq!(
        (
            &done["status"],
            &done["stop_reason"],
            &done["text"],
            &done["output"]["model"]
        ),
        (
            &json!("completed"),
            &json!("end_turn"),
            &json!("done"),
            &json!("fake-1")
        )
    );
    let turns = agents.turns();
    assert_eq!(turns.len(), 2);
    assert_eq!(
        turns[0]["messages"][0],
        json!({"role": "system", "content": script})
    );
    assert_eq!(
        turns[0]["messages"][1],
        json!({"role": "user", "content": "42"})
    );
    let parameters = &turns[0]["tools"][0]["function"]["parameters"];
    assert_eq!(
        (&parameters["required"], &parameters["properties"]["tenant"]),
        (&json!(["userId"]), &Value::Null)
    );
    let asked = agents.tool_requests();
    assert_eq!(asked[0].path, "/users/a%2Fb?tenant=t1&q=1");
    assert!(
        asked[0].head.contains("x-soat-context-userid: u1") && asked[0].head.contains("x-own: a"),
        "{asked:?}"
    );
    let key = agents.outside.requests()[0]
        .head
        .contains("authorization: bearer sk-model-key");
    assert!(key, "the model gets its key");
    assert!(!asked[0].head.contains("sk-model-key"), "a tool does not");
}

#[test]
fn a_tool_that_refuses_shows_the_model_status_and_body() {
    let agents = Agents::serve();
    let refuse = agents.outside.url("/refuse");
    let plain = agents.outside.url("/plain");
    let one = agents.made(
        "/tools",
        &json!({"name": "refuse", "execute": {"url": refuse}}),
    );
    let two = agents.made(
        "/tools",
        &json!({"name": "plain", "execute": {"url": plain}}),
    );
    let agent = agents.agent("call refuse & plain\nsay ok", &[&one, &two], json!({}));
    assert_eq!(
        agents.generate(&agent, &json!({"prompt": "x"}))["status"],
        "completed"
    );
    let turns = agents.turns();
    let messages = turns[1]["messages"].as_array().expect("messages");
    let said: Vec<&str> = messages
        .iter()
        .filter(|it| it["role"] == "tool")
        .filter_map(|it| it["content"].as_str())
        .collect();
    assert!(
        said[0].contains("418") && said[0].contains("no tea here"),
        "{said:?}"
    );
    assert_eq!(said[1], "just text");
    // A direct call says the same.
    let failed = agents.post(&format!("/tools/{one}/call"), &json!({"input": {}}));
    assert_eq!(error(&failed), "502 TOOL_CALL_FAILED");
    assert_eq!(failed.json()["error"]["meta"]["status"], 418);
    let called = agents.post(&format!("/tools/{two}/call"), &json!({}));
    assert_eq!(called.json(), json!({"output": "just text"}));
}

#[test]
fn a_client_tool_pauses_and_resumes_over_a_killed_server() {
    let agents = Agents::serve();
    let tool = agents.client_tool("readFile");
    let agent = agents.agent(
        "call readFile {\"filePath\": \"a\"}\ncall readFile {\"filePath\": \"b\"}\nsay both read",
        &[&tool],
        json!({}),
    );
    let paused = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(paused["status"], "requires_action");
    assert_eq!(
        paused["required_action"]["tool_calls"],
        json!([{"id": "c0.0", "tool_call_id": "c0.0", "tool_name": "readFile", "args": {"filePath": "a"}}])
    );
    let id = paused["id"].as_str().expect("an id").to_owned();
    let agents = agents.restart();
    let again = agents.get(&format!("/agents/generations/{id}")).json();
    assert_eq!(
        (&again["status"], &again["stop_reason"]),
        (&json!("requires_action"), &Value::Null)
    );
    for wrong in [
        json!({"tool_outputs": []}),
        json!({"tool_outputs": [{"tool_call_id": "other", "output": "x"}]}),
        json!({"tool_outputs": "x"}),
    ] {
        assert_eq!(
            error(&agents.submit(&agent, &paused, &wrong)),
            "400 VALIDATION_FAILED"
        );
    }
    let first = json!({"tool_outputs": [{"tool_call_id": "c0.0", "output": {"text": "A"}}]});
    let second = agents.submit(&agent, &paused, &first).json();
    assert_eq!(
        second["required_action"]["tool_calls"][0]["args"],
        json!({"filePath": "b"})
    );
    assert_eq!(
        error(&agents.submit(&agent, &paused, &first)),
        "400 VALIDATION_FAILED"
    );
    let last = json!({"tool_outputs": [{"tool_call_id": "c1.0", "output": "B"}]});
    let done = agents.submit(&agent, &paused, &last).json();
    assert_eq!(
        (&done["status"], &done["text"]),
        (&json!("completed"), &json!("both read"))
    );
    assert_eq!(
        error(&agents.submit(&agent, &paused, &last)),
        "409 CONFLICT"
    );
    // Each turn was requested once, and has the outputs.
    let turns = agents.turns();
    assert_eq!(turns.len(), 3);
    let messages = turns[2]["messages"].as_array().expect("messages");
    let outputs: Vec<&Value> = messages
        .iter()
        .filter(|it| it["role"] == "tool")
        .map(|it| &it["content"])
        .collect();
    assert_eq!(outputs, [&json!("{\"text\":\"A\"}"), &json!("B")]);
}

#[test]
fn a_trace_has_the_steps_of_its_generation() {
    let agents = Agents::serve();
    let (client, http) = (agents.client_tool("ask"), agents.http_tool("lookup"));
    let agent = agents.agent(
        "call lookup {\"a\": 1} & ask {\"b\": 2}\nsay done",
        &[&client, &http],
        json!({}),
    );
    let paused = agents.generate(&agent, &json!({"prompt": "x"}));
    let done = agents
        .submit(
            &agent,
            &paused,
            &json!({"tool_outputs": [{"tool_call_id": "c0.1", "output": "yes"}]}),
        )
        .json();
    assert_eq!(done["status"], "completed");
    let id = done["trace_id"].as_str().expect("an id");
    let trace = agents.get(&format!("/traces/{id}")).json();
    assert_eq!(
        (
            &trace["step_count"],
            &trace["parent_trace_id"],
            &trace["root_trace_id"]
        ),
        (&json!(2), &Value::Null, &Value::Null)
    );
    let calls = &trace["steps"][0]["tool_calls"];
    assert_eq!(
        (
            &calls[0]["tool_name"],
            &calls[0]["args"],
            &calls[0]["status"]
        ),
        (&json!("lookup"), &json!({"a": 1}), &json!("done"))
    );
    assert_eq!(
        (&calls[1]["tool_name"], &calls[1]["result"]),
        (&json!("ask"), &json!("yes"))
    );
    assert_eq!(
        agents.get(&format!("/traces/{id}/tree")).json()["children"],
        json!([])
    );
    let generations = agents.get(&format!("/traces/{id}/generations")).json();
    assert_eq!(generations["generation_ids"], json!([done["id"]]));
    let list = agents.get("/traces?limit=1").json();
    assert_eq!(
        (&list["total"], &list["data"][0]["id"]),
        (&json!(1), &json!(id))
    );
}

#[test]
fn generations_are_listed_by_agent_state_and_page() {
    let agents = Agents::serve();
    let tool = agents.client_tool("ask");
    let (one, two) = (
        agents.agent("say a", &[], json!({})),
        agents.agent("call ask", &[&tool], json!({})),
    );
    for _ in 0..2 {
        agents.generate(&one, &json!({"prompt": "x"}));
    }
    let paused = agents.generate(&two, &json!({"prompt": "x"}));
    let list = |query: &str| agents.get(&format!("/agents/generations{query}")).json();
    assert_eq!(list("")["total"], 3);
    assert_eq!(list(&format!("?agent_id={one}"))["total"], 2);
    let waiting = list("?status=requires_action");
    assert_eq!(
        (&waiting["total"], &waiting["data"][0]["id"]),
        (&json!(1), &paused["id"])
    );
    let page = list("?limit=1&offset=1");
    assert_eq!(
        (
            page["data"].as_array().map(Vec::len),
            &page["total"],
            &page["offset"]
        ),
        (Some(1), &json!(3), &json!(1))
    );
    let record = &list("?status=completed")["data"][0];
    assert_eq!(
        (&record["started_by"], &record["initiator_generation_id"]),
        (&json!({"type": "api", "id": "owner"}), &Value::Null)
    );
    assert!(
        record["completed_at"].is_string() && record["last_activity_at"].is_string(),
        "{record}"
    );
    assert_eq!(agents.get("/agents/generations?status=gone").status, 400);
}

#[test]
fn a_generation_that_fails_says_why_and_a_bad_request_makes_none() {
    let agents = Agents::serve();
    let agent = agents.agent("say hi", &[], json!({}));
    for body in [
        json!({}),
        json!({"prompt": "x", "trace_id": "t"}),
        json!({"prompt": "x", "max_call_depth": 11}),
        json!({"messages": [{"role": "tool", "content": "x"}]}),
        json!({"prompt": "x", "active_tool_ids": ["tool_gone"]}),
    ] {
        let refused = agents.post(&format!("/agents/{agent}/generate"), &body);
        assert_eq!(error(&refused), "400 VALIDATION_FAILED", "{body}");
    }
    for (context, expected) in [
        (json!({"a b": "x"}), "400 INVALID_TOOL_CONTEXT_KEY"),
        (json!({"a": "1", "A": "2"}), "400 INVALID_TOOL_CONTEXT_KEY"),
        (json!({"a": 1}), "400 VALIDATION_FAILED"),
    ] {
        let body = json!({"prompt": "x", "tool_context": context});
        assert_eq!(
            error(&agents.post(&format!("/agents/{agent}/generate"), &body)),
            expected
        );
    }
    assert_eq!(agents.get("/agents/generations").json()["total"], 0);
    assert!(agents.turns().is_empty());
    let limited = agents.generate(&agent, &json!({"prompt": "x", "max_call_depth": 0}));
    assert_eq!(
        (&limited["status"], &limited["stop_reason"]),
        (&json!("completed"), &json!("depth_limit"))
    );
    assert!(agents.turns().is_empty(), "no model was called");
    let dead = agents.made(
        "/ai-providers",
        &json!({"name": "dead", "provider": "openai", "default_model": "m", "base_url": agents.outside.url("/refuse?")}),
    );
    let broken = agents.made("/agents", &json!({"ai_provider_id": dead}));
    let failed = agents.generate(&broken, &json!({"prompt": "x"}));
    assert_eq!(
        (&failed["status"], &failed["output"], &failed["stop_reason"]),
        (&json!("failed"), &Value::Null, &Value::Null)
    );
    assert!(failed["error"]["message"].is_string(), "{failed}");
}

#[test]
fn records_in_use_stay_and_other_projects_are_out_of_reach() {
    let agents = Agents::serve();
    let tool = agents.client_tool("ask");
    let agent = agents.agent("say hi", &[&tool], json!({}));
    assert_eq!(
        error(&agents.send("DELETE", &format!("/tools/{tool}"), &Value::Null)),
        "409 CONFLICT"
    );
    let provider = format!("/ai-providers/{}", agents.provider);
    assert_eq!(
        error(&agents.send("DELETE", &provider, &Value::Null)),
        "409 CONFLICT"
    );
    let other = agents.made("/projects", &json!({"name": "other"}));
    let foreign = agents.post(
        "/agents",
        &json!({"ai_provider_id": agents.provider, "project_id": other}),
    );
    assert_eq!(error(&foreign), "404 RESOURCE_NOT_FOUND");
    assert_eq!(
        agents.get(&format!("/agents?project_id={other}")).json(),
        json!([])
    );
    let refused = agents.post(
        &format!("/agents/{agent}/generate"),
        &json!({"prompt": "x", "project_id": other}),
    );
    assert_eq!(error(&refused), "400 VALIDATION_FAILED");
    let secrets = agents.get("/secrets").body;
    assert!(!secrets.contains("sk-model-key"), "{secrets}");
}

#[test]
fn a_system_message_replaces_the_instructions_for_operators_only() {
    let agents = Agents::serve();
    let agent = agents.agent("say stored", &[], json!({"max_context_messages": 2}));
    let body = json!({"messages": [
        {"role": "system", "content": "say replaced"},
        {"role": "user", "content": "one"}, {"role": "user", "content": "two"}], "prompt": "three"});
    assert_eq!(agents.generate(&agent, &body)["text"], "replaced");
    let sent = agents.turns()[0]["messages"].clone();
    assert_eq!(
        sent,
        json!([{"role": "system", "content": "say replaced"}, {"role": "user", "content": "two"}, {"role": "user", "content": "three"}])
    );
    let args = [
        "tokens", "create", "--name", "runner", "--scope", "run", "--scope", "read",
    ];
    let token = agents.scratch.run(&args).ok().trim_end().to_owned();
    let path = format!("/api/v1/agents/{agent}/generate");
    assert_eq!(
        error(&agents.api.post_as(&token, &path, &body)),
        "403 FORBIDDEN"
    );
    let plain = agents.api.post_as(&token, &path, &json!({"prompt": "x"}));
    assert_eq!(plain.json()["text"], "stored");
}

#[test]
fn a_streamed_generation_ends_with_done_and_a_failed_one_does_not() {
    let agents = Agents::serve();
    let agent = agents.agent("say streamed text", &[], json!({}));
    let path = format!("/agents/{agent}/generate");
    let streamed = agents.post(&path, &json!({"prompt": "x", "stream": true}));
    let frames: Vec<&str> = streamed
        .body
        .lines()
        .filter_map(|line| line.trim().strip_prefix("data: "))
        .collect();
    assert_eq!(frames.last(), Some(&"[DONE]"), "{streamed:?}");
    let text: String = frames
        .iter()
        .filter_map(|frame| serde_json::from_str::<Value>(frame).ok())
        .filter_map(|frame| {
            frame["choices"][0]["delta"]["content"]
                .as_str()
                .map(str::to_owned)
        })
        .collect();
    assert_eq!(text, "streamed text");
    let dead = agents.made(
        "/ai-providers",
        &json!({"name": "dead", "provider": "openai", "default_model": "m", "base_url": agents.outside.url("/refuse?")}),
    );
    let broken = agents.made("/agents", &json!({"ai_provider_id": dead}));
    let failed = agents.post(
        &format!("/agents/{broken}/generate"),
        &json!({"prompt": "x", "stream": true}),
    );
    assert!(
        failed.body.contains("\"error\"") && !failed.body.contains("[DONE]"),
        "{failed:?}"
    );
}

#[test]
fn the_document_lists_the_tools_that_a_turn_offers() {
    let agents = Agents::serve();
    let document = agents.get("/agents/openapi.json").json();
    let generate = &document["paths"]["/api/v1/agents/{agent_id}/generate"]["post"];
    assert_eq!(generate["operationId"], "createAgentGeneration");
    let tool = agents.client_tool("ask");
    let agent = agents.agent("say hi", &[&tool], json!({}));
    agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(offered(&agents.turns()[0]), ["ask"]);
}

#[test]
fn an_answer_with_a_schema_is_an_object() {
    let agents = Agents::serve();
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let agent = agents.agent("say {\"n\": 7}", &[], json!({"output_schema": schema}));
    let done = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(
        (&done["status"], &done["output"]["object"]),
        (&json!("completed"), &json!({"n": 7})),
        "{done}"
    );
    let path = format!("/agents/{agent}/generate");
    let streamed = agents.post(&path, &json!({"prompt": "x", "stream": true}));
    assert_eq!(error(&streamed), "400 VALIDATION_FAILED");
    let wrong = agents.agent(
        "say {\"n\": \"seven\"}",
        &[],
        json!({"output_schema": schema}),
    );
    assert_eq!(
        agents.generate(&wrong, &json!({"prompt": "x"}))["status"],
        "failed"
    );
    let refused = json!({"ai_provider_id": agents.provider, "output_schema": {"type": 7}});
    assert_eq!(
        error(&agents.post("/agents", &refused)),
        "400 VALIDATION_FAILED"
    );
}
