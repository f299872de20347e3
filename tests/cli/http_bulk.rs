//! `POST /api/v1/runs`: many starts in one request, or none.

use serde_json::{Value, json};

use crate::api::Api;
use crate::program::Scratch;

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write(
        "flows/double.edn",
        "{:slug :double :invocations {:default {:inputs [{:name :n :type :number :required true}]}}
          :flow '(* 2 (:n (flow/input)))}",
    );
    scratch.write(
        "flows/one.edn",
        "{:slug :one :concurrency {:type :singleton :on-conflict :reject} :flow '(flow/step :sleep :a {:duration \"1h\"})}",
    );
    scratch
}

fn token(scratch: &Scratch, options: &[&str]) -> String {
    let args = [&["tokens", "create", "--name", "test"], options].concat();
    scratch.run(&args).ok().trim_end().to_owned()
}

fn count(api: &Api) -> usize {
    let runs = api.get("/api/v1/runs?limit=500").json();
    runs["runs"].as_array().map_or(0, Vec::len)
}

#[test]
fn each_input_of_a_request_starts_a_run() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let body = json!({"flow": "double", "inputs": [{"n": 1}, {"n": 2}]});
    let started = api.post("/api/v1/runs", &body);
    assert_eq!(started.status, 200, "{started:?}");
    let runs = started.json()["runs"].clone();
    for (index, doubled) in [(0, 2), (1, 4)] {
        let id = runs[index]["id"].as_str().expect("an id");
        assert_eq!(runs[index]["index"], index);
        assert_eq!(scratch.run(&["runs", "watch", id]).code, Some(0));
        let run = api.get(&format!("/api/v1/runs/{id}")).json();
        assert_eq!(run["result"], doubled);
        assert_eq!(run["startedBy"], "api:owner");
    }
    let named = json!({"flow": "double", "priority": 3, "runs": [
        {"id": "a", "input": {"n": 3}, "priority": 4},
        {"id": "b", "input": {"n": 4}},
    ]});
    let runs = api.post("/api/v1/runs", &named).json()["runs"].clone();
    let shown = |index: usize| {
        let id = runs[index]["id"].as_str().expect("an id");
        let run = api.get(&format!("/api/v1/runs/{id}")).json();
        (run["externalId"].clone(), run["priority"].clone())
    };
    assert_eq!(shown(0), (json!("a"), json!(4)));
    assert_eq!(shown(1), (json!("b"), json!(3)));
}

#[test]
fn one_wrong_start_starts_nothing() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let errors = |body: &Value| {
        let refused = api.post("/api/v1/runs", body);
        assert_eq!(refused.problem(), "422 E0542", "{refused:?}");
        let errors = refused.json()["errors"].clone();
        let errors = errors.as_array().expect("errors").iter();
        let named = errors.map(|it| format!("{} {}", it["index"], it["code"]));
        named.collect::<Vec<_>>().join(", ")
    };
    let input = json!({"flow": "double", "inputs": [{"n": 1}, {}, {"n": "x"}]});
    assert_eq!(errors(&input), "1 \"E0420\", 2 \"E0421\"");
    let flow = json!({"runs": [{"flow": "double", "input": {"n": 1}}, {"flow": "none"}, {}]});
    assert_eq!(errors(&flow), "1 \"E1014\", 2 \"E1014\"");
    // Keys that the engine sets are refused together with everything else.
    let reserved = json!({"runs": [
        {"flow": "double", "input": {"n": 1, "flow/request": {}}},
        {"flow": "double", "input": {"n": 1}},
        {"flow": "double", "input": {"n": 1, "activation": {}}},
        {"flow": "double", "input": {}},
        {"flow": "none", "input": {"step/ctx": 1}},
    ]});
    let expected = "0 \"E1120\", 2 \"E1120\", 3 \"E0420\", 4 \"E1014\"";
    assert_eq!(errors(&reserved), expected);
    let conflict = json!({"flow": "one", "inputs": [{}, {}]});
    assert_eq!(errors(&conflict), "1 \"E0555\"");
    for (body, expected) in [
        (json!({"flow": "double"}), "400 E1016"),
        (json!({"flow": "double", "inputs": []}), "400 E1016"),
        (
            json!({"flow": "double", "inputs": [{}], "runs": [{}]}),
            "400 E1016",
        ),
        (
            json!({"flow": "double", "inputs": vec![json!({"n": 1}); 1001]}),
            "413 E0543",
        ),
        (json!({"runs": [{"flows": "double"}]}), "400 E1016"),
    ] {
        assert_eq!(api.post("/api/v1/runs", &body).problem(), expected);
    }
    assert_eq!(count(&api), 0);
}

#[test]
fn a_key_starts_many_runs_once() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let send = |body: &Value| {
        let owner = format!("authorization: Bearer {}", api.token);
        let headers = [
            &*owner,
            "content-type: application/json",
            "idempotency-key: batch-7",
        ];
        api.request("POST /api/v1/runs", &headers, &body.to_string())
    };
    let body = json!({"flow": "double", "inputs": [{"n": 1}, {"n": 2}]});
    let wrong = json!({"flow": "double", "inputs": [{"n": 1}, {}]});
    assert_eq!(send(&wrong).status, 422);
    let first = send(&body);
    assert_eq!(
        (first.status, first.header("idempotent-replayed")),
        (200, None)
    );
    let again = send(&body);
    assert_eq!(
        (again.status, again.header("idempotent-replayed")),
        (200, Some("true"))
    );
    let ids = |reply: &crate::api::Reply| {
        let runs = reply.json()["runs"].clone();
        [runs[0]["id"].clone(), runs[1]["id"].clone()]
    };
    assert_eq!(ids(&first), ids(&again));
    let other = json!({"flow": "double", "inputs": [{"n": 3}]});
    assert_eq!(send(&other).problem(), "422 E1022");
    assert_eq!(count(&api), 2);
}

#[test]
fn a_start_reaches_no_run_of_others() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let path = "/api/v1/flows/one/runs";
    let first = api.post(path, &json!({"id": "order-1"}));
    assert_eq!(first.status, 201, "{first:?}");
    let limited = token(&scratch, &["--scope", "run", "--flow", "double"]);
    let start = json!({"id": "order-1", "input": {"n": 1}});
    let taken = api.post_as(&limited, "/api/v1/flows/double/runs", &start);
    assert_eq!(taken.problem(), "409 E1090");
    let many = json!({"flow": "double", "runs": [start]});
    let taken = api.post_as(&limited, "/api/v1/runs", &many);
    assert_eq!(taken.problem(), "422 E0542");
    assert_eq!(taken.json()["errors"][0]["code"], "E1090");
    let other = json!({"flow": "one", "inputs": [{}]});
    let refused = api.post_as(&limited, "/api/v1/runs", &other);
    assert_eq!(refused.json()["errors"][0]["code"], "E1014");
    assert_eq!(count(&api), 1);
}
