//! `flowstone check --portable`, and warnings about steps that never run and forms that never end.

use std::fmt::Write as _;

use expect_test::{Expect, expect};

use crate::program::Scratch;

/// Checks the body of a flow that is portable otherwise; the findings are listed, one a line.
#[track_caller]
fn check(args: &[&str], body: &str, expected: Expect) {
    let scratch = Scratch::new();
    let flow = format!(
        "{{:slug :a :name \"A\" :concurrency {{:type :singleton :on-new-version :supersede}}\n :requires [{{:slot :crm :type :http-api :base-url \"https://example.com\"}}]\n :functions [{{:id :f :code '(fn [x] (->> x (map inc)))}}]\n :invocations {{:default {{:inputs []}}}} :interfaces {{:manual [{{:id :run :invocation :default}}]}}\n :flow '{body}}}"
    );
    scratch.write("a.edn", &flow);
    let told = scratch
        .run(&[&["check", "--json", "a.edn"], args].concat())
        .json();
    let mut text = String::new();
    for finding in told["findings"].as_array().expect("findings") {
        let field = |key: &str| finding[key].as_str().unwrap_or_default();
        let _ = writeln!(
            text,
            "{} {} {}",
            field("severity"),
            field("code"),
            field("message")
        );
    }
    expected.assert_eq(&text);
}

#[test]
fn what_the_hosted_product_refuses_is_reported_on_request() {
    let body = "(let [rows (:rows (flow/input))
                   m map]
               [(->> rows (filter odd?)) (mapv inc rows) (apply comp [#'remove]) (clojure.core/keep identity rows)
                (some-> rows first) (range) (rand-int 3) (Long/parseLong \"1\") (flow.util/sha256-hex \"a\")
                (flow/uuid) (loop [n 0] (when (< n 3) (flow/step :kv :k {:operation :get :key \"a\"}) (recur (inc n))))
                (flow/poll {:interval \"1m\" :timeout \"2h\" :return-on some?} (flow/step :kv :p {:operation :get :key \"a\"}))])";
    check(
        &["--portable"],
        body,
        expect![[r#"
            portability E1501 `map` cannot be used in a hosted flow body
            portability E1500 `->>` cannot be used in a hosted flow body
            portability E1501 `filter` cannot be used in a hosted flow body
            portability E1501 `mapv` cannot be used in a hosted flow body
            portability E1501 `remove` cannot be used in a hosted flow body
            portability E1501 `keep` cannot be used in a hosted flow body
            portability E1500 `some->` cannot be used in a hosted flow body
            portability E1502 `(range)` without an end cannot be used in a hosted flow body
            portability E1504 `rand-int` cannot be used in a hosted flow body
            portability E1503 `Long/parseLong` cannot be used in a hosted flow body
            portability E1503 `flow.util/sha256-hex` cannot be used in a hosted flow body
            portability E1505 the hosted product has no `flow/uuid`
            portability E1506 the hosted product refuses a loop with steps and without a `:wait`
            portability E1508 a hosted `flow/poll` ends after an hour at the latest
        "#]],
    );
    check(&[], body, expect![[r#""#]]);
}

#[test]
fn names_that_the_body_binds_are_not_those_of_the_list() {
    check(
        &["--portable"],
        "(let [map 1 {:keys [filter]} {} f (fn [reduce] [map filter reduce])]
           (letfn [(keep [x] x)] (keep map))
           (comment (map inc [1]))
           (case 1 map 2 3)
           (for [remove [1] :let [mapv remove]] [remove mapv])
           (flow/step :function :g {:input {:a 1} :code '(fn [x] (mapv inc (->> x vals)))})
           (-> 1 inc))",
        expect![[r#""#]],
    );
}

#[test]
fn missing_keys_are_reported_as_not_portable() {
    let scratch = Scratch::new();
    scratch.write("a.edn", "{:slug :a :limits {:steps 5} :flow '1}");
    let ran = scratch.run(&["check", "--portable", "a.edn"]);
    assert_eq!(ran.code, Some(0));
    for expected in [
        "portability[E1507]: a hosted flow has `:name`",
        "portability[E1507]: a hosted flow needs `:concurrency`",
        "portability[E1507]: a hosted flow has `:invocations`",
        "portability[E1507]: a hosted flow has `:interfaces`",
        "portability[E1505]: the hosted product has no `:limits` in flows",
        "1 file checked: no errors; 5 not portable",
    ] {
        assert!(ran.err.contains(expected), "{expected}: {}", ran.err);
    }
}

#[test]
fn steps_that_nothing_performs_are_warned_of() {
    let step = "(flow/step :kv :k {:operation :get :key \"a\"})";
    check(
        &[],
        &format!(
            "(let [_ (map (fn [x] {step}) [1])]
               (for [x [1 2]] {step})
               (for [x [{step}]] x)
               (doseq [y [1]] (mapv (fn [x] {step}) [1]) (map (fn [x] {step}) [1]))
               (map inc [1])
               (vec (try (for [x [1]] {step}) (catch Exception e nil)))
               (for [x [1 2]] {step}))"
        ),
        expect![[r#"
            warning E1491 nothing uses the value of this `map`, so its steps are never performed
            warning E1491 nothing uses the value of this `for`, so its steps are never performed
            warning E1491 nothing uses the value of this `map`, so its steps are never performed
        "#]],
    );
}

#[test]
fn forms_that_never_end_are_warned_of() {
    check(
        &[],
        "(do (count (range)) (vec (map inc (iterate inc 0))) (reduce + (range)) (into [] (take 3 (range)))
            (doseq [x (cycle [1 2])] x) (doseq [x (range) :while (< x 3)] x) (mapv + (range 3) (range))
            (loop [n 0] (recur (inc n))) (loop [n 0] (if (< n 3) (recur (inc n)) n)) (while true 1)
            [(flow/slot-bound? :crm) (flow/slot-bound? :crn)])",
        expect![[r#"
            warning E1493 `count` reads a sequence that has no end
            warning E1493 `vec` reads a sequence that has no end
            warning E1493 `doseq` reads a sequence that has no end
            warning E1494 this loop never ends
            warning E1494 this loop never ends
            warning E1492 the flow declares no slot `:crn`
        "#]],
    );
}
