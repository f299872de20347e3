//! Functions written in Rust.

use std::collections::BTreeMap;

use flowstone_embed::value::{Class, Exception, Keyword, Signal};
use flowstone_embed::vm::Vm;
use flowstone_embed::{Data, Embed, Function, Rest, Session, Value};

use super::shown;

fn session() -> Session {
    let session = Session::new();
    let functions = [
        Function::new("r/nothing", || ()),
        Function::new("r/add", |left: i64, right: i64| left + right),
        Function::new("r/half", |number: f64| number / 2.0),
        Function::new("r/not", |bool: bool| !bool),
        Function::new("r/byte", |byte: u8| byte),
        Function::new("r/size", |size: usize| size),
        Function::new("r/big", || u64::MAX),
        Function::new("r/shout", |text: String, mark: Option<char>| {
            text.to_uppercase() + &mark.map_or(String::new(), String::from)
        }),
        Function::new("r/name", |keyword: Keyword| keyword.name().to_string()),
        Function::new("r/sum", |numbers: Rest<i64>| numbers.0.iter().sum::<i64>()),
        Function::new("r/sum-of", |numbers: Vec<i64>| numbers.iter().sum::<i64>()),
        Function::new("r/grid", |rows: Vec<Vec<i64>>| rows.len()),
        Function::new("r/total", |prices: BTreeMap<String, f64>| {
            prices.values().sum::<f64>()
        }),
        Function::new("r/pairs", |map: Data<BTreeMap<String, (i64, i64)>>| {
            Data(map.0.into_values().collect::<Vec<_>>())
        }),
        Function::new("r/parse", |text: String| text.parse::<i64>()),
        Function::new("r/refuse", |why: String| {
            let exception = Exception::new(Class::ILLEGAL_STATE, "E0370", why);
            Err::<(), Signal>(exception.with("kind", Value::from(1_i64)).into())
        }),
        Function::new("r/twice", |vm: &mut Vm, function: Value, item: Value| {
            let once = vm.call(&function, &[item])?;
            vm.call(&function, &[once])
        }),
    ];
    for function in functions {
        session.add(function);
    }
    session
}

#[test]
fn arguments_are_converted() {
    let session = session();
    let cases = [
        ("(r/nothing)", "nil"),
        ("(r/add 1 2)", "3"),
        ("(reduce r/add (range 5))", "10"),
        ("(r/half 3)", "1.5"),
        ("(r/half 1/2)", "0.25"),
        ("(r/half 1M)", "0.5"),
        (
            "(r/not nil)",
            "E0301 r/not needs true or false, got nil as argument 1",
        ),
        ("(r/big)", "18446744073709551615N"),
        (r#"(r/shout "a")"#, r#""A""#),
        (r#"(r/shout "a" \!)"#, r#""A!""#),
        (r#"(r/shout "a" nil)"#, r#""A""#),
        ("(r/name :a/b)", r#""b""#),
        ("(r/sum)", "0"),
        ("(apply r/sum 1 [2 3])", "6"),
        ("(r/sum-of (map inc [1 2]))", "5"),
        ("(r/sum-of nil)", "0"),
        ("(r/sum-of #{1 2})", "3"),
        ("(r/total {:pen 1.5 \"ink\" 2})", "3.5"),
        ("(r/pairs {:a [1 2] :b (map inc [1 2])})", "[[1 2] [2 3]]"),
        ("(r/twice inc 1)", "3"),
        ("(r/parse \"7\")", "7"),
        ("[(fn? r/add) (ifn? r/add)]", "[true true]"),
        ("(map r/shout [\"a\" \"b\"])", r#"("A" "B")"#),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(&session, session.evaluate(text)), expected, "{text}");
    }
}

#[test]
fn an_unfit_argument_is_reported_with_its_index_and_path() {
    let session = session();
    let cases = [
        (
            "(r/add 1 :two)",
            "E0301 r/add needs an integer, got :two (a keyword) as argument 2",
        ),
        ("(r/add 1)", "E0305 r/add takes 2 arguments, and got 1"),
        (
            "(r/shout)",
            "E0305 r/shout takes 1 to 2 arguments, and got 0",
        ),
        (
            "(r/byte 256)",
            "E0301 r/byte needs an integer from 0 to 255, got 256 (an integer) as argument 1",
        ),
        (
            "(r/size -1)",
            "E0301 r/size needs an integer of 0 or more, got -1 (an integer) as argument 1",
        ),
        (
            "(r/sum 1 2 nil)",
            "E0301 r/sum needs an integer, got nil as argument 3",
        ),
        (
            "(r/sum-of [1 :b])",
            "E0301 expected an integer, got :b (a keyword) at [1] in argument 1",
        ),
        (
            "(r/grid [[1] [2 \"x\"]])",
            "E0301 expected an integer, got \"x\" (a string) at [1 1] in argument 1",
        ),
        (
            "(r/total {:pen :free})",
            "E0301 expected a number, got :free (a keyword) at [:pen] in argument 1",
        ),
        (
            "(r/pairs {:a [1 nil]})",
            "E0371 at [:a 1]: invalid type: nil, expected i64",
        ),
        ("(r/parse \"x\")", "E0370 invalid digit found in string"),
        ("(r/refuse \"no\")", "E0370 no"),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(&session, session.evaluate(text)), expected, "{text}");
    }
    let failure = session
        .evaluate("(let [x 1]\n  (r/add x :two))")
        .expect_err("no number");
    let place = failure.diagnostic().place.as_ref().expect("in the text");
    assert_eq!((place.line, place.column), (2, 12));
}

#[test]
fn failures_are_exceptions_of_the_language() {
    let session = session();
    let cases = [
        (
            "(try (r/parse \"x\") (catch Exception e (ex-message e)))",
            "\"invalid digit found in string\"",
        ),
        (
            "(try (r/refuse \"no\") (catch IllegalStateException e (ex-data e)))",
            "{:kind 1}",
        ),
        (
            "(try (r/twice (fn [_] (throw (ex-info \"in\" {:a 1}))) 1) (catch Exception e (ex-data e)))",
            "{:a 1}",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(&session, session.evaluate(text)), expected, "{text}");
    }
}

#[test]
fn documentation_is_metadata_and_namespaces_can_be_required() {
    let session = Session::new();
    session.add(
        Function::new("shop.tax/add", |net: f64| net * 1.2)
            .usage("(add net)")
            .doc("Returns the price with tax."),
    );
    let text = "(ns app (:require [shop.tax :as tax :refer [add]])) [(tax/add 10) (add 5) (:arglists (meta #'add)) (:doc (meta #'tax/add))]";
    assert_eq!(
        shown(&session, session.evaluate(text)),
        "[12.0 6.0 ([net]) \"Returns the price with tax.\"]"
    );
}

#[test]
fn functions_of_the_program_and_the_library_are_called_by_name() {
    let session = session();
    session
        .evaluate("(ns app.main) (defn run [x] {:got x})")
        .expect("defines");
    let call = |name: &str, args: &[Value]| {
        let host = flowstone_embed::Sandbox::new();
        shown(&session, session.call(host, name, args))
    };
    assert_eq!(call("run", &[1_i64.into()]), "{:got 1}");
    assert_eq!(call("app.main/run", &[2_i64.into()]), "{:got 2}");
    assert_eq!(call("r/add", &[2_i64.into(), 3_i64.into()]), "5");
    assert_eq!(call("inc", &[2_i64.into()]), "3");
    assert_eq!(
        call("clojure.set/union", &[Value::set([1_i64.into()])]),
        "#{1}"
    );
    assert_eq!(call("walk", &[]), "E0372 there is no `walk` to call");
    assert_eq!(
        call("run", &[]),
        "E0305 `app.main/run` takes 1 argument, and got 0"
    );
}

#[test]
fn a_raw_function_receives_unconverted_arguments() {
    let session = Session::new();
    session.add(Function::raw(
        "first-of",
        flowstone_embed::value::Arity::at_least(1),
        |_vm, mut args| match args.get(0) {
            Value::Vector(vector) => Ok(vector.get(0).cloned().unwrap_or(Value::Nil)),
            _ => Err::<Value, Signal>(args.expected(0, "a vector")).or(Ok(args.take(0))),
        },
    ));
    assert_eq!(
        shown(
            &session,
            session.evaluate("[(first-of [1 2]) (first-of 3)]")
        ),
        "[1 3]"
    );
}
