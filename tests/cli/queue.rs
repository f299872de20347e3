//! Runs that wait for their turn, on the command line.

use serde_json::json;

use crate::program::Scratch;

const ASK: &str = "{:slug :ask :concurrency {:type :keyed :key-field :who}
 :flow '(:action (flow/step :wait :question {:key (:who (flow/input)) :timeout \"1d\"}))}";

fn ask() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("ask.edn", ASK);
    scratch
}

fn start(scratch: &Scratch, more: &[&str]) -> serde_json::Value {
    let args = [
        "run",
        "ask.edn",
        "--json",
        "--new",
        "--input",
        "{:who \"Ada\"}",
    ];
    scratch.run(&[&args[..], more].concat()).json()
}

#[test]
fn a_second_run_is_queued_and_begins_when_the_first_ends() {
    let scratch = ask();
    let first = start(&scratch, &[]);
    assert_eq!(first["status"], "waiting");
    assert_eq!(
        (&first["concurrencyDecision"], &first["concurrencyKey"]),
        (&json!("started"), &json!("Ada"))
    );
    let args = ["run", "ask.edn", "--new", "--input", "{:who \"Ada\"}"];
    let second = scratch.run(&args);
    let first_id = first["run"].as_str().expect("an id");
    assert_eq!(second.code, Some(3), "{second:?}");
    assert!(
        second
            .err
            .contains(&format!("queued behind {first_id}, next")),
        "{}",
        second.err
    );
    assert!(
        second.err.contains("flowstone runs resume"),
        "{}",
        second.err
    );
    // The same command means the same queued run.
    let again = scratch.run(&["run", "ask.edn", "--input", "{:who \"Ada\"}"]);
    assert!(again.err.contains("which is queued"), "{}", again.err);
    let list = scratch
        .run(&["runs", "list", "--status", "queued", "--json"])
        .json();
    let queued = &list["runs"][0];
    assert_eq!(list["runs"].as_array().map(Vec::len), Some(1));
    assert_eq!(queued["queue"]["behind"], json!([first_id]));
    let id = queued["id"].as_str().expect("an id");
    let shown = scratch.run(&["runs", "show", id]).ok();
    assert!(
        shown.contains(&format!("queued behind {first_id}, next")),
        "{shown}"
    );
    let table = scratch.run(&["runs", "list"]).ok();
    assert!(table.contains("queued behind"), "{table}");
    scratch
        .run(&["waits", "complete", "Ada", "--value", "{:action :yes}"])
        .ok();
    let third = scratch.run(&["runs", "resume", id]);
    assert_eq!(third.code, Some(3), "{third:?}");
    assert!(
        third.err.contains("flowstone waits complete"),
        "{}",
        third.err
    );
}

#[test]
fn priorities_ids_and_runs_that_are_left() {
    let scratch = ask();
    let first = start(&scratch, &["--id", "one"]);
    let same = start(&scratch, &["--id", "one"]);
    assert_eq!(
        (&same["run"], &same["concurrencyDecision"]),
        (&first["run"], &json!("deduped"))
    );
    let low = start(&scratch, &["--detach"]);
    let high = start(&scratch, &["--no-wait", "--priority", "5"]);
    assert_eq!(
        (&low["status"], &low["queue"]["position"]),
        (&json!("queued"), &json!(1))
    );
    assert_eq!(
        (&high["status"], &high["queue"]["position"]),
        (&json!("queued"), &json!(1))
    );
    let id = high["run"].as_str().expect("an id");
    scratch.run(&["runs", "cancel", id]).ok();
    let shown = scratch.run(&["runs", "show", id, "--json"]).json();
    assert_eq!(shown["status"], "cancelled");
}

#[test]
fn what_cannot_start_says_why() {
    let scratch = Scratch::new();
    scratch.write(
        "ask.edn",
        ASK.replace(":key-field :who", ":key-field :who :on-conflict :reject"),
    );
    let missing = scratch.run(&["run", "ask.edn", "--input", "{}"]);
    assert!(
        missing.err.contains("E0556") && missing.err.contains(":who"),
        "{}",
        missing.err
    );
    start(&scratch, &[]);
    let refused = start(&scratch, &[]);
    assert_eq!(refused["error"]["code"], "E0555");
    assert_eq!(
        scratch.run(&["runs", "list", "--json"]).json()["runs"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
}

#[test]
fn definitions_are_checked() {
    let scratch = Scratch::new();
    let check = |head: &str| {
        scratch.write("flow.edn", format!("{{:slug :flow {head} :flow '1}}"));
        let found = scratch.run(&["check", "flow.edn", "--json"]).json();
        let findings = found["findings"].as_array().cloned().unwrap_or_default();
        let words: Vec<String> = findings
            .iter()
            .map(|finding| {
                format!(
                    "{} {}",
                    finding["code"].as_str().unwrap_or(""),
                    finding["message"].as_str().unwrap_or("")
                )
            })
            .collect();
        words.join("; ")
    };
    for (head, expected) in [
        (
            ":concurrency {:type :singleton :on-conflict :wait}",
            "E0404 `:on-conflict` of `:concurrency` must be one of `:cancel-running`, `:queue`, `:reject`",
        ),
        (
            ":concurrency {:type :singleton :new 1}",
            "E0456 unknown key `:new`",
        ),
        (
            ":concurrency {:type :singleton :key-field :a}",
            "E0456 a `:key-field` is for `:type :keyed`",
        ),
        (
            ":concurrency {:type :keyed :key-field (f)}",
            "E0456 this cannot be a key of runs",
        ),
        (":limits {}", "E0457 `:limits` limits nothing"),
        (
            ":limits {:concurrency 0}",
            "E0457 `:concurrency` of `:limits` must be a whole number from 1",
        ),
        (
            ":limits {:rate {:max 3}}",
            "E0457 `:rate` needs a `:per`, a duration",
        ),
        (
            ":limits {:rate {:max 3 :per \"1m\"} :scoop :a}",
            "E0457 unknown key `:scoop`",
        ),
        (
            ":concurrency {:type :singleton} :limits {:concurrency 2}",
            "E0459 the limit of 2 runs is never reached: the flow is a `:singleton`",
        ),
        (
            ":concurrency {:type :keyed :key-field :b} :invocations {:default {:inputs [{:name :a}]}}",
            "E0458 no invocation has an input `:b`",
        ),
        (
            ":limits {:concurrency 2 :rate {:max 3 :per \"1m\"} :key [:a :b] :scope :s :priority -1}",
            "",
        ),
    ] {
        assert_eq!(check(head), expected, "{head}");
    }
}

/// A run whose turn has come, and one that is left for a worker, were never interrupted.
#[test]
fn a_run_that_nobody_began_is_not_listed_as_interrupted() {
    let scratch = Scratch::new();
    scratch.write(
        "one.edn",
        "{:slug :one :concurrency {:type :singleton :on-new-version :coexist}
          :flow '(flow/step :wait :door {:key \"door\"})}",
    );
    scratch.write("two.edn", "{:slug :two :flow '1}");
    let first = scratch.run(&["run", "one.edn", "--json"]).json();
    scratch.run(&["run", "one.edn", "--new", "--json"]);
    scratch.run(&["run", "two.edn", "--detach"]).ok();
    let first = first["run"].as_str().expect("an id").to_owned();
    scratch.run(&["runs", "cancel", &first]);
    let listed = scratch.run(&["runs", "list"]).out;
    assert_eq!(listed.matches("not begun").count(), 2, "{listed}");
    assert!(!listed.contains("interrupted"), "{listed}");
    let interrupted = scratch.run(&["runs", "list", "--status", "interrupted", "--json"]);
    assert_eq!(interrupted.json()["runs"], serde_json::json!([]));
}
