//! Tools of type `soat` of the agents API: platform actions, boundaries, nested generations.

use serde_json::{Value, json};

use crate::agents_api::{Agents, error, offered};

/// Creates a tool of type `soat` with these actions.
#[track_caller]
fn platform_tool(agents: &Agents, name: &str, actions: &[&str], more: Value) -> String {
    let mut body = json!({"name": name, "type": "soat", "actions": actions});
    if let (Value::Object(body), Value::Object(more)) = (&mut body, more) {
        body.extend(more);
    }
    agents.made("/tools", &body)
}

/// Returns the results of tools that a turn got.
fn results(turn: &Value) -> Vec<String> {
    let messages = turn["messages"].as_array().expect("messages").iter();
    let tools = messages.filter(|it| it["role"] == "tool");
    tools
        .map(|it| it["content"].as_str().expect("a text").to_owned())
        .collect()
}

fn allow(actions: &[&str]) -> Value {
    json!({"statement": [{"effect": "Allow", "action": actions}]})
}

#[test]
fn actions_are_offered_by_name_and_reach_the_records_of_the_project() {
    let agents = Agents::serve();
    let document = agents.made(
        "/documents",
        &json!({"content": "Revenue was 4.2M.", "title": "Q1"}),
    );
    let tool = platform_tool(
        &agents,
        "docs",
        &["get-document", "list-documents", "create-document"],
        json!({"preset_parameters": {"title": "by an agent"}}),
    );
    let script = format!(
        "call docs_get-document {{\"document_id\": \"{document}\"}}\ncall docs_create-document {{\"content\": \"new\", \"title\": \"mine\"}}\nsay done"
    );
    let agent = agents.agent(&script, &[&tool], json!({}));
    let done = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(done["text"], "done", "{done}");
    let turns = agents.turns();
    assert_eq!(
        offered(&turns[0]),
        [
            "docs_get-document",
            "docs_list-documents",
            "docs_create-document"
        ]
    );
    let schema = &turns[0]["tools"][2]["function"]["parameters"]["properties"];
    assert!(
        schema["content"].is_object()
            && schema["title"].is_null()
            && schema["project_id"].is_null(),
        "{schema}"
    );
    let given = results(&turns[2]);
    assert!(given[0].contains("Revenue was 4.2M."), "{given:?}");
    let all = agents.get("/documents").json();
    assert_eq!(
        (
            all.as_array().map(Vec::len),
            &all[1]["title"],
            &all[1]["size"]
        ),
        (Some(2), &json!("by an agent"), &json!("new".len()))
    );
}

#[test]
fn the_boundary_of_an_agent_denies_what_it_does_not_allow() {
    let agents = Agents::serve();
    let document = agents.made("/documents", &json!({"content": "text"}));
    let tool = platform_tool(
        &agents,
        "docs",
        &["get-document", "delete-document"],
        json!({}),
    );
    let script = format!(
        "call docs_get-document {{\"document_id\": \"{document}\"}} & docs_delete-document {{\"document_id\": \"{document}\"}}\nsay done"
    );
    let boundary = allow(&["documents:GetDocument", "documents:SearchDocuments"]);
    let agent = agents.agent(&script, &[&tool], json!({"boundary_policy": boundary}));
    let done = agents.generate(&agent, &json!({"prompt": "x"}));
    let given = results(&agents.turns()[1]);
    assert!(given[0].contains("text"), "{given:?}");
    assert!(
        given[1].contains("boundary policy") && given[1].contains("documents:DeleteDocument"),
        "{given:?}"
    );
    assert_eq!(agents.get(&format!("/documents/{document}")).status, 200);
    let trace = agents
        .get(&format!(
            "/traces/{}",
            done["trace_id"].as_str().expect("an id")
        ))
        .json();
    let calls = &trace["steps"][0]["tool_calls"];
    assert_eq!(
        (&calls[0]["status"], &calls[1]["status"]),
        (&json!("done"), &json!("failed")),
        "{trace}"
    );
    // A boundary with a deny statement, and one that allows nothing.
    let deny = json!({"statement": [{"effect": "Allow", "action": ["*"]},
                                    {"effect": "Deny", "action": ["documents:*"], "resource": [format!("soat:*:document:{document}")]}]});
    for boundary in [deny, json!({"statement": []})] {
        let changed = agents.send(
            "PUT",
            &format!("/agents/{agent}"),
            &json!({"boundary_policy": boundary}),
        );
        assert_eq!(changed.status, 200, "{changed:?}");
        let before = agents.turns().len();
        agents.generate(&agent, &json!({"prompt": "x"}));
        let given = results(&agents.turns()[before + 1]);
        assert!(
            given.iter().all(|it| it.contains("boundary policy")),
            "{given:?}"
        );
    }
    for wrong in [
        json!({}),
        json!({"statement": [{"effect": "Maybe", "action": ["*"]}]}),
    ] {
        let refused = agents.send(
            "PUT",
            &format!("/agents/{agent}"),
            &json!({"boundary_policy": wrong}),
        );
        assert_eq!(error(&refused), "400 VALIDATION_FAILED");
    }
}

#[test]
fn a_tool_of_type_soat_is_checked_when_it_is_stored() {
    let agents = Agents::serve();
    for body in [
        json!({"name": "d", "type": "soat"}),
        json!({"name": "d", "type": "soat", "actions": []}),
        json!({"name": "d", "type": "builtin", "actions": ["get-dokument"]}),
        json!({"name": "d", "type": "soat", "actions": ["get-document", "get-document"]}),
        json!({"name": "d", "type": "soat", "actions": ["create-api-key"]}),
        json!({"name": "d", "type": "http", "actions": ["get-document"]}),
        json!({"name": "d", "type": "soat", "actions": ["get-document"], "parameters": {"type": "object"}}),
    ] {
        assert_eq!(
            error(&agents.post("/tools", &body)),
            "400 VALIDATION_FAILED",
            "{body}"
        );
    }
    let near = agents.post(
        "/tools",
        &json!({"name": "d", "type": "soat", "actions": ["get-dokument"]}),
    );
    assert!(
        near.body.contains("did you mean `get-document`"),
        "{near:?}"
    );
    platform_tool(&agents, "d", &["get-document"], json!({"type": "builtin"}));
}

#[test]
fn an_action_is_called_directly_with_presets_and_without_a_model() {
    let agents = Agents::serve();
    let document = agents.made("/documents", &json!({"content": "text"}));
    let tool = platform_tool(
        &agents,
        "docs",
        &["get-document", "list-documents"],
        json!({"preset_parameters": {"document_id": document}}),
    );
    let call = format!("/tools/{tool}/call");
    let got = agents.post(
        &call,
        &json!({"action": "get-document", "input": {"document_id": "doc_other"}}),
    );
    assert_eq!(
        (got.status, &got.json()["content"]),
        (200, &json!("text")),
        "{got:?}"
    );
    let list = agents.post(&call, &json!({"action": "list-documents"}));
    assert_eq!(list.json()["total"], 1);
    for wrong in [json!({}), json!({"action": "delete-document"})] {
        assert_eq!(error(&agents.post(&call, &wrong)), "400 VALIDATION_FAILED");
    }
    assert!(agents.turns().is_empty());
}

/// Three agents, of which each runs the next: the outer, the middle and the inner one.
fn three(agents: &Agents) -> [String; 3] {
    let lookup = agents.http_tool("lookup");
    let inner = agents.agent("call lookup\nsay inner answer", &[&lookup], json!({}));
    let tool = platform_tool(
        agents,
        "team",
        &["create-agent-generation"],
        json!({"preset_parameters": {"agent_id": inner}}),
    );
    let middle = agents.agent(
        "call team_create-agent-generation {\"prompt\": \"deeper\"}\nsay middle answer",
        &[&tool],
        json!({}),
    );
    let outer_tool = platform_tool(
        agents,
        "boss",
        &["create-agent-generation"],
        json!({"preset_parameters": {"agent_id": middle}}),
    );
    let outer = agents.agent(
        "call boss_create-agent-generation {\"prompt\": \"go\"}\nsay outer answer",
        &[&outer_tool],
        json!({}),
    );
    [outer, middle, inner]
}

/// Returns the only generation of an agent.
fn generation_of(agents: &Agents, agent: &str) -> Value {
    let list = agents.get(&format!("/agents/generations?agent_id={agent}"));
    list.json()["data"][0].clone()
}

#[test]
fn a_nested_generation_is_a_record_with_its_initiator_and_context() {
    let agents = Agents::serve();
    let [outer, middle, inner] = three(&agents);
    let done = agents.generate(
        &outer,
        &json!({"prompt": "x", "tool_context": {"userId": "u1"}}),
    );
    assert_eq!(done["text"], "outer answer", "{done}");
    let given = results(agents.turns().last().expect("a turn"));
    assert!(given[0].contains("middle answer"), "{given:?}");
    // The context reaches the tools of nested generations.
    let asked = agents.tool_requests();
    assert!(
        asked[0].head.contains("x-soat-context-userid: u1"),
        "{asked:?}"
    );
    let all = agents.get("/agents/generations").json();
    assert_eq!(all["total"], 3, "{all}");
    let [top, mid, low] = [&outer, &middle, &inner].map(|it| generation_of(&agents, it));
    assert_eq!(
        (
            &top["initiator_generation_id"],
            &mid["initiator_generation_id"],
            &low["initiator_generation_id"]
        ),
        (&Value::Null, &top["id"], &mid["id"])
    );
    assert_eq!(
        (&low["started_by"], &low["status"]),
        (&top["started_by"], &json!("completed"))
    );
}

#[test]
fn a_nested_generation_is_a_child_in_one_trace_tree() {
    let agents = Agents::serve();
    let ids = three(&agents);
    agents.generate(&ids[0], &json!({"prompt": "x"}));
    let [top, mid, low] = ids.map(|it| generation_of(&agents, &it));
    let path = |generation: &Value, more: &str| {
        format!(
            "/traces/{}{more}",
            generation["trace_id"].as_str().expect("an id")
        )
    };
    let trees: Vec<Value> = [&top, &mid, &low]
        .iter()
        .map(|it| agents.get(&path(it, "/tree")).json())
        .collect();
    assert!(trees[0] == trees[1] && trees[1] == trees[2], "{trees:?}");
    let below = &trees[0]["children"][0];
    assert_eq!(
        (
            &trees[0]["id"],
            &trees[0]["root_trace_id"],
            &below["id"],
            &below["parent_trace_id"],
            &below["root_trace_id"]
        ),
        (
            &top["trace_id"],
            &Value::Null,
            &mid["trace_id"],
            &top["trace_id"],
            &top["trace_id"]
        )
    );
    assert_eq!(
        (
            &below["children"][0]["id"],
            &below["children"][0]["parent_trace_id"],
            &below["children"][0]["root_trace_id"]
        ),
        (&low["trace_id"], &mid["trace_id"], &top["trace_id"])
    );
    let trace = agents.get(&path(&mid, "")).json();
    assert_eq!(
        (
            &trace["parent_trace_id"],
            &trace["steps"][0]["tool_calls"][0]["trace_id"],
            &trace["steps"][0]["tool_calls"][0]["generation_id"]
        ),
        (&top["trace_id"], &low["trace_id"], &low["id"]),
        "{trace}"
    );
}

#[test]
fn a_generation_that_is_nested_too_deeply_is_an_error_and_a_record() {
    let agents = Agents::serve();
    let tool = platform_tool(&agents, "me", &["create-agent-generation"], json!({}));
    let agent = agents.agent("say unused", &[&tool], json!({}));
    let script = format!(
        "call me_create-agent-generation {{\"agent_id\": \"{agent}\", \"prompt\": \"again\", \"max_call_depth\": 10}}\nsay done"
    );
    agents.send(
        "PUT",
        &format!("/agents/{agent}"),
        &json!({"instructions": script}),
    );
    let done = agents.generate(&agent, &json!({"prompt": "x", "max_call_depth": 3}));
    assert_eq!(done["text"], "done", "{done}");
    let all = agents.get("/agents/generations").json();
    let reasons: Vec<&str> = all["data"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["stop_reason"].as_str())
        .collect();
    let limited = reasons.iter().filter(|it| **it == "depth_limit").count();
    assert_eq!((all["total"].as_u64(), limited), (Some(4), 1), "{all}");
    // The third one, which calls the one that is not performed, reads an error.
    let read: Vec<String> = agents.turns().iter().flat_map(results).collect();
    assert_eq!(
        read.iter().filter(|it| it.contains("depth_limit")).count(),
        1,
        "{read:?}"
    );
}

#[test]
fn a_client_tool_in_a_nested_generation_pauses_both_also_over_a_killed_server() {
    let agents = Agents::serve();
    let client = agents.client_tool("ask");
    let inner = agents.agent("call ask {\"q\": 1}\nsay inner done", &[&client], json!({}));
    let tool = platform_tool(
        &agents,
        "team",
        &["create-agent-generation"],
        json!({"preset_parameters": {"agent_id": inner}}),
    );
    let outer = agents.agent(
        "call team_create-agent-generation {\"prompt\": \"go\"}\nsay outer done",
        &[&tool],
        json!({}),
    );
    let paused = agents.generate(&outer, &json!({"prompt": "x"}));
    let action = &paused["required_action"];
    assert_eq!(
        (
            &paused["status"],
            &action["agent_id"],
            &action["tool_calls"][0]["tool_name"],
            &action["tool_calls"][0]["args"]
        ),
        (
            &json!("requires_action"),
            &json!(inner),
            &json!("ask"),
            &json!({"q": 1})
        ),
        "{paused}"
    );
    let child = action["generation_id"].as_str().expect("an id").to_owned();
    assert_ne!(paused["id"], child.as_str());
    let listed = agents
        .get("/agents/generations?status=requires_action")
        .json();
    assert_eq!(listed["total"], 2, "{listed}");
    let agents = agents.restart();
    let outputs = json!({"tool_outputs": [{"tool_call_id": action["tool_calls"][0]["tool_call_id"], "output": "42"}]});
    // The outer generation itself waits for nothing.
    assert_eq!(
        error(&agents.submit(&outer, &paused, &outputs)),
        "409 CONFLICT"
    );
    let done = agents.post(
        &format!("/agents/{inner}/generate/{child}/tool-outputs"),
        &outputs,
    );
    assert_eq!(done.json()["text"], "inner done", "{done:?}");
    let id = paused["id"].as_str().expect("an id");
    let ends = std::time::Instant::now() + std::time::Duration::from_secs(20);
    let outer_now = loop {
        let now = agents.get(&format!("/agents/generations/{id}")).json();
        if now["status"] == "completed" || std::time::Instant::now() > ends {
            break now;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    assert_eq!(
        (&outer_now["status"], &outer_now["stop_reason"]),
        (&json!("completed"), &json!("end_turn"))
    );
    // Each turn was made once.
    assert_eq!(agents.turns().len(), 4);
    assert_eq!(agents.get("/agents/generations").json()["total"], 2);
}

#[test]
fn memories_are_written_and_knowledge_is_searched_by_actions() {
    let agents = Agents::serve();
    let memory = agents.made("/memories", &json!({"name": "Customers"}));
    agents.made(
        "/documents",
        &json!({"content": "Revenue was 4.2M in Q1.", "path": "/reports/q1.txt"}),
    );
    let tool = platform_tool(
        &agents,
        "kb",
        &[
            "create-memory-entry",
            "search-documents",
            "search-knowledge",
        ],
        json!({"preset_parameters": {"memory_id": memory}}),
    );
    let script = "call kb_create-memory-entry {\"content\": \"Revenue talks are by phone.\"}\ncall kb_search-documents {\"query\": \"Revenue\", \"min_score\": 0} & kb_search-knowledge {\"query\": \"Revenue\", \"min_score\": 0}\nsay done";
    let agent = agents.agent(script, &[&tool], json!({}));
    assert_eq!(
        agents.generate(&agent, &json!({"prompt": "x"}))["text"],
        "done"
    );
    let turns = agents.turns();
    let properties = &turns[0]["tools"][0]["function"]["parameters"]["properties"];
    assert!(
        properties["content"].is_object() && properties["memory_id"].is_null(),
        "{properties}"
    );
    let given = results(&turns[2]);
    assert!(given[0].contains("created"), "{given:?}");
    assert!(
        given[1].contains("4.2M") && !given[1].contains("by phone"),
        "{given:?}"
    );
    assert!(
        given[2].contains("4.2M") && given[2].contains("by phone"),
        "{given:?}"
    );
    let entries = agents.get(&format!("/memories/{memory}/entries")).json();
    assert!(entries.to_string().contains("by phone"), "{entries}");
    // The boundary of the seed's example.
    let boundary = allow(&["documents:GetDocument", "documents:SearchDocuments"]);
    let changed = agents.send(
        "PUT",
        &format!("/agents/{agent}"),
        &json!({"boundary_policy": boundary}),
    );
    assert_eq!(changed.status, 200, "{changed:?}");
    let before = agents.turns().len();
    agents.generate(&agent, &json!({"prompt": "x"}));
    let given = results(&agents.turns()[before + 2]);
    assert!(
        given[0].contains("boundary policy") && given[2].contains("boundary policy"),
        "{given:?}"
    );
    assert!(given[1].contains("4.2M"), "{given:?}");
}

#[test]
fn actions_change_tags_and_conditions_see_the_tags_of_a_memory() {
    let agents = Agents::serve();
    let open = agents.made("/memories", &json!({"name": "Open", "tags": ["team:care"]}));
    let hidden = agents.made(
        "/memories",
        &json!({"name": "Hidden", "tags": ["level:secret", "vip"]}),
    );
    let document = agents.made("/documents", &json!({"content": "x", "path": "/a.txt"}));
    let tool = platform_tool(
        &agents,
        "p",
        &[
            "get-memory",
            "merge-memory-tags",
            "replace-document-tags",
            "get-document-tags",
            "create-memory",
            "update-document",
        ],
        json!({}),
    );
    let script = format!(
        "call p_get-memory {{\"memory_id\": \"{open}\"}} & p_get-memory {{\"memory_id\": \"{hidden}\"}} & p_create-memory {{\"name\": \"new\", \"tags\": [\"level:secret\"]}}\ncall p_merge-memory-tags {{\"memory_id\": \"{open}\", \"tags\": {{\"level\": \"low\"}}}}\ncall p_replace-document-tags {{\"document_id\": \"{document}\", \"tags\": {{\"team\": \"red\"}}}}\ncall p_get-document-tags {{\"document_id\": \"{document}\"}} & p_update-document {{\"document_id\": \"{document}\", \"path\": null}}\nsay done"
    );
    let boundary = json!({"statement": [
        {"effect": "Allow", "action": ["*"]},
        {"effect": "Deny", "action": ["*"], "condition": {"StringEquals": {"soat:ResourceTag/level": "secret"}}},
    ]});
    let agent = agents.agent(&script, &[&tool], json!({"boundary_policy": boundary}));
    let done = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(done["text"], "done", "{done}");
    let turns = agents.turns();
    let given = results(turns.last().expect("a turn"));
    assert!(given[0].contains("Open"), "{given:?}");
    assert!(
        given[1..3].iter().all(|it| it.contains("boundary policy")),
        "{given:?}"
    );
    assert!(given[5].contains("red"), "{given:?}");
    assert_eq!(
        agents.get(&format!("/memories/{open}")).json()["tags"],
        json!(["team:care", "level:low"])
    );
    let shown = agents.get(&format!("/documents/{document}")).json();
    assert_eq!(
        (&shown["tags"], &shown["path"]),
        (&json!({"team": "red"}), &Value::Null)
    );
}

#[test]
fn an_action_needs_the_scope_of_its_route() {
    let agents = Agents::serve();
    let memory = agents.made("/memories", &json!({"name": "M", "tags": ["a:1"]}));
    agents.made("/memories", &json!({"name": "other"}));
    let names = [
        "create-memory-entry",
        "create-actor",
        "create-document",
        "list-memories",
    ];
    let tool = platform_tool(&agents, "p", &names, json!({}));
    let script = format!(
        "call p_create-memory-entry {{\"memory_id\": \"{memory}\", \"content\": \"A fact.\"}} & p_create-actor {{\"name\": \"Ada\"}} & p_create-document {{\"content\": \"x\"}} & p_list-memories {{\"tags\": [\"a:*\"]}}\nsay done"
    );
    let agent = agents.agent(&script, &[&tool], json!({}));
    let args = [
        "tokens", "create", "--name", "runner", "--scope", "run", "--scope", "read",
    ];
    let token = agents.scratch.run(&args).ok().trim_end().to_owned();
    let path = format!("/api/v1/agents/{agent}/generate");
    let done = agents.api.post_as(&token, &path, &json!({"prompt": "x"}));
    assert_eq!(done.json()["text"], "done", "{done:?}");
    let given = results(&agents.turns()[1]);
    assert!(given[0].contains("A fact."), "{given:?}");
    assert!(given[1].contains("act_"), "{given:?}");
    assert!(given[2].contains("lacks the scope `edit`"), "{given:?}");
    assert!(
        given[3].contains(&memory) && !given[3].contains("other"),
        "{given:?}"
    );
    let by_route = json!({"content": "x"});
    let refused = agents.api.post_as(&token, "/api/v1/documents", &by_route);
    assert_eq!(refused.status, 403);
}
