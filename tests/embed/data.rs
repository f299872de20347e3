//! Conversion of data through serde, in both directions.

use std::collections::{BTreeMap, BTreeSet};

use flowstone_embed::reader::read_data;
use flowstone_embed::{Embed, Session, from_value, to_value};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Everything {
    bool: bool,
    int: i64,
    small: u8,
    big: u64,
    float: f64,
    char: char,
    text: String,
    none: Option<i64>,
    some: Option<i64>,
    unit: (),
    tuple: (i64, String),
    items: Vec<i64>,
    set: BTreeSet<String>,
    map: BTreeMap<String, i64>,
    numbers: BTreeMap<i64, String>,
    kinds: Vec<Kind>,
    inner: Wrapper,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Wrapper(Vec<Wrapper>);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Kind {
    Plain,
    One(i64),
    Two(i64, String),
    Named { left: i64, right: Option<String> },
}

fn everything() -> Everything {
    Everything {
        bool: true,
        int: -5,
        small: 255,
        big: u64::MAX,
        float: 0.1,
        char: 'é',
        text: "a \"b\"\n".to_owned(),
        none: None,
        some: Some(1),
        unit: (),
        tuple: (1, "x".to_owned()),
        items: vec![1, 2],
        set: BTreeSet::from(["p".to_owned()]),
        map: BTreeMap::from([("k".to_owned(), 1)]),
        numbers: BTreeMap::from([(7, "seven".to_owned())]),
        kinds: vec![
            Kind::Plain,
            Kind::One(1),
            Kind::Two(2, "b".to_owned()),
            Kind::Named {
                left: 1,
                right: None,
            },
        ],
        inner: Wrapper(vec![Wrapper(vec![])]),
    }
}

#[test]
fn data_survives_the_round_trip() {
    let value = to_value(&everything()).expect("plain data");
    let expected = read_data(
        "{:bool true, :int -5, :small 255, :big 18446744073709551615N, :float 0.1, :char \\é, \
         :text \"a \\\"b\\\"\\n\", :none nil, :some 1, :unit nil, :tuple [1 \"x\"], :items [1 2], \
         :set [\"p\"], :map {\"k\" 1}, :numbers {7 \"seven\"}, \
         :kinds [:Plain {:One 1} {:Two [2 \"b\"]} {:Named {:left 1, :right nil}}], :inner [[]]}",
    );
    assert_eq!(value, expected.expect("data"));
    assert_eq!(from_value::<Everything>(&value), Ok(everything()));
    let text = value.to_string();
    let read = read_data(&text).expect("it prints as data");
    assert_eq!(from_value::<Everything>(&read), Ok(everything()));
}

#[test]
fn json_passes_through_both_ways() {
    let json: serde_json::Value =
        serde_json::from_str(r#"{"a": [1, 2.5, "x", null, true], "b": {"c": {}}}"#).expect("json");
    let value = to_value(&json).expect("plain data");
    assert_eq!(
        value.to_string(),
        r#"{"a" [1 2.5 "x" nil true], "b" {"c" {}}}"#
    );
    assert_eq!(from_value::<serde_json::Value>(&value), Ok(json));
}

/// Reads data, and returns the Rust value as `Debug` writes it, or the error.
fn read<T: serde::de::DeserializeOwned + std::fmt::Debug>(text: &str) -> String {
    let value = read_data(text).expect("data");
    match from_value::<T>(&value) {
        Ok(data) => format!("{data:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn values_convert_to_the_requested_rust_type() {
    assert_eq!(read::<Vec<i64>>("(1 2)"), "[1, 2]");
    assert_eq!(read::<BTreeSet<i64>>("#{2 1}"), "{1, 2}");
    assert_eq!(read::<String>(":done"), r#""done""#);
    assert_eq!(read::<String>("a/b"), r#""a/b""#);
    assert_eq!(read::<String>("1.50M"), r#""1.50""#);
    assert_eq!(read::<f64>("1/4"), "0.25");
    assert_eq!(read::<f64>("3"), "3.0");
    assert_eq!(
        read::<String>(r#"#inst "2020-02-03""#),
        r#""2020-02-03T00:00:00.000-00:00""#
    );
    assert_eq!(
        read::<String>(r#"#uuid "00000000-0000-0000-0000-000000000001""#),
        r#""00000000-0000-0000-0000-000000000001""#
    );
    assert_eq!(
        read::<BTreeMap<String, i64>>("{:a 1 b 2 \"c\" 3}"),
        r#"{"a": 1, "b": 2, "c": 3}"#
    );
    assert_eq!(read::<Kind>("\"Plain\""), "Plain");
    assert_eq!(read::<Kind>("{Two (1 \"b\")}"), r#"Two(1, "b")"#);
    assert_eq!(
        read::<i128>("170141183460469231731687303715884105727N"),
        i128::MAX.to_string()
    );
}

#[test]
fn errors_name_the_path() {
    assert_eq!(
        read::<Vec<Kind>>("[:Plain {:Named {:left :x}}]"),
        "at [1 :Named :left]: invalid type: :x, expected i64"
    );
    assert_eq!(
        read::<Vec<Kind>>("[:Other]"),
        "at [0]: unknown variant `Other`, expected one of `Plain`, `One`, `Two`, `Named`"
    );
    assert_eq!(
        read::<Kind>(":One"),
        "the variant :One holds something: write it as {:One ...}"
    );
    assert_eq!(
        read::<Kind>("{:Plain 1}"),
        "at [:Plain]: this variant holds nothing, got 1"
    );
    assert_eq!(
        read::<Kind>("{:Named {:right \"r\"}}"),
        "at [:Named]: missing field `left`"
    );
    assert_eq!(
        read::<Kind>("7"),
        "invalid type: integer `7`, expected enum Kind"
    );
    assert_eq!(
        read::<BTreeMap<String, Vec<u8>>>("{:a [1 256]}"),
        "at [:a 1]: invalid value: integer `256`, expected u8"
    );
    assert_eq!(
        read::<BTreeMap<i64, i64>>("{:a 1}"),
        "at [:a]: invalid type: :a, expected i64"
    );
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    assert!(read::<Wrapper>(&deep).ends_with("nested more than 256 deep"));
}

#[test]
fn lazy_sequences_need_a_machine() {
    let session = Session::new();
    let lazy = session.evaluate("{:a (map inc [1 2])}").expect("a map");
    let error = from_value::<BTreeMap<String, Vec<i64>>>(&lazy).expect_err("not computed");
    assert!(error.to_string().starts_with("at [:a]: a lazy sequence"));
    let mut vm = session.vm(Box::new(flowstone_embed::Sandbox::new()));
    let computed = flowstone_embed::data::from_value_with(&mut vm, &lazy);
    assert_eq!(computed, Ok(BTreeMap::from([("a".to_owned(), vec![2, 3])])));
    let numbers: Vec<i64> = session
        .evaluate_as("(filter even? (range 6))")
        .expect("numbers");
    assert_eq!(numbers, [0, 2, 4]);
    let failure = session
        .evaluate_as::<Vec<i64>>("[1 :b]")
        .expect_err("no number");
    assert_eq!(failure.code(), "E0371");
}
