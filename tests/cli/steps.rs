//! `flowstone steps`: what there is, what it takes, and one step by itself.

use serde_json::{Value, json};

use crate::program::Scratch;
use crate::server::{Answer, Server};

#[test]
fn step_types_are_listed_and_shown() {
    let scratch = Scratch::new();
    let listed = scratch.run(&["steps", "list", "--json"]).json();
    let kinds: Vec<&str> = listed["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .filter_map(|step| step["type"].as_str())
        .collect();
    assert!(kinds.is_sorted() && kinds.contains(&"kv") && kinds.contains(&"http"));
    let table = scratch.run(&["steps", "list"]).ok();
    assert!(table.contains("append delete exists get"), "{table}");

    let shown = scratch
        .run(&["steps", "show", "kv", "get", "--json"])
        .json();
    assert_eq!(shown["needs"], json!(["key"]));
    assert_eq!(shown["effect"], "read");
    let page = scratch.run(&["steps", "show", ":sleep"]).ok();
    assert!(page.contains("`:millis`"), "{page}");
}

#[test]
fn unknown_step_types_and_operations_are_reported() {
    let scratch = Scratch::new();
    for (args, code, words) in [
        (vec!["show", "htp"], "E0946", "did you mean `http`?"),
        (vec!["schema", "kv", "sett"], "E0947", "did you mean `set`?"),
        (vec!["schema", "sleep", "x"], "E0947", "has no operations"),
        (vec!["run", "kvv"], "E0946", "did you mean `kv`?"),
        (vec!["run", "a/b"], "E0946", "--flow FILE"),
        (vec!["run", "kv", "[1]"], "E0948", "expected a map"),
    ] {
        let ran = scratch.run(&[&["steps"], &args[..]].concat());
        let said = ran.transcript();
        assert_eq!(ran.code, Some(1), "{said}");
        assert!(said.contains(code) && said.contains(words), "{said}");
    }
}

#[test]
fn schemas_are_printed() {
    let scratch = Scratch::new();
    let schema =
        |args: &[&str]| -> Value { scratch.run(&[&["steps", "schema"], args].concat()).json() };
    let get = schema(&["kv", "get"]);
    assert_eq!(get["properties"]["operation"], json!({"const": "get"}));
    assert_eq!(get["required"], json!(["key"]));
    let names = json!([{"required": ["operation"]}, {"required": ["op"]}]);
    assert_eq!(get["oneOf"], names);
    assert_eq!(get["additionalProperties"], json!(false));
    assert_eq!(
        get["properties"]["retry"]["properties"]["max-attempts"]["maximum"],
        1000
    );
    let tool = schema(&["kv", "append", "--tool"]);
    assert!(tool["properties"]["max_length"].is_object(), "{tool}");
    assert!(tool["properties"]["retry"].is_null(), "{tool}");
    assert_eq!(schema(&["kv", "get", "--result"])["type"], "object");
    assert!(schema(&["kv"])["oneOf"].is_array());
}

#[test]
fn a_step_runs_by_itself() {
    let scratch = Scratch::new();
    let set =
        r#"{"operation": "set", "key": "a", "value": [1, 2, {"x": "y"}], "ifNotExists": true}"#;
    let ran = scratch.run(&["steps", "run", "kv", set]).ok();
    assert!(ran.contains(":created? true"), "{ran}");

    let get = "{:operation :get :key \"a\"}";
    let path = |path: &str| {
        scratch
            .run(&["steps", "run", "kv", get, "--result-path", path])
            .transcript()
    };
    assert!(
        path("value.2.x").starts_with("y\n"),
        "{}",
        path("value.2.x")
    );
    assert!(path("valu").contains("there are"), "{}", path("valu"));

    let ran = scratch.run(&["steps", "run", "kv", get, "--json", "--preview-depth", "1"]);
    let ran = ran.json();
    assert_eq!(ran["resultPreview"]["truncated"], true);
    assert_eq!(ran["status"], "completed");
    let shown = ran["run"].as_str().expect("an id");
    let shown = scratch.run(&["runs", "show", shown, "--json"]).json();
    assert_eq!(shown["steps"][0]["type"], "kv");

    let full = scratch
        .run(&["steps", "run", "kv", get, "--json", "--full"])
        .json();
    assert_eq!(full["result"]["value"], json!([1, 2, {"x": "y"}]));
    scratch
        .run(&["steps", "run", "kv", get, "--result-file", "out.json"])
        .ok();
    assert!(scratch.read("out.json").contains("\"x\": \"y\""));

    let wrong = scratch.run(&["steps", "run", "kv", "{:operation :get :kee \"a\"}"]);
    let said = wrong.transcript();
    assert!(
        said.contains("E0710") && said.contains("did you mean `:key`?"),
        "{said}"
    );
}

#[test]
fn a_call_has_a_name_of_its_own() {
    let server = Server::start(|_, _| Answer::Json("1".to_owned()));
    let config = format!("{{:method :post :url \"{}\"}}", server.url("/pay"));
    let args = ["steps", "run", "http", &config, "--idempotency-key", "k-17"];
    Scratch::new().run(&args).ok();
    let head = &server.requests()[0].head;
    assert!(head.contains("idempotency-key: k-17\n"), "{head}");
}

#[test]
fn a_wait_runs_by_itself() {
    let scratch = Scratch::new();
    let ran = scratch.run(&["steps", "run", "wait", "{:key \"k\"}"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let answered = scratch.run(&["waits", "complete", "k", "--value", "{:a 1}"]);
    assert!(answered.ok().contains("{:a 1}"));
}

#[test]
fn a_packaged_step_runs_by_itself_with_its_flow() {
    let scratch = Scratch::new();
    scratch.write(
        "packed.edn",
        "{:slug :packed :concurrency {:type :singleton :on-new-version :supersede}
          :invocations {:default {:inputs [{:name :n :type :number :required true}]}}
          :functions [{:id :inc :code '(fn [{:keys [n]}] {:n (inc n)})}]
          :steps [{:id :math/add :type :function :input-schema [:map [:n :int]] :defaults {:ref :inc}}]
          :flow '(flow/step :math/add {:n (:n (flow/input))})}",
    );
    let run = |kind: &str, config: &str| {
        scratch
            .run(&["steps", "run", kind, config, "--flow", "packed.edn"])
            .transcript()
    };
    let packaged = run("math/add", "{:n 1}");
    assert!(packaged.starts_with("{:n 2}\n"), "{packaged}");
    let function = run("function", "{:ref :inc :input {:n 5}}");
    assert!(function.starts_with("{:n 6}\n"), "{function}");
    let wrong = run("math/add", "{:n \"x\"}");
    assert!(
        wrong.contains("E0552") && wrong.contains("at [:n]"),
        "{wrong}"
    );
    let missing = run("math/ad", "{}");
    assert!(missing.contains("did you mean `math/add`?"), "{missing}");
}
