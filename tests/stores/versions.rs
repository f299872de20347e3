//! Edited flows against open runs and finished runs.

use expect_test::expect;
use flowstone_engine::ids::RunId;
use flowstone_engine::{
    Backtest, BacktestOptions, Engine, ForkOptions, Setting, StartOptions, Verdict, codec,
};
use flowstone_flow::flow::LoadedFlow;

use super::STORE;
use crate::bench::{Bench, block_on, execute, outcome, outcome_text};

/// A flow that stops at two gates.
const FLOW: &str = "{:slug :job
 :concurrency {:type :keyed :key-field :k :on-new-version :coexist}
 :functions [{:id :shape :code (fn [x] x)} {:id :unused :code (fn [x] x)}]
 :templates [{:id :note :type :llm-prompt :system \"Be brief\"}]
 :flow '(let [a (flow/step :write :a {:value 1})
              first-gate (flow/step :hold :gate-1 {})
              b (flow/step :pure :b {:value {:ref :shape :n (inc a)}})
              c (flow/step :write :c {:value (:n b)})
              second-gate (flow/step :hold :gate-2 {})
              d (flow/step :put :d {:value c})]
          {:a a :c c :d (some? d)})}";

/// An edit, and the expected verdicts: for a run that has done nothing, one at the first gate, and one at the second.
type Edit = (&'static str, &'static str, &'static str, [&'static str; 3]);

const SAME: [&str; 3] = ["same", "same", "same"];
const SAFE: [&str; 3] = ["safe", "safe", "safe"];
/// The edit affects the part before the first gate, or the gate.
const EARLY: [&str; 3] = ["safe", "conflict", "conflict"];
/// The edit affects the part between the gates, or the second gate.
const LATE: [&str; 3] = ["safe", "safe", "conflict"];

const EDITS: &[Edit] = &[
    ("a comment", "(let [a", "; first\n (let [a", SAME),
    ("blanks", "{:value 1}", "{ :value,  1 }", SAME),
    (
        "another order of keys",
        ":ref :shape :n (inc a)",
        ":n (inc a) :ref :shape",
        SAME,
    ),
    ("another name of a local", "first-gate", "gate", SAFE),
    ("the result", "{:a a", "{:first a", SAFE),
    (
        "a name of the flow",
        ":slug :job",
        ":slug :job :name \"Job\"",
        SAFE,
    ),
    (
        "a function that nothing uses",
        ":unused :code (fn [x] x)",
        ":unused :code (fn [x] [x])",
        SAFE,
    ),
    ("a template that nothing uses", "Be brief", "Be long", SAFE),
    (
        "what comes after the second gate",
        "{:value c}",
        "{:value [c c]}",
        SAFE,
    ),
    (
        "a step at the end",
        "d (flow/step :put :d {:value c})",
        "d (flow/step :put :d {:value c})
              e (flow/step :write :e {:value d})",
        SAFE,
    ),
    (
        "no last step",
        "d (flow/step :put :d {:value c})",
        "d nil",
        SAFE,
    ),
    (
        "a `try` around a step",
        "(flow/step :write :a {:value 1})",
        "(try (flow/step :write :a {:value 1}) (catch Exception e 1))",
        SAFE,
    ),
    (
        "a detour through a function",
        "(flow/step :write :a {:value 1})",
        "((fn [n] (flow/step :write :a {:value n})) 1)",
        SAFE,
    ),
    (
        "reading the clock",
        "b (flow/step",
        "now (flow/now-ms) b (flow/step",
        SAFE,
    ),
    (
        "a line of the log",
        "b (flow/step",
        "said (flow/log :info \"here\") b (flow/step",
        SAFE,
    ),
    ("the first request", "{:value 1}", "{:value 2}", EARLY),
    ("the type of the first step", ":write :a", ":look :a", EARLY),
    (
        "the id of the first step",
        ":write :a",
        ":write :first",
        EARLY,
    ),
    (
        "no first step",
        "(flow/step :write :a {:value 1})",
        "1",
        EARLY,
    ),
    (
        "a step at the start",
        "(let [a",
        "(let [z (flow/step :write :z {}) a",
        EARLY,
    ),
    (
        "the first gate",
        ":gate-1 {}",
        ":gate-1 {:value :open}",
        EARLY,
    ),
    (
        "no first gate",
        "(flow/step :hold :gate-1 {})",
        "nil",
        EARLY,
    ),
    (
        "the gates the other way round",
        ":gate-1 {}",
        ":gate-2 {}",
        EARLY,
    ),
    (
        "an early end",
        "b (flow/step",
        "b (throw (ex-info \"enough\" {}))
              bb (flow/step",
        LATE,
    ),
    (
        "an early end before all",
        ":flow '(let [a",
        ":flow '(let [stop (throw (ex-info \"no\" {})) a",
        EARLY,
    ),
    (
        "a step moved before the gate",
        "first-gate (flow/step :hold :gate-1 {})",
        "early (flow/step :write :c {:value 2})
              first-gate (flow/step :hold :gate-1 {})",
        EARLY,
    ),
    ("a request between the gates", "(inc a)", "(dec a)", LATE),
    (
        "a function that a step refers to",
        ":shape :code (fn [x] x)",
        ":shape :code (fn [x] (str x))",
        LATE,
    ),
    (
        "no function that a step refers to",
        "{:id :shape :code (fn [x] x)}",
        "",
        LATE,
    ),
    ("a type between the gates", ":write :c", ":look :c", LATE),
    (
        "no step between the gates",
        "(flow/step :write :c {:value (:n b)})",
        "2",
        LATE,
    ),
    (
        "a step more between the gates",
        "c (flow/step",
        "z (flow/step :write :z {})
              c (flow/step",
        LATE,
    ),
    (
        "a step twice",
        "c (flow/step :write :c {:value (:n b)})",
        "_ (flow/step :write :c {:value 2}) c (flow/step :write :c {:value (:n b)})",
        LATE,
    ),
    (
        "the second gate",
        ":gate-2 {}",
        ":gate-2 {:times 60000}",
        LATE,
    ),
    (
        "no second gate",
        "(flow/step :hold :gate-2 {})",
        "nil",
        LATE,
    ),
    (
        "a branch that is not taken",
        "second-gate (flow/step",
        "never (when (> a 5) (flow/step :write :big {})) second-gate (flow/step",
        SAFE,
    ),
];

fn at(bench: &Bench, engine: &Engine, gates: usize) -> RunId {
    let flow = bench.flow(FLOW);
    let run = block_on(engine.start(&flow, start())).expect("it starts");
    for gate in 0..gates {
        if gate > 0 {
            let answer = codec::decode("{:action :go}").expect("EDN");
            block_on(engine.complete_wait("door", &answer, false)).expect("it waits");
        }
        assert_eq!(
            outcome_text(&execute(engine, &run)),
            format!("waiting: `gate-{}` waits for an answer", gate + 1)
        );
    }
    run
}

/// The runs are inspected from outside, so no process may hold them.
fn start() -> StartOptions {
    StartOptions {
        is_left: true,
        ..StartOptions::with_input(codec::decode("{:k 1}").expect("EDN"))
    }
}

/// Passes all remaining approvals of a run, and returns its outcome.
fn to_the_end(engine: &Engine, run: &RunId) -> String {
    for _ in 0..3 {
        let now = outcome_text(&execute(engine, run));
        if !now.starts_with("waiting") {
            return now;
        }
        let answer = codec::decode("{:action :go}").expect("EDN");
        block_on(engine.complete_wait("door", &answer, false)).expect("it waits");
    }
    outcome_text(&execute(engine, run))
}

#[test]
fn an_edit_is_judged_by_the_progress_of_the_run() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let mut wrong = Vec::new();
    for (name, from, to, expected) in EDITS {
        let edited = FLOW.replacen(from, to, 1);
        assert_ne!(&edited, FLOW, "{name} edits nothing");
        for (gates, expected) in expected.iter().enumerate() {
            let run = at(&bench, &engine, gates);
            let effects = bench.effects();
            let flow = bench.flow(&edited);
            let found = block_on(engine.check_against_running(&flow)).expect("it can be checked");
            let [against] = &found[..] else {
                let found = found.len();
                panic!("{name} at {gates}: one run is live, not {found}: {wrong:?}");
            };
            assert_eq!(bench.effects(), effects, "nothing is done");
            if against.verdict.name() != *expected {
                let found = &against.verdict;
                wrong.push(format!("{name} at {gates}: {found:?}, not {expected}"));
                to_the_end(&engine, &run);
                continue;
            }
            if let Some(problem) = adopted(&engine, &run, &flow, &against.verdict) {
                wrong.push(format!("{name} at {gates}: {problem}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(EDITS.len() * 3 >= 40);
}

/// Applies the verdict: resumes with the edited flow, or is refused.
fn adopted(engine: &Engine, run: &RunId, flow: &LoadedFlow, verdict: &Verdict) -> Option<String> {
    let adopted = block_on(engine.adopt(run, flow));
    match (verdict, adopted) {
        (Verdict::Conflict(_), Err(error)) if error.code() == "E0570" => {
            // The run continues as before.
            let end = to_the_end(engine, run);
            (end != "{:a 1 :c 2 :d true}").then_some(end)
        }
        (Verdict::Same | Verdict::Safe, Ok(_)) => {
            let end = to_the_end(engine, run);
            end.starts_with("error").then_some(end)
        }
        (_, adopted) => Some(format!("{adopted:?}")),
    }
}

#[test]
fn a_conflict_shows_both_requests_and_the_place() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = at(&bench, &engine, 2);
    let refused = |from: &str, to: &str| {
        let flow = bench.flow(&FLOW.replacen(from, to, 1));
        let error = block_on(engine.adopt(&run, &flow)).expect_err("it does not fit");
        let place = error.place().map(|place| (place.line, place.column));
        let text = error.to_string().replace(run.as_str(), "RUN");
        format!("{} {text} {place:?}\n", error.code())
    };
    expect![[r#"
        E0570 the flow conflicts with the journal of run RUN: step `c`
          journal: :write {:value 2}
          flow:    :write {:value 0} Some((8, 17))
        E0570 the flow conflicts with the journal of run RUN: step `z`
          journal: `a`: :write {:value 1}
          flow:    :write {} Some((5, 17))
        E0570 the flow conflicts with the journal of run RUN: step `gate-2`
          journal: :hold {}
          flow:    `d` next, and not this None
    "#]]
    .assert_eq(
        &[
            refused("{:value (:n b)}", "{:value (- (:n b) 2)}"),
            refused("(let [a", "(let [z (flow/step :write :z {}) a"),
            refused("(flow/step :hold :gate-2 {})", "nil"),
        ]
        .concat(),
    );
}

/// The options of a fork: where it begins, what is set, an edit of the flow, and whether results are reused.
type Fork = (
    &'static str,
    Option<&'static str>,
    Option<(&'static str, &'static str)>,
    Option<(&'static str, &'static str)>,
    bool,
);

const NEW_D: (&str, &str) = ("{:value c}", "{:value :new}");
const OTHER_A: (&str, &str) = ("{:value 1}", "{:value 3}");

const FORKS: &[Fork] = &[
    ("from the start", None, None, None, false),
    ("at c", Some("c"), None, None, false),
    ("at the second gate", Some("gate-2"), None, None, false),
    ("at a, reusing", Some("a"), None, None, true),
    ("another value", Some("b"), Some(("a", "10")), None, false),
    (
        "a part of a value",
        Some("c"),
        Some(("b.n", "7")),
        None,
        false,
    ),
    (
        "another input",
        Some("c"),
        Some(("input.k", "2")),
        None,
        false,
    ),
    (
        "another value, reusing",
        Some("c"),
        Some(("b.n", "7")),
        None,
        true,
    ),
    ("a flow that fits", Some("d"), None, Some(NEW_D), false),
    (
        "a flow that does not",
        Some("d"),
        None,
        Some(OTHER_A),
        false,
    ),
    (
        "a value that does not fit",
        Some("d"),
        Some(("a", "10")),
        None,
        false,
    ),
    ("at no step", Some("gate-3"), None, None, false),
    (
        "a value of no step",
        Some("c"),
        Some(("q.n", "7")),
        None,
        false,
    ),
    (
        "a value of a later step",
        Some("c"),
        Some(("d", "7")),
        None,
        false,
    ),
];

#[test]
fn a_fork_keeps_what_came_before_the_step() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = at(&bench, &engine, 2);
    assert_eq!(to_the_end(&engine, &run), "{:a 1 :c 2 :d true}");
    let fork = |options: ForkOptions| {
        let fork = match block_on(engine.fork(&run, options)) {
            Ok(fork) => fork,
            Err(error) => return format!("{} {error}", error.code()).replace(run.as_str(), "RUN"),
        };
        let before = bench.effects.borrow().clone();
        let end = to_the_end(&engine, &fork);
        let after = bench.effects.borrow().clone();
        let done: Vec<String> = after
            .into_iter()
            .filter(|(key, count)| before.get(key) != Some(count))
            .map(|(key, count)| format!("{}={count}", key.replace(fork.as_str(), "FORK")))
            .collect();
        format!("{end} did {done:?}")
    };
    let mut report = String::new();
    for (name, at, set, edit, reuse) in FORKS {
        let options = ForkOptions {
            at: at.map(str::to_owned),
            flow: edit.map(|(from, to)| bench.flow(&FLOW.replacen(from, to, 1))),
            settings: Vec::from_iter(set.map(|(path, value)| Setting {
                path: path.to_owned(),
                value: codec::decode(value).expect("EDN"),
            })),
            reuse: *reuse,
        };
        report += &format!("{name}: {}\n", fork(options));
    }
    expect![[r#"
        from the start: {:a 1 :c 2 :d true} did ["FORK/a=1", "FORK/c=1"]
        at c: {:a 1 :c 2 :d true} did ["FORK/c=1"]
        at the second gate: {:a 1 :c 2 :d true} did []
        at a, reusing: {:a 1 :c 2 :d true} did ["FORK/a=1"]
        another value: {:a 10 :c 11 :d true} did ["FORK/c=1"]
        a part of a value: {:a 1 :c 7 :d true} did ["FORK/c=1"]
        another input: {:a 1 :c 2 :d true} did ["FORK/c=1"]
        another value, reusing: {:a 1 :c 7 :d true} did ["FORK/c=1"]
        a flow that fits: {:a 1 :c 2 :d true} did []
        a flow that does not: E0570 the flow conflicts with the journal of run RUN: step `a`
          journal: :write {:value 1}
          flow:    :write {:value 3}
        a value that does not fit: E0570 the flow conflicts with the journal of run RUN: step `b`
          journal: :pure {:value {:n 2 :ref :shape}}
          flow:    :pure {:value {:n 11 :ref :shape}}
        at no step: E0571 the run RUN has no step `gate-3`
        a value of no step: E0572 `q.n` cannot be set: it is neither `input` nor a step that ended before the fork
        a value of a later step: E0572 `d` cannot be set: it is neither `input` nor a step that ended before the fork
    "#]].assert_eq(&report);
    // The run itself is unchanged.
    assert_eq!(outcome(&engine, &run), "{:a 1 :c 2 :d true}");
}

fn report(test: &Backtest) -> String {
    let differences = test.differences.iter().map(|met| {
        let none = "-".to_owned();
        format!(
            "\n  {}: {} => {} ({})",
            met.path,
            met.recorded.as_ref().unwrap_or(&none),
            met.requested.as_ref().unwrap_or(&none),
            met.answer.name()
        )
    });
    let differences: Vec<String> = differences.collect();
    format!(
        "{}: {} => {}{}",
        test.verdict(),
        test.recorded,
        test.now.as_deref().unwrap_or("?"),
        differences.concat()
    )
}

#[test]
fn a_backtest_reports_the_outcomes_of_past_runs() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = at(&bench, &engine, 2);
    to_the_end(&engine, &run);
    let effects = bench.effects();
    let test = |from: &str, to: &str, live: bool| {
        let flow = bench.flow(&FLOW.replacen(from, to, 1));
        let options = BacktestOptions {
            live,
            ..BacktestOptions::default()
        };
        let summary = block_on(engine.backtest(&flow, options)).expect("it can be tested");
        let [test] = &summary.tests[..] else {
            panic!("one run is over");
        };
        report(test)
    };
    let mut all = String::new();
    for (from, to) in [
        ("first-gate", "gate"),
        ("{:a a", "{:first a"),
        ("{:value (:n b)}", "{:value [(:n b)]}"),
        ("(inc a)", "(+ a 41)"),
        ("d (flow/step :put :d {:value c})", "d nil"),
        ("c (flow/step", "z (flow/step :write :z {}) c (flow/step"),
        (
            "c (flow/step",
            "z (flow/step :pure :z {:value 4}) c (flow/step",
        ),
        (
            "c (flow/step",
            "z (flow/step :look :z {:value 4}) c (flow/step",
        ),
        (":write :c", ":look :c"),
    ] {
        all += &format!("{from} -> {to}\n{}\n", test(from, to, false));
    }
    assert_eq!(bench.effects(), effects, "nothing is done");
    all += &format!(
        "live\n{}\n",
        test(
            "c (flow/step",
            "z (flow/step :look :z {:value 4}) c (flow/step",
            true
        )
    );
    expect![[r#"
        first-gate -> gate
        same: {:a 1 :c 2 :d true} => {:a 1 :c 2 :d true}
        {:a a -> {:first a
        different end: {:a 1 :c 2 :d true} => {:first 1 :c 2 :d true}
        {:value (:n b)} -> {:value [(:n b)]}
        same end, assumed: {:a 1 :c 2 :d true} => {:a 1 :c 2 :d true}
          c: :write {:value 2} => :write {:value [2]} (assumed)
        (inc a) -> (+ a 41)
        same end, assumed: {:a 1 :c 2 :d true} => {:a 1 :c 2 :d true}
          b: :pure {:value {:n 2 :ref :shape}} => :pure {:value {:n 42 :ref :shape}} (performed)
          c: :write {:value 2} => :write {:value 42} (assumed)
        d (flow/step :put :d {:value c}) -> d nil
        different end: {:a 1 :c 2 :d true} => {:a 1 :c 2 :d false}
          d: :put {:value 2} => - (dropped)
        c (flow/step -> z (flow/step :write :z {}) c (flow/step
        unknown: {:a 1 :c 2 :d true} => ?
          z: - => :write {} (stopped)
        c (flow/step -> z (flow/step :pure :z {:value 4}) c (flow/step
        same end: {:a 1 :c 2 :d true} => {:a 1 :c 2 :d true}
          z: - => :pure {:value 4} (performed)
        c (flow/step -> z (flow/step :look :z {:value 4}) c (flow/step
        unknown: {:a 1 :c 2 :d true} => ?
          z: - => :look {:value 4} (stopped)
        :write :c -> :look :c
        unknown: {:a 1 :c 2 :d true} => ?
          c: :write {:value 2} => :look {:value 2} (stopped)
        live
        same end: {:a 1 :c 2 :d true} => {:a 1 :c 2 :d true}
          z: - => :look {:value 4} (performed)
    "#]]
    .assert_eq(&all);
}
