//! Answers as the types of the published client declare them, and what requests at the same time must not break.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::agents_api::{Agents, error};
use crate::api::{Api, Reply};
use crate::program::Scratch;

/// Makes requests at the same time.
fn at_once(count: usize, ask: impl Fn(usize) -> Reply + Sync) -> Vec<Reply> {
    let ask = &ask;
    thread::scope(|scope| {
        let started: Vec<_> = (0..count)
            .map(|idx| scope.spawn(move || ask(idx)))
            .collect();
        let replies = started.into_iter();
        replies.map(|it| it.join().expect("an answer")).collect()
    })
}

#[test]
fn an_actor_of_an_agent_is_linked_to_it() {
    let agents = Agents::serve();
    let agent = agents.agent("say hi", &[], json!({}));
    let path = format!("/agents/{agent}/actors");
    let body = json!({"name": "Ada", "type": "customer", "external_id": "u1", "tags": {"a": "b"}});
    let made = agents.post(&path, &body);
    assert_eq!(made.status, 201, "{made:?}");
    let actor = made.json();
    let own = ["name", "type", "external_id", "tags"];
    assert!(own.iter().all(|name| actor[name] == body[name]), "{actor}");
    assert_eq!(actor["agent_id"], json!(agent));
    let again = agents.post(&path, &body);
    assert_eq!((again.status, &again.json()["id"]), (200, &actor["id"]));
    let id = actor["id"].as_str().expect("an id");
    assert_eq!(agents.get(&format!("/actors/{id}")).json(), actor);
    let none = agents.post("/agents/agt_none/actors", &json!({"name": "x"}));
    assert_eq!(error(&none), "404 RESOURCE_NOT_FOUND");
    let unknown = agents.post(&path, &json!({"name": "x", "color": 1}));
    assert_eq!(error(&unknown), "400 VALIDATION_FAILED");
    let denied = json!({"statement": [{"effect": "Allow", "action": ["*"]},
                                      {"effect": "Deny", "action": ["actors:CreateActor"]}]});
    let policy = agents.made("/policies", &json!({"document": denied}));
    let key = agents.post("/api-keys", &json!({"name": "k", "policy_ids": [policy]}));
    let key = key.json()["key"].as_str().expect("a key").to_owned();
    let headers = format!("authorization: Bearer {key}");
    let request = format!("POST /api/v1{path}");
    let refused = agents.api.request(
        &request,
        &[&headers, "content-type: application/json"],
        r#"{"name": "Bob"}"#,
    );
    assert_eq!(error(&refused), "403 FORBIDDEN");
}

#[test]
fn lists_without_a_total_are_whole() {
    let agents = Agents::serve();
    let count = 55;
    for idx in 0..count {
        agents.made("/documents", &json!({"content": format!("text {idx}")}));
        agents.made("/memories", &json!({"name": format!("m{idx}")}));
        agents.client_tool(&format!("t{idx}"));
    }
    let length = |list: &Value| list.as_array().map(Vec::len);
    for path in ["/documents", "/memories"] {
        assert_eq!(length(&agents.get(path).json()), Some(count), "{path}");
    }
    assert_eq!(length(&agents.get("/tools").json()["data"]), Some(count));
    let part = agents.get("/documents?limit=3&offset=53").json();
    assert_eq!(length(&part), Some(2));
}

#[test]
fn documents_have_a_size_and_lists_of_them_no_texts() {
    let agents = Agents::serve();
    let id = agents.made("/documents", &json!({"content": "é is two bytes"}));
    let one = agents.get(&format!("/documents/{id}")).json();
    assert_eq!(
        (&one["size"], &one["content"]),
        (&json!(15), &json!("é is two bytes"))
    );
    let list = agents.get("/documents").json();
    assert_eq!(
        (&list[0]["size"], list[0].get("content")),
        (&json!(15), None)
    );
}

#[test]
fn traces_have_their_number_of_steps_everywhere() {
    let agents = Agents::serve();
    let tool = agents.http_tool("lookup");
    let ask = agents.client_tool("ask");
    let agent = agents.agent("call lookup\ncall ask\nsay done", &[&tool, &ask], json!({}));
    let paused = agents.generate(&agent, &json!({"prompt": "x"}));
    let trace = paused["trace_id"].as_str().expect("a trace").to_owned();
    let counts = || {
        let one = agents.get(&format!("/traces/{trace}")).json();
        let tree = agents.get(&format!("/traces/{trace}/tree")).json();
        let list = agents.get("/traces").json();
        [&one, &tree, &list["data"][0]].map(|it| it["step_count"].clone())
    };
    assert_eq!(counts(), [2, 2, 2]);
    let outputs = json!({"tool_outputs": [{"tool_call_id": "c1.0", "output": 1}]});
    agents.submit(&agent, &paused, &outputs);
    assert_eq!(counts(), [3, 3, 3]);
}

#[test]
fn records_have_the_members_with_defaults() {
    let agents = Agents::serve();
    let agent = agents.agent("say hi", &[], json!({}));
    let shown = agents.get(&format!("/agents/{agent}")).json();
    assert_eq!(shown["single_session_per_actor"], false);
    let id = agents.made(&format!("/agents/{agent}/sessions"), &json!({}));
    let at = format!("/agents/{agent}/sessions/{id}");
    assert_eq!(agents.get(&at).json()["inactivity_ttl_seconds"], 0);
    let expired = agents.send("PATCH", &at, &json!({"status": "expired"}));
    assert_eq!(expired.json()["status"], "expired");
    let refused = agents.post(&format!("{at}/messages"), &json!({"message": "x"}));
    assert_eq!(error(&refused), "410 SESSION_EXPIRED");
}

#[test]
fn one_of_several_sessions_follows_an_expired_one() {
    let agents = Agents::serve();
    let agent = agents.agent("say hi", &[], json!({"single_session_per_actor": true}));
    let actor = agents.made("/actors", &json!({"name": "Ada"}));
    let path = format!("/agents/{agent}/sessions");
    let first = agents.made(
        &path,
        &json!({"actor_id": actor, "inactivity_ttl_seconds": 1}),
    );
    let ends = Instant::now() + Duration::from_secs(60);
    while agents.get(&format!("{path}/{first}")).json()["status"] == "open" {
        assert!(Instant::now() < ends, "it expires");
        thread::sleep(Duration::from_millis(100));
    }
    let replies = at_once(12, |_| agents.post(&path, &json!({"actor_id": actor})));
    let made: Vec<_> = replies.iter().filter(|it| it.status == 201).collect();
    assert_eq!(made.len(), 1, "{replies:?}");
    let own = made[0].json()["id"].clone();
    for refused in replies.iter().filter(|it| it.status != 201) {
        assert_eq!(error(refused), "409 SINGLE_SESSION_CONFLICT");
        assert_eq!(refused.json()["error"]["meta"]["session_id"], own);
    }
    let open = agents.get(&format!("{path}?actor_id={actor}&status=open"));
    assert_eq!(open.json()["total"], 1);
    // The expired one cannot be opened again beside it.
    let reopened = agents.send(
        "PATCH",
        &format!("{path}/{first}"),
        &json!({"status": "open"}),
    );
    assert_eq!(error(&reopened), "409 SINGLE_SESSION_CONFLICT");
}

#[test]
fn a_session_from_before_the_rule_counts() {
    let agents = Agents::serve();
    let agent = agents.agent("say hi", &[], json!({}));
    let actor = agents.made("/actors", &json!({"name": "Ada"}));
    let path = format!("/agents/{agent}/sessions");
    let first = agents.made(&path, &json!({"actor_id": actor}));
    let rule = json!({"single_session_per_actor": true});
    agents.send("PUT", &format!("/agents/{agent}"), &rule);
    let refused = agents.post(&path, &json!({"actor_id": actor}));
    assert_eq!(error(&refused), "409 SINGLE_SESSION_CONFLICT");
    assert_eq!(refused.json()["error"]["meta"]["session_id"], json!(first));
    agents.send("DELETE", &format!("{path}/{first}"), &Value::Null);
    agents.made(&path, &json!({"actor_id": actor}));
}

#[test]
fn a_message_does_not_undo_a_closing_at_the_same_time() {
    let agents = Agents::serve();
    let agent = agents.agent("say hi", &[], json!({}));
    let path = format!("/agents/{agent}/sessions");
    for _ in 0..15 {
        let id = agents.made(&path, &json!({}));
        let at = format!("{path}/{id}");
        at_once(6, |idx| match idx {
            3 => agents.send("PATCH", &at, &json!({"status": "closed"})),
            _ => agents.post(&format!("{at}/messages"), &json!({"message": "x"})),
        });
        assert_eq!(agents.get(&at).json()["status"], "closed");
    }
}

#[test]
fn the_default_project_is_made_once() {
    let scratch = Scratch::new();
    let api = Api::serve(&scratch);
    let replies = at_once(12, |idx| {
        let body = json!({"content": format!("text {idx}")});
        api.post("/api/v1/documents", &body)
    });
    let projects: Vec<Value> = replies
        .iter()
        .map(|it| it.json()["project_id"].clone())
        .collect();
    assert!(projects[0].is_string(), "{replies:?}");
    assert!(projects.iter().all(|it| *it == projects[0]), "{projects:?}");
    let listed = api.get("/api/v1/projects").json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
}

#[test]
fn the_messages_of_a_deleted_session_are_deleted() {
    let agents = Agents::serve();
    let agent = agents.agent("say hi", &[], json!({}));
    let path = format!("/agents/{agent}/sessions");
    let id = agents.made(&path, &json!({}));
    let body = json!({"message": "a private remark", "idempotency_key": "k"});
    agents.post(&format!("{path}/{id}/messages"), &body);
    let query = || {
        let flow = "{:slug :stored :flow '(mapv #(get % :rows) [\
                    (flow/step :table :m {:op :query :table \"flowstone_api_messages\"})\
                    (flow/step :table :k {:op :query :table \"flowstone_api_message_keys\"})])}";
        agents.scratch.write("stored.edn", flow);
        agents.scratch.run(&["run", "stored.edn"]).out
    };
    assert!(query().contains("a private remark"));
    agents.send("DELETE", &format!("{path}/{id}"), &Value::Null);
    assert!(!query().contains("a private remark"));
}

#[test]
fn presets_of_a_tool_without_executor_are_not_in_its_schema() {
    let agents = Agents::serve();
    let parameters = json!({"type": "object", "required": ["answer", "tenant"],
                            "properties": {"answer": {"type": "string"}, "tenant": {"type": "string"}}});
    let body =
        json!({"name": "done", "parameters": parameters, "preset_parameters": {"tenant": "acme"}});
    let done = agents.made("/tools", &body);
    let agent = agents.agent("call done {\"answer\": \"42\"}", &[&done], json!({}));
    let ended = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(ended["stop_reason"], "no_executor", "{ended}");
    let schema = agents.turns()[0]["tools"][0]["function"]["parameters"].clone();
    assert!(schema["properties"]["answer"].is_object(), "{schema}");
    assert!(!schema.to_string().contains("tenant"), "{schema}");
}
