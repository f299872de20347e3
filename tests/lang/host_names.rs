//! Names of the host that do not exist here: rejected when they are compiled, or, in programs that use parts of
//! libraries, when they are reached.

use flowstone_lang::session::Session;
use flowstone_lang::value::Signal;
use flowstone_lang::{Output, Sandbox};

/// Evaluates a program that defers host names; returns its value, or code and message of the exception that it throws.
fn run(text: &str) -> String {
    run_in(Sandbox::new(), text)
}

fn run_in(host: Sandbox, text: &str) -> String {
    let session = Session::new();
    session.defer_host_names();
    let mut vm = session.vm(Box::new(host));
    let value = session.eval_text(&mut vm, "<test>", text);
    match value.and_then(|value| vm.print(&value, flowstone_lang::value::PrintOptions::READABLE)) {
        Ok(shown) => shown,
        Err(Signal::Throw(thrown)) => format!("{} {}", thrown.code, thrown.class.0.name),
        Err(Signal::Stop(stop)) => format!("stopped: {stop}"),
    }
}

fn refused_at_once(text: &str) -> &'static str {
    let session = Session::new();
    let mut vm = session.vm(Box::new(Sandbox::new()));
    match session.eval_text(&mut vm, "<test>", text) {
        Err(Signal::Throw(thrown)) => thrown.code,
        _ => "runs",
    }
}

/// Bodies that use undefined names, and the code of the error.
const BODIES: &[(&str, &str)] = &[
    ("(java.util.TreeMap.)", "E0222 CompilerException"),
    ("(new java.util.TreeMap 3)", "E0222 CompilerException"),
    ("(java.util.regex.Pattern. 1 2)", "E0222 CompilerException"),
    (
        "(java.net.InetAddress/getLocalHost)",
        "E0208 CompilerException",
    ),
    ("(System/noSuchMember)", "E0204 CompilerException"),
    ("(Long/parseLong)", "E0305 ArityException"),
    ("(.noSuchMethod 1 2)", "E0204 IllegalArgumentException"),
    ("(proxy-super toString 1)", "E0226 CompilerException"),
    ("(gen-interface :name a.B)", "E0226 CompilerException"),
];

#[test]
fn a_function_that_names_an_unknown_class_fails_only_when_it_is_called() {
    for (body, error) in BODIES {
        assert_eq!(run(&format!("(defn f [] {body}) :ran")), ":ran", "{body}");
        assert_eq!(run(&format!("(defn f [] {body}) (f)")), *error, "{body}");
        assert_eq!(
            run(&format!(
                "(defn f [] {body}) (try (f) (catch Exception e :caught))"
            )),
            ":caught",
            "{body}"
        );
        assert_eq!(
            run(&format!(
                "(defn f [] {body}) (defn g [] (try (f) (catch Exception e 1))) (g) (f)"
            )),
            *error,
            "{body} fails each time"
        );
    }
}

#[test]
fn unknown_names_are_refused_at_compile_time_without_deferral() {
    for (body, error) in BODIES.iter().filter(|body| !body.1.starts_with("E0305")) {
        let code = error.split(' ').next().unwrap_or_default();
        assert_eq!(
            refused_at_once(&format!("(defn f [] {body}) :ran")),
            code,
            "{body}"
        );
    }
}

#[test]
fn files_that_require_loads_may_name_unknown_classes() {
    let library =
        "(ns lib (:import (java.net InetAddress) java.util.concurrent.ConcurrentLinkedDeque))
                   (defn uses-host [] (InetAddress. \"a\"))
                   (defprotocol Shown (shown [x]))
                   (extend-protocol Shown InetAddress (shown [_] :uri) String (shown [s] s))
                   (defn pure [x] (inc x))";
    let host = || Sandbox::new().source("lib", library);
    let session = Session::new();
    let value = session.evaluate_in(
        host(),
        "a",
        "(require 'lib) [(lib/pure 1) (lib/shown \"x\")]",
    );
    assert_eq!(session.show(&value.expect("the file loads")), r#"[2 "x"]"#);
    let failure = session
        .evaluate_in(host(), "a", "(lib/uses-host)")
        .expect_err("the class does not exist");
    assert_eq!(failure.code(), "E0222");
    assert_eq!(
        session
            .evaluate_in(host(), "a", "(defn f [] (java.util.TreeMap.))")
            .expect_err("the program itself is strict")
            .code(),
        "E0222"
    );
}

#[test]
fn classes_without_instances_can_be_named() {
    assert_eq!(
        run(
            "(import (java.net InetAddress)) [(instance? InetAddress 1) (class? InetAddress) InetAddress (= InetAddress java.net.InetAddress)]"
        ),
        "[false true java.net.InetAddress true]"
    );
    assert_eq!(
        run(
            "(try (throw (ex-info \"a\" {})) (catch java.sql.SQLException e 1) (catch Exception e 2))"
        ),
        "2"
    );
    assert_eq!(
        run("(try 1 (catch Exeption e 2))"),
        "E0221 CompilerException"
    );
    assert_eq!(
        run("(instance? java.lang.Strng 1)"),
        "E0204 CompilerException"
    );
}

#[test]
fn arguments_of_an_unknown_method_are_evaluated_before_it_fails() {
    let output = Output::new();
    let host = Sandbox::new().output(&output);
    assert_eq!(
        run_in(host, "(.noSuch (doto 1 println))"),
        "E0204 IllegalArgumentException"
    );
    assert_eq!(output.take(), "1\n");
}

#[test]
fn interfaces_of_the_program_are_implemented_and_called() {
    assert_eq!(
        run("(definterface Named2 (^String label [prefix])) (deftype Tag [x] Named2 (label [_ p] (str p x)))
             [(.label (Tag. 1) \"n\") (instance? Named2 (Tag. 1)) (gen-class :name a.B)]"),
        r#"["n1" true nil]"#
    );
    assert_eq!(
        run("(deftype T [] clojure.lang.Seqable (seq [_] '(1)) clojure.lang.Sorted (seq [_ up] (if up '(1 2) '(2 1))))
             [(seq (T.)) (.seq (T.) false)]"),
        "[(1) (2 1)]"
    );
    assert_eq!(
        run("(deftype M [m] clojure.lang.IPersistentMap (without [_ k] (M. (dissoc m k)))
                        clojure.lang.IPersistentStack (peek [_] :p) (pop [_] :q)
                        clojure.lang.Reversible (rseq [_] '(3)) clojure.lang.IPersistentSet (disjoin [_ x] [:d x]))
             (let [m (M. {:a 1 :b 2})] [(.m (dissoc m :a)) (peek m) (pop m) (rseq m) (disj m 1)])"),
        "[{:b 2} :p :q (3) [:d 1]]"
    );
}

#[test]
fn objects_reduce_themselves() {
    let reducible = "(def r (reify clojure.lang.IReduceInit
                       (reduce [_ f init] (loop [acc init n 0]
                         (cond (reduced? acc) @acc (= n 5) acc :else (recur (f acc n) (inc n)))))))";
    let check = |form: &str, expected: &str| {
        assert_eq!(run(&format!("{reducible} {form}")), expected, "{form}")
    };
    check("(reduce + 0 r)", "10");
    check("(into [] r)", "[0 1 2 3 4]");
    check("(into #{} (map inc) r)", "#{1 4 3 2 5}");
    check("(vec r)", "[0 1 2 3 4]");
    check("(transduce (comp (filter odd?) (take 1)) conj [] r)", "[1]");
    check("(transduce (take 2) conj [] r)", "[0 1]");
    check("(set r)", "#{0 1 4 3 2}");
    check(
        "(reduce (fn [_ x] (if (= x 2) (reduced x) nil)) nil r)",
        "2",
    );
    check(
        "(require '[clojure.core.protocols :as p]) (deftype K [m])
         (extend-type K p/IKVReduce (kv-reduce [k f init] (reduce-kv f init (.m k)))
                        p/CollReduce (coll-reduce ([_ f] :two) ([_ f init] [:three init])))
         [(reduce-kv (fn [a k v] (+ a v)) 0 (K. {:a 1 :b 2})) (reduce + (K. 1)) (reduce + 0 (K. 1)) (p/coll-reduce [1 2] +)]",
        "[3 :two [:three 0] 3]",
    );
}

#[test]
fn reader_errors_have_the_classes_of_clojure() {
    for (text, class) in [
        ("1a", "NumberFormatException"),
        ("0x", "NumberFormatException"),
        ("{:a 1 :a 2}", "IllegalArgumentException"),
        ("#{1 1}", "IllegalArgumentException"),
        ("(1", "RuntimeException"),
        (":", "RuntimeException"),
    ] {
        assert_eq!(
            run(&format!(
                "(try (read-string {text:?}) (catch Throwable e (.getSimpleName (class e))))"
            )),
            format!("{class:?}"),
            "{text}"
        );
    }
    for (form, class) in [
        ("(format \"%d\" \"a\")", "IllegalFormatConversionException"),
        ("(format \"%s %s\" 1)", "MissingFormatArgumentException"),
        ("(format \"%q\" 1)", "UnknownFormatConversionException"),
        ("(format \"%-d\" 1)", "MissingFormatWidthException"),
        ("(format \"%.2d\" 1)", "IllegalFormatPrecisionException"),
    ] {
        assert_eq!(
            run(&format!(
                "(try {form} (catch IllegalArgumentException e (.getSimpleName (class e))))"
            )),
            format!("{class:?}"),
            "{form}"
        );
    }
}
