//! Streams of the revision without sessions: a client receives the changes that it asked for.

use serde_json::{Value, json};

use super::{ORDER, PAY, project, token};
use crate::api::Api;

/// Opens a stream, and returns its messages.
fn listen(api: &Api, token: &str, wanted: &Value) -> impl Iterator<Item = Value> + use<> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"notifications": wanted, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": "sub-1", "method": "subscriptions/listen", "params": params});
    let headers = [
        &*format!("authorization: Bearer {token}"),
        "content-type: application/json",
        "mcp-protocol-version: 2026-07-28",
        "mcp-method: subscriptions/listen",
    ];
    let events = api.follow_request("POST /mcp", &headers, &body.to_string());
    events.map(|event| event.data)
}

#[track_caller]
fn next(messages: &mut impl Iterator<Item = Value>, method: &str) -> Value {
    let message = messages.next().expect("a message");
    assert_eq!(message["method"], method, "{message}");
    let about = &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
    assert_eq!(about, "sub-1", "{message}");
    message["params"].clone()
}

#[test]
fn changed_lists_are_told_to_those_who_asked() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let wanted = json!({"toolsListChanged": true, "resourcesListChanged": true});
    let mut messages = listen(&api, &api.token, &wanted);
    let acknowledged = next(&mut messages, "notifications/subscriptions/acknowledged");
    assert_eq!(
        acknowledged["notifications"],
        json!({"toolsListChanged": true})
    );
    // A prompt of another flow is not what was asked for; a tool is.
    scratch.write(
        "flows/more.edn",
        ORDER
            .replace(":order", ":more")
            .replace("_order\"", "_more\""),
    );
    scratch.write(
        "flows/again.edn",
        PAY.replace(":pay", ":again")
            .replace("\"pay\"", "\"pay_again\""),
    );
    next(&mut messages, "notifications/tools/list_changed");
}

#[test]
fn a_run_is_followed_by_those_who_reach_it() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let run = api
        .post("/api/v1/flows/pay/runs", &json!({"wait": "60s"}))
        .json();
    let uri = format!("flowstone://runs/{}", run["id"].as_str().expect("an id"));
    let wanted = json!({"resourceSubscriptions": [uri, "flowstone://runs/none"]});
    let mut messages = listen(&api, &api.token, &wanted);
    let acknowledged = next(&mut messages, "notifications/subscriptions/acknowledged");
    assert_eq!(
        acknowledged["notifications"]["resourceSubscriptions"],
        json!([uri])
    );
    let cancel = format!(
        "/api/v1/runs/{}/cancel",
        run["id"].as_str().unwrap_or_default()
    );
    assert_eq!(api.post(&cancel, &json!({})).status, 202);
    let updated = next(&mut messages, "notifications/resources/updated");
    assert_eq!(updated["uri"], json!(uri));
    let other = token(&scratch, &["--scope", "read", "--flow", "order"]);
    let mut messages = listen(&api, &other, &wanted);
    let acknowledged = next(&mut messages, "notifications/subscriptions/acknowledged");
    assert_eq!(
        acknowledged["notifications"]["resourceSubscriptions"],
        json!([])
    );
}
