//! Requests of the agents API that change the same thing at the same time.

use std::thread;

use serde_json::{Value, json};

use crate::agents_api::Agents;

/// Sends requests at once, and returns the answers in their order.
fn at_once(agents: &Agents, requests: &[(&str, String, Value)]) -> Vec<(u16, Value)> {
    thread::scope(|scope| {
        let sent: Vec<_> = requests
            .iter()
            .map(|(method, path, body)| {
                scope.spawn(move || {
                    let answer = agents.send(method, path, body);
                    let body = match answer.body.is_empty() {
                        true => Value::Null,
                        false => answer.json(),
                    };
                    (answer.status, body)
                })
            })
            .collect();
        let answers = sent.into_iter().map(|it| it.join());
        answers.map(|it| it.expect("an answer")).collect()
    })
}

#[test]
fn changes_of_one_record_at_once_are_all_kept() {
    let agents = Agents::serve();
    let agent = format!("/agents/{}", agents.agent("say hi", &[], json!({})));
    let deny = json!({"statement": [{"effect": "Deny", "action": ["*"]}]});
    let memory = format!(
        "/memories/{}",
        agents.made("/memories", &json!({"name": "m"}))
    );
    for round in 0..5 {
        let put = |path: &str, body: Value| ("PUT", path.to_owned(), body);
        let changes = [
            put(&agent, json!({"boundary_policy": deny})),
            put(&agent, json!({"name": format!("n{round}")})),
            put(&agent, json!({"temperature": 0.5})),
        ];
        for (status, answer) in at_once(&agents, &changes) {
            assert_eq!(status, 200, "{answer}");
        }
        let shown = agents.get(&agent).json();
        assert_eq!(shown["boundary_policy"], deny, "{shown}");
        assert_eq!(shown["name"], format!("n{round}"));
        assert_eq!(shown["temperature"], 0.5);
        let nulls = json!({"boundary_policy": null, "temperature": null});
        assert_eq!(agents.send("PUT", &agent, &nulls).status, 200);

        for path in [&agent, &memory] {
            let path = format!("{path}/tags");
            assert_eq!(agents.send("PUT", &path, &json!({})).status, 200);
            let tags = (0..8).map(|tag| ("PATCH", path.clone(), json!({format!("t{tag}"): "x"})));
            let tags: Vec<_> = tags.collect();
            for (status, answer) in at_once(&agents, &tags) {
                assert_eq!(status, 200, "{answer}");
            }
            let kept = agents.get(&path).json();
            assert_eq!(kept.as_object().map(|it| it.len()), Some(8), "{kept}");
        }
    }
}

#[test]
fn an_actor_is_added_once_by_requests_at_once() {
    let agents = Agents::serve();
    let body = json!({"name": "Ada", "external_id": "ada@example.org"});
    let request = ("POST", "/actors".to_owned(), body);
    let answers = at_once(
        &agents,
        &[request.clone(), request.clone(), request.clone(), request],
    );
    let created = answers.iter().filter(|(status, _)| *status == 201);
    assert_eq!(created.count(), 1, "{answers:?}");
    assert!(
        answers
            .iter()
            .all(|(_, actor)| actor["id"] == answers[0].1["id"]),
        "{answers:?}"
    );
}

#[test]
fn facts_at_once_are_decided_one_after_the_other() {
    let agents = Agents::serve();
    for round in 0..3 {
        let memory = agents.made("/memories", &json!({"name": format!("m{round}")}));
        let path = format!("/memories/{memory}/entries");
        let add = |content: String| ("POST", path.clone(), json!({"content": content}));
        let first = "Bob lives in Berlin";
        assert_eq!(agents.post(&path, &json!({"content": first})).status, 201);
        let words = ["alpha", "beta", "gamma", "delta"];
        let facts: Vec<_> = words
            .iter()
            .map(|word| add(format!("{first} {word}")))
            .collect();
        at_once(&agents, &facts);
        let entries = agents.get(&path).json();
        let texts = entries.to_string();
        assert!(words.iter().all(|word| texts.contains(word)), "{texts}");

        let tea = add("Likes tea in the morning.".to_owned());
        let answers = at_once(&agents, &[tea.clone(), tea.clone(), tea.clone(), tea]);
        let mut actions: Vec<&str> = answers
            .iter()
            .filter_map(|(_, entry)| entry["action"].as_str())
            .collect();
        actions.sort_unstable();
        assert_eq!(actions, ["created", "skipped", "skipped", "skipped"]);
    }
}

#[test]
fn a_record_that_is_deleted_is_not_named_by_one_that_is_added_at_once() {
    let agents = Agents::serve();
    for round in 0..8 {
        let tool = agents.http_tool(&format!("lookup{round}"));
        let policy = json!({"statement": [{"effect": "Allow", "action": ["*"]}]});
        let policy = json!({"name": "p", "document": policy});
        let policy = agents.made("/policies", &policy);
        let secret = json!({"name": format!("s{round}"), "value": "sk-of-a-round"});
        let secret = agents.made("/secrets", &secret);
        let agent = json!({"ai_provider_id": agents.provider, "name": "a", "tool_ids": [tool]});
        let provider = json!({"name": format!("p{round}"), "provider": "openai", "secret_id": secret,
                              "default_model": "m", "base_url": agents.outside.url("/v1")});
        let key = json!({"name": "k", "policy_ids": [policy]});
        for (named, adding, body) in [
            (format!("/tools/{tool}"), "/agents", agent),
            (format!("/secrets/{secret}"), "/ai-providers", provider),
            (format!("/policies/{policy}"), "/api-keys", key),
        ] {
            let add = ("POST", adding.to_owned(), body);
            let delete = ("DELETE", named.clone(), json!({}));
            let answers = at_once(&agents, &[add, delete]);
            let statuses = (answers[0].0, answers[1].0);
            assert!(
                matches!(statuses, (201, 409) | (404, 204)),
                "{adding}: {answers:?}"
            );
        }
    }
}
