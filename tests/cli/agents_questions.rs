//! Questions that an MCP server asks in the middle of a call of a generation: the generation pauses, and is answered over the API.

use std::collections::HashMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use serde_json::{Value, json};

use crate::agents_api::{Agents, answer, error};
use crate::server::{Answer, Request, Server};

/// An MCP server whose tool `book` asks who travels, and may kill the process of its client at a request.
#[derive(Default)]
struct Trips {
    process: AtomicU32,
    /// The number of the call that kills; 0: none.
    kills_at: AtomicUsize,
    calls: AtomicUsize,
}

impl Trips {
    fn server(self: &Arc<Trips>) -> Server {
        let trips = self.clone();
        Server::start(move |request, _| match request.path.as_str() {
            "/mcp/trips" => trips.mcp(request),
            _ => answer(request),
        })
    }

    fn mcp(&self, request: &Request) -> Answer {
        let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let result = match message["method"].as_str() {
            Some("server/discover") => {
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"})
            }
            Some("tools/list") => {
                json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                "tools": [{"name": "book", "inputSchema": {"type": "object"}}]})
            }
            Some("tools/call") => {
                let number = self.calls.fetch_add(1, Ordering::SeqCst) + 1;
                if number == self.kills_at.load(Ordering::SeqCst) {
                    let id = self.process.load(Ordering::SeqCst).to_string();
                    let killed = Command::new("kill").args(["-9", &id]).status();
                    assert!(killed.is_ok_and(|it| it.success()), "kill -9 {id}");
                    return Answer::Raw(Vec::new());
                }
                called(&message["params"])
            }
            _ if request.method == "POST" => return Answer::Status(202, ""),
            _ => return Answer::Status(405, ""),
        };
        Answer::Json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
    }
}

/// Asks first; with the answer, says who travels.
fn called(params: &Value) -> Value {
    if params["requestState"] != "s1" {
        let schema = json!({"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "title": "Full name", "minLength": 2},
            "action": {"type": "boolean"}}});
        let asks = json!({"mode": "form", "message": "Who travels?", "requestedSchema": schema});
        let request = json!({"method": "elicitation/create", "params": asks});
        return json!({"resultType": "input_required", "inputRequests": {"who": request}, "requestState": "s1"});
    }
    let given = params["inputResponses"]["who"].to_string();
    json!({"resultType": "complete", "content": [{"type": "text", "text": format!("booked {given}")}]})
}

/// Returns the results that the model got last.
fn told(agents: &Agents) -> String {
    let turns = agents.turns();
    let messages = turns.last().expect("a turn")["messages"].clone();
    let last = messages.as_array().and_then(|it| it.last().cloned());
    last.expect("a message")["content"].to_string()
}

fn outputs(paused: &Value, output: Value) -> Value {
    let id = &paused["required_action"]["tool_calls"][0]["tool_call_id"];
    json!({"tool_outputs": [{"tool_call_id": id, "output": output}]})
}

#[test]
fn a_question_pauses_a_generation_and_its_answer_goes_to_the_server() {
    let trips = Arc::new(Trips::default());
    let agents = Agents::serve_beside(trips.server());
    let tool = agents.mcp_tool("trips", "/mcp/trips", json!({}));
    let agent = agents.agent("call trips_book\nsay done", &[&tool], json!({}));
    let paused = agents.generate(&agent, &json!({"prompt": "x"}));
    let action = &paused["required_action"];
    assert_eq!(
        (&paused["status"], &action["type"]),
        (&json!("requires_action"), &json!("answer_questions")),
        "{paused}"
    );
    let call = &action["tool_calls"][0];
    assert_eq!(call["tool_name"], "trips_book");
    let asked = &call["args"];
    let message = asked["message"].as_str().expect("a text");
    assert!(message.ends_with("asks: Who travels?"), "{message}");
    assert!(!paused.to_string().contains(":mcp-"), "{paused}");
    assert_eq!(asked["schema"]["required"], json!(["name"]), "{asked}");
    assert_eq!(asked["schema"]["properties"]["action"]["type"], "boolean");
    let id = paused["id"].as_str().expect("an id");
    let listed = agents
        .get("/agents/generations?status=requires_action")
        .json();
    assert_eq!(listed["data"][0]["id"], id, "{listed}");
    for wrong in [
        json!({"tool_outputs": []}),
        outputs(&paused, json!("Ada")),
        outputs(&paused, json!({"action": "maybe"})),
        outputs(
            &paused,
            json!({"action": "accept", "content": {"name": "A"}}),
        ),
        outputs(&paused, json!({"action": "accept"})),
    ] {
        let refused = agents.submit(&agent, &paused, &wrong);
        assert_eq!(error(&refused), "400 VALIDATION_FAILED", "{wrong}");
    }
    let content = json!({"name": "Ada", "action": true});
    let body = outputs(&paused, json!({"action": "accept", "content": content}));
    let done = agents.submit(&agent, &paused, &body).json();
    assert_eq!(
        (&done["status"], &done["text"]),
        (&json!("completed"), &json!("done"))
    );
    let text = told(&agents);
    assert!(
        text.contains("booked") && text.contains("Ada") && text.contains("action"),
        "{text}"
    );
    assert_eq!(
        error(&agents.submit(&agent, &paused, &body)),
        "409 CONFLICT"
    );
}

#[test]
fn a_question_can_be_declined_in_a_session_and_by_a_nested_generation() {
    let trips = Arc::new(Trips::default());
    let agents = Agents::serve_beside(trips.server());
    let tool = agents.mcp_tool("trips", "/mcp/trips", json!({}));
    let agent = agents.agent("call trips_book\nsay done", &[&tool], json!({}));
    let session = agents.made(&format!("/agents/{agent}/sessions"), &json!({}));
    let at = format!("/agents/{agent}/sessions/{session}");
    agents.post(&format!("{at}/messages"), &json!({"message": "hi"}));
    let paused = agents.post(&format!("{at}/generate"), &json!({})).json();
    let mut body = outputs(&paused, json!({"action": "decline"}));
    body["generation_id"] = paused["generation_id"].clone();
    let done = agents.post(&format!("{at}/tool-outputs"), &body).json();
    assert_eq!(done["message"]["content"], "done", "{done}");
    assert!(told(&agents).contains("decline"), "{}", told(&agents));

    let team = json!({"name": "team", "type": "soat", "actions": ["create-agent-generation"],
                      "preset_parameters": {"agent_id": agent}});
    let team = agents.made("/tools", &team);
    let script = "call team_create-agent-generation {\"prompt\": \"go\"}\nsay outer done";
    let outer = agents.agent(script, &[&team], json!({}));
    let paused = agents.generate(&outer, &json!({"prompt": "x"}));
    let action = &paused["required_action"];
    assert_eq!(
        (&action["type"], &action["agent_id"]),
        (&json!("answer_questions"), &json!(agent)),
        "{paused}"
    );
    let inner = json!({"id": action["generation_id"]});
    let body = outputs(&paused, json!({"action": "cancel"}));
    let answered = agents.submit(&agent, &inner, &body).json();
    assert_eq!(answered["status"], "completed", "{answered}");
}

#[test]
fn a_kill_before_or_after_a_question_repeats_no_answered_call() {
    // The server is killed when it calls the tool first, or when it brings the answer.
    for kills_at in [0, 1, 2] {
        let trips = Arc::new(Trips::default());
        let mut agents = Agents::serve_beside(trips.server());
        let tool = agents.mcp_tool("trips", "/mcp/trips", json!({}));
        let agent = agents.agent("call trips_book\nsay done", &[&tool], json!({}));
        trips.process.store(agents.api.process(), Ordering::SeqCst);
        trips.kills_at.store(kills_at, Ordering::SeqCst);
        let path = format!("/agents/{agent}/generate");
        let started = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            agents.post(&path, &json!({"prompt": "x"}))
        }));
        if kills_at != 2 {
            agents = agents.restart();
        }
        let mut answered = 0;
        let done = loop {
            let now = agents.get(&format!("/agents/generations?agent_id={agent}"));
            let now = now.json()["data"][0].clone();
            match now["status"].as_str() {
                Some("completed" | "failed") => break now,
                Some("requires_action") => {
                    let content = json!({"action": "accept", "content": {"name": "Ada"}});
                    let body = outputs(&now, content);
                    answered += 1;
                    assert_eq!(
                        answered, 1,
                        "kill at {kills_at}: the question is asked once"
                    );
                    let sent = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                        agents.submit(&agent, &now, &body)
                    }));
                    if kills_at == 2 {
                        drop(sent);
                        agents = agents.restart();
                    }
                }
                _ => std::thread::sleep(std::time::Duration::from_millis(30)),
            }
        };
        drop(started);
        assert_eq!(done["status"], "completed", "kill at {kills_at}: {done}");
        let calls = trips.calls.load(Ordering::SeqCst);
        let text = told(&agents);
        match kills_at {
            0 => assert!(calls == 2 && text.contains("booked"), "{calls} {text}"),
            // A call in doubt is not sent again: the model receives an error.
            1 => assert!(calls == 1 && answered == 0, "{calls} {answered} {text}"),
            _ => assert!(calls == 2 && !text.contains("booked"), "{calls} {text}"),
        }
        let mut turns: HashMap<usize, usize> = HashMap::new();
        for turn in agents.turns() {
            let count = turn["messages"].as_array().map_or(0, Vec::len);
            *turns.entry(count).or_default() += 1;
        }
        assert!(
            turns.values().all(|count| *count == 1),
            "{kills_at}: {turns:?}"
        );
    }
}
