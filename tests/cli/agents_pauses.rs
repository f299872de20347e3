//! Client tools of the agents API: which calls are handed out, which outputs are taken, and what may be deleted in the meantime.

use serde_json::{Value, json};

use crate::agents_api::{Agents, error};

/// Creates a client tool that takes a path, and perhaps a number of lines.
fn reader(agents: &Agents) -> String {
    let parameters = json!({"type": "object", "required": ["filePath"], "additionalProperties": false,
                            "properties": {"filePath": {"type": "string"}, "lines": {"type": "integer"}}});
    agents.made(
        "/tools",
        &json!({"name": "read", "type": "client", "parameters": parameters, "preset_parameters": {"root": "/srv"}}),
    )
}

/// Returns what the model got as results of its calls.
fn results(agents: &Agents) -> Vec<String> {
    let turns = agents.turns();
    let last = turns.last().expect("a turn");
    let messages = last["messages"].as_array().expect("messages").iter();
    let results = messages.filter(|it| it["role"] == "tool");
    results.map(|it| it["content"].to_string()).collect()
}

#[test]
fn wrong_arguments_of_a_client_tool_are_returned_to_the_model() {
    for wrong in [
        r#"{"filePath": 5}"#,
        r#"{"filePath": "#,
        r#"{"file_path": "a"}"#,
        r#"{"filePath": "a", "extra": 1}"#,
    ] {
        let agents = Agents::serve();
        let tool = reader(&agents);
        let script = format!(
            "call read {wrong}\ncall read {{\"filePath\": \"a.txt\", \"lines\": \"7\"}}\nsay done"
        );
        let agent = agents.agent(&script, &[&tool], json!({}));
        let paused = agents.generate(&agent, &json!({"prompt": "x"}));
        assert_eq!(paused["status"], "requires_action", "{wrong}: {paused}");
        let calls = &paused["required_action"]["tool_calls"];
        assert_eq!(
            calls,
            &json!([{"id": "c1.0", "tool_call_id": "c1.0", "tool_name": "read",
                     "args": {"filePath": "a.txt", "lines": 7, "root": "/srv"}}]),
            "{wrong}"
        );
        let told = results(&agents);
        assert!(
            told[0].contains("wrong arguments of `read`"),
            "{wrong}: {told:?}"
        );
    }
}

#[test]
fn a_wrong_call_beside_a_right_one_is_not_handed_out() {
    let agents = Agents::serve();
    let tool = reader(&agents);
    let script = "call read {\"filePath\": 1} & call read {\"filePath\": \"b\"}\nsay done";
    let agent = agents.agent(script, &[&tool], json!({}));
    let paused = agents.generate(&agent, &json!({"prompt": "x"}));
    let calls = paused["required_action"]["tool_calls"]
        .as_array()
        .expect("calls");
    assert_eq!(calls.len(), 1, "{paused}");
    assert_eq!(calls[0]["tool_call_id"], "c0.1");
    let outputs = json!({"tool_outputs": [{"tool_call_id": "c0.1", "output": "text of b"}]});
    let done = agents.submit(&agent, &paused, &outputs).json();
    assert_eq!(done["text"], "done", "{done}");
    let told = results(&agents);
    assert!(
        told[0].contains("wrong arguments") && told[1].contains("text of b"),
        "{told:?}"
    );
}

#[test]
fn outputs_that_are_not_complete_leave_the_pause_open() {
    let agents = Agents::serve();
    let tool = agents.client_tool("ask");
    let agent = agents.agent("call ask & call ask\nsay done", &[&tool], json!({}));
    let paused = agents.generate(&agent, &json!({"prompt": "x"}));
    let one = json!({"tool_call_id": "c0.0", "output": 1});
    for wrong in [
        json!({}),
        json!({"tool_outputs": "all"}),
        json!({"tool_outputs": [one]}),
        json!({"tool_outputs": [one, {"tool_call_id": "c0.1"}]}),
        json!({"tool_outputs": [one, {"tool_call_id": "c0.1", "output": null}]}),
        json!({"tool_outputs": [one, {"output": 2}]}),
        json!({"tool_outputs": [one, "c0.1"]}),
        json!({"tool_outputs": [one, one]}),
        json!({"tool_outputs": [one, {"tool_call_id": "other", "output": 2}]}),
        json!([one]),
    ] {
        let refused = agents.submit(&agent, &paused, &wrong);
        assert_eq!(error(&refused), "400 VALIDATION_FAILED", "{wrong}");
    }
    let id = paused["id"].as_str().expect("an id");
    let shown = agents.get(&format!("/agents/generations/{id}")).json();
    assert_eq!(shown["status"], "requires_action", "{shown}");
    let outputs = json!({"tool_outputs": [one, {"tool_call_id": "c0.1", "output": ""}]});
    let done = agents.submit(&agent, &paused, &outputs).json();
    assert_eq!(
        (&done["status"], &done["text"]),
        (&json!("completed"), &json!("done"))
    );
    assert_eq!(
        error(&agents.submit(&agent, &paused, &outputs)),
        "409 CONFLICT"
    );
}

/// Deletes a record.
fn delete(agents: &Agents, path: &str) -> (u16, String) {
    let deleted = agents.send("DELETE", path, &Value::Null);
    match deleted.status {
        204 => (204, String::new()),
        status => (status, deleted.json()["error"]["message"].to_string()),
    }
}

#[test]
fn what_a_paused_generation_needs_is_not_deleted() {
    let agents = Agents::serve();
    let ask = agents.client_tool("ask");
    let keyed = json!({"name": "lookup", "execute": {"url": agents.outside.url("/lookup"),
                       "headers": {"Authorization": "Bearer tool-key-1"}}});
    let keyed = agents.made("/tools", &keyed);
    let secret = agents.made(
        "/secrets",
        &json!({"name": "second", "value": "sk-second-key"}),
    );
    let provider = agents.made(
        "/ai-providers",
        &json!({"name": "second", "provider": "openai", "default_model": "fake-1",
                "base_url": agents.outside.url("/v1"), "secret_id": secret}),
    );
    let more = json!({"ai_provider_id": provider});
    let agent = agents.agent("call ask\ncall lookup\nsay done", &[&ask, &keyed], more);
    let session = agents.made(&format!("/agents/{agent}/sessions"), &json!({}));
    let paused = agents.generate(&agent, &json!({"prompt": "x"}));
    let id = paused["id"].as_str().expect("an id");

    let (status, message) = delete(&agents, &format!("/agents/{agent}"));
    assert!(status == 409 && message.contains(id), "{status} {message}");
    // The agent no longer refers to them, but the generation does.
    let changed = json!({"tool_ids": [], "ai_provider_id": agents.provider});
    let changed = agents.send("PUT", &format!("/agents/{agent}"), &changed);
    assert_eq!(changed.status, 200, "{changed:?}");
    for path in [
        format!("/tools/{keyed}"),
        format!("/ai-providers/{provider}"),
    ] {
        let (status, message) = delete(&agents, &path);
        assert!(
            status == 409 && message.contains(id),
            "{path}: {status} {message}"
        );
    }
    assert_eq!(delete(&agents, &format!("/tools/{ask}")).0, 204);
    assert_eq!(
        delete(&agents, &format!("/agents/{agent}/sessions/{session}")).0,
        204
    );

    let outputs = json!({"tool_outputs": [{"tool_call_id": "c0.0", "output": 1}]});
    let done = agents.submit(&agent, &paused, &outputs).json();
    assert_eq!(
        (&done["status"], &done["text"]),
        (&json!("completed"), &json!("done"))
    );
    let sent = agents.tool_requests();
    assert!(
        sent[0]
            .head
            .to_lowercase()
            .contains("authorization: bearer tool-key-1")
    );
    for path in [
        format!("/tools/{keyed}"),
        format!("/ai-providers/{provider}"),
        format!("/secrets/{secret}"),
        format!("/agents/{agent}"),
    ] {
        assert_eq!(delete(&agents, &path), (204, String::new()), "{path}");
    }
}

#[test]
fn the_generation_of_a_deleted_session_can_be_finished() {
    let agents = Agents::serve();
    let ask = agents.client_tool("ask");
    let agent = agents.agent("call ask\nsay done", &[&ask], json!({}));
    let session = agents.made(&format!("/agents/{agent}/sessions"), &json!({}));
    let at = format!("/agents/{agent}/sessions/{session}");
    agents.post(&format!("{at}/messages"), &json!({"message": "hi"}));
    let mut paused = agents.post(&format!("{at}/generate"), &json!({})).json();
    assert_eq!(paused["status"], "requires_action", "{paused}");
    assert_eq!(delete(&agents, &at).0, 204);
    paused["id"] = paused["generation_id"].clone();
    let outputs = json!({"tool_outputs": [{"tool_call_id": "c0.0", "output": 1}]});
    let done = agents.submit(&agent, &paused, &outputs).json();
    assert_eq!(done["text"], "done", "{done}");
    assert_eq!(delete(&agents, &format!("/agents/{agent}")).0, 204);
}

#[test]
fn the_sessions_of_a_deleted_agent_are_deleted() {
    let agents = Agents::serve();
    let actor = agents.made("/actors", &json!({"name": "Ada"}));
    let agent = agents.agent("say hi", &[], json!({}));
    let path = format!("/agents/{agent}/sessions");
    let session = agents.made(&path, &json!({"actor_id": actor}));
    assert_eq!(delete(&agents, &format!("/agents/{agent}")).0, 204);
    let gone = agents.get(&format!("{path}/{session}"));
    assert_eq!(error(&gone), "404 RESOURCE_NOT_FOUND");
}

#[test]
fn presets_of_a_client_tool_are_for_the_client_only() {
    let agents = Agents::serve();
    let tool = reader(&agents);
    let agent = agents.agent(
        "call read {\"filePath\": \"b\", \"root\": \"mine\"}\nsay done",
        &[&tool],
        json!({}),
    );
    let paused = agents.generate(&agent, &json!({"prompt": "x"}));
    let call = &paused["required_action"]["tool_calls"][0];
    assert_eq!(call["args"], json!({"filePath": "b", "root": "/srv"}));
    let outputs = json!({"tool_outputs": [{"tool_call_id": "c0.0", "output": "text"}]});
    let done = agents.submit(&agent, &paused, &outputs).json();
    assert_eq!(done["text"], "done", "{done}");
    let told = agents.turns()[1].to_string();
    assert!(!told.contains("/srv") && told.contains("mine"), "{told}");
}

#[test]
fn a_paused_generation_keeps_the_tools_that_it_started_with() {
    let agents = Agents::serve();
    let ask = agents.client_tool("ask");
    let (old, new) = (agents.http_tool("old"), agents.http_tool("new"));
    let agent = agents.agent("call ask\ncall old\nsay done", &[&ask, &old], json!({}));
    let waiting = agents.generate(&agent, &json!({"prompt": "x"}));
    let changed = json!({"tool_ids": [new]});
    let changed = agents.send("PUT", &format!("/agents/{agent}"), &changed);
    assert_eq!(changed.status, 200, "{changed:?}");
    let call = &waiting["required_action"]["tool_calls"][0]["tool_call_id"];
    let submit = |more: Value| {
        let mut body = json!({"tool_outputs": [{"tool_call_id": call, "output": 1}]});
        if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
            body.extend(more);
        }
        agents.submit(&agent, &waiting, &body)
    };
    let choice = |name: &str| json!({"type": "tool", "tool_name": name});
    for wrong in [
        json!({"tool_choice": choice("new")}),
        json!({"active_tool_ids": [new]}),
        json!({"defaults": {"tool_choice": choice("new")}}),
    ] {
        assert_eq!(error(&submit(wrong)), "400 VALIDATION_FAILED");
    }
    let done = submit(json!({"tool_choice": choice("old"), "active_tool_ids": [old]}));
    assert_eq!(done.json()["text"], "done", "{done:?}");
}
