//! The output and the results of `clojure.test` in a program.

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
        .eval("(with-out-str (binding [*test-out* *out*] (load-string program)))")
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
             at user/fn

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

            FAIL in (many) (<string>:9)
            expected: (= 3 (inc 3))
              actual: (not (= 3 4))

            Ran 2 tests containing 7 assertions.
            3 failures, 0 errors.
            [:in :out :in :out] false {:test 2, :pass 4, :fail 3, :error 0}
        "#]],
    );
}

#[test]
fn reports_and_assertions_can_be_extended() {
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

            Testing user

            FAIL in (near) (<string>:4)
            expected: (roughly? 1.0 2.0)
              actual: 2.0

            Ran 1 tests containing 2 assertions.
            1 failures, 0 errors.
        "#]],
    );
}

#[test]
fn a_report_has_the_place_of_the_assertion_however_it_was_written() {
    check(
        "(defmethod assert-expr 'small? [msg form]
               `(do-report {:type :fail :message ~msg :expected '~form}))
             (defmacro checks [& xs] `(do ~@(map (fn [x] `(is (odd? ~x))) xs)))
             (deftest places
               (is false)
               (is nil \"empty\")
               (are [x] (odd? x)
                 2)
               (checks
                 1 4)
               (is (small? 5)))
             (run-test places)",
        expect![[r#"

            Testing user

            FAIL in (places) (<string>:5)
            expected: false
              actual: false

            FAIL in (places) (<string>:6)
            empty
            expected: nil
              actual: nil

            FAIL in (places) (<string>:7)
            expected: (odd? 2)
              actual: (not (odd? 2))

            FAIL in (places) (<string>:9)
            expected: (clojure.core/odd? 4)
              actual: (not (clojure.core/odd? 4))

            FAIL in (places) (<string>:11)
            expected: (small? 5)
              actual: nil

            Ran 1 tests containing 6 assertions.
            5 failures, 0 errors.
        "#]],
    );
}

#[test]
fn reports_go_to_test_out_and_show_the_causes_of_an_error() {
    check(
        "(defn inner [] (throw (ex-info \"inner\" {:a 1})))
             (defn outer [] (try (inner) (catch Exception e (throw (ex-info \"outer\" {} e)))))
             (deftest failing (outer))
             (println (pr-str (with-out-str (run-test failing))))
             (binding [*stack-trace-depth* 1 *test-out* *out*] (run-test failing))
             (run-test not-a-test)",
        expect![[r#"

            Testing user

            ERROR in (failing) (<string>:3)
            Uncaught exception, not in assertion.
            expected: nil
              actual: clojure.lang.ExceptionInfo: outer
            {}
             at user/outer
                user/fn
            Caused by: clojure.lang.ExceptionInfo: inner
            {:a 1}
             at user/inner
                user/outer
                user/fn

            Ran 1 tests containing 1 assertions.
            0 failures, 1 errors.
            ""

            Testing user

            ERROR in (failing) (<string>:3)
            Uncaught exception, not in assertion.
            expected: nil
              actual: clojure.lang.ExceptionInfo: outer
            {}
             at user/outer
            Caused by: clojure.lang.ExceptionInfo: inner
            {:a 1}
             at user/inner

            Ran 1 tests containing 1 assertions.
            0 failures, 1 errors.
        "#]],
    );
}
