//! Families, ends from outside, and edited flows: what the commands say and how they exit.

use serde_json::{Value, json};

use crate::program::Scratch;

const HEAD: &str = ":concurrency {:type :singleton :on-new-version :coexist}";

/// A run that has computed and waits.
const FLOW: &str = "(let [a (flow/step :function :first {:input {} :code '(fn [_] 1)})
       b (flow/step :wait :door {:key \"door\"})]
   [a (:action b)])";

fn scratch() -> Scratch {
    let scratch = Scratch::new();
    let write = |name: &str, slug: &str, flow: &str| {
        scratch.write(name, format!("{{:slug :{slug} {HEAD} :flow '{flow}}}"));
    };
    write(
        "flows/child.edn",
        "child",
        "[(:action (flow/step :wait :door {:actions [:go :stop]}))]",
    );
    write("parent.edn", "parent", "{:child (flow/call-flow :child)}");
    write(
        "nap.edn",
        "nap",
        "(try (flow/step :sleep :long {:duration \"1h\"})
              (finally (flow/step :kv :tidied {:operation :set :key \"tidied\" :value 1})))",
    );
    write("work.edn", "work", FLOW);
    write("safe.edn", "work", &FLOW.replace("[a (:", "[:safe a (:"));
    write(
        "other.edn",
        "work",
        &FLOW.replace("(fn [_] 1)", "(fn [_] 2)"),
    );
    scratch
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// Starts a run that waits; its id.
fn waiting(scratch: &Scratch, file: &str) -> String {
    let ran = scratch.run(&["run", file, "--json"]);
    assert_eq!(ran.code, Some(3), "{}", ran.err);
    text(&ran.json()["run"])
}

#[test]
fn a_parent_shows_how_to_answer_its_child_and_resumes_with_it() {
    let scratch = scratch();
    let told = scratch.run(&["run", "parent.edn"]);
    assert_eq!(told.code, Some(3));
    let wait = scratch.run(&["waits", "list", "--json"]).json();
    let wait = text(&wait["waits"][0]["id"]);
    let how = format!("flowstone waits complete {wait} --value");
    assert!(told.err.contains(&how), "{}", told.err);
    let parent = scratch.run(&["runs", "list", "--json", "--flow", "parent"]);
    let parent = text(&parent.json()["runs"][0]["id"]);
    let shown = scratch.run(&["runs", "resume", &parent, "--json"]).json();
    assert_eq!(shown["waits"][0]["id"], json!(wait));
    assert_ne!(shown["waits"][0]["run"], json!(parent));
    scratch
        .run(&["waits", "complete", &wait, "--value", "{:action :go}"])
        .ok();
    let shown = scratch.run(&["runs", "show", &parent, "--json"]).json();
    assert_eq!(
        (&shown["status"], &shown["result"]),
        (&json!("completed"), &json!({"child": ["go"]}))
    );
}

#[test]
fn force_terminates_a_run_and_its_children() {
    let scratch = scratch();
    let parent = waiting(&scratch, "parent.edn");
    scratch.run(&["runs", "cancel", &parent, "--force"]).ok();
    let listed = scratch.run(&["runs", "list", "--json"]).json();
    let runs = listed["runs"].as_array().expect("runs");
    let mut statuses: Vec<String> = runs
        .iter()
        .map(|run| format!("{} {}", text(&run["flow"]), text(&run["status"])))
        .collect();
    statuses.sort();
    assert_eq!(statuses, ["child cancelled", "parent terminated"]);
    assert_eq!(scratch.run(&["runs", "resume", &parent]).code, Some(4));
    let waits = scratch.run(&["waits", "list", "--json"]).json();
    assert_eq!(waits["waits"], json!([]));
}

#[test]
fn a_run_past_its_timeout_executes_its_finally_blocks() {
    let scratch = scratch();
    let ran = scratch.run(&["run", "nap.edn", "--timeout", "1s", "--json"]);
    assert_eq!(ran.code, Some(4), "{}", ran.err);
    let told = ran.json();
    assert_eq!(
        (&told["ok"], &told["status"]),
        (&json!(false), &json!("timed-out"))
    );
    let shown = scratch.run(&["runs", "show", &text(&told["run"]), "--json"]);
    let steps = shown.json()["steps"].clone();
    assert_eq!(steps[1]["status"], "done", "{steps}");
}

/// A fork keeps the winner of a race, so that the loser of it never begins there.
#[test]
fn a_flow_is_the_same_as_its_own_forks() {
    let scratch = Scratch::new();
    scratch.write(
        "race.edn",
        "{:slug :race
          :flow '(let [r (flow/race {:a (fn [] (:value (flow/step :kv :k {:op :increment :key \"k\"})))
                                     :b (fn [] (flow/step :sleep :zz {:seconds 60}))})
                       c (:value (flow/step :kv :c {:op :increment :key \"c\"}))]
                   [r c])}",
    );
    let run = scratch.run(&["run", "race.edn", "--json"]).json();
    scratch
        .run(&["runs", "fork", &text(&run["run"]), "--at", "c", "--quiet"])
        .ok();
    let ran = scratch.run(&["backtest", "race.edn"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("2 tested, 2 the same"), "{ran:?}");
}

/// A file with another slug is another flow: neither command takes it for a version of the run's.
#[test]
fn a_run_is_not_resumed_with_another_flow() {
    let scratch = Scratch::new();
    let flow =
        |slug: &str| format!("{{:slug :{slug} :flow '(flow/step :wait :door {{:key \"door\"}})}}");
    scratch.write("a.edn", flow("a"));
    let run = scratch.run(&["run", "a.edn", "--json"]).json();
    let run = text(&run["run"]);
    scratch.write("a.edn", flow("b"));
    let against = scratch.run(&["check", "a.edn", "--against-running", "--json"]);
    assert_eq!(against.json()["runs"], json!([]));
    let refused = scratch.run(&["runs", "resume", &run, "--flow", "a.edn", "--json"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "E0955");
    scratch.write("a.edn", flow("a"));
    let taken = scratch.run(&["runs", "resume", &run, "--flow", "a.edn", "--json"]);
    assert_eq!(taken.code, Some(3), "{taken:?}");
}

#[test]
fn edited_flows_are_checked_against_the_journal() {
    let scratch = scratch();
    let run = waiting(&scratch, "work.edn");
    for (file, code, verdict) in [("safe.edn", 0, "safe"), ("other.edn", 1, "conflict")] {
        let ran = scratch.run(&["check", file, "--against-running", "--json"]);
        assert_eq!(ran.code, Some(code), "{file}");
        let found = ran.json();
        assert_eq!(found["ok"], json!(code == 0));
        assert_eq!(found["runs"][0]["run"], json!(run));
        assert_eq!(found["runs"][0]["verdict"], verdict);
        let at = found["runs"][0]["conflict"]["step"].as_str();
        assert_eq!(at, (code == 1).then_some("first"));
    }
    let missing = scratch.run(&["check", "missing.edn", "--against-running", "--json"]);
    assert_eq!(
        (missing.code, &missing.json()["ok"]),
        (Some(1), &json!(false))
    );
    let refused = scratch.run(&["runs", "resume", &run, "--flow", "other.edn", "--json"]);
    assert_eq!(refused.code, Some(1));
    assert_eq!(refused.json()["error"]["code"], "E0570");
    let taken = scratch.run(&["runs", "resume", &run, "--flow", "safe.edn", "--json"]);
    assert_eq!(taken.code, Some(3), "{}", taken.err);
    let fork = scratch.run(&[
        "runs",
        "fork",
        &run,
        "--at",
        "door",
        "--json",
        "--no-resume",
    ]);
    let fork = text(&fork.json()["run"]);
    let answer = ["waits", "complete", "door", "--value", "{:action :go}"];
    assert_eq!(scratch.run(&answer).ok(), "[:safe 1 :go]\n");
    let shown = scratch.run(&["runs", "show", &fork, "--json"]).json();
    assert_eq!(shown["steps"][0]["status"], "done", "kept: {shown}");

    for (file, code, verdict) in [("safe.edn", 0, "same"), ("other.edn", 1, "different end")] {
        let ran = scratch.run(&["backtest", file, "--json"]);
        assert_eq!(ran.code, Some(code), "{file}");
        let found = ran.json();
        assert_eq!(found["ok"], json!(code == 0));
        assert_eq!(found["tests"].as_array().map(Vec::len), Some(1));
        assert_eq!(found["tests"][0]["verdict"], verdict);
    }
    let none = scratch.run(&["backtest", "safe.edn", "--runs", "odd=1"]);
    assert_eq!(none.code, Some(2), "{}", none.err);
}
