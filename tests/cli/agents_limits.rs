//! Boundaries that nobody widens, credentials that stay with their host, and traces without the insides of the store.

use serde_json::{Value, json};

use super::agents_keys::{key, policy, with};
use crate::agents_api::{Agents, answer, error};
use crate::server::Server;

/// A boundary that allows these actions.
fn allow(actions: &[&str]) -> Value {
    json!({"statement": [{"effect": "Allow", "action": actions}]})
}

/// Returns the results of tools that the model got, of all turns.
fn results(agents: &Agents) -> Vec<String> {
    let turns = agents.turns();
    let messages = turns
        .iter()
        .flat_map(|turn| turn["messages"].as_array().expect("messages"));
    let tools = messages.filter(|it| it["role"] == "tool");
    tools
        .filter_map(|it| it["content"].as_str().map(str::to_owned))
        .collect()
}

#[test]
fn a_key_with_policies_narrows_boundaries_and_widens_none() {
    let agents = Agents::serve();
    let reading = ["documents:GetDocument", "documents:ListDocuments"];
    let agent = agents.agent("say x", &[], json!({"boundary_policy": allow(&reading)}));
    let free = agents.agent("say x", &[], json!({}));
    let id = policy(
        &agents,
        &json!([{"effect": "Allow", "action": ["agents:*", "documents:*"]}]),
    );
    let (_, text) = key(&agents, &json!({"name": "k", "policy_ids": [id]}));
    let denies = json!({"statement": [{"effect": "Allow", "action": ["*"]}, {"effect": "Deny", "action": ["documents:DeleteDocument"]}]});
    for (agent, boundary, expected) in [
        (&agent, Value::Null, 403),
        (&agent, allow(&["*"]), 403),
        (&agent, allow(&["documents:GetDocument", "memories:*"]), 403),
        // No more than the policies of the key, though more than before.
        (&agent, allow(&["documents:*"]), 200),
        (&agent, allow(&["documents:GetDocument"]), 200),
        (&agent, json!({"statement": []}), 200),
        (&agent, Value::Null, 403),
        // An agent without a boundary may get any.
        (&free, denies, 200),
        (&free, allow(&["*"]), 403),
    ] {
        let route = format!("PUT /agents/{agent}");
        let before = agents.get(&format!("/agents/{agent}")).json();
        let reply = with(
            &agents,
            &text,
            &route,
            &json!({"boundary_policy": boundary}),
        );
        assert_eq!(reply.status, expected, "{boundary}: {reply:?}");
        if expected == 403 {
            assert!(reply.body.contains("E1320"), "{reply:?}");
            let after = agents.get(&format!("/agents/{agent}")).json();
            assert_eq!(after, before, "nothing is changed");
        }
    }
    // Other members, and the same boundary again.
    let shown = agents.get(&format!("/agents/{agent}")).json();
    let same = json!({"name": "n", "boundary_policy": shown["boundary_policy"]});
    let reply = with(&agents, &text, &format!("PUT /agents/{agent}"), &same);
    assert_eq!(reply.status, 200, "{reply:?}");
    let freed = agents.send(
        "PUT",
        &format!("/agents/{agent}"),
        &json!({"boundary_policy": null}),
    );
    assert_eq!(freed.status, 200, "the owner has no limits: {freed:?}");
}

#[test]
fn a_model_changes_no_boundary_and_an_agent_that_it_creates_stays_within_its_own() {
    let agents = Agents::serve();
    let document = agents.made("/documents", &json!({"content": "classified"}));
    let docs = agents.made(
        "/tools",
        &json!({"name": "docs", "type": "soat", "actions": ["get-document", "list-documents"]}),
    );
    let names = ["create-agent", "create-agent-generation", "update-agent"];
    let tool = agents.made(
        "/tools",
        &json!({"name": "api", "type": "soat", "actions": names}),
    );
    let boundary = allow(&["agents:*", "tools:CallTool"]);
    let outer = agents.agent("say x", &[&tool], json!({"boundary_policy": boundary}));
    let read = format!(
        "call docs_get-document {{\"document_id\": \"{document}\"}}\ncall docs_list-documents\nsay read"
    );
    let inner = agents.agent(&read, &[&docs], json!({}));
    let created = json!({"ai_provider_id": agents.provider, "instructions": read, "tool_ids": [docs], "name": "made"});
    let mut wide = created.clone();
    wide["boundary_policy"] = allow(&["*"]);
    let script = format!(
        "call api_update-agent {} & api_update-agent {} & api_update-agent {} & api_create-agent {wide}\ncall api_create-agent {created}\ncall api_create-agent-generation {}\nsay done",
        json!({"agent_id": outer, "boundary_policy": null}),
        json!({"agent_id": outer, "boundary_policy": allow(&["*"])}),
        json!({"agent_id": inner, "boundary_policy": allow(&["*"])}),
        json!({"agent_id": inner, "prompt": "x"}),
    );
    let path = format!("/agents/{outer}");
    let changed = agents.send("PUT", &path, &json!({"instructions": script}));
    assert_eq!(changed.status, 200, "{changed:?}");
    let done = agents.generate(&outer, &json!({"prompt": "x"}));
    assert_eq!(done["text"], "done", "{done}");
    let refused = results(&agents);
    let of_boundary = refused
        .iter()
        .filter(|it| it.contains("boundary_policy"))
        .count();
    assert!(of_boundary >= 4, "{refused:?}");
    assert_eq!(agents.get(&path).json()["boundary_policy"], boundary);
    // The agent that the model made, run below it.
    let list = agents.get("/agents").json();
    let made = list
        .as_array()
        .expect("agents")
        .iter()
        .find(|it| it["name"] == "made");
    let made = made.expect("it was created")["id"].clone();
    let script = format!(
        "call api_create-agent-generation {}\nsay done",
        json!({"agent_id": made, "prompt": "x"})
    );
    agents.send("PUT", &path, &json!({"instructions": script}));
    agents.generate(&outer, &json!({"prompt": "x"}));
    let all = results(&agents);
    assert!(all.iter().all(|it| !it.contains("classified")), "{all:?}");
    let denied = all
        .iter()
        .filter(|it| it.contains("does not allow `documents:"))
        .count();
    assert!(denied >= 4, "two calls of each agent: {all:?}");
}

#[test]
fn a_credential_goes_to_no_other_host_than_the_one_it_was_given_for() {
    let agents = Agents::serve();
    let away = Server::start(|request, _| answer(request));
    let provider = format!("/ai-providers/{}", agents.provider);
    let secret = agents.get(&provider).json()["secret_id"].clone();
    assert!(secret.is_string());
    let change = |path: &str, body: &Value| {
        let changed = agents.send("PATCH", path, body);
        assert_eq!(changed.status, 200, "{changed:?}");
        changed.json()
    };
    // Another path of the host keeps the secret.
    let kept = change(
        &provider,
        &json!({"base_url": agents.outside.url("/v1"), "name": "n"}),
    );
    assert_eq!(kept["secret_id"], secret);
    let moved = change(&provider, &json!({"base_url": away.url("/v1")}));
    assert_eq!(moved["secret_id"], Value::Null, "{moved}");
    let agent = agents.agent("say x", &[], json!({}));
    agents.post(
        &format!("/agents/{agent}/generate"),
        &json!({"prompt": "x"}),
    );
    assert!(
        away.requests()
            .iter()
            .all(|it| !it.head.contains("sk-model-key"))
    );
    // Given again, it goes there.
    let given = change(
        &provider,
        &json!({"base_url": away.url("/v1"), "secret_id": secret}),
    );
    assert_eq!(given["secret_id"], secret);
    let done = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(done["text"], "x", "{done}");
    assert!(
        away.requests()
            .iter()
            .any(|it| it.head.contains("sk-model-key"))
    );
    let away_url = away.url("/lookup");
    for (member, kind) in [("execute", "http"), ("mcp", "mcp")] {
        let server =
            |url: &str| json!({"url": url, "headers": {"Authorization": "Bearer tool-t0ken-0123"}});
        let body =
            json!({"name": kind, "type": kind, member: server(&agents.outside.url("/lookup"))});
        let tool = format!("/tools/{}", agents.made("/tools", &body));
        assert_eq!(agents.get(&tool).json()[member]["has_token"], true);
        let moved = change(&tool, &json!({member: {"url": away_url}}));
        assert_eq!(moved[member]["has_token"], false, "{moved}");
        let given = change(&tool, &json!({member: server(&away_url)}));
        assert_eq!(given[member]["has_token"], true, "{given}");
    }
}

#[test]
fn a_secret_is_given_to_a_provider_by_those_who_may_see_it() {
    let agents = Agents::serve();
    let secret = agents.made("/secrets", &json!({"name": "s", "value": "sk-0123456789"}));
    let body = json!({"name": "p", "provider": "openai", "default_model": "m", "base_url": agents.outside.url("/v1"), "secret_id": secret});
    for (actions, expected) in [
        (vec!["ai-providers:*"], 403),
        (vec!["ai-providers:*", "secrets:GetSecret"], 201),
    ] {
        let id = policy(&agents, &json!([{"effect": "Allow", "action": actions}]));
        let (_, text) = key(&agents, &json!({"name": "k", "policy_ids": [id]}));
        let made = with(&agents, &text, "POST /ai-providers", &body);
        assert_eq!(made.status, expected, "{made:?}");
        let route = format!("PATCH /ai-providers/{}", agents.provider);
        let changed = with(&agents, &text, &route, &json!({"secret_id": secret}));
        assert_eq!(
            changed.status,
            if expected == 201 { 200 } else { 403 },
            "{changed:?}"
        );
    }
}

#[test]
fn the_trace_of_write_memory_has_what_the_model_got() {
    let agents = Agents::serve();
    let memory = agents.made("/memories", &json!({"name": "Facts"}));
    let fact = "call write_memory {\"content\": \"The customer lives in Oslo.\"}";
    let agent = agents.agent(
        &format!("{fact}\n{fact}\nsay kept"),
        &[],
        json!({"knowledge_config": {"memory_ids": [memory], "write_memory_id": memory}}),
    );
    let done = agents.generate(&agent, &json!({"prompt": "x"}));
    let path = format!("/traces/{}", done["trace_id"].as_str().expect("an id"));
    let trace = agents.get(&path);
    let calls: Vec<Value> = trace.json()["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .flat_map(|step| step["tool_calls"].as_array().expect("calls").clone())
        .map(|call| call["result"].clone())
        .collect();
    assert_eq!(
        calls,
        [json!({"action": "created"}), json!({"action": "skipped"})]
    );
    for inside in ["row-ids", "row-count", "flowstone_api", "rows-inserted"] {
        assert!(!trace.body.contains(inside), "{trace:?}");
    }
    assert_eq!(
        error(&agents.get("/traces/agt_trace_none")),
        "404 RESOURCE_NOT_FOUND"
    );
}
