//! Runs that call runs: values, errors, waits, cancellations, and a process that ends at any commit.

use std::rc::Rc;

use expect_test::expect;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::outcome::RunOutcome;
use flowstone_engine::ports::{RunFilter, RunRow, RunStatus, WaitFilter};
use flowstone_engine::{Engine, ExecuteOptions, codec};
use flowstone_lang::value::Value;

use super::STORE;
use crate::bench::{Bench, block_on, execute, outcome, outcome_text};
use crate::crash::stores;

/// The flows that the tests call.
const FLOWS: &[(&str, &str)] = &[
    (
        "double.edn",
        "{:slug :double :invocations {:default {:inputs [{:name :n :type :number :required true}]}}
          :flow '(flow/step :write :twice {:value (* 2 (:n (flow/input)))})}",
    ),
    ("fails.edn", "(throw (ex-info \"no ink\" {:left 0}))"),
    ("named.edn", "{:slug :other-name :flow '[:named]}"),
    ("gate.edn", "[(:action (flow/step :hold :door {}))]"),
    (
        "hangs.edn",
        "(try (flow/step :hold :door {}) (finally (flow/step :write :tidied {})))",
    ),
    ("sleeps.edn", "(flow/step :pause :nap {:times 60000})"),
    ("self.edn", "(flow/call-flow :self {})"),
    (
        "below.edn",
        "[(flow/call-flow :double {:n 4}) (flow/call-flow :double {:n 5})]",
    ),
];

fn bench() -> Bench {
    let bench = Bench::over(STORE);
    for (name, text) in FLOWS {
        bench.file(&format!("flows/{name}"), text);
    }
    bench
}

fn check(text: &str, expected: expect_test::Expect) {
    let bench = bench();
    let engine = bench.engine();
    let run = bench.start(&engine, text);
    let found = outcome(&engine, &run);
    // Ids differ between executions of the tests.
    let rows = runs(&engine);
    let found = rows.iter().fold(found, |found, row| {
        found.replace(row.id.as_str(), &format!("<{}>", row.flow))
    });
    expected.assert_eq(&found);
}

/// Returns all runs, oldest first.
fn runs(engine: &Engine) -> Vec<RunRow> {
    let mut rows = block_on(engine.list_runs(RunFilter::default())).expect("runs");
    rows.reverse();
    rows
}

fn statuses(engine: &Engine) -> String {
    let rows = runs(engine);
    let words: Vec<String> = rows
        .iter()
        .map(|row| format!("{} {}", row.flow, row.status.name()))
        .collect();
    words.join(", ")
}

fn answer(engine: &Engine, wait: &str) {
    let answer = codec::decode("{:action :go}").expect("EDN");
    block_on(engine.complete_wait(wait, &answer, false)).expect("answered");
}

#[test]
fn the_output_of_a_child_is_the_value() {
    check("(flow/call-flow :double {:n 21})", expect!["42"]);
    check("(flow/call-flow \"double\" {:n \"21\"})", expect!["42"]);
    check("(flow/call-flow :other-name)", expect!["[:named]"]);
    check("(flow/call-flow :below)", expect!["[8 10]"]);
    check(
        "(mapv (fn [n] (flow/call-flow :double {:n n} {:id :each})) [1 2 3])",
        expect!["[2 4 6]"],
    );
    check(
        "(flow/step :call-flow :twice {:flow-slug :double :input {:n 1}})",
        expect!["2"],
    );
}

#[test]
fn an_error_of_a_child_is_the_error_of_its_step() {
    check(
        "(flow/call-flow :duoble {:n 1})",
        expect!["failed E0545 the project has no flow `duoble`"],
    );
    check(
        "(flow/call-flow :double {})",
        expect![
            "failed E0420 the flow `double` does not take this input: missing required run inputs: n"
        ],
    );
    check(
        "(flow/call-flow :double {:n 1} {:timeuot 1})",
        expect!["failed E0710 a `:call-flow` step has no option `:timeuot`"],
    );
    check(
        "(flow/call-flow :double {:n 1} {:input {}})",
        expect!["failed E0710 `:input` is not an option of `flow/call-flow`: it is an argument"],
    );
    check(
        "(flow/call-flow 7)",
        expect![
            "failed E0301 call-flow needs the name of a flow, a keyword or a string, got 7 (an integer) as argument 1"
        ],
    );
    check(
        "(flow/call-flow :fails)",
        expect!["failed E0548 the run <fails> of `fails` failed: no ink"],
    );
    check(
        "(try (flow/call-flow :fails {} {:id :printed}) (catch Exception e (dissoc (ex-data e) :run)))",
        expect![[
            r#"{:path "printed" :place "flows/fails.edn:1:1" :flow "fails" :attempts 1 :status :failed :kind :child-failed :code "E0548" :error {:message "no ink" :code "" :data {:left 0}} :step "printed" :message "the run <fails> of `fails` failed: no ink"}"#
        ]],
    );
    check(
        "(flow/call-flow :fails {} {:on-error :skip})",
        expect!["nil"],
    );
    check(
        "(flow/call-flow :double {:n 1} {:version \"77\"})",
        expect![[r#"failed E0545 no run was started with the program "77""#]],
    );
    check(
        "(flow/call-flow :double {:n 1} {:version 3})",
        expect!["failed E1401 the flow `double` has no version 3"],
    );
    check("(flow/call-flow :double {:n 1} {:version 0})", expect!["2"]);
    check(
        "(flow/call-flow :sleeps {} {:timeout \"1s\"})",
        expect![
            "failed E0548 the run <sleeps> of `sleeps` did not finish in time, and was cancelled"
        ],
    );
}

#[test]
fn recursion_of_flows_is_limited() {
    let bench = bench();
    let engine = bench.engine();
    let run = bench.start(&engine, "(flow/call-flow :self)");
    let found = outcome(&engine, &run);
    assert!(
        found.contains("flows call flows more than 16 deep"),
        "{found}"
    );
    let rows = runs(&engine);
    assert_eq!(rows.len(), 17);
    let last = rows[16].parent.clone().expect("a parent");
    assert_eq!((last.root, last.depth), (run, 16));
    assert!(rows.iter().all(|row| row.status == RunStatus::Failed));
}

#[test]
fn a_parent_waits_for_what_its_child_waits_for() {
    let bench = bench();
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "[(flow/call-flow :gate) (flow/call-flow :double {:n 1})]",
    );
    let executed = execute(&engine, &run);
    let found = outcome_text(&executed);
    assert!(found.ends_with(": `door` waits for an answer"), "{found}");
    let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
    let reported = match executed {
        Ok(RunOutcome::Waiting { waits, .. }) => waits,
        other => panic!("{other:?}"),
    };
    assert_eq!(reported, waits, "the parent says how to answer its child");
    assert_eq!(waits.len(), 1, "only what somebody can answer");
    assert_ne!(waits[0].run, run);
    answer(&engine, "door");
    // The child comes first in the list of runs to resume, then the parent.
    let first = block_on(engine.resumable()).expect("runs");
    assert_eq!(first.len(), 1);
    let family = block_on(engine.show_run(&run)).expect("a report").children;
    assert_eq!((family.len(), &family[0].id), (1, &first[0].id));
    assert_eq!(outcome(&engine, &first[0].id), "[:go]");
    let second = block_on(engine.resumable()).expect("runs");
    assert_eq!(second.len(), 1);
    assert_eq!(second[0].id, run);
    assert_eq!(outcome(&engine, &run), "[[:go] 2]");
    assert_eq!(
        statuses(&engine),
        "flow completed, gate completed, double completed"
    );
}

#[test]
fn resuming_a_parent_resumes_its_child() {
    let bench = bench();
    let engine = bench.engine();
    let run = bench.start(&engine, "(flow/call-flow :gate)");
    assert!(outcome(&engine, &run).starts_with("waiting"));
    answer(&engine, "door");
    drop(engine);
    assert_eq!(outcome(&bench.engine(), &run), "[:go]");
}

#[test]
fn children_are_left_to_the_caller_on_request() {
    let bench = bench();
    let engine = bench.engine();
    let run = bench.start(&engine, "(flow/call-flow :double {:n 1})");
    let options = ExecuteOptions {
        leave_children: true,
        ..ExecuteOptions::default()
    };
    let suspended = block_on(engine.execute(&run, Rc::new(NoObserver), options));
    let child = runs(&engine)[1].id.clone();
    assert_eq!(
        outcome_text(&suspended),
        format!("waiting: `double` waits for run {child}")
    );
    assert_eq!(block_on(engine.resumable()).expect("runs")[0].id, child);
    assert_eq!(outcome(&engine, &child), "2");
    assert_eq!(outcome(&engine, &run), "2");
}

#[test]
fn parent_and_child_survive_a_crash_at_any_commit() {
    let text = "[(flow/call-flow :below) (flow/step :write :after {:value 3})
                 (try (flow/call-flow :fails) (catch Exception e (:kind (ex-data e))))]";
    for silently in [false, true] {
        for left in 0.. {
            let bench = bench();
            let engine = bench.engine_over(stores(&bench, left, silently));
            let run = bench.start(&engine, text);
            let first = outcome(&engine, &run);
            drop(engine);
            let engine = bench.engine();
            let mut last = first.clone();
            while last != "[[8 10] 3 :child-failed]" {
                assert!(
                    last.contains("the process is dead") || last.contains("waits"),
                    "{last}"
                );
                // An effect in doubt is resolved.
                for wait in block_on(engine.list_waits(WaitFilter::default())).expect("waits") {
                    let again = Value::keyword("retry");
                    block_on(engine.complete_wait(&wait.id, &again, false)).expect("answered");
                }
                last = outcome(&engine, &run);
            }
            assert_eq!(
                statuses(&engine),
                "flow completed, below completed, double completed, double completed, fails failed",
                "left {left} silently {silently}"
            );
            if !first.contains("the process is dead") {
                break;
            }
        }
    }
}

#[test]
fn children_run_concurrently() {
    check(
        "(flow/all [(fn [] (flow/call-flow :double {:n 1})) (fn [] (flow/call-flow :below))])",
        expect!["[2 [8 10]]"],
    );
    let bench = bench();
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(flow/all [(fn [] (flow/call-flow :gate)) (fn [] (flow/call-flow :double {:n 3}))])",
    );
    let found = outcome(&engine, &run);
    assert!(found.contains("`door` waits for an answer"), "{found}");
    answer(&engine, "door");
    assert_eq!(outcome(&engine, &run), "[[:go] 6]");
}

#[test]
fn a_child_that_lost_a_race_is_cancelled() {
    for policy in [
        "",
        " {} {:parent-close-policy :abandon}",
        " {} {:parent-close-policy :terminate}",
    ] {
        let bench = bench();
        let engine = bench.engine();
        let text = format!(
            "[(flow/race {{:slow (fn [] (flow/call-flow :hangs{policy})) :fast (fn [] (flow/call-flow :double {{:n 3}}))}})
              (flow/step :write :after {{:value 1}})]"
        );
        let run = bench.start(&engine, &text);
        assert_eq!(outcome(&engine, &run), "[[:fast 6] 1]");
        let (status, tidied) = match policy.contains("abandon") {
            true => ("waiting", false),
            false if policy.contains("terminate") => ("terminated", false),
            false => ("cancelled", true),
        };
        let expected = format!("flow completed, hangs {status}, double completed");
        assert_eq!(statuses(&engine), expected);
        assert_eq!(bench.effects().contains("tidied=1"), tidied);
    }
}

#[test]
fn children_of_a_fanout_run_concurrently() {
    check(
        "(flow/step :fanout :pair {:items [{:type :call-flow :flow-slug :double :input {:n 1}}
                                           {:type :call-flow :flow-slug :double :input {:n 2}}]
                                   :transform '(fn [values] {:sum (apply + values) :values values})})",
        expect!["{:sum 6 :values [2 4]}"],
    );
}
