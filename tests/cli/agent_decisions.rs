//! Decisions about single calls of an agent, on the page of a wait, by HTTP, and on the command line.

use serde_json::{Value, json};

use crate::api::Api;
use crate::program::Scratch;

const FLOW: &str = r#"{:slug :add
  :functions [{:id :add :code (fn [{:keys [a b]}] {:sum (+ a b)})}]
  :steps [{:id :math/add :type :function :description "Adds." :input-schema [:map [:a :int] [:b :int]] :defaults {:ref :add}}]
  :flow '(mapv (juxt :arguments :success (comp :error :result))
               (:tool-calls (flow/step :agent :a {:connection :ai :objective "Add." :tools {:steps [:math/add]}
                                                  :approval {:tool-names ["math_add"] :resume :in-place}})))}"#;
const SETTINGS: &str = r#"{:connections {:ai {:backend :scripted
  :script {:turns [{:tool-calls [{:name "math_add" :arguments {:a 1 :b 2}} {:name "math_add" :arguments {:a 3 :b 4}}]}
                   "Done."]}}}}"#;
const FORM: &str = "content-type: application/x-www-form-urlencoded";

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("flows/add.edn", FLOW);
    scratch.write("flowstone.edn", SETTINGS);
    scratch
}

/// Starts a run, and returns its id and its wait as `waits show` prints it.
fn waiting(scratch: &Scratch, api: &Api) -> (String, Value) {
    let started = api.post("/api/v1/flows/add/runs", &json!({"wait": "60s"}));
    assert_eq!(started.status, 202, "{started:?}");
    let waits = scratch.json_of(&["waits", "list"]);
    let id = waits["waits"][0]["id"].as_str().expect("an id");
    let shown = scratch.json_of(&["waits", "show", id]);
    (shown["run"].as_str().expect("a run").to_owned(), shown)
}

/// Returns the ids of the calls that a wait asks about.
fn calls(wait: &Value) -> Vec<String> {
    let actions = wait["details"]["show"]["data"]["actions"].as_array();
    let ids = actions.expect("actions").iter();
    ids.map(|it| it["tool-call-id"].as_str().expect("an id").to_owned())
        .collect()
}

fn ended(scratch: &Scratch, api: &Api, run: &str) -> Value {
    scratch.run(&["runs", "watch", run]);
    api.get(&format!("/api/v1/runs/{run}")).json()["result"].clone()
}

fn expected() -> Value {
    let reason = "not performed: a person rejected this call: not today";
    json!([[{"a": 10, "b": 20}, true, null], [{"a": 3, "b": 4}, false, reason]])
}

#[test]
fn calls_are_decided_by_http_and_on_the_page() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let (run, wait) = waiting(&scratch, &api);
    let ids = calls(&wait);
    let id = wait["id"].as_str().expect("an id");
    let decisions = json!([
        {"tool-call-id": ids[0], "action": "edit", "arguments": {"a": 10, "b": 20}},
        {"tool-call-id": ids[1], "action": "reject", "reason": "not today"},
    ]);
    let path = format!("/api/v1/waits/{id}/complete");
    let unknown =
        json!({"action": "approve", "decisions": [{"tool-call-id": "x", "action": "reject"}]});
    let refused = api.post(&path, &json!({"value": unknown}));
    assert_eq!(refused.status, 422, "{refused:?}");
    let answer = json!({"action": "approve", "decisions": decisions});
    let answered = api.post(&path, &json!({"value": answer}));
    assert_eq!(answered.status, 200, "{answered:?}");
    assert_eq!(ended(&scratch, &api, &run), expected());

    let (run, wait) = waiting(&scratch, &api);
    let text = |name: &str| wait[name].as_str().expect("text").to_owned();
    let (id, token, digest) = (text("id"), text("token"), text("digest"));
    let address = format!("/local/waits/{id}/approve");
    let page = api.request(&format!("GET {address}?token={token}"), &[], "");
    assert!(
        page.body.contains("Decisions about single calls"),
        "{}",
        page.body
    );
    assert!(page.body.contains("name=\"decisions\""), "{}", page.body);
    let ids = calls(&wait);
    let edn = format!(
        "[{{:tool-call-id \"{}\" :action :edit :arguments {{:a 10 :b 20}}}} {{:tool-call-id \"{}\" :action :reject :reason \"not today\"}}]",
        ids[0], ids[1]
    );
    let edn: String = edn.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let form = format!("token={token}&digest={digest}&action=approve&decisions={edn}&comment=");
    let origin = format!("origin: http://{}", api.address);
    let sent = api.request(
        &format!("POST {address}"),
        &[FORM, &*origin, "sec-fetch-site: same-origin"],
        &form,
    );
    assert_eq!(sent.status, 303, "{sent:?}");
    assert_eq!(ended(&scratch, &api, &run), expected());
    assert_eq!(api.stop(), Some(0));
}

#[test]
fn calls_are_decided_on_the_command_line() {
    let scratch = project();
    scratch.run(&["run", "flows/add.edn", "--quiet"]);
    let waits = scratch.json_of(&["waits", "list"]);
    let id = waits["waits"][0]["id"].as_str().expect("an id");
    let ids = calls(&scratch.json_of(&["waits", "show", id]));
    let value = format!(
        "{{:action :approve :decisions [{{:tool-call-id \"{}\" :action :edit :arguments {{:a 10 :b 20}}}} {{:tool-call-id \"{}\" :action :reject :reason \"not today\"}}]}}",
        ids[0], ids[1]
    );
    let args = ["waits", "complete", id, "--value", &value, "--quiet"];
    let printed = scratch.run(&args).ok();
    let expected = "[[{:a 10, :b 20} true nil] [{:a 3, :b 4} false \"not performed: a person rejected this call: not today\"]]";
    let words: Vec<&str> = printed.split_whitespace().collect();
    assert_eq!(words.join(" "), expected);
}

#[test]
fn a_run_is_forked_after_an_approval_in_place() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let (run, wait) = waiting(&scratch, &api);
    let id = wait["id"].as_str().expect("an id");
    let path = format!("/api/v1/waits/{id}/complete");
    let answered = api.post(&path, &json!({"value": {"action": "approve"}}));
    assert_eq!(answered.status, 200, "{answered:?}");
    let sums = json!([[{"a": 1, "b": 2}, true, null], [{"a": 3, "b": 4}, true, null]]);
    assert_eq!(ended(&scratch, &api, &run), sums);

    // The fork has another id, and so another key of the same approval.
    let path = format!("/api/v1/runs/{run}/fork");
    let forked = api.post(&path, &json!({"at": "a/turn#2"}));
    let fork = forked.json()["id"].as_str().expect(&forked.body).to_owned();
    assert_ne!(fork, run);
    assert_eq!(ended(&scratch, &api, &fork), sums);
    assert_eq!(scratch.json_of(&["waits", "list"])["waits"], json!([]));
    assert_eq!(api.stop(), Some(0));
}

#[test]
fn edited_arguments_of_the_wrong_type_are_refused() {
    let scratch = project();
    let api = Api::serve(&scratch);
    let (run, wait) = waiting(&scratch, &api);
    let mut open = wait;
    for (a, is_right) in [
        (json!("10"), false),
        (json!([10]), false),
        (json!(10), true),
    ] {
        let first = calls(&open)[0].clone();
        let decision =
            json!({"tool-call-id": first, "action": "edit", "arguments": {"a": a, "b": 20}});
        let answer = json!({"action": "approve", "decisions": [decision]});
        let id = open["id"].as_str().expect("an id");
        let path = format!("/api/v1/waits/{id}/complete");
        let answered = api.post(&path, &json!({"value": answer}));
        assert_eq!(answered.status, 200, "{answered:?}");
        if !is_right {
            // The wait opens again, with what is wrong.
            open = next_wait(&scratch, id);
            let message = open["details"].to_string();
            assert!(message.contains("could not be used"), "{message}");
            assert!(message.contains("`a`"), "{message}");
        }
    }
    let expected = json!([[{"a": 10, "b": 20}, true, null], [{"a": 3, "b": 4}, true, null]]);
    assert_eq!(ended(&scratch, &api, &run), expected);
    assert_eq!(api.stop(), Some(0));
}

/// Returns the wait that opens after another one.
fn next_wait(scratch: &Scratch, before: &str) -> Value {
    let started = std::time::Instant::now();
    while started.elapsed() < std::time::Duration::from_secs(30) {
        let waits = scratch.json_of(&["waits", "list"]);
        match waits["waits"][0]["id"].as_str() {
            Some(id) if id != before => return scratch.json_of(&["waits", "show", id]),
            _ => std::thread::sleep(std::time::Duration::from_millis(50)),
        }
    }
    panic!("no wait opened after `{before}`");
}

#[test]
fn a_run_waits_although_a_tool_ends_after_another_began_to_wait() {
    let scratch = Scratch::new();
    let settings = r#"{:connections {:ai {:backend :scripted :script {:turns
      [{:tool-calls [{:name "slow" :arguments {}} {:name "ask" :arguments {}}]} "Done."]}}}}"#;
    scratch.write("flowstone.edn", settings);
    let slow = "{:slug :slow :description \"Takes a while.\" :flow '(flow/step :sleep :nap {:duration \"400ms\"})}";
    scratch.write("flows/slow.edn", slow);
    let ask =
        "{:slug :ask :description \"Asks.\" :flow '(flow/step :wait :question {:key \"ask\"})}";
    scratch.write("flows/ask.edn", ask);
    let desk = "{:slug :desk :flow '(:content (flow/step :agent :a {:connection :ai :objective \"Ask.\" :tools {:flows [:slow :ask]}}))}";
    scratch.write("flows/desk.edn", desk);
    assert_eq!(
        scratch.run(&["run", "flows/desk.edn", "--quiet"]).code,
        Some(3)
    );
    let status = || {
        let runs = scratch.json_of(&["runs", "list"]);
        let mut runs = runs["runs"].as_array().expect("runs").iter();
        let run = runs.find(|run| run["flow"] == "desk");
        run.expect("the run")["status"].clone()
    };
    assert_eq!(status(), "waiting");
    let waits = scratch.json_of(&["waits", "list"]);
    let id = waits["waits"][0]["id"].as_str().expect("an id");
    scratch
        .run(&["waits", "complete", id, "--value", "{}", "--quiet"])
        .ok();
    assert_eq!(status(), "completed");
}
