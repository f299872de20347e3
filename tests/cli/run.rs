//! `flowstone run`, `runs` and `waits`.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::json;

use crate::program::{Ran, Scratch};
use crate::server::{Answer, Server};

const HELLO: &str = "{:slug :hello :concurrency {:type :singleton :on-new-version :supersede}
 :invocations {:default {:inputs [{:name :who :type :string :required true}]}}
 :flow '(let [{:keys [who]} (flow/input)]
          (flow/step :kv :remember {:operation :set :key \"who\" :value who})
          {:hello who :n 1/2})}";

const ASK: &str = "{:slug :ask :concurrency {:type :singleton :on-new-version :supersede}
 :flow '(let [answer (flow/step :wait :question {:key \"the-question\" :timeout \"1d\"})]
          [:answered (:action answer)])}";

fn hello() -> Scratch {
    let scratch = Scratch::new();
    scratch.write("hello.edn", HELLO);
    scratch
}

#[test]
fn the_result_is_on_standard_output_and_progress_on_standard_error() {
    let ran = hello().run(&["run", "hello.edn", "--input", "{\"who\": \"Ada\"}"]);
    assert_eq!(
        (ran.code, &*ran.out),
        (Some(0), "{:hello \"Ada\", :n 1/2}\n"),
        "{ran:?}"
    );
    assert!(ran.err.contains("remember"), "{}", ran.err);
    assert!(!ran.err.contains('\x1b'), "{}", ran.err);
}

#[test]
fn quiet_shows_no_progress() {
    let ran = hello().run(&["run", "hello.edn", "--quiet", "--input", "{:who \"Ada\"}"]);
    assert_eq!((ran.code, &*ran.err), (Some(0), ""));
}

#[test]
fn text_is_printed_as_it_is() {
    let scratch = Scratch::new();
    scratch.write("text.edn", "(str \"# Title\" \"\\n\\n\" \"Text\")");
    assert_eq!(scratch.run(&["run", "text.edn"]).ok(), "# Title\n\nText\n");
}

/// Checking the flow leaves a session that the run uses first, and then one of its own.
#[test]
fn a_flow_that_changes_the_library_prints_everything_once() {
    let scratch = Scratch::new();
    let flow = "(do (println \"before\")
       (flow/step :kv :note {:operation :set :key \"a\" :value 1})
       (println \"in between\")
       (derive :a/b :a/c)
       (println (str (gensym \"name\")) (count (:parents @@#'clojure.core/global-hierarchy))))";
    scratch.write("own.clj", flow);
    let ran = scratch.run(&["run", "own.clj"]);
    let shown: Vec<&str> = ran
        .err
        .lines()
        .filter(|line| !line.contains("note"))
        .collect();
    assert_eq!(shown, ["own", "before", "in between", "name2 1"], "{ran:?}");
    let runs = scratch.run(&["runs", "list", "--json"]).json();
    let id = runs["runs"][0]["id"].as_str().expect("an id").to_owned();
    let replayed = scratch.run(&["runs", "replay", &id]);
    assert_eq!(replayed.code, Some(0), "{replayed:?}");
}

#[test]
fn json_is_one_object() {
    let ran = hello().run(&["run", "hello.edn", "--json", "--input", "{:who \"Ada\"}"]);
    let object = ran.json();
    assert_eq!(
        (&object["ok"], &object["status"]),
        (&json!(true), &json!("completed"))
    );
    assert_eq!(object["result"]["hello"], "Ada");
    assert!(object["run"].is_string());
}

#[test]
fn input_comes_from_a_file_or_standard_input() {
    let scratch = hello();
    scratch.write("input.json", "{\"who\": \"Bo\"}");
    let args = ["run", "hello.edn", "--quiet", "--input"];
    let from_file = scratch.run(&[&args[..], &["@input.json"]].concat()).ok();
    let from_pipe = scratch
        .run_with(&[&args[..], &["-"]].concat(), "{:who \"Bo\"}")
        .ok();
    assert_eq!(
        (&*from_file, &*from_pipe),
        ("{:hello \"Bo\", :n 1/2}\n", "{:hello \"Bo\", :n 1/2}\n")
    );
    let malformed = scratch.run(&[&args[..], &["{\"who\": }"]].concat());
    assert_eq!(malformed.code, Some(2), "{malformed:?}");
}

#[test]
fn runs_are_kept_and_shown() {
    let scratch = hello();
    scratch
        .run(&["run", "hello.edn", "--input", "{:who \"Ada\"}"])
        .ok();
    let runs = scratch.run(&["runs", "list", "--json"]).json();
    let id = runs["runs"][0]["id"].as_str().expect("an id").to_owned();
    assert_eq!(runs["runs"][0]["flow"], "hello");
    let list = scratch.run(&["runs", "list"]).ok();
    assert!(list.contains(&id) && list.contains("completed"), "{list}");
    let shown = scratch.run(&["runs", "show", &id]).ok();
    assert!(
        shown.contains("remember") && shown.contains("Ada"),
        "{shown}"
    );
    let shown = scratch.run(&["runs", "show", &id, "--json"]).json();
    assert_eq!(shown["result"]["hello"], "Ada");
    assert_eq!(shown["steps"][0]["path"], "remember");
    let none = scratch
        .run(&["runs", "list", "--status", "failed", "--json"])
        .json();
    assert_eq!(none["runs"], json!([]));
    assert_eq!(
        scratch.run(&["runs", "list", "--status", "fialed"]).code,
        Some(2)
    );
    let missing = scratch.run(&["runs", "show", "nothing"]);
    assert_eq!(missing.code, Some(1));
    assert!(missing.err.contains("runs list"), "{}", missing.err);
}

#[test]
fn a_waiting_run_says_how_to_go_on() {
    let scratch = Scratch::new();
    scratch.write("ask.edn", ASK);
    let ran = scratch.run(&["run", "ask.edn"]);
    assert_eq!((ran.code, &*ran.out), (Some(3), ""), "{ran:?}");
    assert!(ran.err.contains("flowstone waits complete"), "{}", ran.err);
    let list = scratch.run(&["waits", "list"]).ok();
    assert!(list.contains("the-question"), "{list}");
    let answer = [
        "waits",
        "complete",
        "the-question",
        "--value",
        "{:action :yes}",
    ];
    assert_eq!(scratch.run(&answer).ok(), "[:answered :yes]\n");
    let again = scratch.run(&answer);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(
        !scratch
            .run(&["waits", "list"])
            .ok()
            .contains("the-question")
    );
}

#[test]
fn an_answer_may_wait_for_its_run() {
    let scratch = Scratch::new();
    scratch.write("ask.edn", ASK);
    let run = scratch.run(&["run", "ask.edn", "--json"]).json();
    let id = run["run"].as_str().expect("an id").to_owned();
    assert_eq!(run["status"], "waiting");
    scratch
        .run(&[
            "waits",
            "complete",
            "the-question",
            "--no-resume",
            "--value",
            "{:action :no}",
        ])
        .ok();
    assert_eq!(
        scratch.run(&["runs", "resume", &id]).ok(),
        "[:answered :no]\n"
    );
    assert_eq!(
        scratch.run(&["runs", "resume", &id]).ok(),
        "[:answered :no]\n"
    );
}

#[test]
fn a_run_can_be_cancelled() {
    let scratch = Scratch::new();
    scratch.write("ask.edn", ASK);
    let run = scratch.run(&["run", "ask.edn", "--json"]).json();
    let id = run["run"].as_str().expect("an id").to_owned();
    scratch
        .run(&["runs", "cancel", &id, "--reason", "not needed"])
        .ok();
    let shown = scratch.run(&["runs", "show", &id, "--json"]).json();
    assert_eq!(shown["status"], "cancelled");
    assert_eq!(scratch.run(&["runs", "resume", &id]).code, Some(4));
    assert_eq!(scratch.run(&["runs", "cancel", &id]).code, Some(1));
}

#[test]
fn a_failed_run_shows_where() {
    let scratch = Scratch::new();
    scratch.write(
        "fail.edn",
        "(let [a 1]\n  (throw (ex-info \"no luck\" {:a a})))",
    );
    let ran = scratch.run(&["run", "fail.edn"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("no luck") && ran.err.contains("fail.edn:2:"),
        "{}",
        ran.err
    );
    let runs = scratch.run(&["runs", "list", "--json"]).json();
    let id = runs["runs"][0]["id"].as_str().expect("an id").to_owned();
    let again = scratch.run(&["runs", "resume", &id]);
    assert_eq!(again.code, Some(1));
    assert!(
        again.err.contains("no luck") && again.err.contains("fail.edn:2:"),
        "{}",
        again.err
    );
}

#[test]
fn an_invocation_is_chosen() {
    let scratch = Scratch::new();
    scratch.write(
        "two.edn",
        "{:slug :two :invocations {:default {:inputs [{:name :a :required true}]}
                                   :other {:inputs [{:name :b :default \"B\"}]}}
          :flow '(:b (flow/input))}",
    );
    let ran = scratch.run(&["run", "two.edn", "--quiet", "--invocation", "other"]);
    assert_eq!(ran.ok(), "B\n");
    let other = scratch.run(&["run", "two.edn", "--invocation", "third"]);
    assert_ne!(other.code, Some(0), "{other:?}");
    for words in [
        "E0409",
        "the flow has no invocation `:third`",
        "`:default`, `:other`",
    ] {
        assert!(other.err.contains(words), "{words}: {}", other.err);
    }
}

#[test]
fn another_home_keeps_its_own_runs() {
    let scratch = hello();
    scratch
        .run(&[
            "run",
            "hello.edn",
            "--home",
            "other",
            "--input",
            "{:who \"Ada\"}",
        ])
        .ok();
    assert!(!scratch.path().join(".flowstone").exists());
    assert_eq!(
        scratch.run(&["runs", "list", "--json"]).json()["runs"],
        json!([])
    );
    let other = scratch
        .run(&["runs", "list", "--json", "--home", "other"])
        .json();
    assert_eq!(other["runs"].as_array().map(Vec::len), Some(1));
}

#[test]
fn ctrl_c_suspends_and_the_same_command_goes_on() {
    let scratch = Scratch::with_local_servers();
    let target = Arc::new(AtomicU32::new(0));
    let process = Arc::clone(&target);
    let server = Server::start(move |_, before| {
        if before > 0 {
            return Answer::Json("{\"a\": 1}".to_owned());
        }
        let id = process.load(Ordering::SeqCst).to_string();
        let status = Command::new("kill").args(["-INT", &id]).status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "kill -INT {id}"
        );
        Answer::Hang(Vec::new())
    });
    scratch.write(
        "flow.edn",
        format!(
            "(let [n (:value (flow/step :kv :count {{:operation :increment :key \"n\"}}))]
               [n (:body (flow/step :http :get {{:url \"{}\"}}))])",
            server.url("/")
        ),
    );
    let child = scratch
        .command(&["run", "flow.edn"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    target.store(child.id(), Ordering::SeqCst);
    let ran = Ran::of(child);
    assert_eq!((ran.code, &*ran.out), (Some(130), ""), "{ran:?}");
    assert!(ran.err.contains("flowstone runs resume"), "{}", ran.err);
    let ran = scratch.run(&["run", "flow.edn"]);
    assert!(ran.err.contains("resuming run"), "{}", ran.err);
    assert_eq!(ran.ok(), "[1 {:a 1}]\n");
    assert_eq!(scratch.run(&["run", "flow.edn"]).ok(), "[2 {:a 1}]\n");
}

#[test]
fn steps_of_branches_and_children_are_named_as_they_end() {
    let scratch = Scratch::new();
    scratch.write(
        "child.edn",
        "{:slug :child :concurrency {:type :singleton :on-new-version :supersede} :flow '(+ 1 2)}",
    );
    scratch.write(
        "parent.edn",
        "(do (flow/pmap (fn [n] (flow/step :kv :count {:operation :increment :key (str n)})) (range 9))
             (flow/call-flow :child {}))",
    );
    let ran = scratch.run(&["run", "parent.edn"]);
    assert_eq!(ran.out, "3\n");
    assert!(ran.err.contains("✓ pmap.4/count :kv"), "{ran:?}");
    assert!(ran.err.contains("= pmap  9 of 9"), "{ran:?}");
    assert!(ran.err.contains("✓ child :call-flow"), "{ran:?}");
}
