//! Changes of records of the agents API, and what is refused when a record is stored.

use serde_json::{Value, json};

use crate::agents_api::{Agents, error};

#[test]
fn null_removes_a_field_and_is_refused_where_it_is_needed() {
    let agents = Agents::serve();
    let settings = json!({
        "boundary_policy": {"statement": [{"effect": "Allow", "action": ["*"]}]},
        "knowledge_config": {"document_paths": ["/a/"]},
        "max_steps": 3,
        "temperature": 0.5,
    });
    let agent = agents.agent("say hi", &[], settings);
    let path = format!("/agents/{agent}");
    let nulls = json!({"boundary_policy": null, "knowledge_config": null, "max_steps": null, "temperature": null});
    let changed = agents.send("PUT", &path, &nulls);
    assert_eq!(changed.status, 200, "{changed:?}");
    let shown = agents.get(&path).json();
    for field in ["boundary_policy", "knowledge_config", "temperature"] {
        assert_eq!(shown[field], Value::Null, "{field}");
    }
    assert_eq!(shown["max_steps"], 20, "as if it had been left out");
    for needed in ["ai_provider_id", "project_id"] {
        let refused = agents.send("PUT", &path, &json!({needed: null}));
        assert_eq!(error(&refused), "400 VALIDATION_FAILED", "{needed}");
    }

    let provider = format!("/ai-providers/{}", agents.provider);
    let refused = agents.send("PATCH", &provider, &json!({"default_model": null}));
    assert_eq!(error(&refused), "400 VALIDATION_FAILED");
    let changed = agents.send("PATCH", &provider, &json!({"secret_id": null}));
    assert_eq!(changed.json()["secret_id"], Value::Null, "{changed:?}");
    agents.generate(&agent, &json!({"prompt": "x"}));

    let actor = json!({"name": "Ada", "auto_create_memory": true});
    let actor = format!("/actors/{}", agents.made("/actors", &actor));
    let changed = agents.send("PATCH", &actor, &json!({"memory_id": null}));
    assert_eq!(changed.json()["memory_id"], Value::Null, "{changed:?}");

    let sessions = format!("/agents/{agent}/sessions");
    let session = agents.made(&sessions, &json!({"message_delay_seconds": 9, "name": "s"}));
    let session = format!("{sessions}/{session}");
    let nulls = json!({"message_delay_seconds": null, "name": null});
    let changed = agents.send("PATCH", &session, &nulls).json();
    assert_eq!(
        (&changed["message_delay_seconds"], &changed["name"]),
        (&Value::Null, &Value::Null)
    );
    let refused = agents.send("PATCH", &session, &json!({"status": null}));
    assert_eq!(error(&refused), "400 VALIDATION_FAILED");
}

#[test]
fn what_no_generation_could_use_is_refused_when_it_is_stored() {
    let agents = Agents::serve();
    for (path, body, part) in [
        ("/secrets", json!({"name": "s", "value": "x"}), "`value`"),
        (
            "/tools",
            json!({"name": "t", "execute": {"url": "https://a.example/users/{id}"},
                   "parameters": {"type": "object", "properties": {"user": {}}}}),
            "`{id}`",
        ),
    ] {
        let refused = agents.post(path, &body);
        assert_eq!(error(&refused), "400 VALIDATION_FAILED", "{refused:?}");
        let message = refused.json()["error"]["message"].to_string();
        assert!(message.contains(part), "{message}");
    }
    let preset = json!({"name": "t", "execute": {"url": "https://a.example/users/{id}"}, "preset_parameters": {"id": 1}});
    agents.made("/tools", &preset);
}

#[test]
fn a_provider_that_the_project_may_not_reach_says_who_allows_it() {
    let agents = Agents::serve();
    let body = json!({"name": "p", "provider": "openai-compatible", "default_model": "m", "base_url": "http://127.0.0.9:1/v1"});
    let provider = agents.made("/ai-providers", &body);
    let agent = agents.made("/agents", &json!({"ai_provider_id": provider}));
    let failed = agents.generate(&agent, &json!({"prompt": "x"}));
    let message = failed["error"]["message"].to_string();
    assert!(message.contains(":allow {:net [...]}"), "{failed}");
}
