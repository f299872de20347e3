//! The policies of a step: approvals, retries, expectations, costs.

use flowstone_engine::ids::RunId;
use flowstone_engine::ports::{WaitFilter, WaitRow};
use flowstone_engine::{Answering, Caller, Engine, Remark, codec};

use super::STORE;
use crate::bench::{Bench, block_on, outcome};
use crate::crash;

/// A flow, its answers, its outcome, and the effects outside.
struct Row {
    flow: &'static str,
    answers: &'static [&'static str],
    end: &'static str,
    effects: &'static str,
}

const fn row(
    flow: &'static str,
    answers: &'static [&'static str],
    end: &'static str,
    effects: &'static str,
) -> Row {
    Row {
        flow,
        answers,
        end,
        effects,
    }
}

fn open_waits(engine: &Engine) -> Vec<WaitRow> {
    block_on(engine.list_waits(WaitFilter::default())).expect("waits")
}

fn answer(engine: &Engine, wait: &WaitRow, text: &str) -> Result<(), String> {
    let payload = codec::decode(text).expect("EDN");
    block_on(engine.complete_wait(&wait.id, &payload, false))
        .map(|_| ())
        .map_err(|error| error.to_string())
}

/// Executes a run to its end; each answer is given by a new process.
fn execute_with(bench: &Bench, run: &RunId, answers: &[&str]) -> String {
    let mut answers = answers.iter();
    loop {
        let engine = bench.engine();
        let end = outcome(&engine, run);
        let waits = open_waits(&engine);
        let (Some(wait), Some(text)) = (waits.first(), answers.next()) else {
            return end;
        };
        answer(&engine, wait, text).expect("answered");
    }
}

fn check(rows: &[Row]) {
    for row in rows {
        let bench = Bench::over(STORE);
        let run = bench.start(&bench.engine(), row.flow);
        let end = execute_with(&bench, &run, row.answers);
        assert_eq!(end, row.end, "{} {:?}", row.flow, row.answers);
        assert_eq!(
            bench.effects(),
            row.effects,
            "{} {:?}",
            row.flow,
            row.answers
        );
    }
}

const PAY: &str = "(flow/step :write :pay {:value :paid :confirm {:message \"Pay?\"}})";
const SKIPS: &str = "[(flow/step :write :pay {:value :paid :confirm true :on-error :skip})]";
const TOLD: &str = "(try (flow/step :write :pay {:value :paid :confirm true})
  (catch Exception e ((juxt :kind :code :question :attempts (comp :by :answer)) (ex-data e))))";
const ASKS: &str = "(flow/step :write :pay {:value :paid :confirm true :on-error :checkpoint})";
const FLAKY: &str =
    "(flow/step :write :pay {:value :paid :times 1 :confirm true :on-error :checkpoint})";

#[test]
fn a_step_waits_for_approval() {
    check(&[
        row(PAY, &[], "waiting: `pay` waits for an answer", ""),
        row(PAY, &[":approve"], ":paid", "pay=1"),
        row(PAY, &["\"approve\""], ":paid", "pay=1"),
        row(
            PAY,
            &["{:action \"approve\" :by \"ann\"}"],
            ":paid",
            "pay=1",
        ),
        row(
            PAY,
            &["{:action :reject}"],
            "failed E0533 `pay` was rejected",
            "",
        ),
        row(
            PAY,
            &["{:action :reject :reason \"too much\"}"],
            "failed E0533 `pay` was rejected: too much",
            "",
        ),
        row(SKIPS, &["{:action :reject}"], "[nil]", ""),
        row(SKIPS, &["{:action :approve}"], "[:paid]", "pay=1"),
        row(
            TOLD,
            &["{:action :reject :by \"ann\"}"],
            "[:rejected \"E0533\" :confirm 0 \"ann\"]",
            "",
        ),
        row(ASKS, &[":reject", ":retry", ":approve"], ":paid", "pay=1"),
        row(ASKS, &[":reject", ":skip"], "nil", ""),
        row(ASKS, &[":reject", "{:action :use :value 7}"], "7", ""),
        row(
            ASKS,
            &[":reject", ":abort"],
            "failed E0533 `pay` was rejected",
            "",
        ),
        // Approved once: another attempt is not approved again.
        row(FLAKY, &[":approve", ":retry"], ":paid", "pay=2"),
        row(
            "(flow/step :write :pay {:value 1 :confirm false :review nil})",
            &[],
            "1",
            "pay=1",
        ),
        row(
            "(flow/step :put :a {:value 1 :confirm true})",
            &[":reject"],
            "failed E0533 `a` was rejected",
            "",
        ),
    ]);
}

const DRAFT: &str = "(flow/step :write :draft {:value {:n 1} :review {:message \"Good?\"}})";
const SCHEMA: &str =
    "(flow/step :write :draft {:value {:n 1} :review true :expect {:schema [:map [:n :int]]}})";
const REDO: &str = "(flow/step :write :draft {:value 1 :review true :on-error :checkpoint})";

#[test]
fn a_value_waits_for_review() {
    check(&[
        row(
            DRAFT,
            &[],
            "waiting: `draft` waits for an answer",
            "draft=1",
        ),
        row(DRAFT, &[":approve"], "{:n 1}", "draft=1"),
        row(
            DRAFT,
            &["{:action :edit :value {:n 2}}"],
            "{:n 2}",
            "draft=1",
        ),
        row(DRAFT, &["{:action :edit :value nil}"], "nil", "draft=1"),
        row(
            DRAFT,
            &["{:action :reject :reason \"no\"}"],
            "failed E0533 `draft` was rejected: no",
            "draft=1",
        ),
        row(
            SCHEMA,
            &["{:action :edit :value {:n :x}}"],
            "waiting: `draft` waits for an answer",
            "draft=1",
        ),
        row(
            SCHEMA,
            &[
                "{:action :edit :value {:n :x}}",
                "{:action :edit :value {:n 3}}",
            ],
            "{:n 3}",
            "draft=1",
        ),
        row(
            SCHEMA,
            &["{:action :edit :value {:n :x}}", ":approve"],
            "{:n 1}",
            "draft=1",
        ),
        row(REDO, &[":reject", ":retry", ":approve"], "1", "draft=2"),
        row(REDO, &[":reject", ":skip"], "nil", "draft=1"),
        row(
            "[(flow/step :pure :draft {:value 1 :review true :on-error :skip})]",
            &[":reject"],
            "[nil]",
            "",
        ),
        row(
            "(:count (flow/step :put :a {:value 1 :review true}))",
            &[":approve"],
            "1",
            "",
        ),
        row(
            "(flow/step :pause :a {:times 10 :review true})",
            &["{:action :edit :value 4}"],
            "4",
            "",
        ),
        row(
            "(flow/step :write :both {:value 1 :confirm true :review true})",
            &[":approve", "{:action :edit :value 2}"],
            "2",
            "both=1",
        ),
    ]);
}

#[test]
fn an_unanswered_approval_follows_its_timeout_policy() {
    for (option, end) in [
        (
            ":confirm {:timeout 60}",
            "failed E0523 nobody decided about the `:confirm` of `pay` in time",
        ),
        (
            ":confirm {:timeout \"1m\" :on-timeout :fail}",
            "failed E0523 nobody decided about the `:confirm` of `pay` in time",
        ),
        (":confirm {:timeout \"1m\" :on-timeout :approve}", ":paid"),
        (
            ":confirm {:timeout \"1m\" :on-timeout :reject}",
            "failed E0533 `pay` was rejected, because nobody answered in time",
        ),
        (":confirm {:timeout \"1m\"} :on-error :skip", "nil"),
        (":review {:timeout \"1m\" :on-timeout :approve}", ":paid"),
        (
            ":review {:timeout \"1m\"}",
            "failed E0523 nobody decided about the `:review` of `pay` in time",
        ),
    ] {
        let bench = Bench::over(STORE);
        let run = bench.start(
            &bench.engine(),
            &format!("(flow/step :write :pay {{:value :paid {option}}})"),
        );
        assert!(
            outcome(&bench.engine(), &run).starts_with("waiting"),
            "{option}"
        );
        bench.clock.advance(60_000);
        assert_eq!(outcome(&bench.engine(), &run), end, "{option}");
    }
}

#[test]
fn a_question_shows_what_it_is_about() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(
        &engine,
        "(flow/step :write :pay {:title \"Pay rent\" :value {:amount (+ 1 2)} :confirm {:message \"Pay?\" :roles [:boss]} :review true})",
    );
    outcome(&engine, &run);
    let wait = open_waits(&engine).remove(0);
    expect_test::expect![[r#"{:actions [:approve :reject] :message "Pay?" :path "pay" :question :confirm :request {:confirm {:message "Pay?" :roles [:boss]} :review true :title "Pay rent" :value {:amount 3}} :roles [:boss] :step "pay" :title "Pay rent" :type :write}"#]]
        .assert_eq(&codec::canonical(&codec::decode(&wait.details).expect("EDN")).expect("data"));
    let refused = answer(&engine, &wait, ":approve").expect_err("not everybody may");
    assert!(refused.contains("`:boss`"), "{refused}");
    let boss = Answering {
        caller: Caller {
            name: Some("ann".to_owned()),
            roles: vec!["boss".to_owned()],
        },
        ..Answering::default()
    };
    block_on(engine.decide_wait(&wait.id, true, Remark::default(), boss)).expect("approved");
    outcome(&engine, &run);
    let wait = open_waits(&engine).remove(0);
    expect_test::expect![[r#"{:actions [:approve :edit :reject] :message "is this result of the `:write` step `Pay rent` good?" :path "pay" :question :review :step "pay" :title "Pay rent" :type :write :value {:amount 3}}"#]]
        .assert_eq(&codec::canonical(&codec::decode(&wait.details).expect("EDN")).expect("data"));
}

#[test]
fn answers_of_people_are_checked_before_they_are_journaled() {
    for (text, end) in [
        (
            ":aprove",
            "the wait `RUN/draft?1` does not offer `:aprove`; it offers `:approve`, `:edit`, `:reject`",
        ),
        (
            "{:action :use :value 1}",
            "the wait `RUN/draft?1` does not offer `:use`; it offers `:approve`, `:edit`, `:reject`",
        ),
        (
            "{:action :edit}",
            "the answer does not fit the wait: `:edit` needs a `:value`: {:action :edit :value ...}",
        ),
        (
            "{:value 1}",
            "the answer does not fit the wait: it needs an `:action`, one of `:approve`, `:edit`, `:reject`, such as {:action :approve}",
        ),
        (
            "42",
            "the answer does not fit the wait: it needs an `:action`, one of `:approve`, `:edit`, `:reject`, such as {:action :approve}",
        ),
    ] {
        let bench = Bench::over(STORE);
        let engine = bench.engine();
        let run = bench.start(&engine, DRAFT);
        outcome(&engine, &run);
        let wait = open_waits(&engine).remove(0);
        let refused = answer(&engine, &wait, text).expect_err("refused");
        let refused = refused.replace(run.as_str(), "RUN");
        assert_eq!(refused, end, "{text}");
        answer(&engine, &wait, ":approve").expect("it is still open");
        assert_eq!(outcome(&engine, &run), "{:n 1}");
    }
}

/// Configs, and the findings of their check.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "{:confirm {:mesage \"x\"}}",
        "E0453",
        "`:confirm` has no option `:mesage`",
    ),
    (
        "{:confirm 7}",
        "E0712",
        "`:confirm` of a `:write` step must be true or false or a map, not 7 (an integer)",
    ),
    (
        "{:confirm {:on-timeout :approve}}",
        "E0453",
        "`:on-timeout` of `:confirm` needs a `:timeout`",
    ),
    (
        "{:confirm {:timeout \"soon\"}}",
        "E0453",
        "`:timeout` of `:confirm` must be seconds or a duration such as \"2h\"",
    ),
    (
        "{:confirm {:actions [:edit]}}",
        "E0453",
        "`:actions` of `:confirm` must be a vector with some of `:approve`, `:reject`",
    ),
    (
        "{:review {:roles []}}",
        "E0453",
        "`:roles` of `:review` must be a vector of names",
    ),
    (
        "{:retry {:max-atempts 1}}",
        "E0713",
        "`:retry` has no option `:max-atempts`",
    ),
    (
        "{:retry {:max-attempts 0}}",
        "E0713",
        "`:max-attempts` of `:retry` must be a number from 1 to 1000",
    ),
    (
        "{:retry {:jitter 2}}",
        "E0713",
        "`:jitter` of `:retry` must be a number from 0 to 1",
    ),
    (
        "{:retry {:coefficient 0.5}}",
        "E0713",
        "`:coefficient` of `:retry` must be a number from 1 to 100",
    ),
    (
        "{:retry {:retry-on :timeout}}",
        "E0713",
        "`:retry-on` of `:retry` must be a set of keywords",
    ),
    (
        "{:retry {:backoff-ms 1 :initial-interval-ms 2}}",
        "E0713",
        "`:backoff-ms` of `:retry` is another name of `:initial-interval-ms`",
    ),
    (
        "{:expect {:contain [:a]}}",
        "E0715",
        "`:expect` has no option `:contain`",
    ),
    (
        "{:expect {:matches \"(\"}}",
        "E0715",
        "`:matches` of `:expect` must be a regex",
    ),
    (
        "{:expect {:schema [:mop]}}",
        "E0715",
        "`:schema` of `:expect` must be a Malli schema",
    ),
    (
        "{:on-doubt :guess}",
        "E0712",
        "`:on-doubt` of a `:write` step must be one of `:ask`, `:fail`, `:retry` or a map, not :guess (a keyword)",
    ),
    (
        "{:on-doubt {:prob {:type :look}}}",
        "E0454",
        "`:on-doubt` has no option `:prob`",
    ),
    (
        "{:on-doubt {:probe {:value 1}}}",
        "E0454",
        "`:probe` of `:on-doubt` must be the config of a step, with its `:type`",
    ),
    (
        "{:metering {:unit :request}}",
        "E0455",
        "`:metering` needs `:unit-cost-micros`",
    ),
    (
        "{:metering {:unit-cost-micros -1}}",
        "E0455",
        "`:unit-cost-micros` of `:metering` must be a number from 0",
    ),
];

/// The errors that the check of a config finds, at run time and in the text.
#[test]
fn wrong_options_are_named() {
    for &(config, code, words) in WRONG {
        let bench = Bench::over(STORE);
        let engine = bench.engine();
        // Computed, so that only the run can check it.
        let run = bench.start(
            &engine,
            &format!("(flow/step :write :a (merge {{}} {config}))"),
        );
        let end = outcome(&engine, &run);
        assert!(
            end.starts_with(&format!("failed {code} {words}")),
            "{config}: {end}"
        );
        let findings = bench.findings(&engine, &format!("(flow/step :write :a {config})"));
        let [finding] = findings.as_slice() else {
            panic!("{config}: {findings:?}");
        };
        assert!(
            finding.starts_with(&format!("{code} {words}")),
            "{config}: {finding}"
        );
    }
}

#[test]
fn computed_parts_of_options_are_not_checked_in_the_text() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let flow = "(let [n 3 f '(fn [v] v)]
      (flow/step :write :a {:value 1
        :retry {:max-attempts n :backoff-ms (* n 2)}
        :confirm {:timeout (str n \"h\") :message (str \"pay \" n) :on-timeout :reject}
        :expect {:fn f :schema (vector :int) :equals (- n 2)}
        :on-doubt {:probe {:type :seen :value (inc n)} :done f}
        :metering {:unit-cost-micros (* n 100) :quantity f}}))";
    assert_eq!(bench.findings(&engine, flow), Vec::<String>::new());
}

/// Answers each question according to its subject, once.
fn answer_for(wait: &WaitRow) -> &'static str {
    let details = codec::decode(&wait.details).expect("EDN");
    let about = details
        .get("question")
        .and_then(flowstone_flow::flow::name_of);
    match about.as_deref() {
        Some("confirm") => ":approve",
        Some("review") => "{:action :edit :value 5}",
        Some("in-doubt") => ":retry",
        Some("unavailable") => ":retry",
        other => panic!("nobody asks that: {other:?}"),
    }
}

/// Returns the step and the kind of a question that a crash must not repeat; `None` for a question that a crash may
/// cause.
fn gate_of(wait: &WaitRow) -> Option<String> {
    let details = codec::decode(&wait.details).expect("EDN");
    let about = codec::encode(details.get("question")?).expect("data");
    let is_gate = [":confirm", ":review"].contains(&&*about);
    is_gate.then(|| {
        format!(
            "{} {about}",
            details
                .get("step")
                .and_then(|step| step.as_str())
                .unwrap_or("")
        )
    })
}

/// A process that ends at every commit neither repeats nor skips a question.
#[test]
fn no_crash_loses_or_repeats_a_question() {
    const FLOW: &str = "(let [a (flow/step :write :a {:value 1 :confirm true})
          b (flow/step :write :b {:value 2 :review true :expect {:schema :int}})
          c (flow/step :put :c {:value b :confirm true :review true})
          d (flow/step :write :d {:value 4 :times 1 :confirm true :on-error :checkpoint})
          e (try (flow/step :pure :e {:value 1 :confirm {:timeout 60 :on-timeout :reject}}) (catch Exception e (:kind (ex-data e))))]
      [a b c d e])";
    let execute = |bench: &Bench, run: &RunId, engine: Option<Engine>| -> (String, Vec<String>) {
        let mut engine = engine;
        let mut doubts = 0;
        loop {
            let now = engine.take().unwrap_or_else(|| bench.engine());
            let end = outcome(&now, run);
            if end.contains("the process is dead") {
                continue;
            }
            if !end.starts_with("waiting") {
                let report = block_on(now.show_run(run)).expect("a run");
                let mut asked: Vec<String> = report.waits.iter().filter_map(gate_of).collect();
                asked.sort();
                return (end, asked);
            }
            let wait = open_waits(&now).remove(0);
            if wait.path.starts_with("e?") {
                bench.clock.advance(60_000);
                continue;
            }
            doubts += 1;
            assert!(doubts < 20, "it asks without end");
            answer(&now, &wait, answer_for(&wait)).expect("answered");
        }
    };
    let bench = Bench::over(STORE);
    let run = bench.start(&bench.engine(), FLOW);
    let (expected, asked) = execute(&bench, &run, None);
    assert_eq!(expected, "[1 5 5 4 :rejected]");
    let all = "a :confirm, b :review, c :confirm, c :review, d :confirm, e :confirm";
    assert_eq!(asked.join(", "), all);
    for silently in [false, true] {
        for left in 0.. {
            let bench = Bench::over(STORE);
            let engine = bench.engine_over(crash::stores(&bench, left, silently));
            let run = bench.start(&engine, FLOW);
            let mut engine = engine;
            // One process continues while it lives: its commits are counted through all questions.
            let died = loop {
                let end = outcome(&engine, &run);
                if end.contains("the process is dead") {
                    break true;
                }
                if !end.starts_with("waiting") {
                    break false;
                }
                let wait = open_waits(&engine).remove(0);
                match wait.path.starts_with("e?") {
                    true => bench.clock.advance(60_000),
                    false => answer(&engine, &wait, answer_for(&wait)).expect("answered"),
                }
            };
            if !died {
                break;
            }
            drop(std::mem::replace(&mut engine, bench.engine()));
            let (end, waits) = execute(&bench, &run, Some(engine));
            assert_eq!(end, expected, "left {left} silently {silently}");
            assert_eq!(waits, asked, "left {left} silently {silently}");
        }
    }
}

/// Returns when attempts are made, in milliseconds after the start, without jitter unless the flow asks for it.
fn attempts_at(config: &str) -> (Vec<i64>, String) {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, &format!("(flow/step {config})"));
    let begin = bench.clock_ms();
    let recorder = std::rc::Rc::new(crate::bench::Recorder::default());
    let end = block_on(engine.execute(
        &run,
        recorder.clone(),
        flowstone_engine::ExecuteOptions::default(),
    ));
    let dues = recorder.0.borrow();
    let dues = dues.iter().filter_map(|line| line.strip_prefix("retry "));
    let dues = dues.map(|line| {
        let due = line.split(' ').nth(1).expect("a moment");
        due.parse::<i64>().expect("a number") - begin
    });
    (dues.collect(), crate::bench::outcome_text(&end))
}

const NOT: &str = "failed E0799 not now";
/// Steps, the times of their retries, and their outcome.
const RETRIED: &[(&str, &[i64], &str)] = &[
    // Reads: two retries by default.
    (
        ":look :a {:times 2 :value 1 :retry {:jitter 0}}",
        &[1000, 3000],
        "1",
    ),
    (":look :a {:times 9 :retry {:jitter 0}}", &[1000, 3000], NOT),
    (
        ":look :a {:times 9 :kind :rate-limited :retry {:jitter 0}}",
        &[1000, 3000],
        NOT,
    ),
    (
        ":look :a {:times 9 :kind :timeout :retry {:jitter 0}}",
        &[1000, 3000],
        NOT,
    ),
    (
        ":look :a {:times 9 :kind :denied :retry {:jitter 0}}",
        &[],
        NOT,
    ),
    (":look :a {:times 9 :retry {:max-attempts 1}}", &[], NOT),
    // Steps that may have changed something: retried only if the flow asks for it, or with a key.
    (":write :a {:times 1}", &[], NOT),
    (
        ":write :a {:times 1 :value 1 :retry {:jitter 0}}",
        &[1000],
        "1",
    ),
    (
        ":write :a {:times 9 :retry {:max-attempts 4 :backoff-ms 10 :jitter 0}}",
        &[10, 30, 70],
        NOT,
    ),
    (
        ":write :a {:times 9 :retry {:max-attempts 4 :initial-interval-ms \"10ms\" :coefficient 3 :jitter 0}}",
        &[10, 40, 130],
        NOT,
    ),
    (
        ":write :a {:times 9 :retry {:max-attempts 5 :backoff-ms 100 :max-interval-ms 250 :jitter 0}}",
        &[100, 300, 550, 800],
        NOT,
    ),
    (
        ":write :a {:times 9 :kind :denied :retry {:retry-on #{:denied} :jitter 0}}",
        &[1000, 3000],
        NOT,
    ),
    (
        ":write :a {:times 9 :kind :timeout :retry {:retry-on [:denied] :jitter 0}}",
        &[],
        NOT,
    ),
    // The server states the delay, up to an hour.
    (
        ":look :a {:times 1 :after 30000 :value 1 :retry {:jitter 0 :max-interval-ms 5000}}",
        &[30_000],
        "1",
    ),
    (
        ":look :a {:times 1 :after 10 :value 1 :retry {:jitter 0}}",
        &[1000],
        "1",
    ),
    (
        ":look :a {:times 1 :after 86400000 :value 1 :retry {:jitter 0}}",
        &[3_600_000],
        "1",
    ),
];

#[test]
fn retries_follow_the_policy() {
    for &(config, dues, end) in RETRIED {
        let found = attempts_at(config);
        assert_eq!(found, (dues.to_vec(), end.to_owned()), "{config}");
    }
    // An idempotency key makes retries safe; jitter spreads the times by a fifth, differently in each engine.
    for config in [
        ":write :a {:times 9 :idempotency-key \"k\"}",
        ":look :a {:times 9}",
    ] {
        let (dues, _) = attempts_at(config);
        assert_eq!(dues.len(), 2, "{config}");
        assert!(
            (800..=1200).contains(&dues[0]) && dues[0] != 1000,
            "{config}: {dues:?}"
        );
    }
}

/// A process that ends between two attempts does not reset the count.
#[test]
fn a_crash_does_not_reset_the_count() {
    const FLOW: &str = "(flow/step :write :a {:times 3 :value :ok :on-doubt :fail :retry {:max-attempts 4 :backoff-ms 5000 :jitter 0}})";
    let options = || flowstone_engine::ExecuteOptions {
        stay: flowstone_engine::Stay::No,
        ..Default::default()
    };
    let bench = Bench::over(STORE);
    let run = bench.start(&bench.engine(), FLOW);
    let begin = bench.clock_ms();
    for due in [5_000, 15_000, 35_000] {
        let engine = bench.engine();
        let end = block_on(engine.execute(
            &run,
            std::rc::Rc::new(flowstone_engine::observer::NoObserver),
            options(),
        ));
        let Ok(flowstone_engine::outcome::RunOutcome::Waiting { due_ms, .. }) = end else {
            panic!("{}", crate::bench::outcome_text(&end));
        };
        assert_eq!(due_ms, Some(begin + due));
        // A run that is woken early continues to wait for the same time.
        drop(engine);
        let early = bench.engine();
        let end = block_on(early.execute(
            &run,
            std::rc::Rc::new(flowstone_engine::observer::NoObserver),
            options(),
        ));
        assert!(
            crate::bench::outcome_text(&end).starts_with("waiting"),
            "{due}"
        );
        bench.clock.advance(due + begin - bench.clock_ms());
    }
    assert_eq!(outcome(&bench.engine(), &run), ":ok");
    assert_eq!(bench.effects(), "a=4");
}
