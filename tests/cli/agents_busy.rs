//! Messages that arrive in a session while a generation of it is not over.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agents_api::{Agents, answer};
use crate::server::Server;

/// Lets the model answer.
type Gate = Arc<AtomicBool>;

/// Serves a project whose model takes its time, and answers only while the gate is open.
fn serve_slowly(is_open: bool) -> (Agents, Gate) {
    let gate = Gate::new(AtomicBool::new(is_open));
    let held = gate.clone();
    let server = Server::start(move |request, _| {
        if request.path == "/v1/chat/completions" {
            let ends = Instant::now() + Duration::from_secs(30);
            thread::sleep(Duration::from_millis(150));
            while !held.load(Ordering::SeqCst) && Instant::now() < ends {
                thread::sleep(Duration::from_millis(10));
            }
        }
        answer(request)
    });
    (Agents::serve_beside(server), gate)
}

/// Creates a session that generates by itself, and returns the beginning of its addresses.
fn session(agents: &Agents, agent: &str) -> String {
    let path = format!("/agents/{agent}/sessions");
    let id = agents.made(&path, &json!({"auto_generate": true}));
    format!("{path}/{id}")
}

fn messages(agents: &Agents, at: &str) -> Vec<Value> {
    let list = agents.get(&format!("{at}/messages?limit=500")).json();
    list["data"].as_array().expect("messages").clone()
}

/// Waits until the last message of a session is one of the agent.
#[track_caller]
fn answered(agents: &Agents, at: &str) -> Vec<Value> {
    let ends = Instant::now() + Duration::from_secs(30);
    loop {
        // First, so that the messages have the answer of what is over.
        let is_over = agents.get(at).json()["generating_at"].is_null();
        let found = messages(agents, at);
        if is_over && found.last().is_some_and(|it| it["role"] == "assistant") {
            return found;
        }
        assert!(Instant::now() < ends, "it is not answered: {found:?}");
        thread::sleep(Duration::from_millis(30));
    }
}

/// Returns the texts of users in the last request that the model got.
fn seen(agents: &Agents) -> Vec<String> {
    let turns = agents.turns();
    let last = turns.last().expect("a turn");
    let messages = last["messages"].as_array().expect("messages").iter();
    let users = messages.filter(|it| it["role"] == "user");
    users
        .map(|it| it["content"].as_str().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn fifty_messages_at_once_are_all_answered_in_order() {
    const MESSAGES: usize = 50;
    let (agents, _gate) = serve_slowly(true);
    let agent = agents.agent("say one\nsay two", &[], json!({}));
    let at = session(&agents, &agent);
    thread::scope(|scope| {
        for number in 0..MESSAGES {
            let (agents, at) = (&agents, &at);
            scope.spawn(move || {
                let body = json!({"message": format!("m{number}")});
                let added = agents.post(&format!("{at}/messages"), &body);
                assert!(matches!(added.status, 200 | 201), "{added:?}");
            });
        }
    });
    // Between two generations, the last message is an answer, too.
    answered(&agents, &at);
    let ends = Instant::now() + Duration::from_secs(30);
    while seen(&agents).len() < MESSAGES && Instant::now() < ends {
        thread::sleep(Duration::from_millis(30));
    }
    let found = answered(&agents, &at);
    let of = |role: &str| -> Vec<String> {
        let own = found.iter().filter(|it| it["role"] == role);
        own.map(|it| it["content"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    let users = of("user");
    assert_eq!(users.len(), MESSAGES, "{found:?}");
    assert_eq!(
        seen(&agents),
        users,
        "the last generation has all, in order"
    );
    // The first one saw what there was; few others follow, not one for each message.
    let answers = of("assistant").len();
    assert!((1..=6).contains(&answers), "{answers} answers");
    assert_eq!(agents.turns().len(), answers, "none at the same time");
}

#[test]
fn a_message_during_a_pause_is_answered_after_it() {
    let agents = Agents::serve();
    let ask = agents.client_tool("ask");
    let agent = agents.agent("call ask\nsay first\nsay second", &[&ask], json!({}));
    let at = session(&agents, &agent);
    let paused = agents
        .post(&format!("{at}/messages"), &json!({"message": "a"}))
        .json();
    assert_eq!(paused["status"], "requires_action", "{paused}");
    let added = agents.post(&format!("{at}/messages"), &json!({"message": "b"}));
    assert_eq!(added.status, 201, "{added:?}");
    let outputs = json!([{"tool_call_id": "c0.0", "output": 1}]);
    let body = json!({"generation_id": paused["generation_id"], "tool_outputs": outputs});
    let done = agents.post(&format!("{at}/tool-outputs"), &body).json();
    assert_eq!(done["message"]["content"], "first", "{done}");
    let found = answered(&agents, &at);
    assert_eq!(seen(&agents), ["a", "b"], "{found:?}");
}

#[test]
fn a_message_during_a_generation_is_answered_after_a_kill() {
    let (agents, gate) = serve_slowly(false);
    let agent = agents.agent("say one\nsay two", &[], json!({}));
    let at = session(&agents, &agent);
    let path = format!("{at}/messages");
    agents.post(&format!("{path}?async=true"), &json!({"message": "a"}));
    let added = agents.post(&path, &json!({"message": "b"}));
    assert_eq!(added.status, 201, "{added:?}");
    let agents = agents.restart();
    gate.store(true, Ordering::SeqCst);
    answered(&agents, &at);
    assert_eq!(seen(&agents), ["a", "b"]);
}

#[test]
fn a_message_of_a_session_that_does_not_generate_by_itself_waits_for_a_request() {
    let (agents, gate) = serve_slowly(false);
    let agent = agents.agent("say one\nsay two", &[], json!({}));
    let path = format!("/agents/{agent}/sessions");
    let id = agents.made(&path, &json!({}));
    let at = format!("{path}/{id}");
    agents.post(&format!("{at}/messages"), &json!({"message": "a"}));
    agents.post(&format!("{at}/generate?async=true"), &json!({}));
    agents.post(&format!("{at}/messages"), &json!({"message": "b"}));
    gate.store(true, Ordering::SeqCst);
    let found = answered_once(&agents, &at);
    assert_eq!(found, ["user a", "user b", "assistant one"]);
}

/// Waits until the generation of a session is over, and returns its messages sorted by who wrote them.
fn answered_once(agents: &Agents, at: &str) -> Vec<String> {
    let ends = Instant::now() + Duration::from_secs(30);
    while !agents.get(at).json()["generating_at"].is_null() {
        assert!(Instant::now() < ends, "it does not end");
        thread::sleep(Duration::from_millis(30));
    }
    thread::sleep(Duration::from_millis(400));
    assert_eq!(agents.turns().len(), 1, "nobody asked for a second answer");
    let mut found: Vec<String> = messages(agents, at)
        .iter()
        .map(|it| {
            let text = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
            format!("{} {}", text("role"), text("content"))
        })
        .collect();
    found.sort_by_key(|it| it.starts_with("assistant"));
    found
}
