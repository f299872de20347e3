use std::str::FromStr as _;

use flowstone_lang::value::{BigDecimal, BigInt, BigRational, Keyword, Object, Symbol, Value};
use flowstone_steps::json::{from_json, from_json_with_string_keys, to_json};
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
