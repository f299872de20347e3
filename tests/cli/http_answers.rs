//! What answers of the API say to those who may act and not read, and the members that clients rely on.

use serde_json::{Value, json};

use crate::api::Api;
use crate::program::Scratch;

const ASK: &str = r#"{:slug :ask
  :flow '(let [said (flow/step :wait :decision {:message "Pay 77?" :approval {:actions [:approve :reject]} :timeout "1h"})]
           {:secret-of (:n (flow/input)) :said said})}"#;
const TIMED: &str = r#"{:slug :timed :schedules [{:id :daily :cron "0 3 * * *" :input {:n "hidden-5"}}] :flow '(:n (flow/input))}"#;
const BAD: &str = "{:slug :bad :flow '(nth [1] 7)}";
const THROWS: &str = "{:slug :throws :flow '(throw (ex-info \"no\" {}))}";

fn project() -> Scratch {
    let scratch = Scratch::new();
    for (name, text) in [
        ("ask", ASK),
        ("timed", TIMED),
        ("bad", BAD),
        ("throws", THROWS),
    ] {
        scratch.write(&format!("flows/{name}.edn"), text);
    }
    scratch
}

fn token(scratch: &Scratch, options: &[&str]) -> String {
    let args = [&["tokens", "create", "--name", "test"], options].concat();
    scratch.run(&args).ok().trim_end().to_owned()
}

fn keys(object: &Value) -> Vec<&str> {
    let members = object.as_object().expect("an object");
    members.keys().map(String::as_str).collect()
}

#[test]
fn a_token_that_may_only_approve_learns_nothing_else_of_the_run() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let approver = token(&scratch, &["--scope", "approve"]);
    let reader = token(&scratch, &["--scope", "approve", "--scope", "read"]);
    for decision in ["approve", "reject", "complete", "cancel"] {
        for (who, sees) in [(&approver, false), (&reader, true)] {
            let start = json!({"input": {"n": "hidden-1"}, "wait": "60s"});
            assert_eq!(api.post("/api/v1/flows/ask/runs", &start).status, 202);
            let open = api.get("/api/v1/waits").json()["waits"][0].clone();
            let path = format!("/api/v1/waits/{}", open["id"].as_str().expect("an id"));
            assert_eq!(api.get_as(&approver, &path).problem(), "403 E1011");
            let body = match decision {
                "complete" => json!({"value": {"action": "approve"}}),
                _ => json!({}),
            };
            let decided = api.post_as(who, &format!("{path}/{decision}"), &body);
            assert_eq!(decided.status, 200, "{decided:?}");
            let answer = decided.json();
            assert_eq!(decided.body.contains("hidden-1"), sees, "{decided:?}");
            assert_eq!(decided.body.contains("Pay 77?"), sees, "{decided:?}");
            assert_eq!(answer["wait"]["decidedBy"], "test");
            if !sees {
                assert_eq!(keys(&answer["run"]), ["id", "flow", "status"]);
            }
        }
    }
}

#[test]
fn a_token_that_may_only_start_learns_nothing_of_runs_of_others() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let starter = token(&scratch, &["--scope", "run"]);
    let scheduled = api.post_as(&starter, "/api/v1/schedules/timed/daily/run", &json!({}));
    assert_eq!(scheduled.status, 201, "{scheduled:?}");
    assert_eq!(keys(&scheduled.json()), ["id", "flow", "status"]);
    let start = json!({"id": "order-1", "input": {"n": "hidden-2"}});
    let path = "/api/v1/flows/ask/runs";
    assert_eq!(api.post(path, &start).status, 201);
    let taken = api.post_as(&starter, path, &start);
    assert_eq!(taken.problem(), "409 E1090");
}

#[test]
fn a_start_that_created_nothing_is_answered_with_200() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let start = json!({"id": "order-1", "input": {"n": 1}});
    let path = "/api/v1/flows/ask/runs";
    let (first, again) = (api.post(path, &start), api.post(path, &start));
    let decisions = [&first, &again].map(|it| it.json()["concurrencyDecision"].clone());
    assert_eq!((first.status, again.status), (201, 200));
    assert_eq!(decisions, ["started", "deduped"]);
    assert_eq!(first.json()["id"], again.json()["id"]);
    assert_eq!(first.header("location"), again.header("location"));
}

#[test]
fn a_run_says_whether_and_why_it_was_asked_to_cancel() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let run = api
        .post("/api/v1/flows/ask/runs", &json!({"wait": "60s"}))
        .json();
    assert_eq!(run["cancelRequested"], false);
    assert_eq!(run["cancelReason"], Value::Null);
    let path = format!("/api/v1/runs/{}", run["id"].as_str().expect("an id"));
    api.post(&format!("{path}/cancel"), &json!({"reason": "too late"}));
    let run = api.get(&path).json();
    assert_eq!(run["cancelRequested"], true);
    assert_eq!(run["cancelReason"], "too late");
}

#[test]
fn the_error_of_a_run_has_its_code() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let failed = |flow: &str| {
        let path = format!("/api/v1/flows/{flow}/runs");
        let run = api.post(&path, &json!({"wait": "60s"})).json();
        assert_eq!(run["status"], "failed", "{run}");
        let path = format!("/api/v1/runs/{}", run["id"].as_str().expect("an id"));
        let list = api
            .get(&format!("/api/v1/runs?full=true&flow={flow}"))
            .json();
        let shown = api.get(&path).json();
        let full = api.get(&format!("{path}?full=true")).json();
        assert_eq!(shown["error"]["code"], full["error"]["code"]);
        [&run, &shown, &list["runs"][0]].map(|it| it["error"]["code"].clone())
    };
    let codes = failed("bad");
    assert!(
        codes[0].as_str().is_some_and(|code| code.starts_with('E')),
        "{codes:?}"
    );
    assert_eq!((&codes[1], &codes[2]), (&codes[0], &codes[0]));
    assert_eq!(failed("throws"), [Value::Null, Value::Null, Value::Null]);
}

#[test]
fn an_unknown_value_of_a_filter_is_answered_with_those_that_there_are() {
    let scratch = project();
    let api = Api::serve(&scratch);
    for (path, expected) in [
        (
            "runs?status=done",
            "`status` must be one of cancelled, completed, failed, failed-compensating, queued, running, terminated, \
             timed-out, waiting, interrupted, got `done`",
        ),
        ("runs?status=", "got ``"),
        ("jobs?status=done", "`status` must be one of "),
        ("resources?types=x", "`types` can be blob, changeset, "),
        (
            "resources?tier=x",
            "`tier` must be retained or ephemeral, got `x`",
        ),
        ("waits?state=x", "`state` must be open or all, got `x`"),
    ] {
        let refused = api.get(&format!("/api/v1/{path}"));
        assert_eq!(refused.problem(), "400 E1016", "{path}");
        let detail = refused.json()["detail"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        assert!(detail.contains(expected), "{detail}");
    }
}

#[test]
fn the_person_who_decided_is_named_by_the_token_and_not_by_the_answer() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let approver = token(&scratch, &["--scope", "approve", "--scope", "run"]);
    for by in [json!("the CFO"), Value::Null] {
        let mut value = json!({"action": "approve"});
        if by.is_string() {
            value["by"] = by;
        }
        let run = api
            .post("/api/v1/flows/ask/runs", &json!({"wait": "60s"}))
            .json();
        let open = api.get("/api/v1/waits").json()["waits"][0].clone();
        let path = format!(
            "/api/v1/waits/{}/complete",
            open["id"].as_str().expect("an id")
        );
        let decided = api.post_as(&approver, &path, &json!({"value": value}));
        assert_eq!(decided.status, 200, "{decided:?}");
        let path = format!("/api/v1/runs/{}/events", run["id"].as_str().expect("an id"));
        assert!(api.follow(&path, None).count() > 0);
        let ended = api.get(path.trim_end_matches("/events")).json();
        assert_eq!(ended["result"]["said"]["by"], "test", "{ended}");
    }
}
