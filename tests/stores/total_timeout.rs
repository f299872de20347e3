//! `:total-timeout` bounds all attempts of a step, and leaves out the time in which people are asked.

use std::rc::Rc;

use flowstone_engine::ids::RunId;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::ports::{FeedItem, RunFilter, WaitFilter};
use flowstone_engine::{ExecuteOptions, Stay, codec};

use super::STORE;
use crate::bench::{Bench, block_on, outcome, outcome_text};

/// An answer to the wait of `:hold`.
const GO: &str = "{:action :go}";
const HOUR_MS: i64 = 3_600_000;
const LATE: &str = "failed E0531 the step did not finish within its total timeout of ";

fn bench() -> Bench {
    let bench = Bench::over(STORE);
    for (name, text) in [
        ("asks.edn", "(do (flow/step :hold :door {}) :told)"),
        (
            "slow.edn",
            "(do (flow/step :hold :door {}) (flow/step :pause :nap {:times 20000}) :told)",
        ),
        ("naps.edn", "(flow/step :pause :nap {:times 20000})"),
        ("above.edn", "(flow/call-flow :asks {})"),
    ] {
        bench.file(&format!("flows/{name}"), text);
    }
    bench
}

/// Answers the open wait, and executes its run and the run above it, each by a new process.
fn answer(bench: &Bench, run: &RunId, text: &str) -> String {
    let engine = bench.engine();
    let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
    let payload = codec::decode(text).expect("EDN");
    block_on(engine.complete_wait(&waits[0].id, &payload, false)).expect("answered");
    drop(engine);
    outcome(&bench.engine(), run)
}

fn run(bench: &Bench, text: &str) -> (RunId, String) {
    let engine = bench.engine();
    let run = bench.start(&engine, text);
    let end = outcome(&engine, &run);
    (run, end)
}

#[test]
fn no_attempt_begins_after_the_limit() {
    for (limit, effects, lasted_ms) in
        [("\"2500ms\"", "a=3", 2_000), ("{:limit 3.5}", "a=4", 3_000)]
    {
        let bench = bench();
        let begun = bench.clock_ms();
        let retry = ":retry {:max-attempts 9 :backoff-ms 1000 :coefficient 1 :jitter 0}";
        let text = format!("(flow/step :look :a {{:times 20 {retry} :total-timeout {limit}}})");
        let (_, end) = run(&bench, &text);
        // The error is that of the last attempt, which says more than that the time is over.
        assert!(
            end.starts_with("failed ") && !end.contains("E0531"),
            "{end}"
        );
        assert_eq!(bench.clock_ms() - begun, lasted_ms, "{limit}");
        assert_eq!(bench.effects(), effects, "{limit}");
    }
}

#[test]
fn the_attempt_in_progress_is_stopped_and_not_repeated() {
    let bench = bench();
    let retry = ":retry {:max-attempts 3 :backoff-ms 1 :retry-on [:timeout]}";
    let text =
        format!("(flow/step :look :a {{:hang true :timeout 9 {retry} :total-timeout 0.05}})");
    let (_, end) = run(&bench, &text);
    assert_eq!(end, format!("{LATE}0.05 s"));
    // The shorter of both limits applies, and the attempts share the other one.
    let text =
        format!("(flow/step :look :a {{:hang true :timeout 0.01 {retry} :total-timeout 60}})");
    let (_, end) = run(&bench, &text);
    assert_eq!(
        end,
        "failed E0520 the step did not finish within its timeout of 0.01 s"
    );
}

#[test]
fn steps_with_the_same_start_share_the_limit() {
    let text = |naps: i64| {
        format!(
            "(let [within {{:limit 10 :from (flow/now-ms)}}]
               (flow/step :pause :nap {{:times {naps} :total-timeout within}})
               (flow/step :pure :a {{:value 1 :total-timeout within}}))"
        )
    };
    assert_eq!(run(&bench(), &text(9_000)).1, "1");
    let (_, end) = run(&bench(), &text(11_000));
    assert_eq!(end, format!("{LATE}10 s since the time in `:from`"));
    let slept = "(let [within {:limit 10 :from (flow/now-ms)}]
                   (flow/step :pause :nap {:times 11000})
                   (flow/step :pure :a {:value 1 :total-timeout within}))";
    let (_, end) = run(&bench(), slept);
    assert_eq!(end, format!("{LATE}10 s since the time in `:from`"));
}

#[test]
fn the_time_of_questions_does_not_count() {
    let bench = bench();
    let text = "(let [within {:limit 10 :from (flow/now-ms)}]
                  (flow/step :hold :door {})
                  [(flow/step :write :pay {:value :paid :confirm true :total-timeout within})])";
    let (id, end) = run(&bench, text);
    assert!(end.starts_with("waiting"), "{end}");
    bench.clock.advance(HOUR_MS);
    let end = answer(&bench, &id, GO);
    assert!(end.starts_with("waiting"), "{end}");
    bench.clock.advance(HOUR_MS);
    assert_eq!(answer(&bench, &id, ":approve"), "[:paid]");
}

#[test]
fn a_called_run_may_wait_for_people_longer_than_the_limit() {
    for flow in ["asks", "above"] {
        let bench = bench();
        let text = format!("(flow/call-flow :{flow} {{}} {{:total-timeout 10}})");
        let (id, end) = run(&bench, &text);
        assert!(end.starts_with("waiting"), "{end}");
        bench.clock.advance(5_000);
        for _ in 0..3 {
            bench.clock.advance(HOUR_MS);
            // A process that looks at it meanwhile changes nothing.
            let end = outcome(&bench.engine(), &id);
            assert!(end.starts_with("waiting"), "{flow}: {end}");
        }
        assert_eq!(answer(&bench, &id, GO), ":told", "{flow}");
    }
}

/// Executes a run as a worker does, which leaves called runs to others.
fn execute_alone(bench: &Bench, run: &RunId) -> String {
    let options = ExecuteOptions {
        stay: Stay::No,
        leave_children: true,
        ..ExecuteOptions::default()
    };
    let ended = block_on(bench.engine().execute(run, Rc::new(NoObserver), options));
    outcome_text(&ended)
}

#[test]
fn a_called_run_that_takes_too_long_is_cancelled() {
    let late = format!("{LATE}10 s");
    let bench = bench();
    let id = bench.start(
        &bench.engine(),
        "(flow/call-flow :naps {} {:total-timeout 10})",
    );
    assert!(execute_alone(&bench, &id).starts_with("waiting"));
    let due = block_on(bench.engine().run(&id)).expect("the run").due_ms;
    assert_eq!(due, Some(bench.clock_ms() + 10_000));
    bench.clock.advance(9_000);
    assert!(execute_alone(&bench, &id).starts_with("waiting"));
    bench.clock.advance(1_000);
    assert_eq!(execute_alone(&bench, &id), late);
    let rows = block_on(bench.engine().list_runs(RunFilter::default())).expect("runs");
    let called = rows.iter().find(|row| row.parent.is_some()).expect("a run");
    assert!(called.cancel_requested.is_some(), "{called:?}");
}

#[test]
fn the_result_of_a_called_run_that_comes_too_late_is_not_used() {
    let late = format!("{LATE}10 s");
    let bench = bench();
    let (_, end) = run(&bench, "(flow/call-flow :naps {} {:total-timeout 10})");
    assert_eq!(end, late);
    // Only the time after the answer counts.
    let (id, end) = run(&bench, "(flow/call-flow :slow {} {:total-timeout 10})");
    assert!(end.starts_with("waiting"), "{end}");
    bench.clock.advance(HOUR_MS);
    assert_eq!(answer(&bench, &id, GO), late);
    let (id, end) = run(&bench, "(flow/call-flow :slow {} {:total-timeout 30})");
    assert!(end.starts_with("waiting"), "{end}");
    bench.clock.advance(HOUR_MS);
    assert_eq!(answer(&bench, &id, GO), ":told");
}

/// A client that follows the caller sees that a person has to answer, and the caller checks its limit again.
#[test]
fn waits_of_called_runs_are_events_of_the_runs_above() {
    let bench = bench();
    let (id, _) = run(&bench, "(flow/call-flow :above {} {:total-timeout 10})");
    let due = || block_on(bench.engine().run(&id)).expect("the run").due_ms;
    bench.clock.advance(20_000);
    outcome(&bench.engine(), &id);
    assert!(due().is_some_and(|due| due > bench.clock_ms() + 60_000));
    let engine = bench.engine();
    let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
    let wait = waits[0].clone();
    block_on(engine.complete_wait(&wait.id, &codec::decode(GO).expect("EDN"), false))
        .expect("answered");
    assert_eq!(due(), Some(bench.clock_ms()));
    let page = block_on(engine.stores().feed.read(&id, 0, 500)).expect("a feed");
    let events = page
        .expect("a run")
        .rows
        .into_iter()
        .filter_map(|row| match row.item {
            FeedItem::Event(event) => codec::decode(&event.data)
                .ok()
                .filter(|data| data.get("child").is_some())
                .map(|data| (event.kind.name(), data)),
            FeedItem::Entry(_) => None,
        });
    let events: Vec<_> = events.collect();
    let names: Vec<&str> = events.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["wait.opened", "wait.answered"]);
    for (_, data) in &events {
        let text = |key: &str| data.get(key).and_then(|it| it.as_str().map(str::to_owned));
        assert_eq!(text("wait"), Some(wait.id.clone()));
        assert_eq!(text("child"), Some(wait.run.to_string()));
    }
}

#[test]
fn a_wrong_limit_is_refused() {
    for (given, message) in [
        ("\"soon\"", "E0712"),
        ("{:limit 5 :since 1}", "E0800"),
        (
            "(assoc {} :from 1)",
            "failed E0800 `:limit` of `:total-timeout` must be a time",
        ),
    ] {
        let text = format!("(flow/step :pure :a (assoc {{}} :value 1 :total-timeout {given}))");
        let (_, end) = run(&bench(), &text);
        assert!(end.contains(message), "{given}: {end}");
    }
}
