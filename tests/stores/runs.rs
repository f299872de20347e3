//! Runs over the stores: replay, retries, waits, cancellations, errors.

use std::rc::Rc;

use expect_test::expect;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::ports::{Change, Entry, EntryKind, RunFilter, RunStatus, WaitFilter};
use flowstone_engine::{
    Answered, CancelOutcome, ExecuteOptions, Interrupt, StartOptions, Stay, StepStatus, codec,
};
use flowstone_lang::value::Value;

use super::STORE;
use crate::bench::{Bench, Recorder, Trip, block_on, execute, outcome, outcome_text};

const FIVE: &str = "(let [a (flow/step :write :first {:value 1})
      b (flow/step :look :second {:value 2})
      c (flow/step :pure :third {:value (+ a b)})
      d (flow/step :put :fourth {:value c})
      e (mapv (fn [n] (flow/step :write :each {:value n})) [c 5])]
  {:sum (reduce + e) :count (count (:value d)) :now (flow/now-ms) :dice [(flow/rand) (rand-int 1000) (flow/uuid)]})";

#[test]
fn a_completed_run_keeps_its_outcome() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, FIVE);
    let first = outcome(&engine, &run);
    assert!(first.starts_with("{:sum 8 "), "{first}");
    assert_eq!(outcome(&engine, &run), first);
    assert_eq!(bench.effects(), "each=1 each#2=1 first=1 second=1");
    drop(engine);
    assert_eq!(outcome(&bench.engine(), &run), first);
}

#[test]
fn an_interrupted_run_resumes_without_repeating_a_step() {
    let undisturbed = {
        let bench = Bench::over(STORE);
        let engine = bench.engine();
        let run = bench.start(&engine, FIVE);
        outcome(&engine, &run)
    };
    for at in ["first", "second", "third", "fourth", "each", "each#2"] {
        let bench = Bench::over(STORE);
        let engine = bench.engine();
        let run = bench.start(&engine, FIVE);
        let interrupt = Interrupt::new();
        let trip = Rc::new(Trip {
            at: at.to_owned(),
            interrupt: interrupt.clone(),
        });
        let options = ExecuteOptions {
            interrupt,
            ..ExecuteOptions::default()
        };
        let first = block_on(engine.execute(&run, trip, options));
        drop(engine);
        let engine = bench.engine();
        let second = outcome(&engine, &run);
        assert_eq!(
            second.split(":now").next(),
            undisturbed.split(":now").next()
        );
        assert_eq!(
            bench.effects(),
            "each=1 each#2=1 first=1 second=1",
            "{at}: {}",
            outcome_text(&first)
        );
    }
}

#[test]
fn random_numbers_and_times_are_the_same_on_replay() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(let [before [(flow/now-ms) (flow/rand) (rand) (str (flow/uuid))]
               _ (flow/step :hold :door {})]
           {:before before :after (flow/rand)})",
    );
    expect!["waiting: `door` waits for an answer"].assert_eq(&outcome(&engine, &run));
    bench.clock.advance(5_000);
    let answer = codec::decode("{:action :approve}").expect("EDN");
    block_on(engine.complete_wait("door", &answer, false)).expect("answered");
    let first = outcome(&engine, &run);
    assert!(first.contains("[1000000 "), "{first}");
}

#[test]
fn a_failed_step_is_tried_again_by_its_policy() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "[(flow/step :look :read {:times 2 :value :ok})
          (flow/step :write :asked {:times 1 :value :ok :retry {:max-attempts 2 :backoff-ms 100 :jitter 0}})
          (try (flow/step :write :once {:times 1}) (catch Exception e [(ex-message e) (:kind (ex-data e)) (:step (ex-data e))]))
          (flow/step :write :skipped {:times 1 :on-error :skip})]",
    );
    expect![[r#"[:ok :ok ["not now" :unavailable "once"] nil]"#]]
        .assert_eq(&outcome(&engine, &run));
    expect!["asked=2 once=1 read=3 skipped=1"].assert_eq(&bench.effects());
}

#[test]
fn a_step_has_a_timeout() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(try (flow/step :look :slow {:hang true :timeout 0.02 :retry {:max-attempts 1}}) (catch Exception e (:kind (ex-data e))))",
    );
    expect![":timeout"].assert_eq(&outcome(&engine, &run));
}

#[test]
fn expectations_are_checked() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(letfn [(told [f] (try (f) (catch Exception e (ex-message e))))]
           [(told #(flow/step :pure :a {:value {:x 1} :expect {:contains [:x]}}))
            (told #(flow/step :pure :b {:value {:x 1} :expect {:contains [:y]}}))
            (told #(flow/step :pure :c {:value \"abc\" :expect {:matches #\"b.\"}}))
            (told #(flow/step :pure :d {:value {:n -1} :expect {:schema [:map [:n [:int {:min 0}]]]}}))
            (told #(flow/step :pure :e {:value 4 :expect {:fn '(fn [n] (odd? n))}}))])",
    );
    expect![[r#"[{:x 1} "the result is not what `:expect` says: should contain :y" "abc" "the result is not what `:expect` says: at [:n]: should be at least 0, but is -1 (an integer)" "the result is not what `:expect` says: should satisfy the function"]"#]]
        .assert_eq(&outcome(&engine, &run));
}

#[test]
fn configs_are_checked_when_they_are_computed() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    for (text, expected) in [
        (
            "(flow/step :wirte :a {})",
            "failed E0431 unknown step type `:wirte`",
        ),
        (
            "(flow/step :write :a (assoc {} (keyword \"valeu\") 1))",
            "failed E0710 a `:write` step has no option `:valeu`",
        ),
        (
            "(flow/step :write :a {:times (str 1)})",
            "failed E0712 `:times` of a `:write` step must be an integer, not \"1\" (a string)",
        ),
        (
            "(flow/step :write :a {:type :look})",
            "failed E0712 `:type` of a `:write` step must be `:write`, as the step type says, not :look",
        ),
        (
            "(flow/step :write :a {:retry {:max-atempts 1}})",
            "failed E0713 `:retry` has no option `:max-atempts`",
        ),
        (
            "(flow/step :write :a {:value inc})",
            "failed E0510 the result of the step cannot be stored: a function cannot be stored",
        ),
        (
            "inc",
            "failed E0510 the result of the flow cannot be stored: a function cannot be stored",
        ),
        ("(slurp \"x\")", "failed"),
    ] {
        let run = bench.start(&engine, text);
        let found = outcome(&engine, &run);
        assert!(found.starts_with(expected), "{text}: {found}");
    }
}

#[test]
fn a_wait_is_answered_once_and_checked() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, "(:action (flow/step :hold :door {}))");
    expect!["waiting: `door` waits for an answer"].assert_eq(&outcome(&engine, &run));
    let rows = block_on(engine.list_runs(RunFilter::default())).expect("runs");
    assert_eq!(rows[0].status, RunStatus::Waiting);
    let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
    assert_eq!((waits.len(), &*waits[0].key), (1, "door"));
    let refused = block_on(engine.complete_wait("door", &Value::map([]), false));
    expect!["the answer does not fit the wait: :action is missing"]
        .assert_eq(&refused.expect_err("refused").to_string());
    let answer = codec::decode("{:action :approve}").expect("EDN");
    let token = block_on(engine.stores().waits.token(&waits[0].id)).expect("readable");
    let token = token.expect("a token");
    let answered = block_on(engine.complete_wait(&token, &answer, false));
    assert_eq!(
        answered.expect("answered"),
        Answered::Runs(vec![run.clone()])
    );
    let again = block_on(engine.complete_wait("door", &answer, false));
    assert_eq!(again.expect_err("decided").code(), "E0515");
    let resumable = block_on(engine.resumable()).expect("runs");
    assert_eq!(resumable.len(), 1);
    expect![":approve"].assert_eq(&outcome(&engine, &run));
    let missing = block_on(engine.complete_wait("window", &answer, false));
    assert_eq!(missing.expect_err("none").code(), "E0514");
}

#[test]
fn an_answer_may_arrive_before_its_wait() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let answer = codec::decode("{:action :early}").expect("EDN");
    let kept = block_on(engine.complete_wait("door", &answer, true)).expect("kept");
    assert_eq!(kept, Answered::Kept);
    let run = bench.start(&engine, "[(:action (flow/step :hold :door {}))]");
    expect!["[:early]"].assert_eq(&outcome(&engine, &run));
}

#[test]
fn a_wait_times_out_by_its_policy() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let fails = bench.start(&engine, "(flow/step :hold :door {:times 1000})");
    let goes_on = bench.start(
        &engine,
        "(flow/step :hold :door {:times 1000 :value {:action :none}})",
    );
    assert!(outcome(&engine, &fails).starts_with("waiting"));
    assert!(outcome(&engine, &goes_on).starts_with("waiting"));
    assert!(block_on(engine.resumable()).expect("runs").is_empty());
    bench.clock.advance(1000);
    assert_eq!(block_on(engine.resumable()).expect("runs").len(), 2);
    expect!["failed E0523 nobody answered the wait `door` in time"]
        .assert_eq(&outcome(&engine, &fails));
    expect!["{:action :none}"].assert_eq(&outcome(&engine, &goes_on));
}

#[test]
fn sleeping_needs_no_process() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "[(flow/step :pause :nap {:times 60000}) (flow/now-ms)]",
    );
    let options = ExecuteOptions {
        stay: Stay::No,
        ..ExecuteOptions::default()
    };
    let first = block_on(engine.execute(&run, Rc::new(NoObserver), options));
    expect!["waiting: `nap` until 1970-01-01T00:17:40.000Z"].assert_eq(&outcome_text(&first));
    drop(engine);
    let engine = bench.engine();
    // The run stays in memory, and the simulated clock jumps.
    expect!["[:slept 1060000]"].assert_eq(&outcome(&engine, &run));
}

#[test]
fn a_checkpoint_asks_a_person_what_to_do() {
    for (answer, expected, count) in [
        (":retry", "[:ok]", 2),
        (":skip", "[nil]", 1),
        ("{:action :use :value 7}", "[7]", 1),
        (":abort", "failed E0799 not now", 1),
    ] {
        let bench = Bench::over(STORE);
        let engine = bench.engine();
        let run = bench.start(
            &engine,
            "[(flow/step :write :risky {:times 1 :value :ok :on-error :checkpoint})]",
        );
        assert!(outcome(&engine, &run).starts_with("waiting: `risky`"));
        let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
        assert_eq!(waits[0].path, "risky?1");
        drop(engine);
        let engine = bench.engine();
        let payload = codec::decode(answer).expect("EDN");
        block_on(engine.complete_wait(&waits[0].id, &payload, false)).expect("answered");
        assert_eq!(outcome(&engine, &run), expected, "{answer}");
        assert_eq!(bench.effects(), format!("risky={count}"), "{answer}");
    }
}

#[test]
fn a_cancelled_run_cleans_up() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(try (flow/step :hold :door {}) (catch Exception e :no) (finally (flow/step :write :cleanup {})))",
    );
    assert!(outcome(&engine, &run).starts_with("waiting"));
    let cancelled = block_on(engine.cancel(&run, "changed my mind", Rc::new(NoObserver)));
    assert_eq!(cancelled.expect("cancelled"), CancelOutcome::Cancelled);
    expect!["cancelled: changed my mind"].assert_eq(&outcome(&engine, &run));
    expect!["cleanup=1"].assert_eq(&bench.effects());
    assert!(
        block_on(engine.list_waits(WaitFilter::default()))
            .expect("waits")
            .is_empty()
    );
    let again = block_on(engine.cancel(&run, "again", Rc::new(NoObserver)));
    assert_eq!(again.expect_err("over").code(), "E0505");
}

#[test]
fn events_of_replayed_steps_are_not_reported_again() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(do (println \"one\") (flow/log :info \"two\") (flow/emit :three {:n 3})
             (flow/step :write :w {}) (flow/step :hold :door {}) (println \"four\") (flow/log \"warn\" \"five\"))",
    );
    let first = Rc::new(Recorder::default());
    let outcome = block_on(engine.execute(&run, first.clone(), ExecuteOptions::default()));
    assert!(outcome_text(&outcome).starts_with("waiting"));
    expect![[r#"started 0 | print one | log info two | emit three | start w | done w nil | start door | wait door"#]]
        .assert_eq(&first.0.borrow().join(" | "));
    let answer = codec::decode("{:action 1}").expect("EDN");
    block_on(engine.complete_wait("door", &answer, false)).expect("answered");
    let second = Rc::new(Recorder::default());
    let outcome = block_on(engine.execute(&run, second.clone(), ExecuteOptions::default()));
    assert_eq!(outcome_text(&outcome), "nil");
    expect![[r#"started 1 | done door {:action 1} | print four | log warn five"#]]
        .assert_eq(&second.0.borrow().join(" | "));
    let report = block_on(engine.show_run(&run)).expect("a run");
    assert_eq!(report.lines.len(), 3);
    let steps: Vec<String> = report
        .steps
        .iter()
        .map(|step| format!("{} {} {}", step.path, step.kind, step.status.name()))
        .collect();
    assert_eq!(steps, ["w write done", "door hold done"]);
}

#[test]
fn an_effect_in_doubt_is_asked_about() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, "[(flow/step :write :charge {:value :done})]");
    // A crash between the intent and the result: only the intent is journaled.
    let entry = Entry {
        kind: EntryKind::Intent,
        path: "charge".to_owned(),
        what: "write".to_owned(),
        digest: digest(":write {:value :done}"),
        request: Some("{:value :done}".to_owned()),
        payload: "{:attempt 1}".to_owned(),
        at_ms: 0,
    };
    append(&bench, &engine, &run, entry);
    assert!(outcome(&engine, &run).starts_with("waiting: `charge` waits"));
    let report = block_on(engine.show_run(&run)).expect("a run");
    assert_eq!(report.steps[0].status, StepStatus::Waiting);
    assert!(
        report.waits[0].details.contains(":in-doubt"),
        "{}",
        report.waits[0].details
    );
    block_on(engine.complete_wait(&report.waits[0].id, &Value::keyword("retry"), false))
        .expect("answered");
    expect!["[:done]"].assert_eq(&outcome(&engine, &run));
    expect!["charge=1"].assert_eq(&bench.effects());
}

fn digest(text: &str) -> String {
    codec::digest_bytes(text.trim_start_matches(':').as_bytes())[..32].to_owned()
}

fn append(
    _bench: &Bench,
    engine: &flowstone_engine::Engine,
    run: &flowstone_engine::ids::RunId,
    entry: Entry,
) {
    use flowstone_engine::ports::{Ack, Batch, Claim, ClaimBy, Durability};
    let stores = engine.stores();
    let Claim::Taken { epoch } =
        block_on(stores.runs.claim(run, ClaimBy::Search, 0)).expect("claimed")
    else {
        panic!("no other process executes it");
    };
    block_on(stores.journal.commit(Batch {
        run: run.clone(),
        epoch,
        durability: Durability::Full,
        ack: Ack::Durable,
        now_ms: 0,
        changes: vec![Change::Append(entry)],
    }))
    .expect("committed");
    block_on(stores.runs.release(run, epoch)).expect("released");
}

#[test]
fn a_run_is_executed_by_one_process() {
    let bench = Bench::over(STORE);
    let (one, other) = (bench.engine(), bench.engine());
    let run = bench.start(&one, "(flow/step :hold :door {})");
    let claim = block_on(one.stores().runs.claim(
        &run,
        flowstone_engine::ports::ClaimBy::Search,
        0,
    ))
    .expect("claimed");
    assert!(matches!(
        claim,
        flowstone_engine::ports::Claim::Taken { .. }
    ));
    let found = execute(&other, &run).expect_err("refused");
    assert_eq!(found.code(), "E0504");
    // The holder ends without giving the lease back, as in a crash.
    drop(one);
    assert!(outcome(&other, &run).starts_with("waiting"));
}

#[test]
fn the_same_external_id_is_the_same_run() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let flow = bench.flow("1");
    let options = || StartOptions {
        external_id: Some("order-7".to_owned()),
        ..StartOptions::with_input(Value::Nil)
    };
    let first = block_on(engine.start(&flow, options())).expect("a run");
    let second = block_on(engine.start(&flow, options())).expect("a run");
    assert_eq!(first, second);
    block_on(engine.start(&flow, StartOptions::with_input(Value::Nil))).expect("a run");
    let found = |external: &str| {
        let filter = RunFilter {
            external_id: Some(external.to_owned()),
            ..RunFilter::default()
        };
        let runs = block_on(engine.list_runs(filter)).expect("runs");
        runs.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(found("order-7"), std::slice::from_ref(&first));
    assert!(found("order-").is_empty());
    assert!(found(first.as_str()).is_empty());
}

#[test]
fn an_endless_loop_is_stopped_by_an_interrupt() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, "(loop [] (recur))");
    let interrupt = Interrupt::new();
    let options = ExecuteOptions {
        interrupt: interrupt.clone(),
        ..ExecuteOptions::default()
    };
    interrupt.trigger();
    let found = block_on(engine.execute(&run, Rc::new(NoObserver), options));
    assert_eq!(outcome_text(&found), "interrupted");
}

#[test]
fn polling_repeats_a_step_until_it_holds() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let polled = |opts: &str| {
        let run = bench.start(
            &engine,
            &format!(
                "(try (flow/poll {opts} (flow/step :pure :job {{:value {{:status 200 :at (flow/now-ms)}}}}))
                      (catch Exception e [(ex-message e) (:kind (ex-data e)) (:attempts (ex-data e))]))"
            ),
        );
        outcome(&engine, &run)
    };
    let start = i64::from(1_000_000);
    let later = format!(
        "{{:interval \"10s\" :timeout \"5m\" :return-on (fn [r] (<= {} (:at r)))}}",
        start + 25_000
    );
    expect!["{:status 200 :at 1030000}"].assert_eq(&polled(&later));
    expect![[r#"["polling ended without the wanted result" :timeout 3]"#]].assert_eq(&polled(
        "{:interval 100 :max-attempts 3 :return-on (fn [r] false)}",
    ));
    expect![[r#"["polling was aborted by status 200" :aborted 1]"#]].assert_eq(&polled(
        "{:interval 100 :max-attempts 3 :return-on (fn [r] false) :abort-on {:status #{200}}}",
    ));
    expect![[r#"["flow/poll has no option :intervall" :bad-config nil]"#]].assert_eq(&polled(
        "{:intervall 100 :max-attempts 3 :return-on (fn [r] false)}",
    ));
}

#[test]
fn examples_of_the_natives_are_correct() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    for native in flowstone_flow::natives::FNS {
        for (text, expected) in native.examples {
            let run = bench.start(&engine, text);
            assert_eq!(outcome(&engine, &run), *expected, "{text}");
        }
    }
}

#[test]
fn many_runs_are_executed_concurrently() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let runs: Vec<_> = (0..20)
        .map(|n| bench.start(&engine, &format!("(reduce + (for [i (range 10)] (:value (flow/step :look :a {{:value {{:value (* i {n})}}}}))))")))
        .collect();
    let outcomes = block_on(async {
        let executions = runs
            .iter()
            .map(|run| engine.execute(run, Rc::new(NoObserver), ExecuteOptions::default()));
        let mut executions: Vec<_> = executions.map(Box::pin).collect();
        let mut outcomes = Vec::new();
        // Polls each in turn until all are over: they yield at every await.
        std::future::poll_fn(|cx| {
            executions.retain_mut(|execute| match execute.as_mut().poll(cx) {
                std::task::Poll::Ready(outcome) => {
                    outcomes.push(outcome_text(&outcome));
                    false
                }
                std::task::Poll::Pending => true,
            });
            match executions.is_empty() {
                true => std::task::Poll::Ready(()),
                false => std::task::Poll::Pending,
            }
        })
        .await;
        outcomes.sort_by_key(|outcome| outcome.parse::<i64>().ok());
        outcomes
    });
    let expected: Vec<String> = (0..20).map(|n| (45 * n).to_string()).collect();
    assert_eq!(outcomes, expected);
}
