//! Figures of `/metrics`: something happens, and its number changes.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::api::Api;
use crate::program::Scratch;

const WORK: &str = r#"{:slug :work
  :flow '(do (flow/step :kv :n {:operation :increment :key "n"})
             (flow/step :job :all {:op :submit-batch :job-type :image :jobs [{:payload 1} {:payload 2}]}))}"#;
const ASK: &str = r#"{:slug :ask
  :flow '(flow/step :wait :decision {:key "go" :approval {:actions [:approve :reject]} :timeout "1h"})}"#;
const EVENT: &str = r#"{:slug :event
  :flow '(flow/step :wait :paid {:event {:name "paid"} :timeout "1h"})}"#;
const AGAIN: &str = r#"{:slug :again
  :flow '(flow/step :http :get {:url "http://127.0.0.1:9/" :retry {:max-attempts 2 :backoff-ms 1}})}"#;
const KEYED: &str = r#"{:slug :keyed
  :invocations {:default {:inputs [{:name :n :type :number}]}}
  :interfaces {:webhook [{:id :in :invocation :default :auth {:type :api-key :secret-ref :hook}
                          :dedupe {:header "X-Delivery"}}]}
  :flow '(:n (flow/input))}"#;
const SIGNED: &str = r#"{:slug :signed
  :invocations {:default {:inputs []}}
  :interfaces {:webhook [{:id :in :invocation :default :auth {:type :stripe :secret-ref :hook}}]}
  :flow '1}"#;

fn project() -> Scratch {
    let scratch = Scratch::with_local_servers();
    scratch.write(".env", "HOOK=s1\n");
    for (name, text) in [
        ("work", WORK),
        ("ask", ASK),
        ("event", EVENT),
        ("again", AGAIN),
        ("keyed", KEYED),
        ("signed", SIGNED),
    ] {
        scratch.write(&format!("flows/{name}.edn"), text);
    }
    scratch
}

/// Returns the number of a series; `None` if there is no such series.
fn number(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(series));
    line?.trim().parse().ok()
}

/// Waits until a series has a number. Runs are counted from the feed, a moment later.
#[track_caller]
fn reaches(api: &Api, series: &str, expected: f64) {
    let begun = Instant::now();
    loop {
        let text = api.get("/metrics").body;
        if number(&text, series) == Some(expected) {
            return;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "{series} {expected}\n{text}"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn start(api: &Api, flow: &str) -> serde_json::Value {
    let path = format!("/api/v1/flows/{flow}/runs");
    api.post(&path, &json!({"wait": "60s"})).json()
}

#[test]
fn runs_waits_and_jobs_are_counted() {
    let scratch = project();
    let api = Api::serve(&scratch);
    for flow in ["work", "ask", "event"] {
        start(&api, flow);
    }
    for (series, expected) in [
        (
            "flowstone_runs_started_total{flow=\"work\",started_by=\"api\"}",
            1.0,
        ),
        (
            "flowstone_runs_ended_total{flow=\"work\",status=\"completed\"}",
            1.0,
        ),
        ("flowstone_runs{status=\"waiting\"}", 2.0),
        (
            "flowstone_run_seconds_count{flow=\"work\",status=\"completed\"}",
            1.0,
        ),
        ("flowstone_queue_seconds_count{flow=\"work\"}", 1.0),
        ("flowstone_queue_seconds_count{flow=\"ask\"}", 1.0),
        (
            "flowstone_step_seconds_count{type=\"kv\",status=\"completed\"}",
            1.0,
        ),
        ("flowstone_waits_open{kind=\"approval\"}", 1.0),
        ("flowstone_waits_open{kind=\"event\"}", 1.0),
        ("flowstone_jobs{type=\"image\",status=\"queued\"}", 2.0),
    ] {
        reaches(&api, series, expected);
    }
    let claim = json!({"types": ["image"], "worker": "w-1"});
    assert_eq!(api.post("/api/v1/jobs/claim", &claim).status, 200);
    reaches(
        &api,
        "flowstone_jobs{type=\"image\",status=\"claimed\"}",
        1.0,
    );
    reaches(
        &api,
        "flowstone_jobs{type=\"image\",status=\"queued\"}",
        1.0,
    );
    let waits = api.get("/api/v1/waits?flow=ask").json();
    let id = waits["waits"][0]["id"].as_str().expect("an id").to_owned();
    let decided = api.post(&format!("/api/v1/waits/{id}/approve"), &json!({}));
    assert_eq!(decided.status, 200, "{decided:?}");
    let begun = Instant::now();
    // A kind without open waits has no number.
    while number(
        &api.get("/metrics").body,
        "flowstone_waits_open{kind=\"approval\"}",
    )
    .is_some()
    {
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}

#[test]
fn calls_of_models_and_repeated_steps_are_counted() {
    let scratch = project();
    scratch.write(
        "flowstone.edn",
        r#"{:allow {:net ["127.0.0.1"]}
            :connections {:ai {:backend :scripted
             :script {:turns [{:content "Hi" :usage {:prompt-tokens 7 :completion-tokens 3}}]}}}}"#,
    );
    let talk = r#"{:slug :talk :requires [{:slot :ai :type :llm-provider}]
      :flow '(:content (flow/step :llm :say {:connection :ai :prompt "Hello"}))}"#;
    scratch.write("flows/talk.edn", talk);
    let api = Api::serve(&scratch);
    let said = start(&api, "talk");
    assert_eq!(said["result"], "Hi", "{said}");
    start(&api, "again");
    let text = api.get("/metrics").body;
    let of_model = |name: &str| {
        let mut lines = text.lines().filter(|line| line.starts_with(name));
        let line = lines.find(|line| line.contains("provider=\"scripted\""));
        line.unwrap_or_else(|| panic!("{name}\n{text}")).to_owned()
    };
    assert!(of_model("flowstone_model_call_seconds_count").ends_with(" 1"));
    let tokens: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("flowstone_model_tokens_total{"))
        .collect();
    let with = |direction: &str| {
        let found = tokens.iter().find(|line| line.contains(direction));
        found
            .and_then(|line| line.rsplit(' ').next())
            .unwrap_or_default()
    };
    assert_eq!(with("direction=\"input\""), "7", "{tokens:?}");
    assert_eq!(with("direction=\"output\""), "3", "{tokens:?}");
    let retries = text
        .lines()
        .find(|line| line.starts_with("flowstone_step_retries_total{type=\"http\",error=\"E"));
    assert!(retries.is_some_and(|line| line.ends_with(" 1")), "{text}");
}

#[test]
fn deliveries_are_counted_by_what_became_of_them() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let post = |flow: &str, headers: &[&str], body: &str| {
        let path = format!("POST /api/flows/{flow}/interfaces/live/in");
        let all = [&["content-type: application/json"], headers].concat();
        api.request(&path, &all, body).status
    };
    let key = |delivery: &str, body: &str| {
        let delivery = format!("x-delivery: {delivery}");
        post("keyed", &["x-api-key: s1", &delivery], body)
    };
    assert_eq!(key("1", "{\"n\": 1}"), 200);
    assert_eq!(key("1", "{\"n\": 1}"), 200);
    assert_eq!(key("2", "{"), 400);
    assert_eq!(key("3", "{\"n\": \"x\"}"), 422);
    assert_eq!(post("keyed", &["x-api-key: no"], "{}"), 401);
    // A time long ago; whether the signature is right is not looked at.
    assert_eq!(post("signed", &["stripe-signature: t=1,v1=00"], "{}"), 401);
    let text = api.get("/metrics").body;
    let counted = |flow: &str, outcome: &str| {
        let series = format!("flowstone_webhooks_total{{flow=\"{flow}\",outcome=\"{outcome}\"}}");
        number(&text, &series)
    };
    for (outcome, count) in [
        ("started", 1.0),
        ("deduped", 1.0),
        ("invalid", 2.0),
        ("refused", 1.0),
    ] {
        assert_eq!(counted("keyed", outcome), Some(count), "{outcome}\n{text}");
    }
    assert_eq!(counted("signed", "replayed"), Some(1.0), "{text}");
    let failures = |reason: &str| {
        let series = format!("flowstone_auth_failures_total{{reason=\"{reason}\"}}");
        number(&text, &series)
    };
    assert_eq!(
        (failures("wrong"), failures("late")),
        (Some(1.0), Some(1.0))
    );
}

#[test]
fn streams_requests_and_the_store_are_counted() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let run = start(&api, "ask");
    let id = run["id"].as_str().expect("an id").to_owned();
    let mut of_run = api.follow(&format!("/api/v1/runs/{id}/events"), None);
    assert!(of_run.next().is_some());
    let of_project = api.follow("/api/v1/events", None);
    assert_eq!(of_project.status, 200);
    reaches(&api, "flowstone_sse_readers{stream=\"run\"}", 1.0);
    reaches(&api, "flowstone_sse_readers{stream=\"project\"}", 1.0);
    let text = api.get("/metrics").body;
    for name in [
        "flowstone_store_bytes",
        "flowstone_store_commit_seconds_count",
        "flowstone_store_commit_seconds_sum",
        "flowstone_store_commit_seconds_bucket{le=\"+Inf\"}",
        "process_resident_memory_bytes",
    ] {
        assert!(
            number(&text, name).is_some_and(|it| it > 0.0),
            "{name}\n{text}"
        );
    }
    assert!(number(&text, "flowstone_store_queue").is_some(), "{text}");
    let requests = "flowstone_http_requests_total{route=\"/api/v1/flows/{slug}/runs\",method=\"POST\",status=\"202\"}";
    assert_eq!(number(&text, requests), Some(1.0), "{text}");
}
