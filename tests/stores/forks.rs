//! Random numbers and times in a fork: values drawn before the fork stay, later ones are new, and a replay draws them
//! again.

use flowstone_engine::ids::RunId;
use flowstone_engine::{Engine, ForkOptions, StartOptions, codec};
use flowstone_lang::value::Value;

use super::STORE;
use crate::bench::{Bench, block_on, outcome};

/// Draws random numbers and the time between three steps.
const FLOW: &str = "(let [one (random-uuid)
      a (flow/step :write :a {:value 1})
      two [(random-uuid) (rand) (flow/now-ms)]
      b (flow/step :write :b {:value 2})
      three [(random-uuid) (rand)]
      c (flow/step :write :c {:value 3})]
  [(str one) (str two) (str three) (str [(random-uuid) (rand)])])";

/// Compares the parts of a result with those of another: `=` or `*`.
fn compared(one: &str, other: &str) -> String {
    let items = |text: &str| codec::decode(text).expect("EDN").as_vector().cloned();
    let (one, other) = (
        items(one).expect("a vector"),
        items(other).expect("a vector"),
    );
    let pairs = one.iter().zip(other.iter());
    pairs
        .map(|(one, other)| if one == other { '=' } else { '*' })
        .collect()
}

fn fork(engine: &Engine, run: &RunId, at: Option<&str>) -> (RunId, String) {
    let options = ForkOptions {
        at: at.map(str::to_owned),
        ..ForkOptions::default()
    };
    let fork = block_on(engine.fork(run, options)).expect("it is forked");
    // Replayed from its start, too.
    let end = outcome(engine, &fork);
    (fork, end)
}

fn start(bench: &Bench, engine: &Engine, text: &str) -> RunId {
    let flow = bench.flow(text);
    block_on(engine.start(&flow, StartOptions::with_input(Value::Nil))).expect("it starts")
}

#[test]
fn a_fork_keeps_earlier_random_values_and_draws_new_ones() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = start(&bench, &engine, FLOW);
    let first = outcome(&engine, &run);
    let cases = [
        (None, "****"),
        (Some("a"), "=***"),
        (Some("b"), "==**"),
        (Some("c"), "===*"),
    ];
    for (at, expected) in cases {
        bench.clock.advance(1_000);
        let (one, end) = fork(&engine, &run, at);
        assert_eq!(compared(&first, &end), expected, "{at:?}: {first} {end}");
        let (_, other) = fork(&engine, &run, at);
        assert_eq!(compared(&end, &other), expected, "two forks at {at:?}");
        // A fork of a fork keeps what both have drawn.
        for (later, expected) in cases {
            let (_, again) = fork(&engine, &one, later);
            assert_eq!(compared(&end, &again), expected, "{at:?}, then {later:?}");
        }
    }
}

#[test]
fn an_interrupted_fork_draws_the_same_when_it_is_replayed() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = "(let [one (random-uuid)
      a (flow/step :write :a {:value 1})
      b (flow/step :write :b {:value 2})
      two (random-uuid)
      c (flow/step :hold :gate {})]
  (flow/step :write :c {:value (str two)})
  [(str one) (str two)])";
    let run = start(&bench, &engine, text);
    assert!(outcome(&engine, &run).starts_with("waiting"));
    let options = ForkOptions {
        at: Some("b".to_owned()),
        ..ForkOptions::default()
    };
    let fork = block_on(engine.fork(&run, options)).expect("it is forked");
    assert!(outcome(&engine, &fork).starts_with("waiting"));
    drop(engine);
    let engine = bench.engine();
    let answer = codec::decode("{:action :go}").expect("EDN");
    for (id, name) in [(&run, "run"), (&fork, "fork")] {
        let waits = block_on(engine.list_waits(Default::default())).expect("waits");
        let wait = waits.iter().find(|wait| wait.run == *id).expect(name);
        block_on(engine.complete_wait(&wait.id, &answer, false)).expect("it waits");
    }
    let (one, other) = (outcome(&engine, &run), outcome(&engine, &fork));
    assert_eq!(compared(&one, &other), "=*");
}

#[test]
fn only_branches_after_a_fork_draw_new_random_numbers() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    // One branch after another, so that the third has not begun where the second is forked.
    let text = "(flow/pmap {:max 1}
  (fn [n] (let [id (random-uuid) done (flow/step :write (keyword (str \"w\" n)) {:value n})]
            (str [id (random-uuid)])))
  [1 2 3])";
    let run = start(&bench, &engine, text);
    let first = outcome(&engine, &run);
    let entries = block_on(engine.stores().journal.load(&run)).expect("a journal");
    let path = entries
        .iter()
        .find(|entry| entry.path.contains("w2"))
        .expect("the second");
    let (fork, end) = fork(&engine, &run, Some(&path.path));
    assert_eq!(compared(&first, &end), "=**");
    block_on(engine.verify(&fork)).expect("it is replayed");
}

#[test]
fn the_next_pass_of_a_fork_draws_other_values() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let text = "(let [a (flow/step :write :a {:value 1})]
  (if (:again (flow/input))
    [(str (random-uuid))]
    (do (flow/step :hold :gate {}) (flow/continue-as-new {:again true}))))";
    let run = start(&bench, &engine, text);
    assert!(outcome(&engine, &run).starts_with("waiting"));
    let options = ForkOptions {
        at: Some("gate".to_owned()),
        ..ForkOptions::default()
    };
    let fork = block_on(engine.fork(&run, options)).expect("it is forked");
    assert!(outcome(&engine, &fork).starts_with("waiting"));
    let answer = codec::decode("{:action :go}").expect("EDN");
    for id in [&run, &fork] {
        let waits = block_on(engine.list_waits(Default::default())).expect("waits");
        let wait = waits.iter().find(|wait| wait.run == *id).expect("a wait");
        block_on(engine.complete_wait(&wait.id, &answer, false)).expect("it waits");
    }
    let (one, other) = (outcome(&engine, &run), outcome(&engine, &fork));
    assert_eq!(compared(&one, &other), "*", "{one} {other}");
}
