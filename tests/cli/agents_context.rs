//! Tool contexts of messages, and generations of sessions whose start is refused.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agents_api::{Agents, error};

/// Creates a session, and returns the beginning of its addresses.
fn session(agents: &Agents, agent: &str, body: &Value) -> String {
    let id = agents.made(&format!("/agents/{agent}/sessions"), body);
    format!("/agents/{agent}/sessions/{id}")
}

/// Returns the header of the context that the last call of a tool had.
fn header(agents: &Agents, key: &str) -> Option<String> {
    let calls = agents.tool_requests();
    let call = calls.last()?;
    call.header(&format!("x-soat-context-{key}"))
        .map(str::to_owned)
}

#[test]
fn a_context_that_contradicts_the_session_is_refused_with_the_message() {
    let agents = Agents::serve();
    let agent = agents.agent("say hi", &[], json!({}));
    for mut body in [
        json!({}),
        json!({"auto_generate": true}),
        json!({"auto_generate": true, "message_delay_seconds": 1}),
    ] {
        body["tool_context"] = json!({"userId": "1"});
        let at = session(&agents, &agent, &body);
        let refused = agents.post(
            &format!("{at}/messages"),
            &json!({"message": "x", "tool_context": {"userid": "2"}}),
        );
        assert_eq!(error(&refused), "400 INVALID_TOOL_CONTEXT_KEY", "{body}");
        let list = agents.get(&format!("{at}/messages")).json();
        assert_eq!(list["total"], 0, "it is not stored: {list}");
    }
}

#[test]
fn the_context_of_messages_is_that_of_the_generation_that_answers_them() {
    let agents = Agents::serve();
    let look = agents.http_tool("look");
    let agent = agents.agent("call look\ncall look\nsay hi", &[&look], json!({}));
    let at = session(&agents, &agent, &json!({"tool_context": {"tenant": "t"}}));
    for (message, context) in [
        ("a", json!({"userId": "1", "k": "a"})),
        ("b", json!({"USERID": "2"})),
    ] {
        let added = agents.post(
            &format!("{at}/messages"),
            &json!({"message": message, "tool_context": context}),
        );
        assert_eq!(added.status, 201, "{added:?}");
        assert!(added.json().get("tool_context").is_none(), "{added:?}");
    }
    agents.post(&format!("{at}/generate"), &json!({}));
    let found = ["tenant", "userid", "k"].map(|key| header(&agents, key));
    assert_eq!(found, ["t", "2", "a"].map(|it| Some(it.to_owned())));
    // The next generation answers other messages.
    agents.post(&format!("{at}/messages"), &json!({"message": "c"}));
    agents.post(&format!("{at}/generate"), &json!({}));
    assert_eq!(agents.tool_requests().len(), 3);
    let found = ["tenant", "userid", "k"].map(|key| header(&agents, key));
    assert_eq!(found, [Some("t".to_owned()), None, None]);
}

#[test]
fn a_generation_that_is_refused_later_is_a_problem_of_the_session() {
    let agents = Agents::serve();
    let look = agents.http_tool("look");
    let agent = agents.agent("say hi", &[&look], json!({}));
    let more = json!({"auto_generate": true, "message_delay_seconds": 1});
    let at = session(&agents, &agent, &more);
    assert_eq!(agents.get(&at).json()["problems"], json!([]));
    let added = agents.post(&format!("{at}/messages"), &json!({"message": "x"}));
    assert_eq!(added.status, 201, "{added:?}");
    let change = json!({"tool_ids": [], "tool_choice": "required"});
    let changed = agents.send("PUT", &format!("/agents/{agent}"), &change);
    assert_eq!(changed.status, 200, "{changed:?}");
    let ends = Instant::now() + Duration::from_secs(30);
    let problem = loop {
        let problem = agents.get(&at).json()["problems"][0].clone();
        if !problem.is_null() {
            break problem;
        }
        assert!(Instant::now() < ends, "the session says nothing");
        thread::sleep(Duration::from_millis(50));
    };
    let refused = agents.post(&format!("{at}/generate"), &json!({})).json();
    assert_eq!(
        (&problem["type"], &problem["code"], &problem["message"]),
        (
            &json!("generation_refused"),
            &refused["error"]["code"],
            &refused["error"]["message"]
        )
    );
    let change = json!({"tool_choice": "auto"});
    agents.send("PUT", &format!("/agents/{agent}"), &change);
    let done = agents.post(&format!("{at}/generate"), &json!({})).json();
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(agents.get(&at).json()["problems"], json!([]));
}

#[test]
fn an_added_message_has_its_position_and_an_empty_key_is_refused() {
    let agents = Agents::serve();
    let agent = agents.agent("say one", &[], json!({}));
    let at = session(&agents, &agent, &json!({}));
    let path = format!("{at}/messages");
    let keyed = json!({"message": "a", "idempotency_key": "k"});
    let first = agents.post(&path, &keyed).json();
    agents.post(&format!("{at}/generate"), &json!({}));
    let second = agents.post(&path, &json!({"message": "b"})).json();
    let again = agents.post(&path, &keyed).json();
    let positions = [&first, &second, &again].map(|it| it["position"].clone());
    assert_eq!(positions, [json!(0), json!(2), json!(0)]);
    let list = agents.get(&path).json();
    let list = list["data"].as_array().expect("messages");
    assert_eq!((&list[0], &list[2]), (&first, &second));
    let refused = agents.post(&path, &json!({"message": "c", "idempotency_key": ""}));
    assert_eq!(error(&refused), "400 VALIDATION_FAILED");
}
