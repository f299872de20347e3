//! Providers of the agents API: what their `config` sets.

use serde_json::{Value, json};

use crate::agents_api::{Agents, error};

#[test]
fn the_config_of_a_provider_is_sent_to_its_models() {
    let agents = Agents::serve();
    let path = format!("/ai-providers/{}", agents.provider);
    let config =
        json!({"max_tokens": 77, "temperature": 0.1, "top_p": 0.5, "stop": ["END"], "seed": 3});
    let changed = agents.send("PATCH", &path, &json!({"config": config}));
    assert_eq!(
        (changed.status, &changed.json()["config"]),
        (200, &config),
        "{changed:?}"
    );
    let agent = agents.agent("say hi", &[], json!({}));
    let own = agents.agent("say hi", &[], json!({"temperature": 0.9}));
    for agent in [&agent, &own] {
        assert_eq!(
            agents.generate(agent, &json!({"prompt": "x"}))["text"],
            "hi"
        );
    }
    let turns = agents.turns();
    let sent = |turn: &Value| {
        let most = turn.get("max_tokens").or(turn.get("max_completion_tokens"));
        json!([
            most,
            turn["temperature"],
            turn["top_p"],
            turn["stop"],
            turn["seed"]
        ])
    };
    assert_eq!(sent(&turns[0]), json!([77, 0.1, 0.5, ["END"], 3]));
    // What the agent sets wins.
    assert_eq!(turns[1]["temperature"], 0.9);
    let cleared = agents.send("PATCH", &path, &json!({"config": {}}));
    assert_eq!(cleared.json()["config"], json!({}));
}

#[test]
fn what_the_config_of_a_provider_does_not_have_is_refused_by_name() {
    let agents = Agents::serve();
    for (provider, config, name) in [
        ("openai", json!({"organization": "o"}), "organization"),
        ("openai", json!({"max_tokens": "many"}), "max_tokens"),
        ("openai", json!({"region": "eu-west-1"}), "region"),
        ("anthropic", json!({"api_version": "1"}), "api_version"),
        ("mistral", json!({"deployment": "d"}), "deployment"),
        ("bedrock", json!({"region": "x.evil/"}), "region"),
    ] {
        let body =
            json!({"name": "p", "provider": provider, "default_model": "m", "config": config});
        let refused = agents.post("/ai-providers", &body);
        assert_eq!(error(&refused), "400 VALIDATION_FAILED", "{config}");
        let message = refused.json()["error"]["message"].to_string();
        assert!(
            message.contains("config") && message.contains(name),
            "{message}"
        );
    }
    for (provider, config) in [
        (
            "azure-openai",
            json!({"api_version": "1", "deployment": "d"}),
        ),
        ("bedrock", json!({"region": "eu-west-1"})),
    ] {
        let body = json!({"name": "p", "provider": provider, "default_model": "m", "config": config,
                          "base_url": Value::Null});
        let created = agents.post("/ai-providers", &body);
        assert_eq!(created.status, 201, "{created:?}");
        assert_eq!(created.json()["config"], config);
    }
}
