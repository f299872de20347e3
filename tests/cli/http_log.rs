//! What the log of a server says about requests.

use serde_json::{Value, json};

use crate::api::{Api, Reply};
use crate::program::Scratch;

const ASK: &str = r#"{:slug :ask :flow '(flow/step :wait :decision {:approval {:actions [:approve]} :timeout "1h"})}"#;

/// Returns the line about a request that was answered.
fn line_of(scratch: &Scratch, reply: &Reply) -> Value {
    let id = reply.header("x-request-id").expect("an id");
    let log = scratch.read("server.log");
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let is_it = |line: &Value| line["span"]["request"] == id && line["message"] == "answered";
    let mut found = lines.filter(is_it);
    found
        .next()
        .unwrap_or_else(|| panic!("no line about {id}: {log}"))
}

#[test]
fn the_line_of_a_request_names_the_run_that_it_started_or_was_about() {
    let scratch = Scratch::new();
    scratch.write("flows/ask.edn", ASK);
    let api = Api::serve_logged(&scratch, "flowstone::server=info");
    let begin = || api.post("/api/v1/flows/ask/runs", &json!({"wait": "60s"}));
    let started = begin();
    let run = started.json()["id"].clone();
    assert_eq!(line_of(&scratch, &started)["span"]["run"], run);
    let wait = api.get("/api/v1/waits").json()["waits"][0]["id"].clone();
    let wait = format!("/api/v1/waits/{}/approve", wait.as_str().expect("an id"));
    let decided = api.post(&wait, &json!({}));
    assert_eq!(line_of(&scratch, &decided)["span"]["run"], run);
    let shown = api.get(&format!("/api/v1/runs/{}", run.as_str().expect("an id")));
    assert_eq!(line_of(&scratch, &shown)["span"]["run"], run);
    // A request about no run, or about one that the caller does not reach, names none.
    let listed = api.get("/api/v1/runs");
    assert_eq!(line_of(&scratch, &listed)["span"].get("run"), None);
    let options = [
        "tokens", "create", "--name", "t", "--scope", "read", "--flow", "none",
    ];
    let other = scratch.run(&options).ok();
    let path = format!("/api/v1/runs/{}", run.as_str().expect("an id"));
    let missed = api.get_as(other.trim_end(), &path);
    assert_eq!(missed.status, 404);
    assert_eq!(line_of(&scratch, &missed)["span"].get("run"), None);
}

#[test]
fn the_id_that_a_sender_gives_a_request_counts_from_a_proxy_only() {
    let scratch = Scratch::new();
    let api = Api::serve_logged(&scratch, "info");
    let given = api.request("GET /healthz", &["x-request-id: forged-1"], "");
    assert_eq!(given.status, 200);
    assert_ne!(given.header("x-request-id"), Some("forged-1"));
    line_of(&scratch, &given);
    assert!(!scratch.read("server.log").contains("forged-1"));
}

#[test]
fn the_reason_of_a_failed_proof_is_a_line_of_the_server() {
    let scratch = Scratch::new();
    scratch.write(
        "flows/paid.edn",
        r#"{:slug :paid :invocations {:default {:inputs []}}
            :interfaces {:webhook [{:id :in :invocation :default :auth {:type :github :secret-ref :hook}}]}
            :flow '1}"#,
    );
    scratch.write(".env", "HOOK=s1\n");
    let api = Api::serve_logged(&scratch, "flowstone::server=info");
    let signed = "x-hub-signature-256: sha256=00";
    let path = "POST /api/flows/paid/interfaces/live/in";
    let refused = api.request(path, &[signed, "content-type: application/json"], "{}");
    assert_eq!(refused.status, 401, "{refused:?}");
    let log = scratch.read("server.log");
    let mut lines = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let line = lines.find(|line| line["message"] == "a proof failed");
    let line = line.unwrap_or_else(|| panic!("{log}"));
    assert_eq!(line["target"], "flowstone::server", "{line}");
    assert!(line["span"]["request"].is_string(), "{line}");
}
