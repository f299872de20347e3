//! Cases that break interpreters: depth, infinite sequences, inconsistent comparators, functions that read the cell
//! being changed.

use std::rc::Rc;

use flowstone_lang::value::Symbol;

use super::Runner;
use crate::budget::Budget;
use flowstone_lang::session::Session;

pub(super) fn limited(refills: u32) -> Runner {
    let session = Session::new();
    let vm = session.vm(Box::new(Budget::new(refills)));
    Runner { session, vm }
}

fn check(expression: &str, expected: &str) {
    assert_eq!(Runner::new().run(expression), expected, "{expression}");
}

/// Checks that an infinite evaluation ends with its fuel.
pub(super) fn check_stops(expression: &str) {
    let got = limited(4).run(expression);
    assert!(got.starts_with("stopped: "), "{expression} gives {got}");
}

#[test]
fn compositions_do_not_nest() {
    check("((reduce comp (repeat 100000 inc)) 0)", "100000");
    check(
        "(into [] (reduce comp (repeat 1000 (map inc))) [0])",
        "[1000]",
    );
}

#[test]
fn pipelines_do_not_nest() {
    check(
        "(reduce + (nth (iterate (fn [xs] (map inc xs)) [1 2]) 5000))",
        "10003",
    );
    check(
        "(count (nth (iterate #(remove neg? %) (range 10)) 5000))",
        "10",
    );
}

#[test]
fn deeply_nested_lazy_sequences_return_a_value_or_throw() {
    let got = Runner::new().run(
        "(let [xs (nth (iterate #(remove odd? %) (range)) 100000)] [(try (first xs) (catch Throwable _ :deep))])",
    );
    assert!(got == "[0]" || got == "[:deep]", "{got}");
    let got = Runner::new()
        .run("(try (count (reduce concat (repeat 100000 [1]))) (catch Throwable _ :deep))");
    assert!(got == "100000" || got == ":deep", "{got}");
}

#[test]
fn long_sequences_are_dropped_in_a_loop() {
    check(
        "(do (def xs (doall (map inc (range 1000000)))) (def xs nil) xs)",
        "nil",
    );
    check(
        "(do (def ys ((fn f [n] (lazy-seq (when (pos? n) (cons n (f (dec n)))))) 300000)) (count ys))",
        "300000",
    );
    check(
        "(count (reduce (fn [l x] (cons x l)) nil (range 300000)))",
        "300000",
    );
}

#[test]
fn infinite_work_stops_when_the_fuel_is_used_up() {
    check_stops("(count (range))");
    check_stops("(vec (range 1000000000000))");
    check_stops("(into [] (repeat 10000000000 :x))");
    check_stops("(reduce + (iterate inc 0))");
    check_stops("(last (cycle [1 2 3]))");
    check_stops("(doall (repeatedly (constantly 1)))");
    check_stops("(some neg? (range))");
    check_stops("(apply + (range))");
    check_stops("(first (filter neg? (range)))");
    check_stops("(sort (range))");
    check_stops("(pr-str (range))");
    check_stops("(str (repeat 1))");
    check_stops("(= (range) (iterate inc 0))");
    check_stops("(= (range) (range))");
    check_stops("(hash (repeat 1))");
    check_stops("(hash [(range)])");
    check_stops("(print (cycle [1]))");
    check_stops("(into {} (map (fn [i] [i i])) (range))");
    check_stops("(nth (iterate inc 0) 1000000000000)");
    check_stops("(last (drop-last 1 (range)))");
    check_stops("(try (count (range)) (catch Throwable _ :caught))");
    check_stops("(frequencies (cycle [1]))");
    check_stops("(reverse (range))");
    check_stops("(transduce (map inc) + (range))");
    check_stops("(first (flatten (repeat [])))");
    check_stops("(second (dedupe (repeat 1)))");
    check_stops("(first (mapcat (fn [_] nil) (range)))");
    for endless in [
        "(repeat 1)",
        "(cycle [1 2])",
        "(iterate inc 0)",
        "(range)",
        "(range 0 1 0)",
    ] {
        for call in [
            "(= XS (map identity XS))",
            "(apply max XS)",
            "(apply str XS)",
            "(clojure.string/join XS)",
            "(clojure.walk/postwalk identity XS)",
            "(count XS)",
            "(doseq [x XS] x)",
            "(every? some? XS)",
            "(first (keep-indexed (fn [_ _]) XS))",
            "(hash XS)",
            "(into #{} XS)",
            "(into-array XS)",
            "(last XS)",
            "(nth (map inc XS) 1000000000)",
            "(pr-str XS)",
            "(re-seq #\"1\" (str XS))",
            "(reduce + XS)",
            "(second (partition 1000000000 XS))",
            "(set XS)",
            "(shuffle XS)",
            "(some nil? XS)",
            "(sort XS)",
            "(str XS)",
            "(vec XS)",
        ] {
            check_stops(&call.replace("XS", endless));
        }
    }
}

#[test]
fn large_numbers_and_texts_cost_fuel_by_their_length() {
    check_stops(
        "(loop [a 3N, b nil] (recur (if (< (.bitLength (biginteger a)) 1000000) (* a a) a) (* a a)))",
    );
    check_stops("(let [a (.pow 3N 1000000)] (loop [] (*' a a) (recur)))");
    check_stops("(reduce str (repeat \"a\"))");
    let got = limited(1_000_000).run(
        "(let [big (.pow 3N 1000000)]
           (mapv #(try (%) (catch ArithmeticException e (ex-message e)))
                 [#(reduce *' (repeat 20 big)) #(.pow big 1000) #(.pow 1.1M 900000000)]))",
    );
    assert_eq!(
        got,
        "[\"BigInteger would overflow supported range\" \"BigInteger would overflow supported range\" \"Invalid operation: an exponent is from 0 to 1000000\"]"
    );
}

#[test]
fn an_inconsistent_comparator_results_in_some_order() {
    check("(count (sort (fn [a b] true) (range 100)))", "100");
    check("(count (sort (fn [a b] false) (range 100)))", "100");
    check("(count (sort (fn [a b] -1) (range 100)))", "100");
    check(
        "(count (sort (fn [a b] (if (odd? (+ a b)) 1 -1)) (range 1000)))",
        "1000",
    );
    check(
        "(try (sort (fn [a b] (throw (ex-info \"no\" {}))) [2 1]) (catch Exception e (ex-message e)))",
        "\"no\"",
    );
}

#[test]
fn a_sort_keeps_equal_items_in_order() {
    check(
        "(= (sort-by first (map vector (cycle [2 1 3]) (range 300)))
            (mapcat (fn [k] (filter #(= k (first %)) (map vector (cycle [2 1 3]) (range 300)))) [1 2 3]))",
        "true",
    );
}

#[test]
fn functions_may_read_the_cell_being_changed() {
    check("(let [a (atom 1)] (swap! a (fn [x] (+ x @a))))", "2");
    check(
        "(let [a (atom 1)] (swap! a (fn [x] (reset! a 10) (inc x))) @a)",
        "2",
    );
    check(
        "(let [a (atom 0)] (add-watch a :k (fn [_ r _ n] (when (< n 3) (swap! r inc)))) (swap! a inc) @a)",
        "3",
    );
    check(
        "(let [v (volatile! 1)] (vswap! v (fn [x] (+ x @v))) @v)",
        "2",
    );
    check(
        "(do (def xs (lazy-seq (cons 1 (rest xs)))) (try (doall xs) (catch Exception e :needs-itself)))",
        ":needs-itself",
    );
    check(
        "(let [d (atom nil)] (reset! d (delay @@d)) (try @@d (catch Exception e :needs-itself)))",
        ":needs-itself",
    );
}

#[test]
fn a_shared_collection_is_not_changed() {
    check(
        "(let [a [1 2] b (conj a 3) c (conj a 4)] [a b c])",
        "[[1 2] [1 2 3] [1 2 4]]",
    );
    check(
        "(let [a {:x 1} b (assoc a :x 2) c (update a :x dec)] [a b c])",
        "[{:x 1} {:x 2} {:x 0}]",
    );
    check(
        "(let [a {:x {:y 1}} b (update-in a [:x :y] inc) c (assoc-in a [:x :z] 0)] [a b c])",
        "[{:x {:y 1}} {:x {:y 2}} {:x {:y 1, :z 0}}]",
    );
    check(
        "(let [a #{1} b (conj a 2) c (disj a 1)] [a b c])",
        "[#{1} #{1 2} #{}]",
    );
    check(
        "(let [a [1 2 3] b (into a [4]) c (pop a)] [a b c])",
        "[[1 2 3] [1 2 3 4] [1 2]]",
    );
    check(
        "(let [a {:k [1]} f (fn [m] (update m :k conj 2))] [(f a) (f a) a])",
        "[{:k [1 2]} {:k [1 2]} {:k [1]}]",
    );
    check(
        "(let [a [1] t (transient a) _ (conj! t 2)] [a (persistent! t)])",
        "[[1] [1 2]]",
    );
    check(
        "(do (def shared {:n 1}) (let [f #(assoc shared :n 2)] [(f) shared]))",
        "[{:n 2} {:n 1}]",
    );
    check(
        "(let [m {:a 1}] [(try (update m :a (fn [_] (throw (ex-info \"x\" {})))) (catch Exception _ :x)) m])",
        "[:x {:a 1}]",
    );
}

#[test]
fn a_pipeline_runs_its_functions_once_and_in_order() {
    check(
        "(let [log (atom []) note (fn [k x] (swap! log conj [k x]) x)
               xs (filter #(note :f (odd? %)) (map #(note :m %) (list 1 2 3)))]
           [(reduce + xs) (reduce + xs) @log])",
        "[4 4 [[:m 1] [:f true] [:m 2] [:f false] [:m 3] [:f true]]]",
    );
    check(
        "(let [n (atom 0)] (first (drop 2 (map #(do (swap! n inc) %) (iterate inc 0)))) @n)",
        "3",
    );
    check(
        "(let [n (atom 0)] (doall (take 2 (map #(do (swap! n inc) %) (range)))) @n)",
        "2",
    );
    check(
        "(let [n (atom 0) f #(do (swap! n inc) %)]
           [(map f [1]) @n (filter f [1]) (mapcat list (map f [1]))
            (take-while f (map f [1])) (partition 2 (map f [1])) (interleave (map f [1]) [2]) @n])",
        "[(1) 0 (1) (1) (1) () (1 2) 0]",
    );
    check(
        "(let [n (atom 0) xs (map #(if (= 2 (swap! n inc)) (throw (ex-info \"two\" {})) %) [:a :b :c])]
           [(first xs) (try (second xs) (catch Exception e (ex-message e)))
            (try (doall xs) (catch Exception e (ex-message e))) @n])",
        "[:a \"two\" \"two\" 2]",
    );
}

#[test]
fn a_closed_session_leaves_nothing_behind() {
    let mut runner = Runner::new();
    runner.run(
        "(defn f [n] (if (pos? n) (f (dec n)) (map f [])))
         (defrecord R [a]) (defmulti m :a) (defmethod m 1 [_] (m {:a 2}))
         (def ^{:self #'f} later (delay (f 1)))",
    );
    let user = runner.session.world().current.borrow().clone();
    let function = user.lookup(Symbol::new("f")).expect("it is defined");
    let weak = [Rc::downgrade(&function)];
    drop((runner, user, function));
    assert!(weak.iter().all(|weak| weak.upgrade().is_none()));
}

#[test]
fn templates_in_templates_have_a_limit() {
    check("(count (read-string \"````a\"))", "2");
    let got = Runner::new().run(&format!("(read-string \"{}a\")", "`".repeat(70)));
    assert!(got.starts_with("RuntimeException E0115"), "{got}");
}

#[test]
fn scope_and_order_of_evaluation_are_those_of_clojure() {
    check(
        "(let [n (atom 0)] (try (try (swap! n inc) (throw (ex-info \"x\" {})) (finally (swap! n + 10))) (catch Exception _)) @n)",
        "11",
    );
    check(
        "((fn [a & more] (if (seq more) (recur (+ a (first more)) (rest more)) a)) 1 2 3 4)",
        "10",
    );
    check(
        "(map #(%) (loop [i 0 fs []] (if (< i 3) (recur (inc i) (conj fs (fn [] i))) fs)))",
        "(0 1 2)",
    );
    check(
        "(do (defn g [] 1) (def held g) (defn h [] (g)) (defn g [] 2) [(held) (h) (#'g)])",
        "[1 2 2]",
    );
    check(
        "(do (defmacro maker [name x] `(defmacro ~name [] ~x)) (maker seven 7) (seven))",
        "7",
    );
    check(
        "(ns one) (defn secret [] :one) (defmacro call [] `(secret)) (ns two) (defn secret [] :two) (one/call)",
        ":one",
    );
    check(
        "(do (defmacro late [] 5) (def from-late (late)) from-late)",
        "5",
    );
    check("(reduce + (map inc (range 1000000)))", "500000500000");
}

#[test]
fn a_vector_does_not_share_the_array_that_it_was_made_of() {
    check(
        "(let [a (object-array [1 2]) v (vec a)] (aset a 0 9) [v (vec a)])",
        "[[1 2] [9 2]]",
    );
}

#[test]
fn namespaces_of_the_library_have_documentation() {
    check(
        "(mapv #(string? (:doc (meta (find-ns %)))) '[clojure.core clojure.string])",
        "[true true]",
    );
    check(
        "(do (require 'clojure.walk 'clojure.repl) (with-out-str (clojure.repl/doc clojure.walk)))",
        r#""-------------------------\nclojure.walk\n  Traversal and transformation of nested data.\n""#,
    );
    check(
        "(:doc (alter-meta! (find-ns 'clojure.string) assoc :own 1))",
        r#""Functions of strings. None of them changes its argument.""#,
    );
}
