//! The machine's optimisations must not change results: calls that count no reference, loops that test at their end,
//! registers that are known to hold integers.

use super::Runner;
use super::traps::check_stops;

fn check(expression: &str, expected: &str) {
    assert_eq!(Runner::new().run(expression), expected, "{expression}");
}

#[test]
fn a_function_may_be_replaced_while_it_runs() {
    check(
        "(do (defn f [n] (let [x (str n)] (def f nil) (def f (fn [_] :new)) [x n (f 1)])) [(f 5) (f 5)])",
        r#"[["5" 5 :new] :new]"#,
    );
    check(
        "(do (defn f [n] (if (pos? n) (do (alter-var-root #'f (fn [g] (fn [m] (g m)))) (+ 1 (f (dec n)))) 0)) (f 200))",
        "200",
    );
    check(
        "(do (def f (let [secret [1 2 3]] (fn [g] (g) (g) (count secret)))) (f (fn [] (def f (fn [& _] 0)))))",
        "3",
    );
    check(
        "(do (defn f [] (def f nil) (throw (ex-info \"gone\" {}))) (try (f) (catch Exception e (ex-message e))))",
        "\"gone\"",
    );
    check(
        "(do (defn f [x] (inc x)) (dotimes [i 2000] (with-redefs [f (let [v [i]] (fn [x] (+ x (count v))))] (f i))) (f 1))",
        "2",
    );
    check(
        "(do (def ^:dynamic f (fn [] 1)) (defn g [] (f)) [(g) (binding [f (fn [] 2)] (g)) (g)])",
        "[1 2 1]",
    );
    check(
        "(do (defn f [] 1) (defn g [] (f)) (def before (g)) (alter-meta! #'f assoc :dynamic true) [before (eval '(binding [f (fn [] 2)] (g))) (g)])",
        "[1 2 1]",
    );
}

#[test]
fn callees_are_not_moved_by_calls() {
    check("((fn [f] (f f)) (fn [g] (fn? g)))", "true");
    check("(let [f (fn [& xs] (count xs))] (f f f f))", "3");
    check("(let [f {:a 1} g :a] [(f g) (g f) (f :b 2)])", "[1 1 2]");
    check("((fn [f] [(f 1) (f 2) (f 3 4)]) vector)", "[[1] [2] [3 4]]");
    check(
        "(let [n 3 f (fn [x] (* n x)) g (fn [x] (f (f x)))] (g 2))",
        "18",
    );
    check(
        "(do (defn f ([] (f 1)) ([a] (f a 2)) ([a b] (f a b 3)) ([a b & more] [a b more])) [(f) (f 9) (f 9 8) (f 9 8 7 6)])",
        "[[1 2 (3)] [9 2 (3)] [9 8 (3)] [9 8 (7 6)]]",
    );
    check(
        "((fn me [n] (if (= n 0) (fn? me) (me (dec n)))) 300)",
        "true",
    );
    check(
        "(letfn [(e? [n] (or (= n 0) (o? (dec n)))) (o? [n] (and (not= n 0) (e? (dec n))))] (e? 1001))",
        "false",
    );
    check("(let [f 5] (try (f 1) (catch Exception e :no)))", ":no");
}

#[test]
fn loops_test_at_their_end() {
    check("(loop [i 0] (if (< i 5) (recur (inc i)) i))", "5");
    check("(loop [i 9] (if (< i 5) (recur (inc i)) i))", "9");
    check("(loop [i 0] (if (>= i 5) [i] (recur (+ i 2))))", "[6]");
    check(
        "(loop [i 5 acc ()] (if (= i 0) acc (recur (dec i) (conj acc i))))",
        "(1 2 3 4 5)",
    );
    check(
        "(loop [xs [1 2 3] n 0] (if xs (recur (next xs) (+ n (first xs))) n))",
        "6",
    );
    check(
        "(loop [xs (seq [1 nil 3]) n 0] (if (nil? xs) n (recur (next xs) (inc n))))",
        "3",
    );
    check(
        "(loop [i 0 out []] (if (< i 6) (if (odd? i) (recur (inc i) out) (recur (+ i 1) (conj out i))) out))",
        "[0 2 4]",
    );
    check(
        "(loop [a true n 0] (if a (if (< n 3) (recur true (inc n)) (recur false n)) (if (< n 5) (recur true (+ n 2)) n)))",
        "5",
    );
    check(
        "(loop [a 1 b 2 n 0] (if (< n 3) (recur b a (inc n)) [a b]))",
        "[2 1]",
    );
    check(
        "(loop [a 0 b 1 n 0] (if (< n 10) (recur b (+ a b) (inc n)) a))",
        "55",
    );
    check(
        "(loop [a 0 b 1 n 0] (if (< n 10) (recur (+ a b) a (inc n)) [a b]))",
        "[55 34]",
    );
    check(
        "((fn [n acc] (if (= n 0) acc (recur (dec n) (* acc n)))) 10 1)",
        "3628800",
    );
    check(
        "((fn [x & xs] (if (seq xs) (recur (+ x (first xs)) (next xs)) x)) 1 2 3 4)",
        "10",
    );
    check(
        "(map (fn [f] (f)) (loop [i 0 fs []] (if (< i 3) (recur (inc i) (conj fs (fn [] i))) fs)))",
        "(0 1 2)",
    );
    check(
        "(let [n 4] ((fn [] (loop [i 0] (if (< i n) (recur (inc i)) i)))))",
        "4",
    );
    check("(loop [i 0] (if (< i 100000) (recur (inc i)) i))", "100000");
    check("(loop [i 0.5] (if (< i 3) (recur (inc i)) i))", "3.5");
    check("(loop [i 0] (if (<= i 2.5) (recur (inc i)) i))", "3");
    check("(loop [i 0] (if (< i 10N) (recur (+ i 3)) i))", "12");
    check("(loop [i 0] (if (< i 3/2) (recur (inc i)) i))", "2");
    check(
        "(loop [i 0 x 1] (if (< i 3) (let [j (inc i)] (recur j (if (= j 2) 1.5 x))) [i x]))",
        "[3 1.5]",
    );
    check(
        "(loop [i 0 v []] (if (< i 3) (recur (inc i) (loop [k 0 v v] (if (< k i) (recur (inc k) (conj v [i k])) v))) v))",
        "[[1 0] [2 0] [2 1]]",
    );
}

#[test]
fn failures_in_loops_are_handled_as_in_other_code() {
    check(
        "(loop [i 9223372036854775806] (if (> i 0) (recur (inc i)) i))",
        "ArithmeticException E0321: integer overflow",
    );
    check(
        "(loop [i 1] (if (< i 9223372036854775807) (recur (* i 3)) i))",
        "ArithmeticException E0321: integer overflow",
    );
    check(
        "(let [n nil] (try (loop [i 0] (if (< i n) (recur (inc i)) i)) (catch Exception e (.getMessage e))))",
        r#""< got nil as argument 2""#,
    );
    check(
        "(loop [i 0] (if (< i 5) (recur (try (if (= i 3) (throw (ex-info \"x\" {})) (inc i)) (catch Exception _ 9))) i))",
        "9",
    );
}

#[test]
fn every_loop_pays_fuel() {
    check_stops("(loop [i 0] (if (< i 1) (recur i) i))");
    check_stops("(loop [a true] (if a (recur a) 1))");
    check_stops("(loop [a nil] (if (nil? a) (recur a) 1))");
    check_stops("(loop [a nil] (if (some? a) 1 (recur a)))");
    check_stops("(loop [a true] (if a (recur false) (recur true)))");
    check_stops("(loop [i 1] (if (= i 0) 1 (recur 1)))");
    check_stops("((fn [n] (if (= n 0) n (recur n))) 1)");
    check_stops(
        "(do (defn f [n] (f n)) (try (f 1) (catch StackOverflowError _ (loop [] (recur)))))",
    );
    check_stops("(loop [] (recur))");
}

#[test]
fn natives_that_only_read_leave_their_arguments_in_registers() {
    check(
        "(let [m {1 :a} v [5 6]] [(get m 1) (get v v) (nth v 1) (get nil 1) (get m :x)])",
        "[:a nil 6 nil nil]",
    );
    check(
        "(let [a 6] [(rem a a) (quot a a) (bit-and a a) (bit-xor a a)])",
        "[0 1 6 0]",
    );
    check(
        "(let [a 7 b -2] [(rem a b) (mod a b) (quot a b) (/ a b) (/ a 2.0) (/ 6 3)])",
        "[1 -1 -3 -7/2 3.5 2]",
    );
    check(
        "(map (fn [x] [(zero? x) (pos? x) (neg? x)]) [0 1 -1 0.0 2.5 -0.5 0N 1/2])",
        "([true false false] [false true false] [false false true] [true false false] [false true false] [false false true] [true false false] [false true false])",
    );
    check(
        "(map count [nil [1] {1 2} '(1 2) \"abc\" (map inc [1 2]) #{1}])",
        "(0 1 1 2 3 2 1)",
    );
    check(
        "(map first [nil [] [1] '(2) (map inc [2]) \"a\" {1 2}])",
        "(nil nil 1 2 3 \\a [1 2])",
    );
    check(
        "(map empty? [nil [] [1] () '(1) \"\" (filter odd? [2])])",
        "(true true false true false true true)",
    );
    check(
        "(try (nth [1] 5) (catch IndexOutOfBoundsException _ :out))",
        ":out",
    );
    check(
        "(try (rem 1 0) (catch ArithmeticException _ :zero))",
        ":zero",
    );
    check(
        "(try (even? :a) (catch IllegalArgumentException _ :odd))",
        ":odd",
    );
    check("(let [xs (map inc (range 100000))] (count xs))", "100000");
    check(
        "(loop [i 10 n 0] (if (pos? i) (recur (quot i 2) (+ n (rem i 2))) n))",
        "2",
    );
    check(
        "(reduce (fn [m k] (assoc m k (inc (get m k 0)))) {} [1 2 1])",
        "{1 2, 2 1}",
    );
    check(
        "((fn f [n] (if (zero? n) 0 (+ 1 (reduce (fn [_ x] (f x)) 0 [(dec n)])))) 20)",
        "20",
    );
}
