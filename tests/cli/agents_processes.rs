//! Two servers of one project that change the same record at the same time.

use std::thread;

use serde_json::{Value, json};

use crate::agents_api::Agents;
use crate::api::Api;

/// Sends requests at once, every second one to the other server, and returns the answers in their order.
fn at_once(servers: [&Api; 2], requests: &[(&str, String, Value)]) -> Vec<(u16, Value)> {
    thread::scope(|scope| {
        let sent: Vec<_> = requests
            .iter()
            .enumerate()
            .map(|(idx, (method, path, body))| {
                let api = servers[idx % 2];
                scope.spawn(move || {
                    let headers = [
                        &*format!("authorization: Bearer {}", api.token),
                        "content-type: application/json",
                    ];
                    let what = format!("{method} /api/v1{path}");
                    let answer = api.request(&what, &headers, &body.to_string());
                    (answer.status, answer.json())
                })
            })
            .collect();
        let answers = sent.into_iter().map(|it| it.join());
        answers.map(|it| it.expect("an answer")).collect()
    })
}

#[test]
fn changes_of_two_servers_at_once_are_all_kept() {
    let agents = Agents::serve();
    let other = Api::serve(&agents.scratch);
    let servers = [&agents.api, &other];
    let agent = agents.agent("say hi", &[], json!({}));
    let run = agents.generate(&agent, &json!({"prompt": "x"}))["id"].clone();
    let agent = format!("/agents/{agent}");
    let run = format!("/agents/generations/{}", run.as_str().expect("an id"));
    for round in 0..5 {
        for path in [&agent, &run] {
            let path = format!("{path}/tags");
            let tags = (0..8).map(|tag| {
                let tag = format!("t{round}.{tag}");
                ("PATCH", path.clone(), json!({tag: "x"}))
            });
            let tags: Vec<_> = tags.collect();
            for (status, answer) in at_once(servers, &tags) {
                assert_eq!(status, 200, "{answer}");
            }
            let kept = agents.get(&path).json();
            let count = kept.as_object().map(|it| it.len());
            assert_eq!(count, Some(8 * (round + 1)), "{kept}");
        }
        let put = |body: Value| ("PUT", agent.clone(), body);
        let name = format!("n{round}");
        let answers = at_once(
            servers,
            &[
                put(json!({"name": name})),
                put(json!({"max_steps": round + 1})),
            ],
        );
        assert!(answers.iter().all(|it| it.0 == 200), "{answers:?}");
        let shown = agents.get(&agent).json();
        assert_eq!(
            (&shown["name"], &shown["max_steps"]),
            (&json!(name), &json!(round + 1))
        );
    }
    other.kill();
}

#[test]
fn an_actor_is_added_once_by_two_servers_at_once() {
    let agents = Agents::serve();
    let other = Api::serve(&agents.scratch);
    for round in 0..5 {
        let body = json!({"name": "Ada", "external_id": format!("ada {round}")});
        let request = ("POST", "/actors".to_owned(), body);
        let answers = at_once([&agents.api, &other], &vec![request; 6]);
        let created = answers.iter().filter(|(status, _)| *status == 201);
        assert_eq!(created.count(), 1, "{answers:?}");
        let id = &answers[0].1["id"];
        assert!(answers.iter().all(|it| it.1["id"] == *id), "{answers:?}");
        // Once it is deleted, its external id is free.
        let path = format!("/actors/{}", id.as_str().expect("an id"));
        assert!(agents.send("DELETE", &path, &Value::Null).status < 300);
        let body = &json!({"name": "Ada", "external_id": format!("ada {round}")});
        assert_eq!(agents.post("/actors", body).status, 201);
    }
    other.kill();
}

#[test]
fn facts_that_two_servers_append_at_once_are_all_kept() {
    let agents = Agents::serve();
    let other = Api::serve(&agents.scratch);
    for round in 0..5 {
        let memory = agents.made("/memories", &json!({"name": format!("m{round}")}));
        let path = format!("/memories/{memory}/entries");
        let first = "Bob lives in Berlin";
        assert_eq!(agents.post(&path, &json!({"content": first})).status, 201);
        let words = ["alpha", "beta", "gamma", "delta"];
        let facts: Vec<_> = words
            .iter()
            .map(|word| {
                let content = format!("{first} {word}");
                ("POST", path.clone(), json!({"content": content}))
            })
            .collect();
        for (status, answer) in at_once([&agents.api, &other], &facts) {
            assert!(matches!(status, 200 | 201), "{answer}");
        }
        let texts = agents.get(&path).json().to_string();
        assert!(words.iter().all(|word| texts.contains(word)), "{texts}");
    }
    other.kill();
}
