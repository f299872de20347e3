//! Hostile expressions: each ends soon with little fuel, after an interrupt, and with a small heap.

#![expect(clippy::disallowed_methods, reason = "a guard stops what does not end")]

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use flowstone_lang::value::Stop;
use flowstone_lang::{Interrupt, Sandbox, Session};

/// Instructions of each run with little fuel.
const FUEL: u64 = 300_000;
/// Time after which the interrupt comes.
const PATIENCE: Duration = Duration::from_millis(30);
/// Maximum time of a run after the interrupt. Debug builds on a busy machine are slow.
const SOON: Duration = Duration::from_secs(20);
/// Bytes of each run with a small heap.
const HEAP: usize = 24_000_000;

const SHARED: &str = "(let [make (fn [] (nth (iterate (fn [x] [x x]) 1) 44)), x (make), y (make)] ";

/// Expressions, and how they end with little fuel: a code, `fuel`, `memory`, or the printed value; `*` if it depends on
/// the build.
#[rustfmt::skip]
const NUMBERS: &[(&str, &str)] = &[
    ("(+ 1e999999999M 1M)", "E0327"),
    ("(- 1M 1e999999999M)", "E0327"),
    ("(+ 1e-999999999M 1M)", "E0327"),
    ("(bigint 1e999999999M)", "E0327"),
    ("(biginteger 1e999999999M)", "E0327"),
    ("(long 1e999999999M)", "E0326"),
    ("(int -1e999999999M)", "E0326"),
    ("(long 1e-999999999M)", "0"),
    ("(rationalize 1e999999999M)", "E0327"),
    ("(rationalize 1e-999999999M)", "E0327"),
    ("(quot 1e999999999M 1M)", "E0327"),
    ("(quot 1M 1e999999999M)", "0E-999999999M"),
    ("(rem 1e999999999M 3M)", "E0327"),
    ("(mod 1e999999999M 3M)", "E0327"),
    ("(/ 1e999999999M 3M)", "E0324"),
    ("(str 1e999999999M)", "\"1E+999999999\""),
    ("(pr-str 1e-999999999M)", "\"1E-999999999M\""),
    ("(read-string \"1e999999999M\")", "1E+999999999M"),
    ("(< 1e999999998M 1e999999999M)", "true"),
    ("(== 1e999999999M 1N)", "false"),
    ("(= 1e999999999M 1M)", "false"),
    ("(= #{1e999999999M} #{1e999999999M})", "true"),
    ("(compare -1e999999999M 1/3)", "-1"),
    ("(compare 1e-999999999M 1/3)", "-1"),
    ("(int? (hash 1e999999999M))", "true"),
    ("(double 1e999999999M)", "##Inf"),
    ("(double 1e-999999999M)", "0.0"),
    ("(* 1.0 1e999999999M)", "##Inf"),
    ("(+ 1/3 1e999999999M)", "E0324"),
    ("(format \"%.2f\" 1e999999999M)", "E0327"),
    ("(format \"%s\" 1e999999999M)", "\"1E+999999999\""),
    ("(.toPlainString 1e999999999M)", "E0327"),
    ("(.setScale 1e999999999M 2)", "E0327"),
    ("(.stripTrailingZeros 10e999999999M)", "1E+1000000000M"),
    ("(with-precision 50000000 (/ 1M 3M))", "E0327"),
    ("(with-precision 2000000 (/ 1M 3M))", "fuel"),
    ("(with-precision 10 (+ 1e999999999M 1M))", "1.000000000E+999999999M"),
    ("(nth (iterate #(/ (+ % (/ 1 %)) 2) 3) 24)", "fuel"),
    ("(reduce + (map #(/ 1 %) (range 1 1000000)))", "fuel"),
    ("(reduce * (repeat 400000 1000000007N))", "fuel"),
    ("(apply *' (range 1 200000))", "fuel"),
    ("(loop [n 3N] (recur (* n n)))", "fuel"),
    ("(loop [n 1.000000001M] (recur (* n n)))", "fuel"),
    ("(loop [n 10000000000000000000001N] (recur (+ n (quot (* n n) 3))))", "fuel"),
    ("(.pow 2N 999999999)", "E0360"),
    ("(count (str (.pow 3N 1000000)))", "fuel"),
    ("(.modPow 3N (.pow 7N 20000) (.pow 11N 20000))", "fuel"),
    ("(.gcd (.pow 3N 300000) (inc' (.pow 5N 200000)))", "fuel"),
    ("(.isProbablePrime (inc' (.pow 2N 100000)) 10)", "fuel"),
    ("(.sqrt (.pow 3N 1000000))", "fuel"),
    ("(hash (.pow 3N 500000))", "fuel"),
    ("(bit-shift-left 1 1000000)", "1"),
    ("(loop [n 1N] (recur (+ n n)))", "fuel"),
];

/// Values that contain themselves many times over.
#[rustfmt::skip]
const SHARING: &[(&str, &str)] = &[
    ("(pr-str x)", "fuel"),
    ("(str x)", "fuel"),
    ("(str \"a\" [x])", "fuel"),
    ("(println x)", "fuel"),
    ("(with-out-str (prn x))", "fuel"),
    ("(clojure.pprint/pprint x)", "fuel"),
    ("(format \"%s\" x)", "fuel"),
    ("(clojure.string/join [x])", "fuel"),
    ("(= x y)", "true"),
    ("(= (list x x) (list y y))", "true"),
    ("(= {:a x} {:a y})", "true"),
    ("(= #{x} #{y})", "true"),
    ("(= x (assoc y 1 (assoc (y 1) 0 2)))", "false"),
    ("(compare x y)", "fuel"),
    ("(compare x x)", "0"),
    ("(sorted-set x y)", "fuel"),
    ("(sort [x y])", "fuel"),
    ("(int? (hash x))", "true"),
    ("(= (hash x) (hash y))", "true"),
    ("(count (set [x y]))", "1"),
    ("(count (distinct [x y]))", "1"),
    ("(get {x 1} y)", "1"),
    ("(contains? #{[x]} [y])", "true"),
    ("(count (frequencies [x y x]))", "1"),
    ("(count (group-by identity [x y]))", "1"),
    ("(count (hash-map x 1 y 2))", "1"),
    ("(int? (hash (map identity [x x])))", "true"),
    ("(int? (hash {:a x :b y}))", "true"),
    ("(int? (hash #{x [x]}))", "true"),
    ("(count (flatten x))", "fuel"),
    ("(count (tree-seq vector? seq x))", "fuel"),
    ("(clojure.walk/postwalk identity x)", "*"),
    ("(clojure.walk/prewalk identity x)", "*"),
    ("(clojure.walk/keywordize-keys x)", "*"),
    ("(clojure.data/diff x y)", "fuel"),
    ("(throw (ex-info \"m\" {:x x}))", ""),
    ("(nth x x)", "E0301"),
    ("(inc x)", "E0301"),
    ("(pr-str (nth (iterate (fn [x] (list x x)) 1) 300))", "fuel"),
    ("(int? (hash (nth (iterate (fn [x] (list x x)) 1) 300)))", "true"),
    ("(= (nth (iterate (fn [x] {:l x :r x}) 1) 300) (nth (iterate (fn [x] {:l x :r x}) 1) 300))", "true"),
];

/// Infinite sequences.
#[rustfmt::skip]
const ENDLESS: &[(&str, &str)] = &[
    ("(pr-str (range))", "fuel"),
    ("(println (iterate inc 0))", "fuel"),
    ("(clojure.pprint/pprint (cycle [1 2 3]))", "fuel"),
    ("(count (range Long/MIN_VALUE Long/MAX_VALUE))", "fuel"),
    ("(hash (range))", "fuel"),
    ("(= (range) (range))", "fuel"),
    ("(= (repeat 1) (cycle [1]))", "fuel"),
    ("(apply str (repeat \"x\"))", "fuel"),
    ("(clojure.string/join \",\" (repeat 1))", "fuel"),
    ("(vec (range))", "fuel"),
    ("(set (cycle [1 2]))", "fuel"),
    ("(sort (range))", "fuel"),
    ("(reduce + (repeat 0))", "fuel"),
    ("(transduce (map inc) (completing (fn [_ x] x)) nil (range))", "fuel"),
    ("(last (range))", "fuel"),
    ("(reverse (range))", "fuel"),
    ("(apply max (range))", "fuel"),
    ("(first (filter neg? (range)))", "fuel"),
    ("(some neg? (range))", "fuel"),
    ("(every? int? (range))", "fuel"),
    ("(nth (repeat 1) 1000000000000)", "fuel"),
    ("(frequencies (cycle [1 2]))", "fuel"),
    ("(zipmap (range) (range))", "fuel"),
    ("(into-array (range))", "fuel"),
    ("(partition-all 3 1)", "E0301"),
    ("(dorun (map inc (range)))", "fuel"),
    ("(first (drop-while int? (range)))", "fuel"),
    ("(clojure.walk/postwalk identity (range))", "fuel"),
    ("(loop [] (recur))", "fuel"),
    ("(while true)", "fuel"),
    ("(do (defmacro endless [] (cons 'list (range))) (endless))", "fuel"),
    ("(do (defmacro again [] '(again)) (again))", "fuel"),
    ("(do (defmacro twice [n] (list 'do (list 'twice (inc n)) (list 'twice (inc n)))) (twice 0))", "E0302"),
];

/// Expressions that backtrack, or that need much memory.
#[rustfmt::skip]
const GROWING: &[(&str, &str)] = &[
    ("(re-find #\"(a+)+\\1b\" (apply str (repeat 40 \"a\")))", "fuel"),
    ("(re-matches #\"(x+x+)+\\1y\" (apply str (repeat 40 \"x\")))", "fuel"),
    ("(clojure.string/replace (apply str (repeat 40 \"a\")) #\"(a|aa)+\\1$\" \"\")", "\"\""),
    ("(count (re-seq #\"(?=(a+))\" (apply str (repeat 20000 \"a\"))))", "fuel"),
    ("(clojure.string/split (apply str (repeat 40 \"a\")) #\"(a*)*\\1b\")", "fuel"),
    ("(loop [s \"x\"] (recur (str s s)))", "fuel"),
    ("(loop [s \"xx\"] (recur (clojure.string/replace s \"x\" s)))", "memory"),
    ("(loop [s \"x\"] (recur (clojure.string/upper-case (str s s))))", "fuel"),
    ("(format \"%999999999d\" 1)", "E0382"),
    ("(loop [v []] (recur (conj v (vec (range 1000)))))", "fuel"),
    ("(loop [v [1]] (recur (into v v)))", "fuel"),
    ("(loop [m {}] (recur (assoc m m 1)))", "fuel"),
    ("(loop [s #{}] (recur (conj s s)))", "fuel"),
    ("(loop [l ()] (recur (conj l l)))", "fuel"),
    ("(vec (repeat 1000000000 0))", "fuel"),
    ("(doall (repeat 10000000000 0))", "fuel"),
    ("(long-array 2000000000)", "E0328"),
    ("(let [a (atom [])] (while true (swap! a conj (range 10) (str (rand)))))", "fuel"),
    ("(reduce conj #{} (map str (range)))", "fuel"),
];

/// Returns how an evaluation ended.
fn end_of(host: Sandbox, expression: &str) -> String {
    let session = Session::new();
    let print = format!("(pr-str {expression})");
    let text = match expression.starts_with("(do (defmacro") {
        true => expression,
        false => &print,
    };
    match session.evaluate_in(host, "hostile", text) {
        Ok(value) => value.as_str().unwrap_or("a value").to_owned(),
        Err(failure) => match failure.stop() {
            Some(Stop::OutOfFuel) => "fuel".to_owned(),
            Some(Stop::OutOfMemory(_)) => "memory".to_owned(),
            Some(Stop::Interrupted(_)) => "interrupted".to_owned(),
            Some(other) => other.to_string(),
            None => failure.code().to_owned(),
        },
    }
}

/// Runs `work` on a separate thread; fails if it takes far too long.
fn guarded<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = mpsc::channel();
    thread::Builder::new()
        .stack_size(16 << 20)
        .spawn(move || send.send(work()))
        .unwrap();
    let ended = receive.recv_timeout(Duration::from_secs(120));
    ended.unwrap_or_else(|_| panic!("{what} does not end"))
}

fn expressions(
    rows: &'static [(&'static str, &'static str)],
    shared: bool,
) -> Vec<(String, &'static str)> {
    let whole = |expression: &str| match shared {
        true => format!("{SHARED}{expression})"),
        false => expression.to_owned(),
    };
    rows.iter()
        .map(|(expression, end)| (whole(expression), *end))
        .collect()
}

fn little_fuel(rows: Vec<(String, &'static str)>) {
    let mut wrong = Vec::new();
    for (expression, expected) in rows {
        let text = expression.clone();
        let end = guarded(&expression, move || {
            end_of(Sandbox::new().fuel(FUEL).heap_limit(400_000_000), &text)
        });
        if expected != "*" && end != expected {
            wrong.push(format!("{expression}: expected {expected}, got {end}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn interrupted(rows: Vec<(String, &'static str)>) {
    for (expression, _) in rows {
        let text = expression.clone();
        let (end, after) = guarded(&expression, move || {
            let interrupt = Interrupt::new();
            let flag = interrupt.clone();
            let timer = thread::spawn(move || {
                thread::sleep(PATIENCE);
                flag.trigger();
            });
            let begun = Instant::now();
            let host = Sandbox::new()
                .interrupt(&interrupt)
                .heap_limit(2_000_000_000);
            let end = end_of(host, &text);
            timer.join().unwrap();
            (end, begun.elapsed().saturating_sub(PATIENCE))
        });
        assert!(after < SOON, "{expression}: {end} only after {after:?}");
        assert_ne!(end, "fuel", "{expression}");
    }
}

fn small_heap(rows: Vec<(String, &'static str)>) {
    for (expression, _) in rows {
        let text = expression.clone();
        let end = guarded(&expression, move || {
            end_of(Sandbox::new().heap_limit(HEAP).fuel(3 * FUEL), &text)
        });
        assert_ne!(end, "interrupted", "{expression}");
    }
}

#[test]
fn numbers_end_with_little_fuel() {
    little_fuel(expressions(NUMBERS, false));
}

#[test]
fn numbers_end_when_they_are_interrupted() {
    interrupted(expressions(NUMBERS, false));
}

#[test]
fn numbers_end_with_a_small_heap() {
    small_heap(expressions(NUMBERS, false));
}

#[test]
fn shared_values_end_with_little_fuel() {
    little_fuel(expressions(SHARING, true));
}

#[test]
fn shared_values_end_when_they_are_interrupted() {
    interrupted(expressions(SHARING, true));
}

#[test]
fn shared_values_end_with_a_small_heap() {
    small_heap(expressions(SHARING, true));
}

#[test]
fn infinite_sequences_end_with_little_fuel() {
    little_fuel(expressions(ENDLESS, false));
}

#[test]
fn infinite_sequences_end_when_they_are_interrupted() {
    interrupted(expressions(ENDLESS, false));
}

#[test]
fn infinite_sequences_end_with_a_small_heap() {
    small_heap(expressions(ENDLESS, false));
}

#[test]
fn growing_values_end_with_little_fuel() {
    little_fuel(expressions(GROWING, false));
}

#[test]
fn growing_values_end_when_they_are_interrupted() {
    interrupted(expressions(GROWING, false));
}

#[test]
fn growing_values_end_with_a_small_heap() {
    small_heap(expressions(GROWING, false));
}
