//! Schedules and subscriptions of the build kit through its doors, and events as senders deliver them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::hooks::hmac;
use crate::api::{Api, Reply};
use crate::program::Scratch;

const DIGEST: &str = "{:slug :digest :flow '(flow/input)}\n";

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write(".env", "GH_HOOK=s1\n");
    scratch.write(
        "flowstone.edn",
        "{:connections {:gh {:webhook {:type :github :secret-ref :gh-hook}}}
          :kit {:permissions {:create-schedule :allow :create-subscription :allow :remove-schedule :allow
                              :test-subscription :allow :pause-schedule :allow}
                :enable [:pause-schedule]}}",
    );
    scratch.write("digest.edn", DIGEST);
    scratch.run(&["flows", "push", "digest.edn"]).ok();
    scratch
}

/// Calls a tool for the flow `digest` over HTTP.
fn call(api: &Api, tool: &str, arguments: &Value) -> Reply {
    api.request(
        &format!("POST /api/tools/{tool}"),
        &[
            &format!("authorization: Bearer {}", api.token),
            "content-type: application/json",
            "x-flowstone-flow: digest",
        ],
        &arguments.to_string(),
    )
}

/// Calls a tool over MCP, in a session of its own.
fn mcp(api: &Api, tool: &str, arguments: &Value) -> Value {
    let token = format!("authorization: Bearer {}", api.token);
    let send = |session: &str, method: &str, params: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let headers = [&*token, "content-type: application/json", session];
        let headers = headers.into_iter().filter(|line| !line.is_empty());
        let headers: Vec<&str> = headers.collect();
        api.request("POST /mcp/kit/digest", &headers, &body.to_string())
    };
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    });
    let begun = send("", "initialize", params);
    let session = begun.header("mcp-session-id").expect("a session");
    let session = format!("mcp-session-id: {session}");
    let params = json!({"name": tool, "arguments": arguments});
    send(&session, "tools/call", params).json()["result"]["structuredContent"].clone()
}

fn hook(api: &Api, path: &str, secret: &str, event: &str, body: &str) -> Reply {
    let signature = format!("x-hub-signature-256: sha256={}", hmac(secret, body));
    let event = format!("x-github-event: {event}");
    api.request(
        &format!("POST {path}"),
        &[&signature, &event, "content-type: application/json"],
        body,
    )
}

#[test]
fn a_signed_event_starts_a_run_once() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let data = json!({"event_key": "webhook.gh.issues", "inputs_fields": {"title": "$.event.attributes.issue.title"}});
    let created = call(
        &api,
        "create_subscription",
        &json!({"connection_id": "gh", "data": data}),
    );
    assert_eq!(created.status, 200, "{created:?}");
    let id = created.json()["subscription"]["id"].clone();
    let body = r#"{"action": "opened", "issue": {"title": "It fails"}}"#;
    let path = "/api/hooks/gh";
    assert_eq!(hook(&api, path, "wrong", "issues", body).status, 401);
    assert_eq!(
        hook(&api, "/api/hooks/other", "s1", "issues", body).status,
        404
    );
    assert_eq!(api.request("GET /api/hooks/gh", &[], "").status, 405);
    assert_eq!(hook(&api, path, "s1", "a b", body).status, 400);
    let first = hook(&api, path, "s1", "issues", body);
    assert_eq!(first.status, 202, "{first:?}");
    assert_eq!(first.json()["delivered"], 1);
    // The same bytes again, also under another name of the delivery.
    let again = hook(&api, path, "s1", "issues", body);
    assert_eq!(
        (&again.json()["delivered"], &again.json()["deduped"]),
        (&json!(0), &json!(true))
    );
    // Nobody subscribed to it.
    assert_eq!(hook(&api, path, "s1", "push", "{}").json()["delivered"], 0);
    let listed = call(&api, "list_deliveries", &json!({"subscription_id": id})).json();
    let codes: Vec<&Value> = listed["deliveries"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| &it["status"]["code"])
        .collect();
    assert_eq!(codes, [&json!(409), &json!(200)], "{listed}");
    let run = listed["deliveries"][1]["data"]["run_id"]
        .as_str()
        .expect("a run")
        .to_owned();
    let end = Instant::now() + Duration::from_secs(20);
    let shown = loop {
        let shown = api.get(&format!("/api/v1/runs/{run}")).json();
        if shown["status"] == "completed" || Instant::now() > end {
            break shown;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(shown["result"]["title"], "It fails", "{shown}");
    assert_eq!(
        shown["startedBy"],
        format!("subscription:{}", id.as_str().unwrap_or_default())
    );
}

#[test]
fn schedules_are_the_same_through_every_door() {
    let scratch = project();
    let arguments =
        json!({"data": {"event_key": "digest.daily", "schedule": "0 9 * * MON"}}).to_string();
    let kit = |tool: &str, arguments: &str| {
        scratch.run(&["kit", tool, "--flow", "digest", "--json", arguments])
    };
    let made = kit("create_schedule", &arguments).json();
    let id = made["schedule"]["id"].as_str().expect("an id").to_owned();
    let api = Api::serve(&scratch);
    let listed = call(&api, "list_schedules", &json!({})).json();
    assert_eq!(listed["schedules"][0], made["schedule"]);
    assert_eq!(kit("list_schedules", "{}").json(), listed);
    assert_eq!(mcp(&api, "list_schedules", &json!({})), listed);
    let paused = kit("pause_schedule", &json!({"id": id}).to_string()).json();
    assert_eq!(paused["schedule"]["flags"]["is_active"], false);
    for (arguments, status, code) in [
        (
            json!({"data": {"event_key": "a", "schedule": "* * * * * *"}}),
            400,
            "invalid_arguments",
        ),
        (
            json!({"data": {"event_key": "a", "schedule": "0 9 * * *"}, "flow": "other"}),
            400,
            "invalid_arguments",
        ),
    ] {
        let refused = call(&api, "create_schedule", &arguments);
        assert_eq!(
            (refused.status, &refused.json()["code"]),
            (status, &json!(code)),
            "{arguments}"
        );
    }
    let other = json!({"data": {"event_key": "a", "schedule": "0 9 * * *"}, "slug": "other"});
    assert_eq!(
        mcp(&api, "create_schedule", &other)["code"],
        "invalid_arguments"
    );
    let missing = call(&api, "remove_schedule", &json!({"id": "sch_other"}));
    assert_eq!(
        (missing.status, &missing.json()["code"]),
        (404, &json!("not_found"))
    );
    let removed = call(&api, "remove_schedule", &json!({"id": id}));
    assert_eq!(removed.json(), json!({"removed": true, "id": id}));
    assert_eq!(kit("list_schedules", "{}").json()["count"], 0);
}

#[test]
fn a_test_of_a_subscription_waits_for_one_event() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let arguments =
        json!({"connection_id": "gh", "data": {"event_key": "webhook.gh.push"}, "timeout_s": 30});
    let answer = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| call(&api, "test_subscription", &arguments));
        let end = Instant::now() + Duration::from_secs(25);
        while !waiting.is_finished() && Instant::now() < end {
            let body = format!(r#"{{"at": "{:?}"}}"#, Instant::now());
            hook(&api, "/api/hooks/gh", "s1", "push", &body);
            std::thread::sleep(Duration::from_millis(100));
        }
        waiting.join().expect("an answer")
    });
    assert_eq!(answer.status, 200, "{answer:?}");
    let delivery = &answer.json()["delivery"];
    assert_eq!(delivery["data"]["is_test"], true);
    assert_eq!(delivery["data"]["run_id"], Value::Null);
    assert_eq!(scratch.json_of(&["runs", "list"])["runs"], json!([]));
    let arguments =
        json!({"connection_id": "gh", "data": {"event_key": "webhook.gh.push"}, "timeout_s": 1});
    let nothing = call(&api, "test_subscription", &arguments);
    assert_eq!(
        (nothing.status, &nothing.json()["code"]),
        (504, &json!("no_event"))
    );
}
