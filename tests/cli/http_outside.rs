//! Keys of an input that the engine sets: no caller from outside can give them, whatever the way in.

use serde_json::{Value, json};

use crate::api::Api;
use crate::program::Scratch;

const ANY: &str = r#"{:slug :any
  :invocations {:default {:inputs []}}
  :interfaces {:webhook [{:id :in :invocation :default :event-name "any.came" :auth {:type :api-key :secret-ref :hook}}]}
  :flow '(dissoc (flow/input) :flow/ctx)}"#;

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write(".env", "HOOK=s1\n");
    scratch.write("flows/any.edn", ANY);
    scratch
}

/// Inputs with a key of the engine, and the key.
fn forged() -> [(Value, &'static str); 5] {
    [
        (json!({"activation": {}}), "activation"),
        (json!({":activation": {}}), "activation"),
        (json!({"flow/request": {}}), "flow/request"),
        (json!({"flow/ctx": 1}), "flow/ctx"),
        (json!({"step/ctx": 1}), "step/ctx"),
    ]
}

#[test]
fn a_start_cannot_set_keys_of_the_engine() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let runs = "/api/v1/flows/any/runs";
    for (input, key) in forged() {
        let refused = api.post(runs, &json!({"input": input}));
        assert_eq!(refused.problem(), "400 E1120", "{input}");
        assert!(refused.body.contains(&format!("`{key}`")), "{refused:?}");
        let event = json!({"name": "any.came", "payload": input});
        assert_eq!(
            api.post("/api/v1/events", &event).problem(),
            "400 E1120",
            "{input}"
        );
        let hook = api.request(
            "POST /api/flows/any/interfaces/live/in",
            &["x-api-key: s1", "content-type: application/json"],
            &input.to_string(),
        );
        assert_eq!(hook.problem(), "400 E1120", "{input}");
    }
    assert_eq!(api.get("/api/v1/runs").json()["runs"], json!([]));
    // Names that only look like them are free.
    let free = json!({"input": {"flow": 1, "activations": 2, "a/b": 3}, "wait": "30s"});
    let run = api.post(runs, &free).json();
    assert_eq!(
        run["result"],
        json!({"flow": 1, "activations": 2, "a/b": 3})
    );
    // Nor can a fork.
    let fork = format!("/api/v1/runs/{}/fork", run["id"].as_str().expect("an id"));
    for set in [
        json!({"input.activation.token": "x"}),
        json!({"input.flow/request": {}}),
        json!({"input": {"flow/request": {}}}),
    ] {
        assert_eq!(
            api.post(&fork, &json!({"set": set})).problem(),
            "400 E1120",
            "{set}"
        );
    }
}

#[test]
fn a_bulk_start_names_each_input_with_a_key_of_the_engine() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let body = json!({"flow": "any", "inputs": [{}, {"activation": 1}, {"a": 1}, {"flow/x": 1}]});
    let refused = api.post("/api/v1/runs", &body);
    assert_eq!(refused.problem(), "422 E0542");
    let errors = refused.json()["errors"].clone();
    let named: Vec<String> = errors
        .as_array()
        .expect("errors")
        .iter()
        .map(|it| format!("{} {}", it["index"], it["code"]))
        .collect();
    assert_eq!(named, ["1 \"E1120\"", "3 \"E1120\""]);
    assert_eq!(api.get("/api/v1/runs").json()["runs"], json!([]));
}

#[test]
fn the_command_line_says_the_same_of_a_server() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let url = format!("http://{}", api.address);
    let input = "{:activation {:a 1}}";
    let refused = scratch.run(&["--server", &url, "run", "any", "--input", input, "--json"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    let shown = format!("{}{}", refused.out, refused.err);
    assert!(shown.contains("E1120"), "{shown}");
    // The owner of the project may, without a server.
    let own = scratch.run(&["run", "flows/any.edn", "--input", input, "--json"]);
    assert_eq!(own.code, Some(0), "{own:?}");
}

#[test]
fn a_start_names_a_profile_if_the_token_may_do_everything() {
    let scratch = project();
    scratch.write(
        "flowstone.edn",
        r#"{:connections {:one {:backend :scripted :script {:turns ["one"]}}
                          :two {:backend :scripted :script {:turns ["two"]}}}
            :bindings {:ai {:conn :one}}
            :profiles {:prod {:bindings {:ai {:conn :two}}}}}"#,
    );
    scratch.write(
        "flows/say.edn",
        r#"{:slug :say :requires [{:slot :ai :type :llm-provider}]
            :flow '(:content (flow/step :llm :ask {:connection :ai :prompt "Who?"}))}"#,
    );
    let api = Api::serve(&scratch);
    let path = "/api/v1/flows/say/runs";
    let said = |body: Value| api.post(path, &body).json()["result"].clone();
    assert_eq!(said(json!({"wait": "60s"})), "one");
    assert_eq!(said(json!({"wait": "60s", "profile": "prod"})), "two");
    let unknown = api.post(path, &json!({"profile": "prd"}));
    assert_eq!(unknown.problem(), "422 E0935");
    let args = ["tokens", "create", "--name", "t", "--scope", "run"];
    let runner = scratch.run(&args).ok().trim_end().to_owned();
    let refused = api.post_as(&runner, path, &json!({"profile": "prod"}));
    assert_eq!(refused.problem(), "403 E1011");
}
