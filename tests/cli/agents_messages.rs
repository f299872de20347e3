//! Outputs of tools of each type as messages of the agents API.

use serde_json::{Value, json};

use crate::agents_api::{Agents, error};

/// A request whose first message is the output of a tool.
fn asking(tool: &str, more: Value) -> Value {
    let mut content = json!({"type": "tool_output", "tool_id": tool});
    if let (Value::Object(content), Value::Object(more)) = (&mut content, more) {
        content.extend(more);
    }
    json!({"messages": [{"role": "user", "content": content}], "prompt": "Summarize.", "tool_context": {"userId": "u1"}})
}

/// Returns the first message of the user in a turn.
fn asked(turn: &Value) -> String {
    let messages = turn["messages"].as_array().expect("messages");
    let first = messages.iter().find(|it| it["role"] == "user");
    first
        .and_then(|it| it["content"].as_str())
        .expect("a text")
        .to_owned()
}

#[test]
fn the_output_of_a_server_s_tool_is_a_message() {
    let agents = Agents::serve();
    let server = json!({"mcp": {"url": agents.outside.url("/mcp"), "headers": {"Authorization": "Bearer t0ken-of-server", "x-soat-context-userid": "own"}},
                        "preset_parameters": {"repo": "acme/app"}});
    let tool = agents.mcp_tool("github", "/mcp", server);
    // Whether the agent has the tool makes no difference.
    for tools in [&[][..], &[&*tool][..]] {
        let agent = agents.agent("say done", tools, json!({}));
        let given = json!({"action": "create_issue", "input": {"title": "Bug", "repo": "other"}});
        let done = agents.generate(&agent, &asking(&tool, given.clone()));
        assert_eq!(done["text"], "done", "{done}");
        let whole = asked(agents.turns().last().expect("a turn"));
        assert_eq!(whole, "{\"title\":\"Bug\",\"repo\":\"acme/app\"}");
        let mut picked = given;
        picked["output_path"] = json!(".repo # a part");
        agents.generate(&agent, &asking(&tool, picked));
        assert_eq!(asked(agents.turns().last().expect("a turn")), "acme/app");
    }
    let call = &agents.mcp_requests("tools/call")[0];
    assert_eq!(
        (
            call.header("authorization"),
            call.header("x-soat-context-userid")
        ),
        (Some("Bearer t0ken-of-server"), Some("u1"))
    );
    let agent = agents.agent("say done", &[], json!({}));
    let at = format!("/agents/{agent}/generate");
    let missing = agents.post(&at, &asking(&tool, json!({"input": {}})));
    assert_eq!(error(&missing), "400 VALIDATION_FAILED");
    // A call that fails costs no turn of the model.
    let before = agents.turns().len();
    let broken = agents.mcp_tool("broken", "/mcp/broken", json!({}));
    for (tool, action) in [(&tool, "gone"), (&broken, "find")] {
        let failed = agents.generate(&agent, &asking(tool, json!({"action": action})));
        assert_eq!(failed["status"], "failed", "{failed}");
    }
    assert_eq!(agents.turns().len(), before);
}

#[test]
fn the_output_of_a_platform_action_is_a_message_within_the_boundary() {
    let agents = Agents::serve();
    let document = agents.made(
        "/documents",
        &json!({"content": "Revenue was 4.2M.", "title": "Q1"}),
    );
    let id = json!({"document_id": document});
    for kind in ["soat", "builtin"] {
        let tool = json!({"name": "docs", "type": kind, "actions": ["get-document", "delete-document"],
                          "preset_parameters": id});
        let tool = agents.made("/tools", &tool);
        let boundary =
            json!({"statement": [{"effect": "Allow", "action": ["documents:GetDocument"]}]});
        let agent = agents.agent("say done", &[], json!({"boundary_policy": boundary}));
        let given = json!({"action": "get-document", "output_path": ".content"});
        let done = agents.generate(&agent, &asking(&tool, given.clone()));
        assert_eq!(done["text"], "done", "{done}");
        let turns = agents.turns();
        assert_eq!(asked(turns.last().expect("a turn")), "Revenue was 4.2M.");
        let denied = json!({"action": "delete-document"});
        let failed = agents.generate(&agent, &asking(&tool, denied));
        assert_eq!(failed["status"], "failed", "{failed}");
        assert!(
            failed["error"]["message"]
                .as_str()
                .is_some_and(|it| it.contains("boundary policy")),
            "{failed}"
        );
        assert_eq!(agents.turns().len(), turns.len());
        let at = format!("/agents/{agent}/generate");
        for more in [
            json!({}),
            json!({"action": "list-documents"}),
            json!({"action": "get-document", "input": {"colour": "red"}}),
        ] {
            assert_eq!(
                error(&agents.post(&at, &asking(&tool, more.clone()))),
                "400 VALIDATION_FAILED",
                "{more}"
            );
        }
    }
    assert_eq!(agents.get(&format!("/documents/{document}")).status, 200);
}

#[test]
fn the_answer_of_another_agent_is_a_message() {
    let agents = Agents::serve();
    let other = agents.agent("say forty-two", &[], json!({}));
    let tool = json!({"name": "ask", "type": "soat", "actions": ["create-agent-generation"]});
    let tool = agents.made("/tools", &tool);
    let agent = agents.agent("say done", &[], json!({}));
    let given = json!({"action": "create-agent-generation", "input": {"agent_id": other, "prompt": "x"},
                       "output_path": ".content"});
    let done = agents.generate(&agent, &asking(&tool, given));
    assert_eq!(done["text"], "done", "{done}");
    assert_eq!(asked(&agents.turns()[1]), "forty-two");
    let all = agents.get("/agents/generations").json();
    assert_eq!(all["total"], 2);
}
