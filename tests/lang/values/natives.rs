//! The natives of numbers and sorted collections.

use flowstone_lang::session::Session;
use flowstone_lang::value::{PrintOptions, Signal};
use flowstone_lang::vm::NoHost;

fn outcome(text: &str) -> String {
    let session = Session::new();
    let mut vm = session.vm(Box::new(NoHost::default()));
    let printed = session
        .eval_text(&mut vm, "test", text)
        .and_then(|value| vm.print(&value, PrintOptions::READABLE));
    match printed {
        Ok(text) => text,
        Err(Signal::Throw(exception)) => {
            format!("{}: {}", exception.class.0.name, exception.text())
        }
        Err(stop) => format!("{stop:?}"),
    }
}

fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(outcome(text), *expected, "{text}");
    }
}

#[test]
fn arithmetic_names_the_argument_at_fault() {
    check(&[
        (
            "(+ 1 :a)",
            "ClassCastException: + got :a (a keyword) as argument 2",
        ),
        (
            "(apply + [1 2 \"3\" 4])",
            "ClassCastException: + got \"3\" (a string) as argument 3",
        ),
        ("(- nil)", "NullPointerException: - got nil as argument 1"),
        (
            "(/ :a)",
            "ClassCastException: / got :a (a keyword) as argument 1",
        ),
        (
            "(< 1 2 nil)",
            "NullPointerException: < got nil as argument 3",
        ),
        (
            "(max 1 :a)",
            "ClassCastException: max got :a (a keyword) as argument 2",
        ),
        (
            "(inc nil)",
            "NullPointerException: inc got nil as argument 1",
        ),
        (
            "(bit-and 1 2 1.5)",
            "IllegalArgumentException: bit-and got 1.5 (a double) as argument 3: bit operations take 64-bit integers",
        ),
        (
            "(byte 200)",
            "IllegalArgumentException: Value out of range for byte: 200",
        ),
        (
            "(+ 9223372036854775807 1)",
            "ArithmeticException: integer overflow",
        ),
        ("(/ 0)", "ArithmeticException: Divide by zero"),
    ]);
}

#[test]
fn natives_of_numbers_return_the_results_of_clojure() {
    check(&[
        ("(max 1 1.0)", "1.0"),
        ("(max 1.0 1)", "1"),
        ("(min 1 1.0)", "1.0"),
        ("(max 1 ##NaN 2)", "##NaN"),
        ("(< 1 2 3)", "true"),
        ("(< 1 3 2)", "false"),
        ("(< :a)", "true"),
        ("(== 1 1.0 1N 1M)", "true"),
        ("(pos? ##NaN)", "false"),
        ("(rationalize 0.1)", "1/10"),
        ("(unchecked-byte 200)", "-56"),
        ("(unchecked-int 3000000000)", "-1294967296"),
        (
            "(unchecked-add 9223372036854775807 1)",
            "-9223372036854775808",
        ),
        ("(parse-double \" 1.5 \")", "1.5"),
        ("(parse-double \"1d\")", "1.0"),
        ("(parse-double \"0x1p3\")", "8.0"),
        ("(parse-long \" 12\")", "nil"),
        ("(Math/round -2.5)", "-2"),
        ("(Math/floorMod -7 2)", "1"),
        ("(clojure.math/signum 0)", "0.0"),
        ("(rand)", "0.0"),
        ("(with-precision 3 (/ 1M 3))", "0.333M"),
        ("(with-precision 3 :rounding FLOOR (* 1.239M 1))", "1.23M"),
        ("(with-precision 2 (+ 1.25M 1.31M))", "2.6M"),
        ("(with-precision 1 (/ 100M 4M))", "3E+1M"),
    ]);
}

#[test]
fn sorted_collections_keep_their_order() {
    check(&[
        ("(sorted-map 3 :c 1 :a 2 :b)", "{1 :a, 2 :b, 3 :c}"),
        ("(sorted-map-by > 3 :c 1 :a 2 :b)", "{3 :c, 2 :b, 1 :a}"),
        ("(= (sorted-map :a 1 :b 2) {:b 2 :a 1})", "true"),
        ("(= {:b 2 :a 1} (sorted-map :a 1 :b 2))", "true"),
        ("(= (sorted-set 1 2) #{2 1})", "true"),
        ("(= (hash (sorted-map :a 1)) (hash {:a 1}))", "true"),
        ("(get (sorted-map-by > 1 :a) 1)", ":a"),
        ("(get (sorted-map-by compare 1 :a) 1)", ":a"),
        ("(get (sorted-map 1 :a) 2 :none)", ":none"),
        ("(contains? (sorted-set-by > 1 2) 2)", "true"),
        (
            "(assoc (sorted-map-by > 1 :a) 2 :b 0 :c 1 :d)",
            "{2 :b, 1 :d, 0 :c}",
        ),
        (
            "(dissoc (sorted-map-by > 1 :a 2 :b 3 :c) 2)",
            "{3 :c, 1 :a}",
        ),
        ("(conj (sorted-set 3 1) 2)", "#{1 2 3}"),
        ("(disj (sorted-set-by > 3 1 2) 2 9)", "#{3 1}"),
        ("(into (sorted-map) [[2 :b] [1 :a]])", "{1 :a, 2 :b}"),
        ("(into (sorted-set-by >) (range 5))", "#{4 3 2 1 0}"),
        ("(sorted? (empty (sorted-set-by > 1)))", "true"),
        ("(conj (empty (sorted-set-by > 1)) 1 2)", "#{2 1}"),
        ("(subseq (sorted-set 1 2 3 4 5) > 1 <= 4)", "(2 3 4)"),
        ("(subseq (sorted-set-by > 1 2 3 4 5) > 3)", "(2 1)"),
        (
            "(rsubseq (sorted-map 1 :a 2 :b 3 :c) >= 2)",
            "([3 :c] [2 :b])",
        ),
        ("(subseq (sorted-set) > 1)", "nil"),
        ("(rseq (sorted-map 1 :a 2 :b))", "([2 :b] [1 :a])"),
        ("(first (sorted-set 3 1 2))", "1"),
        ("(keys (sorted-map :b 1 :a 2))", "(:a :b)"),
        ("(find (sorted-map 1 :a) 1)", "[1 :a]"),
        ("(update (sorted-map 1 1) 1 inc)", "{1 2}"),
        (
            "(sorted-set 1 :a)",
            "ClassCastException: cannot compare :a (a keyword) with 1 (an integer)",
        ),
        (
            "(get (sorted-map 1 2) :a)",
            "ClassCastException: cannot compare :a (a keyword) with 1 (an integer)",
        ),
        (
            "(sorted-map {} 1)",
            "ClassCastException: cannot compare {} (a map) with {} (a map)",
        ),
        (
            "(sorted-map 1)",
            "IllegalArgumentException: No value supplied for key: 1",
        ),
    ]);
}
