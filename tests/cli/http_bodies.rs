//! Bodies of requests to interfaces: large ones, secrets in them, and what a flow answers with.

use serde_json::{Value, json};

use crate::api::Api;
use crate::program::Scratch;

const KEEP: &str = r#"{:slug :keep
  :invocations {:default {:inputs [{:name :n :type :number} {:name :password :type :password}]}}
  :interfaces {:webhook [{:id :in :invocation :default :keep-raw true :auth {:type :api-key :secret-ref :hook}}]}
  :flow '{:status 200 :body (:flow/request (flow/input))}}"#;
const SERVE: &str = r#"{:slug :serve
  :invocations {:default {:inputs [{:name :uri :type :text :required true}]}}
  :interfaces {:http [{:id :get :invocation :default :path "/serve"}]}
  :flow '{:status 200
          :headers {"Content-Type" "text/csv" "X-Kind" "list" "Set-Cookie" "a=b" "Connection" "close"
                    "Content-Length" "7" "Location" "javascript:alert(1)" "Access-Control-Allow-Origin" "*"}
          :body {:uri (:uri (flow/input))}}}"#;
const FAIL: &str = r#"{:slug :fail
  :invocations {:default {:inputs []}}
  :interfaces {:http [{:id :now :invocation :default :method :get :path "/fail"}]}
  :flow '(/ 1 0)}"#;
const ECHO: &str = r#"{:slug :echo
  :invocations {:default {:inputs [{:name :m :type :number :multiple true} {:name :key :type :secret}]}}
  :interfaces {:http [{:id :get :invocation :default :method :get :path "/echo"}]}
  :flow '(:query (:flow/request (flow/input)))}"#;

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write(".env", "HOOK=s1\n");
    for (name, text) in [
        ("keep", KEEP),
        ("serve", SERVE),
        ("fail", FAIL),
        ("echo", ECHO),
    ] {
        scratch.write(&format!("flows/{name}.edn"), text);
    }
    scratch
}

fn deliver(api: &Api, body: &str) -> Value {
    let headers = ["x-api-key: s1", "content-type: application/json"];
    let path = "POST /api/flows/keep/interfaces/live/in";
    let answer = api.request(path, &headers, body);
    assert_eq!(answer.status, 200, "{}", answer.head);
    answer.json()
}

#[test]
fn a_large_body_arrives_whole() {
    let scratch = project();
    let api = Api::serve(&scratch);
    // Above the size from which on it waits in a file.
    let body = json!({"n": 1, "text": "äb".repeat(1_000_000)}).to_string();
    let request = deliver(&api, &body);
    let kept = request["body-ref"].clone();
    assert_eq!(kept["size-bytes"], body.len());
    let uri = kept["uri"].as_str().expect("a reference");
    let content = api.get(&format!("/api/v1/resources/content?uri={uri}"));
    assert!(content.body == body, "{} bytes", content.body.len());
}

#[test]
fn a_body_with_a_secret_input_is_not_kept() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let secret = "correct-horse-7";
    let padding = "x".repeat(100_000);
    let request = deliver(
        &api,
        &json!({"n": 1, "password": secret, "p": padding}).to_string(),
    );
    assert_eq!(request["body-ref"], Value::Null, "{request}");
    let listed = api.get("/api/v1/resources").json();
    assert_eq!(listed["resources"], json!([]));
    let runs = api.get("/api/v1/runs?full").body;
    assert!(!runs.contains(secret) && runs.contains("[secret]"));
    assert!(deliver(&api, "{\"n\": 1}")["body-ref"].is_object());
}

#[test]
fn a_stored_result_is_streamed_with_harmless_headers() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let rows = "a,b\n".repeat(400_000);
    scratch.write("rows.csv", &rows);
    let uploaded = scratch.json_of(&["resources", "upload", "rows.csv"]);
    let uri = uploaded["uri"].as_str().expect("a reference");
    let served = api.post("/http/serve", &json!({"uri": uri}));
    assert_eq!(served.status, 200, "{}", served.head);
    assert!(served.body == rows, "{} bytes", served.body.len());
    let length = rows.len().to_string();
    for (name, expected) in [
        ("content-type", Some("text/csv")),
        ("content-length", Some(&*length)),
        ("x-kind", Some("list")),
        ("x-content-type-options", Some("nosniff")),
        (
            "content-security-policy",
            Some("sandbox; default-src 'none'"),
        ),
        ("set-cookie", None),
        ("location", None),
        ("access-control-allow-origin", None),
    ] {
        assert_eq!(served.header(name), expected, "{name}");
    }
}

#[test]
fn a_failed_run_is_answered_with_its_code_for_readers_only() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let failed = api.get("/http/fail");
    assert_eq!(failed.problem(), "500 E1046");
    assert_eq!(failed.json()["error"], "E0322");
    assert!(failed.json()["runId"].is_string());
    let args = ["tokens", "create", "--name", "t", "--scope", "run"];
    let runner = scratch.run(&args).ok().trim_end().to_owned();
    let failed = api.get_as(&runner, "/http/fail");
    assert_eq!(failed.problem(), "500 E1046");
    assert_eq!(failed.json().get("error"), None);
}

#[test]
fn repeated_names_of_a_query_are_all_told() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let echoed = api.get("/http/echo?m=1&m=2").json();
    assert_eq!(echoed, json!({"m": ["1", "2"]}));
    assert_eq!(api.get("/http/echo?m=1").json(), json!({"m": "1"}));
    // A secret of the query is not kept beside the input either.
    let secret = "correct-horse-8";
    let echoed = api.get(&format!("/http/echo?key={secret}")).json();
    assert_eq!(echoed, json!({"key": "[secret]"}));
    let runs = api.get("/api/v1/runs?full").body;
    assert!(
        !runs.contains(secret) && runs.contains("[secret]"),
        "{runs}"
    );
}

#[test]
fn tricks_in_paths_are_malformed_everywhere() {
    let scratch = project();
    let api = Api::serve(&scratch);
    for path in [
        "/api/v1/runs/a%2Fb",
        "/api/v1/flows/%2e%2e/runs",
        "/api/v1/../v1/runs",
        "/api/v1/tables/a%00/rows",
        "/http/a%2fb",
    ] {
        assert_eq!(api.get(path).problem(), "400 E1016", "{path}");
    }
    // A wait may have any key.
    assert_eq!(api.get("/local/events/a%2Fb").problem(), "404 E1014");
}

#[test]
fn a_parameter_of_a_path_cannot_be_a_secret() {
    let scratch = Scratch::new();
    let flow = r#"{:slug :leak
      :invocations {:default {:inputs [{:name :key :type :secret}]}}
      :interfaces {:http [{:id :get :invocation :default :path "/leak/{key}"}]}
      :flow '1}"#;
    scratch.write("leak.edn", flow);
    let found = scratch.run(&["check", "leak.edn"]);
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!(
        found.err.contains("E1041") && found.err.contains("`{key}`"),
        "{found:?}"
    );
    scratch.write("leak.edn", flow.replace(":secret", ":text"));
    assert_eq!(scratch.run(&["check", "leak.edn"]).code, Some(0));
}
