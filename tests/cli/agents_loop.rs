//! Loop control over the agents API: tool choices, rules for steps, stop conditions, and their order.

use serde_json::{Value, json};

use crate::agents_api::{Agents, error, offered};

/// Returns what the model was told about the choice of tools, turn by turn.
fn choices(agents: &Agents) -> Vec<Value> {
    agents
        .turns()
        .iter()
        .map(|turn| turn["tool_choice"].clone())
        .collect()
}

fn named(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name}})
}

#[test]
fn rules_of_steps_force_and_narrow_single_steps() {
    let agents = Agents::serve();
    let (a, b) = (agents.http_tool("a"), agents.http_tool("b"));
    let agent = agents.agent(
        "call a\ncall b\nsay done",
        &[&a, &b],
        json!({"step_rules": [
            {"step": 1, "tool_choice": {"type": "tool", "tool_name": "a"}},
            {"step": 2, "tool_choice": "required", "active_tool_ids": [b]},
            {"step": 2, "tool_choice": "none"}]}),
    );
    let done = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(done["stop_reason"], "end_turn", "{done}");
    let turns = agents.turns();
    assert_eq!(
        (offered(&turns[0]), offered(&turns[1]), offered(&turns[2])),
        (vec!["a"], vec!["b"], vec!["a", "b"])
    );
    assert_eq!(
        choices(&agents),
        [named("a"), json!("required"), Value::Null]
    );
}

#[test]
fn submitted_overrides_have_four_priorities_field_by_field() {
    let agents = Agents::serve();
    let (ask, a) = (agents.client_tool("ask"), agents.http_tool("a"));
    let agent = agents.agent(
        "call ask\ncall a\ncall a\ncall a\nsay done",
        &[&ask, &a],
        json!({"tool_choice": "auto", "step_rules": [{"step": 2, "tool_choice": "none", "active_tool_ids": [ask]}]}),
    );
    let paused = agents.generate(&agent, &json!({"prompt": "x"}));
    let outputs = json!([{"tool_call_id": "c0.0", "output": 1}]);
    for wrong in [
        json!({"tool_outputs": outputs, "tool_choice": {"type": "tool", "tool_name": "gone"}}),
        json!({"tool_outputs": outputs, "active_tool_ids": ["tool_gone"]}),
        json!({"tool_outputs": outputs, "defaults": {"colour": 1}}),
        json!({"tool_outputs": outputs, "step_rules": [{"step": 1, "tool_choice": "none"}]}),
    ] {
        assert_eq!(
            error(&agents.submit(&agent, &paused, &wrong)),
            "400 VALIDATION_FAILED"
        );
    }
    let done = agents.submit(
        &agent,
        &paused,
        &json!({"tool_outputs": outputs, "tool_choice": "required",
                "step_rules": [{"step": 2, "active_tool_ids": [a]}, {"step": 3, "tool_choice": {"type": "tool", "name": "a"}}],
                "defaults": {"tool_choice": "required"}}),
    );
    // Step 5 says text although a call is required, and is asked once more.
    let done = done.json();
    assert_eq!(
        (&done["status"], &done["error"]["code"]),
        (&json!("failed"), &json!("TOOL_CALL_MISSING"))
    );
    let turns = agents.turns();
    assert_eq!(offered(&turns[1]), ["a"]);
    assert_eq!(offered(&turns[2]), ["a"]);
    assert_eq!(
        offered(&turns[3]),
        ["a", "ask"].iter().rev().rev().copied().collect::<Vec<_>>()
    );
    assert_eq!(
        choices(&agents),
        [
            Value::Null,
            json!("required"),
            named("a"),
            json!("required"),
            json!("required"),
            json!("required")
        ]
    );
}

#[test]
fn a_stop_condition_wins_over_a_call_without_executor_and_over_the_step_limit() {
    let agents = Agents::serve();
    let (a, done) = (
        agents.http_tool("a"),
        agents.made("/tools", &json!({"name": "done"})),
    );
    let script = "call a & done {\"answer\": 7}";
    let reason = |more: Value| {
        let agent = agents.agent(script, &[&a, &done], more);
        let ended = agents.generate(&agent, &json!({"prompt": "x"}));
        assert_eq!(ended["status"], "completed", "{ended}");
        let calls: Vec<Value> = ended["tool_calls"]
            .as_array()
            .expect("calls")
            .iter()
            .map(|it| it["tool_name"].clone())
            .collect();
        assert_eq!(calls, [json!("a"), json!("done")]);
        ended["stop_reason"].clone()
    };
    let stop = json!([{"type": "hasToolCall", "tool_name": "a"}]);
    assert_eq!(
        reason(json!({"max_steps": 1, "stop_conditions": stop})),
        "stop_condition"
    );
    assert_eq!(reason(json!({"max_steps": 1})), "no_executor");
    // The tool with an executor ran each time.
    assert_eq!(agents.tool_requests().len(), 2);
    let only = agents.agent("call a", &[&a], json!({"max_steps": 2}));
    assert_eq!(
        agents.generate(&only, &json!({"prompt": "x"}))["stop_reason"],
        "max_steps"
    );
    assert_eq!(agents.turns().len(), 2 + 2, "the steps are counted exactly");
}

#[test]
fn a_named_choice_is_met_by_a_pause_and_required_is_not() {
    let agents = Agents::serve();
    let ask = agents.client_tool("ask");
    let outputs = json!({"tool_outputs": [{"tool_call_id": "c0.0", "output": "x"}]});
    let choice = json!({"type": "tool", "tool_name": "ask"});
    let agent = agents.agent(
        "call ask\nsay done",
        &[&ask],
        json!({"tool_choice": choice}),
    );
    let paused = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(
        agents.submit(&agent, &paused, &outputs).json()["stop_reason"],
        "end_turn"
    );
    assert_eq!(choices(&agents), [named("ask"), Value::Null]);
    let agent = agents.agent(
        "call ask\ncall ask",
        &[&ask],
        json!({"tool_choice": "required"}),
    );
    let paused = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(
        agents.submit(&agent, &paused, &outputs).json()["status"],
        "requires_action"
    );
    assert_eq!(
        choices(&agents)[2..],
        [json!("required"), json!("required")]
    );
}

#[test]
fn names_and_tools_of_the_loop_control_are_checked_when_they_are_stored() {
    let agents = Agents::serve();
    let (a, b) = (agents.http_tool("a"), agents.http_tool("b"));
    for more in [
        json!({"tool_choice": {"type": "tool", "tool_name": "a", "name": "b"}}),
        json!({"tool_choice": {"type": "tool", "tool_name": "gone"}}),
        json!({"tool_choice": "maybe"}),
        json!({"active_tool_ids": [b]}),
        json!({"tool_choice": {"type": "tool", "tool_name": "a"}, "active_tool_ids": [b]}),
        json!({"step_rules": [{"tool_choice": "auto"}]}),
        json!({"step_rules": [{"step": 0}]}),
        json!({"stop_conditions": [{"type": "hasToolCall", "tool_name": "gone"}]}),
        json!({"stop_conditions": [{"type": "other", "tool_name": "a"}]}),
        json!({"tool_ids": [a, agents.http_tool("a")]}),
        json!({"max_steps": 0}),
    ] {
        let mut body = json!({"ai_provider_id": agents.provider, "tool_ids": [a]});
        body.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        assert_eq!(
            error(&agents.post("/agents", &body)),
            "400 VALIDATION_FAILED",
            "{more}"
        );
    }
}

#[test]
fn a_call_that_is_written_as_text_fails() {
    let agents = Agents::serve();
    let a = agents.http_tool("a");
    let agent = agents.agent("say {\"name\": \"a\", \"arguments\": {}}", &[&a], json!({}));
    let failed = agents.generate(&agent, &json!({"prompt": "x"}));
    assert_eq!(failed["error"]["code"], "TEXT_ENCODED_TOOL_CALL");
    let other = agents.agent(
        "say {\"name\": \"zebra\", \"arguments\": {}}",
        &[&a],
        json!({}),
    );
    assert_eq!(
        agents.generate(&other, &json!({"prompt": "x"}))["status"],
        "completed"
    );
}

#[test]
fn an_empty_list_in_a_request_is_all_tools_and_a_named_one_must_be_active() {
    let agents = Agents::serve();
    let (a, b) = (agents.http_tool("a"), agents.http_tool("b"));
    let agent = agents.agent("say x", &[&a, &b], json!({"active_tool_ids": [b]}));
    agents.generate(&agent, &json!({"prompt": "x"}));
    agents.generate(&agent, &json!({"prompt": "x", "active_tool_ids": []}));
    let turns = agents.turns();
    assert_eq!(offered(&turns[0]), ["b"]);
    assert_eq!(offered(&turns[1]), ["a", "b"]);
    let named = json!({"type": "tool", "tool_name": "a"});
    let refused = agents.post(
        &format!("/agents/{agent}/generate"),
        &json!({"prompt": "x", "tool_choice": named}),
    );
    assert_eq!(error(&refused), "400 VALIDATION_FAILED");
    assert_eq!(agents.turns().len(), 2);
}

#[test]
fn a_submitted_choice_and_the_list_of_a_submitted_rule_hold_together() {
    let agents = Agents::serve();
    let ask = agents.client_tool("ask");
    let (a, b) = (agents.http_tool("a"), agents.http_tool("b"));
    let script = "call ask\ncall a\nsay done";
    let agent = agents.agent(script, &[&ask, &a, &b], json!({}));
    let paused = agents.generate(&agent, &json!({"prompt": "x"}));
    let outputs = json!([{"tool_call_id": "c0.0", "output": 1}]);
    let body = json!({"tool_outputs": outputs, "tool_choice": {"type": "tool", "tool_name": "a"},
                      "step_rules": [{"step": 2, "active_tool_ids": [a, b]}]});
    let done = agents.submit(&agent, &paused, &body).json();
    assert_eq!(done["text"], "done", "{done}");
    assert_eq!(offered(&agents.turns()[1]), ["a", "b"]);
    assert_eq!(choices(&agents)[1], named("a"));
}
