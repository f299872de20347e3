//! Features that the formats of Anthropic and Bedrock share in conversations with tools: ids of calls, moving cache
//! marks, and built-in tools of the provider.

use flowstone_steps::llm::call::{Call, Message, Role};
use serde_json::{Value as Json, json};

use crate::wire::{answering, ask, body, calling, events, reply, tool};
use crate::wire_bedrock::event;

const ANTHROPIC: &str = "anthropic";
const BEDROCK: &str = "bedrock";
const CLAUDE: &str = "eu.anthropic.claude-3-5-sonnet-20241022-v2:0";
const NOVA: &str = "amazon.nova-pro-v1:0";
const START: &str = r#"{"type":"message_start","message":{"id":"m","model":"c"}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

/// Returns the place of each cache mark in the messages of a call.
fn marks(call: &Call) -> Vec<String> {
    let body = body(ANTHROPIC, call);
    let mut marks = Vec::new();
    for (at, message) in body["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
    {
        for (idx, block) in message["content"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            if block.get("cache_control").is_some() {
                marks.push(format!("{at}.{idx} {}", block["type"].as_str().unwrap()));
            }
        }
    }
    marks
}

#[test]
fn cache_marks_move_with_the_conversation() {
    let mut call = ask("claude-sonnet-5-5", "Go.");
    call.tools = vec![tool("find")];
    assert!(marks(&call).is_empty());
    call.options.cache_system = true;
    assert_eq!(marks(&call), ["0.0 text"]);
    for (turn, expected) in [
        ["0.0 text", "2.1 tool_result"],
        ["2.1 tool_result", "4.1 tool_result"],
    ]
    .into_iter()
    .enumerate()
    {
        let ids = [format!("a{turn}"), format!("b{turn}")];
        let calls = [ids[0].as_str(), ids[1].as_str()].map(|id| (id, "find", "{}"));
        call.messages.push(calling(&calls));
        let results = ids.iter().map(|id| answering(id, None, "1"));
        call.messages.extend(results);
        assert_eq!(marks(&call), expected);
    }
    // A conversation is continued without tools, too; a single question is not.
    call.tools.clear();
    assert_eq!(marks(&call), ["2.1 tool_result", "4.1 tool_result"]);
    call.messages.truncate(1);
    assert!(marks(&call).is_empty());
}

#[test]
fn equal_and_missing_ids_of_calls_are_kept_apart() {
    let mut data = vec![START.to_string()];
    data.push(json!({"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "Hm.", "signature": "s"}}).to_string());
    for (at, id) in ["t", "t", ""].into_iter().enumerate() {
        data.push(json!({"type": "content_block_start", "index": at + 1, "content_block": {"type": "tool_use", "id": id, "name": "find", "input": {"n": at}}}).to_string());
    }
    data.push(r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#.to_string());
    data.push(STOP.to_string());
    let data: Vec<&str> = data.iter().map(String::as_str).collect();
    let reply = reply(ANTHROPIC, &events(&data));
    let ids: Vec<String> = reply.tool_calls.iter().map(|it| it.id.clone()).collect();
    assert!(ids[0] == "t" && ids[1].starts_with("made_") && ids[2].starts_with("made_"));
    assert_ne!(ids[1], ids[2]);
    let mut call = ask("claude-sonnet-5-5", "x");
    call.messages.push(Message {
        tool_calls: reply.tool_calls,
        opaque: reply.opaque,
        ..Message::empty(Role::Assistant)
    });
    let blocks = body(ANTHROPIC, &call)["messages"][1]["content"].clone();
    let sent: Vec<&str> = blocks.as_array().unwrap()[1..]
        .iter()
        .map(|it| it["id"].as_str().unwrap())
        .collect();
    assert_eq!(sent, ids);
}

#[test]
fn built_in_tools_are_sent_beside_the_tools_of_the_flow() {
    let mut call = ask("claude-sonnet-5-5", "x");
    call.tools = vec![tool("find")];
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    call.extra = vec![("tools".into(), json!([search]))];
    let tools = body(ANTHROPIC, &call)["tools"].clone();
    assert_eq!((&tools[0]["name"], &tools[1]), (&json!("find"), &search));
    call.tools.clear();
    assert_eq!(body(ANTHROPIC, &call)["tools"], json!([search]));
}

#[test]
fn equal_ids_of_calls_are_kept_apart_by_bedrock() {
    let start = |at: usize, id: &str| {
        let start = json!({"contentBlockIndex": at, "start": {"toolUse": {"toolUseId": id, "name": "find"}}});
        event("contentBlockStart", &start.to_string())
    };
    let bytes = [
        event(
            "contentBlockDelta",
            r#"{"contentBlockIndex":0,"delta":{"reasoningContent":{"signature":"s"}}}"#,
        ),
        start(1, "t"),
        start(2, "t"),
        event("messageStop", r#"{"stopReason":"tool_use"}"#),
        event("metadata", "{}"),
    ]
    .concat();
    let reply = reply(BEDROCK, &bytes);
    let ids: Vec<&str> = reply.tool_calls.iter().map(|it| it.id.as_str()).collect();
    assert!(ids[0] == "t" && ids[1].starts_with("made_"), "{ids:?}");
    let kept = reply.opaque.as_ref().expect("a signature").blocks.clone();
    assert_eq!(kept[2]["toolUse"]["toolUseId"], ids[1]);
}

#[test]
fn cache_marks_move_with_a_conversation_on_bedrock() {
    let marks = |model: &str| {
        let mut call = ask(model, "Go.");
        call.tools = vec![tool("find")];
        call.options.cache_system = true;
        for id in ["a", "b"] {
            call.messages.push(calling(&[(id, "find", "{}")]));
            call.messages.push(answering(id, None, "1"));
        }
        let body = body(BEDROCK, &call);
        let messages = body["messages"].as_array().unwrap().clone();
        let last = |message: &Json| message["content"].as_array()?.last().cloned();
        let marked =
            |message: &Json| last(message).is_some_and(|it| it.get("cachePoint").is_some());
        messages.iter().map(marked).collect::<Vec<_>>()
    };
    assert_eq!(marks(CLAUDE), [false, false, true, false, true]);
    assert_eq!(marks(NOVA), [false, false, true, false, true]);
    assert_eq!(marks("meta.llama3-1-70b-instruct-v1:0"), [false; 5]);
}

#[test]
fn built_in_tools_of_bedrock_are_sent_beside_the_tools_of_the_flow() {
    let mut call = ask(CLAUDE, "x");
    call.tools = vec![tool("find")];
    let other = json!({"systemTool": {"name": "nova_grounding"}});
    call.extra = vec![("toolConfig".into(), json!({"tools": [other]}))];
    let tools = body(BEDROCK, &call)["toolConfig"]["tools"].clone();
    assert_eq!(tools[0]["toolSpec"]["name"], "find");
    assert_eq!(tools[1], other);
}
