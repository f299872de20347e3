//! Nested steps: journaled individually, replayed from the journal, suspended, cancelled.

use std::rc::Rc;

use flowstone_engine::observer::NoObserver;
use flowstone_engine::ports::WaitFilter;
use flowstone_engine::{ExecuteOptions, Interrupt};
use flowstone_flow::flow::name_of;
use flowstone_flow::step::{
    Effect, Field, FieldType, LocalFuture, NestedRequest, Outcome, Step, StepContext, StepError,
    StepSpec,
};
use flowstone_lang::value::Value;

use crate::bench::{Bench, Recorder, Trip, block_on, execute, outcome, outcome_text};
use crate::crash::stores;

/// A step that performs `:rounds` in sequence, and the steps of a round concurrently. A round is a vector of maps, each
/// the config of a step with its `:type` and `:id`. The result has, for each round, the results of its steps.
pub struct Rounds;

static ROUNDS: StepSpec = StepSpec {
    operations: None,
    kind: "rounds",
    aliases: &[],
    doc: "A step of the tests.",
    fields: &[
        Field::required(
            "rounds",
            FieldType::Items,
            "The rounds of steps to perform.",
        ),
        Field::optional("limit", FieldType::Int, "Maximum number of steps at once."),
        Field::optional(
            "strict",
            FieldType::Bool,
            "Fails with the first error of a step.",
        ),
    ],
    examples: &[],
    effect: Effect::Steps,
};

impl Step for Rounds {
    fn spec(&self) -> &'static StepSpec {
        &ROUNDS
    }

    fn run<'a>(
        &'a self,
        cx: &'a StepContext,
        config: Value,
    ) -> LocalFuture<'a, Result<Outcome, StepError>> {
        Box::pin(async move {
            let limit = config.get("limit").and_then(Value::as_int).unwrap_or(8);
            let is_strict = config.get("strict").is_some();
            let mut gave = Vec::new();
            for round in items(config.get("rounds")) {
                let steps = items(Some(&round)).iter().map(nested_request).collect();
                let performed = cx.perform_all(steps, limit as usize).await;
                let mut row = Vec::new();
                for performed in performed {
                    match performed.result {
                        Ok(value) => row.push(value),
                        Err(error) if is_strict => return Err(error),
                        Err(error) => row.push(Value::from(error.message.as_str())),
                    }
                }
                gave.push(Value::vector(row));
            }
            Ok(Outcome::Value(Value::vector(gave)))
        })
    }
}

fn items(value: Option<&Value>) -> Vec<Value> {
    let items = value.and_then(Value::as_vector);
    items
        .map(|items| items.iter().cloned().collect())
        .unwrap_or_default()
}

fn nested_request(step: &Value) -> NestedRequest {
    let name = |key: &str| step.get(key).and_then(name_of).unwrap_or_default();
    let entries = step.as_map().expect("a map").iter();
    let config =
        entries.filter(|(key, _)| !["id", "type"].contains(&&*name_of(key).expect("a name")));
    let config = Value::map(config.map(|(key, value)| (key.clone(), value.clone())));
    NestedRequest::new(&name("type"), &*name("id"), config)
}

/// Nested steps that read, write, use the stores and fail, and one that has nested steps itself.
const FLOW: &str = "(let [a (flow/step :rounds :agent
            {:rounds [[{:type :look :id :turn :value 1}]
                      [{:type :write :id :x :value 2} {:type :put :id :y :value 3} {:type :look :id :z :value 4}]
                      [{:type :look :id :turn :value 5}]
                      [{:type :look :id :bad :times 9 :kind :denied}
                       {:type :rounds :id :sub :rounds [[{:type :look :id :turn :value 6}] [{:type :put :id :y :value 7}]]}]
                      [{:type :look :id :turn :value 8}]]})
      b (flow/step :put :after {:value (count a)})]
  [a (:value b)])";

#[test]
fn each_nested_step_is_a_step_of_the_run() {
    let bench = Bench::new();
    let engine = bench.engine();
    let run = bench.start(&engine, FLOW);
    let found = outcome(&engine, &run);
    assert!(found.starts_with("[[[1] [2 {"), "{found}");
    assert!(found.contains("[\"not now\" [[6] [{"), "{found}");
    assert_eq!(
        bench.effects(),
        "agent/bad=1 agent/sub/turn=1 agent/turn=1 agent/turn#2=1 agent/turn#3=1 agent/x=1 agent/z=1"
    );
    let report = block_on(engine.show_run(&run)).expect("a report");
    let paths: Vec<(&str, usize)> = report
        .steps
        .iter()
        .map(|step| (&*step.path, step.depth))
        .collect();
    assert_eq!(paths[0], ("agent", 0), "{paths:?}");
    assert!(paths.contains(&("agent/sub/turn", 2)), "{paths:?}");
    assert!(paths.contains(&("agent/turn#3", 1)), "{paths:?}");
}

#[test]
fn a_crash_at_any_commit_loses_nothing() {
    let expected = {
        let bench = Bench::new();
        let engine = bench.engine();
        let run = bench.start(&engine, FLOW);
        outcome(&engine, &run)
    };
    for silently in [false, true] {
        for left in 0.. {
            let bench = Bench::new();
            let engine = bench.engine_over(stores(&bench, left, silently));
            let run = bench.start(&engine, FLOW);
            let first = outcome(&engine, &run);
            drop(engine);
            if !first.contains("the process is dead") {
                assert_eq!(first, expected);
                break;
            }
            let before = bench.effects.borrow().clone();
            let engine = bench.engine();
            let mut last = outcome(&engine, &run);
            // A write that was in progress is in doubt, nested or not.
            while last.starts_with("waiting") {
                let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
                assert_eq!(waits[0].path, "agent/x?1");
                let retry = Value::keyword("retry");
                block_on(engine.complete_wait(&waits[0].id, &retry, false)).expect("answered");
                last = outcome(&engine, &run);
            }
            assert_eq!(last, expected, "left {left} silently {silently}");
            // Only steps that ran concurrently at the end may be done again.
            let twice = bench
                .effects
                .borrow()
                .values()
                .filter(|count| **count > 1)
                .count();
            assert!(
                twice <= 2,
                "left {left} silently {silently}: {}",
                bench.effects()
            );
            for (key, count) in before {
                let now = bench.effects.borrow()[&key];
                assert!(now - count <= 1, "{key}");
            }
        }
    }
}

#[test]
fn an_outer_step_is_suspended_with_its_nested_waits_and_resumes() {
    let bench = Bench::new();
    let engine = bench.engine();
    let flow = "(flow/step :rounds :agent {:rounds [[{:type :look :id :turn :value 1}]
        [{:type :hold :id :ask} {:type :look :id :beside :value 2}]
        [{:type :look :id :turn :value 3}]]})";
    let run = bench.start(&engine, flow);
    assert_eq!(outcome(&engine, &run), "waiting: `ask` waits for an answer");
    assert_eq!(bench.effects(), "agent/beside=1 agent/turn=1");
    // Another process resumes the run.
    drop(engine);
    let engine = bench.engine();
    let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
    assert_eq!(waits[0].path, "agent/ask");
    let answer = Value::map([(Value::keyword("action"), Value::keyword("approve"))]);
    block_on(engine.complete_wait(&waits[0].id, &answer, false)).expect("answered");
    assert_eq!(outcome(&engine, &run), "[[1] [{:action :approve} 2] [3]]");
    assert_eq!(
        bench.effects(),
        "agent/beside=1 agent/turn=1 agent/turn#2=1"
    );
}

#[test]
fn concurrent_nested_steps_have_their_own_waits() {
    let bench = Bench::new();
    let engine = bench.engine();
    let flow = "(flow/pmap {:id :all} (fn [n] (flow/step :rounds :agent {:rounds [[{:type :look :id :turn :value n}]
        [(if (= n 2) {:type :hold :id :ask} {:type :sleep :id :nap :millis 5000})]
        [{:type :look :id :turn :value (* n n)}]]})) [1 2 3])";
    let run = bench.start(&engine, flow);
    let found = outcome(&engine, &run);
    assert_eq!(found, "waiting: `ask` waits for an answer");
    let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
    assert_eq!(waits[0].path, "all.1/agent/ask");
    let answer = Value::map([(Value::keyword("action"), Value::keyword("go"))]);
    block_on(engine.complete_wait(&waits[0].id, &answer, false)).expect("answered");
    let found = outcome(&engine, &run);
    assert_eq!(
        found,
        "[[[1] [nil] [1]] [[2] [{:action :go}] [4]] [[3] [nil] [9]]]"
    );
    assert!(!bench.effects().contains("=2"), "{}", bench.effects());
}

#[test]
fn a_retry_of_the_outer_step_starts_over() {
    let bench = Bench::new();
    let engine = bench.engine();
    let flow = "(flow/step :rounds :agent {:strict true :retry {:max-attempts 3}
        :rounds [[{:type :look :id :turn :value 1}]
                 [{:type :look :id :flaky :times 1 :kind :unavailable :retry {:max-attempts 1}}]]})";
    let run = bench.start(&engine, flow);
    // The idempotency key of a nested step differs in a later attempt.
    assert_eq!(outcome(&engine, &run), "failed E0799 not now");
    assert_eq!(
        bench.effects(),
        "agent/flaky=1 agent/turn=1 agent~2/flaky=1 agent~2/turn=1 agent~3/flaky=1 agent~3/turn=1"
    );
}

#[test]
fn common_step_options_apply_to_the_outer_step() {
    let cases = [
        (":on-error :skip :strict true", "nil"),
        (":expect {:equals 1}", "failed"),
        (":timeout \"50ms\"", "failed E0520"),
    ];
    for (options, expected) in cases {
        let bench = Bench::new();
        let engine = bench.engine();
        let step = match options.contains("timeout") {
            true => "{:type :look :id :slow :hang true}",
            false => "{:type :look :id :bad :times 9 :kind :denied}",
        };
        let flow = format!("(flow/step :rounds :agent {{:rounds [[{step}]] {options}}})");
        let run = bench.start(&engine, &flow);
        let found = outcome(&engine, &run);
        assert!(found.starts_with(expected), "{options}: {found}");
    }
}

#[test]
fn nested_steps_end_at_once_on_interrupt_and_cancel() {
    let bench = Bench::new();
    let engine = bench.engine();
    let flow = "(flow/step :rounds :agent {:rounds [[{:type :look :id :turn :value 1}]
        [{:type :look :id :slow :hang true} {:type :look :id :beside :value 2}]]})";
    let run = bench.start(&engine, flow);
    let interrupt = Interrupt::default();
    let trip = Trip {
        at: "agent/beside".to_owned(),
        interrupt: interrupt.clone(),
    };
    let options = ExecuteOptions {
        interrupt,
        ..ExecuteOptions::default()
    };
    let found = block_on(engine.execute(&run, Rc::new(trip), options));
    assert_eq!(outcome_text(&found), "interrupted");
    assert_eq!(bench.effects(), "agent/beside=1 agent/turn=1");
    let cancel = block_on(async {
        let executing = engine.execute(&run, Rc::new(NoObserver), ExecuteOptions::default());
        let cancelling = async {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            engine
                .cancel(&run, "enough", Rc::new(NoObserver))
                .await
                .expect("cancelled");
            bench.clock.advance(1_000);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            found = executing => found,
            () = cancelling => unreachable!("it never ends"),
        }
    });
    assert_eq!(outcome_text(&cancel), "cancelled: enough");
    assert_eq!(bench.effects(), "agent/beside=1 agent/turn=1");
}

#[test]
fn nested_steps_of_a_finished_run_are_not_replayed() {
    let bench = Bench::new();
    let engine = bench.engine();
    let run = bench.start(&engine, FLOW);
    let recorder = Rc::new(Recorder::default());
    block_on(engine.execute(&run, recorder.clone(), ExecuteOptions::default())).expect("executed");
    let lines = recorder.0.borrow().clone();
    assert!(
        lines.iter().any(|line| line == "start agent/sub/turn"),
        "{lines:?}"
    );
    let ended = lines
        .iter()
        .position(|line| line.starts_with("done agent "));
    let inner = lines.iter().rposition(|line| line.contains("agent/"));
    assert!(ended > inner, "{lines:?}");
    block_on(engine.verify(&run)).expect("it replays");
    drop(execute(&engine, &run));
}

#[test]
fn nested_steps_outside_of_runs_are_refused() {
    let bench = Bench::new();
    let engine = bench.engine();
    let config = flowstone_engine::codec::decode("{:rounds [[{:type :look :id :a}]] :strict true}");
    let direct = flowstone_engine::Direct {
        kind: "rounds",
        config: config.expect("EDN"),
        folder: None,
    };
    let error = block_on(engine.perform(direct)).expect_err("refused");
    assert_eq!(error.code, "E0575");
}
