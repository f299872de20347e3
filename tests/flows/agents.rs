//! The flows with agents, against a server that answers like a model: what was done is looked at, not what was said.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::{data, only_wait, project};
use crate::program::Scratch;
use crate::server::{Answer, Request, Server};

/// What the model says in a turn.
enum Says {
    Text(String),
    Calls(Vec<(&'static str, Value)>),
}

/// A request, as a model would see it.
struct ModelRequest {
    call: Value,
    /// How many turns came before it.
    turn: usize,
}

impl ModelRequest {
    fn read(request: &Request) -> ModelRequest {
        let call: Value = serde_json::from_str(&request.body).expect("a JSON body");
        let messages = call["messages"].as_array().expect("messages");
        let turn = messages
            .iter()
            .filter(|it| it["role"] == "assistant")
            .count();
        ModelRequest { call, turn }
    }

    fn text(&self) -> String {
        self.call["messages"].to_string()
    }

    /// Finds the first reference of a kind that was mentioned.
    fn reference(&self, kind: &str) -> String {
        let text = self.text();
        let uris = text.split("res://").skip(1).map(|rest| {
            let end = rest.find(|it: char| !(it.is_ascii_alphanumeric() || "/-_.~".contains(it)));
            format!("res://{}", &rest[..end.unwrap_or(rest.len())])
        });
        uris.into_iter()
            .find(|uri| uri.contains(kind))
            .unwrap_or_else(|| panic!("no {kind} in {text}"))
    }

    /// Returns what the tools of the last turn gave.
    fn results(&self) -> Vec<&str> {
        let messages = self.call["messages"].as_array().expect("messages");
        let last = messages.iter().rev().take_while(|it| it["role"] == "tool");
        last.filter_map(|it| it["content"].as_str()).collect()
    }
}

/// Starts a model whose turns are given by a function.
fn model(says: impl Fn(&ModelRequest) -> Says + Send + Sync + 'static) -> Server {
    Server::start(move |request, number| {
        let asked = ModelRequest::read(request);
        let chunk = |delta: Value, reason: Value| {
            let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
            json!({"id": "1", "model": "fake", "choices": [choice]}).to_string()
        };
        let usage = json!({"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110});
        let mut events = match says(&asked) {
            Says::Text(text) => vec![
                chunk(json!({"role": "assistant", "content": text}), Value::Null),
                chunk(json!({}), json!("stop")),
            ],
            Says::Calls(calls) => {
                let calls = calls.iter().enumerate().map(|(idx, (name, arguments))| {
                    let function = json!({"name": name, "arguments": arguments.to_string()});
                    json!({"index": idx, "id": format!("call_{number}_{idx}"), "type": "function", "function": function})
                });
                let calls: Vec<Value> = calls.collect();
                vec![
                    chunk(
                        json!({"role": "assistant", "tool_calls": calls}),
                        Value::Null,
                    ),
                    chunk(json!({}), json!("tool_calls")),
                ]
            }
        };
        events.push(json!({"id": "1", "model": "fake", "choices": [], "usage": usage}).to_string());
        events.push("[DONE]".to_owned());
        Answer::Events(events)
    })
}

fn scratch_with(server: &Server) -> Scratch {
    let scratch = project();
    scratch.write(
        "flowstone.edn",
        format!(
            "{{:connections {{:ai {{:type :http-api :backend \"openai-compatible\" :model \"fake\"
                                    :base-url \"{}\" :auth {{:type :none}}}}}}}}",
            server.url("/v1")
        ),
    );
    scratch.write(
        "work/src/store.rs",
        "fn save(text: &str) {\n    let _ = std::fs::write(\"notes.txt\", text);\n}\n",
    );
    scratch.write("work/README.md", "# Notes\n\nIt keps your notes.\n");
    scratch
}

#[test]
fn a_review_reads_remembers_and_is_scored() {
    let server = model(|asked| {
        if asked.text().contains("relevance") && asked.call["tools"].is_null() {
            let scores = json!({"relevance": 5, "completeness": 3, "accuracy": 4});
            let evaluation =
                json!({"scores": scores, "overall": 4, "summary": "One file was read."});
            return Says::Text(evaluation.to_string());
        }
        match asked.turn {
            0 => Says::Calls(vec![(
                "files",
                json!({"op": "list", "source": asked.reference("source-tree")}),
            )]),
            1 => Says::Calls(vec![
                (
                    "files",
                    json!({"op": "read", "source": asked.reference("source-tree"), "path": "src/store.rs"}),
                ),
                (
                    "memory_record",
                    json!({"type": "observation", "key": "src/store.rs", "content": "an error of write is dropped"}),
                ),
            ]),
            _ => {
                let finding = json!({"file": "src/store.rs", "line": 2, "severity": "high", "problem": "An error is dropped."});
                Says::Text(
                    json!({"summary": "One problem.", "risk": "high", "findings": [finding]})
                        .to_string(),
                )
            }
        }
    });
    let scratch = scratch_with(&server);
    let args = [
        "run",
        "flows/code-review.edn",
        "--quiet",
        "--input",
        "{:repo \"work\"}",
    ];
    let result = data(&scratch.run(&args).ok());
    let get = |key: &str| {
        result
            .get(key)
            .cloned()
            .unwrap_or(flowstone_lang::value::Value::Nil)
    };
    assert_eq!(get("risk"), data("\"high\""));
    assert_eq!(
        get("scores"),
        data("{:relevance 5 :completeness 3 :accuracy 4}")
    );
    assert_eq!(get("turns"), data("3"));
    assert!(!get("trace").is_nil() && !get("report").is_nil());
    // The model was told what the files hold.
    let requests = server.requests();
    assert!(requests.iter().any(|it| it.body.contains("std::fs::write")));
    // The next review of the same folder begins with what this one has found.
    let before = server.requests().len();
    scratch.run(&args).ok();
    let next = &server.requests()[before];
    assert!(
        next.body.contains("an error of write is dropped"),
        "{}",
        next.body
    );
    let last = scratch.run(&["runs", "list", "--json"]).json();
    let id = last["runs"][0]["id"].as_str().expect("an id").to_owned();
    let shown = scratch.run(&["runs", "show", &id]).ok();
    assert!(shown.contains("→ files {"), "{shown}");
    assert!(shown.contains("turn 3"), "{shown}");
}

fn fixing(asked: &ModelRequest) -> Says {
    match asked.turn {
        0 => Says::Calls(vec![(
            "files",
            json!({"op": "read", "source": asked.reference("changeset"), "path": "README.md"}),
        )]),
        1 => {
            assert!(asked.results()[0].contains("keps"), "{:?}", asked.results());
            Says::Calls(vec![(
                "files",
                json!({"op": "replace", "changeset": asked.reference("changeset"),
                       "path": "README.md", "old": "keps", "new": "keeps"}),
            )])
        }
        _ => Says::Text("A word was wrong.".to_owned()),
    }
}

const FIX: &[&str] = &[
    "run",
    "flows/fix-and-approve.edn",
    "--quiet",
    "--input",
    "{:path \"work\" :task \"Correct the spelling.\"}",
];

#[test]
fn a_fix_is_kept_when_it_is_approved() {
    let server = model(fixing);
    let scratch = scratch_with(&server);
    let suspended = scratch.run(FIX);
    assert_eq!(suspended.code, Some(3), "{}", suspended.err);
    let wait = only_wait(&scratch);
    let shown = scratch.run(&["waits", "show", &wait]).ok();
    assert!(shown.contains("+It keeps your notes."), "{shown}");
    let result = scratch
        .run(&["waits", "complete", &wait, "--value", "{:action :approve}"])
        .ok();
    let result = data(&result);
    assert_eq!(result.get("changed?"), Some(&data("true")));
    assert_eq!(result.get("files"), Some(&data("[\"README.md\"]")));
    assert!(
        scratch
            .read("fixed/README.md")
            .contains("It keeps your notes.")
    );
    assert!(scratch.read("work/README.md").contains("keps"));
}

#[test]
fn a_fix_is_dropped_when_it_is_rejected() {
    let server = model(fixing);
    let scratch = scratch_with(&server);
    scratch.run(FIX);
    let wait = only_wait(&scratch);
    let answer = "{:action :reject :reason \"not now\"}";
    let result = data(
        &scratch
            .run(&["waits", "complete", &wait, "--value", answer])
            .ok(),
    );
    assert_eq!(result.get("rejected"), Some(&data("\"not now\"")));
    assert!(!scratch.path().join("fixed").exists());
}

#[test]
fn specialists_work_side_by_side_for_a_coordinator() {
    let together = Arc::new(AtomicUsize::new(0));
    let most = Arc::new(AtomicUsize::new(0));
    let (now, high) = (together.clone(), most.clone());
    let server = model(move |asked| {
        let text = asked.text();
        if text.contains("Answer the question about the area") {
            high.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // Long enough for the other to come.
            std::thread::sleep(std::time::Duration::from_millis(300));
            now.fetch_sub(1, Ordering::SeqCst);
            return match asked.turn {
                0 => Says::Calls(vec![(
                    "files",
                    json!({"op": "list", "source": asked.reference("source-tree")}),
                )]),
                _ => {
                    Says::Text(json!({"answer": "In save.", "files": ["src/store.rs"]}).to_string())
                }
            };
        }
        if text.contains("Name at most three things") {
            return Says::Text("Nothing is missing.".to_owned());
        }
        match asked.turn {
            0 => {
                let tree = asked.reference("source-tree");
                let part = |area: &str| {
                    let asks =
                        json!({"area": area, "question": "Where is data lost?", "repo-tree": tree});
                    ("team_reader", asks)
                };
                Says::Calls(vec![part("src"), part("docs")])
            }
            1 => {
                assert!(asked.results().iter().all(|it| it.contains("In save.")));
                Says::Calls(vec![(
                    "team_critic",
                    json!({"draft": "In save of src/store.rs."}),
                )])
            }
            _ => Says::Text("In save of src/store.rs.".to_owned()),
        }
    });
    let scratch = scratch_with(&server);
    let input = "{:path \"work\" :question \"Where could data be lost?\"}";
    let args = ["run", "flows/delegate.edn", "--quiet", "--input", input];
    let result = data(&scratch.run(&args).ok());
    assert_eq!(
        result.get("delegated"),
        Some(&data("{\"team_reader\" 2 \"team_critic\" 1}"))
    );
    assert_eq!(result.get("failed"), Some(&data("0")));
    assert_eq!(most.load(Ordering::SeqCst), 2, "both at once");
    // All turns count: three of the coordinator, two of each reader, one of the critic.
    assert_eq!(result.get("tokens-used"), Some(&data("880")));
}
