//! A finished run leaves no memory behind, as counted by the allocator. `cargo run --release -p flowstone-embed
//! --example soak` checks the same with more programs and 10,000 runs of each.

use std::rc::Rc;

use flowstone_embed::{Embed, Function};
use flowstone_lang::value::heap::thread_bytes;
use flowstone_lang::{Sandbox, Session};

/// Returns the number of bytes that each of `runs` runs leaves behind, after a few warm-up runs.
fn left_behind(runs: isize, run: impl Fn()) -> isize {
    for _ in 0..runs / 2 + 2 {
        run();
    }
    let before = thread_bytes();
    for _ in 0..runs {
        run();
    }
    (thread_bytes() - before) / runs
}

const CYCLES: &[&str] = &[
    "(let [a (atom nil)] (reset! a (fn [] @a)) 1)",
    "(let [v (volatile! nil)] (vreset! v [v]) 1)",
    "(let [a (atom 0)] (add-watch a :w (fn [_ r _ _] (deref a))) (swap! a inc))",
    "(let [a (atom nil) s (lazy-seq (cons 1 @a))] (reset! a s) (first s))",
    "(let [a (atom nil) d (delay (count @a))] (reset! a [d]) @d)",
    "(let [p (promise)] (deliver p [p]) 1)",
    "(letfn [(ev? [n] (or (zero? n) (od? (dec n)))) (od? [n] (and (pos? n) (ev? (dec n))))] (ev? 6))",
    "(let [a (atom {})] (swap! a assoc :self a :more (vec (range 100))) (count @a))",
    "(let [a (object-array 1)] (aset a 0 [a]) 1)",
    "(def lost (fn [] lost)) (ns-unmap *ns* 'lost)",
];

const DEFINITIONS: &[&str] = &[
    "(+ 1 2)",
    "(defmacro m [x] `(let [y# ~x] [y# y#])) (defn f [{:keys [a] [b & c] :d}] (m [a b c])) (f {:a 1 :d [1 2 3]})",
    "(defprotocol P (p [this])) (defrecord R [a] P (p [this] a)) (defmulti k type) (defmethod k :default [x] (p x)) (k (->R 1))",
    "(require '[clojure.string :as s]) (s/join \",\" (map inc [1 2]))",
    "(try (throw (ex-info \"x\" {:a 1})) (catch Exception e (ex-data e)))",
    "(not-there 1)",
];

#[test]
fn a_session_leaves_nothing_behind() {
    for text in DEFINITIONS.iter().chain(CYCLES) {
        let left = left_behind(20, || {
            let session = Session::new();
            let _ = session.evaluate(text);
        });
        assert_eq!(left, 0, "{text}");
    }
}

#[test]
fn cycles_are_freed_while_their_session_is_in_use() {
    let session = Session::new();
    for text in CYCLES {
        // A thousand texts are kept for errors and a few hundred cycles wait to be collected; beyond that nothing
        // grows.
        let left = left_behind(2200, || {
            session.evaluate(text).expect("it runs");
        });
        assert!(left < 100, "{text}: {left} bytes a run");
    }
}

#[test]
fn live_values_are_not_freed_as_garbage() {
    let session = Session::new();
    let text = "
        (def kept (atom nil))
        (reset! kept {:self kept :f (fn [] (:n @kept)) :n 7})
        (def pair (letfn [(a [n] (if (pos? n) (b (dec n)) :a)) (b [n] (if (pos? n) (a (dec n)) :b))] [a b]))
        (def cells (mapv (fn [n] (let [a (atom n)] (add-watch a :w (fn [_ _ _ _] @a)) a)) (range 2000)))
        (def shared (let [a (atom 5)] [(conj (vec (range 40)) a) (conj (vec (range 50)) a)]))
        (dotimes [_ 5000] (let [a (atom nil)] (reset! a [a kept])))
        [((:f @kept)) ((first pair) 5) (reduce + (map deref cells)) (deref (peek (first shared)))
         (identical? kept (:self @kept))]";
    let value = session.evaluate(text).expect("it runs");
    assert_eq!(value.to_string(), "[7 :b 1999000 5 true]");
}

#[test]
fn a_function_that_holds_its_session_is_freed_when_that_is_closed() {
    let left = left_behind(20, || {
        let session = Rc::new(Session::new());
        let inner = session.clone();
        session.add(Function::new("again", move |text: String| {
            inner
                .evaluate(&text)
                .map_or_else(|error| error.to_string(), |value| value.to_string())
        }));
        let value = session.evaluate_in(Sandbox::new(), "outer", "(again \"(+ 1 2)\")");
        assert_eq!(value.expect("it runs").as_str(), Some("3"));
        session.close();
    });
    assert_eq!(left, 0);
}

#[test]
fn a_bounded_number_of_texts_is_kept_for_errors() {
    let session = Session::new();
    let load = "(defn broken [x]\n  (inc x))";
    session
        .evaluate_in(Sandbox::new(), "early.clj", load)
        .expect("defines");
    let left = left_behind(2200, || {
        session
            .evaluate("(read-string \"(a b c)\")")
            .expect("reads");
    });
    assert!(left < 16, "{left} bytes a run");
    let failure = session.evaluate("(broken :x)").expect_err("no number");
    let place = failure.diagnostic().place.clone().expect("still known");
    assert_eq!((&*place.file, place.line), ("early.clj", 2));
}
