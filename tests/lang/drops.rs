//! Values of a stopped evaluation are freed in slices after its end, and a long drop ends when a limit is reached.

use std::rc::Rc;

use flowstone_lang::value::heap::thread_bytes;
use flowstone_lang::value::meter::Watch;
use flowstone_lang::value::{Result, Signal, Stop, free_deferred};
use flowstone_lang::vm::{Host, NoHost, Stream};
use flowstone_lang::{Sandbox, Session};

/// Evaluations that hold many values when their fuel is used up, or only values that they are about to drop.
const HOLDING: &[&str] = &[
    "(frequencies (range))",
    "(count (distinct (range)))",
    "(into #{} (range))",
    "(into {} (map (fn [i] [i i])) (range))",
    "(group-by identity (range))",
    "(zipmap (range) (range))",
    "(vec (range))",
    "(let [s (into (sorted-map) (map (fn [i] [i i])) (range 40000))] (loop [] (recur)) s)",
    "(let [s (doall (map inc (range 30000)))] (loop [] (recur)) s)",
    "(let [t (letfn [(tree [n] (if (zero? n) [] [(tree (dec n)) (tree (dec n))]))] (tree 14))] (loop [] (recur)) t)",
    "(loop [l nil] (recur (cons 1 l)))",
];

/// Frees the deferred values and returns the number of slices.
fn slices() -> usize {
    std::iter::repeat_with(free_deferred)
        .take_while(|is_left| *is_left)
        .count()
        + 1
}

#[test]
fn values_of_a_stopped_evaluation_are_freed_in_slices() {
    for text in HOLDING {
        let session = Session::new();
        let run = |fuel| session.evaluate_in(Sandbox::new().fuel(fuel), "test", text);
        assert!(run(1_000).is_err(), "{text}");
        slices();
        let before = thread_bytes();
        assert!(run(1_000_000).is_err(), "{text}");
        let held = thread_bytes() - before;
        assert!(held > 300_000, "{text}: {held} bytes");
        let slices = slices();
        assert!(slices > 2, "{text}: {slices}");
        let left = thread_bytes() - before;
        assert!(left < 100_000, "{text}: {left} bytes");
    }
}

#[test]
fn deferred_values_are_freed_before_the_next_evaluation_and_at_the_end_of_a_session() {
    let held = |session: &Session| {
        let limited = Sandbox::new().fuel(1_000_000);
        let stopped = session.evaluate_in(limited, "test", "(frequencies (range))");
        assert!(stopped.is_err());
    };
    let session = Session::new();
    held(&session);
    slices();
    let before = thread_bytes();
    held(&session);
    session.evaluate("(inc 1)").expect("it runs");
    assert!(
        thread_bytes() - before < 100_000,
        "{}",
        thread_bytes() - before
    );
    held(&session);
    drop(session);
    slices();
    assert!(thread_bytes() < before);
}

/// Reaches a limit at the first check during a drop.
struct Hurried;

impl Watch for Hurried {
    fn spend(&self, _: u64) -> Result<(), Stop> {
        Ok(())
    }

    fn check_interrupt(&self) -> Result<(), Stop> {
        Err(Stop::Deadline)
    }
}

impl Host for Hurried {
    fn refill(&mut self) -> Result<u32, Stop> {
        Ok(100_000)
    }

    fn watch(&self) -> Option<Rc<dyn Watch>> {
        Some(Rc::new(Hurried))
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
        Ok(0)
    }
}

/// Each expression makes a value that takes several slices to drop, and drops it.
const DROPPING: &[&str] = &[
    "(count (vec (range 10000000)))",
    "(count (into {} (map (fn [i] [i i])) (range 100000)))",
    "(count (into (sorted-set) (range 100000)))",
    "(count (mapv (fn [i] [i [i]]) (range 100000)))",
    "(count (apply list (range 100000)))",
    "(letfn [(up [n] (lazy-seq (when (< n 50000) (cons n (up (inc n))))))] (count (doall (up 0))))",
    "(count (letfn [(tree [n] (if (zero? n) [] [(tree (dec n)) (tree (dec n))]))] (tree 14)))",
    "(count (reduce (fn [t i] [t i]) nil (range 100000)))",
];

#[test]
fn a_long_drop_ends_when_a_limit_is_reached() {
    let mut ended = Vec::new();
    for text in DROPPING {
        let session = Session::new();
        let mut vm = session.vm(Box::new(Hurried));
        match session.eval_text(&mut vm, "test", text) {
            Err(Signal::Stop(stop)) => assert!(matches!(*stop, Stop::Deadline), "{text}"),
            Err(Signal::Throw(thrown)) => {
                ended.push(format!("{text} throws {}", thrown.display_text()))
            }
            Ok(value) => ended.push(format!("{text} gives {value}")),
        }
        slices();
    }
    assert!(ended.is_empty(), "not stopped:\n{}", ended.join("\n"));
}
