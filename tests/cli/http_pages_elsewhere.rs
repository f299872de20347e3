//! Pages of other origins: what a browser lets them send and read.

use serde_json::json;

use crate::api::Api;
use crate::program::Scratch;

const APP: &str = "https://app.example.com";

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flows/quick.edn", "{:slug :quick :flow '1}");
    let settings = format!("{{:server {{:origins [\"{APP}\"]}}}}");
    scratch.write("flowstone.edn", settings);
    scratch
}

#[test]
fn a_listed_page_may_send_requests_and_read_answers() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let origin = format!("origin: {APP}");
    let asked = api.request(
        "OPTIONS /api/v1/flows/quick/runs",
        &[
            &origin,
            "access-control-request-method: POST",
            "access-control-request-headers: authorization, content-type, idempotency-key",
        ],
        "",
    );
    assert_eq!(asked.status, 204, "{asked:?}");
    assert_eq!(asked.header("access-control-allow-origin"), Some(APP));
    let methods = asked
        .header("access-control-allow-methods")
        .unwrap_or_default();
    assert!(methods.split(", ").any(|it| it == "post"), "{methods}");
    let sent = asked
        .header("access-control-allow-headers")
        .unwrap_or_default();
    for name in [
        "authorization",
        "content-type",
        "idempotency-key",
        "last-event-id",
    ] {
        assert!(sent.split(", ").any(|it| it == name), "{name}: {sent}");
    }
    assert_eq!(asked.header("access-control-allow-credentials"), None);
    let token = format!("authorization: Bearer {}", api.token);
    let started = api.request(
        "POST /api/v1/flows/quick/runs",
        &[&origin, &token, "content-type: application/json"],
        &json!({}).to_string(),
    );
    assert_eq!(started.status, 201, "{started:?}");
    assert_eq!(started.header("access-control-allow-origin"), Some(APP));
    assert_eq!(started.header("vary"), Some("origin"));
    let read = started
        .header("access-control-expose-headers")
        .unwrap_or_default();
    assert!(read.contains("location"), "{read}");
    // Errors can be read, too.
    let refused = api.request("GET /api/v1/runs", &[&origin], "");
    assert_eq!(refused.problem(), "401 E1010");
    assert_eq!(refused.header("access-control-allow-origin"), Some(APP));
}

#[test]
fn other_pages_may_neither_send_nor_read() {
    let scratch = project();
    let api = Api::serve(&scratch);
    for method in ["GET", "OPTIONS", "POST"] {
        for origin in ["https://evil.example", "null"] {
            let origin = format!("origin: {origin}");
            let asks = "access-control-request-method: POST";
            let refused = api.request(&format!("{method} /api/v1/runs"), &[&origin, asks], "");
            assert_eq!(refused.status, 403, "{refused:?}");
            assert_eq!(refused.header("access-control-allow-origin"), None);
        }
    }
    let plain = api.get("/api/v1/runs");
    assert_eq!(plain.header("access-control-allow-origin"), None);
}
