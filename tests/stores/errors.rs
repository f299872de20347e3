//! Errors of failed steps in flows and records; expectations of values; costs of steps.

use flowstone_engine::{RunReport, StepStatus};

use super::STORE;
use crate::bench::{Bench, block_on, outcome};

fn report(flow: &str) -> (String, RunReport) {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let run = bench.start(&engine, flow);
    let end = outcome(&engine, &run);
    (end, block_on(engine.show_run(&run)).expect("a run"))
}

#[test]
fn an_error_has_its_kind_attempts_and_delay() {
    for (config, keys, end) in [
        (
            ":write :a {:times 9}",
            "[:kind :code :step :path :attempts :message]",
            "[:unavailable \"E0799\" \"a\" \"a\" 1 \"not now\"]",
        ),
        (
            ":look :a {:times 9 :retry {:max-attempts 2}}",
            "[:kind :attempts]",
            "[:unavailable 2]",
        ),
        (
            ":write :a {:times 9 :kind :rate-limited :after 1500}",
            "[:kind :retry-after]",
            "[:rate-limited 1.5]",
        ),
        (
            ":write :a {:times 9 :after 30000}",
            "[:retry-after]",
            "[30]",
        ),
        (
            ":write :a {:times 9 :kind :denied}",
            "[:kind :retry-after]",
            "[:denied nil]",
        ),
        (
            ":write :a {:wrong 1}",
            "[:kind :code :path :attempts]",
            "[:bad-config \"E0710\" \"a\" 0]",
        ),
        (
            ":look :a {:hang true :timeout 0.02 :retry {:max-attempts 1}}",
            "[:kind :code]",
            "[:timeout \"E0520\"]",
        ),
        (
            ":sleep :a {:millis 60000 :timeout 10}",
            "[:kind :code]",
            "[:timeout \"E0535\"]",
        ),
    ] {
        let flow =
            format!("(try (flow/step {config}) (catch Exception e (mapv (ex-data e) {keys})))");
        assert_eq!(report(&flow).0, end, "{config}");
    }
}

#[test]
fn the_second_call_of_a_step_has_its_own_path() {
    let flow = "(mapv (fn [n] (try (flow/step :write :a {:times n}) (catch Exception e (:path (ex-data e))))) [0 1 0])";
    assert_eq!(report(flow).0, "[nil \"a#2\" nil]");
}

#[test]
fn a_skipped_error_stays_in_the_record() {
    let (end, shown) = report(
        "[(flow/step :write :a {:times 1 :on-error :skip}) (flow/step :write :b {:value 1})]",
    );
    assert_eq!(end, "[nil 1]");
    let steps: Vec<_> = shown
        .steps
        .iter()
        .map(|step| (step.status, step.error.as_deref()))
        .collect();
    assert_eq!(
        steps,
        [
            (StepStatus::Skipped, Some("not now")),
            (StepStatus::Done, None)
        ]
    );
}

#[test]
fn a_retried_error_stays_in_the_record() {
    let (end, shown) = report("(flow/step :look :a {:times 1 :value 1})");
    assert_eq!(end, "1");
    let step = &shown.steps[0];
    assert_eq!((step.status, step.attempts), (StepStatus::Done, 2));
    assert_eq!(step.error.as_deref(), Some("not now"));
}

#[test]
fn values_are_checked_against_expectations() {
    const WORDS: &str = "the result is not what `:expect` says: ";
    for (value, expect, end) in [
        ("{:a 1}", "{:contains [:a]}", "{:a 1}"),
        ("{:a 1}", "{:contains [\"a\"]}", "{:a 1}"),
        ("{:a 1}", "{:contains [:a :b :c]}", "should contain :b, :c"),
        ("\"some text\"", "{:contains [\"text\"]}", "\"some text\""),
        (
            "\"some text\"",
            "{:contains \"words\"}",
            "should contain \"words\"",
        ),
        ("[1 2]", "{:contains [2]}", "[1 2]"),
        ("7", "{:contains [7]}", "should contain 7"),
        ("{:a [1]}", "{:equals {:a [1]}}", "{:a [1]}"),
        ("1", "{:equals 2}", "should be 2"),
        ("\"v12\"", "{:matches #\"v\\d+\"}", "\"v12\""),
        ("\"x\"", "{:matches \"v\\\\d+\"}", "should match v\\d+"),
        ("{:n 1}", "{:schema [:map [:n :int]]}", "{:n 1}"),
        (
            "{:n \"1\"}",
            "{:schema [:map [:n :int]]}",
            "at [:n]: should be",
        ),
        ("4", "{:fn '(fn [n] (even? n))}", "4"),
        (
            "5",
            "{:fn '(fn [n] (even? n))}",
            "should satisfy the function",
        ),
        ("4", "{:fn '(fn [n] (even? n)) :equals 5}", "should be 5"),
        ("nil", "{:equals nil}", "nil"),
        ("nil", "{}", "nil"),
    ] {
        for kind in [":pure", ":write"] {
            let flow = format!(
                "(try (flow/step {kind} :a {{:value {value} :expect {expect}}})
                   (catch Exception e (str (name (:kind (ex-data e))) \" \" (ex-message e))))"
            );
            let found = report(&flow).0;
            let failed = format!("\"expectation-failed {WORDS}{end}").replace("\\d", "\\\\d");
            let failed = failed.replace("\"words\"", "\\\"words\\\"");
            assert!(
                found == end || found.starts_with(&failed),
                "{value} {expect}: {found}"
            );
        }
    }
}

/// Expectations also apply to values from a store, a sleep or a person; a store operation is not repeated.
#[test]
fn expectations_apply_to_every_kind_of_value() {
    const NOT: &str = "failed E0521 the result is not what `:expect` says: should";
    for (flow, end) in [
        (
            "(:count (flow/step :put :a {:value 1 :expect {:contains [:count]}}))",
            "1",
        ),
        (
            "(flow/step :put :a {:value 1 :expect {:contains [:colour]} :retry {:max-attempts 3}})",
            NOT,
        ),
        (
            "[(flow/step :put :a {:value 1 :expect {:contains [:colour]} :on-error :skip}) (:count (flow/step :put :a {:value 2}))]",
            "[nil 2]",
        ),
        (
            "(flow/step :pause :a {:times 5 :expect {:equals :slept}})",
            ":slept",
        ),
        (
            "(flow/step :pause :a {:times 5 :expect {:equals :woken}})",
            NOT,
        ),
        (
            "(flow/step :hold :a {:times 5 :value 3 :expect {:equals 3}})",
            "3",
        ),
        (
            "(flow/step :hold :a {:times 5 :value 3 :expect {:equals 4}})",
            NOT,
        ),
        ("[(flow/step :hold :a {:times 5 :on-error :skip})]", "[nil]"),
        (
            "(flow/step :put :a {:value 1 :expect {:equals 0} :on-error :checkpoint})",
            "waiting: `a` waits for an answer",
        ),
        (
            "(flow/step :hold :a {:times 5 :on-error :checkpoint})",
            "waiting: `a` waits for an answer",
        ),
    ] {
        let bench = Bench::over(STORE);
        let engine = bench.engine();
        let run = bench.start(&engine, flow);
        let mut found = outcome(&engine, &run);
        if found.starts_with("waiting: `a` waits") && flow.contains(":hold") {
            bench.clock.advance(5);
            found = outcome(&bench.engine(), &run);
        }
        assert!(found.starts_with(end), "{flow}: {found}");
    }
}

#[test]
fn the_idempotency_key_of_a_step_stays_the_same() {
    let bench = Bench::over(STORE);
    let engine = bench.engine();
    let flow = "[(flow/step :look :a {:times 2 :value 1}) (mapv (fn [n] (flow/step :write :b {:value n})) [1 2])
                 (flow/step :write :c {:value 1 :idempotency-key \"order/7\"})]";
    let run = bench.start(&engine, flow);
    outcome(&engine, &run);
    let keys = bench.effects.borrow().clone();
    let keys: Vec<String> = keys
        .into_iter()
        .map(|(key, count)| format!("{key}={count}").replace(run.as_str(), "RUN"))
        .collect();
    assert_eq!(keys.join(" "), "RUN/a=3 RUN/b=1 RUN/b#2=1 order/7=1");
}

#[test]
fn costs_are_summed() {
    let (_, shown) = report(
        "(do (flow/step :look :a {:value 1 :metering {:unit :request :unit-cost-micros 2000 :label \"search\"}})
             (flow/step :write :b {:value {:tokens 250} :metering {:unit :token :unit-cost-micros 2.5 :quantity '(fn [v] (:tokens v))}})
             (flow/step :put :c {:value 1 :metering {:unit-cost-micros 10 :quantity 3}})
             (flow/step :write :d {:value 1 :metering {:unit-cost-micros 10 :quantity '(fn [v] :many)}})
             (flow/step :write :e {:times 9 :on-error :skip :metering {:unit-cost-micros 10}})
             (flow/step :write :f {:value 1}))",
    );
    let lines: Vec<String> = shown
        .steps
        .iter()
        .flat_map(|step| step.costs.iter().map(move |cost| (step, cost)))
        .map(|(step, cost)| {
            let label = cost.label.as_deref().unwrap_or("-");
            let problem = cost.problem.as_deref().unwrap_or("");
            format!(
                "{} {label} {} {} {}{problem}",
                step.path, cost.quantity, cost.unit, cost.micros
            )
        })
        .collect();
    assert_eq!(
        lines,
        [
            "a search 1 request 2000",
            "b - 250 token 625",
            "c - 3 request 30",
            "d - 0 request 0`:quantity` of `:metering` did not return a number from 0",
        ]
    );
    assert_eq!(shown.cost_micros, 2655);
}

#[test]
fn a_failure_keeps_the_span_of_its_form() {
    let bench = Bench::over(STORE);
    let run = bench.start(
        &bench.engine(),
        "(let [n 1]\n  (flow/step :write :a {:times 9}))",
    );
    outcome(&bench.engine(), &run);
    let shown = block_on(bench.engine().show_run(&run)).expect("a run");
    let place = shown
        .failure
        .and_then(|failure| failure.place)
        .expect("a place");
    let at = place.column as usize - 1;
    assert_eq!(
        &place.text[at..at + place.width as usize],
        "(flow/step :write :a {:times 9})"
    );
}
