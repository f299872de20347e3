//! Changes that code makes to its session: runs of a program share a session until one of them changes it.

use flowstone_lang::session::Session;

/// Evaluates a form; returns how often it changed state shared by all evaluations of the session.
fn changes(text: &str) -> u64 {
    let session = Session::new();
    let before = session.world().generation();
    let value = session.evaluate(text);
    assert!(value.is_ok(), "{text}: {value:?}");
    session.world().generation() - before
}

#[test]
fn ordinary_code_does_not_change_its_session() {
    let ordinary = [
        "(mapv #(assoc % :a 1) [{} {:b 2}])",
        "(let [{:keys [a] [b & more] :b :or {a 1}} {:b [1 2 3]}] [a b more])",
        "(for [x (range 3) y [:a :b] :when (odd? x)] [x y])",
        "(doseq [x [1 2]] (str x))",
        "(case (+ 1 1) 2 :two :other)",
        "(cond-> {} true (assoc :a 1))",
        "(some-> {:a {:b 1}} :a :b)",
        "(let [n (atom 0)] (add-watch n :k (fn [& _])) (swap! n inc) (reset! n 2) @n)",
        "(let [n (volatile! 0)] (vswap! n inc) @n)",
        "(let [f (memoize inc)] [(f 1) (f 1)])",
        "(let [d (delay 1)] [@d (realized? d)])",
        "(let [p (promise)] (deliver p 1) @p)",
        "(binding [*print-length* 3] (pr-str (range 10)))",
        "(with-out-str (println 1))",
        "(with-meta [] {:a 1 :def 2})",
        "(with-open [] 1)",
        "(clojure.string/join \", \" [1 2])",
        "(clojure.set/union #{1} #{2})",
        "(clojure.walk/postwalk identity {:a [1 2]})",
        "(with-out-str (clojure.pprint/pprint {:a 1}))",
        "(try (throw (ex-info \"no\" {:a 1})) (catch Exception e (ex-data e)))",
        "(isa? :a :b)",
        "(isa? (derive (make-hierarchy) :a/b :a/c) :a/b :a/c)",
        "(clojure.edn/read-string \"{:a 1}\")",
        "(read-string \"{:a [1 2]}\")",
        "(format \"%d\" 1)",
        "(resolve 'inc)",
        "(ns-name *ns*)",
        "'def",
        "(letfn [(even [n] (or (zero? n) (odd (dec n)))) (odd [n] (and (pos? n) (even (dec n))))] (even 4))",
        "(sort-by :a [{:a 2} {:a 1}])",
        "(transduce (map inc) + [1 2])",
        "(re-seq #\"a.\" \"abac\")",
    ];
    for text in ordinary {
        assert_eq!(changes(text), 0, "{text}");
    }
}

#[test]
fn changes_of_shared_state_are_counted() {
    let changing = [
        "(def a 1)",
        "(declare a)",
        "(defn f [] 1)",
        "(when (= 1 2) (def a 1))",
        "(defmulti area :shape)",
        "(defrecord Point [x y])",
        "(swap! @#'clojure.core/global-hierarchy assoc :parents {})",
        "(derive :a/b :a/c)",
        "(alter-var-root #'inc identity)",
        "(with-redefs [inc dec] (inc 1))",
        "(intern 'user 'made 1)",
        "(alias 'text 'clojure.string)",
        "(require '[clojure.string :as text])",
        "(refer 'clojure.string :only '[join])",
        "(refer-clojure :exclude '[map])",
        "(create-ns 'made.here)",
        "(in-ns 'made.here)",
        "(ns-unmap 'user 'not-there)",
        "(ns-unalias 'user 'not-there)",
        "(remove-ns 'not.there)",
        "(binding [*ns* (the-ns 'user)] 1)",
        "(add-watch #'inc :k (fn [& _]))",
        "(set-validator! #'inc fn?)",
        "(alter-meta! #'inc assoc :a 1)",
        "(defmethod print-method :mine [x out] (print x))",
        "(extend-protocol clojure.core.protocols/Datafiable String (datafy [x] x))",
        "(reify Object (toString [_] \"me\"))",
        "(set! *warn-on-reflection* true)",
        "(add-tap identity)",
    ];
    for text in changing {
        assert!(changes(text) > 0, "{text}");
    }
}

#[test]
fn queries_of_the_loaded_library_are_counted() {
    let asking = [
        "(all-ns)",
        "(loaded-libs)",
        "(find-ns 'clojure.walk)",
        "(resolve 'clojure.walk/postwalk)",
        "(gensym)",
        "(macroexpand '(or 1 2))",
        "(eval '(+ 1 2))",
        "(load-string \"(inc 1)\")",
        "(read-string \"#(inc %)\")",
        "(destructure '[[a] b])",
    ];
    for text in asking {
        assert!(changes(text) > 0, "{text}");
    }
}
