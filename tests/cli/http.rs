//! `flowstone serve --listen`: starting and deciding over HTTP, and what is refused.

use serde_json::{Value, json};

use crate::api::Api;
use crate::program::Scratch;

const HELLO: &str = r#"{:slug :hello :name "Hello" :tags [:greeting]
  :invocations {:default {:inputs [{:name :who :type :text :required true}]}}
  :flow '{:greeting (str "Hello, " (:who (flow/input)))}}"#;
const ASK: &str = r#"{:slug :ask
  :flow '(flow/step :wait :decision {:key "go" :title "Go on?" :approval {:actions [:approve :reject]} :timeout "1h"})}"#;

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flows/hello.edn", HELLO);
    scratch.write("flows/ask.edn", ASK);
    scratch
}

fn token(scratch: &Scratch, options: &[&str]) -> String {
    let args = [&["tokens", "create", "--name", "test"], options].concat();
    scratch.run(&args).ok().trim_end().to_owned()
}

#[test]
fn a_run_is_started_over_http_and_executed() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let started = api.post(
        "/api/v1/flows/hello/runs",
        &json!({"input": {"who": "Ada"}, "wait": "60s", "id": "order-1"}),
    );
    assert_eq!(started.status, 200, "{started:?}");
    let run = started.json();
    assert_eq!(run["status"], "completed");
    assert_eq!(run["result"], json!({"greeting": "Hello, Ada"}));
    assert_eq!(run["startedBy"], "api:owner");
    assert_eq!(run["concurrencyDecision"], "started");

    let location = started.header("location").expect("a place").to_owned();
    let shown = api.get(&location).json();
    assert_eq!(shown["externalId"], "order-1");
    let again = api.post(
        "/api/v1/flows/hello/runs",
        &json!({"input": {"who": "Ada"}, "id": "order-1"}),
    );
    assert_eq!((again.status, &again.json()["id"]), (200, &run["id"]));

    let listed = api.get("/api/v1/runs?flow=hello&status=completed").json();
    assert_eq!(listed["runs"].as_array().map(Vec::len), Some(1));
    assert_eq!(listed["runs"][0]["id"], run["id"]);
    assert_eq!(api.stop(), Some(0));
    assert!(!scratch.path().join(".flowstone/server.json").exists());
}

#[test]
fn lists_have_pages_that_keep_their_filters() {
    let scratch = project();
    let api = Api::serve(&scratch);
    for who in ["a", "b", "c"] {
        let started = api.post("/api/v1/flows/hello/runs", &json!({"input": {"who": who}}));
        assert_eq!(started.status, 201, "{started:?}");
    }
    let mut seen = Vec::new();
    let mut path = "/api/v1/runs?flow=hello&limit=2".to_owned();
    loop {
        let page = api.get(&path).json();
        let runs = page["runs"].as_array().expect("runs").clone();
        seen.extend(runs.iter().map(|run| run["id"].to_string()));
        match page["next"].as_str() {
            Some(next) => path = format!("/api/v1/runs?flow=hello&limit=2&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 3);
    let mut newest_first = seen.clone();
    newest_first.sort();
    newest_first.reverse();
    assert_eq!(seen, newest_first);
    let next = api.get("/api/v1/runs?limit=2").json()["next"].clone();
    let other = format!(
        "/api/v1/runs?flow=ask&cursor={}",
        next.as_str().expect("a cursor")
    );
    assert_eq!(api.get(&other).problem(), "400 E1016");
}

#[test]
fn a_form_is_filled_in_beside_the_decision() {
    let scratch = Scratch::new();
    let flow = r#"{:slug :pay :flow '(flow/step :wait :pay {:key "pay" :title "Pay?" :approval {:actions [:approve :reject]}
      :validation [:map [:amount :int]] :timeout "1h"})}"#;
    scratch.write("flows/pay.clj", flow);
    let api = Api::serve(&scratch);
    api.post("/api/v1/flows/pay/runs", &json!({"wait": "60s"}));
    let waits = api.get("/api/v1/waits").json();
    let wait = waits["waits"][0]["id"].as_str().expect("a wait").to_owned();
    let path = format!("/api/v1/waits/{wait}/approve");

    let wrong = json!({"fields": {"amount": "much"}});
    assert_eq!(api.post(&path, &wrong).problem(), "422 E0516");
    for (decision, member) in [
        ("approve", "reason"),
        ("reject", "value"),
        ("cancel", "fields"),
    ] {
        let path = format!("/api/v1/waits/{wait}/{decision}");
        let refused = api.post(&path, &json!({member: "x"}));
        assert_eq!(refused.problem(), "400 E1016", "{decision} {member}");
    }
    let path = format!("/api/v1/waits/{wait}/postpone");
    assert_eq!(api.post(&path, &json!({})).problem(), "404 E1014");

    let path = format!("/api/v1/waits/{wait}/approve");
    let fields = json!({"amount": 7, "action": "reject", "by": "somebody"});
    let decided = api.post(&path, &json!({"fields": fields}));
    assert_eq!(decided.status, 200, "{decided:?}");
    let run = decided.json()["run"]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    scratch.run(&["runs", "watch", &run]);
    let shown = api.get(&format!("/api/v1/runs/{run}")).json();
    assert_eq!(
        shown["result"],
        json!({"action": "approve", "amount": 7, "by": "owner"})
    );
}

#[test]
fn problems_refer_to_pages_that_exist() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let problem = api.get("/api/v1/nothing").json();
    let page = problem["type"].as_str().expect("a type").to_owned();
    let shown = api.request(&format!("GET {page}"), &[], "");
    assert_eq!(shown.status, 200, "{shown:?}");
    assert!(
        shown.head.contains("content-type: text/markdown"),
        "{shown:?}"
    );
    assert!(
        shown
            .body
            .contains(problem["code"].as_str().expect("a code")),
        "{shown:?}"
    );
    let missing = api.request("GET /docs/errors/E9999", &[], "");
    assert_eq!(missing.status, 404, "{missing:?}");
}

#[test]
fn a_wait_is_decided_once() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let started = api.post("/api/v1/flows/ask/runs", &json!({"wait": "60s"}));
    assert_eq!(started.status, 202, "{started:?}");
    let run = started.json();
    assert_eq!(run["status"], "waiting");
    let waits = api.get("/api/v1/waits").json();
    let wait = waits["waits"][0]["id"].as_str().expect("a wait").to_owned();
    assert!(!waits.to_string().contains("token"), "{waits}");

    let runner = token(&scratch, &["--scope", "run"]);
    let signal = json!({"key": "go", "value": {"action": "approve"}});
    let refused = api.post_as(&runner, "/api/v1/signals", &signal);
    assert!(refused.status >= 400, "{refused:?}");

    let stale = json!({"digest": "0000"});
    let stale = api.post(&format!("/api/v1/waits/{wait}/approve"), &stale);
    assert_eq!(stale.problem(), "409 E0526");
    let path = format!("/api/v1/waits/{wait}/approve");
    let decided = api.post(&path, &json!({"comment": "fine"}));
    assert_eq!(decided.status, 200, "{decided:?}");
    assert_eq!(decided.json()["wait"]["decidedBy"], "owner");
    assert_eq!(api.post(&path, &json!({})).problem(), "409 E0515");
    let rejected = api.post(&format!("/api/v1/waits/{wait}/reject"), &json!({}));
    assert_eq!(rejected.problem(), "409 E0515");

    let id = run["id"].as_str().expect("an id");
    let shown = scratch.run(&["runs", "watch", id]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let shown = api.get(&format!("/api/v1/runs/{id}")).json();
    assert_eq!(shown["result"]["action"], "approve");
    assert_eq!(shown["result"]["comment"], "fine");
}

#[test]
fn a_token_does_only_what_it_was_made_for() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let reader = token(&scratch, &["--scope", "read", "--flow", "hello"]);
    let runner = token(&scratch, &["--scope", "run", "--flow", "ask"]);
    let labelled = token(&scratch, &["--scope", "run", "--label", "greeting"]);
    let short = token(&scratch, &["--scope", "read", "--expires", "1ms"]);
    let input = json!({"input": {"who": "x"}});
    let hello = "/api/v1/flows/hello/runs";

    assert_eq!(api.post_as(&reader, hello, &input).problem(), "403 E1011");
    assert_eq!(api.post_as(&runner, hello, &input).problem(), "404 E1014");
    assert_eq!(api.post_as(&labelled, hello, &input).status, 201);
    let ask = "/api/v1/flows/ask/runs";
    assert_eq!(
        api.post_as(&labelled, ask, &json!({})).problem(),
        "404 E1014"
    );
    let started = api.post_as(&runner, ask, &json!({}));
    assert_eq!(started.status, 201, "{started:?}");
    assert_eq!(api.get_as(&short, "/api/v1/runs").problem(), "401 E1010");

    // A reader of one flow sees neither another flow nor its runs and waits.
    let run = started.json()["id"].as_str().expect("an id").to_owned();
    let path = format!("/api/v1/runs/{run}");
    assert_eq!(api.get_as(&reader, &path).problem(), "404 E0502");
    assert_eq!(
        api.get_as(&reader, "/api/v1/flows/ask").problem(),
        "404 E1014"
    );
    let flows = api.get_as(&reader, "/api/v1/flows").json();
    assert_eq!(flows["flows"].as_array().map(Vec::len), Some(1));
    let runs = api.get_as(&reader, "/api/v1/runs").json();
    assert!(!runs.to_string().contains(&run), "{runs}");
    // Who started a run may read it.
    assert_eq!(api.get_as(&runner, &path).status, 200);
    assert_eq!(api.get_as(&runner, "/api/v1/runs").problem(), "403 E1011");

    for path in ["/api/v1/tokens", "/api/v1/tokens/0"] {
        let listed = api.get_as(&reader, path);
        assert!(matches!(listed.status, 403 | 405), "{path} {listed:?}");
    }
    let secret = reader.rsplit('_').next().expect("a secret");
    assert!(!api.get("/api/v1/tokens").body.contains(secret));
}

#[test]
fn tokens_are_created_and_revoked_over_http() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let created = api.post("/api/v1/tokens", &json!({"name": "ci", "scopes": ["read"]}));
    assert_eq!(created.status, 201, "{created:?}");
    let created = created.json();
    let text = created["token"].as_str().expect("the token").to_owned();
    assert_eq!(api.get_as(&text, "/api/v1/runs").status, 200);
    let path = format!(
        "DELETE /api/v1/tokens/{}",
        created["id"].as_str().expect("an id")
    );
    let owner = format!("authorization: Bearer {}", api.token);
    assert_eq!(api.request(&path, &[&owner], "").status, 204);
    assert_eq!(api.request(&path, &[&owner], "").problem(), "404 E1003");
    assert_eq!(api.get_as(&text, "/api/v1/runs").problem(), "401 E1010");
    let wrong = api.post(
        "/api/v1/tokens",
        &json!({"name": "ci", "scopes": ["write"]}),
    );
    assert_eq!(wrong.problem(), "400 E1016");
}

#[test]
fn a_restarted_server_keeps_tokens_and_runs() {
    let scratch = project();
    let first = Api::serve(&scratch);
    let started = first.post("/api/v1/flows/ask/runs", &json!({"wait": "60s"}));
    let run = started.json()["id"].as_str().expect("an id").to_owned();
    let token = first.token.clone();
    first.kill();
    let second = Api::serve(&scratch);
    assert_eq!(second.token, token);
    let shown = second.get(&format!("/api/v1/runs/{run}"));
    assert_eq!(shown.json()["status"], "waiting", "{shown:?}");
    let cancelled = second.post(
        &format!("/api/v1/runs/{run}/cancel"),
        &json!({"reason": "no"}),
    );
    assert_eq!(cancelled.status, 202, "{cancelled:?}");
    let watched = scratch.run(&["runs", "watch", &run]);
    assert!(watched.out.contains("cancelled"), "{watched:?}");
    let again = second.post(&format!("/api/v1/runs/{run}/cancel"), &json!({}));
    assert_eq!(again.problem(), "409 E0505");
}

/// The owner's token and the type of the body, as headers.
const OWN: &[&str] = &[OWNER, JSON];
/// Stands for the header with the owner's token.
const OWNER: &str = "OWNER";
const JSON: &str = "content-type: application/json";
const FORM: &str = "content-type: application/x-www-form-urlencoded";
const START: &str = "POST /api/v1/flows/hello/runs";
const BODY: &str = r#"{"input": {"who": "x"}}"#;
/// Stands for a body that is nested too deeply.
const DEEP: &str = "DEEP";

/// Requests that must change nothing: method and path, headers, body, and the status and the code of the answer.
const HOSTILE: &[(&str, &[&str], &str, &str)] = &[
    (START, &[JSON], BODY, "401 E1010"),
    (START, &["authorization: Bearer", JSON], BODY, "401 E1010"),
    (
        START,
        &["authorization: Basic YTpi", JSON],
        BODY,
        "401 E1010",
    ),
    (
        START,
        &["authorization: Bearer fst_0_0", JSON],
        BODY,
        "401 E1010",
    ),
    (START, &[OWNER, OWNER, JSON], BODY, "400 E1016"),
    (START, &[OWNER], BODY, "415 E1017"),
    (
        START,
        &[OWNER, "content-type: text/plain"],
        BODY,
        "415 E1017",
    ),
    (START, &[OWNER, FORM], BODY, "415 E1017"),
    (START, OWN, "{", "400 E1016"),
    (START, OWN, "[1]", "400 E1016"),
    (START, OWN, DEEP, "400 E1016"),
    (START, OWN, r#"{"inputs": {}}"#, "400 E1016"),
    (START, OWN, r#"{"input": {}, "input": {}}"#, "400 E1016"),
    (
        START,
        OWN,
        r#"{"input": {"who": "x"}, "priority": "high"}"#,
        "400 E1016",
    ),
    (
        START,
        OWN,
        r#"{"input": {"who": "x"}, "wait": "1h"}"#,
        "400 E1016",
    ),
    (
        START,
        OWN,
        r#"{"input": {"who": "x"}, "version": "0000"}"#,
        "409 E1023",
    ),
    (START, OWN, r#"{"input": {"who": 7}}"#, "422 E0421"),
    (START, OWN, r#"{"input": {}}"#, "422 E0420"),
    (
        START,
        &[OWNER, JSON, "origin: http://evil.example"],
        BODY,
        "403 E1013",
    ),
    (START, &[OWNER, JSON, "origin: null"], BODY, "403 E1013"),
    (
        START,
        &[OWNER, JSON, "sec-fetch-site: cross-site"],
        BODY,
        "403 E1013",
    ),
    (
        START,
        &[OWNER, JSON, "host: evil.example"],
        BODY,
        "400 E1016",
    ),
    ("GET /api/v1/runs?limit=0", OWN, "", "400 E1016"),
    ("GET /api/v1/runs?limit=501", OWN, "", "400 E1016"),
    ("GET /api/v1/runs?limits=5", OWN, "", "400 E1016"),
    ("GET /api/v1/runs?status=done", OWN, "", "400 E1016"),
    ("GET /api/v1/runs?flow=a&flow=b", OWN, "", "400 E1016"),
    ("GET /api/v1/runs?cursor=abc", OWN, "", "400 E1016"),
    ("GET /api/v1/runs/0000000000000000", OWN, "", "404 E0502"),
    ("GET /api/v1/runs/", OWN, "", "404 E1014"),
    ("GET /api/v1/waits/..%2f..%2fetc", OWN, "", "400 E1016"),
    (
        "GET /api/v1/flows/..%2F..%2Fetc%2Fpasswd",
        OWN,
        "",
        "400 E1016",
    ),
    ("GET /../../etc/passwd", OWN, "", "400 E1016"),
    ("DELETE /api/v1/runs", OWN, "", "405 E1015"),
    ("GET /api/v1/waits/x/approve", OWN, "", "405 E1015"),
    ("GET /api/v1/runs/x?full&step=a", OWN, "", "400 E1016"),
    ("GET /api/v1/runs/x?full=maybe", OWN, "", "400 E1016"),
    ("GET /api/v1/runs/x/journal", OWN, "", "404 E0502"),
    ("GET /api/v1/runs/x/journal?after=1e9", OWN, "", "400 E1016"),
    ("GET /api/v1/runs/x/diff/y", OWN, "", "404 E0502"),
    ("POST /api/v1/runs/x/resume", OWN, "{}", "404 E0502"),
    (
        "POST /api/v1/runs/x/resume",
        &[OWNER, FORM],
        "version=1",
        "415 E1017",
    ),
    (
        "POST /api/v1/runs/x/fork",
        OWN,
        r#"{"set": [1]}"#,
        "400 E1016",
    ),
    (
        "POST /api/v1/runs/x/fork",
        OWN,
        r#"{"flow": "a"}"#,
        "400 E1016",
    ),
    (
        "POST /api/v1/flows/hello/check",
        OWN,
        r#"{"source": 7}"#,
        "400 E1016",
    ),
    ("POST /api/v1/flows/no/check", OWN, "{}", "404 E1014"),
    ("GET /api/v1/flows/no/versions", OWN, "", "404 E1014"),
    ("POST /api/v1/schedules/hello/x/run", OWN, "{}", "404 E0550"),
    ("GET /api/v1/resources?types=secret", OWN, "", "400 E1016"),
    ("GET /api/v1/resources?limit=501", OWN, "", "400 E1016"),
    ("GET /api/v1/resources/content", OWN, "", "400 E1016"),
    (
        "GET /api/v1/resources/content?uri=..%2F..%2Fetc%2Fpasswd",
        OWN,
        "",
        "404 E0936",
    ),
    (
        "GET /api/v1/resources/content?uri=%00",
        OWN,
        "",
        "404 E0936",
    ),
    ("GET /api/v1/resources/content?uri=x", &[], "", "401 E1010"),
    ("DELETE /api/v1/resources?uri=x", OWN, "", "404 E0936"),
    ("DELETE /api/v1/resources", OWN, "", "400 E1016"),
    ("POST /api/v1/resources", OWN, "x", "400 E1016"),
    ("POST /api/v1/resources?filename=a", &[], "x", "401 E1010"),
    (
        "POST /api/v1/resources?filename=..%2Fa",
        &[OWNER],
        "x",
        "422 E0941",
    ),
    (
        "POST /api/v1/resources?filename=a&folder=..%2F..",
        &[OWNER],
        "x",
        "422 E0941",
    ),
    (
        "POST /api/v1/resources",
        &[OWNER, NO_BOUNDARY],
        "x",
        "400 E1016",
    ),
    (
        "POST /api/v1/resources",
        &[OWNER, BOUNDARY],
        "x",
        "400 E1016",
    ),
    (
        "POST /api/v1/resources/url",
        OWN,
        r#"{"uri": "x", "ttl": -1}"#,
        "400 E1016",
    ),
    (
        "POST /api/v1/resources/url",
        OWN,
        r#"{"uri": "x"}"#,
        "404 E0936",
    ),
    (
        "GET /api/resources/content?uri=x&expires=9999999999&signature=00",
        &[],
        "",
        "403 E0940",
    ),
    ("GET /api/v1/tables/no/rows", OWN, "", "404 E0620"),
    (
        "GET /api/v1/tables/no/rows?limit=1001",
        OWN,
        "",
        "400 E1016",
    ),
    (
        "POST /api/v1/tables/no/query",
        OWN,
        r#"{"op": "delete"}"#,
        "400 E1016",
    ),
    ("GET /api/v1/search", OWN, "", "400 E1016"),
    ("GET /api/v1/search?q=a&limit=21", OWN, "", "400 E1016"),
    (
        "GET /api/v1/search?q=a&targets=secrets",
        OWN,
        "",
        "400 E1016",
    ),
    ("GET /api/v1/steps/no/schema", OWN, "", "404 E0946"),
    (
        "GET /api/v1/steps/http/schema?operation=no",
        OWN,
        "",
        "404 E0947",
    ),
    ("GET /api/v1/steps", &[], "", "401 E1010"),
    (
        "POST /api/v1/connections/test",
        OWN,
        r#"{"name": "no"}"#,
        "404 E0951",
    ),
    (
        "POST /api/v1/connections/test",
        OWN,
        r#"{"url": "http://x"}"#,
        "400 E1016",
    ),
];
const BOUNDARY: &str = "content-type: multipart/form-data; boundary=X";
const NO_BOUNDARY: &str = "content-type: multipart/form-data";

#[test]
fn hostile_requests_are_refused() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let owner = format!("authorization: Bearer {}", api.token);
    let deep = format!(r#"{{"input": {}1{}}}"#, "[".repeat(200), "]".repeat(200));
    for (what, headers, body, expected) in HOSTILE {
        let headers = headers
            .iter()
            .map(|line| if *line == OWNER { &owner } else { *line });
        let headers: Vec<&str> = headers.collect();
        let body = if *body == DEEP { &deep } else { *body };
        let reply = api.request(what, &headers, body);
        assert_eq!(
            reply.problem(),
            *expected,
            "{what} {headers:?} {body} {reply:?}"
        );
        let problem = reply.json();
        let code = problem["code"].as_str().expect("a code");
        assert_eq!(problem["status"], reply.status);
        assert_eq!(problem["type"], format!("/docs/errors/{code}"));
        assert_eq!(problem["requestId"].as_str(), reply.header("x-request-id"));
    }
    let rebound = "GET /healthz HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    assert_eq!(api.send(rebound).problem(), "403 E1012");
    let nameless = api.send("GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n");
    assert_eq!(nameless.status, 400, "{nameless:?}");
    let runs = api.get("/api/v1/runs").json();
    assert_eq!(runs["runs"], json!([]), "nothing was started");
}

#[test]
fn large_and_endless_requests_are_cut() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let flood: String = (0..200)
        .map(|number| format!("x-{number}: 1\r\n"))
        .collect();
    let host = &api.address;
    let many = api.send(format!(
        "GET /healthz HTTP/1.1\r\nhost: {host}\r\n{flood}\r\n"
    ));
    assert_eq!(many.status, 431, "{many:?}");
    let long = format!("x: {}\r\n", "a".repeat(40_000));
    let long = api.send(format!(
        "GET /healthz HTTP/1.1\r\nhost: {host}\r\n{long}\r\n"
    ));
    assert_eq!(long.status, 431, "{long:?}");
    let who = "x".repeat(11 << 20);
    let large = api.post("/api/v1/flows/hello/runs", &json!({"input": {"who": who}}));
    assert_eq!(large.problem(), "413 E1018");
}

#[test]
fn many_wrong_tokens_are_refused_unread_and_a_good_one_passes() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let mut statuses = Vec::new();
    for number in 0..40 {
        let wrong = format!("fst_{number:012x}_{}", "A".repeat(43));
        statuses.push(api.get_as(&wrong, "/api/v1/runs").status);
    }
    assert_eq!(statuses.iter().filter(|status| **status == 401).count(), 30);
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 10);
    assert_eq!(api.get("/api/v1/runs").status, 200);
    assert_eq!(api.request("GET /api/v1/runs", &[], "").status, 401);
}

#[test]
fn a_changed_flow_is_served_and_a_broken_one_is_named() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let greeting = |expected: &str| {
        let begun = std::time::Instant::now();
        loop {
            let body = json!({"input": {"who": "Ada"}, "wait": "60s"});
            let run = api.post("/api/v1/flows/hello/runs", &body).json();
            let found = run["result"]["greeting"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            if found == expected || begun.elapsed().as_secs() > 60 {
                return found;
            }
        }
    };
    assert_eq!(greeting("Hello, Ada"), "Hello, Ada");
    scratch.write("flows/hello.edn", HELLO.replace("Hello, ", "Good day, "));
    assert_eq!(greeting("Good day, Ada"), "Good day, Ada");
    scratch.write("flows/hello.edn", "{:slug :hello :flow '(str");
    let named = || api.get("/readyz").json()["reasons"][0]["file"] == "flows/hello.edn";
    let begun = std::time::Instant::now();
    while !named() {
        assert!(
            begun.elapsed().as_secs() < 60,
            "the broken file is not named"
        );
    }
    assert_eq!(
        greeting("Good day, Ada"),
        "Good day, Ada",
        "the last good text is served"
    );
    std::fs::remove_file(scratch.path().join("flows/hello.edn")).expect("a file");
    let gone = || api.get("/api/v1/flows/hello").status;
    while gone() == 200 && begun.elapsed().as_secs() < 120 {}
    assert_eq!(gone(), 404);
}

#[test]
fn a_server_that_others_could_reach_needs_a_name() {
    let scratch = project();
    let refused = scratch.run(&["serve", "--listen", "0.0.0.0:0", "--json"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let error = refused
        .out
        .split_once('\n')
        .expect("an event, and the error")
        .1;
    let error: Value = serde_json::from_str(error).expect("a JSON object");
    assert_eq!(error["error"]["code"], "E1024");
    let api = Api::serve(&scratch);
    let taken = scratch.run(&["serve", "--listen", &api.address, "--json"]);
    assert!(taken.out.contains("\"E1025\""), "{taken:?}");
    assert_eq!(
        api.get("/healthz").status,
        200,
        "the first one still serves"
    );
}

#[test]
fn a_start_with_a_key_takes_place_once() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let start = |token: &str, key: &str, who: &str| {
        let headers = [
            &*format!("authorization: Bearer {token}"),
            "content-type: application/json",
            &*format!("idempotency-key: {key}"),
        ];
        let body = json!({"input": {"who": who}}).to_string();
        api.request("POST /api/v1/flows/hello/runs", &headers, &body)
    };
    let first = start(&api.token, "k-1", "Ada");
    assert_eq!(first.status, 201, "{first:?}");
    assert_eq!(first.header("idempotent-replayed"), None);
    let again = start(&api.token, "k-1", "Ada");
    assert_eq!(
        (again.status, &again.json()["id"]),
        (201, &first.json()["id"])
    );
    assert_eq!(again.header("idempotent-replayed"), Some("true"));
    assert_eq!(again.header("location"), first.header("location"));
    assert_eq!(start(&api.token, "k-1", "Bob").problem(), "422 E1022");
    assert_eq!(start(&api.token, "", "Ada").problem(), "400 E1016");

    let other = token(&scratch, &["--scope", "run"]);
    let theirs = start(&other, "k-1", "Ada");
    assert_eq!(theirs.status, 201);
    assert_ne!(theirs.json()["id"], first.json()["id"]);
    // A start that fails keeps nothing.
    let body = json!({"input": {}}).to_string();
    let headers = [
        &*format!("authorization: Bearer {}", api.token),
        "content-type: application/json",
        "idempotency-key: k-2",
    ];
    let wrong = api.request("POST /api/v1/flows/hello/runs", &headers, &body);
    assert_eq!(wrong.status, 422, "{wrong:?}");
    assert_eq!(start(&api.token, "k-2", "Ada").status, 201);
}
