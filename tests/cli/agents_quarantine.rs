//! Generations that end their server: they are shown as failed, and hold nothing up.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agents_api::{Agents, answer, error};
use crate::api::post_to;
use crate::server::{Answer, Server};

/// What kills the server when the model gets a request with this word.
const DEADLY: &str = "deadly";

#[derive(Clone, Default)]
struct Killer {
    process: Arc<AtomicU32>,
    is_off: Arc<AtomicBool>,
}

impl Killer {
    fn serve(&self) -> Agents {
        let killer = self.clone();
        let agents = Agents::serve_beside(Server::start(move |request, _| {
            if request.body.contains(DEADLY) && !killer.is_off.load(Ordering::SeqCst) {
                let id = killer.process.load(Ordering::SeqCst).to_string();
                let status = Command::new("kill").args(["-9", &id]).status();
                assert!(status.is_ok_and(|status| status.success()), "kill -9 {id}");
                return Answer::Raw(Vec::new());
            }
            answer(request)
        }));
        self.process.store(agents.api.process(), Ordering::SeqCst);
        agents
    }

    /// Starts the server after it was killed, three times.
    fn until_quarantine(&self, mut agents: Agents, path: &str) -> Agents {
        let (address, token) = (agents.api.address.clone(), agents.api.token.clone());
        let path = format!("/api/v1{path}");
        thread::spawn(move || post_to(&address, &token, &path, &json!({})));
        for _ in 0..3 {
            let ends = Instant::now() + Duration::from_secs(30);
            while is_alive(agents.api.process()) {
                assert!(Instant::now() < ends, "the server is not killed");
                thread::sleep(Duration::from_millis(20));
            }
            agents = agents.restart();
            self.process.store(agents.api.process(), Ordering::SeqCst);
        }
        agents
    }
}

/// Tells whether a process runs: one that was killed remains until its parent asks for its end.
fn is_alive(process: u32) -> bool {
    let shown = Command::new("ps")
        .args(["-o", "stat=", "-p", &process.to_string()])
        .output()
        .expect("`ps` starts");
    let state = String::from_utf8_lossy(&shown.stdout);
    !state.trim().is_empty() && !state.trim().starts_with('Z')
}

fn generations(agents: &Agents, agent: &str) -> Vec<Value> {
    let list = agents.get(&format!(
        "/agents/generations?agent_id={agent}&status=failed"
    ));
    list.json()["data"].as_array().expect("a list").clone()
}

#[test]
fn a_generation_in_quarantine_is_failed_and_its_session_goes_on() {
    let killer = Killer::default();
    let agents = killer.serve();
    let agent = agents.agent("say hi", &[], json!({}));
    let session = agents.made(&format!("/agents/{agent}/sessions"), &json!({}));
    let at = format!("/agents/{agent}/sessions/{session}");
    agents.post(&format!("{at}/messages"), &json!({"message": DEADLY}));
    let agents = killer.until_quarantine(agents, &format!("{at}/generate"));
    let failed = generations(&agents, &agent);
    let [failed] = &failed[..] else {
        panic!("one generation: {failed:?}");
    };
    let message = failed["error"]["message"].as_str().unwrap_or_default();
    assert_eq!(failed["error"]["code"], "QUARANTINED", "{failed}");
    assert!(
        message.contains("ended 3 times in a row") && message.contains("runs resume"),
        "{message}"
    );
    assert_eq!(agents.get(&at).json()["generating_at"], Value::Null);
    killer.is_off.store(true, Ordering::SeqCst);
    let next = agents.post(&format!("{at}/generate"), &json!({})).json();
    assert_eq!(next["status"], "completed", "{next}");
    // Once it is released, it continues.
    let run = failed["id"]
        .as_str()
        .expect("an id")
        .replace("agt_gen_", "");
    agents
        .scratch
        .run(&["runs", "resume", &run, "--quiet"])
        .ok();
    let id = failed["id"].as_str().expect("an id");
    let resumed = agents.get(&format!("/agents/generations/{id}")).json();
    assert_eq!(
        (&resumed["status"], &resumed["error"]),
        (&json!("completed"), &Value::Null)
    );
}

#[test]
fn a_generation_that_waits_for_one_in_quarantine_is_failed_and_agents_can_be_deleted() {
    let killer = Killer::default();
    let agents = killer.serve();
    let inner = agents.agent(&format!("say {DEADLY}"), &[], json!({}));
    let team = json!({"name": "team", "type": "soat", "actions": ["create-agent-generation"],
                      "preset_parameters": {"agent_id": inner}});
    let team = agents.made("/tools", &team);
    let script = "call team_create-agent-generation {\"prompt\": \"go\"}\nsay done";
    let outer = agents.agent(script, &[&team], json!({}));
    let session = agents.made(&format!("/agents/{outer}/sessions"), &json!({}));
    let at = format!("/agents/{outer}/sessions/{session}");
    agents.post(&format!("{at}/messages"), &json!({"message": "x"}));
    let agents = killer.until_quarantine(agents, &format!("{at}/generate"));
    let ends = Instant::now() + Duration::from_secs(30);
    while generations(&agents, &outer).is_empty() && Instant::now() < ends {
        thread::sleep(Duration::from_millis(50));
    }
    let (above, below) = (generations(&agents, &outer), generations(&agents, &inner));
    assert_eq!((above.len(), below.len()), (1, 1), "{above:?} {below:?}");
    assert_eq!(above[0]["error"]["code"], "QUARANTINED", "{above:?}");
    let message = above[0]["error"]["message"].as_str().unwrap_or_default();
    let id = below[0]["id"].as_str().expect("an id");
    assert!(message.contains(id), "{message}");
    for agent in [&inner, &outer] {
        let deleted = agents.send("DELETE", &format!("/agents/{agent}"), &Value::Null);
        assert!(deleted.status < 300, "{}", error(&deleted));
    }
}
