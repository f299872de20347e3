//! A server that is killed while a generation with a nested one, a client tool and platform actions is under way.

use std::collections::HashMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agents_api::{Agents, answer};
use crate::api::post_to;
use crate::server::{Answer, Server};

/// When the process of the server is killed.
#[derive(Default)]
struct Kill {
    /// The number of the request that it makes as its last one; 0: none.
    at: AtomicU64,
    seen: AtomicU64,
    process: AtomicU32,
    is_done: AtomicBool,
}

impl Kill {
    fn now(&self) {
        let id = self.process.load(Ordering::SeqCst).to_string();
        let status = Command::new("kill").args(["-9", &id]).status();
        assert!(status.is_ok_and(|status| status.success()), "kill -9 {id}");
        self.is_done.store(true, Ordering::SeqCst);
    }

    /// A server of models and tools that kills its client.
    fn server(self: &Arc<Kill>) -> Server {
        let kill = self.clone();
        Server::start(move |request, _| {
            let number = kill.seen.fetch_add(1, Ordering::SeqCst) + 1;
            if number == kill.at.load(Ordering::SeqCst) {
                kill.now();
                return Answer::Raw(Vec::new());
            }
            answer(request)
        })
    }
}

/// An outer agent that starts an inner one, which makes a document, calls a server and asks the caller.
struct Pair {
    outer: String,
    inner: String,
}

fn pair(agents: &Agents) -> Pair {
    let client = agents.client_tool("ask");
    let lookup = agents.http_tool("lookup");
    let docs = json!({"name": "docs", "type": "soat", "actions": ["create-document"]});
    let docs = agents.made("/tools", &docs);
    let script = "call docs_create-document {\"content\": \"made once\"}\ncall lookup\ncall ask\nsay inner done";
    let inner = agents.agent(script, &[&client, &lookup, &docs], json!({}));
    let team = json!({"name": "team", "type": "soat", "actions": ["create-agent-generation"],
                      "preset_parameters": {"agent_id": inner}});
    let team = agents.made("/tools", &team);
    let script = "call team_create-agent-generation {\"prompt\": \"go\"}\nsay outer done";
    let outer = agents.agent(script, &[&team], json!({}));
    Pair { outer, inner }
}

/// Posts without waiting for an answer, which a server that is killed does not give.
fn send(agents: &Agents, path: String, body: Value) {
    let (address, token) = (agents.api.address.clone(), agents.api.token.clone());
    thread::spawn(move || post_to(&address, &token, &format!("/api/v1{path}"), &body));
}

/// Runs the outer agent to its end over a kill, and checks that nothing was repeated or lost. Returns whether it was killed.
fn check(at: u64, after: Option<Duration>) -> bool {
    let kill = Arc::new(Kill::default());
    let mut agents = Agents::serve_beside(kill.server());
    let Pair { outer, inner } = pair(&agents);
    kill.process.store(agents.api.process(), Ordering::SeqCst);
    kill.at.store(at, Ordering::SeqCst);
    let path = format!("/agents/{outer}/generate");
    send(&agents, path.clone(), json!({"prompt": "x"}));
    if let Some(after) = after {
        thread::sleep(after);
        kill.now();
    }
    let ends = Instant::now() + Duration::from_secs(60);
    let mut is_restarted = false;
    let mut submitted = Instant::now() - Duration::from_secs(1);
    let done = loop {
        assert!(
            Instant::now() < ends,
            "kill at {at} {after:?}: it does not come to an end"
        );
        thread::sleep(Duration::from_millis(20));
        if kill.is_done.load(Ordering::SeqCst) && !is_restarted {
            agents = agents.restart();
            is_restarted = true;
            let list = agents.get(&format!("/agents/generations?agent_id={outer}"));
            if list.json()["total"] == 0 {
                // The server was killed before it accepted the request, and the caller knows it.
                send(&agents, path.clone(), json!({"prompt": "x"}));
            }
        }
        if is_restarted != kill.is_done.load(Ordering::SeqCst) {
            continue;
        }
        let Some(now) = latest(&agents, &outer, &kill) else {
            continue;
        };
        if now["status"] == "completed" || now["status"] == "failed" {
            break now;
        }
        let action = &now["required_action"];
        if now["status"] == "requires_action" && submitted.elapsed() > Duration::from_millis(500) {
            submitted = Instant::now();
            let child = action["generation_id"].as_str().expect("an id");
            let outputs =
                json!([{"tool_call_id": action["tool_calls"][0]["tool_call_id"], "output": 42}]);
            let path = format!("/agents/{inner}/generate/{child}/tool-outputs");
            send(&agents, path, json!({"tool_outputs": outputs}));
        }
    };
    assert_eq!(
        (&done["status"], &done["stop_reason"]),
        (&json!("completed"), &json!("end_turn")),
        "{done}"
    );
    let all = agents.get("/agents/generations").json();
    assert_eq!(all["total"], 2, "kill at {at} {after:?}: {all}");
    let documents = agents.get("/documents").json();
    let documents = documents.as_array().expect("a list").iter();
    let contents: Vec<Value> = documents
        .map(|it| {
            let id = it["id"].as_str().expect("an id");
            agents.get(&format!("/documents/{id}")).json()["content"].clone()
        })
        .collect();
    assert_eq!(contents, [json!("made once")], "kill at {at} {after:?}");
    let lookups = agents.tool_requests().len();
    assert!(
        lookups <= 1,
        "kill at {at} {after:?}: {lookups} calls of the tool"
    );
    let mut turns: HashMap<(String, usize), usize> = HashMap::new();
    for turn in agents.turns() {
        let messages = turn["messages"].as_array().expect("messages");
        let system = messages[0]["content"].to_string();
        *turns.entry((system, messages.len())).or_default() += 1;
    }
    assert_eq!(turns.len(), 6, "kill at {at} {after:?}: {turns:?}");
    // The turn whose answer was lost is requested again.
    let again: usize = turns.values().map(|count| count - 1).sum();
    assert!(again <= 1, "kill at {at} {after:?}: {turns:?}");
    is_restarted
}

/// Returns the generation of the outer agent; nothing while the server is killed.
fn latest(agents: &Agents, outer: &str, kill: &Kill) -> Option<Value> {
    if kill.is_done.load(Ordering::SeqCst)
        && kill.process.load(Ordering::SeqCst) == agents.api.process()
    {
        return None;
    }
    let list = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        agents
            .get(&format!("/agents/generations?agent_id={outer}"))
            .json()
    }));
    let list = list.ok()?;
    Some(list["data"].as_array()?.first()?.clone())
}

#[test]
fn a_kill_at_any_request_of_a_nested_generation_repeats_and_loses_nothing() {
    // Two turns of the outer agent, four of the inner one, and the call of its tool.
    for at in 1..=7 {
        assert!(check(at, None), "the server makes {at} requests");
    }
}

#[test]
fn a_kill_at_any_time_of_a_nested_generation_repeats_and_loses_nothing() {
    for millis in [2, 6, 10, 14, 18, 23, 28, 34, 40, 50, 65, 90] {
        check(0, Some(Duration::from_millis(millis)));
    }
}
