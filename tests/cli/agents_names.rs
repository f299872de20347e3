//! Names, paths and messages that the agents API refuses, and the words of its errors.

use serde_json::json;

use crate::agents_api::{Agents, error};

#[test]
fn blank_names_and_control_characters_are_refused() {
    let agents = Agents::serve();
    let provider = agents.provider.clone();
    for name in ["", "  ", "a\u{0}b", "a\nb"] {
        for (path, body) in [
            ("/agents", json!({"ai_provider_id": provider, "name": name})),
            ("/actors", json!({"name": name})),
            ("/actors", json!({"name": "Ada", "external_id": name})),
            ("/documents", json!({"content": "x", "path": name})),
            ("/documents", json!({"content": "x", "filename": name})),
            ("/memories", json!({"name": name})),
            (
                "/policies",
                json!({"name": name, "document": {"statement": []}}),
            ),
            ("/projects", json!({"name": name})),
            ("/secrets", json!({"name": name, "value": "sk-something"})),
            ("/tools", json!({"name": name, "type": "client"})),
            ("/api-keys", json!({"name": name})),
        ] {
            let refused = agents.post(path, &body);
            assert_eq!(error(&refused), "400 VALIDATION_FAILED", "{path} {name:?}");
        }
    }
    let document = agents.made("/documents", &json!({"content": "x", "path": "/a.txt"}));
    let path = format!("/documents/{document}");
    let refused = agents.send("PATCH", &path, &json!({"path": ""}));
    assert_eq!(error(&refused), "400 VALIDATION_FAILED");
    let removed = agents.send("PATCH", &path, &json!({"path": null}));
    assert_eq!(
        (removed.status, removed.json()["path"].is_null()),
        (200, true)
    );
}

#[test]
fn a_generation_needs_a_message_of_a_user() {
    let agents = Agents::serve();
    let agent = agents.agent("say hi", &[], json!({}));
    let path = format!("/agents/{agent}/generate");
    for messages in [
        json!([]),
        json!([{"role": "assistant", "content": "hello"}]),
        json!([{"role": "system", "content": "say x"}, {"role": "assistant", "content": "hello"}]),
    ] {
        let refused = agents.post(&path, &json!({"messages": messages}));
        assert_eq!(error(&refused), "400 VALIDATION_FAILED", "{messages}");
    }
    // A client on a command line cannot tell a number from a text.
    let taken = agents.generate(&agent, &json!({"prompt": 5}));
    assert_eq!(taken["text"], "hi");
    assert_eq!(agents.turns()[0]["messages"][1]["content"], "5");
}

#[test]
fn errors_name_tools_by_their_ids_and_fields_of_the_api() {
    let agents = Agents::serve();
    let broken = agents.mcp_tool("fake", "/mcp/broken", json!({}));
    let more = json!({"tool_choice": "required"});
    let agent = agents.agent("say hi", &[&broken], more);
    let failed = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(failed["status"], "failed", "{failed}");
    let trace = failed["trace_id"].as_str().expect("an id");
    let trace = agents.get(&format!("/traces/{trace}")).json();
    let called = agents.post(
        &format!("/tools/{broken}/call"),
        &json!({"action": "find", "input": {}}),
    );
    assert_eq!(error(&called), "502 TOOL_CALL_FAILED");
    let text = agents.agent(
        "say hi",
        &[&agents.client_tool("ask")],
        json!({"tool_choice": "required"}),
    );
    let silent = agents.generate(&text, &json!({"prompt": "x"}));
    assert_eq!(silent["error"]["code"], "TOOL_CALL_MISSING", "{silent}");
    for shown in [
        failed.to_string(),
        trace.to_string(),
        called.body,
        silent.to_string(),
    ] {
        for internal in [":mcp-", "agents/tool-", ":tool-choice", ":mcp-tools", "`:"] {
            assert!(!shown.contains(internal), "{internal}: {shown}");
        }
    }
}
