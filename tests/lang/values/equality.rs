//! `=` and `compare`.

use flowstone_lang::session::Session;
use flowstone_lang::value::{
    Lazy, List, SeqView, Thunk, Unforced, Value, compare_exact, equal, hash_value,
};
use flowstone_lang::vm::NoHost;

use super::read;

fn equal_texts(left: &str, right: &str) -> bool {
    let (left, right) = (read(left), read(right));
    let forth = equal(&mut Unforced, &left, &right).expect("nothing to compute");
    let back = equal(&mut Unforced, &right, &left).expect("nothing to compute");
    assert_eq!(forth, back, "equality has two sides");
    if forth {
        let hash = |value| hash_value(&mut Unforced, value).expect("nothing to compute");
        assert_eq!(hash(&left), hash(&right), "equal values hash alike");
    }
    forth
}

#[test]
fn equal_values_compare_as_equal() {
    for (left, right) in [
        ("1", "1N"),
        ("[1 2]", "(1 2)"),
        ("[]", "()"),
        ("{:a 1 :b 2}", "{:b 2 :a 1}"),
        ("{1 :a}", "{1N :a}"),
        ("#{[1] (2)}", "#{(1) [2]}"),
        ("1.0M", "1.00M"),
        ("0.0", "-0.0"),
        ("a", "^:x a"),
        ("[1 {:a #{2}}]", "(1 {:a #{2N}})"),
        ("#inst \"2020\"", "#inst \"2020-01-01\""),
    ] {
        assert!(equal_texts(left, right), "{left} = {right}");
    }
}

#[test]
fn different_values_compare_as_different() {
    for (left, right) in [
        ("1", "1.0"),
        ("1", "1M"),
        ("1/2", "0.5"),
        ("##NaN", "##NaN"),
        ("[##NaN]", "[##NaN]"),
        ("nil", "()"),
        ("nil", "false"),
        ("#{}", "{}"),
        ("[1 2]", "[1 2 3]"),
        ("[1 2]", "#{1 2}"),
        ("{:a 1}", "{:a 2}"),
        ("{:a nil}", "{:b nil}"),
        (":a", "a"),
        ("\"a\"", "\\a"),
        ("#\"a\"", "#\"a\""),
    ] {
        assert!(!equal_texts(left, right), "{left} = {right}");
    }
}

#[test]
fn a_finite_sequence_compares_with_an_infinite_one() {
    let session = Session::new();
    let mut vm = session.vm(Box::new(NoHost::default()));
    let forever = Value::Seq(std::rc::Rc::new(SeqView::Repeat {
        value: Value::Int(1),
        count: None,
    }));
    let lazy = {
        let forever = forever.clone();
        Lazy::new(Thunk::Native(Box::new(move |_| Ok(forever))))
    };
    let finite = read("[1 1 1]");
    assert!(!vm.equal(&finite, &forever).unwrap());
    assert!(!vm.equal(&forever, &finite).unwrap());
    assert!(!vm.equal(&lazy, &finite).unwrap());
}

#[test]
fn lazy_parts_are_computed() {
    let session = Session::new();
    let mut vm = session.vm(Box::new(NoHost::default()));
    let lazy = || {
        Lazy::native(|_| {
            Ok(List::cons(
                Value::Int(1),
                Lazy::native(|_| Ok(read("(2 3)"))),
            ))
        })
    };
    assert!(vm.equal(&lazy(), &read("[1 2 3]")).unwrap());
    assert!(vm.equal(&lazy(), &lazy()).unwrap());
    let inside = Value::vector([lazy()]);
    assert_eq!(
        vm.hash(&inside).unwrap(),
        vm.hash(&read("[[1 2 3]]")).unwrap()
    );
}

fn compared(left: &str, right: &str) -> String {
    match compare_exact(&mut Unforced, &read(left), &read(right)) {
        Ok(order) => order.to_string(),
        Err(flowstone_lang::value::Signal::Throw(exception)) => exception.text().to_owned(),
        Err(stop) => format!("{stop:?}"),
    }
}

#[test]
fn compare_returns_the_results_of_clojure() {
    for (left, right, expected) in [
        ("nil", "1", "-1"),
        ("1", "nil", "1"),
        ("nil", "nil", "0"),
        ("1", "2.5", "-1"),
        ("1", "1.0", "0"),
        ("1/3", "0.3M", "1"),
        ("##NaN", "1", "0"),
        ("\"a\"", "\"c\"", "-2"),
        ("\"abc\"", "\"ab\"", "1"),
        ("\"é\"", "\"z\"", "111"),
        (":b", ":a", "1"),
        (":a/b", ":a", "1"),
        ("a", "ab", "-1"),
        ("\\a", "\\d", "-3"),
        ("[1 2]", "[3]", "1"),
        ("[1 [2 3]]", "[1 [2 4]]", "-1"),
        ("false", "true", "-1"),
        ("#inst \"2020\"", "#inst \"2021\"", "-1"),
        (
            "1",
            ":a",
            "cannot compare 1 (an integer) with :a (a keyword)",
        ),
        ("{}", "{}", "cannot compare {} (a map) with {} (a map)"),
        (
            "[1 :a]",
            "[1 \"b\"]",
            "cannot compare :a (a keyword) with \"b\" (a string)",
        ),
    ] {
        assert_eq!(compared(left, right), expected, "(compare {left} {right})");
    }
}
