//! Starts from outside: interfaces, webhooks, events and webhooks of waits, as callers see them.

use std::time::{SystemTime, UNIX_EPOCH};

use flowstone_engine::codec::digest_bytes;
use serde_json::{Value, json};

use crate::api::{Api, Reply};
use crate::program::Scratch;

const ORDERS: &str = r#"{:slug :orders :tags [:shop]
  :invocations {:default {:inputs [{:name :order :type :text :required true}
                                   {:name :count :type :number}
                                   {:name :tag :type :text :multiple true}]}
                :raw {:inputs []}}
  :interfaces
  {:http [{:id :place :invocation :default :path "/orders/{order}"}]
   :webhook [{:id :paid :invocation :raw :dedupe {:header "X-Delivery"}
              :auth {:type :github :secret-ref [:old-hook :hook]}}]}
  :flow '(let [in (flow/input)]
           (cond
             (= "teapot" (:order in)) {:status 418 :headers {"X-Order" "7" "Set-Cookie" "a=b"} :body {:short true}}
             (= "fail" (:order in)) (throw (ex-info "no" {}))
             :else (dissoc in :flow/ctx)))}"#;

const PLAIN: &str = r#"{:slug :plain
  :invocations {:default {:inputs [{:name :n :type :number}]}}
  :interfaces {:http [{:id :get :invocation :default :method :get :path "/plain" :auth {:type :api-key :secret-ref :hook}}]
               :webhook [{:id :in :invocation :default :auth {:type :api-key :secret-ref :hook}}]}
  :flow '(:n (flow/input))}"#;

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write(".env", "HOOK=s1\nOLD_HOOK=s0\n");
    scratch.write("flows/orders.edn", ORDERS);
    scratch.write("flows/plain.edn", PLAIN);
    scratch
}

/// Returns the HMAC-SHA256 of a text, in hexadecimal.
pub(super) fn hmac(secret: &str, body: &str) -> String {
    let pad = |byte: u8| {
        let mut key = secret.as_bytes().to_vec();
        key.resize(64, 0);
        key.iter().map(|it| it ^ byte).collect::<Vec<u8>>()
    };
    let inner = digest_bytes(&[pad(0x36), body.as_bytes().to_vec()].concat());
    digest_bytes(&[pad(0x5c), unhex(&inner)].concat())
}

fn unhex(text: &str) -> Vec<u8> {
    let pairs = (0..text.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hexadecimal"))
        .collect()
}

fn hook(api: &Api, path: &str, secret: &str, headers: &[&str], body: &str) -> Reply {
    let signature = format!("x-hub-signature-256: sha256={}", hmac(secret, body));
    let all = [&[&*signature, "content-type: application/json"], headers].concat();
    api.request(&format!("POST {path}"), &all, body)
}

const PAID: &str = "/api/flows/orders/interfaces/live/paid";

#[test]
fn an_http_interface_takes_path_query_and_body() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let placed = api.post("/http/orders/o%201?count=2&tag=a&tag=b", &json!({}));
    assert_eq!(placed.status, 200, "{placed:?}");
    let input = placed.json();
    assert_eq!(input["order"], "o 1");
    assert_eq!(input["count"], 2);
    assert_eq!(input["tag"], json!(["a", "b"]));
    let request = &input["flow/request"];
    assert_eq!(request["interface"], "place");
    assert_eq!(request["method"], "post");
    assert_eq!(request["path"], "/http/orders/o%201");
    assert_eq!(request["headers"]["authorization"], Value::Null);
    assert_eq!(request["headers"]["content-type"], "application/json");

    let canonical = "/api/flows/orders/interfaces/live/place";
    assert_eq!(api.post(canonical, &json!({"order": "x"})).status, 200);
    for (path, body, expected) in [
        (canonical, json!({}), "422 E0420"),
        (canonical, json!({"order": "x", "other": 1}), "422 E1045"),
        (
            canonical,
            json!({"order": "x", "count": "many"}),
            "422 E0421",
        ),
        (
            canonical,
            json!({"order": "x", "activation": {}}),
            "400 E1120",
        ),
        (
            canonical,
            json!({"order": "x", "flow/request": {}}),
            "400 E1120",
        ),
        (canonical, json!({"order": "x", "step/ctx": 1}), "400 E1120"),
        ("/http/orders/x", json!({"order": "y"}), "400 E1016"),
        ("/http/orders/x?count=1&count=2", json!({}), "400 E1016"),
        ("/http/orders/a%2Fb", json!({}), "400 E1016"),
        ("/http/orders/%2e%2e", json!({}), "400 E1016"),
        ("/http/orders/x/", json!({}), "404 E1014"),
        ("/http/other", json!({}), "404 E1014"),
        (
            "/api/flows/orders/interfaces/draft/place",
            json!({}),
            "404 E1014",
        ),
        (
            "/api/flows/orders/installations/1/interfaces/place",
            json!({}),
            "404 E1014",
        ),
    ] {
        assert_eq!(api.post(path, &body).problem(), expected, "{path} {body}");
    }
    let other = api.get(canonical);
    assert_eq!(other.problem(), "405 E1015");
    assert_eq!(other.header("allow"), Some("post, options"));
    let asked = api.request(&format!("OPTIONS {canonical}"), &[], "");
    assert_eq!(
        (asked.status, asked.header("allow")),
        (204, Some("post, options"))
    );
}

#[test]
fn a_flow_answers_with_a_response_of_its_own() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let own = api.post("/http/orders/teapot", &json!({}));
    assert_eq!(own.status, 418, "{own:?}");
    assert_eq!(own.json(), json!({"short": true}));
    assert_eq!(own.header("x-order"), Some("7"));
    assert_eq!(own.header("set-cookie"), None);
    assert_eq!(
        own.header("content-security-policy"),
        Some("sandbox; default-src 'none'")
    );
    assert_eq!(own.header("x-content-type-options"), Some("nosniff"));
    let failed = api.post("/http/orders/fail", &json!({}));
    assert_eq!(failed.problem(), "500 E1046");
    assert!(failed.json()["runId"].is_string(), "{failed:?}");
}

#[test]
fn an_interface_without_a_proof_needs_a_token_for_its_flow() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let create = |options: &[&str]| {
        let args = [&["tokens", "create", "--name", "test"], options].concat();
        scratch.run(&args).ok().trim_end().to_owned()
    };
    let body = json!({});
    let started = |token: &str| api.post_as(token, "/http/orders/x", &body);
    assert_eq!(
        started(&create(&["--scope", "run", "--flow", "ord*"])).status,
        200
    );
    assert_eq!(
        started(&create(&["--scope", "read"])).problem(),
        "403 E1011"
    );
    assert_eq!(
        started(&create(&["--scope", "run", "--flow", "plain"])).status,
        404
    );
    assert_eq!(started("fst_no_token").problem(), "401 E1010");
    let bare = api.request(
        "POST /http/orders/x",
        &["content-type: application/json"],
        "{}",
    );
    assert_eq!(bare.problem(), "401 E1010");
}

#[test]
fn a_signed_delivery_starts_one_run() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let body = r#"{"order": "o-1", "amount": 5}"#;
    let first = hook(&api, PAID, "s1", &["x-delivery: d1"], body);
    assert_eq!(first.status, 200, "{first:?}");
    let run = first.json()["runId"].as_str().expect("a run").to_owned();
    assert_eq!(first.json()["status"], "completed");
    let shown = api.get(&format!("/api/v1/runs/{run}")).json();
    assert_eq!(shown["result"]["amount"], 5);
    assert_eq!(shown["startedBy"], "webhook:paid");
    let request = &shown["input"]["flow/request"];
    assert_eq!(request["delivery"], "d1");
    assert_eq!(request["headers"]["x-hub-signature-256"], Value::Null);

    // The bytes are signed, the number of the delivery is not: neither may come again.
    for headers in [&["x-delivery: d1"][..], &["x-delivery: d2"], &[]] {
        let again = hook(&api, PAID, "s1", headers, body);
        assert_eq!(again.status, 200);
        assert_eq!(
            again.json(),
            json!({"deduped": true, "runId": run, "status": "completed"})
        );
    }
    let other = r#"{"order": "o-2"}"#;
    let renumbered = hook(&api, PAID, "s1", &["x-delivery: d1"], other);
    assert_eq!(renumbered.json()["deduped"], true);
    // The earlier secret is valid, too.
    assert_eq!(
        hook(&api, PAID, "s0", &["x-delivery: d3"], other).status,
        200
    );

    let runs = api.get("/api/v1/runs?flow=orders").json();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_delivery_is_known_after_a_crash() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let body = r#"{"order": "o-1"}"#;
    let first = hook(&api, PAID, "s1", &[], body);
    assert_eq!(first.status, 200, "{first:?}");
    api.kill();
    let api = Api::serve(&scratch);
    let again = hook(&api, PAID, "s1", &[], body);
    assert_eq!(again.json()["deduped"], true);
    assert_eq!(again.json()["runId"], first.json()["runId"]);
}

#[test]
fn what_is_not_proven_starts_nothing() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let body = r#"{"order": "o-1"}"#;
    let good = hmac("s1", body);
    let flipped = format!(
        "{}{}",
        &good[..63],
        if good.ends_with('0') { '1' } else { '0' }
    );
    let line = |digest: &str| format!("x-hub-signature-256: sha256={digest}");
    let attempts: Vec<Vec<String>> = vec![
        vec![],
        vec![line(&flipped)],
        vec![line(&good), line(&good)],
        vec![format!("x-hub-signature-256: {good}")],
        vec![line(&hmac("s2", body))],
        vec![format!("authorization: Bearer {}", api.token)],
    ];
    let mut bodies = Vec::new();
    for headers in attempts {
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let refused = api.request(&format!("POST {PAID}"), &headers, body);
        assert_eq!(refused.problem(), "401 E1044", "{headers:?}");
        let mut shown = refused.json();
        shown["requestId"] = Value::Null;
        bodies.push(shown);
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "all failures look the same");
    // The proof comes first: what cannot be read is not read.
    let unread = api.request(
        &format!("POST {PAID}"),
        &["content-type: application/json"],
        "{",
    );
    assert_eq!(unread.problem(), "401 E1044");
    assert_eq!(hook(&api, PAID, "s1", &[], "{").problem(), "400 E1016");
    let runs = api.get("/api/v1/runs").json();
    assert_eq!(runs["runs"], json!([]));
    // After thirty failures further ones are refused, and a good one still passes.
    let mut last = 0;
    for _ in 0..30 {
        last = api.request(&format!("POST {PAID}"), &[], body).status;
    }
    assert_eq!(last, 429);
    assert_eq!(hook(&api, PAID, "s1", &[], body).status, 200);
}

#[test]
fn equal_orders_without_a_signature_are_two_orders() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let path = "POST /api/flows/plain/interfaces/live/in";
    let headers = ["x-api-key: s1", "content-type: application/json"];
    let mut runs = Vec::new();
    for _ in 0..2 {
        let started = api.request(path, &headers, r#"{"n": 1}"#);
        assert_eq!(started.status, 200, "{started:?}");
        runs.push(started.json()["runId"].clone());
    }
    assert_ne!(runs[0], runs[1]);
    let read = api.request("GET /http/plain?n=7", &["x-api-key: s1"], "");
    assert_eq!((read.status, read.json()), (200, json!(7)));
    let head = api.request("HEAD /http/plain?n=7", &[], "");
    assert_eq!(head.status, 204);
    let runs = api.get("/api/v1/runs?flow=plain").json();
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(3));
}

#[test]
fn large_bodies_are_refused_before_they_are_read() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let large = |path: &str| {
        let host = &api.address;
        api.send(format!(
            "POST {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: 100000000\r\n\r\n{{"
        ))
    };
    assert_eq!(large(PAID).problem(), "413 E1018");
    // Without a length, it is cut where the limit is.
    let chunk = format!("100000\r\n{}\r\n", "x".repeat(0x10_0000));
    let chunks = chunk.repeat(12);
    let host = &api.address;
    let cut = api.send(format!(
        "POST /http/plain HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n{chunks}"
    ));
    assert_eq!(cut.status, 405, "the method is checked first");
    let cut = api.send(format!(
        "POST /http/orders/x HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\nconnection: close\r\n\
         transfer-encoding: chunked\r\n\r\n{chunks}",
        api.token
    ));
    assert_eq!(cut.problem(), "413 E1018");
}

#[test]
fn interfaces_that_cannot_be_served_are_named() {
    let scratch = project();
    scratch.write(".env", "HOOK=\n");
    scratch.write(
        "flows/open.edn",
        r#"{:slug :open :invocations {:default {:inputs []}}
            :interfaces {:http [{:id :all :invocation :default :path "/open" :auth {:type :none}}]}
            :flow '1}"#,
    );
    scratch.write(
        "flows/twin.edn",
        r#"{:slug :twin :invocations {:default {:inputs [{:name :id :type :text}]}}
            :interfaces {:http [{:id :place :invocation :default :path "/orders/{id}"}]}
            :flow '1}"#,
    );
    let api = Api::serve(&scratch);
    let ready = api.request("GET /readyz", &[], "");
    assert_eq!(ready.status, 200);
    let reasons = ready.json()["reasons"].to_string();
    for (code, what) in [
        ("E1042", "orders/{}"),
        ("E1043", "plain/in"),
        ("E1041", "open/all"),
    ] {
        assert!(
            reasons.contains(code) && reasons.contains(what),
            "{reasons}"
        );
    }
    assert_eq!(api.post("/http/orders/x", &json!({})).status, 404);
    assert_eq!(api.post("/http/open", &json!({})).status, 404);
    let unset = api.request("GET /http/plain?n=1", &["x-api-key: "], "");
    assert_eq!(unset.problem(), "503 E1043");
    drop(api);
    scratch.write("flowstone.edn", r#"{:server {:public ["open/all"]}}"#);
    let api = Api::serve(&scratch);
    let open = api.request("POST /http/open", &[], "");
    assert_eq!((open.status, open.json()), (200, json!(1)));
}

const SENT: &str = r#"{:slug :NAME :invocations {:default {:inputs []}}
  :triggers [{:type :event :config {:source :webhook :event-name "orders.created" :invocation :default
              :auth {:type :api-key :secret-ref :hook}}}]
  :flow '(:order (flow/input))}"#;

const WAITING: &str = r#"{:slug :waiting
  :flow '(flow/step :wait :created {:key "k" :event {:name "orders.created" :key {:path [:order]}} :timeout "1h"})}"#;

#[test]
fn an_event_starts_every_flow_and_answers_waits_once() {
    let scratch = project();
    scratch.write("flows/one.edn", SENT.replace("NAME", "one"));
    scratch.write("flows/two.edn", SENT.replace("NAME", "two"));

    scratch.write("flows/waiting.edn", WAITING);
    let api = Api::serve(&scratch);
    let run = waiting(&api, "waiting", &json!({}));
    let headers = ["x-api-key: s1", "content-type: application/json"];
    let sent = api.request(
        "POST /local/events/orders.created",
        &headers,
        r#"{"order": "k"}"#,
    );
    assert_eq!(sent.status, 202, "{sent:?}");
    assert_eq!(sent.json()["runs"].as_array().map(Vec::len), Some(2));
    assert_eq!(sent.json()["waits"].as_array().map(Vec::len), Some(1));
    assert_eq!(ended(&scratch, &api, &run), json!({"order": "k"}));
    let wrong = api.request(
        "POST /local/events/orders.created",
        &["x-api-key: no"],
        "{}",
    );
    assert_eq!(wrong.problem(), "401 E1044");
    let elsewhere = api.request("POST /other/events/orders.created", &headers, "{}");
    assert_eq!(elsewhere.problem(), "404 E1014");
    let unknown = api.request("POST /local/events/orders.lost", &headers, "{}");
    assert_eq!(unknown.problem(), "404 E1014");

    let event = json!({"name": "orders.created", "payload": {"order": "o-2"}, "dedup": "e1"});
    let published = api.post("/api/v1/events", &event);
    assert_eq!(published.status, 202, "{published:?}");
    let runs = published.json()["runs"].clone();
    assert_eq!(runs.as_array().map(Vec::len), Some(2));
    let again = api.post("/api/v1/events", &event).json();
    assert_eq!((&again["deduped"], &again["runs"]), (&json!(true), &runs));
    let kept = api.post(
        "/api/v1/events",
        &json!({"name": "nobody.waits", "payload": 1}),
    );
    assert_eq!(kept.json()["kept"], true);
    assert_eq!(
        api.post("/api/v1/events", &json!({})).problem(),
        "400 E1016"
    );
}

const CALLBACK: &str = r#"{:slug :callback
  :flow '(flow/step :wait :paid {:key (:key (flow/input)) :timeout "1h"
                                 :webhook {:path "cb" :auth {:type :github :secret-ref :hook}}})}"#;
const TOKENED: &str = r#"{:slug :tokened
  :flow '(flow/step :wait :paid {:key "refund-o/1" :timeout "1h" :webhook {}})}"#;
const DECIDED: &str = r#"{:slug :decided
  :flow '(flow/step :wait :ok {:key "go" :timeout "1h" :approval {:actions [:approve :reject]} :webhook {}})}"#;
const PROVEN: &str = r#"{:slug :proven
  :flow '(flow/step :wait :ok {:key "go2" :timeout "1h" :approval {:actions [:approve :reject]}
                               :webhook {:path "decide" :auth {:type :github :secret-ref :hook}}})}"#;

fn waiting(api: &Api, flow: &str, input: &Value) -> String {
    let started = api.post(
        &format!("/api/v1/flows/{flow}/runs"),
        &json!({"input": input, "wait": "60s"}),
    );
    assert_eq!(started.json()["status"], "waiting", "{started:?}");
    started.json()["id"].as_str().expect("an id").to_owned()
}

fn ended(scratch: &Scratch, api: &Api, run: &str) -> Value {
    scratch.run(&["runs", "watch", run]);
    api.get(&format!("/api/v1/runs/{run}")).json()["result"].clone()
}

#[test]
fn a_webhook_completes_the_wait_that_it_is_for() {
    let scratch = project();
    for (name, text) in [
        ("callback", CALLBACK),
        ("tokened", TOKENED),
        ("decided", DECIDED),
        ("proven", PROVEN),
    ] {
        scratch.write(&format!("flows/{name}.edn"), text);
    }
    let api = Api::serve(&scratch);
    let one = waiting(&api, "callback", &json!({"key": "a"}));
    let body = r#"{"paid": true}"#;
    assert_eq!(
        hook(&api, "/local/events/cb", "s2", &[], body).problem(),
        "401 E1044"
    );
    let two = waiting(&api, "callback", &json!({"key": "b"}));
    assert_eq!(
        hook(&api, "/local/events/cb", "s1", &[], body).problem(),
        "409 E1047"
    );
    api.post(
        &format!("/api/v1/runs/{two}/cancel"),
        &json!({"force": true}),
    );
    let done = hook(&api, "/local/events/cb", "s1", &[], body);
    assert_eq!(done.status, 202, "{done:?}");
    assert_eq!(ended(&scratch, &api, &one), json!({"paid": true}));
    // The wait is over. Its sender may have lost the response; to all others, there is nothing.
    let again = hook(&api, "/local/events/cb", "s1", &[], body);
    assert_eq!(again.status, 202, "{again:?}");
    assert_eq!(again.json()["deduped"], true, "{again:?}");
    for (secret, body) in [("s1", r#"{"paid": false}"#), ("s2", body)] {
        let other = hook(&api, "/local/events/cb", secret, &[], body);
        assert_eq!(other.problem(), "404 E1014", "{secret} {body}");
    }
    // Nor does it answer a later wait.
    let three = waiting(&api, "callback", &json!({"key": "c"}));
    let again = hook(&api, "/local/events/cb", "s1", &[], body);
    assert_eq!(again.json()["deduped"], true, "{again:?}");
    let later = hook(&api, "/local/events/cb", "s1", &[], r#"{"paid": 2}"#);
    assert_eq!(later.json()["deduped"], false, "{later:?}");
    assert_eq!(ended(&scratch, &api, &three), json!({"paid": 2}));

    // Without a proof of its own, a token for the flow is needed. The key is the rest of the path.
    let run = waiting(&api, "tokened", &json!({}));
    let path = "POST /local/events/refund-o%2F1";
    let typed = "content-type: application/json";
    assert_eq!(api.request(path, &[typed], body).problem(), "401 E1010");
    let done = api.post(
        "/local/events/refund-o%2F1",
        &json!({"by": "mallory", "n": 1}),
    );
    assert_eq!(done.status, 202, "{done:?}");
    assert_eq!(ended(&scratch, &api, &run), json!({"n": 1}));

    // A decision needs a webhook with a proof.
    waiting(&api, "decided", &json!({}));
    let decision = json!({"action": "approve"});
    assert_eq!(
        api.post("/local/events/go", &decision).problem(),
        "403 E1040"
    );
    let run = waiting(&api, "proven", &json!({}));
    let done = hook(
        &api,
        "/local/events/decide",
        "s1",
        &[],
        r#"{"action": "approve", "by": "eve"}"#,
    );
    assert_eq!(done.status, 202, "{done:?}");
    assert_eq!(ended(&scratch, &api, &run), json!({"action": "approve"}));
}

#[test]
fn a_late_run_is_looked_at_elsewhere() {
    let scratch = project();
    scratch.write(
        "flows/late.edn",
        r#"{:slug :late :invocations {:default {:inputs []}}
            :interfaces {:webhook [{:id :in :invocation :default :timeout 0 :auth {:type :api-key :secret-ref :hook}}]
                         :http [{:id :ask :invocation :default}]}
            :flow '(flow/step :wait :go {:key "go" :timeout "1h"})}"#,
    );
    let api = Api::serve(&scratch);
    let late = api.request(
        "POST /api/flows/late/interfaces/live/in",
        &["x-api-key: s1"],
        "",
    );
    assert_eq!(late.status, 202, "{late:?}");
    let waiting = api.post("/api/flows/late/interfaces/live/ask", &json!({}));
    assert_eq!(waiting.status, 202, "{waiting:?}");
    assert_eq!(waiting.json()["status"], "waiting");
    assert_eq!(waiting.json()["concurrencyDecision"], "started");
    assert_eq!(waiting.header("retry-after"), Some("1"));
    let location = waiting.header("location").expect("a place").to_owned();
    assert!(location.starts_with("/api/v1/runs/"), "{location}");
}

#[test]
fn a_stripe_delivery_has_a_time() {
    let scratch = project();
    scratch.write(
        "flows/stripe.edn",
        r#"{:slug :stripe :invocations {:default {:inputs []}}
            :interfaces {:webhook [{:id :in :invocation :default :auth {:type :stripe :secret-ref :hook}}]}
            :flow '(:id (flow/input))}"#,
    );
    let api = Api::serve(&scratch);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = since.expect("after 1970").as_secs();
    let send = |at: u64| {
        let body = r#"{"id": "evt_1"}"#;
        let digest = hmac("s1", &format!("{at}.{body}"));
        let header = format!("stripe-signature: t={at},v1={digest}");
        let path = "POST /api/flows/stripe/interfaces/live/in";
        api.request(path, &[&header, "content-type: application/json"], body)
    };
    assert_eq!(send(now - 400).problem(), "401 E1044");
    assert_eq!(send(now).json()["status"], "completed");
    assert_eq!(send(now).json()["deduped"], true);
}

#[test]
fn parts_of_a_form_are_fields_and_files() {
    let scratch = project();
    scratch.write(
        "flows/mail.edn",
        r#"{:slug :mail :invocations {:default {:inputs [{:name :file :type :file :required true}]}}
            :interfaces {:webhook [{:id :in :invocation :default :keep-raw true :auth {:type :api-key :secret-ref :hook}}]}
            :flow '(let [in (flow/input)]
                     {:subject (:subject in) :file (:file in) :raw (:body-ref (:flow/request in))})}"#,
    );
    let api = Api::serve(&scratch);
    let body = "--x\r\nContent-Disposition: form-data; name=\"subject\"\r\n\r\nHello\r\n--x\r\n\
                Content-Disposition: form-data; name=\"file\"; filename=\"../n.txt\"\r\n\
                Content-Type: text/plain\r\n\r\nline\r\n--x--\r\n";
    let headers = [
        "x-api-key: s1",
        "content-type: multipart/form-data; boundary=x",
    ];
    let sent = api.request("POST /api/flows/mail/interfaces/live/in", &headers, body);
    assert_eq!(sent.status, 200, "{sent:?}");
    let run = sent.json()["runId"].as_str().expect("a run").to_owned();
    let result = api.get(&format!("/api/v1/runs/{run}")).json()["result"].clone();
    assert_eq!(result["subject"], "Hello");
    assert_eq!(result["file"]["filename"], "n.txt");
    assert_eq!(result["file"]["content-type"], "text/plain");
    let uri = result["file"]["uri"].as_str().expect("a reference");
    assert_eq!(
        scratch.run(&["resources", "read", uri]).out.trim_end(),
        "line"
    );
    assert!(result["raw"]["uri"].is_string(), "{result}");
    let broken = api.request(
        "POST /api/flows/mail/interfaces/live/in",
        &headers,
        "--y\r\n",
    );
    assert_eq!(broken.problem(), "400 E1016");
}
