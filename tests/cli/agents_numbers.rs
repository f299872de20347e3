//! Integers that 64 bits cannot hold: they are kept with all their digits or refused, on the way to a tool, to the model, and in records.

use serde_json::{Value, json};

use crate::agents_api::{Agents, answer, error};
use crate::api::Reply;
use crate::server::{Answer, Request, Server};

/// The least integer that does not fit.
const LARGE: &str = "18446744073709551616";
/// What the tools below `/large` give.
const DATA: &str = r#"{"id":18446744073709551616,"of":[-9223372036854775809]}"#;

/// Sends a body as it is written here.
fn send(agents: &Agents, (method, path): (&str, &str), body: &str) -> Reply {
    let headers = [
        &*format!("authorization: Bearer {}", agents.api.token),
        "content-type: application/json",
    ];
    let what = format!("{method} /api/v1{path}");
    agents.api.request(&what, &headers, body)
}

fn outside(request: &Request, structured: &str) -> Answer {
    if request.path == "/large" {
        return Answer::Json(DATA.to_owned());
    }
    let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
    if message["method"] == "tools/call" {
        let (id, text) = (&message["id"], json!(DATA));
        let content = match structured {
            "" => "[]".to_owned(),
            _ => format!(r#"[{{"type":"text","text":{text}}}]"#),
        };
        return Answer::Json(format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":{content},"structuredContent":{DATA}}}}}"#
        ));
    }
    answer(request)
}

fn serve(structured: &'static str) -> Agents {
    Agents::serve_beside(Server::start(move |request, _| {
        outside(request, structured)
    }))
}

#[test]
fn bodies_with_larger_integers_are_refused() {
    let agents = Agents::serve();
    let tool = agents.http_tool("lookup");
    let client = agents.client_tool("ask");
    let agent = agents.agent("call ask {\"id\": 1}\nsay done", &[&client], json!({}));
    let waiting = agents.generate(&agent, &json!({"prompt": "x"}));
    let generation = waiting["id"].as_str().expect("an id");
    let call = &waiting["required_action"]["tool_calls"][0]["tool_call_id"];
    let output = |number: &str| {
        format!(r#"{{"tool_outputs":[{{"tool_call_id":{call},"output":{{"id":{number}}}}}]}}"#)
    };
    let outputs = format!("/agents/{agent}/generate/{generation}/tool-outputs");
    let sessions = format!("/agents/{agent}/sessions");
    let session = agents.made(&sessions, &json!({}));
    for (method, path, body) in [
        (
            "POST",
            format!("/tools/{tool}/call"),
            format!(r#"{{"input":{{"id":{LARGE}}}}}"#),
        ),
        (
            "PATCH",
            format!("/tools/{tool}"),
            r#"{"preset_parameters":{"id":-9223372036854775809}}"#.to_owned(),
        ),
        ("POST", outputs.clone(), output(LARGE)),
        (
            "POST",
            format!("/agents/{agent}/generate"),
            format!(r#"{{"prompt":{LARGE}}}"#),
        ),
        (
            "POST",
            format!("{sessions}/{session}/messages"),
            format!(r#"{{"message":"x","tool_context":{{"id":{LARGE}}}}}"#),
        ),
    ] {
        let refused = send(&agents, (method, &path), &body);
        assert_eq!(
            error(&refused),
            "400 VALIDATION_FAILED",
            "{path}: {refused:?}"
        );
        let message = refused.json()["error"]["message"]
            .as_str()
            .map(str::to_owned);
        let message = message.unwrap_or_default();
        assert!(
            message.contains("which 64 bits cannot hold; send it as a string"),
            "{message}"
        );
    }
    assert_eq!(agents.tool_requests().len(), 0);
    // The largest that fits reaches the model as it is.
    let done = send(&agents, ("POST", &outputs), &output("18446744073709551615"));
    assert_eq!(done.json()["status"], "completed", "{done:?}");
    let sent = agents.turns()[1]["messages"].to_string();
    assert!(sent.contains("18446744073709551615"), "{sent}");
}

#[test]
fn a_call_of_the_model_with_a_larger_integer_is_refused_and_kept_in_the_record() {
    let agents = Agents::serve();
    let http = agents.http_tool("lookup");
    let client = agents.client_tool("ask");
    let wrong = format!("{{\"id\": {LARGE}}}");
    let script = format!(
        "call lookup {wrong} & call ask {wrong}\ncall lookup {{\"id\": \"{LARGE}\"}}\nsay done"
    );
    let agent = agents.agent(&script, &[&http, &client], json!({}));
    let done = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(done["text"], "done", "{done}");
    let turns = agents.turns();
    let messages = turns[1]["messages"].as_array().expect("messages");
    let refused: Vec<&str> = messages
        .iter()
        .filter(|it| it["role"] == "tool")
        .filter_map(|it| it["content"].as_str())
        .collect();
    assert_eq!(refused.len(), 2, "{messages:?}");
    for text in refused {
        assert!(
            text.contains("is larger than 64 bits; write it as a string"),
            "{text}"
        );
    }
    // The model sees its own calls.
    let calls = messages.iter().find(|it| it["tool_calls"].is_array());
    let calls = calls.expect("calls")["tool_calls"].to_string();
    assert_eq!(calls.matches(LARGE).count(), 2, "{calls}");
    let sent: Vec<String> = agents
        .tool_requests()
        .into_iter()
        .map(|it| it.body)
        .collect();
    assert_eq!(sent, [format!("{{\"id\":\"{LARGE}\"}}")]);
    let trace = done["trace_id"].as_str().expect("an id");
    let trace = agents.get(&format!("/traces/{trace}")).body;
    assert!(trace.contains(&format!("\"id\":{LARGE}}}")), "{trace}");
    assert!(!trace.contains("1.8446"), "{trace}");
}

#[test]
fn outputs_of_tools_keep_their_digits() {
    let agents = serve("with text");
    let execute = json!({"url": agents.outside.url("/large"), "method": "GET"});
    let http = agents.made("/tools", &json!({"name": "large", "execute": execute}));
    let server = agents.mcp_tool("github", "/mcp", json!({}));
    let agent = agents.agent(
        "call large & call github_find\nsay done",
        &[&http, &server],
        json!({}),
    );
    let done = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(done["text"], "done", "{done}");
    let turns = agents.turns();
    let messages = turns[1]["messages"].as_array().expect("messages");
    let given: Vec<&str> = messages
        .iter()
        .filter(|it| it["role"] == "tool")
        .filter_map(|it| it["content"].as_str())
        .collect();
    assert_eq!(given, [DATA, DATA]);
    for body in [
        json!({"tool": http}),
        json!({"tool": server, "action": "find"}),
    ] {
        let id = body["tool"].as_str().expect("an id");
        let call = match body.get("action") {
            Some(action) => json!({"action": action}),
            None => json!({}),
        };
        let called = agents.post(&format!("/tools/{id}/call"), &call);
        assert_eq!(called.body, DATA, "{called:?}");
    }
    // All of an output, and a part of it.
    let source = |path: Value| {
        let content = json!({"type": "tool_output", "tool_id": http, "output_path": path});
        agents.generate(
            &agent,
            &json!({"messages": [{"role": "user", "content": content}]}),
        )
    };
    assert_eq!(source(json!("."))["text"], "done");
    let asked = agents.turns();
    let first = asked
        .iter()
        .rev()
        .find(|it| it["messages"].as_array().is_some_and(|it| it.len() == 2));
    let first = first.expect("a first turn")["messages"][1]["content"].clone();
    assert_eq!(first, DATA);
    let failed = source(json!(".id"));
    assert_eq!(failed["status"], "failed", "{failed}");
    let message = failed["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("larger than 64 bits"), "{failed}");
}

#[test]
fn a_structured_answer_without_the_digits_is_an_error() {
    let agents = serve("");
    let server = agents.mcp_tool("github", "/mcp", json!({}));
    let called = agents.post(&format!("/tools/{server}/call"), &json!({"action": "find"}));
    assert_eq!(error(&called), "502 TOOL_CALL_FAILED");
    assert!(called.body.contains("more than 64 bits"), "{called:?}");
}
