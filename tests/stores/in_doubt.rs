//! Steps that were in progress when the process ended: how they are resolved, and where they are shown.

use std::rc::Rc;

use flowstone_engine::ids::RunId;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::ports::{RunQuery, WaitFilter};
use flowstone_engine::{Engine, ExecuteOptions, StepStatus, codec};

use super::STORE;
use crate::bench::{Bench, block_on, outcome, outcome_text};
use crate::crash;

/// Starts a run and ends its process: before the effect of its first step, or right after it.
fn in_doubt(flow: &str, done: bool) -> (Bench, RunId) {
    let bench = Bench::over(STORE);
    // The first commit contains the intent; the next one would contain the result.
    let engine = bench.engine_over(crash::stores(&bench, i64::from(done), !done));
    let run = bench.start(&engine, flow);
    let end = block_on(engine.execute(&run, Rc::new(NoObserver), ExecuteOptions::default()));
    assert!(
        outcome_text(&end).contains("the process is dead"),
        "{}",
        outcome_text(&end)
    );
    let effects = if done { "pay=1" } else { "" };
    assert_eq!(bench.effects(), effects, "{flow}");
    (bench, run)
}

fn answer_first(engine: &Engine, text: &str) {
    let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
    let payload = codec::decode(text).expect("EDN");
    block_on(engine.complete_wait(&waits[0].id, &payload, false)).expect("answered");
}

const ASKED: &str = "waiting: `pay` waits for an answer";
const DOUBT: &str = "failed E0522 the process ended while the `:write` step was under way, so that it may or may not have been done";

/// The policy of the flow; the outcome if the effect had happened, and if it had not; the effects.
const RESOLVED: &[(&str, &str, &str, [&str; 2])] = &[
    ("", ASKED, ASKED, ["pay=1", ""]),
    (":on-doubt :ask", ASKED, ASKED, ["pay=1", ""]),
    (":on-doubt :retry", ":paid", ":paid", ["pay=2", "pay=1"]),
    (
        ":idempotency-key \"x/pay\"",
        ":paid",
        ":paid",
        ["pay=2", "pay=1"],
    ),
    (":on-doubt :fail", DOUBT, DOUBT, ["pay=1", ""]),
    (
        ":on-doubt :fail :on-error :skip",
        "nil",
        "nil",
        ["pay=1", ""],
    ),
    (
        ":on-doubt {:probe {:type :seen :value :found}}",
        ":found",
        ":paid",
        ["pay=1", "pay=1"],
    ),
    (
        ":on-doubt {:probe {:type :seen :value 7} :done '(fn [v] {:done? (= v 7) :value {:seen v}})}",
        "{:seen 7}",
        ":paid",
        ["pay=1", "pay=1"],
    ),
    (
        ":on-doubt {:probe '(fn [doubt] {:type :seen :value (:path doubt)})}",
        "\"pay\"",
        ":paid",
        ["pay=1", "pay=1"],
    ),
    (
        ":on-doubt {:probe '(fn [doubt] {:done? true :value (:attempts doubt)})}",
        "1",
        "1",
        ["pay=1", ""],
    ),
    (
        ":on-doubt {:probe '(fn [doubt] nil)}",
        ":paid",
        ":paid",
        ["pay=2", "pay=1"],
    ),
    (
        ":on-doubt {:probe {:type :seen :times 1 :kind :not-found}}",
        ":paid",
        ":paid",
        ["pay=2", "pay=1"],
    ),
    (
        ":on-doubt {:probe {:type :seen :times 1}}",
        ASKED,
        ASKED,
        ["pay=1", ""],
    ),
    (
        ":on-doubt {:probe {:type :seen :times 1} :else :retry}",
        ":paid",
        ":paid",
        ["pay=2", "pay=1"],
    ),
    (
        ":on-doubt {:probe {:type :write} :else :fail}",
        DOUBT,
        DOUBT,
        ["pay=1", ""],
    ),
    (
        ":on-doubt {:probe {:type :sen} :else :fail}",
        DOUBT,
        DOUBT,
        ["pay=1", ""],
    ),
    (
        ":on-doubt {:probe {:type :seen :value 1 :confirm true} :else :fail}",
        DOUBT,
        DOUBT,
        ["pay=1", ""],
    ),
    (
        ":expect {:equals :paid} :on-doubt {:probe {:type :seen :value :other}}",
        "failed E0521",
        ":paid",
        ["pay=1", "pay=1"],
    ),
    (
        ":review true :on-doubt {:probe {:type :seen :value 1}}",
        ASKED,
        ASKED,
        ["pay=1", "pay=1"],
    ),
];

#[test]
fn a_step_in_doubt_follows_its_policy() {
    for &(option, done, not_done, effects) in RESOLVED {
        for (was_done, end) in [(true, done), (false, not_done)] {
            let flow = format!("(flow/step :write :pay {{:value :paid {option}}})");
            let (bench, run) = in_doubt(&flow, was_done);
            let found = outcome(&bench.engine(), &run);
            assert!(found.starts_with(end), "{option} done {was_done}: {found}");
            // A step with its own idempotency key is counted under that key.
            assert_eq!(
                bench.effects(),
                effects[usize::from(!was_done)],
                "{option} done {was_done}"
            );
        }
    }
}

#[test]
fn a_person_resolves_a_step_in_doubt() {
    for (text, end, effects) in [
        (":retry", ":paid", "pay=2"),
        (":skip", "nil", "pay=1"),
        ("{:action :use :value :receipt}", ":receipt", "pay=1"),
        (":abort", DOUBT, "pay=1"),
    ] {
        let (bench, run) = in_doubt("(flow/step :write :pay {:value :paid})", true);
        assert_eq!(outcome(&bench.engine(), &run), ASKED);
        answer_first(&bench.engine(), text);
        assert_eq!(outcome(&bench.engine(), &run), end, "{text}");
        assert_eq!(bench.effects(), effects, "{text}");
    }
}

#[test]
fn a_step_in_doubt_is_shown_to_the_person_asked() {
    let (bench, run) = in_doubt("(flow/step :write :pay {:value :paid})", true);
    let engine = bench.engine();
    let seen = || {
        let report = block_on(engine.show_run(&run)).expect("a run");
        let listed = block_on(engine.summaries(RunQuery::default())).expect("runs");
        let marked = block_on(engine.in_doubt(&listed)).expect("runs");
        let step = &report.steps[0];
        (step.status, step.in_doubt, marked.contains(&run))
    };
    assert_eq!(seen(), (StepStatus::InDoubt, true, true));
    assert_eq!(outcome(&engine, &run), ASKED);
    assert_eq!(seen(), (StepStatus::Waiting, true, true));
    answer_first(&engine, ":retry");
    outcome(&engine, &run);
    assert_eq!(seen(), (StepStatus::Done, false, false));
}

/// A process that ends during a probe, or right after it, repeats the probe or knows its result: nothing is done twice.
#[test]
fn a_probe_survives_a_crash_at_any_commit() {
    const FLOW: &str =
        "(flow/step :write :pay {:value :paid :on-doubt {:probe {:type :seen :value :found}}})";
    for silently in [false, true] {
        for left in 0..6 {
            let (bench, run) = in_doubt(FLOW, true);
            let engine = bench.engine_over(crash::stores(&bench, left, silently));
            let first = outcome(&engine, &run);
            drop(engine);
            let end = outcome(&bench.engine(), &run);
            assert_eq!(end, ":found", "left {left} silently {silently}: {first}");
            assert_eq!(bench.effects(), "pay=1", "left {left} silently {silently}");
        }
    }
}
