//! Runs short programs repeatedly and prints the memory that each kind leaves behind, as counted by the allocator:
//! `cargo run --release -p flowstone-embed --example soak [RUNS]`.

#![expect(
    clippy::disallowed_methods,
    reason = "the number of runs is an argument of the process"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::error::Error;
use std::io::Write;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flowstone_embed::{Embed, Function, Sandbox, Session};

/// Counts the bytes that are in use.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        USED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Programs, each with its purpose. `{n}` is another number in each run.
const PROGRAMS: &[(&str, &str)] = &[
    ("a sum", "(+ 1 2)"),
    (
        "definitions and macros",
        "(defmacro m [x] `(let [y# ~x] [y# y#])) (defn f [{:keys [a] [b & c] :d}] (m [a b c])) (defn g [n] (if (pos? n) (g (dec n)) (f {:a 1 :d [1 2 3]}))) (g 3)",
    ),
    (
        "protocols, multimethods, records",
        "(defprotocol P (p [this])) (defrecord R [a] P (p [this] a)) (defmulti k type) (defmethod k :default [x] (p x)) (k (->R 1))",
    ),
    (
        "the library",
        "(require '[clojure.string :as s] '[clojure.set :as set] '[clojure.walk :as w]) [(s/join \",\" (w/postwalk identity [1 [2]])) (set/union #{1} #{2})]",
    ),
    (
        "an error",
        "(try (throw (ex-info \"x\" {:a 1})) (catch Exception e (ex-data e)))",
    ),
    (
        "an atom that holds a closure over itself",
        "(let [a (atom nil)] (reset! a (fn [] @a)) 1)",
    ),
    (
        "a volatile that holds itself",
        "(let [v (volatile! nil)] (vreset! v [v]) 1)",
    ),
    (
        "an atom with a watch over itself",
        "(let [a (atom 0)] (add-watch a :w (fn [_ r _ _] (deref a))) (swap! a inc))",
    ),
    (
        "a lazy sequence over itself",
        "(let [a (atom nil) s (lazy-seq (cons 1 @a))] (reset! a s) (first s))",
    ),
    (
        "a delay over itself",
        "(let [a (atom nil) d (delay (count @a))] (reset! a [d]) @d)",
    ),
    (
        "a promise that holds itself",
        "(let [p (promise)] (deliver p [p]) 1)",
    ),
    (
        "functions that call one another",
        "(letfn [(ev? [n] (or (zero? n) (od? (dec n)))) (od? [n] (and (pos? n) (ev? (dec n))))] (ev? 6))",
    ),
    (
        "a var that is gone",
        "(def lost (fn [] lost)) (ns-unmap *ns* 'lost)",
    ),
    ("text read as code", "(read-string \"(a b [c] :d 12 {n})\")"),
    (
        "text that cannot be read",
        "(try (clojure.edn/read-string \"[1 {n}\") (catch Exception e 1))",
    ),
    (
        "keywords from data",
        "(clojure.edn/read-string \"{:key-{n} 1 :other/key-{n} [sym-{n} a/b-{n}]}\")",
    ),
    (
        "keywords from text",
        "[(keyword \"made-{n}\") (= (keyword \"made-{n}\") (keyword \"made-{n}\"))]",
    ),
    ("gensym", "[(gensym) (gensym \"x\")]"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let runs: usize = std::env::args()
        .nth(1)
        .map_or(Ok(10_000), |text| text.parse())?;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "bytes left behind by each of {runs} runs: in a session of its own, in one session"
    )?;
    for (what, program) in PROGRAMS {
        let own = measure(runs, |n| {
            let session = Session::new();
            session
                .evaluate(&program.replace("{n}", &n.to_string()))
                .is_ok()
        });
        let one = Session::new();
        let shared = measure(runs, |n| {
            one.evaluate(&program.replace("{n}", &n.to_string()))
                .is_ok()
        });
        writeln!(out, "{own:10.1} {shared:10.1}  {what}")?;
    }
    let own = measure(runs, |_| {
        let session = Rc::new(Session::new());
        let inner = session.clone();
        session.add(Function::new("again", move |text: String| {
            inner
                .evaluate(&text)
                .map(|value| value.to_string())
                .unwrap_or_default()
        }));
        let host = Sandbox::new();
        let is_done = session
            .evaluate_in(host, "outer", "(again \"(+ 1 2)\")")
            .is_ok();
        session.close();
        is_done
    });
    writeln!(
        out,
        "{own:10.1} {:>10}  a function that holds its session, which is closed",
        ""
    )?;
    Ok(())
}

/// Returns the number of bytes that each run leaves behind, after a few warm-up runs.
fn measure(runs: usize, run: impl Fn(usize) -> bool) -> f64 {
    for n in 0..runs / 10 + 10 {
        run(n);
    }
    let before = USED.load(Ordering::Relaxed);
    let failed = (0..runs).filter(|n| !run(1_000_000 + n)).count();
    let after = USED.load(Ordering::Relaxed);
    if failed > 0 {
        return f64::NAN;
    }
    (after as f64 - before as f64) / runs as f64
}
