//! The details of an error reach the user: complete, as data, and on the requested page.

use serde_json::json;

use crate::program::Scratch;

const DECLINED: &str = r#"{:slug :declined :concurrency {:type :singleton :on-new-version :supersede}
 :flow '(throw (ex-info "declined" {:kind :payment :body {:reason (apply str (repeat 400 "x"))}}))}"#;

const STEP: &str = r#"{:slug :step :concurrency {:type :singleton :on-new-version :supersede}
 :flow '(flow/step :kv :read {:operation :get :key "" :title (apply str (repeat 9 "long "))})}"#;

const DEEP: &str = r#"{:slug :deep :concurrency {:type :keyed :key-field :n :on-new-version :supersede}
 :invocations {:default {:inputs [{:name :n :type :number :required true}]}}
 :flow '(let [n (:n (flow/input))]
          (if (pos? n) (flow/call-flow :deep {:n (dec n)}) (throw (ex-info "the bottom" {}))))}"#;

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("declined.edn", DECLINED);
    scratch.write("step.edn", STEP);
    scratch.write("deep.edn", DEEP);
    scratch
}

#[test]
fn data_is_whole_in_json() {
    let scratch = scratch();
    let run = scratch.json_of(&["run", "declined.edn"]);
    let expected = json!({"kind": "payment", "body": {"reason": "x".repeat(400)}});
    assert_eq!(run["error"]["data"], expected, "{run}");
    let id = run["run"].as_str().expect("an id");
    let shown = scratch.json_of(&["runs", "show", id]);
    assert_eq!(shown["error"]["data"], expected, "{shown}");
    let program = r#"(throw (ex-info "no" {:list [1 {:f inc}]} (ex-info "why" {:deep {:n 1}})))"#;
    let evaluated = scratch.json_of(&["eval", program]);
    assert_eq!(evaluated["error"]["data"]["list"][0], 1, "{evaluated}");
    assert_eq!(
        evaluated["error"]["causes"][0]["data"],
        json!({"deep": {"n": 1}})
    );
}

#[test]
fn the_page_of_a_run_has_its_error() {
    let scratch = scratch();
    let run = scratch.json_of(&["run", "declined.edn"]);
    let id = run["run"].as_str().expect("an id");
    let brief = scratch.run(&["runs", "show", id]);
    assert!(brief.out.contains("declined"), "{brief:?}");
    assert_eq!(brief.err, "");
    assert!(!brief.out.contains(&"x".repeat(400)));
    let full = scratch.run(&["runs", "show", id, "--full"]);
    assert!(full.out.contains(&"x".repeat(400)), "{full:?}");
}

#[test]
fn the_page_of_a_step_has_all_data_of_its_error() {
    let scratch = scratch();
    let run = scratch.json_of(&["run", "step.edn"]);
    let id = run["run"].as_str().expect("an id");
    let step = scratch.run(&["runs", "show", id, "--step", "read"]);
    assert_eq!(step.err, "");
    assert!(step.out.contains(":kind"), "{step:?}");
    let step = scratch.json_of(&["runs", "show", id, "--step", "read"]);
    assert_eq!(step["errorData"]["step"], "read", "{step}");
}

#[test]
fn an_error_through_children_names_its_cause_once() {
    let scratch = scratch();
    let ran = scratch.run(&["run", "deep.edn", "--input", "{:n 12}", "--quiet"]);
    let message = ran.err.lines().next().unwrap_or_default();
    assert!(message.ends_with("of `deep` failed: the bottom"), "{ran:?}");
    assert_eq!(message.matches("failed").count(), 1, "{ran:?}");
    assert_eq!(ran.err.matches("\n  in run ").count(), 8, "{ran:?}");
    assert!(ran.err.contains("... 4 runs ..."), "{ran:?}");
}

#[test]
fn the_lost_branch_of_a_race_is_cancelled() {
    let scratch = scratch();
    scratch.write(
        "race.edn",
        "(flow/race {:a #(flow/step :function :now {:code '(fn [_] {:n 1})})
                     :b #(flow/step :sleep :long {:duration \"1h\"})})",
    );
    let run = scratch.json_of(&["run", "race.edn"]);
    let shown = scratch.json_of(&["runs", "show", run["run"].as_str().expect("an id")]);
    let steps = shown["steps"].as_array().expect("steps");
    let lost = steps.iter().find(|step| step["path"] == "race.b/long");
    assert_eq!(lost.expect("it began")["status"], "cancelled", "{shown}");
}
