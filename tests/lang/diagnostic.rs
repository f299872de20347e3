//! The rendered form of errors.

use std::rc::Rc;

use expect_test::{Expect, expect};
use flowstone_lang::diagnostic::Diagnostic;
use flowstone_lang::reader::{NoContext, ReadOptions, Reader};
use flowstone_lang::value::{Class, Exception, Frame, Sources, Span, Value};

/// Draws the error of reading a text.
fn check_read(text: &str, expected: Expect) {
    let mut sources = Sources::default();
    let source = sources.add("flows/a.clj", text);
    let mut reader = Reader::new(text, ReadOptions::code(source));
    let error = loop {
        match reader.next(&mut NoContext::default()) {
            Ok(Some(_)) => {}
            Ok(None) => panic!("{text} reads"),
            Err(error) => break error,
        }
    };
    let drawn = Diagnostic::of_read_error(&sources, &error).render();
    expected.assert_eq(&drawn);
    let thrown = error.into_exception();
    let again = Diagnostic::of_exception(&sources, &thrown).render();
    assert_eq!(again, drawn, "the exception of the error shows the same");
}

#[test]
fn an_unclosed_form_shows_where_it_was_opened() {
    check_read(
        "(def a 1)\n\n(defn f [x]\n  (let [y x)\n    y)\n",
        expect![[r#"
            error[E0103]: expected `]`, got `)`
              --> flows/a.clj:4:12
              |
            4 |   (let [y x)
              |            ^
              --> flows/a.clj:4:8
              |
            4 |   (let [y x)
              |        ^ `[` was opened here
              hint: close the inner form with `]` first, or delete this `)`
        "#]],
    );
    check_read(
        "(def a\n  (inc 1)\n",
        expect![[r#"
        error[E0101]: `(` is never closed
          --> flows/a.clj:1:1
          |
        1 | (def a
          | ^
          --> flows/a.clj:2:10
          |
        2 |   (inc 1)
          |          ^ the text ends here, without `)`
          hint: add `)` where the form should end
    "#]],
    );
}

#[test]
fn tabs_and_wide_characters_keep_the_marks_aligned() {
    check_read(
        "\t(é \"日本\" 1a)",
        expect![[r#"
        error[E0107]: `1a` is not a number
          --> flows/a.clj:1:10
          |
        1 | 	(é "日本" 1a)
          | 	          ^^
          hint: a name cannot start with a digit; numbers look like `12`, `-1.5e3`, `1/3`, `0xFF`, `12N`, `1.5M`
    "#]],
    );
    check_read(
        "{:日本 1 :日本 2}",
        expect![[r#"
        error[E0110]: the key `:日本` occurs twice in this map
          --> flows/a.clj:1:8
          |
        1 | {:日本 1 :日本 2}
          |          ^^^^^
          --> flows/a.clj:1:2
          |
        1 | {:日本 1 :日本 2}
          |  ^^^^^ it is here first
          hint: keep the intended entry and delete the other
    "#]],
    );
}

#[test]
fn places_at_the_end_of_a_line_are_marked() {
    check_read(
        "\"abc\n",
        expect![[r#"
        error[E0104]: this string is never closed
          --> flows/a.clj:1:1
          |
        1 | "abc
          | ^
          --> flows/a.clj:1:5
          |
        1 | "abc
          |     ^ the text ends here, without `"`
          hint: add the closing `"`
    "#]],
    );
    check_read(
        "(a\r\n b]\r\n",
        expect![[r#"
        error[E0103]: expected `)`, got `]`
          --> flows/a.clj:2:3
          |
        2 |  b]
          |   ^
          --> flows/a.clj:1:1
          |
        1 | (a
          | ^ `(` was opened here
          hint: close the inner form with `)` first, or delete this `]`
    "#]],
    );
    check_read(
        "a\n  )",
        expect![[r#"
        error[E0102]: `)` closes nothing
          --> flows/a.clj:2:3
          |
        2 |   )
          |   ^
          hint: delete it, or find the form before it that ended too early with a `)` too many
    "#]],
    );
}

#[test]
fn only_a_part_of_a_long_line_is_shown() {
    let text = format!("[{} 1a {}]", "x ".repeat(100), "y ".repeat(100));
    check_read(
        &text,
        expect![[r#"
        error[E0107]: `1a` is not a number
          --> flows/a.clj:1:203
          |
        1 | … x x x x x x x x x x x x x x x x x x x x x x x x  1a y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y y…
          |                                                    ^^
          hint: a name cannot start with a digit; numbers look like `12`, `-1.5e3`, `1/3`, `0xFF`, `12N`, `1.5M`
    "#]],
    );
}

fn span(sources: &mut Sources, name: &str, text: &str, part: &str) -> Span {
    let source = sources.add(name, text);
    let start = text.find(part).unwrap() as u32;
    Span {
        source,
        start,
        end: start + part.len() as u32,
    }
}

fn frame(function: &str, span: Span) -> Frame {
    Frame {
        function: Rc::from(function),
        span,
    }
}

#[test]
fn an_exception_shows_its_data_its_cause_and_the_calls_of_the_user() {
    let mut sources = Sources::default();
    let inner = span(
        &mut sources,
        "a.clj",
        "(defn f [x]\n  (+ x :a))",
        "(+ x :a)",
    );
    let library = span(
        &mut sources,
        "<clojure/core.clj>",
        "(reduce f coll)",
        "(reduce f coll)",
    );
    let outer = span(&mut sources, "b.clj", "(run (map f [1]))", "(map f [1])");
    let cause = Exception::new(Class::EXCEPTION, "", "the disk is full");
    let exception = Exception::new(
        Class::CLASS_CAST,
        "E0301",
        "expected a number, got :a (a keyword) as argument 2",
    )
    .with("id", 7_i64)
    .hint("give a number")
    .caused_by(Value::from(cause))
    .at(inner);
    exception.origin.borrow_mut().trace = vec![
        frame("my.app/f", inner),
        frame("clojure.core/reduce", Span::NONE),
        frame("clojure.core/into", library),
        frame("my.app/run", outer),
    ];
    expect![[r#"
        error[E0301]: expected a number, got :a (a keyword) as argument 2
          --> a.clj:2:3
          |
        2 |   (+ x :a))
          |   ^^^^^^^^
          data: {:id 7}
          caused by Exception: the disk is full
          hint: give a number
          in my.app/f (a.clj:2:3)
          ... through the library (2 calls)
          in my.app/run (b.clj:1:6)
    "#]]
    .assert_eq(&Diagnostic::of_exception(&sources, &exception).render());
}

#[test]
fn an_error_inside_the_library_is_shown_at_the_users_call() {
    let mut sources = Sources::default();
    let library = span(&mut sources, "<clojure/core.clj>", "(first x)", "(first x)");
    let outer = span(&mut sources, "b.clj", "(run (map f 1))", "(map f 1)");
    let exception = Exception::new(Class::CLASS_CAST, "E0301", "wrong").at(library);
    exception.origin.borrow_mut().trace =
        vec![frame("clojure.core/map", library), frame("user/run", outer)];
    expect![[r#"
        error[E0301]: wrong
          --> b.clj:1:6
          |
        1 | (run (map f 1))
          |      ^^^^^^^^^ inside of `map`
          ... through the library
          in user/run (b.clj:1:6)
    "#]]
    .assert_eq(&Diagnostic::of_exception(&sources, &exception).render());
}

#[test]
fn exceptions_thrown_by_a_program_have_no_code() {
    let exception = Exception::new(Class::EXCEPTION_INFO, "", "no such order");
    let drawn = Diagnostic::of_exception(&Sources::default(), &exception).render();
    assert_eq!(drawn, "error: ExceptionInfo: no such order\n");
}

#[test]
fn a_single_call_at_top_level_is_not_shown_as_a_trace() {
    let mut sources = Sources::default();
    let place = span(&mut sources, "a.clj", "(f 1)", "(f 1)");
    let exception = Exception::new(Class::EXCEPTION, "", "x").at(place);
    exception.origin.borrow_mut().trace = vec![frame("top level", place)];
    let drawn = Diagnostic::of_exception(&sources, &exception).render();
    assert!(!drawn.contains("top level"), "{drawn}");
}

#[test]
fn a_key_without_order_is_the_culprit() {
    for (call, key) in [
        ("(get (sorted-map 1 2) :a)", ":a"),
        ("(contains? (sorted-set 1) :b)", ":b"),
        ("(conj (sorted-set 1) 2 :c)", ":c"),
        ("(assoc (sorted-map 1 2) 2 3 :d 4)", ":d"),
    ] {
        let session = flowstone_lang::session::Session::new();
        let mut vm = session.vm(Box::new(flowstone_lang::vm::NoHost::default()));
        let Err(flowstone_lang::value::Signal::Throw(thrown)) =
            session.eval_text(&mut vm, "a.clj", call)
        else {
            panic!("{call} throws");
        };
        let sources = session.world().sources.borrow();
        let drawn = Diagnostic::of_exception(&sources, &thrown).render();
        let place = call.find(key).expect("the key");
        let carets = format!("  | {}{}\n", " ".repeat(place), "^".repeat(key.len()));
        assert!(drawn.contains(&carets), "{drawn}");
    }
}
