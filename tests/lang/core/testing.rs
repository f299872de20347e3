//! `clojure.test` as a program meets it: what it prints and what it returns.

use expect_test::{Expect, expect};

use flowstone_lang::value::{Symbol, Value};

use super::Runner;

/// Runs the forms of a program one after the other, and compares what they print.
fn check(program: &str, expected: Expect) {
    let mut runner = Runner::new();
    runner.run("(require '[clojure.test :refer :all])");
    let program = Value::from(program);
    let world = runner.session.world();
    world
        .namespace(Symbol::new("user"))
        .intern(Symbol::new("program"))
        .set_root(program);
    let printed = runner
        .eval("(with-out-str (load-string program))")
        .unwrap_or_else(|signal| Value::from(format!("{signal:?}")));
    expected.assert_eq(printed.as_str().unwrap_or_default());
}

#[test]
fn a_run_reports_passes_failures_and_errors() {
    check(
        "(deftest adding
               (is (= 4 (+ 2 2)))
               (testing \"small\" (is (= 5 (+ 2 2)) \"sum\"))
               (is (zero? (/ 1 0))))
             (run-tests 'user)",
        expect![[r#"

            Testing user

            FAIL in (adding) (<string>:3)
            small
            sum
            expected: (= 5 (+ 2 2))
              actual: (not (= 5 4))

            ERROR in (adding) (<string>:4)
            expected: (zero? (/ 1 0))
              actual: java.lang.ArithmeticException: Divide by zero

            Ran 1 tests containing 3 assertions.
            1 failures, 1 errors.
        "#]],
    );
}

#[test]
fn thrown_and_are_and_fixtures_work() {
    check(
        "(def log (atom []))
             (use-fixtures :each (fn [f] (swap! log conj :in) (f) (swap! log conj :out)))
             (deftest throwing
               (is (thrown? ArithmeticException (/ 1 0)))
               (is (thrown-with-msg? Exception #\"o+ps\" (throw (ex-info \"ooops\" {}))))
               (is (thrown? ArithmeticException :fine))
               (is (instance? String 1)))
             (deftest many
               (are [x y] (= x (inc y)) 1 0, 2 1, 3 3))
             (let [summary (run-tests 'user)]
               (println @log (successful? summary) (dissoc summary :type)))",
        expect![[r#"

            Testing user

            FAIL in (throwing) (<string>:6)
            expected: (thrown? ArithmeticException :fine)
              actual: nil

            FAIL in (throwing) (<string>:7)
            expected: (instance? String 1)
              actual: java.lang.Long

            FAIL in (many) (<string>:8)
            expected: (= 3 (inc 3))
              actual: (not (= 3 4))

            Ran 2 tests containing 7 assertions.
            3 failures, 0 errors.
            [:in :out :in :out] false {:test 2, :pass 4, :fail 3, :error 0}
        "#]],
    );
}

#[test]
fn reports_and_assertions_are_open() {
    check(
        "(defmethod assert-expr 'roughly? [msg form]
               `(do-report {:type (if (< (abs (- ~(nth form 1) ~(nth form 2))) 0.1) :pass :fail)
                            :message ~msg :expected '~form :actual ~(nth form 2)}))
             (deftest near (is (roughly? 1.0 1.05)) (is (roughly? 1.0 2.0)))
             (binding [report (fn [m] (println (:type m)))]
               (test-var #'near))
             (run-test near)",
        expect![[r#"
            :begin-test-var
            :pass
            :fail
            :end-test-var

            FAIL in (near) (<string>:4)
            expected: (roughly? 1.0 2.0)
              actual: 2.0

            Ran 1 tests containing 2 assertions.
            1 failures, 0 errors.
        "#]],
    );
}
