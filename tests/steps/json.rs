use std::str::FromStr as _;

use flowstone_lang::value::{BigDecimal, BigInt, BigRational, Keyword, Object, Symbol, Value};
use flowstone_steps::json::{
    compact, from_exact_json, from_json, from_json_with_string_keys, read, read_all, read_exact,
    to_exact_json, to_json, write, write_pretty_with,
};
use serde_json::json;

fn written(value: &Value) -> String {
    match to_json(value) {
        Ok(json) => json.to_string(),
        Err(error) => format!("error: {error}"),
    }
}

fn map(entries: &[(&str, Value)]) -> Value {
    Value::map(
        entries
            .iter()
            .map(|(key, value)| (Value::keyword(key), value.clone())),
    )
}

#[test]
fn values_are_written() {
    let decimal =
        |text: &str| Value::Decimal(BigDecimal::from_str(text).expect("a decimal").into());
    let big = |text: &str| Value::BigInt(BigInt::from_str(text).expect("an integer").into());
    let ratio = BigRational::new(BigInt::from(1), BigInt::from(4));
    for (value, expected) in [
        (Value::Nil, "null"),
        (Value::Bool(true), "true"),
        (Value::Int(-7), "-7"),
        (Value::Float(1.5), "1.5"),
        (
            Value::Float(f64::NAN),
            "error: ##NaN cannot be written as JSON",
        ),
        (Value::Char('x'), r#""x""#),
        (Value::keyword("a/b-c"), r#""a/b-c""#),
        (Value::from("q\"uote"), r#""q\"uote""#),
        (big("18446744073709551615"), "18446744073709551615"),
        (
            big("123456789012345678901234567890"),
            r#""123456789012345678901234567890""#,
        ),
        (decimal("12.50"), "12.5"),
        (
            decimal("0.1234567890123456789012"),
            r#""0.1234567890123456789012""#,
        ),
        (Value::Ratio(ratio.into()), "0.25"),
        (Value::vector([Value::Int(1), Value::Nil]), "[1,null]"),
        (Value::list([Value::Int(1), Value::Int(2)]), "[1,2]"),
        (Value::list([]), "[]"),
        (Value::set([Value::Int(1)]), "[1]"),
        (
            map(&[("order-id", Value::Int(1)), ("Camel_Case", map(&[]))]),
            r#"{"order-id":1,"Camel_Case":{}}"#,
        ),
        (
            Value::map([
                (Value::Int(3), Value::Int(4)),
                (Value::from("s"), Value::Nil),
            ]),
            r#"{"3":4,"s":null}"#,
        ),
        (Object::Inst(0).into(), r#""1970-01-01T00:00:00.000Z""#),
        (
            Object::Uuid(1).into(),
            r#""00000000-0000-0000-0000-000000000001""#,
        ),
        (Object::Bytes(Box::from(*b"hi")).into(), r#""aGk=""#),
        (
            Object::Tagged {
                tag: Symbol::new("my/tag"),
                form: Value::Int(1),
            }
            .into(),
            "1",
        ),
        (
            map(&[(
                "a",
                Value::vector([map(&[("f", Object::Volatile(Value::Nil.into()).into())])]),
            )]),
            "error: a volatile cannot be written as JSON (at [:a 0 :f])",
        ),
        (
            Value::map([
                (Value::keyword("k"), Value::Int(1)),
                (Value::from("k"), Value::Int(2)),
            ]),
            r#"error: two keys of one map are both written as "k""#,
        ),
    ] {
        assert_eq!(written(&value), expected);
    }
}

#[test]
fn deep_values_are_refused() {
    let mut deep = Value::Nil;
    for _ in 0..500 {
        deep = Value::vector([deep]);
    }
    assert!(written(&deep).starts_with("error: nested deeper than 128 levels"));
}

#[test]
fn json_becomes_values() {
    let json = json!({"user name": 1, "a/b": [1, 2.5, null, true, "x"], "big": u64::MAX});
    let value = from_json(&json);
    let key = |text: &str| Value::Keyword(Keyword::new(text));
    let map = value.as_map().expect("a map");
    assert_eq!(map.len(), 3);
    assert!(matches!(map.get(&key("user name")), Some(Value::Int(1))));
    assert!(matches!(map.get(&key("big")), Some(Value::BigInt(_))));
    assert_eq!(to_json(&value).expect("JSON"), json);
    let strings = from_json_with_string_keys(&json);
    assert!(
        strings
            .as_map()
            .expect("a map")
            .get(&Value::from("user name"))
            .is_some()
    );
}

fn reread(text: &str) -> String {
    match read(text) {
        Ok(value) => flowstone_engine::codec::encode(&value).expect("data"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn numbers_of_a_text_keep_their_value() {
    for (text, expected) in [
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854775808N"),
        (
            "-123456789012345678901234567890",
            "-123456789012345678901234567890N",
        ),
        ("-0", "0"),
        ("-0.0", "-0.0"),
        ("1e400", "##Inf"),
        ("-1.5E+400", "##-Inf"),
        ("1e-400", "0.0"),
        ("9007199254740992.999", "9007199254740992.0"),
        ("0.000244140625000000000001", "0.000244140625"),
        ("[1, 2.50, 1E2]", "[1 2.5 100.0]"),
        (r#"{"a": {"b": []}, "a": 2}"#, "{:a 2}"),
        (r#""\u00e9\ud83d\ude00\n""#, "\"é😀\\n\""),
    ] {
        assert_eq!(reread(text), expected, "{text}");
    }
}

#[test]
fn what_is_not_json_is_described_with_its_place() {
    let long = "9".repeat(10_001);
    let deep = "[".repeat(200) + &"]".repeat(200);
    for (text, expected) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("[1,]", "trailing comma at line 1 column 4"),
        ("01", "invalid number at line 1 column 2"),
        ("1.", "EOF while parsing a value at line 1 column 2"),
        ("[1e400, +1]", "expected value at line 1 column 9"),
        ("nul", "EOF while parsing a value at line 1 column 3"),
        ("\"\\é\"", "invalid escape at line 1 column 3"),
        (
            "\"\\ud800\"",
            "unexpected end of hex escape at line 1 column 8",
        ),
        (
            "\"a\nb\"",
            "control character (\\u0000-\\u001F) found while parsing a string at line 2 column 0",
        ),
        (&deep, "recursion limit exceeded at line 1 column 128"),
        (&long, "a number has more than 10000 digits"),
    ] {
        assert_eq!(reread(text), expected, "{text}");
    }
    let lines = read_all("1 [2]\n{}").expect("three values");
    assert_eq!(lines.len(), 3);
    assert!(read_all("1 x").is_err());
}

#[test]
fn written_numbers_keep_their_digits() {
    for text in [
        "9223372036854775808",
        "[-123456789012345678901234567890]",
        r#"{"n":[1,{"big":18446744073709551616}]}"#,
    ] {
        let value = read(text).expect("JSON");
        assert_eq!(write(&value).expect("data"), text);
    }
    for (edn, expected) in [
        ("1.10M", "1.10"),
        ("1E+400M", "1E+400"),
        ("[1e100 2/3]", "[1e+100,0.6666666666666667]"),
        (
            "{:a 10000000000000000000000000000000/30000000000000000000000000000001}",
            r#"{"a":0.3333333333333333}"#,
        ),
        (
            "##Inf",
            "error: an infinite number cannot be written as JSON",
        ),
    ] {
        let value = flowstone_engine::codec::decode(edn).expect("data");
        let written = write(&value).unwrap_or_else(|error| format!("error: {error}"));
        assert_eq!(written, expected);
    }
    let value = flowstone_engine::codec::decode("{:a [1.5M {}] :b []}").expect("data");
    let mut unforced = flowstone_lang::value::Unforced;
    assert_eq!(
        write_pretty_with(&mut unforced, &value).expect("data"),
        "{\n  \"a\": [\n    1.5,\n    {}\n  ],\n  \"b\": []\n}"
    );
    let taken = Value::map([(Value::from("\u{1}number"), Value::from("12"))]);
    assert!(write(&taken).is_err());
}

#[test]
fn a_tree_writes_the_digits_that_were_read() {
    for text in [
        r#"{"a":1.50,"b":[-0.0,1e5,123456789012345678901234567890,7],"1.50":"\\\"1.50 é"}"#,
        "2.00",
        "\"-1\"",
        "[true,null,{}]",
        "-12",
    ] {
        let tree = read_exact(text.as_bytes()).expect("JSON");
        assert_eq!(compact(&tree), text);
    }
    for text in ["", "01", "[1.50", "1.", "\"1.50", "[1,-]"] {
        assert!(read_exact(text.as_bytes()).is_err(), "{text}");
    }
    let edn = "{:d 1.50M :n 123456789012345678901234567890 :v [1 \"x\"]}";
    let value = flowstone_engine::codec::decode(edn).expect("data");
    let again = from_exact_json(&to_exact_json(&value).expect("JSON"));
    assert_eq!(
        flowstone_engine::codec::encode(&again),
        flowstone_engine::codec::encode(&value)
    );
}
