//! Changes of records past what policies and boundaries deny: paths, tags, and what answers to changes show.

use serde_json::{Value, json};

use super::agents_keys::{key, policy, with};
use super::agents_rights::{KINDS, TEXT, World};
use crate::agents_api::{Agents, error};

#[test]
fn a_change_is_judged_by_the_record_before_and_after_it() {
    let world = World::serve();
    let agents = &world.agents;
    let id = policy(
        agents,
        &json!([
            {"effect": "Allow", "action": ["*"]},
            {"effect": "Deny", "action": ["*"], "resource": ["soat:*:document:/hidden/*"]},
            {"effect": "Deny", "action": ["*"], "condition": {"StringEquals": {"soat:ResourceTag/level": "secret"}}},
        ]),
    );
    let (_, text) = key(agents, &json!({"name": "k", "policy_ids": [id]}));
    let shown = |kind: &str| world.ids(kind)[0].clone();
    let document = format!("/documents/{}", shown("document"));
    let secret = json!({"level": "secret"});
    let mut refused = vec![
        (
            format!("PATCH {document}"),
            json!({"path": "/hidden/b.txt"}),
        ),
        (format!("PATCH {document}"), json!({"tags": secret})),
        (
            format!("PATCH /actors/{}", shown("actor")),
            json!({"tags": secret}),
        ),
        (
            format!("PUT /memories/{}", shown("memory")),
            json!({"tags": ["level:secret"]}),
        ),
        // A new record: its path may come from the name of its file.
        (
            "POST /documents".to_owned(),
            json!({"content": "x", "path": "/hidden/c"}),
        ),
        (
            "POST /documents".to_owned(),
            json!({"content": "x", "filename": "hidden/c"}),
        ),
        (
            "POST /documents".to_owned(),
            json!({"content": "x", "filename": "/hidden/c"}),
        ),
        // The record before the change.
        (
            format!("PATCH /documents/{}", world.ids("document")[1]),
            json!({"path": "/shown/b", "tags": {}}),
        ),
    ];
    let session = format!("/agents/{}/sessions/{}", world.agent, shown("session"));
    let mut tagged = vec![
        session,
        format!("/agents/generations/{}", shown("generation")),
    ];
    for (kind, path) in KINDS {
        tagged.push(format!("{path}/{}", shown(kind)));
    }
    tagged.push(format!("/traces/{}", shown("trace")));
    tagged.push(format!("/projects/{}", world.other));
    for path in &tagged {
        refused.push((format!("PUT {path}/tags"), secret.clone()));
        refused.push((format!("PATCH {path}/tags"), secret.clone()));
    }
    for (route, body) in &refused {
        let reply = with(agents, &text, route, body);
        assert_eq!(error(&reply), "403 FORBIDDEN", "{route} {body}: {reply:?}");
        assert!(!reply.body.contains(TEXT), "{reply:?}");
    }
    for path in &tagged {
        let open = with(
            agents,
            &text,
            &format!("PATCH {path}/tags"),
            &json!({"level": "open"}),
        );
        assert_eq!(open.status, 200, "{path}: {open:?}");
    }
    let moved = with(
        agents,
        &text,
        &format!("PATCH {document}"),
        &json!({"path": "/other", "title": "t"}),
    );
    assert_eq!(
        (moved.status, &moved.json()["path"]),
        (200, &json!("/other")),
        "{moved:?}"
    );
}

#[test]
fn a_tag_that_a_condition_needs_cannot_be_removed() {
    let agents = Agents::serve();
    let id = policy(
        &agents,
        &json!([{"effect": "Allow", "action": ["*"], "condition": {"StringEquals": {"soat:ResourceTag/team": "red"}}}]),
    );
    let (_, text) = key(&agents, &json!({"name": "k", "policy_ids": [id]}));
    let document = agents.made(
        "/documents",
        &json!({"content": "x", "tags": {"team": "red"}}),
    );
    let path = format!("/documents/{document}");
    for (route, body) in [
        (format!("PUT {path}/tags"), json!({})),
        (format!("PATCH {path}/tags"), json!({"team": "blue"})),
        (format!("PATCH {path}"), json!({"tags": null})),
        (format!("PATCH {path}"), json!({"tags": {"team": "blue"}})),
    ] {
        let reply = with(&agents, &text, &route, &body);
        assert_eq!(error(&reply), "403 FORBIDDEN", "{route} {body}");
        assert!(reply.body.contains("after the change"), "{reply:?}");
    }
    assert_eq!(agents.get(&path).json()["tags"], json!({"team": "red"}));
}

#[test]
fn an_answer_to_a_change_shows_no_record_that_the_caller_may_not_get() {
    let agents = Agents::serve();
    let document = agents.made("/documents", &json!({"content": TEXT}));
    let id = policy(
        &agents,
        &json!([{"effect": "Allow", "action": ["*"]}, {"effect": "Deny", "action": ["documents:GetDocument"]}]),
    );
    let (_, text) = key(&agents, &json!({"name": "k", "policy_ids": [id]}));
    let route = format!("PATCH /documents/{document}");
    let reply = with(&agents, &text, &route, &json!({"title": "t"}));
    assert_eq!(error(&reply), "403 FORBIDDEN", "{reply:?}");
    let list = with(&agents, &text, "GET /documents", &Value::Null);
    assert_eq!((list.status, list.json()), (200, json!([])));
}

#[test]
fn a_second_value_of_a_tag_does_not_hide_the_first() {
    let agents = Agents::serve();
    let tags = json!(["level:secret", "level:open"]);
    let memory = agents.made("/memories", &json!({"name": "m", "tags": tags}));
    let id = policy(
        &agents,
        &json!([
            {"effect": "Allow", "action": ["*"]},
            {"effect": "Deny", "action": ["*"], "condition": {"StringEquals": {"soat:ResourceTag/level": "secret"}}},
        ]),
    );
    let (_, text) = key(&agents, &json!({"name": "k", "policy_ids": [id]}));
    for (route, body) in [
        (format!("GET /memories/{memory}"), Value::Null),
        (
            "POST /memories".to_owned(),
            json!({"name": "n", "tags": tags}),
        ),
    ] {
        let reply = with(&agents, &text, &route, &body);
        assert_eq!(error(&reply), "403 FORBIDDEN", "{reply:?}");
    }
}

#[test]
fn an_appended_fact_shows_no_entry_that_the_caller_may_not_get() {
    let agents = Agents::serve();
    let memory = agents.made("/memories", &json!({"name": "m"}));
    let path = format!("/memories/{memory}/entries");
    agents.made(&path, &json!({"content": TEXT}));
    let id = policy(
        &agents,
        &json!([{"effect": "Allow", "action": ["*"]}, {"effect": "Deny", "action": ["memories:GetMemoryEntry"]}]),
    );
    let (_, text) = key(&agents, &json!({"name": "k", "policy_ids": [id]}));
    let fact = json!({"content": "zebra", "update_threshold": 0, "duplicate_threshold": 1});
    for (route, body) in [
        (format!("POST {path}"), fact),
        (format!("GET {path}"), Value::Null),
    ] {
        let reply = with(&agents, &text, &route, &body);
        assert_eq!(error(&reply), "403 FORBIDDEN", "{reply:?}");
        assert!(!reply.body.contains(TEXT), "{reply:?}");
    }
}

#[test]
fn a_model_moves_no_record_past_the_boundary_of_its_agent() {
    let world = World::serve();
    let agents = &world.agents;
    let names = [
        "merge-memory-tags",
        "replace-document-tags",
        "update-document",
        "update-memory",
        "create-document",
    ];
    let tool = agents.made(
        "/tools",
        &json!({"name": "api2", "type": "soat", "actions": names}),
    );
    let (document, memory) = (
        world.ids("document")[0].clone(),
        world.ids("memory")[0].clone(),
    );
    let calls = [
        (
            "update-document",
            json!({"document_id": document, "path": "/hidden/x"}),
        ),
        (
            "update-document",
            json!({"document_id": document, "tags": {"level": "secret"}}),
        ),
        (
            "replace-document-tags",
            json!({"document_id": document, "tags": {"level": "secret"}}),
        ),
        (
            "update-memory",
            json!({"memory_id": memory, "tags": ["level:secret"]}),
        ),
        (
            "merge-memory-tags",
            json!({"memory_id": memory, "tags": {"level": "secret"}}),
        ),
        (
            "create-document",
            json!({"content": "x", "filename": "hidden/x"}),
        ),
    ];
    let calls: Vec<String> = calls
        .iter()
        .map(|(name, given)| format!("api2_{name} {given}"))
        .collect();
    let boundary = json!({"statement": [
        {"effect": "Allow", "action": ["*"]},
        {"effect": "Deny", "action": ["*"], "resource": ["soat:*:document:/hidden/*"]},
        {"effect": "Deny", "action": ["*"], "condition": {"StringEquals": {"soat:ResourceTag/level": "secret"}}},
    ]});
    let script = format!("call {}\nsay done", calls.join(" & "));
    let agent = agents.agent(&script, &[&tool], json!({"boundary_policy": boundary}));
    agents.generate(&agent, &json!({"prompt": "x"}));
    let turns = agents.turns();
    let messages = turns.last().expect("a turn")["messages"]
        .as_array()
        .expect("messages");
    let answers: Vec<&Value> = messages.iter().filter(|it| it["role"] == "tool").collect();
    assert_eq!(answers.len(), calls.len());
    for answer in answers {
        assert!(
            answer["content"]
                .as_str()
                .expect("a text")
                .contains("boundary policy"),
            "{answer}"
        );
    }
}
