//! Sessions of the agents API: messages, generations, actors, expiry.

use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::agents_api::{Agents, error};

/// Creates a session, and returns the beginning of its addresses.
#[track_caller]
fn session(agents: &Agents, agent: &str, body: &Value) -> String {
    let id = agents.made(&format!("/agents/{agent}/sessions"), body);
    format!("/agents/{agent}/sessions/{id}")
}

fn texts(list: &Value) -> Vec<String> {
    let messages = list["data"].as_array().expect("messages").iter();
    let text = |it: &Value| {
        format!(
            "{} {}",
            it["role"].as_str().unwrap_or(""),
            it["content"].as_str().unwrap_or("")
        )
    };
    messages.map(text).collect()
}

#[test]
fn a_session_keeps_its_messages_over_a_restart() {
    let agents = Agents::serve();
    let agent = agents.agent("say one\nsay two", &[], json!({"max_context_messages": 3}));
    let at = session(&agents, &agent, &json!({"name": "chat"}));
    let added = agents.post(
        &format!("{at}/messages"),
        &json!({"message": 42, "idempotency_key": "k"}),
    );
    assert_eq!(
        (added.status, &added.json()["content"]),
        (201, &json!("42"))
    );
    let again = agents.post(
        &format!("{at}/messages"),
        &json!({"message": "other", "idempotency_key": "k"}),
    );
    assert_eq!(
        (again.status, &again.json()["content"]),
        (200, &json!("42"))
    );
    let first = agents.post(&format!("{at}/generate"), &json!({})).json();
    assert_eq!(
        (&first["status"], &first["message"]),
        (
            &json!("completed"),
            &json!({"role": "assistant", "content": "one", "model": "fake-1"})
        )
    );
    let agents = agents.restart();
    agents.post(&format!("{at}/messages"), &json!({"message": "more"}));
    let second = agents
        .post(&format!("{at}/generate"), &json!({"model": "other-1"}))
        .json();
    assert_eq!(second["message"]["content"], "two");
    let list = agents.get(&format!("{at}/messages")).json();
    assert_eq!(
        texts(&list),
        ["user 42", "assistant one", "user more", "assistant two"]
    );
    assert_eq!(
        (&list["total"], &list["data"][3]["position"]),
        (&json!(4), &json!(3))
    );
    let turns = agents.turns();
    assert_eq!(turns[1]["model"], "other-1");
    // The window has the last three, and the script is the system prompt.
    assert_eq!(turns[1]["messages"].as_array().map(Vec::len), Some(4));
}

#[test]
fn a_session_has_one_generation_at_a_time() {
    let agents = Agents::serve();
    let ask = agents.client_tool("ask");
    let agent = agents.agent("call ask\nsay done", &[&ask], json!({}));
    let at = session(&agents, &agent, &json!({}));
    let empty = agents.post(&format!("{at}/generate"), &json!({}));
    assert_eq!(error(&empty), "400 VALIDATION_FAILED");
    agents.post(&format!("{at}/messages"), &json!({"message": "x"}));
    let statuses: Vec<u16> = thread::scope(|scope| {
        let started: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| agents.post(&format!("{at}/generate"), &json!({})).status))
            .collect();
        started
            .into_iter()
            .map(|it| it.join().expect("an answer"))
            .collect()
    });
    assert_eq!(
        statuses.iter().filter(|it| **it == 200).count(),
        1,
        "{statuses:?}"
    );
    assert_eq!(
        statuses.iter().filter(|it| **it == 409).count(),
        3,
        "{statuses:?}"
    );
    let busy = agents.post(&format!("{at}/generate"), &json!({}));
    assert_eq!(error(&busy), "409 GENERATION_ALREADY_IN_PROGRESS");
    let generating = agents.get(&at).json()["generating_at"].clone();
    assert!(generating.is_string(), "{generating}");
    let generation = busy.json()["error"]["meta"]["generation_id"].clone();
    let outputs = json!({"generation_id": generation, "tool_outputs": [{"tool_call_id": "c0.0", "output": "y"}]});
    let done = agents.post(&format!("{at}/tool-outputs"), &outputs).json();
    assert_eq!(done["message"]["content"], "done");
    assert_eq!(agents.get(&at).json()["generating_at"], Value::Null);
    assert_eq!(agents.turns().len(), 2);
}

#[test]
fn a_message_generates_by_itself_and_its_tools_get_the_context() {
    let agents = Agents::serve();
    let tool = agents.http_tool("lookup");
    let agent = agents.agent("call lookup\nsay found", &[&tool], json!({}));
    let actor = agents.made("/actors", &json!({"name": "Ada", "external_id": "ext-7"}));
    let context = json!({"tenant": "t1", "sessionid": "forged"});
    let body = json!({"auto_generate": true, "actor_id": actor, "tool_context": context});
    let at = session(&agents, &agent, &body);
    let answered = agents.post(&format!("{at}/messages"), &json!({"message": "x"}));
    assert_eq!(
        (answered.status, &answered.json()["message"]["content"]),
        (201, &json!("found"))
    );
    let head = agents.tool_requests()[0].head.clone();
    for line in [
        "x-soat-context-tenant: t1",
        "x-soat-context-actorexternalid: ext-7",
        "x-soat-context-sessionid: sess_",
    ] {
        assert!(head.contains(line), "{line}: {head}");
    }
    let left = agents.post(
        &format!("{at}/messages?async=true"),
        &json!({"message": "y"}),
    );
    let accepted = left.json();
    assert_eq!(
        (left.status, &accepted["status"]),
        (202, &json!("accepted"))
    );
    let own = at.rsplit('/').next().map(Value::from);
    assert_eq!(accepted.get("session_id"), own.as_ref());
    assert!(accepted["generation_id"].is_string(), "{accepted}");
}

#[test]
fn an_actor_has_one_open_session_where_the_agent_says_so() {
    let agents = Agents::serve();
    let agent = agents.agent("say hi", &[], json!({"single_session_per_actor": true}));
    let actor = agents.made("/actors", &json!({"name": "Ada"}));
    let path = format!("/agents/{agent}/sessions");
    let body = json!({"actor_id": actor});
    let replies: Vec<_> = thread::scope(|scope| {
        let started: Vec<_> = (0..5)
            .map(|_| scope.spawn(|| agents.post(&path, &body)))
            .collect();
        started
            .into_iter()
            .map(|it| it.join().expect("an answer"))
            .collect()
    });
    let open: Vec<_> = replies.iter().filter(|it| it.status == 201).collect();
    assert_eq!(open.len(), 1, "{replies:?}");
    let id = open[0].json()["id"].clone();
    let refused = agents.post(&path, &body);
    assert_eq!(error(&refused), "409 SINGLE_SESSION_CONFLICT");
    assert_eq!(refused.json()["error"]["meta"]["session_id"], id);
    assert_eq!(
        agents.post(&path, &json!({})).status,
        201,
        "sessions without an actor are unaffected"
    );
    let own = format!("{path}/{}", id.as_str().expect("an id"));
    let closed = agents.send("PATCH", &own, &json!({"status": "closed"}));
    assert_eq!(closed.json()["status"], "closed");
    assert_eq!(
        error(&agents.post(&format!("{own}/messages"), &json!({"message": "x"}))),
        "409 CONFLICT"
    );
    assert_eq!(agents.post(&path, &body).status, 201);
    let list = agents.get(&format!("{path}?actor_id={actor}")).json();
    assert_eq!(list["total"], 2);
}

#[test]
fn a_session_without_messages_expires_and_frees_its_actor() {
    let agents = Agents::serve();
    let agent = agents.agent("say hi", &[], json!({"single_session_per_actor": true}));
    let actor = agents.made("/actors", &json!({"name": "Ada"}));
    let body = json!({"actor_id": actor, "inactivity_ttl_seconds": 1});
    let at = session(&agents, &agent, &body);
    // The session expires by the clock of the server.
    let begun = std::time::Instant::now();
    while agents.get(&at).json()["status"] == "open" {
        assert!(begun.elapsed() < Duration::from_secs(60), "it expires");
        thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(
        error(&agents.post(&format!("{at}/messages"), &json!({"message": "x"}))),
        "410 SESSION_EXPIRED"
    );
    session(&agents, &agent, &json!({"actor_id": actor}));
    let other = agents.agent("say hi", &[], json!({}));
    let foreign = at.replace(&agent, &other);
    assert_eq!(error(&agents.get(&foreign)), "404 RESOURCE_NOT_FOUND");
}

#[test]
fn tags_are_replaced_and_merged() {
    let agents = Agents::serve();
    let tool = agents.http_tool("lookup");
    let agent = agents.agent("say hi", &[&tool], json!({}));
    let actor = agents.made("/actors", &json!({"name": "Ada", "tags": {"a": "1"}}));
    let memory = agents.made("/memories", &json!({"name": "M", "tags": ["vip", "b:2"]}));
    let document = agents.made("/documents", &json!({"content": "x"}));
    let project = agents.made("/projects", &json!({"name": "other"}));
    let policy = agents.made("/policies", &json!({"document": {"statement": []}}));
    let key = agents.made("/api-keys", &json!({"name": "k"}));
    let done = agents.generate(&agent, &json!({"prompt": "x"}));
    let of = |name: &str| done[name].as_str().expect("an id").to_owned();
    let path = format!("/memories/{memory}/tags");
    assert_eq!(agents.get(&path).json(), json!({"vip": "", "b": "2"}));
    for path in [
        path,
        format!("/actors/{actor}/tags"),
        format!("{}/tags", session(&agents, &agent, &json!({}))),
        format!("/agents/{agent}/tags"),
        format!("/agents/generations/{}/tags", of("id")),
        format!("/ai-providers/{}/tags", agents.provider),
        format!("/api-keys/{key}/tags"),
        format!("/documents/{document}/tags"),
        format!("/policies/{policy}/tags"),
        format!("/projects/{project}/tags"),
        format!("/tools/{tool}/tags"),
        format!("/traces/{}/tags", of("trace_id")),
    ] {
        assert_eq!(
            agents.send("PUT", &path, &json!({"b": "2"})).json(),
            json!({"b": "2"}),
            "{path}"
        );
        let merged = agents.send("PATCH", &path, &json!({"c": "3"})).json();
        assert_eq!(merged, json!({"b": "2", "c": "3"}));
        assert_eq!(agents.get(&path).json(), merged);
        assert_eq!(
            error(&agents.send("PATCH", &path, &json!({"c": 3}))),
            "400 VALIDATION_FAILED"
        );
    }
    assert_eq!(
        agents.get(&format!("/memories/{memory}")).json()["tags"],
        json!(["b:2", "c:3"])
    );
    assert_eq!(
        agents.get(&format!("/policies/{policy}")).json()["tags"],
        json!({"b": "2", "c": "3"})
    );
    assert_eq!(
        error(&agents.get("/agents/agt_none/tags")),
        "404 RESOURCE_NOT_FOUND"
    );
}

/// Waits until a session has as many messages.
#[track_caller]
fn messages(agents: &Agents, at: &str, count: usize) -> Vec<String> {
    let begun = std::time::Instant::now();
    loop {
        let list = texts(&agents.get(&format!("{at}/messages")).json());
        if list.len() >= count {
            return list;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{list:?}");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn messages_within_the_delay_are_answered_together_also_by_the_next_server() {
    let agents = Agents::serve();
    let agent = agents.agent("say one\nsay two", &[], json!({}));
    let body = json!({"auto_generate": true, "message_delay_seconds": 1});
    let at = session(&agents, &agent, &body);
    for text in ["a", "b", "c"] {
        let added = agents.post(&format!("{at}/messages"), &json!({"message": text}));
        assert_eq!(
            (added.status, &added.json()["content"]),
            (201, &json!(text))
        );
    }
    assert_eq!(
        messages(&agents, &at, 4),
        ["user a", "user b", "user c", "assistant one"]
    );
    assert_eq!(agents.turns().len(), 1);
    agents.post(&format!("{at}/messages"), &json!({"message": "d"}));
    let agents = agents.restart();
    assert_eq!(messages(&agents, &at, 6)[4..], ["user d", "assistant two"]);
    assert_eq!(agents.turns().len(), 2);
    let at_once = agents.send("PATCH", &at, &json!({"message_delay_seconds": 0}));
    assert_eq!(at_once.json()["message_delay_seconds"], 0);
    let answered = agents.post(&format!("{at}/messages"), &json!({"message": "e"}));
    assert_eq!(answered.json()["message"]["content"], "two");
}

#[test]
fn a_message_during_a_generation_is_kept() {
    let agents = Agents::serve();
    let ask = agents.client_tool("ask");
    let agent = agents.agent("call ask\nsay done", &[&ask], json!({}));
    let at = session(&agents, &agent, &json!({"auto_generate": true}));
    let paused = agents
        .post(&format!("{at}/messages"), &json!({"message": "a"}))
        .json();
    assert_eq!(paused["status"], "requires_action");
    let added = agents.post(&format!("{at}/messages"), &json!({"message": "b"}));
    assert_eq!((added.status, &added.json()["content"]), (201, &json!("b")));
    let outputs = json!({"generation_id": paused["generation_id"], "tool_outputs": [{"tool_call_id": "c0.0", "output": "y"}]});
    assert_eq!(
        agents.post(&format!("{at}/tool-outputs"), &outputs).json()["message"]["content"],
        "done"
    );
    assert_eq!(agents.turns().len(), 2);
}

#[test]
fn an_actor_brings_its_memory_and_instructions() {
    let agents = Agents::serve();
    let script = "call write_memory {\"content\": \"prefers email\"}\nsay kept";
    let agent = agents.agent(script, &[], json!({}));
    let body = json!({"name": "Ada", "external_id": "u7", "auto_create_memory": true, "instructions": "Be formal."});
    let actor = agents.made("/actors", &body);
    let again = agents.post("/actors", &body);
    assert_eq!((again.status, &again.json()["id"]), (200, &json!(actor)));
    let memory = again.json()["memory_id"]
        .as_str()
        .expect("a memory")
        .to_owned();
    let at = session(
        &agents,
        &agent,
        &json!({"actor_id": actor, "auto_generate": true}),
    );
    let first = agents
        .post(
            &format!("{at}/messages"),
            &json!({"message": "Which way prefers she: email?"}),
        )
        .json();
    assert_eq!(first["message"]["content"], "kept", "{first}");
    let system = agents.turns()[0]["messages"][0]["content"].clone();
    assert!(
        system
            .as_str()
            .is_some_and(|it| it.ends_with("\n\nBe formal.")),
        "{system}"
    );
    let entries = agents.get(&format!("/memories/{memory}/entries")).json();
    assert_eq!(entries[0]["content"], "prefers email");
    agents.post(
        &format!("{at}/messages"),
        &json!({"message": "prefers email?"}),
    );
    let turns = agents.turns();
    let known = turns.last().expect("a turn")["messages"][1]["content"].to_string();
    assert!(
        known.contains("[Memory: Ada]") && known.contains("prefers email"),
        "{known}"
    );
}

#[test]
fn a_hundred_sessions_with_concurrent_messages_keep_order_and_one_session_an_actor() {
    const SESSIONS: usize = 100;
    const THREADS: usize = 8;
    const MESSAGES: usize = 3;
    let agents = Agents::serve();
    let agent = agents.agent("say hi", &[], json!({"single_session_per_actor": true}));
    let open = |number: usize| {
        let actor = agents.made("/actors", &json!({"name": format!("actor {number}")}));
        let path = format!("/agents/{agent}/sessions");
        let body = json!({"actor_id": actor});
        // Two starts at once: one is refused.
        let starts: Vec<_> = thread::scope(|scope| {
            let starts = [0, 1].map(|_| scope.spawn(|| agents.post(&path, &body)));
            starts.map(|it| it.join().expect("an answer")).into()
        });
        let mut made = starts.iter().filter(|it| it.status == 201);
        let id = made.next().expect("a session").json()["id"].clone();
        assert!(
            made.next().is_none() && starts.iter().any(|it| it.status == 409),
            "{starts:?}"
        );
        format!("{path}/{}", id.as_str().expect("an id"))
    };
    let talk = |at: &str| {
        thread::scope(|scope| {
            for writer in ["a", "b"] {
                let agents = &agents;
                scope.spawn(move || {
                    for number in 0..MESSAGES {
                        let body = json!({"message": format!("{writer}{number}")});
                        let added = agents.post(&format!("{at}/messages"), &body);
                        assert_eq!(added.status, 201);
                    }
                });
            }
            scope.spawn(|| agents.post(&format!("{at}/generate?async=true"), &json!({})));
        });
        let answered = agents.post(&format!("{at}/generate"), &json!({})).status;
        assert!(matches!(answered, 200 | 409), "{answered}");
        let list = texts(&agents.get(&format!("{at}/messages")).json());
        for writer in ["a", "b"] {
            let own: Vec<&String> = list
                .iter()
                .filter(|it| it.starts_with(&format!("user {writer}")))
                .collect();
            let wanted: Vec<String> = (0..MESSAGES)
                .map(|it| format!("user {writer}{it}"))
                .collect();
            assert_eq!(own, wanted.iter().collect::<Vec<_>>(), "{list:?}");
        }
    };
    thread::scope(|scope| {
        for first in 0..THREADS {
            let (open, talk) = (&open, &talk);
            scope.spawn(move || {
                for number in (first..SESSIONS).step_by(THREADS) {
                    talk(&open(number));
                }
            });
        }
    });
    let listed = agents
        .get(&format!("/agents/{agent}/sessions?status=open"))
        .json();
    assert_eq!(listed["total"], SESSIONS);
}

#[test]
fn documents_are_messages() {
    let agents = Agents::serve();
    let agent = agents.agent("say read", &[], json!({}));
    let document = agents.made(
        "/documents",
        &json!({"content": "the text", "path": "/a.txt"}),
    );
    let content = json!({"type": "document", "document_id": document});
    let body = json!({"messages": [{"role": "user", "content": content}]});
    assert_eq!(agents.generate(&agent, &body)["text"], "read");
    assert_eq!(agents.turns()[0]["messages"][1]["content"], "the text");
    let at = session(&agents, &agent, &json!({}));
    let added = agents
        .post(&format!("{at}/messages"), &json!({"document_id": document}))
        .json();
    assert_eq!(
        (&added["content"], &added["document_id"]),
        (&json!("the text"), &json!(document))
    );
    let path = format!("/documents/{document}");
    assert_eq!(
        agents.send("PATCH", &path, &json!({"title": "A"})).json()["title"],
        "A"
    );
    assert_eq!(agents.get("/documents").json()[0]["path"], "/a.txt");
    assert_eq!(agents.send("DELETE", &path, &Value::Null).status, 204);
    let gone = agents.post(&format!("/agents/{agent}/generate"), &body);
    assert_eq!(error(&gone), "404 RESOURCE_NOT_FOUND");
}
