//! Long native operations pay for their work while they do it: a limit ends each of them part-way.

use std::cell::Cell;
use std::rc::Rc;

use flowstone_lang::session::Session;
use flowstone_lang::value::meter::Watch;
use flowstone_lang::value::{Result, Signal, Stop};
use flowstone_lang::vm::{Host, NoHost, Stream};

/// Number of payments after which an operation is stopped.
const PAYMENTS: u32 = 4;

/// Each row: the value to create first, as `x`, and the operation on it. No operation finishes within four payments.
const OPERATIONS: &[(&str, &str)] = &[
    ("nil", "(reduce *' (range 1 200000))"),
    ("nil", "(apply *' (range 1 100000))"),
    ("nil", "(nth (iterate (fn [x] (*' x x)) 3N) 22)"),
    ("nil", "(reduce + (map (fn [k] (/ 1 k)) (range 1 3000)))"),
    ("nil", "(nth (iterate #(/ (+ % (/ 1 %)) 2) 3) 18)"),
    ("nil", "(+ 1e4999999M 1M)"),
    ("nil", "(with-precision 400000 (/ 1M 3M))"),
    ("(apply str (repeat 400000 \"7\"))", "(bigint x)"),
    ("(bigint (apply str (repeat 200000 \"7\")))", "(str x)"),
    (
        "(bigint (apply str (repeat 400000 \"7\")))",
        "(quot x (bigint (apply str (repeat 200000 \"3\"))))",
    ),
    ("(repeat 300000 \"abc\")", "(apply str x)"),
    ("(vec (range 300000))", "(clojure.string/join \",\" x)"),
    (
        "(apply str (repeat 300000 \"ab\"))",
        "(clojure.string/replace x #\"[ab]\" \"c\")",
    ),
    (
        "(apply str (repeat 300000 \"ab\"))",
        "(clojure.string/replace x #\"a\" (fn [m] m))",
    ),
    (
        "(apply str (repeat 300000 \"a,\"))",
        "(clojure.string/split x #\",\")",
    ),
    (
        "(apply str (repeat 300000 \"a1\"))",
        "(count (re-seq #\"[a-z]\\d\" x))",
    ),
    (
        "(apply str (repeat 40 \"a\"))",
        "(re-matches #\"(a+)+\\1b\" x)",
    ),
    ("(vec (shuffle (range 300000)))", "(sort x)"),
    ("(vec (shuffle (range 300000)))", "(sort > x)"),
    (
        "(vec (shuffle (range 100000)))",
        "(sort (fn [a b] (compare b a)) x)",
    ),
    ("(mapv str (shuffle (range 200000)))", "(sort x)"),
    (
        "(let [s (apply str (repeat 2000000 \"a\"))] (mapv (fn [i] (str s i)) (range 8)))",
        "(sort (concat x (reverse x)))",
    ),
    (
        "(let [s (apply str (repeat 20000000 \"a\"))] [(str s 1) (str s 2)])",
        "(compare (first x) (second x))",
    ),
    ("(vec (range 300000))", "(frequencies x)"),
    ("(vec (range 300000))", "(group-by even? x)"),
    ("(vec (range 300000))", "(count (distinct x))"),
    ("(vec (range 300000))", "(into #{} x)"),
    ("(vec (range 300000))", "(hash x)"),
    ("(vec (range 300000))", "(= x (apply list x))"),
    ("(vec (range 300000))", "(pr-str x)"),
    (
        "(vec (range 100000))",
        "(with-out-str (clojure.pprint/pprint x))",
    ),
    (
        "(vec (range 100000))",
        "(clojure.pprint/cl-format nil \"~{~a~^,~}\" x)",
    ),
    ("(vec (range 300000))", "(shuffle x)"),
    ("(vec (range 300000))", "(apply hash-map x)"),
    (
        "(zipmap (range 100000) (range))",
        "(reduce-kv (fn [a k v] (+ a v)) 0 x)",
    ),
    ("(zipmap (range 100000) (range))", "(merge {-1 1} x)"),
    (
        "nil",
        "(persistent! (reduce conj! (transient []) (range 1000000)))",
    ),
    ("nil", "(reduce + (range 1000000000000))"),
    ("nil", "(count (iterate inc 0))"),
    ("nil", "(pr-str (nth (iterate (fn [x] [x x]) 1) 44))"),
    ("(vec (range 300000))", "(apply list x)"),
    ("(vec (range 300000))", "(apply hash-set x)"),
    ("(vec (range 300000))", "(apply sorted-set x)"),
    ("(vec (range 300000))", "(apply sorted-map x)"),
    ("(vec (range 300000))", "(apply distinct? x)"),
    (
        "(apply str (repeat 1000000 \"aé\"))",
        "(clojure.string/reverse x)",
    ),
    (
        "(apply str (repeat 300000 \"ab\"))",
        "(clojure.string/replace x \"a\" \"bb\")",
    ),
    (
        "(apply str (repeat 300000 \"ab\"))",
        "(clojure.string/replace x \\a \\c)",
    ),
    (
        "(apply str (repeat 300000 \"ab\"))",
        "(clojure.string/escape x {\\a \"b\"})",
    ),
    ("nil", "(byte-array 10000000)"),
    ("nil", "(long-array 10000000 7)"),
    ("(pr-str (vec (range 100000)))", "(read-string x)"),
    (
        "(pr-str (vec (range 100000)))",
        "(clojure.edn/read-string x)",
    ),
    ("(vec (range 100000))", "(clojure.walk/postwalk identity x)"),
    ("(apply str (repeat 2000000 \"ab c\"))", "(keyword x)"),
    ("(apply str (repeat 2000000 \"ab c\"))", "(keyword \"a\" x)"),
    ("(apply str (repeat 2000000 \"ab c\"))", "(symbol x)"),
    ("(apply str (repeat 2000000 \"ab c\"))", "(symbol \"a\" x)"),
    ("(apply str (repeat 2000000 \"ab c\"))", "(str x x)"),
    (
        "(apply str (repeat 2000000 \"ab c\"))",
        "(clojure.string/join \",\" [x x])",
    ),
    (
        "(apply str (repeat 2000000 \"ab c\"))",
        "(clojure.string/upper-case x)",
    ),
    (
        "(apply str (repeat 2000000 \"ab c\"))",
        "(clojure.string/lower-case x)",
    ),
    (
        "(apply str (repeat 2000000 \"ab c\"))",
        "(clojure.string/capitalize x)",
    ),
    (
        "(apply str (repeat 2000000 \"ab c\"))",
        "(clojure.string/includes? x \"zz\")",
    ),
    (
        "(apply str (repeat 2000000 \"ab c\"))",
        "(clojure.string/index-of x \"zz\")",
    ),
    (
        "(apply str (repeat 2000000 \"ab c\"))",
        "(clojure.string/last-index-of x \"zz\")",
    ),
    ("(apply str (repeat 2000000 \"ab c\"))", "(munge x)"),
    (
        "(apply str (repeat 2000000 \"    \"))",
        "(clojure.string/blank? x)",
    ),
];

/// Stops an evaluation after a number of payments for instructions or native work.
#[derive(Default)]
struct Payments {
    left: Cell<Option<u32>>,
}

impl Payments {
    fn take(&self) -> Result<(), Stop> {
        match self.left.get() {
            None => Ok(()),
            Some(left) => {
                let left = left.checked_sub(1).ok_or(Stop::OutOfFuel)?;
                self.left.set(Some(left));
                Ok(())
            }
        }
    }
}

impl Watch for Payments {
    fn spend(&self, _: u64) -> Result<(), Stop> {
        self.take()
    }
}

struct Paying(Rc<Payments>);

impl Host for Paying {
    fn refill(&mut self) -> Result<u32, Stop> {
        self.0.take()?;
        Ok(20_000)
    }

    fn watch(&self) -> Option<Rc<dyn Watch>> {
        Some(self.0.clone())
    }

    fn write(&mut self, _: Stream, _: &str) -> Result<(), String> {
        Ok(())
    }

    fn now_millis(&mut self) -> Result<i64> {
        NoHost::default().now_millis()
    }

    fn now_nanos(&mut self) -> Result<i64> {
        NoHost::default().now_nanos()
    }

    fn random(&mut self) -> Result<u64> {
        Ok(0x9e37_79b9_7f4a_7c15)
    }
}

#[test]
fn a_limit_ends_each_long_operation_part_way() {
    let mut ended = Vec::new();
    for (before, operation) in OPERATIONS {
        let session = Session::new();
        let payments = Rc::new(Payments::default());
        let mut vm = session.vm(Box::new(Paying(payments.clone())));
        let made = session.eval_text(&mut vm, "before", &format!("(def x {before})"));
        assert!(made.is_ok(), "{before}");
        payments.left.set(Some(PAYMENTS));
        match session.eval_text(&mut vm, "operation", operation) {
            Err(Signal::Stop(_)) => {}
            Ok(value) => ended.push(format!("{operation} gives {}", value.kind())),
            Err(Signal::Throw(thrown)) => {
                ended.push(format!("{operation} throws {}", thrown.display_text()))
            }
        }
    }
    assert!(ended.is_empty(), "not stopped:\n{}", ended.join("\n"));
}
