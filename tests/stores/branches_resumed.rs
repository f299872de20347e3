//! Branches of a run that is interrupted or cancelled, or whose process ends at any commit: the resumed run has the
//! same result.

use std::rc::Rc;

use expect_test::expect;
use flowstone_engine::ids::RunId;
use flowstone_engine::observer::NoObserver;
use flowstone_engine::ports::WaitFilter;
use flowstone_engine::{Engine, ExecuteOptions, Interrupt, codec};
use flowstone_lang::value::Value;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::STORE;
use crate::bench::{Bench, Trip, block_on, outcome, outcome_text};
use crate::crash;

/// A value that branches share is part of the digest of each step: a replay in another order would not match the
/// journal.
const FLOW: &str = "(let [seen (atom [])
      step (fn [id as n] (let [got (flow/step :gate id {:as as :value n :note @seen})]
                           (swap! seen conj [id n (flow/now-ms)])
                           got))]
  [(step :first :write 0)
   (flow/pmap {:max 2}
     (fn [n] (try (let [a (step :a :write n)
                        _ (step :b :put n)
                        _ (flow/step :pause :nap {:times (* 10 n)})
                        [x y] (flow/all [#(step :c :read n) #(step :d :write (inc n))])]
                    [a x y])
               (finally (step :over :put [:over n]))))
     (range 3))
   (first (flow/race {:quick #(step :quick :read 1)
                      :slow #(try (flow/step :look :never {:hang true})
                               (finally (step :gone :put :gone)))}))
   (count @seen)])";

/// Executes a run to its end; steps in doubt are performed again.
fn finish(engine: &Engine, run: &RunId) -> String {
    let mut last = outcome(engine, run);
    while last.starts_with("waiting") {
        let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
        assert!(!waits.is_empty(), "{last}");
        for wait in waits {
            assert!(wait.details.contains(":in-doubt"), "{}", wait.details);
            let retry = Value::keyword("retry");
            block_on(engine.complete_wait(&wait.id, &retry, false)).expect("answered");
        }
        last = outcome(engine, run);
    }
    last
}

/// Returns what the steps have stored, in any order.
fn stored(bench: &Bench) -> Vec<String> {
    let stores = bench.stores();
    let all = block_on(stores.kv.get("all", 0)).expect("readable");
    let all = all.map(|text| codec::decode(&text).expect("EDN"));
    let items = all.as_ref().and_then(Value::as_vector);
    let mut items: Vec<String> = items
        .into_iter()
        .flat_map(|items| items.iter())
        .map(|item| codec::encode(item).expect("data"))
        .collect();
    items.sort_unstable();
    items
}

#[test]
fn a_crash_at_any_commit_loses_nothing() {
    let (expected, rows) = {
        let bench = Bench::over(STORE);
        let engine = bench.engine();
        let run = bench.start(&engine, FLOW);
        (outcome(&engine, &run), stored(&bench))
    };
    expect!["[0 [[0 0 1] [1 1 2] [2 2 3]] :quick 18]"].assert_eq(&expected);
    for silently in [false, true] {
        for left in 0.. {
            let bench = Bench::over(STORE);
            let engine = bench.engine_over(crash::stores(&bench, left, silently));
            let run = bench.start(&engine, FLOW);
            let first = outcome(&engine, &run);
            drop(engine);
            if !first.contains("the process is dead") {
                assert_eq!(first, expected);
                break;
            }
            let engine = bench.engine();
            let last = finish(&engine, &run);
            assert_eq!(last, expected, "left {left} silently {silently}");
            assert_eq!(stored(&bench), rows, "left {left} silently {silently}");
        }
    }
}

#[test]
fn an_interrupted_run_resumes() {
    for at in [
        "first",
        "pmap.0/a",
        "pmap.1/b",
        "pmap.0/all.1/d",
        "pmap.2/over",
        "race.quick/quick",
    ] {
        let bench = Bench::over(STORE);
        let engine = bench.engine();
        let run = bench.start(&engine, FLOW);
        let interrupt = Interrupt::new();
        let trip = Rc::new(Trip {
            at: at.to_owned(),
            interrupt: interrupt.clone(),
        });
        let options = ExecuteOptions {
            interrupt,
            ..ExecuteOptions::default()
        };
        let first = outcome_text(&block_on(engine.execute(&run, trip, options)));
        drop(engine);
        let engine = bench.engine();
        // The effect outside is allowed to finish, so that nothing is in doubt.
        let last = outcome(&engine, &run);
        assert_eq!(
            last, "[0 [[0 0 1] [1 1 2] [2 2 3]] :quick 18]",
            "{at} {first}"
        );
        assert!(
            bench.effects().split(' ').all(|line| line.ends_with("=1")),
            "{at}: {}",
            bench.effects()
        );
    }
}

const CANCELLED: &str = "(let [seen (atom [])
      clean (fn [name] (fn [] (try (flow/step :hold :door {})
                                (finally (flow/step :put :clean {:value name})
                                         (swap! seen conj name)))))]
  (try
    (flow/all [(clean :a)
               #(try (flow/all [(clean :b) (clean :c)])
                  (finally (flow/step :put :clean {:value [:inner @seen]})))
               #(flow/step :gate :x {})
               #(flow/step :pause :nap {:times 1000000})])
    (finally (flow/step :put :clean {:value [:outer @seen]}))))";

#[test]
fn a_cancel_unwinds_the_branches_before_what_began_them() {
    let left = "[:a :b :c [:inner [:a :b :c]] [:outer [:a :b :c]]]";
    let cleaned = |bench: &Bench| {
        let stores = bench.stores();
        block_on(stores.kv.get("all", 0))
            .expect("readable")
            .unwrap_or_default()
    };
    for silently in [false, true] {
        for commits in 0.. {
            let bench = Bench::over(STORE);
            let engine = bench.engine();
            let run = bench.start(&engine, CANCELLED);
            let waiting = outcome(&engine, &run);
            assert!(waiting.starts_with("waiting"), "{waiting}");
            let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
            assert_eq!(waits.len(), 3);
            drop(engine);
            let engine = bench.engine_over(crash::stores(&bench, commits, silently));
            let first = block_on(engine.cancel(&run, "enough", Rc::new(NoObserver)));
            drop(engine);
            let is_over = first.is_ok();
            let engine = bench.engine();
            expect!["cancelled: enough"].assert_eq(&outcome(&engine, &run));
            assert_eq!(cleaned(&bench), left, "{commits} {silently}");
            let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
            assert!(waits.is_empty(), "{waits:?}");
            if is_over {
                break;
            }
        }
    }
}

#[test]
fn a_branch_that_lost_asks_no_question() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "[(flow/race {:answer #(flow/step :hold :door {}) :late #(flow/step :gate :x {:turns 50})})
          (flow/step :hold :other {})]",
    );
    expect!["waiting: `other` waits for an answer"].assert_eq(&outcome(&engine, &run));
    let waits = block_on(engine.list_waits(WaitFilter::default())).expect("waits");
    let paths: Vec<&str> = waits.iter().map(|wait| &*wait.path).collect();
    assert_eq!(paths, ["other"]);
}

#[test]
fn a_computing_branch_can_be_cancelled() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(flow/all [#(try (flow/step :hold :door {}) (finally (flow/step :put :clean {:value 1}))) #(loop [] (recur))])",
    );
    let stores = bench.stores();
    block_on(stores.runs.request_cancel(&run, "enough", 1)).expect("asked");
    expect!["cancelled: enough"].assert_eq(&outcome(&engine, &run));
}

/// A program: the parts of one branch, in sequence.
#[derive(Debug, Clone)]
enum Part {
    Step { effect: u8, turns: u8, fails: bool },
    Sleep,
    All(Vec<Vec<Part>>),
    Pmap { count: u8, max: u8, body: Vec<Part> },
    Race(Vec<Vec<Part>>),
}

fn part() -> impl Strategy<Value = Part> {
    let leaf = prop_oneof![
        6 => (0..4_u8, 0..5_u8, prop::bool::weighted(0.1))
            .prop_map(|(effect, turns, fails)| Part::Step { effect, turns, fails }),
        1 => Just(Part::Sleep),
    ];
    leaf.prop_recursive(3, 14, 3, |inner| {
        let body = prop::collection::vec(inner, 1..3);
        let bodies = prop::collection::vec(body.clone(), 1..4);
        prop_oneof![
            2 => bodies.clone().prop_map(Part::All),
            1 => (1..4_u8, 1..4_u8, body).prop_map(|(count, max, body)| Part::Pmap { count, max, body }),
            1 => bodies.prop_map(Part::Race),
        ]
    })
}

/// Returns the program of a part; its value does not depend on the order of steps, unless it races.
fn text(part: &Part) -> String {
    let bodies = |bodies: &[Vec<Part>]| {
        let thunks: Vec<String> = bodies
            .iter()
            .map(|body| format!("(fn [] {})", texts(body)))
            .collect();
        thunks.join(" ")
    };
    match part {
        Part::Step {
            effect,
            turns,
            fails,
        } => {
            let effect = [":read", ":write", ":put", ":pure"][usize::from(*effect)];
            let fails = if *fails {
                ":fails true :retry {:max-attempts 1}"
            } else {
                ""
            };
            format!(
                "(try (step {{:as {effect} :turns {turns} {fails}}}) (catch Exception e :failed))"
            )
        }
        Part::Sleep => "(flow/step :pause :nap {:times 10})".to_owned(),
        Part::All(inner) => format!("(flow/all [{}])", bodies(inner)),
        Part::Pmap { count, max, body } => {
            format!(
                "(flow/pmap {{:max {max}}} (fn [_] {}) (range {count}))",
                texts(body)
            )
        }
        Part::Race(inner) => format!("(race (fn [] (flow/race [{}])))", bodies(inner)),
    }
}

fn texts(parts: &[Part]) -> String {
    let parts: Vec<String> = parts.iter().map(text).collect();
    format!("[{}]", parts.join(" "))
}

fn has_race(parts: &[Part]) -> bool {
    parts.iter().any(|part| match part {
        Part::Step { .. } | Part::Sleep => false,
        Part::All(inner) => inner.iter().any(|body| has_race(body)),
        Part::Pmap { body, .. } => has_race(body),
        Part::Race(_) => true,
    })
}

#[test]
fn random_programs_resume_at_any_point() {
    let mut runner = TestRunner::new(Config {
        cases: 24,
        failure_persistence: None,
        ..Config::default()
    });
    let cases = (
        prop::collection::vec(part(), 1..4),
        prop::collection::vec((0..40_i64, any::<bool>()), 3),
    );
    let checked = runner.run(&cases, |(parts, deaths)| {
        let program = format!(
            "(let [seen (atom [])
                   step (fn [config]
                          (let [got (try (flow/step :gate :s (assoc config :value 1 :note @seen))
                                      (finally (swap! seen conj (count @seen))))]
                            (swap! seen conj (flow/rand))
                            (if (map? got) :put got)))
                   race (fn [f] (try (f) :raced (catch Exception e :raced)))]
               {})",
            texts(&parts)
        );
        let bench = Bench::over(STORE);
        let engine = bench.engine();
        let run = bench.start(&engine, &program);
        // An undisturbed run is replayed, too.
        let expected = outcome(&engine, &run);
        prop_assert!(expected.starts_with('['), "{expected}");
        let rows = stored(&bench);
        let bench = Bench::over(STORE);
        let run = bench.start(&bench.engine(), &program);
        for (left, silently) in deaths {
            let engine = bench.engine_over(crash::stores(&bench, left, silently));
            let now = outcome(&engine, &run);
            drop(engine);
            prop_assert!(
                now == expected || now.contains("is dead") || now.starts_with("waiting"),
                "{now}"
            );
            if now.starts_with("waiting") {
                break;
            }
        }
        prop_assert_eq!(finish(&bench.engine(), &run), expected);
        if !has_race(&parts) {
            prop_assert_eq!(stored(&bench), rows);
        }
        Ok(())
    });
    if let Err(error) = checked {
        panic!("{error}");
    }
}
