//! Passes, compensations and cancellations: the end of a run, undisturbed and with processes that end.

use std::rc::Rc;
use std::time::Duration;

use expect_test::expect;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::ports::{RunStatus, WaitFilter};
use flowstone_engine::{CancelOutcome, Engine, ExecuteOptions, StartOptions, Stay, codec};
use flowstone_lang::value::Value;

use super::STORE;
use crate::bench::{Bench, block_on, execute, outcome, outcome_text};
use crate::crash::stores;

fn check(text: &str, expected: expect_test::Expect, effects: expect_test::Expect) {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, text);
    expected.assert_eq(&outcome(&engine, &run));
    effects.assert_eq(&bench.effects());
}

/// Executes a run to its end through crashes at every commit, and compares it with an undisturbed run.
fn check_every_crash(text: &str) {
    let undisturbed = Bench::over(STORE);
    let engine = undisturbed.engine();
    let run = undisturbed.start(&engine, text);
    let expected = outcome(&engine, &run);
    let rows = steps(&engine, &run);
    for silently in [false, true] {
        for left in 0.. {
            let bench = Bench::over(STORE);
            let engine = bench.engine_over(stores(&bench, left, silently));
            let run = bench.start(&engine, text);
            let first = outcome(&engine, &run);
            drop(engine);
            let engine = bench.engine();
            let mut last = first.clone();
            while last.contains("the process is dead") || last.starts_with("waiting") {
                // An effect in doubt is resolved.
                for wait in block_on(engine.list_waits(WaitFilter::default())).expect("waits") {
                    let again = Value::keyword("retry");
                    block_on(engine.complete_wait(&wait.id, &again, false)).expect("answered");
                }
                last = outcome(&engine, &run);
            }
            assert_eq!(last, expected, "left {left} silently {silently}");
            assert_eq!(
                steps(&engine, &run),
                rows,
                "left {left} silently {silently}"
            );
            if !first.contains("the process is dead") {
                break;
            }
        }
    }
}

/// Returns the paths of a run's steps and their outcomes.
fn steps(engine: &Engine, run: &flowstone_engine::ids::RunId) -> Vec<String> {
    let report = block_on(engine.show_run(run)).expect("a report");
    let mut steps: Vec<String> = report
        .steps
        .iter()
        .map(|step| format!("{} {}", step.path, step.status.name()))
        .collect();
    steps.sort();
    steps
}

fn answer(engine: &Engine, wait: &str) {
    let answer = codec::decode("{:action :go}").expect("EDN");
    block_on(engine.complete_wait(wait, &answer, false)).expect("answered");
}

const TRIP: &str = "(let [flight (flow/compensate (flow/step :write :flight {:value {:id 1}})
                                (fn [flight] (flow/step :write :undo-flight {:value flight})))
      hotel (flow/compensate (flow/step :write :hotel {:value 2})
                             (fn [] (flow/step :write :undo-hotel {})))]
  (try (flow/step :write :car {:times 9}) (finally (flow/step :write :tidied {})))
  [flight hotel])";

#[test]
fn a_failed_run_is_compensated_in_reverse_order() {
    check(
        TRIP,
        expect![[r#"failed E0799 not now"#]],
        expect![
            "car=1 compensate/1/undo-flight=1 compensate/2/undo-hotel=1 flight=1 hotel=1 tidied=1"
        ],
    );
    check(
        "(flow/compensate (flow/step :write :a {:value 1}) (fn [] (flow/step :write :undo {})))",
        expect!["1"],
        expect!["a=1"],
    );
    check(
        "(do (flow/compensate (flow/step :write :a {:times 1}) (fn [] (flow/step :write :undo {}))) 2)",
        expect!["failed E0799 not now"],
        expect!["a=1"],
    );
    check(
        "(flow/compensate 1 2)",
        expect![
            "failed E0301 compensate needs a function, such as `(fn [] ...)`, got 2 (an integer) as argument 2"
        ],
        expect![""],
    );
    check(
        "(do (flow/all [(fn [] (flow/compensate (flow/step :write :a {}) (fn [] (flow/step :write :undo {}))))
                        (fn [] (flow/compensate (flow/step :write :b {}) (fn [] (flow/step :write :undo {}))))])
             (throw (ex-info \"late\" {})))",
        expect!["failed  late"],
        expect!["all.0/a=1 all.0/compensate/1/undo=1 all.1/b=1 all.1/compensate/1/undo=1"],
    );
    check(
        "(do (flow/compensate 1 (fn [] (flow/compensate 2 (fn [] 3))))
             (throw (ex-info \"late\" {})))",
        expect![
            "stuck: `compensate/1` failed: the run is being compensated: nothing more can be registered"
        ],
        expect![""],
    );
}

#[test]
fn compensations_survive_a_crash_at_any_commit() {
    check_every_crash(TRIP);
}

#[test]
fn a_failed_compensation_waits_for_a_person() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(do (flow/compensate (flow/step :write :a {}) (fn [] (flow/step :write :undo-a {})))
             (flow/compensate (flow/step :write :b {}) (fn [] (flow/step :write :before {}) (flow/step :write :undo-b {:times 2})))
             (throw (ex-info \"late\" {})))",
    );
    expect!["stuck: `compensate/2` failed: not now"].assert_eq(&outcome(&engine, &run));
    let row = block_on(engine.find_run(run.as_str())).expect("a run");
    assert_eq!(row.status, RunStatus::FailedCompensating);
    let report = block_on(engine.show_run(&run)).expect("a report");
    assert_eq!(report.compensations[0].message.as_deref(), Some("not now"));
    assert!(block_on(engine.resumable()).expect("runs").is_empty());
    drop(engine);
    let engine = bench.engine();
    expect!["stuck: `compensate/2` failed: not now"].assert_eq(&outcome(&engine, &run));
    expect!["failed  late"].assert_eq(&outcome(&engine, &run));
    // Effects before the step that failed are not repeated.
    expect!["a=1 b=1 compensate/1/undo-a=1 compensate/2/before=1 compensate/2/undo-b=3"]
        .assert_eq(&bench.effects());
    expect![[r#"
        a done
        b done
        compensate/1/undo-a done
        compensate/2/before done
        compensate/2/undo-b done
    "#]]
    .assert_eq(&(steps(&engine, &run).join("\n") + "\n"));
}

#[test]
fn a_run_with_a_failed_compensation_can_be_terminated() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(do (flow/compensate 1 (fn [] (throw (ex-info \"no\" {})))) (throw (ex-info \"late\" {})))",
    );
    expect!["stuck: `compensate/1` failed: no"].assert_eq(&outcome(&engine, &run));
    block_on(engine.terminate(&run, "enough", Rc::new(NoObserver))).expect("ended");
    expect!["terminated: enough"].assert_eq(&outcome(&engine, &run));
    let again = block_on(engine.terminate(&run, "enough", Rc::new(NoObserver)));
    assert_eq!(again.expect_err("over").code(), "E0505");
}

const UNWOUND: &str = "(do (flow/on-cancel (fn [] (flow/step :write :told {})))
    (flow/on-cancel (fn [] (throw (ex-info \"nobody\" {}))))
    (flow/compensate (flow/step :write :a {}) (fn [] (flow/step :hold :sure {}) (flow/step :write :undo-a {})))
    (try (flow/step :hold :door {}) (catch Exception e :seen) (finally (flow/step :write :tidied {}))))";

#[test]
fn a_cancelled_run_executes_its_finally_blocks() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, UNWOUND);
    assert!(outcome(&engine, &run).starts_with("waiting"));
    let cancelled = block_on(engine.cancel(&run, "enough", Rc::new(NoObserver)));
    assert_eq!(cancelled.expect("cancelled"), CancelOutcome::Unwinding);
    expect!["a=1 on-cancel/1/told=1 tidied=1"].assert_eq(&bench.effects());
    drop(engine);
    let engine = bench.engine();
    answer(&engine, "door");
    expect!["cancelled: enough"].assert_eq(&outcome(&engine, &run));
    expect!["a=1 compensate/1/undo-a=1 on-cancel/1/told=1 tidied=1"].assert_eq(&bench.effects());
    let over = block_on(engine.cancel(&run, "again", Rc::new(NoObserver)));
    assert_eq!(over.expect_err("over").code(), "E0505");
}

#[test]
fn a_cleanup_that_waits_survives_a_crash_at_any_commit() {
    let text = "(do (flow/on-cancel (fn [] (flow/step :write :told {}) (flow/step :pause :later {:times 6000})
                                     (flow/step :look :last {:times 1 :retry {:max-attempts 2 :initial-interval-ms 5000}})))
                    (flow/compensate (flow/step :write :a {})
                                     (fn [] (flow/step :hold :sure {}) (flow/step :write :undo-a {})))
                    (flow/step :pause :p {:times 60000}))";
    for silently in [false, true] {
        for left in 0.. {
            let bench = Bench::over(STORE);
            let run = bench.start(&bench.engine(), text);
            let mut executions = 0;
            let mut go_on = |engine: &Engine| {
                let options = ExecuteOptions {
                    stay: Stay::No,
                    ..ExecuteOptions::default()
                };
                executions += 1;
                let found = block_on(engine.execute(&run, Rc::new(NoObserver), options));
                outcome_text(&found)
            };
            assert!(go_on(&bench.engine()).starts_with("waiting"));
            block_on(bench.engine().request_cancel(&run, "enough")).expect("requested");
            let mut has_crashed = false;
            let mut engine = bench.engine_over(stores(&bench, left, silently));
            for _ in 0..8 {
                while !block_on(engine.resumable()).expect("runs").is_empty() {
                    if go_on(&engine).contains("the process is dead") {
                        has_crashed = true;
                        drop(engine);
                        engine = bench.engine();
                    }
                }
                bench.clock.advance(3_000);
                for wait in block_on(engine.list_waits(WaitFilter::default())).expect("waits") {
                    let answer = codec::decode("{:action :retry}").expect("EDN");
                    let in_doubt = Value::keyword("retry");
                    let answer = if wait.path.ends_with("sure") {
                        answer
                    } else {
                        in_doubt
                    };
                    block_on(engine.complete_wait(&wait.id, &answer, false)).expect("answered");
                }
            }
            let place = format!("left {left} silently {silently}: {executions} executions");
            let last = outcome(&bench.engine(), &run);
            assert_eq!(last, "cancelled: enough", "{place}");
            assert!(executions <= 9, "{place}");
            for step in ["told=", "last=", "undo-a="] {
                assert!(bench.effects().contains(step), "{place} {step}");
            }
            if !has_crashed {
                assert_eq!(executions, 5, "{place}");
                break;
            }
        }
    }
}

#[test]
fn force_terminates_a_run_at_once() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, UNWOUND);
    assert!(outcome(&engine, &run).starts_with("waiting"));
    block_on(engine.terminate(&run, "enough", Rc::new(NoObserver))).expect("ended");
    expect!["a=1"].assert_eq(&bench.effects());
    expect!["terminated: enough"].assert_eq(&outcome_text(&execute(&engine, &run)));
    assert!(
        block_on(engine.list_waits(WaitFilter::default()))
            .expect("waits")
            .is_empty()
    );
}

#[test]
fn a_run_that_is_executed_stops_when_it_is_ended() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, "(flow/step :look :slow {:hang true})");
    let found = block_on(async {
        let executing = engine.execute(&run, Rc::new(NoObserver), ExecuteOptions::default());
        let ending = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            engine
                .stores()
                .runs
                .terminate(&run, "enough", 0)
                .await
                .expect("ended");
            // The executor polls at intervals.
            bench.clock.advance(1_000);
        };
        tokio::join!(executing, ending).0
    });
    expect!["terminated: enough"].assert_eq(&outcome_text(&found));
}

#[test]
fn a_run_has_a_time_limit() {
    for (text, expected) in [
        (
            "(try (flow/step :pause :nap {:times 60000}) (finally (flow/step :write :tidied {})))",
            "tidied=1",
        ),
        (
            "(flow/all [(fn [] (flow/step :hold :door {})) (fn [] (flow/on-cancel (fn [] (flow/step :write :told {}))))])",
            "all.1/on-cancel/1/told=1",
        ),
    ] {
        let bench = Bench::over(STORE);
        let engine = bench.engine();
        let options = StartOptions {
            timeout: Some(Duration::from_secs(5)),
            ..StartOptions::with_input(Value::Nil)
        };
        let run = block_on(engine.start(&bench.flow(text), options)).expect("it starts");
        let options = ExecuteOptions {
            stay: Stay::No,
            ..ExecuteOptions::default()
        };
        let first = block_on(engine.execute(&run, Rc::new(NoObserver), options));
        assert!(
            outcome_text(&first).starts_with("waiting"),
            "{}",
            outcome_text(&first)
        );
        assert!(block_on(engine.resumable()).expect("runs").is_empty());
        bench.clock.advance(5_000);
        assert_eq!(block_on(engine.resumable()).expect("runs").len(), 1);
        let last = outcome(&engine, &run);
        assert_eq!(last, "timed-out: it took longer than it was given");
        assert_eq!(bench.effects(), expected);
        assert_eq!(outcome(&engine, &run), last);
    }
}

const LOOP: &str = "(let [n (:n (flow/input) 0)]
  (flow/compensate (flow/step :write :each {:value n}) (fn [] (flow/step :write :undo {})))
  (if (< n 3)
    (try (flow/continue-as-new {:n (inc n)}) (catch Exception e :seen) (finally (flow/step :write :finally {})))
    [n (flow/step :pure :last {:value n})]))";

#[test]
fn continue_as_new_starts_the_next_pass() {
    check(
        LOOP,
        expect!["[3 3]"],
        expect!["each=1 finally=1 each=1 finally=1 each=1 each=1 finally=1"],
    );
    check(
        "(flow/all [(fn [] (flow/continue-as-new {}))])",
        expect![
            "failed E0450 `flow/continue-as-new` ends a pass of the whole run: it cannot be called in a branch"
        ],
        expect![""],
    );
    check(
        "(flow/continue-as-new 7)",
        expect!["failed E0423 the next pass cannot begin: the input must be a map, not an integer"],
        expect![""],
    );
}

#[test]
fn passes_survive_a_crash_at_any_commit() {
    check_every_crash(LOOP);
}

#[test]
fn a_thousand_passes_leave_the_journal_of_one() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(let [n (:n (flow/input) 0)]
           (flow/step :pure :each {:value n})
           (if (< n 1000) (flow/continue-as-new {:n (inc n)}) n))",
    );
    assert_eq!(outcome(&engine, &run), "1000");
    let journal = block_on(engine.stores().journal.load(&run)).expect("a journal");
    assert_eq!(journal.len(), 1);
    let row = block_on(engine.find_run(run.as_str())).expect("a run");
    assert_eq!(row.pass, 1000);
}
