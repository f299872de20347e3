//! `flowstone eval`.

use std::process::Stdio;

use expect_test::{Expect, expect};

use crate::program::{Ran, Scratch};

#[track_caller]
fn check(args: &[&str], expected: Expect) {
    let args: Vec<&str> = ["eval"].iter().chain(args).copied().collect();
    expected.assert_eq(&Scratch::new().run(&args).transcript());
}

#[test]
fn the_value_of_an_expression_is_printed() {
    check(&["(+ 1 2)"], expect![["3\n"]]);
    check(
        &["(def a 1) [a \"b\" \\c :d 1/2]"],
        expect![["[1 \"b\" \\c :d 1/2]\n"]],
    );
    check(&["-1"], expect![["-1\n"]]);
}

#[test]
fn a_program_may_end_with_a_status_of_its_own() {
    let text =
        "(print \"out\") (try (System/exit 3) (catch Throwable _ 1) (finally (print \"no\")))";
    let ran = Scratch::new().run(&["eval", text]);
    assert_eq!((ran.code, &*ran.out, &*ran.err), (Some(3), "out", ""));
    assert_eq!(
        Scratch::new().run(&["eval", "(System/exit 0)"]).code,
        Some(0)
    );
}

#[test]
fn files_are_listed_and_loaded_where_that_is_allowed() {
    let scratch = Scratch::new();
    scratch.write("lib/my/parts/one.clj", "(def one 1)");
    scratch.write(
        "lib/my/parts.clj",
        "(ns my.parts) (load \"parts/one\") (def two (inc one))",
    );
    let text = "(require 'my.parts) [my.parts/two (file-seq \"lib\")]";
    let ran = scratch.run(&["eval", "--path", "lib", "--allow-files", text]);
    let expected =
        "[2 (\"lib\" \"lib/my\" \"lib/my/parts\" \"lib/my/parts/one.clj\" \"lib/my/parts.clj\")]\n";
    assert_eq!((ran.code, &*ran.out), (Some(0), expected), "{}", ran.err);
    let ran = scratch.run(&["eval", "(file-seq \"lib\")"]);
    assert!(ran.err.contains("E0388"), "{}", ran.err);
}

#[test]
fn programs_read_and_write_json_and_csv() {
    for (program, expected) in [
        (r#"(json/parse "{\"a\": [1]}")"#, "{:a [1]}\n"),
        (
            "(require '[clojure.data.json :as json]) (json/write-str {:a 1})",
            "\"{\\\"a\\\":1}\"\n",
        ),
        (
            "(ns a (:require [cheshire.core :refer [parse-string]])) (parse-string \"[1]\" true)",
            "[1]\n",
        ),
        (
            "(require '[clojure.data.csv :as csv]) (csv/read-csv \"a;b\" :separator \\;)",
            "([\"a\" \"b\"])\n",
        ),
        (
            "(flow.util/sha256-hex \"\")",
            "\"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"\n",
        ),
    ] {
        assert_eq!(
            Scratch::new().run(&["eval", program]).ok(),
            expected,
            "{program}"
        );
    }
    let program = "(require '[cheshire.core :as c]) (prn (c/parse-stream *in* true) (read-line))";
    let ran = Scratch::new().run_with(&["eval", program], "{\"a\": 1}\nrest\n");
    assert_eq!(ran.ok(), "{:a 1} \"\"\n");
}

#[test]
fn nil_is_not_printed() {
    check(&["(println \"hello\")"], expect![["hello\n"]]);
}

#[test]
fn an_error_is_located() {
    let ran = Scratch::new().run(&["eval", "(let [a :b]\n  (+ 1 a))"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.is_empty());
    assert!(ran.err.contains("--> <eval>:2:"), "{}", ran.err);
    assert!(ran.err.contains("^"), "{}", ran.err);
}

#[test]
fn an_unclosed_form_names_where_it_was_opened() {
    let ran = Scratch::new().run(&["eval", "(+ 1\n  [2 3)"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("<eval>:2:3") || ran.err.contains("<eval>:2:7"),
        "{}",
        ran.err
    );
}

#[test]
fn what_was_printed_before_an_error_is_there() {
    let ran = Scratch::new().run(&["eval", "(print \"before\") (throw (ex-info \"no\" {:a 1}))"]);
    assert_eq!((ran.code, &*ran.out), (Some(1), "before"));
    assert!(ran.err.contains("ExceptionInfo: no"), "{}", ran.err);
    assert!(ran.err.contains("data: {:a 1}"), "{}", ran.err);
}

#[test]
fn json_holds_the_value_or_the_error() {
    let scratch = Scratch::new();
    let value = scratch.run(&["eval", "--json", "{:a [1]}"]).json();
    assert_eq!(value, serde_json::json!({"ok": true, "value": "{:a [1]}"}));
    let ran = scratch.run(&["eval", "--json", "(totl 1)"]);
    assert_eq!(ran.code, Some(1));
    let error = &ran.json()["error"];
    assert_eq!(
        (&error["file"], &error["line"]),
        (&"<eval>".into(), &1.into())
    );
    assert!(
        error["code"]
            .as_str()
            .is_some_and(|code| code.starts_with('E'))
    );
}

#[test]
fn a_program_comes_from_a_file_or_standard_input() {
    let scratch = Scratch::new();
    scratch.write("a.clj", "(println \"from a file\") :not-printed");
    assert_eq!(scratch.run(&["eval", "a.clj"]).ok(), "from a file\n");
    let ran = scratch.run_with(&["eval", "-"], "(println (+ 1 1))");
    assert_eq!(ran.ok(), "2\n");
    let ran = scratch.run(&["eval", "b.clj"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.err.contains("cannot read b.clj: there is no such file"),
        "{}",
        ran.err
    );
}

#[test]
fn a_program_reads_standard_input_and_its_arguments() {
    let scratch = Scratch::new();
    let ran = scratch.run_with(&["eval", "[(read-line) (read-line)]"], "one\n");
    assert_eq!(ran.ok(), "[\"one\" nil]\n");
    let ran = scratch.run(&["eval", "*command-line-args*", "a", "--b"]);
    assert_eq!(ran.ok(), "(\"a\" \"--b\")\n");
}

#[test]
fn namespaces_come_from_the_path() {
    let scratch = Scratch::new();
    scratch.write(
        "src/my/some_lib.clj",
        "(ns my.some-lib) (defn twice [x] (* 2 x))",
    );
    let program = "(require '[my.some-lib :as lib]) (lib/twice 21)";
    assert_eq!(
        scratch.run(&["eval", "--path", "src", program]).ok(),
        "42\n"
    );
    assert_eq!(scratch.run(&["eval", program]).code, Some(1));
}

#[test]
fn files_must_be_allowed() {
    let scratch = Scratch::new();
    scratch.write("a.txt", "text");
    assert_eq!(
        scratch
            .run(&["eval", "--allow-files", "(slurp \"a.txt\")"])
            .ok(),
        "\"text\"\n"
    );
    let ran = scratch.run(&["eval", "(slurp \"a.txt\")"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("--allow-files"), "{}", ran.err);
}

#[test]
fn endless_programs_are_stopped() {
    let scratch = Scratch::new();
    for (option, limit, program, code) in [
        ("--fuel", "100000", "(loop [] (recur))", "E0901"),
        ("--deadline", "200ms", "(reduce + (range))", "E0902"),
        (
            "--deadline",
            "200ms",
            "(try (loop [] (recur)) (catch Throwable e :caught))",
            "E0902",
        ),
    ] {
        let ran = scratch.run(&["eval", option, limit, program]);
        assert_eq!(ran.code, Some(1), "{program}: {ran:?}");
        assert!(
            ran.err.contains(&format!("error[{code}]")),
            "{program}: {ran:?}"
        );
    }
}

#[test]
fn deep_nesting_is_an_error_not_a_crash() {
    let scratch = Scratch::new();
    let brackets = "[".repeat(200_000);
    let ran = scratch.run_with(&["eval", "-"], &brackets);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    let ran = scratch.run(&["eval", "(defn f [n] (inc (f n))) (f 1)"]);
    assert_eq!(ran.code, Some(1), "{}", ran.err);
    assert!(ran.err.contains("error"), "{}", ran.err);
    let ran = scratch.run(&["eval", "(count (apply list (range 5000000)))"]);
    assert_eq!(ran.ok(), "5000000\n");
}

#[test]
fn a_closed_pipe_ends_the_program_quietly() {
    let scratch = Scratch::new();
    let program = "(doseq [i (range)] (println i))";
    let mut child = scratch
        .command(&["eval", program])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let ran = Ran::of(child);
    assert_eq!((ran.code, &*ran.err), (Some(141), ""));
}

#[test]
fn colour_is_for_terminals_unless_asked_for() {
    let scratch = Scratch::new();
    assert!(!scratch.run(&["eval", "(totl)"]).err.contains('\x1b'));
    let colored = scratch.run(&["--color", "always", "eval", "(totl)"]).err;
    assert!(colored.contains("\x1b["), "{colored}");
    let plain = scratch.run(&["eval", "(totl)", "--color", "never"]);
    assert!(!plain.err.contains('\x1b'));
}

/// Libraries that were written for other Clojures have branches for those only.
#[test]
fn reader_conditionals_choose_what_is_asked_for() {
    let text = "#?(:cljs 1 :clj 2 :default 3)";
    check(&[text], expect![["3\n"]]);
    check(&["--feature", "clj", text], expect![["2\n"]]);
    check(
        &["--feature", ":cljs", "--feature", "clj", text],
        expect![["1\n"]],
    );
}

#[test]
fn a_feature_has_a_name() {
    for name in ["", ":", "a b", "(x)"] {
        let ran = Scratch::new().run(&["eval", "--feature", name, "1"]);
        assert_eq!((ran.code, &*ran.out), (Some(2), ""), "{name}");
        assert!(ran.err.contains("a feature is a name"), "{}", ran.err);
    }
}
