//! `flowstone repl` with its input from a pipe.

use expect_test::{Expect, expect};

use crate::program::Scratch;

#[track_caller]
fn check(input: &str, expected: Expect) {
    expected.assert_eq(&Scratch::new().run_with(&["repl"], input).transcript());
}

#[test]
fn each_form_is_answered() {
    check("(+ 1 2)\n:a \"b\"\nnil\n", expect![["3\n:a\n\"b\"\nnil\n"]]);
}

#[test]
fn a_form_may_take_several_lines() {
    check("(+ 1\n   2)\n", expect![["3\n"]]);
}

#[test]
fn results_and_errors_are_kept() {
    check("1\n2\n3\n[*1 *2 *3]\n", expect![["1\n2\n3\n[3 2 1]\n"]]);
    let ran = Scratch::new().run_with(&["repl"], "(throw (ex-info \"no\" {}))\n(ex-message *e)\n");
    assert_eq!((ran.code, &*ran.out), (Some(1), "\"no\"\n"));
    assert!(ran.err.contains("ExceptionInfo: no"), "{}", ran.err);
}

#[test]
fn what_is_printed_comes_before_the_value() {
    check("(do (println \"a\") :b)\n", expect![["a\n:b\n"]]);
}

#[test]
fn names_are_explained() {
    let input = "(defn twice \"Doubles x.\" [x] (* 2 x))\n(doc twice)\n(inc (twice 2))\n(source twice)\n(dir user)\n";
    check(
        input,
        expect![[r#"
            #'user/twice
            user/twice
            ([x])
              Doubles x.
            5
            (defn twice "Doubles x." [x] (* 2 x))
            twice
        "#]],
    );
    let ran = Scratch::new().run_with(&["repl"], "(doc inc)\n(apropos \"interpos\")\n");
    let out = ran.ok();
    assert!(out.contains("clojure.core/inc"), "{out}");
    assert!(out.contains("clojure.core/interpose"), "{out}");
}

#[test]
fn an_unfinished_form_at_the_end_is_an_error() {
    let ran = Scratch::new().run_with(&["repl"], "(+ 1");
    assert_eq!(ran.code, Some(1));
    assert!(ran.err.contains("never closed"), "{}", ran.err);
}

#[test]
fn printing_is_limited_as_the_program_says() {
    check(
        "(set! *print-length* 3)\n(range)\n(set! *print-level* 1)\n[[1] 2]\n",
        expect![["3\n(0 1 2 ...)\n1\n[# 2]\n"]],
    );
}

#[test]
fn the_prompt_explains_steps_and_itself() {
    let ran = Scratch::new().run_with(&["repl"], "(doc :sleep)\n(doc :slepp)\nhelp\n");
    let out = ran.ok();
    assert!(out.contains("## :sleep"), "{out}");
    assert!(out.contains("there is no step type `:slepp`"), "{out}");
    assert!(out.contains("(apropos \"part\")"), "{out}");
}

#[test]
fn the_prompt_explains_namespaces() {
    check(
        "(doc clojure.walk)\n(doc clojure.string)\n(ns my.own \"Mine.\")\n(doc my.own)\n(doc not.there)\n",
        expect![[
            "clojure.walk\n  Traversal and transformation of nested data.\nclojure.string\n  Functions of strings. None of them changes its argument.\nnil\nmy.own\n  Mine.\n`not.there` is not defined; (apropos \"not.there\") finds similar names\n"
        ]],
    );
}

#[test]
fn words_that_leave_the_prompt() {
    for word in ["exit", "(exit)", "(quit)", ":quit"] {
        check(&format!("1\n{word}\n2\n"), expect![["1\n"]]);
    }
    // A name of the program goes first.
    check(
        "(defn help [] :mine)\n(help)\n",
        expect![["#'user/help\n:mine\n"]],
    );
}

#[test]
fn the_last_error_is_shown_once_more() {
    let ran = Scratch::new().run_with(
        &["repl"],
        "(pst)\n(throw (ex-info \"no\" {}))\n(pst)\n(pst *e)\n(pst 3)\n",
    );
    assert_eq!(ran.out, "there was no error yet\n");
    assert_eq!(
        ran.err.matches("ExceptionInfo: no").count(),
        4,
        "{}",
        ran.err
    );
}
