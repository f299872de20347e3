//! The output of `pr-str`, `print-str` and `str`.

use flowstone_lang::value::{Class, Exception, Object, PrintOptions, Unforced, Value, write_str};

use super::{read, show, show_with};

#[test]
fn forms_that_are_read_print_the_same() {
    for text in [
        "nil",
        "true",
        "-12",
        "1N",
        "2.5M",
        "1/2",
        "##NaN",
        "##Inf",
        "##-Inf",
        "1.0",
        "1.0E10",
        "1.0E-5",
        "\"a\\\"b\\\\c\\nd\\te\\rf\\fg\\b\"",
        "\"é😀\"",
        "\\a",
        "\\newline",
        "\\space",
        "\\tab",
        "\\u0000",
        ":a",
        ":a/b",
        "a/b",
        "[1 [2 3] ()]",
        "(1 (2) [])",
        "{:a 1, :b {:c 2}}",
        "#{1}",
        "()",
        "{}",
        "#{}",
        "[]",
        "(quote x)",
        "#\"a\\.b\\\"c\"",
        "#inst \"2020-02-29T12:34:56.789-00:00\"",
        "#uuid \"550e8400-e29b-41d4-a716-446655440000\"",
        "0.001",
        "1.0E7",
        "9999999.0",
        "1.0E23",
        "4.9E-324",
        "1E+10M",
        "1E-7M",
        "0.000001M",
        "0E-8M",
        "1.23456E+7M",
        "-0.0",
        "100.0",
        "1.7976931348623157E308",
    ] {
        assert_eq!(show(&read(text)), text);
    }
}

#[test]
fn print_length_and_level_limit_the_output() {
    let options = PrintOptions {
        length: Some(2),
        level: Some(2),
        ..PrintOptions::READABLE
    };
    for (text, expected) in [
        ("[1 2]", "[1 2]"),
        ("[1 2 3]", "[1 2 ...]"),
        ("{:a 1, :b 2, :c 3}", "{:a 1, :b 2, ...}"),
        ("[[[1]] 2]", "[[#] 2]"),
        ("[{:a [1]}]", "[{:a #}]"),
        ("(1 (2 (3)))", "(1 (2 #))"),
    ] {
        assert_eq!(show_with(&read(text), options), expected);
    }
    let none = PrintOptions {
        length: Some(0),
        ..PrintOptions::READABLE
    };
    assert_eq!(show_with(&read("[1]"), none), "[...]");
    assert_eq!(show_with(&read("[]"), none), "[]");
}

#[test]
fn metadata_and_namespace_maps_are_printed_on_request() {
    let options = PrintOptions {
        meta: true,
        namespace_maps: true,
        ..PrintOptions::READABLE
    };
    let with_meta = |meta: &str, value: &str| read(value).with_meta(read(meta)).unwrap();
    assert_eq!(
        show_with(&with_meta("{:a 1}", "[1]"), options),
        "^{:a 1} [1]"
    );
    assert_eq!(
        show_with(&with_meta("{:tag String}", "x"), options),
        "^String x"
    );
    assert_eq!(
        show_with(&read("{:a/b 1 :a/c 2}"), options),
        "#:a{:b 1, :c 2}"
    );
    assert_eq!(show_with(&read("{:a/b 1 :c 2}"), options), "{:a/b 1, :c 2}");
    assert_eq!(show_with(&read("{}"), options), "{}");
}

#[test]
fn str_and_print_write_plain_text() {
    let plain = |text| show_with(&read(text), PrintOptions::PLAIN);
    assert_eq!(plain("[\"a\" \\b :c 1N]"), "[a b :c 1N]");
    let str_of = |value: &Value| {
        let mut out = String::new();
        write_str(&mut out, &mut Unforced, value).unwrap();
        out
    };
    for (text, expected) in [
        ("nil", ""),
        ("\"a\"", "a"),
        ("\\a", "a"),
        ("1N", "1"),
        ("1.50M", "1.50"),
        ("##Inf", "Infinity"),
        ("##-Inf", "-Infinity"),
        ("##NaN", "NaN"),
        ("[\"a\" \\b nil]", "[\"a\" \\b nil]"),
        ("#\"a\"", "a"),
        ("#inst \"2020-01-01\"", "Wed Jan 01 00:00:00 UTC 2020"),
        ("1.0", "1.0"),
    ] {
        assert_eq!(str_of(&read(text)), expected);
    }
}

#[test]
fn uncommon_values_are_printed_as_in_clojure() {
    let cause = Exception::new(Class::ARITHMETIC, "", "Divide by zero");
    let outer = Exception::new(Class::EXCEPTION_INFO, "", "failed")
        .with("a", 1i64)
        .caused_by(cause.into());
    assert_eq!(
        show(&outer.into()),
        "#error {\n :cause \"Divide by zero\"\n :via\n [{:type clojure.lang.ExceptionInfo\n   :message \"failed\"\n   :data {:a 1}}\n  {:type java.lang.ArithmeticException\n   :message \"Divide by zero\"}]}"
    );
    assert_eq!(
        show(&Object::Reduced(Value::Int(1)).into()),
        "#object[clojure.lang.Reduced {:status :ready, :val 1}]"
    );
    assert_eq!(
        show(
            &Object::Tagged {
                tag: flowstone_lang::value::Symbol::new("a/b"),
                form: read("[1]")
            }
            .into()
        ),
        "#a/b [1]"
    );
}
